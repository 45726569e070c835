/* A line of --prompts: numbers of tokens, or a JSON object that has them as "prompt_ids" and may
 * name files for inputs. */
#ifndef PSPLIT_TOOLS_PROMPT_LINE_H
#define PSPLIT_TOOLS_PROMPT_LINE_H

#include "prompt_ids.h"

/* {"prompt_ids": [1, 2], "max_new_tokens": 8, "input_features": "features.npy"}; `text` ends with
 * NUL. NULL, or what is wrong with it, as in "is not a JSON object". */
const char *prompt_line_parse(const char *text, prompt_ids *out);

#endif
