/* Values of passes' options, from text. */
#include "pipeline.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "number.h"

bool psplit_i_option_parse(const psplit_i_option *option, const char *text,
                           psplit_i_option_value *out_value) {
  char *end;
  switch (option->type) {
    case PSPLIT_I_OPTION_INT: {
      errno = 0;
      const long long integer = strtoll(text, &end, 10);
      if (!*text || *end || errno || (double)integer < option->low ||
          (double)integer > option->high)
        return false;
      out_value->integer = integer;
      return true;
    }
    case PSPLIT_I_OPTION_REAL: {
      const double real = psplit_i_number_parse(text, &end);
      if (!*text || *end || !(real >= option->low && real <= option->high)) return false;
      out_value->real = real;
      return true;
    }
    case PSPLIT_I_OPTION_TEXT:
      out_value->text = text;
      return *text || !*option->fallback; /* nothing is what is not given, where that is nothing */
    case PSPLIT_I_OPTION_BOOL:
      out_value->boolean = strcmp(text, "true") == 0 || strcmp(text, "1") == 0;
      return out_value->boolean || strcmp(text, "false") == 0 || strcmp(text, "0") == 0;
  }
  return false;
}

void psplit_i_pass_defaults(const psplit_i_pass *pass, psplit_i_option_value *out_values) {
  for (size_t o = 0; o < pass->n_options; o++)
    psplit_i_option_parse(&pass->options[o], pass->options[o].fallback, &out_values[o]);
}
