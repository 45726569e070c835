/* How exporters call a state: what a model gives as an output and takes as an input the next time,
 * such as a cache of keys and values. The output's name is the input's with one word changed, which
 * has no letter and no digit before it or behind it:
 *
 *   past_key_values.0.key       present.0.key            Optimum, ONNX Runtime GenAI
 *   past_key_values.0.value     present_key_values.0.value
 *   past_0, past_key_self_0     present_0, present_key_self_0    ONNX Runtime's transformers
 *   past_conv.0, past_ssm.0     present_conv.0, present_ssm.0    convolutions, state spaces
 *
 * or, where the input's name speaks of a cache or a state, it is marked as the newer one:
 *
 *   cache_in, state_input_0     cache_out, state_output_0        streaming models
 *   cached_key_0                new_cached_key_0                 zipformers
 *   conv_cache                  conv_cache_out, conv_cache_next, conv_cache_new
 *   state                       stateN                           Silero */
#ifndef PSPLIT_BASE_STATE_NAMES_H
#define PSPLIT_BASE_STATE_NAMES_H

#include <stdbool.h>
#include <stddef.h>

#include "text.h"

enum { PSPLIT_I_STATE_WAYS = 9 };

/* Writes the name of the output that corresponds to `input` to *out, replacing its contents; `way`
 * counts from 0 to PSPLIT_I_STATE_WAYS - 1, the most likely first. False: not applicable.
 * out->failed: out of memory. */
bool psplit_i_state_output(const char *input, size_t way, psplit_i_text *out);

#endif
