/* Random pipelines of a few stages, and how long one takes by the simulator. */
#ifndef PSPLIT_TESTS_PIPELINES_H
#define PSPLIT_TESTS_PIPELINES_H

#include <psplit/schedule.h>
#include <stdbool.h>
#include <stdint.h>

enum { MOST = 64 };

typedef struct pipeline {
  psplit_schedule_input in;
  int64_t forward[MOST], backward[MOST], link[MOST], weights[MOST];
} pipeline;

/* The next draw of a stream, less than n. */
uint32_t below(uint64_t *io, uint32_t n);
/* k devices with c stages each, m micro-batches; times of a few kinds: all alike, one that is much
 * longer, some that are zero. p->in points into *p. */
void make_pipeline(pipeline *p, uint64_t *random, psplit_schedule_kind kind, uint32_t k, uint32_t c,
                   uint32_t m, bool links);
/* In ns; peak[k] (may be NULL) gets the most micro-batches that each device holds. The test fails
 * where there is no such schedule. */
int64_t makespan(const psplit_schedule_input *in, uint32_t *peak);

#endif
