/* Lossless reductions of an instance. */
#ifndef PSPLIT_PARTITION_REDUCTIONS_H
#define PSPLIT_PARTITION_REDUCTIONS_H

#include "automaton.h"
#include "budget.h"
#include "vec.h"

/* One application of a rule, for checkers: in round `round`, the cluster of node `node` is united
 * with that of `with`. All merges of a round refer to the clusters before the round. */
typedef struct psplit_i_merge {
  uint32_t round, node, with;
  bool by_limit; /* the limit rule; else rule M, by which `node` joins `with` */
} psplit_i_merge;

typedef struct psplit_i_merge_log {
  PSPLIT_VEC(psplit_i_merge) merges;
  uint32_t n_rounds;
  bool failed; /* out of memory: the log is incomplete */
} psplit_i_merge_log;

/* Rebuilds *instance with clusters united that share a stage in some optimal split:
 *
 *   rule M      A cluster joins its only neighbour on one side when the tensor between them costs
 *               at least what the cluster brings along (without an order: any neighbour, when
 *               sender and receiver pay the same).
 *   limit rule  For bottlenecks up to `limit` (INF: unknown): clusters join that share more nets
 *               than a stage with one of them and without the other can afford.
 *
 * `parent[n_nodes]` is union-find over nodes, in and out. Every split of the reduced instance is a
 * split of the problem with the same loads; some best split of the problem is one of the reduced
 * instance (any split <= limit, for the second rule). A spent budget ends the rounds. O(rounds *
 * pins log nodes). Errors: NOMEM, INFEASIBLE. */
PSPLIT_MUST_USE psplit_code psplit_i_reduce(psplit_i_instance *instance,
                                            const psplit_i_automaton *automaton, int64_t limit,
                                            uint32_t *parent, psplit_i_budget *budget,
                                            psplit_diag *diag);

typedef struct psplit_i_reduction_request {
  const psplit_i_automaton *automaton;
  int64_t limit;
  bool keep_first; /* the lexicographically least of the splits up to `limit` that send least
                      (psplit_i_lexicographic) is one of the reduced instance */
  uint32_t
    /* [n_nodes] a split with no load above `limit`, to which the same moves are applied, so that no
     * stage gets slower; may be NULL */
    *stage;
  psplit_i_merge_log *log; /* receives the merges and their reasons; may be NULL */
} psplit_i_reduction_request;

/* The same with all parameters. */
PSPLIT_MUST_USE psplit_code psplit_i_reduce_as(psplit_i_instance *instance,
                                               const psplit_i_reduction_request *request,
                                               uint32_t *parent, psplit_i_budget *budget,
                                               psplit_diag *diag);

#endif
