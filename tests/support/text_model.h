/* Models from their text (docs/text-form.md). */
#ifndef PSPLIT_TESTS_TEXT_MODEL_H
#define PSPLIT_TESTS_TEXT_MODEL_H

#include <psplit/model_text.h>

/* psplit_model_parse_text() of a text that may have no header: it then stands for
 * <ir_version: 10, opset_import: ["": 18, "local": 1]>. */
PSPLIT_MUST_USE psplit_code parse_model_text(const char *text, size_t n_text,
                                             const psplit_parse_text_options *options,
                                             psplit_diag *diag, void **out_bytes, size_t *out_n);

/* The same into a file; ends the program where the text is wrong or the file cannot be written. */
void write_model_text(const char *path, const char *text);

#endif
