#include "records.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

struct psplit_i_records {
  psplit_i_records *next;
  const atomic_bool *stop;
  char *path;
  int fd;
  bool npy;
  unsigned char *bytes;
  size_t n, capacity;
};

/* What is behind /dev/stdin need not be a file that can be opened. */
static bool is_stdin(const char *path) {
  return strcmp(path, "-") == 0 || strcmp(path, "/dev/stdin") == 0;
}

bool psplit_i_records_are_in(const char *path) {
  struct stat status;
  return is_stdin(path) || strncmp(path, "/dev/", 5) == 0 ||
         (stat(path, &status) == 0 && !S_ISREG(status.st_mode) && !S_ISDIR(status.st_mode));
}

static bool ends_in_npy(const char *path) {
  const size_t n = strlen(path);
  return strcmp(path, "-") == 0 || (n > 4 && strcmp(path + n - 4, ".npy") == 0);
}

psplit_code psplit_i_records_open(psplit_i_record_files *files, const char *path, psplit_diag *diag,
                                  psplit_i_records **out) {
  for (psplit_i_records *each = files->first; each; each = each->next)
    if (strcmp(each->path, path) == 0) {
      *out = each;
      return PSPLIT_OK;
    }
  psplit_i_records *made = calloc(1, sizeof *made);
  if (!made || !(made->path = strdup(path))) {
    free(made);
    return psplit_i_nomem(diag);
  }
  made->stop = files->stop;
  made->npy = ends_in_npy(path);
  /* A FIFO that nobody writes to yet would let open wait, where no one can stop it. */
  made->fd = is_stdin(path) ? STDIN_FILENO : open(path, O_RDONLY | O_NONBLOCK | O_CLOEXEC);
  made->next = files->first;
  files->first = made;
  *out = made;
  return made->fd >= 0
           ? PSPLIT_OK
           : psplit_i_fail(diag, PSPLIT_IO, "%s: cannot be opened: %s", path, strerror(errno));
}

void psplit_i_records_close_all(psplit_i_record_files *files) {
  while (files->first) {
    psplit_i_records *each = files->first;
    files->first = each->next;
    if (each->fd > STDIN_FILENO) close(each->fd);
    free(each->bytes);
    free(each->path);
    free(each);
  }
}

/* Waits until there is something to read; false when told to stop. */
static bool wait_for_bytes(const psplit_i_records *r) {
  enum { LOOK_MS = 50 };
  struct pollfd event = {.fd = r->fd, .events = POLLIN};
  while (!atomic_load(r->stop))
    if (poll(&event, 1, LOOK_MS) > 0) return true;
  return false;
}

static bool reserve(psplit_i_records *r, size_t more) {
  if (r->capacity - r->n >= more) return true;
  const size_t capacity = 2 * r->capacity + more;
  unsigned char *grown = realloc(r->bytes, capacity);
  if (!grown) return false;
  r->bytes = grown;
  r->capacity = capacity;
  return true;
}

/* Reads until `needed` bytes are there. *out_n is less at the end of the file and when stopped. */
static psplit_code fill(psplit_i_records *r, size_t needed, psplit_diag *diag) {
  enum { STEP = 1 << 20 };
  while (r->n < needed) {
    const size_t want = needed - r->n < STEP ? needed - r->n : STEP;
    if (!reserve(r, want)) return psplit_i_nomem(diag);
    if (!wait_for_bytes(r)) return PSPLIT_OK;
    const ssize_t got = read(r->fd, r->bytes + r->n, want);
    if (got == 0) return PSPLIT_OK;
    if (got > 0)
      r->n += (size_t)got;
    else if (errno != EAGAIN && errno != EINTR)
      return psplit_i_fail(diag, PSPLIT_IO, "%s: cannot be read: %s", r->path, strerror(errno));
  }
  return PSPLIT_OK;
}

/* Reads one .npy, whose size its header tells. */
static psplit_code fill_npy(psplit_i_records *r, psplit_diag *diag, bool *out_whole) {
  psplit_code code = PSPLIT_OK;
  uint64_t needed = 0;
  *out_whole = false;
  for (;;) {
    if (!psplit_i_npy_measure(r->bytes, r->n, &needed) || needed > SIZE_MAX / 2)
      return psplit_i_fail(diag, PSPLIT_MALFORMED, "%s: no .npy comes next", r->path);
    if (needed <= r->n) break;
    const size_t before = r->n;
    PSPLIT_TRY(fill(r, (size_t)needed, diag));
    if (r->n < needed && r->n == before) return PSPLIT_OK;
  }
  *out_whole = true;
out:
  return code;
}

psplit_code psplit_i_records_next(psplit_i_records *r, const psplit_i_ort *ort,
                                  const psplit_i_array_wanted *wanted, psplit_diag *diag,
                                  psplit_i_tensor **out) {
  psplit_code code;
  bool whole;
  uint64_t elements, bytes = 0;
  *out = NULL;
  r->n = 0;
  if (r->npy) {
    PSPLIT_TRY(fill_npy(r, diag, &whole));
  } else {
    if (wanted->n_dims == PSPLIT_NONE ||
        !psplit_i_tensor_size(wanted->data_type, wanted->dims, wanted->n_dims, &elements, &bytes) ||
        bytes == 0)
      return psplit_i_fail_about(diag, PSPLIT_USAGE, PSPLIT_I_HELPS(INPUT_SIZE),
                                 "%s holds raw bytes: say how large the input is", r->path);
    PSPLIT_TRY(fill(r, (size_t)bytes, diag));
    whole = r->n == bytes;
  }
  if (!whole) {
    if (r->n == 0 || atomic_load(r->stop)) return PSPLIT_OK;
    return psplit_i_fail(diag, PSPLIT_MALFORMED, "%s ends within a tensor", r->path);
  }
  code = r->npy ? psplit_i_npy_parse(ort, r->path, r->bytes, r->n, wanted, diag, out)
                : psplit_i_raw_parse(ort, r->path, r->bytes, r->n, wanted, diag, out);
out:
  return code;
}
