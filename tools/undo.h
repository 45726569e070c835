/* Files that a command writes before it knows that it will succeed: what stood in their places
 * comes back where it does not. */
#ifndef PSPLIT_TOOLS_UNDO_H
#define PSPLIT_TOOLS_UNDO_H

#include <psplit/base.h>

enum { UNDO_MOST = 4 };

typedef struct undo_file {
  const char *path;  /* the caller's */
  char *real, *kept; /* the old file, and its second name; NULL: there was none, or it has none */
  int lock;          /* keeps others from taking `kept` for what a killed run left */
  bool was_there, written;
} undo_file;

typedef struct undo {
  undo_file files[UNDO_MOST];
  size_t n;
} undo;

/* Before `path` is written: keeps what is there under a hidden second name, .NAME.psplit-HEX. What
 * is not a regular file is not kept, and neither is a file on a file system without hard links.
 * Errors: NOMEM. */
PSPLIT_MUST_USE psplit_code undo_keep(undo *u, const char *path, psplit_diag *diag);
/* What was kept last has been written. */
void undo_written(undo *u);
/* The command failed: all is as it was. */
void undo_all(undo *u);
/* The command succeeded: what was kept goes. */
void undo_forget(undo *u);

#endif
