#include "prompts.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "cli.h"
#include "prompt_line.h"

bool prompts_add(prompts_list *list, int64_t *tokens, size_t n) {
  prompt_ids *grown = cli_grow(list->list, list->n, sizeof *grown);
  if (!grown) {
    free(tokens);
    return false;
  }
  list->list = grown;
  list->list[list->n++] = (prompt_ids){.tokens = tokens, .n = n};
  return true;
}

void prompts_fini(prompts_list *list) {
  for (size_t i = 0; i < list->n; i++) prompt_ids_fini(&list->list[i]);
  free(list->list);
}

psplit_code prompts_open(const char *path, psplit_diag *diag, prompts_file *out) {
  /* Not to wait in here for a writer of a pipe: nothing would hear of signals. */
  const int fd =
    strcmp(path, "-") == 0 ? STDIN_FILENO : open(path, O_RDONLY | O_NONBLOCK | O_CLOEXEC);
  *out = (prompts_file){.path = path, .fd = fd};
  return fd >= 0
           ? PSPLIT_OK
           : psplit_diag_fail(diag, PSPLIT_IO, "%s: cannot be read: %s", path, strerror(errno));
}

/* Room for more behind what has been read, of which the lines that are done go. */
static psplit_code make_room(prompts_file *file, psplit_diag *diag) {
  static const size_t MOST_BYTES = (size_t)64 << 20, FIRST_BYTES = 4096;
  if (file->at) {
    memmove(file->text, file->text + file->at, file->n - file->at);
    file->n -= file->at;
    file->at = 0;
  }
  if (file->n + 1 < file->capacity) return PSPLIT_OK;
  if (file->n + 1 >= MOST_BYTES)
    return psplit_diag_fail(diag, PSPLIT_LIMIT, "%s: line %" PRIu64 " is over 64 MiB", file->path,
                            file->line + 1);
  const size_t capacity = file->capacity ? 2 * file->capacity : FIRST_BYTES;
  char *grown = realloc(file->text, capacity);
  if (!grown) return cli_nomem(diag);
  file->text = grown;
  file->capacity = capacity;
  return PSPLIT_OK;
}

/* Reads what there is, once there is something: poll looks at `stop` in between, which read would
 * not. */
static psplit_code read_more(prompts_file *file, const volatile int *stop, psplit_diag *diag) {
  enum { LOOK_MS = 50 };
  psplit_code code = make_room(file, diag);
  if (code != PSPLIT_OK) return code;
  for (struct pollfd event = {.fd = file->fd, .events = POLLIN}; !*stop;) {
    const int ready = poll(&event, 1, LOOK_MS);
    if (ready == 0 || (ready < 0 && errno == EINTR)) continue;
    const ssize_t n = read(file->fd, file->text + file->n, file->capacity - 1 - file->n);
    if (n < 0 && (errno == EINTR || errno == EAGAIN)) continue;
    if (n < 0) return psplit_diag_fail(diag, PSPLIT_IO, "%s: %s", file->path, strerror(errno));
    file->n += (size_t)n;
    file->ended = n == 0;
    return PSPLIT_OK;
  }
  return psplit_diag_fail(diag, PSPLIT_CANCELLED, "interrupted");
}

/* The next line, ended by NUL, or *out_end. */
static psplit_code next_line(prompts_file *file, const volatile int *stop, psplit_diag *diag,
                             char **out, size_t *out_n, bool *out_end) {
  if (!file->capacity) {
    const psplit_code code = make_room(file, diag);
    if (code != PSPLIT_OK) return code;
  }
  for (size_t seen = 0;;) {
    char *line = file->text + file->at;
    const size_t n = file->n - file->at;
    char *end = n > seen ? memchr(line + seen, '\n', n - seen) : NULL;
    *out_end = !end && file->ended && !n;
    if (*out_end) return PSPLIT_OK;
    if (end || file->ended) {
      *out = line;
      *out_n = end ? (size_t)(end - line) : n;
      line[*out_n] = '\0';
      file->at += *out_n + (end != NULL);
      file->line++;
      return PSPLIT_OK;
    }
    seen = n;
    const psplit_code code = read_more(file, stop, diag);
    if (code != PSPLIT_OK) return code;
  }
}

/* The line that was read last is wrong. Where it is the first, the file may be no text at all. */
static psplit_code refuse(prompts_file *file, char *line, size_t n, const char *wrong,
                          psplit_diag *diag) {
  const char *helps, *is = NULL;
  if (file->at > n) line[n] = '\n'; /* as it stood there */
  if (file->line == 1) is = psplit_foreign_text(file->text, file->n, &helps);
  if (is)
    return psplit_diag_fail(diag, PSPLIT_MALFORMED, "%s: no prompts can be read: it is %s%s",
                            file->path, is, helps);
  return psplit_diag_fail(diag, PSPLIT_MALFORMED, "%s: line %" PRIu64 " %s", file->path, file->line,
                          wrong);
}

psplit_code prompts_next(prompts_file *file, const volatile int *stop, psplit_diag *diag,
                         prompt_ids *out, bool *out_end) {
  for (;;) {
    char *line = NULL;
    size_t n = 0;
    const psplit_code code = next_line(file, stop, diag, &line, &n, out_end);
    if (code != PSPLIT_OK || *out_end) return code;
    const char *wrong = strlen(line) == n ? prompt_line_parse(line, out) : "has a NUL";
    if (wrong) return refuse(file, line, n, wrong, diag);
    if (out->n) return PSPLIT_OK;
    prompt_ids_fini(out); /* an empty line */
  }
}

void prompts_close(prompts_file *file) {
  if (file->fd > STDIN_FILENO) close(file->fd);
  free(file->text);
}
