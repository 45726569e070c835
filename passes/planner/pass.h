/* A pass: its name, its options, the facts it needs and keeps, and the function that runs it. */
#ifndef PSPLIT_PASSES_PASS_H
#define PSPLIT_PASSES_PASS_H

#include "planner.h"

typedef enum psplit_i_option_type {
  PSPLIT_I_OPTION_INT,
  PSPLIT_I_OPTION_REAL,
  PSPLIT_I_OPTION_TEXT,
  PSPLIT_I_OPTION_BOOL
} psplit_i_option_type;

typedef struct psplit_i_option {
  const char *name;
  psplit_i_option_type type;
  const char *fallback; /* default, as text */
  double low, high;     /* range of numbers */
  const char *help;
} psplit_i_option;

typedef union psplit_i_option_value {
  int64_t integer;
  double real;
  const char *text;
  bool boolean;
} psplit_i_option_value;

typedef struct psplit_i_pass {
  const char *name;
  const char *help;
  unsigned needs; /* facts */
  unsigned keeps; /* facts that remain valid after it, including those it makes */
  unsigned makes;
  const psplit_i_option *options;
  size_t n_options;
  psplit_code (*run)(psplit_planner *planner, const psplit_i_option_value *values,
                     psplit_diag *diag);
  const struct psplit_plugin_pass *plugin; /* the plugin's pass that this one wraps, or NULL */
} psplit_i_pass;

#endif
