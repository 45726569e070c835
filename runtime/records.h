/* Files that hold one tensor after another: pipes, devices, standard input. */
#ifndef PSPLIT_RUNTIME_RECORDS_H
#define PSPLIT_RUNTIME_RECORDS_H

#include <stdatomic.h>

#include "arrays.h"

/* One open file and what was read of it but not yet taken. */
typedef struct psplit_i_records psplit_i_records;

/* All files of a stream; inputs that name the same one take turns in it. */
typedef struct psplit_i_record_files {
  const atomic_bool *stop; /* true: whoever waits for bytes gives up */
  double stall_timeout_s;  /* longest wait for somebody to open a pipe for writing; 0: any */
  psplit_i_records *first;
} psplit_i_record_files;

/* Whether tensors are read from `path` one after the other: "-" (standard input), a file that is no
 * regular one, or one that is open by such a name: /dev/stdin, /dev/fd/3. */
bool psplit_i_records_are_in(const char *path);

/* Opens `path`, or finds it open. Errors: IO, NOMEM. */
PSPLIT_MUST_USE psplit_code psplit_i_records_open(psplit_i_record_files *files, const char *path,
                                                  psplit_diag *diag, psplit_i_records **out);
/* Whether nothing can be read from there any more: where a tensor would begin is not known. */
bool psplit_i_records_are_lost(const psplit_i_records *records);
const char *psplit_i_records_path(const psplit_i_records *records);
void psplit_i_records_close_all(psplit_i_record_files *files);

/* Reads the next tensor: .npy with its header where the name is "-" or ends in .npy, else as many
 * raw bytes as an input of wanted->dims has. *out is NULL at the end of the file, and when told to
 * stop. Memory grows with the bytes that arrive, not with what a header promises. Errors: IO (also
 * where nobody opens a pipe for writing in time), MALFORMED (also where the file ends within a
 * tensor), those of psplit_i_npy_parse. */
PSPLIT_MUST_USE psplit_code psplit_i_records_next(psplit_i_records *records,
                                                  const psplit_i_ort *ort,
                                                  const psplit_i_array_wanted *wanted,
                                                  psplit_diag *diag, psplit_i_tensor **out);

#endif
