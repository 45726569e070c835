#include "texts.h"

#include <inttypes.h>
#include <psplit/base.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

const char *cli_rank(void) {
  const char *rank = getenv("PMI_RANK");
  return rank ? rank : getenv("OMPI_COMM_WORLD_RANK");
}

void *cli_grow(void *items, size_t n, size_t size) {
  if (n & (n - 1)) return items; /* capacities are powers of two */
  return reallocarray(items, n ? 2 * n : 1, size);
}

const char *cli_counted(uint64_t n, const char *what, char *buffer) {
  const size_t length = strlen(what);
  const bool hisses = length > 2 && strcmp(what + length - 2, "ch") == 0;
  snprintf(buffer, CLI_COUNT, "%" PRIu64 " %s%s", n, what, n == 1 ? "" : hisses ? "es" : "s");
  return buffer;
}

/* Three digits that matter, in the largest unit of which there is one. */
static const char *in_units(double value, double step, const char *const *units, size_t n_units,
                            char *buffer) {
  size_t unit = 0;
  for (; value >= 999.5 && unit + 1 < n_units; unit++) value /= step;
  snprintf(buffer, CLI_TEXT, "%.*f %s",
           unit == 0 || value >= 99.95 ? 0
           : value >= 9.995            ? 1
                                       : 2,
           value, units[unit]);
  return buffer;
}

const char *cli_bytes(uint64_t bytes, char *buffer) {
  static const char *const units[] = {"B", "KiB", "MiB", "GiB", "TiB", "PiB", "EiB"};
  return in_units((double)bytes, 1024, units, sizeof units / sizeof *units, buffer);
}

const char *cli_time(int64_t ns, char *buffer) {
  static const char *const units[] = {"ns", "us", "ms", "s"};
  return in_units((double)ns, 1000, units, sizeof units / sizeof *units, buffer);
}

const char *cli_printable(const char *text, char *buffer, size_t bytes) {
  snprintf(buffer, bytes, "%s", text);
  psplit_make_printable(buffer);
  return buffer;
}

int cli_width(int width, const char *text) {
  const size_t n = strlen(text);
  return n < (size_t)width ? width : n < CLI_NAME ? (int)n : CLI_NAME - 1;
}

double cli_now_s(void) {
  struct timespec now;
  clock_gettime(CLOCK_MONOTONIC, &now);
  return (double)now.tv_sec + 1e-9 * (double)now.tv_nsec;
}
