/* Proofs for certificates: that no split is below a bound, by totals, by a minimum cut or by cases,
 * as lines of text. A proof is looked for anew, with the bound that is known as its aim; solvers
 * and bounds need not remember how they came to it. docs/certificates.md has the theorems. */
#ifndef PSPLIT_PARTITION_CERTIFICATE_PROVE_H
#define PSPLIT_PARTITION_CERTIFICATE_PROVE_H

#include <psplit/partition.h>

#include "base.h"
#include "budget.h"
#include "text.h"

/* How messages count in a proof: those of a trunk, as a part of its tensors' times; one at least
 * for each stage that sends any, and for each that receives; these, and what stages pass on. */
typedef enum psplit_i_messages_counted {
  PSPLIT_I_OF_TRUNK,
  PSPLIT_I_AT_LEAST,
  PSPLIT_I_ANY_ROUTE
} psplit_i_messages_counted;

typedef struct psplit_i_prover {
  const psplit_problem *problem; /* as given */
  psplit_problem merged;         /* with devices that are alike as one, and as `counted` */
  psplit_i_messages_counted counted;
  const psplit_partition_options *options;
  psplit_i_budget *budget;
  psplit_i_arena arena;
  psplit_diag *diag;
  psplit_i_text proof; /* lines of the best proof */
  int64_t bound;       /* that it proves */
  psplit_i_messages_counted proved_with;
} psplit_i_prover;

/* Whether stages come in an order that all tensors follow, one on each device, and the slowest
 * counts: only then are there proofs by cases. */
bool psplit_i_is_plain(const psplit_i_prover *prover);

/* The largest bound that can be proved, up to `target` (ns): that one first, with a third of the
 * budget, then smaller ones, which leave fewer splits to rule out. Where it is above prover->bound,
 * that, the proof and how it counts messages are replaced. Errors: NOMEM, those of problems. */
PSPLIT_MUST_USE psplit_code psplit_i_prove_most(psplit_i_prover *prover, int64_t target);

#endif
