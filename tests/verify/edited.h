/* A split whose files are edited as text, one way after the other, and what the proof says then. */
#ifndef PSPLIT_TESTS_EDITED_H
#define PSPLIT_TESTS_EDITED_H

#include <psplit/model.h>
#include <stdbool.h>
#include <stddef.h>

enum { MOST_FILES = 12, MOST_EDITS = 8 };

typedef struct edit {
  int file;
  const char *from, *to; /* the first `from` behind the first `behind`, or of the file */
  const char *behind;
} edit;

/* What psplit_verify returns, and a part of its message. */
typedef struct edited_split {
  psplit_code code;
  const char *says;
  edit edits[MOST_EDITS];
} edited_split;

extern psplit_model *model; /* whose split it is; the caller opens it */

/* Reads the files of a split, in scratch. `paths` stay the caller's. */
void read_split(const char *const *paths, size_t n);
/* Frees what was read, and the model. */
void forget(void);
/* Each case is said of the directory "out"; by_stage: stage by stage as well. */
void each_is_told(const edited_split *cases, size_t n, bool by_stage);

#endif
