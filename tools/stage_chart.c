#include "stage_chart.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include "cli.h"

enum { LEAST_BAR = 16, MOST_BAR = 96, TIME_WIDTH = 11 };

typedef struct chart {
  int n_columns; /* of the longest bar */
  int name_width;
  int64_t most_ns;
  bool colored, blocks;
} chart;

/* NULL where it is not set, or empty. */
static const char *setting(const char *name) {
  const char *value = getenv(name);
  return value && *value ? value : NULL;
}

/* POSIX: the first of these that is set and not empty. */
static bool writes_utf8(void) {
  const char *const names[] = {"LC_ALL", "LC_CTYPE", "LANG"};
  const char *value = NULL;
  for (int i = 0; i < 3 && !value; i++) value = setting(names[i]);
  return value && (strstr(value, "UTF-8") || strstr(value, "utf8") || strstr(value, "UTF8") ||
                   strstr(value, "utf-8"));
}

static int terminal_width(void) {
  struct winsize size;
  if (ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) == 0 && size.ws_col >= 20) return size.ws_col;
  return 80;
}

/* The times of a stage over the devices that compute it in turn. */
static psplit_plan_stage turn_of(const psplit_plan_stage *stage, bool overlap) {
  psplit_plan_stage turn = *stage;
  turn.recv_ns /= stage->n_replicas;
  turn.send_ns /= stage->n_replicas;
  turn.load_ns = stage->turn_ns;
  if (!overlap) return turn;
  /* All at once: the bar is of what takes longest. */
  const bool computes = stage->compute_ns == stage->load_ns;
  if (computes || stage->recv_ns < stage->load_ns) turn.recv_ns = 0;
  if (computes || stage->send_ns < stage->load_ns || turn.recv_ns) turn.send_ns = 0;
  return turn;
}

static bool prepare(const psplit_plan *plan, stage_chart_color color, chart *out) {
  const bool terminal = isatty(STDOUT_FILENO) == 1;
  if ((!terminal && color != STAGE_CHART_ALWAYS) || plan->n_stages == 0) return false;
  const char *term = getenv("TERM");
  out->colored =
    color == STAGE_CHART_ALWAYS ||
    (color == STAGE_CHART_AUTO && !setting("NO_COLOR") && term && strcmp(term, "dumb") != 0);
  out->blocks = writes_utf8();
  out->name_width = 0;
  out->most_ns = 1;
  for (uint32_t s = 0; s < plan->n_stages; s++) {
    if (plan->stages[s].turn_ns > out->most_ns) out->most_ns = plan->stages[s].turn_ns;
    out->name_width = cli_width(out->name_width, plan->stages[s].device);
  }
  const int left = terminal_width() - 8 - out->name_width - TIME_WIDTH;
  out->n_columns = left < LEAST_BAR ? LEAST_BAR : left > MOST_BAR ? MOST_BAR : left;
  return true;
}

static int column_of(const chart *c, int64_t ns) {
  return (int)((double)ns / (double)c->most_ns * c->n_columns + 0.5);
}

/* Columns of one kind; what is there at all has one, as long as the bar has room. */
static int put_part(const chart *c, int from, int to, const char *color, char letter) {
  if (to <= from) return from;
  if (c->colored) printf("\033[%sm", color);
  for (int i = from; i < to; i++) {
    if (c->blocks)
      fputs(letter == '#' ? "\xe2\x96\x88" : "\xe2\x96\x92", stdout);
    else
      putchar(letter);
  }
  if (c->colored) fputs("\033[0m", stdout);
  return to;
}

static void put_bar(const chart *c, const psplit_plan_stage *stage, bool slowest) {
  char time[CLI_TEXT];
  int end = column_of(c, stage->load_ns);
  if (end < 1 && stage->load_ns > 0) end = 1;
  int recv = column_of(c, stage->recv_ns);
  int send = end - column_of(c, stage->send_ns);
  if (recv == 0 && stage->recv_ns > 0 && end > 2) recv = 1;
  if (send == end && stage->send_ns > 0 && end > recv + 1) send = end - 1;
  int at = put_part(c, 0, recv, "33", '<');
  at = put_part(c, at, send, slowest ? "1;36" : "36", '#');
  at = put_part(c, at, end, "35", '>');
  printf("%*s %s%s%s\n", c->n_columns - at, "", c->colored && slowest ? "\033[1m" : "",
         cli_time(stage->load_ns, time), c->colored && slowest ? "\033[0m" : "");
}

void print_stage_chart(const psplit_plan *plan, stage_chart_color color) {
  chart c;
  char name[CLI_NAME], time[CLI_TEXT];
  if (!prepare(plan, color, &c)) return;
  putchar('\n');
  for (uint32_t s = 0; s < plan->n_stages; s++) {
    const psplit_plan_stage turn = turn_of(&plan->stages[s], plan->overlap);
    cli_printable(turn.device, name, sizeof name);
    printf("%5" PRIu32 "  %-*s ", s, c.name_width, name);
    put_bar(&c, &turn, turn.load_ns >= plan->bottleneck_ns);
  }
  const int at = column_of(&c, plan->lower_bound_ns);
  if (plan->objective[0] != 't' || at < 1 || at > c.n_columns) return;
  cli_time(plan->lower_bound_ns, time);
  char line[CLI_TEXT + 16];
  snprintf(line, sizeof line, "lower bound %s", time);
  const int words = (int)strlen(line), left = 8 + c.name_width + at - 1;
  if (left > words)
    printf("%*s%s |\n", left - words - 1, "", line);
  else
    printf("%*s| %s\n", left, "", line);
}
