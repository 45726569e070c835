/* The text form of a model, docs/text-form.md: ONNX's textual syntax with what it lacks, so that it
 * can say all that a ModelProto can, and parse(print(model)) is the model. */
#ifndef PSPLIT_ONNX_TEXT_FORM_H
#define PSPLIT_ONNX_TEXT_FORM_H

#include <psplit/model_text.h>

#include "base.h"

struct Onnx__ModelProto;

/* Parses into messages that live in `arena`, strings and payloads too. `options` may be NULL.
 * Errors: MALFORMED (line:column and what was expected), LIMIT (nesting), NOMEM. O(text). */
PSPLIT_MUST_USE psplit_code psplit_i_text_parse(const char *text, size_t n_text,
                                                const psplit_parse_text_options *options,
                                                psplit_i_arena *arena, psplit_diag *diag,
                                                struct Onnx__ModelProto **out_model);

/* Reads `bytes` bytes at `offset` of the file that payload views of the model speak of. */
typedef psplit_code (*psplit_i_payload_reader)(void *user, uint64_t offset, void *out, size_t bytes,
                                               psplit_diag *diag);

/* Appends the text of a model to `out`. `reader` is not called where no tensor has a payload view
 * that is printed. Errors: UNSUPPORTED (a tensor's data in pieces), NOMEM, those of `reader`. */
PSPLIT_MUST_USE psplit_code psplit_i_text_print(const struct Onnx__ModelProto *model,
                                                const psplit_print_text_options *options,
                                                psplit_i_payload_reader reader, void *user,
                                                psplit_diag *diag, psplit_i_text *out);

#endif
