/* Prints numbers that depend on every bit of what the network computes, decides and learns, over
 * random problems: tests/policy/compilers.py holds those of several compilers together. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "adam.h"
#include "decisions.h"
#include "hash.h"
#include "make_items.h"
#include "schedules.h"

enum { M = PSPLIT_I_MEMORY, S = PSPLIT_I_SCORE, N = 24 };

static void stop_unless(psplit_code code) {
  if (code == PSPLIT_OK) return;
  fputs("error: out of memory\n", stderr);
  exit(6);
}

/* Of a batch: what there is to choose among, and its scores; its gradient is added. */
static uint64_t schedules(const psplit_i_policy_network *network, uint32_t seed, uint64_t hash,
                          psplit_i_policy_network *gradient) {
  static psplit_i_schedules s;
  const int64_t forward[] = {1000 + seed, 1300, 777, 1201}, backward[] = {2200, 2003, 2100, 2600};
  const psplit_policy_batch batch = {.n_stages = 4,
                                     .n_samples = 96,
                                     .fixed_ns = 137,
                                     .forward_ns = forward,
                                     .backward_ns = backward};
  const psplit_i_objective objective = {.weight = 1, .entropy_weight = 0.01};
  psplit_i_learned learned = {0};
  psplit_i_real p[PSPLIT_I_MOST_SCHEDULES];
  psplit_i_schedules_list(&batch, &s);
  psplit_i_schedules_score(network, &s, p);
  hash = psplit_i_hash_bytes(s.x, s.n * PSPLIT_I_SCHEDULE_FEATURES * sizeof *s.x, hash);
  hash = psplit_i_hash_bytes(p, s.n * sizeof *p, hash);
  psplit_i_softmax(p, s.n);
  psplit_i_objective_back(&objective, seed % s.n, 1, p, s.n, 1, &learned);
  psplit_i_schedules_score_back(network, &s, p, gradient);
  return hash;
}

int main(void) {
  static psplit_i_policy_network network, gradient;
  static psplit_i_adam adam;
  static psplit_i_real d_score[N * S], d_gru[N * 3 * M], d_start[M],
    scratch[2 * N * PSPLIT_I_WIDTH];
  uint64_t decisions = 0;
  psplit_i_policy_randomize(&network, 42);
  for (uint32_t seed = 0; seed < 2 * ITEMS_FEATURES; seed++) {
    psplit_i_arena arena;
    psplit_i_view view;
    psplit_i_rollout rollout = {0};
    psplit_i_learner learner = {0};
    psplit_i_learned learned = {0};
    psplit_i_arena_init(&arena, 0);
    psplit_i_decider *d = PSPLIT_NEW(&arena, psplit_i_decider, 1);
    const psplit_items items = make_items(seed, N, 2 + seed % 6, seed, &arena);
    const psplit_i_random_stream stream = {seed, PSPLIT_I_RANDOM_TEST, 0, 0};
    if (!d) stop_unless(PSPLIT_NOMEM);
    stop_unless(psplit_i_view_init(&view, &items, seed % 3, &arena));
    stop_unless(psplit_i_decider_init(d, &view, &arena));
    psplit_i_encode(&network, &view.graph, &d->encoding);
    stop_unless(psplit_i_decide(d, &network, NULL, NULL, NULL));
    decisions = psplit_i_hash_bytes(d->stages.stage, N * sizeof *d->stages.stage, decisions);
    stop_unless(psplit_i_decide(d, &network, &stream, NULL, &rollout));
    decisions = psplit_i_hash_bytes(d->stages.stage, N * sizeof *d->stages.stage, decisions);
    memset(&gradient, 0, sizeof gradient);
    memset(d_score, 0, sizeof d_score);
    memset(d_gru, 0, sizeof d_gru);
    memset(d_start, 0, sizeof d_start);
    const psplit_i_objective objective = {.weight = seed % 2 ? 1 : -0.5, .entropy_weight = 0.01};
    psplit_i_gradients gradients = {{d_score, d_gru, d_start}, &gradient};
    stop_unless(psplit_i_learn(&network, d, &rollout, &objective, &learner, &gradients, &learned));
    psplit_i_encode_back(&network, &view.graph, &d->encoding, &gradients.encoding, scratch,
                         &gradient);
    decisions = schedules(&network, seed, decisions, &gradient);
    stop_unless(psplit_i_adam_step(&adam, 0.01, &gradient, &network));
    psplit_i_learner_fini(&learner);
    psplit_i_rollout_fini(&rollout);
    psplit_i_arena_fini(&arena);
  }
  printf("decisions %016" PRIx64 ", weights %016" PRIx64 "\n", decisions,
         psplit_i_hash_bytes(&network, sizeof network, 0));
  return 0;
}
