/* Numbers as files have them, whatever the locale of the program that this library is in: one that
 * writes 0,5 would neither read 0.5 nor write it. A locale is of the whole program, and its own to
 * choose, so it is set aside for one thread and for as long as a number takes. */
#ifndef PSPLIT_BASE_NUMBER_H
#define PSPLIT_BASE_NUMBER_H

#include <locale.h>

/* Between these two the C library's functions for text do on this thread what they do in locale C.
 * A pair may stand inside another. That takes no memory, and cannot fail, where a C library has
 * locale C built in, as glibc and musl do; elsewhere the program's locale may stay. */
typedef struct psplit_i_plain_numbers {
  locale_t plain, before;
} psplit_i_plain_numbers;
psplit_i_plain_numbers psplit_i_plain_numbers_begin(void);
void psplit_i_plain_numbers_end(psplit_i_plain_numbers numbers);

/* strtod() in locale C. */
double psplit_i_number_parse(const char *text, char **out_end);

/* `value` in the least number of significant digits, from `fewest` to `most`, that reads back as
 * it; in `most` if none does. Ends with NUL. */
enum { PSPLIT_I_NUMBER_BYTES = 32, PSPLIT_I_MOST_DIGITS = 17 };
void psplit_i_number_print(double value, int fewest, int most, char out[PSPLIT_I_NUMBER_BYTES]);

#endif
