/* Writing a file: small pieces through a buffer, weights from file to file inside the kernel where
 * it can do that. Peak memory is the buffer. */
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#ifdef __linux__
#include <sys/sendfile.h>
#endif

#include "activity.h"
#include "emit.h"

enum {
  BUFFER_BYTES = 256 << 10,
  BUFFERED_RANGE_BYTES = 32 << 10, /* ranges below this are read into the buffer */
  STEP_BYTES = 64 << 20,           /* of one system call, so that `cancel` is heard */
  PATIENCE_MS = 50                 /* between two looks at it */
};

static psplit_code cannot_write(const psplit_i_file *file, int reason, psplit_diag *diag) {
  return psplit_i_fail(diag, PSPLIT_IO, "cannot write %s%s%s: %s",
                       file->directory ? file->directory : "", file->directory ? "/" : "",
                       file->name, strerror(reason));
}

psplit_code psplit_i_file_begin(int fd, const char *directory, const char *name,
                                const psplit_model *model, psplit_diag *diag, psplit_i_file *out) {
  uint8_t *buffer = malloc(BUFFER_BYTES);
  *out = (psplit_i_file){.fd = -1};
  if (!buffer) {
    close(fd);
    return psplit_i_nomem(diag);
  }
  *out = (psplit_i_file){
    .fd = fd, .directory = directory, .name = name, .buffer = buffer, .model = model};
  return PSPLIT_OK;
}

static psplit_code write_all(psplit_i_file *file, const uint8_t *bytes, size_t n,
                             psplit_diag *diag) {
  while (n) {
    const ssize_t done = write(file->fd, bytes, n < STEP_BYTES ? n : STEP_BYTES);
    if (done < 0 && errno == EAGAIN) { /* a FIFO whose reader is slow */
      struct pollfd event = {.fd = file->fd, .events = POLLOUT};
      poll(&event, 1, PATIENCE_MS);
      if (psplit_i_cancelled(file->cancel)) break;
      continue;
    }
    if (done < 0 && errno == EINTR) continue;
    if (done < 0) return cannot_write(file, errno, diag);
    psplit_i_activity_add(file->activity, (uint64_t)done);
    bytes += done;
    n -= (size_t)done;
  }
  return psplit_i_go_on(file->cancel, diag);
}

static psplit_code flush(psplit_i_file *file, psplit_diag *diag) {
  const size_t n = file->n_buffered;
  file->n_buffered = 0;
  return n ? write_all(file, file->buffer, n, diag) : PSPLIT_OK;
}

psplit_code psplit_i_file_bytes(psplit_i_file *file, const uint8_t *bytes, size_t n,
                                psplit_diag *diag) {
  psplit_code code = PSPLIT_OK;
  file->written += n;
  if (n > BUFFER_BYTES - file->n_buffered) PSPLIT_TRY(flush(file, diag));
  if (n > BUFFER_BYTES) return write_all(file, bytes, n, diag);
  if (n) memcpy(file->buffer + file->n_buffered, bytes, n);
  file->n_buffered += n;
out:
  return code;
}

/* One step inside the kernel: bytes copied, 0 where it cannot be done this way, -1 with errno. */
static ssize_t copy_in_kernel(psplit_i_file *file, int source, uint64_t offset, size_t n) {
#ifdef __linux__
  if (!file->no_copy_range) {
    off_t at = (off_t)offset;
    const ssize_t done = copy_file_range(source, &at, file->fd, NULL, n, 0);
    if (done > 0) return done;
    if (done < 0 && (errno == EINTR || errno == ENOSPC || errno == EFBIG || errno == EDQUOT))
      return -1;
    file->no_copy_range = true;
  }
  if (!file->no_sendfile) {
    off_t at = (off_t)offset;
    const ssize_t done = sendfile(file->fd, source, &at, n);
    if (done > 0) return done;
    if (done < 0 && (errno == EINTR || errno == ENOSPC || errno == EFBIG || errno == EDQUOT))
      return -1;
    file->no_sendfile = true;
  }
#endif
  return 0;
}

/* How many of the n bytes at `offset` are of one kind: of a hole, or not of one. */
static uint64_t same_kind(int fd, uint64_t offset, uint64_t n, bool *out_hole) {
  *out_hole = false;
#if defined SEEK_DATA && defined SEEK_HOLE
  struct stat status;
  const off_t data = lseek(fd, (off_t)offset, SEEK_DATA);
  const bool to_the_end =
    data < 0 && errno == ENXIO && fstat(fd, &status) == 0 && (uint64_t)status.st_size >= offset + n;
  *out_hole = to_the_end || (data >= 0 && (uint64_t)data > offset);
  if (to_the_end) return n;
  const off_t end = data >= 0 && !*out_hole ? lseek(fd, (off_t)offset, SEEK_HOLE) : data;
  if (end >= 0 && (uint64_t)end > offset && (uint64_t)end - offset < n)
    return (uint64_t)end - offset;
#else
  (void)fd, (void)offset;
#endif
  return n;
}

/* Leaves a hole of n bytes, of which the file has the last only by its length. */
static psplit_code leave_hole(psplit_i_file *file, uint64_t n, psplit_diag *diag) {
  const off_t end = lseek(file->fd, (off_t)n, SEEK_CUR);
  if (end < 0 || ftruncate(file->fd, end) != 0) return cannot_write(file, errno, diag);
  psplit_i_activity_add(file->activity, n);
  return PSPLIT_OK;
}

/* Copies some of the *io_n bytes at *io_offset of `source`, which `fd` reads; the buffer is empty.
 * Holes stay holes: a model with made-up weights may be larger than the disk. */
