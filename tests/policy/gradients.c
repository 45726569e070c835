/* Prints problems, weights, decisions and the gradients that the C network finds, as JSON, in
 * double: for another implementation to differentiate on its own. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "decisions.h"
#include "make_items.h"
#include "schedules.h"

enum { N = 14, PROBLEMS = 4, M = PSPLIT_I_MEMORY, S = PSPLIT_I_SCORE };

static void stop_unless(psplit_code code) {
  if (code == PSPLIT_OK) return;
  fputs("error: out of memory\n", stderr);
  exit(6);
}

static void print_numbers(const char *name, const psplit_i_real *x, size_t n) {
  printf("\"%s\": [", name);
  for (size_t k = 0; k < n; k++) printf("%s%.17g", k ? ", " : "", (double)x[k]);
  printf("]");
}

static void print_network(const char *name, const psplit_i_policy_network *network) {
  const psplit_i_real *all = (const psplit_i_real *)network;
  printf("\"%s\": {", name);
  for (uint32_t t = 0; t < psplit_i_policy_n_tensors; t++) {
    const psplit_i_tensor_row *row = &psplit_i_policy_tensors[t];
    printf("%s\n", t ? "," : "");
    print_numbers(row->name, all + row->offset, (size_t)row->rows * row->columns);
  }
  printf("},\n");
}

static void print_decisions(const psplit_i_view *view, const psplit_i_rollout *r) {
  printf("\"edges\": [");
  for (uint32_t i = 0, n = 0; i < N; i++)
    for (uint32_t e = view->items->pred_off[i]; e < view->items->pred_off[i + 1]; e++)
      printf("%s[%u, %u]", n++ ? ", " : "", view->items->pred[e], i);
  printf("],\n\"decisions\": [");
  for (uint32_t at = 0; at < N; at++) {
    const size_t n = r->off[at + 1] - r->off[at];
    printf("%s\n{\"item\": %u, \"chosen\": %u, \"chance\": %.17g, ", at ? "," : "", view->order[at],
           r->chosen[at], (double)r->chance[at]);
    print_numbers("candidates", r->x + r->off[at] * PSPLIT_I_CANDIDATE_FEATURES,
                  n * PSPLIT_I_CANDIDATE_FEATURES);
    printf("}");
  }
  printf("],\n");
}

/* The last decision: its features, what was chosen, and the loss; the gradient is added. */
static double print_schedules(const psplit_i_policy_network *network, uint32_t seed,
                              const psplit_i_objective *objective,
                              psplit_i_policy_network *gradient) {
  static psplit_i_schedules s;
  const int64_t forward[] = {100, 130 + seed, 90, 120}, backward[] = {220, 200, 210, 260},
                weights[] = {90, 80, 110, 70};
  const psplit_policy_batch batch = {4, 48, 17, forward, backward, weights, NULL, NULL};
  psplit_i_real p[PSPLIT_I_MOST_SCHEDULES];
  psplit_i_learned learned = {0};
  psplit_i_schedules_list(&batch, &s);
  printf("\"schedule\": {\"chosen\": %u, \"chance\": %.17g, ", seed, 0.05);
  print_numbers("candidates", s.x, (size_t)s.n * PSPLIT_I_SCHEDULE_FEATURES);
  printf("},\n");
  psplit_i_schedules_score(network, &s, p);
  psplit_i_softmax(p, s.n);
  const double loss = psplit_i_objective_back(objective, seed, 0.05, p, s.n, 1, &learned);
  psplit_i_schedules_score_back(network, &s, p, gradient);
  return loss;
}

static void print_problem(uint32_t seed) {
  static psplit_i_policy_network network, gradient;
  static psplit_i_real d_score[N * S], d_gru[N * 3 * M], d_start[M],
    scratch[2 * N * PSPLIT_I_WIDTH];
  const psplit_i_objective objective = {seed % 2 ? 1 : -0.6, seed > 1 ? 0.3 : 0,
                                        seed > 1 ? 0.2 : 0};
  psplit_i_arena arena;
  psplit_i_view view;
  psplit_i_rollout rollout = {0};
  psplit_i_learner learner = {0};
  psplit_i_learned learned = {0};
  psplit_i_arena_init(&arena, 0);
  psplit_i_decider *d = PSPLIT_NEW(&arena, psplit_i_decider, 1);
  const psplit_items items = make_items(seed, N, 4, seed * 11, &arena);
  const psplit_i_random_stream stream = {seed, PSPLIT_I_RANDOM_TEST, 1, 0};
  if (!d) stop_unless(PSPLIT_NOMEM);
  psplit_i_policy_randomize(&network, seed);
  for (uint32_t k = 0; k < PSPLIT_I_N_PARAMETERS; k++)
    ((psplit_i_real *)&network)[k] +=
      (psplit_i_real)(0.2 * (psplit_i_random_uniform(&stream, N + k) - 0.5));
  stop_unless(psplit_i_view_init(&view, &items, seed % 3, &arena));
  stop_unless(psplit_i_decider_init(d, &view, &arena));
  psplit_i_encode(&network, &view.graph, &d->encoding);
  stop_unless(psplit_i_decide(d, &network, &stream, NULL, &rollout));
  for (uint32_t k = 0; k < N; k++) rollout.chance[k] *= (psplit_i_real)(0.7 + 0.6 * (k % 5) / 4);
  memset(&gradient, 0, sizeof gradient);
  memset(d_score, 0, sizeof d_score);
  memset(d_gru, 0, sizeof d_gru);
  memset(d_start, 0, sizeof d_start);
  psplit_i_gradients gradients = {{d_score, d_gru, d_start}, &gradient};
  stop_unless(psplit_i_learn(&network, d, &rollout, &objective, &learner, &gradients, &learned));
  psplit_i_encode_back(&network, &view.graph, &d->encoding, &gradients.encoding, scratch,
                       &gradient);
  printf("{");
  learned.loss += print_schedules(&network, seed, &objective, &gradient);
  printf("\"weight\": %g, \"entropy_weight\": %g, \"clip\": %g, \"loss\": %.17g,\n",
         objective.weight, objective.entropy_weight, objective.clip, learned.loss);
  print_network("network", &network);
  print_network("gradient", &gradient);
  print_decisions(&view, &rollout);
  print_numbers("x", view.graph.x, (size_t)N * PSPLIT_I_ITEM_FEATURES);
  printf("}");
  psplit_i_learner_fini(&learner);
  psplit_i_rollout_fini(&rollout);
  psplit_i_arena_fini(&arena);
}

int main(void) {
  printf("{\"rounds\": %d, \"shapes\": {", (int)PSPLIT_I_ROUNDS);
  for (uint32_t t = 0; t < psplit_i_policy_n_tensors; t++)
    printf("%s\"%s\": [%u, %u]", t ? ", " : "", psplit_i_policy_tensors[t].name,
           psplit_i_policy_tensors[t].rows, psplit_i_policy_tensors[t].columns);
  printf("}, \"problems\": [\n");
  for (uint32_t seed = 0; seed < PROBLEMS; seed++) {
    if (seed) printf(",\n");
    print_problem(seed);
  }
  printf("]}\n");
  return 0;
}
