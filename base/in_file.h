/* Reading whole input files: JSON, tables, patterns, arrays. Only regular files: a FIFO may block
 * and a device may be endless. */
#ifndef PSPLIT_BASE_IN_FILE_H
#define PSPLIT_BASE_IN_FILE_H

#include <psplit/base.h>

/* Text is read up to this size where nobody says otherwise. JSON of that size may hold a value for
 * every 16 bytes: a tree of values can take 80 times the bytes of its text, so it is their
 * number that bounds memory, to about 1 GiB. */
#define PSPLIT_I_TEXT_BYTES (UINT64_C(64) << 20)

typedef struct psplit_i_text_options {
  uint64_t max_bytes;    /* 0: PSPLIT_I_TEXT_BYTES */
  psplit_hint lifted_by; /* hint for exceeding the limit */
  bool or_stdin;         /* "-" is standard input, of any type */
} psplit_i_text_options;

/* The whole text of `path`, malloc'd, with a NUL after its *out_n bytes; `options` may be NULL.
 * Errors: IO (missing, not a regular file), LIMIT (too large), NOMEM. */
PSPLIT_MUST_USE psplit_code psplit_i_text_read(const char *path,
                                               const psplit_i_text_options *options,
                                               psplit_diag *diag, char **out_text, size_t *out_n);

/* Opens a regular file for reading; other types are rejected without blocking. The caller closes
 * *out_fd. Errors: IO. */
PSPLIT_MUST_USE psplit_code psplit_i_in_open(const char *path, psplit_diag *diag, int *out_fd,
                                             uint64_t *out_bytes);

/* Reads n existing bytes from `offset` on. Thread-safe. `path` is for messages. Errors: IO (also if
 * the file was truncated). */
PSPLIT_MUST_USE psplit_code psplit_i_in_read_at(const char *path, int fd, uint64_t offset,
                                                void *out, size_t n, psplit_diag *diag);

#endif
