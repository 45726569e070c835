/* Locales with another decimal point, made by the test itself: whether one is installed does not
 * decide whether anything is tested. */
#ifndef PSPLIT_TESTS_COMMA_LOCALE_H
#define PSPLIT_TESTS_COMMA_LOCALE_H

typedef struct decimal_point {
  const char *name, *bytes;
  unsigned character;
} decimal_point;

/* A comma, and the Arabic one, which has two bytes. */
enum { N_POINTS = 2 };
extern const decimal_point POINTS[N_POINTS];

/* Makes its locale in the working directory, and that of the program for numbers; fails the test
 * where printf() does not use it then. Skips it where the C library has no such locales. */
void use_point(const decimal_point *point);
/* Locale C again. */
void use_plain_point(void);

#endif
