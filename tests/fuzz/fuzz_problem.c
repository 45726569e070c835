/* Fuzz target: bare problems. What is read is written and read again as the same problem; what is
 * solved is what the checker, which shares nothing with the solvers, makes of it, no better than
 * its bound, and has a certificate. Options are drawn from the input's hash. */
#include <psplit/partition.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "splits.h"

enum { MOST_STAGES = 64, MOST_NODES = 400 };

static psplit_problem *read(const char *text, size_t n, psplit_diag *diag) {
  psplit_problem *problem = NULL;
  char *copy = malloc(n + 1); /* of its own, for sanitizers to see its ends */
  if (!copy) abort();
  memcpy(copy, text, n);
  const psplit_code code = psplit_problem_parse_json(copy, n, "problem", diag, &problem);
  free(copy);
  FUZZ_HOLDS((code == PSPLIT_OK) == (problem != NULL) && (code == PSPLIT_OK) == !*diag->message);
  return problem;
}

static void check_form(const psplit_problem *problem) {
  psplit_diag diag = {0};
  char *text = NULL, *again = NULL;
  size_t n, n_again;
  if (psplit_problem_format_json(problem, &diag, &text, &n) != PSPLIT_OK) return;
  psplit_problem *back = read(text, n, &diag);
  if (!back) fuzz_fail(text, &diag);
  fuzz_must(psplit_problem_format_json(back, &diag, &again, &n_again) == PSPLIT_OK, text, &diag);
  if (n != n_again || memcmp(text, again, n) != 0) {
    fprintf(stderr, "%s\n%s\n", text, again);
    abort();
  }
  psplit_problem_destroy(back);
  free(again);
  free(text);
}

static void draw_options(uint32_t choice, psplit_partition_options *out) {
  static const char *const solvers[] = {"auto",   "auto",  "auto",   "exact",
                                        "search", "slice", "anneal", "islands"};
  static const psplit_objective objectives[] = {PSPLIT_LATENCY, PSPLIT_CALL_LATENCY,
                                                PSPLIT_THROUGHPUT, PSPLIT_FILL_DRAIN};
  psplit_partition_options_init(out);
  out->objective = objectives[choice / 8 % 4];
  out->solver = out->objective == PSPLIT_CALL_LATENCY ? "auto" : solvers[choice % 8];
  out->noncontiguous = choice / 32 % 8 == 0;
  out->require_nonempty = choice / 256 % 4 == 0;
  out->chunks = choice / 1024 % 8 == 0 ? 2 : 1;
  out->max_replicas = choice / 8192 % 8 == 0 ? 2 : 1;
  out->sync_bytes_per_s = 1e9;
  out->micro_batches = 4;
  out->time_limit_s = choice / 65536 % 16 == 0 ? 0.3 : 0.02;
  out->n_threads = 1;
}

static void check_solution(const psplit_problem *problem, const psplit_partition_options *options,
                           const psplit_solution *s) {
  psplit_diag diag = {0};
  psplit_solution *again = NULL;
  uint32_t device[MOST_STAGES], replicas[MOST_STAGES];
  FUZZ_HOLDS(s->n_stages <= MOST_STAGES && s->n_nodes == problem->n_nodes);
  FUZZ_HOLDS(s->lower_bound_ns <= s->objective_ns);
  FUZZ_HOLDS(!s->proved_optimal || s->lower_bound_ns == s->objective_ns);
  for (uint32_t k = 0; k < s->n_stages; k++) {
    device[k] = s->stages[k].device;
    replicas[k] = s->stages[k].replicas;
  }
  if (psplit_partition_check(problem, options, s->stage, s->chunk, device, replicas, &diag,
                             &again) != PSPLIT_OK)
    fuzz_fail("the checker refuses the answer", &diag);
  FUZZ_HOLDS(again->objective_ns == s->objective_ns && again->comm_ns == s->comm_ns);
  psplit_solution_destroy(again);
}

static void check_certificate(const psplit_problem *problem,
                              const psplit_partition_options *options, const psplit_solution *s) {
  psplit_diag diag = {0};
  char *text = NULL;
  size_t n;
  int64_t bound;
  const psplit_code code = psplit_certificate_make(problem, options, s, &diag, &text, &n, &bound);
  if (code == PSPLIT_UNSUPPORTED || code == PSPLIT_LIMIT) return;
  fuzz_must(code == PSPLIT_OK, "certificate", &diag);
  FUZZ_HOLDS(bound <= s->lower_bound_ns);
  static const char head[] = "psplit-certificate 1\n";
  FUZZ_HOLDS(strlen(text) == n && strncmp(text, head, strlen(head)) == 0 && strstr(text, "\nend "));
  for (const char *c = text; *c; c++) FUZZ_HOLDS(*c == '\n' || (*c >= ' ' && *c <= '~'));
  free(text);
}

static void solve(const psplit_problem *problem, uint32_t choice) {
  psplit_diag diag = {0};
  psplit_partition_options options;
  psplit_solution *s = NULL;
  if (psplit_problem_n_stages(problem) > MOST_STAGES || problem->n_nodes > MOST_NODES) return;
  draw_options(choice, &options);
  switch (psplit_partition_solve(problem, &options, &diag, &s)) {
    case PSPLIT_OK:
      check_solution(problem, &options, s);
      check_certificate(problem, &options, s);
      break;
    case PSPLIT_USAGE: /* a pin to a stage that there is not */
    case PSPLIT_INVALID:
    case PSPLIT_LIMIT:
    case PSPLIT_UNSUPPORTED:
    case PSPLIT_INFEASIBLE: break;
    default: fuzz_fail("solve", &diag);
  }
  psplit_solution_destroy(s);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n) {
  psplit_diag diag = {0};
  psplit_problem *problem = read((const char *)data, n, &diag);
  if (problem) {
    check_form(problem);
    solve(problem, fuzz_hash(data, n));
  }
  psplit_problem_destroy(problem);
  return 0;
}
