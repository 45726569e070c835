/* Locale-independent numbers: a program's locale may use a decimal comma. A locale belongs to the
 * whole program, so it is replaced for one thread while a number is read or written. */
#ifndef PSPLIT_BASE_NUMBER_H
#define PSPLIT_BASE_NUMBER_H

#include <locale.h>

/* Between these calls, the C library's text functions on this thread use the C locale. Pairs may be
 * nested. This takes no memory and cannot fail if the C library has a built-in C locale, as glibc
 * and musl do; otherwise the program's locale may remain in effect. */
typedef struct psplit_i_plain_numbers {
  locale_t plain, before;
} psplit_i_plain_numbers;
psplit_i_plain_numbers psplit_i_plain_numbers_begin(void);
void psplit_i_plain_numbers_end(psplit_i_plain_numbers numbers);

/* strtod() in locale C. */
double psplit_i_number_parse(const char *text, char **out_end);

/* Prints `value` with the least number of significant digits, from `fewest` to `most`, that reads
 * back as the same value; with `most` if there is none. NUL-terminated. */
enum { PSPLIT_I_NUMBER_BYTES = 32, PSPLIT_I_MOST_DIGITS = 17 };
void psplit_i_number_print(double value, int fewest, int most, char out[PSPLIT_I_NUMBER_BYTES]);

#endif
