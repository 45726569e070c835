/* --schedule: in which schedule, and in how many micro-batches, a policy runs a batch through the
 * stages of a plan. */
#ifndef PSPLIT_TOOLS_CHOOSE_H
#define PSPLIT_TOOLS_CHOOSE_H

#include <psplit/policy.h>
#include <psplit/training.h>

#include "cli.h"

typedef struct choose_options {
  uint32_t n_samples; /* 0: not asked for */
  double fixed;       /* of each piece, in the plan's unit of time */
} choose_options;

/* Row of an option table; `unit` is what times are in. */
/* clang-format off */
#define CHOOSE_OPTION(id, unit) \
  {(id), "schedule", "N[,fixed=T]", \
   "with --policy: print the schedule and micro-batches it chooses for N samples; each " \
   "micro-batch takes T " unit " more than its samples"}
/* clang-format on */

/* Takes the option's argument; false after an error line. */
bool choose_parse(const cli *program, const char *text, choose_options *out);

/* The line, or with `json` an object, for the split of a problem, whose empty stages count for
 * nothing. Errors: those of psplit_policy_choose. */
PSPLIT_MUST_USE psplit_code choose_print_problem(const choose_options *options,
                                                 const psplit_policy *policy,
                                                 const psplit_problem *problem,
                                                 const psplit_solution *solution, bool json,
                                                 FILE *out, psplit_diag *diag);
/* The line for the plan of a model: a step of training (NULL: inferences). `devices` NULL: the
 * preset. */
PSPLIT_MUST_USE psplit_code choose_print_plan(
  const choose_options *options, const psplit_policy *policy, const psplit_training *training,
  const psplit_plan *plan, const psplit_devices *devices, FILE *out, psplit_diag *diag);

#endif
