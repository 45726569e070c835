/* steps POLICY.onnx: what the C network computes of random problems, decision by decision, as JSON,
 * for another runtime to compute again. */
#include <psplit/policy.h>
#include <stdio.h>
#include <stdlib.h>

#include "decisions.h"
#include "make_items.h"
#include "policy.h"
#include "schedules.h"

enum { N = 40, PROBLEMS = 24, X = PSPLIT_I_ITEM_FEATURES, C = PSPLIT_I_CANDIDATE_FEATURES };

static void print_list(const char *name, const psplit_i_real *x, size_t n, const char *end) {
  printf("\"%s\": [", name);
  for (size_t k = 0; k < n; k++) printf("%s%.9g", k ? ", " : "", (double)x[k]);
  printf("]%s", end);
}

static void stop_unless(psplit_code code) {
  if (code == PSPLIT_OK) return;
  fprintf(stderr, "error: %s\n", psplit_code_name(code));
  exit(1);
}

/* Schedules of a batch by chance, with their scores. */
static void print_schedules(const psplit_i_policy_network *network, uint32_t seed) {
  static psplit_i_schedules s;
  int64_t forward[8], backward[8];
  psplit_i_real score[PSPLIT_I_MOST_SCHEDULES];
  const psplit_i_random_stream stream = {seed, PSPLIT_I_RANDOM_TEST, 2, 0};
  for (uint32_t k = 0; k < 8; k++) {
    forward[k] = 1000 + (int64_t)psplit_i_random_below(&stream, 2 * k, 1000);
    backward[k] = 2000 + (int64_t)psplit_i_random_below(&stream, 2 * k + 1, 2000);
  }
  const psplit_policy_batch batch = {.n_stages = 1 + seed % 8,
                                     .n_samples = 16u << seed % 4,
                                     .fixed_ns = 37 * seed,
                                     .forward_ns = forward,
                                     .backward_ns = seed % 3 ? backward : NULL};
  psplit_i_schedules_list(&batch, &s);
  psplit_i_schedules_score(network, &s, score);
  printf("\"schedules\": {");
  print_list("features", s.x, (size_t)s.n * PSPLIT_I_SCHEDULE_FEATURES, ", ");
  print_list("score", score, s.n, "}, ");
}

/* Greedy decisions: candidates, scores and memory before and after. */
static void print_problem(const psplit_i_policy_network *network, uint32_t seed, bool last) {
  psplit_i_arena arena;
  psplit_i_view view;
  psplit_i_real memory[PSPLIT_I_MEMORY], after[PSPLIT_I_MEMORY], gates[4 * PSPLIT_I_MEMORY],
    score[PSPLIT_I_MOST_CANDIDATES];
  psplit_i_arena_init(&arena, 0);
  psplit_i_decider *d = PSPLIT_NEW(&arena, psplit_i_decider, 1);
  const psplit_items items = make_items(seed, N, 2 + seed % 7, seed, &arena);
  if (!d) stop_unless(PSPLIT_NOMEM);
  stop_unless(psplit_i_view_init(&view, &items, seed % 3, &arena));
  stop_unless(psplit_i_decider_init(d, &view, &arena));
  psplit_i_encode(network, &view.graph, &d->encoding);
  printf("{\"n\": %d, ", (int)N);
  print_schedules(network, seed);
  print_list("x", view.graph.x, (size_t)N * X, ", ");
  print_list("start", d->encoding.start, PSPLIT_I_MEMORY, ", \"edges\": [");
  for (uint32_t i = 0, n = 0; i < N; i++)
    for (uint32_t e = items.pred_off[i]; e < items.pred_off[i + 1]; e++)
      printf("%s[%u, %u]", n++ ? ", " : "", items.pred[e], i);
  printf("], \"steps\": [\n");
  for (uint32_t j = 0; j < PSPLIT_I_MEMORY; j++) memory[j] = d->encoding.start[j];
  for (uint32_t at = 0; at < N; at++) {
    const uint32_t i = view.order[at];
    const uint32_t n = psplit_i_stages_candidates(&d->stages, i, d->candidate, d->x);
    uint32_t chosen = 0;
    const psplit_i_decision decision = {memory, d->x, n, d->hidden};
    psplit_i_score(network, &d->encoding, i, &decision, score);
    for (uint32_t k = 1; k < n; k++)
      if (score[k] > score[chosen]) chosen = k;
    const psplit_i_gru_step step = {d->x + (size_t)chosen * C, memory, gates};
    psplit_i_remember(network, &d->encoding, i, &step, after);
    printf("{\"item\": %u, \"chosen\": %u, ", i, chosen);
    print_list("candidates", d->x, (size_t)n * C, ", ");
    print_list("score", score, n, ", ");
    print_list("memory", memory, PSPLIT_I_MEMORY, ", ");
    print_list("next", after, PSPLIT_I_MEMORY, at + 1 < N ? "},\n" : "}]}");
    for (uint32_t j = 0; j < PSPLIT_I_MEMORY; j++) memory[j] = after[j];
    psplit_i_stages_place(&d->stages, i, &d->candidate[chosen]);
  }
  printf("%s\n", last ? "" : ",");
  psplit_i_arena_fini(&arena);
}

int main(int argc, char **argv) {
  psplit_policy *policy;
  psplit_diag diag = {0};
  if (argc != 2 || psplit_policy_read(argv[1], &diag, &policy) != PSPLIT_OK) {
    fprintf(stderr, "error: %s\n", argc == 2 ? diag.message : "usage: steps POLICY.onnx");
    return 1;
  }
  printf("[\n");
  for (uint32_t seed = 0; seed < PROBLEMS; seed++)
    print_problem(&policy->network, seed, seed + 1 == PROBLEMS);
  printf("]\n");
  psplit_policy_destroy(policy);
  return 0;
}
