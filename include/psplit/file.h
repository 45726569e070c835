/* Files as the commands read and write them: whole, or not at all. */
#ifndef PSPLIT_FILE_H
#define PSPLIT_FILE_H

#include <psplit/base.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef struct psplit_file_read_options {
  size_t struct_size; /* set by psplit_file_read_options_init() */
  uint64_t max_bytes; /* 0: 64 MiB */
  bool or_stdin;      /* the path "-" is standard input, whatever that is */
} psplit_file_read_options;

static inline void psplit_file_read_options_init(psplit_file_read_options *options) {
  memset(options, 0, sizeof *options);
  options->struct_size = sizeof *options;
}

/* Reads the regular file `path` whole; *out_text is malloc'd, with a NUL behind its *out_n bytes.
 * Anything that is not a regular file is refused without being waited for. `options` may be NULL.
 * Errors: IO (not there, no regular file), LIMIT (too large, with PSPLIT_HINT_MAX_TEXT), USAGE,
 * NOMEM. From any thread. */
PSPLIT_API PSPLIT_MUST_USE psplit_code psplit_file_read(const char *path,
                                                        const psplit_file_read_options *options,
                                                        psplit_diag *diag, char **out_text,
                                                        size_t *out_n);

/* Writes n_bytes to the file `path`. A regular file is written beside its place, synced and
 * renamed: what stood there stays until the new one is complete, its mode is kept, and a failure
 * leaves nothing else. A FIFO or device is written through, after waiting for its reader; `cancel`
 * (base.h) ends that wait. Errors: IO (a directory, not writable, disk full), NOMEM, CANCELLED.
 * From any thread. */
PSPLIT_API PSPLIT_MUST_USE psplit_code psplit_file_write(const char *path, const void *bytes,
                                                         size_t n_bytes, const volatile int *cancel,
                                                         psplit_diag *diag);

/* Whether psplit_file_write could write `path` now: for the time before long work. Nothing is left
 * behind, and no reader of a FIFO is waited for. Errors: those of psplit_file_write. */
PSPLIT_API PSPLIT_MUST_USE psplit_code psplit_file_check(const char *path, psplit_diag *diag);

#ifdef __cplusplus
}
#endif
#endif
