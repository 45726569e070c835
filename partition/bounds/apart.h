/* The instance under a limit T on loads. Consumers of a tensor that no stage within T can hold
 * together each receive the tensor in a stage of their own, so the net is counted once for each. */
#ifndef PSPLIT_PARTITION_APART_H
#define PSPLIT_PARTITION_APART_H

#include "automaton.h"
#include "budget.h"
#include "closure.h"

/* Clusters are those of the instance it was made from, whose arrays it shares. A split with every
 * load <= limit there has no larger load here; the least over links between pairs counts. */
typedef struct psplit_i_apart {
  psplit_i_instance instance;
  psplit_i_automaton automaton; /* not there where `impossible` or not `changed` */
  bool changed;                 /* some tensor is sent to more than one stage for certain */
  bool impossible;              /* some cluster does not fit the limit: there is no such split */
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
