#include "pipelines.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
/* cmocka.h needs the four above first. */
#include <cmocka.h>
#include <string.h>

static uint64_t next_random(uint64_t *io) { /* SplitMix64 */
  uint64_t z = *io += UINT64_C(0x9e3779b97f4a7c15);
  z = (z ^ (z >> 30)) * UINT64_C(0xbf58476d1ce4e5b9);
  z = (z ^ (z >> 27)) * UINT64_C(0x94d049bb133111eb);
  return z ^ (z >> 31);
}

uint32_t below(uint64_t *io, uint32_t n) { return (uint32_t)(next_random(io) % n); }

void make_pipeline(pipeline *p, uint64_t *random, psplit_schedule_kind kind, uint32_t k, uint32_t c,
                   uint32_t m, bool links) {
  const uint32_t n = k * c;
  const uint32_t shape = below(random, 4);
  for (uint32_t v = 0; v < n; v++) {
    p->forward[v] = shape == 0 ? 7 : below(random, shape == 1 ? 3 : 20);
    p->backward[v] = shape == 0 ? 13 : below(random, shape == 1 ? 3 : 40);
    p->link[v] = links ? below(random, 12) : 0;
    p->weights[v] = shape == 0 ? 6 : below(random, shape == 1 ? 3 : 30);
  }
  if (shape == 3) p->forward[below(random, n)] += 60;
  p->in = (psplit_schedule_input){.kind = kind,
                                  .n_stages = k,
                                  .n_chunks = c,
                                  .n_micro_batches = m,
                                  .forward_ns = p->forward,
                                  .backward_ns = p->backward,
                                  .link_ns = links ? p->link : NULL};
  if (kind == PSPLIT_SCHEDULE_STREAM) p->in.backward_ns = NULL;
  if (kind == PSPLIT_SCHEDULE_ZERO_BUBBLE) p->in.weights_ns = p->weights;
}

int64_t makespan(const psplit_schedule_input *in, uint32_t *peak) {
  psplit_diag diag = {0};
  psplit_schedule *s = NULL;
  if (psplit_schedule_simulate(in, &diag, &s) != PSPLIT_OK) fail_msg("%s", diag.message);
  const int64_t ns = s->makespan_ns;
  if (peak) memcpy(peak, s->peak_in_flight, in->n_stages * sizeof *peak);
  psplit_schedule_destroy(s);
  return ns;
}
