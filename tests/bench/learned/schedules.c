/* Schedules that a policy chooses, beside the best of all that there are and beside rules of thumb:
 * bench_schedules POLICY.onnx LIST... Each problem of the lists is split by the solvers; its stages
 * take batches of 16, 64 and 256 samples as inferences and as training (backward pieces twice as
 * long where the problem has none), with three fixed costs of a piece, with and without gradients
 * of weights in pieces of their own, and with memory for all samples, for a quarter and for a
 * sixteenth of them. */
#include <math.h>
#include <psplit/policy.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "listed.h"

enum { MOST_STAGES = 64, MOST_LADDER = 512 };
enum { WAY_POLICY, WAY_UNTRAINED, WAY_MOST, WAY_FOUR, N_WAYS };
static const char *const kWays[N_WAYS] = {"policy", "untrained", "1F1B, most micro-batches",
                                          "1F1B, 4 micro-batches a stage"};
enum { GROUP_STREAM, GROUP_TRAINING, GROUP_MEMORY, N_GROUPS };
static const char *const kGroups[N_GROUPS] = {"inferences", "training", "training, memory binds"};

typedef struct score {
  uint32_t n, n_equal;
  double log_ratio, worst;
} score;

typedef struct bench {
  psplit_policy *policy, *untrained;
  score score[N_GROUPS][N_WAYS];
  double choose_s;
  uint32_t n_chosen;
} bench;

static void stop_unless(psplit_code code, const psplit_diag *diag) {
  if (code == PSPLIT_OK) return;
  fprintf(stderr, "error: %s\n", diag->message);
  exit(4);
}

static int64_t simulated(const psplit_policy_batch *b, psplit_schedule_kind kind, uint32_t m) {
  int64_t ns[2 * MOST_STAGES];
  psplit_schedule *schedule;
  psplit_diag diag = {0};
  for (uint32_t s = 0; s < b->n_stages; s++) {
    const int64_t samples = b->n_samples / m;
    ns[s] = b->fixed_ns + samples * b->forward_ns[s];
    if (b->backward_ns)
      ns[b->n_stages + s] =
        b->fixed_ns + samples * (b->backward_ns[s] + (b->weights_ns ? b->weights_ns[s] : 0));
  }
  const psplit_schedule_input input = {.kind = kind,
                                       .n_stages = b->n_stages,
                                       .n_chunks = 1,
                                       .n_micro_batches = m,
                                       .forward_ns = ns,
                                       .backward_ns = b->backward_ns ? ns + b->n_stages : NULL};
  stop_unless(psplit_schedule_simulate(&input, &diag, &schedule), &diag);
  const int64_t step = schedule->makespan_ns;
  psplit_schedule_destroy(schedule);
  return step;
}

static void count(score *s, int64_t step, int64_t best) {
  const double ratio = best > 0 ? (double)step / (double)best : 1;
  s->n++;
  s->n_equal += step == best;
  s->log_ratio += log(ratio);
  if (ratio > s->worst) s->worst = ratio;
}

/* Of micro-batches that are powers of two, as all batches here are, the one that is nearest. */
static uint32_t nearest(uint32_t wanted, uint32_t most) {
  uint32_t m = 1;
  while (2 * m <= most && 2 * m <= wanted) m *= 2;
  return m;
}

static void one(bench *b, const psplit_policy_batch *batch, bool binds) {
  const int group = !batch->backward_ns ? GROUP_STREAM : binds ? GROUP_MEMORY : GROUP_TRAINING;
  const psplit_schedule_kind kind =
    batch->backward_ns ? PSPLIT_SCHEDULE_1F1B : PSPLIT_SCHEDULE_STREAM;
  psplit_policy_choice choice, untrained, best;
  psplit_diag diag = {0};
  const clock_t start = clock();
  stop_unless(psplit_policy_choose(b->policy, batch, &diag, &choice, NULL), &diag);
  b->choose_s += (double)(clock() - start) / CLOCKS_PER_SEC;
  b->n_chosen++;
  stop_unless(psplit_policy_choose(b->untrained, batch, &diag, &untrained, &best), &diag);
  if (!best.fits) return;
  score *s = b->score[group];
  count(&s[WAY_POLICY], choice.step_ns, best.step_ns);
  count(&s[WAY_UNTRAINED], untrained.step_ns, best.step_ns);
  if (binds) return; /* rules do not know memory */
  const uint32_t most = batch->n_samples < MOST_LADDER ? batch->n_samples : MOST_LADDER;
  count(&s[WAY_MOST], simulated(batch, kind, most), best.step_ns);
  count(&s[WAY_FOUR], simulated(batch, kind, nearest(4 * batch->n_stages, most)), best.step_ns);
}

