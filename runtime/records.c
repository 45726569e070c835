#include "records.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "queue.h"

struct psplit_i_records {
  psplit_i_records *next;
  const atomic_bool *stop;
  double stall_timeout_s;
  int64_t opened_ns;
  bool met; /* somebody has been at the other end */
  char *path;
  int fd;
  bool npy, lost;
  unsigned char *bytes;
  size_t n, capacity;
};

/* What is behind /dev/stdin need not be a file that can be opened. */
static bool is_stdin(const char *path) {
  return strcmp(path, "-") == 0 || strcmp(path, "/dev/stdin") == 0;
}

/* Names of what the process has open already, were it a regular file. */
static bool is_descriptor(const char *path) {
  return strncmp(path, "/dev/std", 8) == 0 || strncmp(path, "/dev/fd/", 8) == 0;
}

bool psplit_i_records_are_in(const char *path) {
  struct stat status;
  return is_stdin(path) || is_descriptor(path) ||
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
  made->stall_timeout_s = files->stall_timeout_s;
  made->opened_ns = psplit_i_now_ns();
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

bool psplit_i_records_are_lost(const psplit_i_records *records) { return records->lost; }

const char *psplit_i_records_path(const psplit_i_records *records) { return records->path; }

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

/* Waits a while until there is something to read. A pipe that nobody has opened for writing yet is
 * not at its end, though reading says so. */
static bool wait_for_bytes(psplit_i_records *r) {
  enum { LOOK_MS = 50 };
  struct pollfd event = {.fd = r->fd, .events = POLLIN};
  const bool is = poll(&event, 1, LOOK_MS) > 0;
  r->met |= is;
  return is;
}

static psplit_code check_met(const psplit_i_records *r, psplit_diag *diag) {
  const double waited_s = 1e-9 * (double)(psplit_i_now_ns() - r->opened_ns);
  if (r->met || !(r->stall_timeout_s > 0) || waited_s <= r->stall_timeout_s) return PSPLIT_OK;
  return psplit_i_fail_about(diag, PSPLIT_IO, PSPLIT_I_HELPS(TIMEOUT),
                             "%s: nobody has opened it for writing for %g s", r->path,
                             r->stall_timeout_s);
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
    if (atomic_load(r->stop)) return PSPLIT_OK;
    if (!wait_for_bytes(r) && r->met) continue;
    const ssize_t got = read(r->fd, r->bytes + r->n, want);
    if (got == 0 && r->met) return PSPLIT_OK;
    r->met |= got != 0;
    if (got > 0)
      r->n += (size_t)got;
    else if (got < 0 && errno != EAGAIN && errno != EINTR)
      return psplit_i_fail(diag, PSPLIT_IO, "%s: cannot be read: %s", r->path, strerror(errno));
    const psplit_code code = check_met(r, diag);
    if (code != PSPLIT_OK) return code;
  }
  return PSPLIT_OK;
}

/* Reads one .npy, whose size its header tells. */
static psplit_code fill_npy(psplit_i_records *r, psplit_diag *diag, bool *out_whole) {
  psplit_code code = PSPLIT_OK;
  uint64_t needed = 0;
  *out_whole = false;
  for (;;) {
    PSPLIT_TRY(psplit_i_npy_measure(r->path, r->bytes, r->n, diag, &needed));
    if (needed > SIZE_MAX / 2)
      return psplit_i_fail(diag, PSPLIT_MALFORMED, "%s: the next bytes are not a .npy array",
                           r->path);
    if (needed <= r->n) break;
    const size_t before = r->n;
    PSPLIT_TRY(fill(r, (size_t)needed, diag));
    if (r->n < needed && r->n == before) return PSPLIT_OK;
  }
  *out_whole = true;
out:
  return code;
}

/* Reads the bytes of the next tensor. */
static psplit_code fill_next(psplit_i_records *r, const psplit_i_array_wanted *wanted,
                             psplit_diag *diag, bool *out_whole) {
  uint64_t elements, bytes = 0;
  if (r->npy) return fill_npy(r, diag, out_whole);
  if (wanted->n_dims == PSPLIT_NONE ||
      !psplit_i_tensor_size(wanted->data_type, wanted->dims, wanted->n_dims, &elements, &bytes) ||
      bytes == 0)
    return psplit_i_fail_about(diag, PSPLIT_USAGE, PSPLIT_I_HELPS(INPUT_SIZE),
                               "%s holds raw bytes: say how large the input is", r->path);
  const psplit_code code = fill(r, (size_t)bytes, diag);
  *out_whole = r->n == bytes;
  return code;
}

psplit_code psplit_i_records_next(psplit_i_records *r, const psplit_i_ort *ort,
                                  const psplit_i_array_wanted *wanted, psplit_diag *diag,
                                  psplit_i_tensor **out) {
  bool whole = false;
  *out = NULL;
  r->n = 0;
  psplit_code code = fill_next(r, wanted, diag, &whole);
  if (code == PSPLIT_OK && !whole && r->n && !atomic_load(r->stop))
    code = psplit_i_fail(diag, PSPLIT_MALFORMED, "%s ends within a tensor", r->path);
  r->lost |= code != PSPLIT_OK;
  if (code != PSPLIT_OK || !whole) return code;
  return r->npy ? psplit_i_npy_parse(ort, r->path, r->bytes, r->n, wanted, diag, out)
                : psplit_i_raw_parse(ort, r->path, r->bytes, r->n, wanted, diag, out);
}
