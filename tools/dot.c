#include "dot.h"

#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

extern char **environ;

static psplit_code fail(psplit_diag *diag, psplit_code code, const char *message, int reason) {
  diag->code = code;
  snprintf(diag->message, sizeof diag->message, "%s%s%s", message, reason ? ": " : "",
           reason ? strerror(reason) : "");
  return code;
}

/* Starts dot with its input and output in pipes. */
static int start(int in[2], int out[2], pid_t *out_pid) {
  posix_spawn_file_actions_t actions;
  int reason = posix_spawn_file_actions_init(&actions);
  if (reason) return reason;
  const int moves[][2] = {{in[0], STDIN_FILENO}, {out[1], STDOUT_FILENO}};
  for (size_t i = 0; i < 2 && !reason; i++)
    reason = posix_spawn_file_actions_adddup2(&actions, moves[i][0], moves[i][1]);
  const int closed[] = {in[0], in[1], out[0], out[1]};
  for (size_t i = 0; i < 4 && !reason; i++)
    if (closed[i] > STDERR_FILENO) reason = posix_spawn_file_actions_addclose(&actions, closed[i]);
  char name[] = "dot", format[] = "-Tsvg";
  char *const arguments[] = {name, format, NULL};
  if (!reason) reason = posix_spawnp(out_pid, "dot", &actions, NULL, arguments, environ);
  posix_spawn_file_actions_destroy(&actions);
  return reason;
}

/* Feeds `text` to `to` and collects `from`, whichever is ready, so that neither side waits for the
 * other; closes both. The result, malloc'd, or NULL. */
static char *exchange(const char *text, size_t n, int to, int from, size_t *out_n) {
  char *result = NULL;
  size_t used = 0, capacity = 0, sent = 0;
  bool good = true;
  for (bool open = true; open && good;) {
    if (to >= 0 && sent == n) {
      close(to);
      to = -1;
    }
    struct pollfd ends[2] = {{.fd = from, .events = POLLIN}, {.fd = to, .events = POLLOUT}};
    if (poll(ends, to >= 0 ? 2 : 1, -1) < 0) {
      good = errno == EINTR;
      continue;
    }
    if (to >= 0 && ends[1].revents) {
      /* A pipe takes this much without blocking once it is writable. */
      const ssize_t done = write(to, text + sent, n - sent < 4096 ? n - sent : 4096);
      if (done < 0)
        sent = n; /* dot has gone: its exit status tells */
      else
        sent += (size_t)done;
    }
    if (!ends[0].revents) continue;
    if (capacity - used < 65536) {
      capacity = capacity ? 2 * capacity : 1 << 18;
      char *grown = realloc(result, capacity);
      good = grown;
      if (!good) break;
      result = grown;
    }
    const ssize_t got = read(from, result + used, capacity - used - 1);
    open = got > 0 || (got < 0 && errno == EINTR);
    if (got > 0) used += (size_t)got;
  }
  if (to >= 0) close(to);
  close(from);
  if (!good || !result) {
    free(result);
    return NULL;
  }
  result[used] = '\0';
  *out_n = used;
  return result;
}

psplit_code dot_to_svg(char **io_text, size_t *io_n, psplit_diag *diag) {
  int in[2], out[2];
  pid_t pid;
  if (pipe(in) != 0) return fail(diag, PSPLIT_IO, "no pipe to Graphviz", errno);
  if (pipe(out) != 0) {
    close(in[0]);
    close(in[1]);
    return fail(diag, PSPLIT_IO, "no pipe from Graphviz", errno);
  }
  signal(SIGPIPE, SIG_IGN);
  const int reason = start(in, out, &pid);
  close(in[0]);
  close(out[1]);
  if (reason) {
    close(in[1]);
    close(out[0]);
    if (reason != ENOENT) return fail(diag, PSPLIT_IO, "dot cannot be started", reason);
    return fail(diag, PSPLIT_UNSUPPORTED,
                "SVG is drawn by Graphviz, and there is no program dot; install graphviz, or use "
                "--format dot or html",
                0);
  }
  size_t n = 0;
  char *svg = exchange(*io_text, *io_n, in[1], out[0], &n);
  int status = 0;
  while (waitpid(pid, &status, 0) < 0 && errno == EINTR) continue;
  if (!svg) return fail(diag, PSPLIT_NOMEM, "out of memory", 0);
  if (!WIFEXITED(status) || WEXITSTATUS(status) != 0) {
    free(svg);
    return fail(diag, PSPLIT_IO, "dot failed to draw the graph", 0);
  }
  free(*io_text);
  *io_text = svg;
  *io_n = n;
  return PSPLIT_OK;
}
