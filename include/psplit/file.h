/* Reading and writing whole files, atomically, as the commands do. */
#ifndef PSPLIT_FILE_H
#define PSPLIT_FILE_H

#include <psplit/base.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef struct psplit_file_read_options {
  size_t struct_size; /* set by psplit_file_read_options_init() */
  uint64_t max_bytes; /* 0: 64 MiB */
  bool or_stdin;      /* the path "-" means standard input, of any file type */
} psplit_file_read_options;

static inline void psplit_file_read_options_init(psplit_file_read_options *options) {
  memset(options, 0, sizeof *options);
  options->struct_size = sizeof *options;
}

/* Reads the regular file `path` completely; *out_text is malloc'd, with a NUL after its *out_n
 * bytes. Other kinds of files are rejected without waiting for them. `options` may be NULL. Errors:
 * IO (missing, not a regular file), LIMIT (too large, with PSPLIT_HINT_MAX_TEXT), USAGE, NOMEM.
 * Thread-safe. */
PSPLIT_API PSPLIT_MUST_USE psplit_code psplit_file_read(const char *path,
                                                        const psplit_file_read_options *options,
                                                        psplit_diag *diag, char **out_text,
                                                        size_t *out_n);

/* Writes n_bytes to the file `path`. A regular file is written under a temporary name, synced and
 * renamed: an existing file remains until the new one is complete, its mode is kept, and a failure
 * leaves nothing else behind. A FIFO or device is written directly, after waiting for its reader;
 * `cancel` (base.h) ends that wait. Errors: IO (a directory, not writable, disk full), NOMEM,
 * CANCELLED. Thread-safe. */
PSPLIT_API PSPLIT_MUST_USE psplit_code psplit_file_write(const char *path, const void *bytes,
                                                         size_t n_bytes, const volatile int *cancel,
                                                         psplit_diag *diag);

/* Checks whether psplit_file_write could write `path` now, to be called before a long computation.
 * Leaves nothing behind, and does not wait for the reader of a FIFO. Errors: those of
 * psplit_file_write. */
PSPLIT_API PSPLIT_MUST_USE psplit_code psplit_file_check(const char *path, psplit_diag *diag);

#ifdef __cplusplus
}
#endif
#endif
