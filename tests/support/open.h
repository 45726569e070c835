/* Opening models that exist in memory only. */
#ifndef PSPLIT_TESTS_OPEN_H
#define PSPLIT_TESTS_OPEN_H

#include "build.h"
#include "check.h"

/* An unnamed file in memory that holds the bytes; the caller closes it. */
int memory_file(const void *bytes, size_t n);

/* Opens `bytes` and checks every invariant of the model; ends the program where it cannot. Both
 * functions free `bytes`. */
psplit_model *opened(pb *bytes);

/* Requires that opening fails with `code` and a message that contains `part`. */
void refused(pb *bytes, psplit_code code, const char *part);

/* The same of a model that is written as text (docs/text-form.md; text_model.h says what stands for
 * a header that is left out). */
pb bytes_of_text(const char *text);
psplit_model *opened_text(const char *text);
void refused_text(const char *text, psplit_code code, const char *part);

#endif