/* All batches of a split. */
static void all(bench *b, const psplit_problem *p, const psplit_solution *solution) {
  int64_t forward[MOST_STAGES], backward[MOST_STAGES], weights[MOST_STAGES], most = 1;
  uint64_t bytes[MOST_STAGES], room[MOST_STAGES];
  uint32_t n = 0;
  if (solution->n_stages > MOST_STAGES) return;
  const bool trains = psplit_solution_pieces(p, solution, 1, forward, backward, bytes);
  for (uint32_t s = 0; s < solution->n_stages; s++) {
    if (solution->stages[s].n_nodes == 0) continue;
    forward[n] = forward[s];
    backward[n] = trains ? backward[s] : 2 * forward[s];
    bytes[n] = bytes[s] ? bytes[s] : 1000000;
    most = forward[n] + backward[n] > most ? forward[n] + backward[n] : most;
    n++;
  }
  for (uint32_t samples = 16; samples <= 256; samples *= 4)
    for (int fixed = 0; fixed < 3; fixed++)
      for (int memory = 0; memory < 3; memory++)
        for (int way = trains; way < 3; way++) {
          const double costs[] = {0, 0.05, 0.5};
          for (uint32_t s = 0; s < n; s++) {
            room[s] = (uint64_t)samples * bytes[s] >> 2 * memory;
            weights[s] = backward[s] / 2;
          }
          int64_t rest[MOST_STAGES];
          for (uint32_t s = 0; s < n; s++) rest[s] = backward[s] - (way == 2 ? weights[s] : 0);
          const psplit_policy_batch batch = {.n_stages = n,
                                             .n_samples = samples,
                                             .fixed_ns = (int64_t)(costs[fixed] * (double)most),
                                             .forward_ns = forward,
                                             .backward_ns = way ? rest : NULL,
                                             .weights_ns = way == 2 ? weights : NULL,
                                             .activation_bytes = bytes,
                                             .room_bytes = room};
          one(b, &batch, memory > 0);
        }
}

static void run_list(bench *b, const char *path) {
  char line[512];
  FILE *list = fopen(path, "r");
  if (!list) {
    fprintf(stderr, "error: %s: cannot be read\n", path);
    exit(3);
  }
  while (fgets(line, sizeof line, list)) {
    listed l;
    psplit_partition_options o;
    psplit_solution *solution;
    psplit_diag diag = {0};
    if (!listed_make(line, &l)) continue;
    psplit_partition_options_init(&o);
    o.time_limit_s = 0.02;
    o.n_threads = 1;
    if (psplit_partition_solve(&l.problem, &o, &diag, &solution) == PSPLIT_OK) {
      all(b, &l.problem, solution);
      psplit_solution_destroy(solution);
    }
    listed_fini(&l);
  }
  fclose(list);
}

int main(int argc, char **argv) {
  static bench b;
  psplit_diag diag = {0};
  if (argc < 3) {
    fputs("usage: bench_schedules POLICY.onnx LIST...\n", stderr);
    return 2;
  }
  stop_unless(psplit_policy_read(argv[1], &diag, &b.policy), &diag);
  stop_unless(psplit_policy_create(1, &diag, &b.untrained), &diag);
  for (int i = 2; i < argc; i++) run_list(&b, argv[i]);
  printf("%-24s %-30s %8s %8s %8s %8s\n", "batches", "way", "n", "best, %", "mean", "worst");
  for (int g = 0; g < N_GROUPS; g++)
    for (int w = 0; w < N_WAYS; w++) {
      const score *s = &b.score[g][w];
      if (s->n)
        printf("%-24s %-30s %8u %8.1f %8.4f %8.3f\n", kGroups[g], kWays[w], s->n,
               100.0 * s->n_equal / s->n, exp(s->log_ratio / s->n), s->worst);
    }
  printf("a choice takes %.1f us\n", b.n_chosen ? b.choose_s / b.n_chosen * 1e6 : 0);
  psplit_policy_destroy(b.policy);
  psplit_policy_destroy(b.untrained);
  return 0;
}
