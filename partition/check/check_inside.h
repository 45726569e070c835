/* The parts of the independent checker: constraints (check.c), what stages send and receive
 * (check_transfers.c), what of it is forward (check_directions.c), and when a run has ended
 * (check_latency.c). */
#ifndef PSPLIT_PARTITION_CHECK_INSIDE_H
#define PSPLIT_PARTITION_CHECK_INSIDE_H

#include "problem.h"

typedef struct psplit_i_check {
  const psplit_problem *p;
  const psplit_partition_options *options;
  const uint32_t *stage, *chunk;
  psplit_solution *out;
  psplit_diag *diag;
  uint32_t *mark; /* [n_stages] */
  bool *hops;     /* [n_stages^2] where tensors are passed on and latency counts; or NULL */
  bool *sent;     /* [n_stages^2] where tensors are passed on and messages count; or NULL */
} psplit_i_check;

/* Whether a node is of the backward pass. */
static inline bool psplit_i_check_is_backward(const psplit_i_check *c, uint32_t v) {
  return c->p->node_flags && (c->p->node_flags[v] & PSPLIT_NODE_BACKWARD);
}

/* Adds to the stages' send_ns and recv_ns what tensors and their messages take. Errors: NOMEM,
 * MISMATCH (no way leads from a stage to another). */
PSPLIT_MUST_USE psplit_code psplit_i_check_add_transfers(psplit_i_check *c);

/* When all stages have ended, ns, by their loads: of one micro-batch through all stages, and of
 * calls. Errors: NOMEM; of calls MISMATCH (devices wait for each other). */
PSPLIT_MUST_USE psplit_code psplit_i_check_latency(psplit_i_check *c, int64_t *out_ns);
PSPLIT_MUST_USE psplit_code psplit_i_check_call_latency(psplit_i_check *c, int64_t *out_ns);

/* The largest forward and the largest backward load, added up; sets the stages' own. For what
 * fill-drain takes: direct links of one kind, no messages, no copies. */
int64_t psplit_i_check_directions(psplit_i_check *c);

#endif
