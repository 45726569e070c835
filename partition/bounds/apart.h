/* The instance under a limit T on loads. Consumers of a tensor that no stage within T can hold
 * together each receive the tensor in a stage of their own, so the net is counted once for each. */
#ifndef PSPLIT_PARTITION_APART_H
#define PSPLIT_PARTITION_APART_H

#include "automaton.h"
#include "budget.h"
#include "closure.h"

/* The clusters are those of the original instance, whose arrays it shares. A split with all loads
 * <= limit has no larger loads here. Where links differ by pair, the cheapest link counts. */
typedef struct psplit_i_apart {
  psplit_i_instance instance;
  psplit_i_automaton automaton; /* unset if `impossible`, or if not `changed` */
  bool changed;                 /* some tensor is certainly sent to more than one stage */
  bool impossible;              /* some cluster does not fit the limit, so there is no such split */
  psplit_i_arena arena;
} psplit_i_apart;

/* For features that BOUND_APART takes. Errors: NOMEM. */
PSPLIT_MUST_USE psplit_code psplit_i_apart_make(const psplit_i_instance *instance,
                                                const psplit_i_automaton *automaton,
                                                const psplit_i_closure *closure,
                                                const psplit_partition_options *options,
                                                int64_t limit, psplit_i_budget *budget,
                                                psplit_i_apart *out_apart);
void psplit_i_apart_fini(psplit_i_apart *apart);

#endif
