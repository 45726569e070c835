/* A model whose nodes take what costs files say; the test fails where they are refused. */
#ifndef PSPLIT_TESTS_COSTING_H
#define PSPLIT_TESTS_COSTING_H

#include "cost_table.h"
#include "planner.h"

/* A residual block: two convolutions, a sum, activations, a pool without a name. */
psplit_model *residual_block(void);
enum { CONV1, RELU1, CONV2, ADD, RELU2, POOL, N_NODES };

#define KERNEL(name, op, ts, dur)                                                           \
  "{\"cat\": \"Node\", \"name\": \"" name "_kernel_time\", \"ts\": " #ts ", \"dur\": " #dur \
  ", \"tid\": 1, \"args\": {\"op_name\": \"" op "\", \"node_index\": \"" #ts "\"}}"

psplit_cost_table *parsed_costs(const char *text);

/* A planner over a model whose costs come from the texts. */
typedef struct costing {
  psplit_cost_table *tables[2];
  psplit_planner *planner;
  int64_t ns[N_NODES];
} costing;

/* Either text may be NULL. costing_end() frees what there is, also where this fails. */
PSPLIT_MUST_USE psplit_code costing_start(costing *b, psplit_model *model, const char *one,
                                          const char *two, psplit_diag *diag);
costing costed(psplit_model *model, const char *one, const char *two);
void costing_end(costing *b);

#endif
