/* Atomic output files: an existing file remains until the new one is complete.
 *
 * A regular file is written under a hidden random name next to its place, .NAME.psplit-HEX, synced
 * and renamed, and its directory is synced. The mode of a replaced file is kept; a link to a
 * regular file is kept, and its target is replaced; a failure leaves the old file and nothing else.
 * Leftovers of killed processes are removed by the next one that writes the same file. Other types
 * (a FIFO, a device, /dev/stdout, a link to one of them) are written directly and never removed. */
#ifndef PSPLIT_BASE_OUT_FILE_H
#define PSPLIT_BASE_OUT_FILE_H

#include <psplit/base.h>
#include <signal.h>
#include <stdatomic.h>
#include <sys/stat.h>

typedef struct psplit_i_out_options {
  bool keep;    /* fail if a regular file exists */
  bool is_many; /* one of many files: do not sync (see psplit_i_out_sync) or remove leftovers */
  const atomic_int *stop; /* non-zero: stop waiting for the reader of a FIFO; may be NULL */
} psplit_i_out_options;

typedef struct psplit_i_out_file {
  int fd;           /* to be written sequentially */
  const char *path; /* the caller's, for messages */
  psplit_i_out_options options;
  int directory_fd; /* of the file; -1: written directly */
  char *name, *temp;
  bool was_new;   /* there was no old file */
  bool is_placed; /* the file is in place; temp, if any, is the old file */
} psplit_i_out_file;

/* Opens the file `path` for writing; `options` may be NULL. Waits for the reader of a FIFO. Errors:
 * IO (a directory, not writable, `keep` and it exists), CANCELLED (while it waits), NOMEM; nothing
 * is left behind then. */
PSPLIT_MUST_USE psplit_code psplit_i_out_begin(const char *path,
                                               const psplit_i_out_options *options,
                                               psplit_diag *diag, psplit_i_out_file *out);
/* Appends. Errors: IO, CANCELLED; the file must be abandoned then. */
PSPLIT_MUST_USE psplit_code psplit_i_out_write(psplit_i_out_file *file, const void *bytes, size_t n,
                                               psplit_diag *diag);
/* Renames the file into place, or abandons it on failure. Errors: IO. */
PSPLIT_MUST_USE psplit_code psplit_i_out_commit(psplit_i_out_file *file, psplit_diag *diag);
/* The same, but keeps the old file under a hidden name until psplit_i_out_commit, which cannot fail
 * then; psplit_i_out_abandon restores it. For files that belong together. */
PSPLIT_MUST_USE psplit_code psplit_i_out_place(psplit_i_out_file *file, psplit_diag *diag);
/* Closes the file, removes what psplit_i_out_begin created, frees. A file that is not open is
 * fine. */
void psplit_i_out_abandon(psplit_i_out_file *file);

/* Writes a whole file. */
PSPLIT_MUST_USE psplit_code psplit_i_out_put(const char *path, const psplit_i_out_options *options,
                                             const void *bytes, size_t n, psplit_diag *diag);

/* Checks whether psplit_i_out_begin could open `path` now, to be called before a long computation.
 * Leaves nothing behind, and does not wait for the reader of a FIFO. Errors: those of
 * psplit_i_out_begin. */
PSPLIT_MUST_USE psplit_code psplit_i_out_probe(const char *path,
                                               const psplit_i_out_options *options,
                                               psplit_diag *diag);

/* Removes unlocked leftovers .NAME.psplit-HEX of killed processes from a directory: those whose
 * names begin with `prefix`; NULL: all. Best effort; returns their number. */
uint32_t psplit_i_out_clean(int directory_fd, const char *prefix);

/* Syncs the file or directory; false with errno. A file system that does not support it is not a
 * failure. */
bool psplit_i_synced(int fd);

/* Gives the file or directory `fd` the owner (if permitted) and the mode of the one that it
 * replaces. False with errno. */
bool psplit_i_take_over(int fd, const struct stat *old);

/* Syncs the file system of `directory`: after files written with is_many. Errors: IO. */
PSPLIT_MUST_USE psplit_code psplit_i_out_sync(const char *directory, psplit_diag *diag);

/* Exceeding a file-size limit raises a signal in the writing thread, which would terminate the
 * process with an incomplete file. If the signal is blocked, it is a write error, like a full
 * disk. */
typedef struct psplit_i_held_signal {
  sigset_t before;
  bool held;
} psplit_i_held_signal;

psplit_i_held_signal psplit_i_hold_size_signal(void);
void psplit_i_let_size_signal(const psplit_i_held_signal *held);

#endif
