#include "units.h"

#include <stdio.h>

#include "number.h"

static const char *scaled(double value, double step, const char *const *units, size_t n,
                          char *out) {
  size_t unit = 0;
  for (; value >= 999.5 && unit + 1 < n; unit++) value /= step;
  const int decimals = unit == 0 || value >= 99.95 ? 0 : value >= 9.995 ? 1 : 2;
  const psplit_i_plain_numbers numbers = psplit_i_plain_numbers_begin();
  snprintf(out, PSPLIT_I_UNIT_BYTES, "%.*f %s", decimals, value, units[unit]);
  psplit_i_plain_numbers_end(numbers);
  return out;
}

const char *psplit_i_in_bytes(uint64_t bytes, char *out) {
  static const char *const units[] = {"B", "KiB", "MiB", "GiB", "TiB", "PiB", "EiB"};
  return scaled((double)bytes, 1024, units, sizeof units / sizeof *units, out);
}

const char *psplit_i_in_seconds(int64_t ns, char *out) {
  static const char *const units[] = {"ns", "us", "ms", "s"};
  return scaled((double)ns, 1000, units, sizeof units / sizeof *units, out);
}
