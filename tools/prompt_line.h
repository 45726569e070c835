/* A line of --prompts: numbers of tokens, or a JSON object that has them as "prompt_ids" and may
 * name files for inputs. */
#ifndef PSPLIT_TOOLS_PROMPT_LINE_H
#define PSPLIT_TOOLS_PROMPT_LINE_H

#include "prompt_ids.h"

/* {"prompt_ids": [1, 2], "max_new_tokens": 8, "input_features": "features.npy"}; a NUL stands
 * behind the n bytes of `text`. Errors, which say what is wrong with the line, as in "is no JSON
 * object": MALFORMED, NOMEM. */
PSPLIT_MUST_USE psplit_code prompt_line_parse(const char *text, size_t n, psplit_diag *diag,
                                              prompt_ids *out);

#endif
