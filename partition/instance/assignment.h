/* A contiguous assignment of items to stages, and its exact value. */
#ifndef PSPLIT_PARTITION_ASSIGNMENT_H
#define PSPLIT_PARTITION_ASSIGNMENT_H

#include "automaton.h"

/* A contiguous solution over items. */
typedef struct psplit_cut {
  int64_t value, comm; /* bottleneck, or sum of loads where the machine says so; sum of
                          communication. INF: none */
  uint32_t *stage;     /* [n items] */
  uint32_t *device;    /* [n_stages] type */
  uint32_t *replicas;  /* [n_stages] */
} psplit_cut;

PSPLIT_MUST_USE psplit_code psplit_i_cut_init(psplit_cut *cut, const psplit_core *core,
                                              psplit_arena *arena);
void psplit_i_cut_copy(psplit_cut *to, const psplit_cut *from, const psplit_core *core);
/* True when a is strictly better: by value, communication, then stages, lexicographically. */
bool psplit_i_cut_better(const psplit_cut *a, const psplit_cut *b, const psplit_core *core);
/* Sets value and comm from the stages: exact, with every receiver and
 * relay counted; INF where a tensor has no way. O(pins).
 * scratch[n_stages * 5]. */
void psplit_i_cut_evaluate(psplit_cut *cut, const psplit_core *core, const psplit_machine *machine,
                           int64_t *scratch);
/* times_sent[e] = stages that receive e, at least 1. mark[n_stages]. */
void psplit_i_cut_times_sent(const psplit_cut *cut, const psplit_core *core, uint32_t *times_sent,
                             uint32_t *mark);

#endif
