/* Output files: what stood in a place stays there until the whole new file does.
 *
 * A regular file is written under a hidden random name beside its place, .NAME.psplit-HEX, synced,
 * renamed, and its directory synced. The mode of a file that it replaces is kept, a link to a
 * regular file stays and the file behind it is replaced, and what fails on the way leaves the old
 * file and nothing else. What a killed process left of such a file is removed by the next one that
 * writes it. What is not a regular file (a FIFO, a device, /dev/stdout, a link to one of them) is
 * written through and never removed. */
#ifndef PSPLIT_BASE_OUT_FILE_H
#define PSPLIT_BASE_OUT_FILE_H

#include <psplit/base.h>
#include <signal.h>
#include <stdatomic.h>
#include <sys/stat.h>

typedef struct psplit_i_out_options {
  bool keep;    /* a regular file that exists is an error, not replaced */
  bool is_many; /* one of many: not synced, psplit_i_out_sync is; leftovers are not looked for */
  const atomic_int *stop; /* non-zero: a FIFO's reader is not waited for; may be NULL */
} psplit_i_out_options;

typedef struct psplit_i_out_file {
  int fd;           /* to write to, from the beginning to the end */
  const char *path; /* the caller's, for messages */
  psplit_i_out_options options;
  int directory_fd; /* that holds the file; -1: it is written through */
  char *name, *temp;
  bool was_new;   /* nothing was in its place */
  bool is_placed; /* the file is in its place; temp, where there is one, is the old file */
} psplit_i_out_file;

/* Opens the file `path` for writing; `options` may be NULL. Waits for the reader of a FIFO. Errors:
 * IO (a directory, not writable, `keep` and it exists), CANCELLED (while it waits), NOMEM; nothing
 * is left behind then. */
PSPLIT_MUST_USE psplit_code psplit_i_out_begin(const char *path,
                                               const psplit_i_out_options *options,
                                               psplit_diag *diag, psplit_i_out_file *out);
/* Appends. Errors: IO, CANCELLED; the file has to be abandoned then. */
PSPLIT_MUST_USE psplit_code psplit_i_out_write(psplit_i_out_file *file, const void *bytes, size_t n,
                                               psplit_diag *diag);
/* Puts the file in its place, or on failure abandons it. Errors: IO. */
PSPLIT_MUST_USE psplit_code psplit_i_out_commit(psplit_i_out_file *file, psplit_diag *diag);
/* The same, but the file that was there stays, hidden, until psplit_i_out_commit, which does not
 * fail then, and psplit_i_out_abandon brings it back: for files that belong together. */
PSPLIT_MUST_USE psplit_code psplit_i_out_place(psplit_i_out_file *file, psplit_diag *diag);
/* Closes, removes what psplit_i_out_begin made, frees. A file that is not open is fine. */
void psplit_i_out_abandon(psplit_i_out_file *file);

/* A whole file at once. */
PSPLIT_MUST_USE psplit_code psplit_i_out_put(const char *path, const psplit_i_out_options *options,
                                             const void *bytes, size_t n, psplit_diag *diag);

/* Whether psplit_i_out_begin could open `path` now: for the time before long work. Nothing is left
 * behind, and a FIFO is not waited for. Errors: those of psplit_i_out_begin. */
PSPLIT_MUST_USE psplit_code psplit_i_out_probe(const char *path,
                                               const psplit_i_out_options *options,
                                               psplit_diag *diag);

/* Removes hidden files, .NAME.psplit-HEX, that killed processes left in a directory and nobody
 * locks: those whose names begin with `prefix`, or for NULL all. Best effort; how many. */
uint32_t psplit_i_out_clean(int directory_fd, const char *prefix);

/* Waits until the disk has the file or directory; false with errno. File systems that cannot sync
 * are no failure. */
bool psplit_i_synced(int fd);

/* Gives the file or directory `fd` the owner, as far as this process may, and the mode of the one
 * that it replaces. False with errno. */
bool psplit_i_take_over(int fd, const struct stat *old);

/* Syncs the file system of `directory`: after files written with is_many. Errors: IO. */
PSPLIT_MUST_USE psplit_code psplit_i_out_sync(const char *directory, psplit_diag *diag);

/* Writing past a file-size limit raises a signal in the thread that writes, which would end the
 * process with half a file left. Held back, it is an error of the write, like a full disk. */
typedef struct psplit_i_held_signal {
  sigset_t before;
  bool held;
} psplit_i_held_signal;

psplit_i_held_signal psplit_i_hold_size_signal(void);
void psplit_i_let_size_signal(const psplit_i_held_signal *held);

#endif
