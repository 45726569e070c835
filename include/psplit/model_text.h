/* Models as text: ONNX's textual syntax with extensions (docs/text-form.md). */
#ifndef PSPLIT_MODEL_TEXT_H
#define PSPLIT_MODEL_TEXT_H

#include <psplit/model.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef struct psplit_parse_text_options {
  size_t struct_size;    /* set by psplit_parse_text_options_init() */
  const char *file_name; /* for messages; may be NULL */
  bool fill_left_out;    /* invent the data that printing omitted; otherwise an error */
} psplit_parse_text_options;

/* The defaults: everything 0 or NULL. */
static inline void psplit_parse_text_options_init(psplit_parse_text_options *options) {
  memset(options, 0, sizeof *options);
  options->struct_size = sizeof *options;
}

/* Parses a model from text into the bytes of an ONNX file: *out_bytes is to be freed by the caller.
 * Only the syntax is checked; psplit_model_open() checks the model. `options` may be NULL. Errors:
 * MALFORMED (the message starts with line:column), LIMIT (nesting), NOMEM; outputs are untouched
 * then. O(text). Reentrant. */
PSPLIT_API PSPLIT_MUST_USE psplit_code
psplit_model_parse_text(const char *text, size_t n_text, const psplit_parse_text_options *options,
                        psplit_diag *diag, void **out_bytes, size_t *out_n);

typedef struct psplit_print_text_options {
  size_t struct_size; /* set by psplit_print_text_options_init() */
  /* Data of larger tensors is omitted ({...}); UINT64_MAX omits none. */
  uint64_t max_data_bytes;
} psplit_print_text_options;

/* The defaults: data over 1 KiB is omitted. */
static inline void psplit_print_text_options_init(psplit_print_text_options *options) {
  memset(options, 0, sizeof *options);
  options->struct_size = sizeof *options;
  options->max_data_bytes = 1024;
}

/* Prints an open model as NUL-terminated text; *out_text is to be freed by the caller. Parsing it
 * gives the same model if no data was omitted. `options` may be NULL: data over 1 KiB is omitted.
 * Errors: IO, UNSUPPORTED (a tensor whose data is scattered in the file), NOMEM; outputs are
 * untouched then. O(structure, and printed data). */
PSPLIT_API PSPLIT_MUST_USE psplit_code
psplit_model_print_text(const psplit_model *model, const psplit_print_text_options *options,
                        psplit_diag *diag, char **out_text, size_t *out_n);

#ifdef __cplusplus
}
#endif
#endif
