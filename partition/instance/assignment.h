/* A contiguous assignment of clusters to stages, and its exact value. */
#ifndef PSPLIT_PARTITION_ASSIGNMENT_H
#define PSPLIT_PARTITION_ASSIGNMENT_H

#include "automaton.h"

typedef struct psplit_i_assignment {
  /* bottleneck, or the sum of loads if automaton->adds_up; and the sum of communication. INF: no
   * assignment */
  int64_t value, comm;
  uint32_t *stage;    /* [n clusters] */
  uint32_t *device;   /* [n_stages] type */
  uint32_t *replicas; /* [n_stages] */
  uint32_t *next_net; /* [n_nets] with messages: scratch of evaluation */
  uint8_t *hops;      /* [n_stages^2] with messages and missing links: scratch of evaluation */
} psplit_i_assignment;

/* No assignment yet: the value is INF. Arrays live in `arena`. Errors: NOMEM. */
PSPLIT_MUST_USE psplit_code psplit_i_assignment_init(psplit_i_assignment *assignment,
                                                     const psplit_i_instance *instance,
                                                     psplit_i_arena *arena);
/* Both belong to this instance. O(clusters). */
void psplit_i_assignment_copy(psplit_i_assignment *to, const psplit_i_assignment *from,
                              const psplit_i_instance *instance);
/* Whether a is strictly better: by value, then communication, then stages, lexicographically. */
bool psplit_i_assignment_better(const psplit_i_assignment *a, const psplit_i_assignment *b,
                                const psplit_i_instance *instance);
/* Computes value and comm from the stages, exactly, with every receiver and relay; INF if a tensor
 * cannot reach a stage. The first 3 * n_stages entries of scratch[n_stages * 5] become the
 * computation, receiving and sending of each stage. O(pins). */
void psplit_i_assignment_evaluate(psplit_i_assignment *assignment,
                                  const psplit_i_instance *instance,
                                  const psplit_i_automaton *automaton, int64_t *scratch);
/* The stage with the largest load, the first of several; scratch as evaluation leaves it. */
uint32_t psplit_i_slowest_stage(const psplit_i_instance *instance, const int64_t *scratch);
/* times_sent[e]: number of stages that receive net e, at least 1. mark[n_stages] is scratch. */
void psplit_i_assignment_times_sent(const psplit_i_assignment *assignment,
                                    const psplit_i_instance *instance, uint32_t *times_sent,
                                    uint32_t *mark);

#endif
