/* Proofs for certificates that no split is below a bound, as lines of text: by totals, by a minimum
 * cut or by cases. A proof is searched for from scratch with the known bound as its target, so
 * solvers and bounds need not record how they found it. docs/certificates.md states the
 * theorems. */
#ifndef PSPLIT_PARTITION_CERTIFICATE_PROVE_H
#define PSPLIT_PARTITION_CERTIFICATE_PROVE_H

#include <psplit/partition.h>

#include "base.h"
#include "budget.h"
#include "text.h"

/* How a proof counts messages: those of a trunk, as part of the times of its tensors; at least one
 * for each stage that sends any and one for each that receives any; or these, and tensors that
 * stages pass on. */
typedef enum psplit_i_messages_counted {
  PSPLIT_I_OF_TRUNK,
  PSPLIT_I_AT_LEAST,
  PSPLIT_I_ANY_ROUTE
} psplit_i_messages_counted;

typedef struct psplit_i_prover {
  const psplit_problem *problem; /* as given */
  /* devices that are alike are one entry, and messages are as in `counted` */
  psplit_problem merged;
  psplit_i_messages_counted counted;
  const psplit_partition_options *options;
  psplit_i_budget *budget;
  psplit_i_arena arena;
  psplit_diag *diag;
  psplit_i_text proof; /* lines of the proof of the largest bound */
  int64_t bound;       /* the bound that it proves */
  psplit_i_messages_counted proved_with;
} psplit_i_prover;

/* Whether stages have an order that all tensors follow, each stage has a device of its own, and the
 * objective is the slowest stage. Only then are there proofs by cases. */
bool psplit_i_is_plain(const psplit_i_prover *prover);

/* Proves the largest bound up to `target` (ns) that it can: first `target` itself, with a third of
 * the budget, then smaller bounds, which leave fewer splits to exclude. If the result exceeds
 * prover->bound, replaces the bound, the proof and how it counts messages. Errors: NOMEM, and those
 * of problems. */
PSPLIT_MUST_USE psplit_code psplit_i_prove_most(psplit_i_prover *prover, int64_t target);

#endif