static psplit_code copy_step(psplit_i_file *file, uint32_t source, int fd, uint64_t *io_offset,
                             uint64_t *io_n, psplit_diag *diag) {
  psplit_code code;
  PSPLIT_TRY(psplit_i_go_on(file->cancel, diag));
  bool hole = false;
  const uint64_t n = file->through ? *io_n : same_kind(fd, *io_offset, *io_n, &hole);
  if (hole) {
    PSPLIT_TRY(leave_hole(file, n, diag));
    *io_offset += n;
    *io_n -= n;
    return PSPLIT_OK;
  }
  const size_t step = n < STEP_BYTES ? (size_t)n : STEP_BYTES;
  ssize_t done = copy_in_kernel(file, fd, *io_offset, step);
  if (done < 0) return errno == EINTR ? PSPLIT_OK : cannot_write(file, errno, diag);
  if (done == 0) {
    const size_t part = step < BUFFER_BYTES ? step : BUFFER_BYTES;
    PSPLIT_TRY(psplit_i_model_read(file->model, source, *io_offset, file->buffer, part, diag));
    PSPLIT_TRY(write_all(file, file->buffer, part, diag));
    done = (ssize_t)part;
  } else {
    psplit_i_activity_add(file->activity, (uint64_t)done);
  }
  *io_offset += (uint64_t)done;
  *io_n -= (uint64_t)done;
out:
  return code;
}

psplit_code psplit_i_file_range(psplit_i_file *file, uint32_t source, uint64_t offset, uint64_t n,
                                psplit_diag *diag) {
  psplit_code code = PSPLIT_OK;
  int fd = -1;
  if (n > BUFFER_BYTES - file->n_buffered || n > BUFFERED_RANGE_BYTES)
    PSPLIT_TRY(flush(file, diag));
  file->written += n;
  if (n <= BUFFERED_RANGE_BYTES) {
    PSPLIT_TRY(psplit_i_model_read(file->model, source, offset, file->buffer + file->n_buffered,
                                   (size_t)n, diag));
    file->n_buffered += (size_t)n;
    return PSPLIT_OK;
  }
  PSPLIT_TRY(psplit_i_data_file_hold(file->model, source, diag, &fd));
  while (n && code == PSPLIT_OK) code = copy_step(file, source, fd, &offset, &n, diag);
  psplit_i_data_file_release(file->model, source, fd);
out:
  return code;
}

psplit_code psplit_i_file_skip(psplit_i_file *file, uint64_t offset, psplit_diag *diag) {
  psplit_code code;
  PSPLIT_TRY(flush(file, diag));
  if (lseek(file->fd, (off_t)offset, SEEK_SET) < 0) return cannot_write(file, errno, diag);
  file->written = offset;
out:
  return code;
}

psplit_code psplit_i_file_rope(psplit_i_file *file, const psplit_i_rope *rope, psplit_diag *diag) {
  psplit_code code = PSPLIT_OK;
  for (size_t i = 0; i < rope->pieces.n; i++) {
    const psplit_i_piece *piece = &rope->pieces.items[i];
    if (piece->memory)
      PSPLIT_TRY(psplit_i_file_bytes(file, piece->memory, (size_t)piece->bytes, diag));
    else
      PSPLIT_TRY(psplit_i_file_range(file, piece->file, piece->offset, piece->bytes, diag));
  }
out:
  return code;
}

psplit_code psplit_i_file_close(psplit_i_file *file, uint64_t expected, psplit_diag *diag) {
  psplit_code code;
  PSPLIT_TRY(flush(file, diag));
  struct stat status;
  if (fstat(file->fd, &status) != 0) return cannot_write(file, errno, diag);
  if (file->written != expected || (!file->through && (uint64_t)status.st_size != expected))
    return psplit_i_fail(diag, PSPLIT_INTERNAL,
                         "%s has %" PRIu64 " bytes, %" PRIu64 " written, where %" PRIu64
                         " were computed",
                         file->name, (uint64_t)status.st_size, file->written, expected);
  if (file->sync && !psplit_i_synced(file->fd)) return cannot_write(file, errno, diag);
  const int fd = file->fd;
  file->fd = -1;
  if (close(fd) != 0) return cannot_write(file, errno, diag); /* network file systems report here */
out:
  psplit_i_file_abandon(file);
  return code;
}

void psplit_i_file_abandon(psplit_i_file *file) {
  if (!file->buffer) return;
  if (file->fd >= 0) close(file->fd);
  free(file->buffer);
  *file = (psplit_i_file){.fd = -1};
}

psplit_code psplit_i_directory_file(psplit_i_directory *d, const char *name,
                                    const psplit_model *model, const volatile int *cancel,
                                    psplit_diag *diag, psplit_i_file *out) {
  psplit_code code;
  *out = (psplit_i_file){.fd = -1};
  struct stat old;
  const bool replaces = psplit_i_old_split_status(&d->old, name, &old);
  const int fd = openat(d->fd, name, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC,
                        replaces ? 0600 : 0666);
  if (fd < 0 || (replaces && !psplit_i_take_over(fd, &old))) {
    const int reason = errno;
    if (fd >= 0) close(fd);
    return psplit_i_fail(diag, PSPLIT_IO, "cannot make %s/%s: %s", d->target, name,
                         strerror(reason));
  }
  PSPLIT_TRY(psplit_i_file_begin(fd, d->target, name, model, diag, out));
  out->cancel = cancel;
  out->sync = d->sync;
out:
  return code;
}
