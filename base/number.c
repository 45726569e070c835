#include "number.h"

#include <stdio.h>
#include <stdlib.h>

psplit_i_plain_numbers psplit_i_plain_numbers_begin(void) {
  psplit_i_plain_numbers numbers = {.plain = newlocale(LC_ALL_MASK, "C", (locale_t)0)};
  if (numbers.plain) numbers.before = uselocale(numbers.plain);
  return numbers;
}

void psplit_i_plain_numbers_end(psplit_i_plain_numbers numbers) {
  if (!numbers.plain) return;
  uselocale(numbers.before);
  freelocale(numbers.plain);
}

double psplit_i_number_parse(const char *text, char **out_end) {
  const psplit_i_plain_numbers numbers = psplit_i_plain_numbers_begin();
  const double value = strtod(text, out_end);
  psplit_i_plain_numbers_end(numbers);
  return value;
}

void psplit_i_number_print(double value, int fewest, int most, char out[PSPLIT_I_NUMBER_BYTES]) {
  const psplit_i_plain_numbers numbers = psplit_i_plain_numbers_begin();
  for (int digits = fewest; digits <= most; digits++) {
    snprintf(out, PSPLIT_I_NUMBER_BYTES, "%.*g", digits, value);
    if (strtod(out, NULL) == value) break;
  }
  psplit_i_plain_numbers_end(numbers);
}
