/* A dict of options, as Model.plan() of __init__.py makes it, as those of a planner. */
#ifndef PSPLIT_PYTHON_PLAN_OPTIONS_H
#define PSPLIT_PYTHON_PLAN_OPTIONS_H

#include "support.h"

#include <psplit/policy.h>

typedef struct plan_options {
  psplit_planner_options planner; /* points into the rest */
  PyObject *given;                /* the dict: its texts are pointed to */
  const char *passes;             /* NULL: the default ones */
  psplit_devices *devices;
  psplit_cost_table **costs;
  size_t n_costs;
  psplit_dim_value *dims;
  psplit_input_size *shapes;
  int64_t *sizes; /* of all shapes */
  psplit_planner_state *states;
  const char **pins, **together;
  psplit_working_point decode, prefill;
  psplit_policy *policy;
  psplit_proposer *proposer;
} plan_options;

/* Zero before; to be freed in any case, once no planner has them. False with an exception. */
bool plan_options_take(PyObject *dict, plan_options *out);
void plan_options_free(plan_options *options);

#endif
