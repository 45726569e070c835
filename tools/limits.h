/* --limits: what no schedule, and no method of training, beats; for plans of any kind. */
#ifndef PSPLIT_TOOLS_LIMITS_H
#define PSPLIT_TOOLS_LIMITS_H

#include <psplit/limits.h>
#include <psplit/training.h>

#include "cli.h"

typedef struct limits_options {
  bool wanted;
  uint32_t n_micro_batches;
  bool has_loss; /* of a class: the fields below count */
  psplit_loss_class loss;
  double dimension; /* 0: not said */
  bool automatic_dimension;
  double accuracy, condition;
} limits_options;

/* Row of an option table. */
/* clang-format off */
#define LIMITS_OPTION(id, dim) \
  {(id), "limits", "LIST", \
   "print lower bounds for any schedule: M[,loss=nonsmooth|smooth|strongly-convex|nonconvex]" \
   "[,dim=" dim "][,accuracy=E][,condition=C], for M micro-batches"}
/* clang-format on */

/* Takes the option's argument; false after an error line. `counts_weights`: dim=auto is known. */
bool limits_parse(const cli *program, const char *text, bool counts_weights, limits_options *out);

/* What is to be printed. */
typedef struct limits_report {
  const limits_options *options;
  const psplit_schedule_input *input; /* times in ticks; the kind is what is compared */
  double ticks_per_unit;              /* 1e9 with times in ns */
  const char *unit;                   /* " s", or "" for the units of a problem */
  FILE *out;
} limits_report;

/* The lines, or with `json` an object, without a newline. Errors: those of psplit/limits.h. */
PSPLIT_MUST_USE psplit_code limits_print(const limits_report *report, bool json, psplit_diag *diag);

/* The lines for a plan of a model: a step of training (NULL: a stream of inferences). */
PSPLIT_MUST_USE psplit_code limits_print_plan(const limits_options *options,
                                              const psplit_training *training,
                                              const psplit_plan *plan, FILE *out,
                                              psplit_diag *diag);

#endif
