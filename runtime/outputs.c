#include "outputs.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <poll.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "json_put.h"
#include "queue.h"

psplit_code psplit_i_outputs_begin(const char *directory, psplit_diag *diag) {
  struct stat status;
  if (mkdir(directory, 0777) == 0) return PSPLIT_OK;
  int reason = errno;
  if (reason == EEXIST && stat(directory, &status) == 0) {
    if (S_ISDIR(status.st_mode)) return PSPLIT_OK;
    reason = ENOTDIR;
  }
  return psplit_i_fail(diag, PSPLIT_IO, "%s: cannot be made: %s", directory, strerror(reason));
}

psplit_code psplit_i_outputs_end(const char *directory, psplit_diag *diag) {
  return psplit_i_out_sync(directory, diag);
}

psplit_code psplit_i_outputs_index(const char *directory, const psplit_i_manifest *manifest,
                                   uint64_t n_micro_batches, psplit_diag *diag) {
  psplit_i_text text = {0}, path = {0};
  psplit_i_json json;
  psplit_i_json_init(&json, &text);
  psplit_i_json_open(&json, '{');
  psplit_i_json_key(&json, "micro_batches");
  if (n_micro_batches == PSPLIT_I_ENDLESS)
    psplit_i_json_null(&json);
  else
    psplit_i_json_uint(&json, n_micro_batches);
  psplit_i_json_put_open(&json, "outputs", '[');
  for (uint32_t o = 0; o < manifest->n_outputs; o++)
    psplit_i_json_string(&json, manifest->outputs[o]);
  psplit_i_json_close(&json, ']');
  psplit_i_json_close(&json, '}');
  psplit_i_text_puts(&text, "\n");
  psplit_i_text_addf(&path, "%s/outputs.json", directory);
  const psplit_code code = text.failed || path.failed
                             ? psplit_i_nomem(diag)
                             : psplit_i_out_put(path.bytes, NULL, text.bytes, text.n, diag);
  psplit_i_text_fini(&path);
  psplit_i_text_fini(&text);
  return code;
}

psplit_code psplit_i_outputs_write(void *user, uint32_t micro_batch, uint32_t output,
                                   psplit_i_tensor *tensor, psplit_diag *diag) {
  const psplit_i_output_directory *to = user;
  psplit_i_text stem = {0};
  psplit_i_text_addf(&stem, "%s/%u-%u", to->directory, micro_batch, output);
  const psplit_code code =
    stem.failed ? psplit_i_nomem(diag) : psplit_i_array_write(tensor, stem.bytes, diag);
  psplit_i_text_fini(&stem);
  return code;
}

/* Writes all of it. So much at once as a pipe that has any room takes, so that a reader who has
 * stopped reading cannot hold us. */
static psplit_code write_all(const psplit_i_output_stream *to, const char *bytes, size_t n,
                             psplit_diag *diag) {
  enum { LOOK_MS = 50 };
  struct pollfd event = {.fd = to->fd, .events = POLLOUT};
  while (n) {
    if (atomic_load(to->stop)) return psplit_i_fail(diag, PSPLIT_IO, "the run was stopped");
    if (poll(&event, 1, LOOK_MS) <= 0) continue;
    const ssize_t done = write(to->fd, bytes, n < PIPE_BUF ? n : PIPE_BUF);
    if (done < 0 && errno != EAGAIN && errno != EINTR)
      return psplit_i_fail(diag, PSPLIT_IO, "%s cannot be written: %s", to->name, strerror(errno));
    if (done <= 0) continue;
    bytes += done;
    n -= (size_t)done;
  }
  return PSPLIT_OK;
}

psplit_code psplit_i_output_stream_open(const char *path, const atomic_int *interrupted,
                                        double stall_timeout_s, psplit_diag *diag,
                                        psplit_i_output_stream *out) {
  static const long LOOK_NS = 50000000;
  const int64_t since_ns = psplit_i_now_ns();
  int fd;
  /* ENXIO: nobody has it open for reading. */
  while ((fd = open(path, O_WRONLY | O_NONBLOCK | O_CLOEXEC)) < 0 && errno == ENXIO &&
         !(interrupted && atomic_load(interrupted))) {
    if (stall_timeout_s > 0 && 1e-9 * (double)(psplit_i_now_ns() - since_ns) > stall_timeout_s)
      return psplit_i_fail_about(diag, PSPLIT_IO, PSPLIT_I_HELPS(TIMEOUT),
                                 "%s: nobody has opened it for reading for %g s", path,
                                 stall_timeout_s);
    nanosleep(&(struct timespec){0, LOOK_NS}, NULL);
  }
  if (fd < 0)
    return psplit_i_fail(diag, PSPLIT_IO, "%s: cannot be opened: %s", path, strerror(errno));
  out->name = path;
  out->fd = fd;
  return PSPLIT_OK;
}

psplit_code psplit_i_outputs_stream(void *user, uint32_t micro_batch, uint32_t output,
                                    psplit_i_tensor *tensor, psplit_diag *diag) {
  psplit_i_text text = {0};
  psplit_code code = psplit_i_npy_format(tensor, diag, &text);
  (void)output;
  if (code == PSPLIT_UNSUPPORTED && diag->code == PSPLIT_OK)
    code = psplit_i_fail(diag, code, "numpy has no such type; -o DIR writes it as .pb");
  else if (code == PSPLIT_OK && text.failed)
    code = psplit_i_nomem(diag);
  if (code == PSPLIT_OK) code = write_all(user, text.bytes, text.n, diag);
  if (code != PSPLIT_OK) psplit_i_diag_context(diag, "micro-batch %u", micro_batch);
  psplit_i_text_fini(&text);
  return code;
}
