#include "in_file.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "diag.h"
#include "foreign.h"

enum { FIRST_BYTES = 4096, BYTES_PER_VALUE = 16 };

static psplit_code cannot(const char *path, const char *why, psplit_diag *diag) {
  return psplit_i_fail(diag, PSPLIT_IO, "%s: cannot be read: %s", path, why);
}

static const char *kind_of(mode_t mode) {
  return S_ISDIR(mode)    ? "a directory"
         : S_ISFIFO(mode) ? "a pipe"
         : S_ISSOCK(mode) ? "a socket"
         : S_ISCHR(mode)  ? "a device"
                          : "a block device";
}

static psplit_code open_regular(const char *path, bool or_stdin, psplit_diag *diag, int *out_fd,
                                uint64_t *out_bytes) {
  struct stat status;
  const int fd = open(path, O_RDONLY | O_NONBLOCK | O_NOCTTY | O_CLOEXEC);
  if (fd < 0) return cannot(path, strerror(errno), diag);
  const int reason = fstat(fd, &status) == 0 ? 0 : errno;
  if (reason || !S_ISREG(status.st_mode)) {
    close(fd);
    if (reason) return cannot(path, strerror(reason), diag);
    return psplit_i_fail(diag, PSPLIT_IO,
                         "%s: cannot be read: it is %s, and a regular file is needed%s", path,
                         kind_of(status.st_mode), or_stdin ? ", or - for standard input" : "");
  }
  *out_fd = fd;
  *out_bytes = (uint64_t)status.st_size;
  return PSPLIT_OK;
}

psplit_code psplit_i_in_open(const char *path, psplit_diag *diag, int *out_fd,
                             uint64_t *out_bytes) {
  return open_regular(path, false, diag, out_fd, out_bytes);
}

/* A larger limit is no help to what is not a text. */
static psplit_code refuse_foreign(int fd, const char *path, psplit_diag *diag) {
  char head[PSPLIT_I_FOREIGN_BYTES];
  const ssize_t got = pread(fd, head, sizeof head, 0);
  const psplit_i_foreign *found = got > 0 ? psplit_i_foreign_marked(head, (size_t)got) : NULL;
  if (!found) return PSPLIT_OK;
  return psplit_i_fail(diag, PSPLIT_MALFORMED, "%s: it is %s%s", path, found->is, found->helps);
}

static psplit_code too_large(const char *path, const psplit_i_text_options *options, const char *of,
                             uint64_t limit, psplit_diag *diag) {
  return psplit_i_fail_about(diag, PSPLIT_LIMIT, (psplit_i_advice){.hint = options->lifted_by},
                             "%s: has more than %" PRIu64 " %s", path, limit, of);
}

/* Text may grow while it is read, and files of /proc have no size: what counts is what comes. */
static psplit_code read_all(int fd, const char *path, const psplit_i_text_options *options,
                            uint64_t expected, psplit_diag *diag, char **out_text, size_t *out_n) {
  const uint64_t limit = options->max_bytes;
  size_t capacity = FIRST_BYTES, n = 0;
  if (expected > limit) {
    const psplit_code code = refuse_foreign(fd, path, diag);
    return code == PSPLIT_OK ? too_large(path, options, "bytes", limit, diag) : code;
  }
  if (expected + 2 > capacity) capacity = (size_t)expected + 2;
  char *text = malloc(capacity);
  psplit_code code = text ? PSPLIT_OK : psplit_i_nomem(diag);
  for (bool end = false; code == PSPLIT_OK && !end;) {
    if (capacity - n < 2) {
      char *grown = capacity <= SIZE_MAX / 2 ? realloc(text, 2 * capacity) : NULL;
      if (!grown) {
        code = psplit_i_nomem(diag);
        break;
      }
      text = grown;
      capacity *= 2;
    }
    const ssize_t got = read(fd, text + n, capacity - n - 1);
    if (got < 0 && errno != EINTR) code = cannot(path, strerror(errno), diag);
    if (got > 0) n += (size_t)got;
    if (n > limit) code = too_large(path, options, "bytes", limit, diag);
    end = got == 0;
  }
  if (code != PSPLIT_OK) {
    free(text);
    return code;
  }
  text[n] = '\0';
  *out_text = text;
  *out_n = n;
  return PSPLIT_OK;
}

/* Values that JSON text holds, about: each stands behind a bracket or a comma. Other text has none.
 */
static uint64_t count_values(const char *text, size_t n) {
  const size_t begin = strspn(text, " \t\r\n");
  uint64_t values = 0;
  bool in_string = false;
  if (text[begin] != '{' && text[begin] != '[') return 0;
  for (size_t i = begin; i < n; i++) {
    const char c = text[i];
    if (in_string && c == '\\')
      i++;
    else if (c == '"')
      in_string = !in_string;
    else
      values += !in_string && (c == ',' || c == '[' || c == '{');
  }
  return values;
}

psplit_code psplit_i_text_read(const char *path, const psplit_i_text_options *given,
                               psplit_diag *diag, char **out_text, size_t *out_n) {
  psplit_code code = PSPLIT_OK;
  psplit_i_text_options options = {0};
  char *text = NULL;
  size_t n = 0;
  uint64_t bytes = 0;
  int fd = STDIN_FILENO;
  if (given) options = *given;
  if (!options.max_bytes) options.max_bytes = PSPLIT_I_TEXT_BYTES;
  const bool is_stdin = options.or_stdin && strcmp(path, "-") == 0;
  if (!is_stdin) PSPLIT_TRY(open_regular(path, options.or_stdin, diag, &fd, &bytes));
  code = read_all(fd, is_stdin ? "standard input" : path, &options, bytes, diag, &text, &n);
  if (!is_stdin) close(fd);
  if (code != PSPLIT_OK) return code;
  if (count_values(text, n) > options.max_bytes / BYTES_PER_VALUE) {
    free(text);
    return too_large(path, &options, "values", options.max_bytes / BYTES_PER_VALUE, diag);
  }
  *out_text = text;
  *out_n = n;
out:
  return code;
}

psplit_code psplit_i_in_read_at(const char *path, int fd, uint64_t offset, void *out, size_t n,
                                psplit_diag *diag) {
  unsigned char *to = out;
  while (n) {
    const ssize_t got = pread(fd, to, n, (off_t)offset);
    if (got < 0 && errno == EINTR) continue;
    if (got <= 0)
      return psplit_i_fail(diag, PSPLIT_IO, "%s: cannot be read: %s", path,
                           got ? strerror(errno) : "it was truncated meanwhile");
    to += got;
    offset += (uint64_t)got;
    n -= (size_t)got;
  }
  return PSPLIT_OK;
}
