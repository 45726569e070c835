/* Fuzz target: policies, and states of learning. The input's first byte says which of them, and
 * whether a state's hash is made to fit; what follows edits a good file, each time by a place, as
 * 24 bits, a length and so many bytes. Places count the bytes that hold no weights, or with the
 * highest bit all. What is read proposes valid splits, chooses a schedule that fits, goes on
 * learning, and stays finite. */
#include <math.h>
#include <psplit/policy.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "hash.h"
#include "splits.h"

enum { STATE = 1, SIGNED = 2, CUT = 4 };

typedef struct file {
  uint8_t *bytes;
  size_t n;
  uint32_t *bare; /* places without weights */
  uint32_t n_bare;
} file;

static const char PROBLEM[] =
  "{\"format\": \"psplit-problem\", \"devices\": [{\"count\": 2}], \"nodes\": [{\"time_ns\": 5}, "
  "{\"time_ns\": 9}, {\"time_ns\": 4}, {\"time_ns\": 7}], \"tensors\": [{\"producer\": 0, "
  "\"consumers\": "
  "[1, 2], \"send_ns\": 2, \"recv_ns\": 1}, {\"producer\": 1, \"consumers\": [3]}, {\"producer\": "
  "2, "
  "\"consumers\": [3], \"send_ns\": 3}]}";

static psplit_policy_learner *learner_of(psplit_policy *policy) {
  static psplit_problem *problem;
  psplit_policy_learn_options options;
  psplit_policy_learner *learner = NULL;
  psplit_diag diag = {0};
  if (!problem)
    fuzz_must(psplit_problem_parse_json(PROBLEM, sizeof PROBLEM - 1, "problem", &diag, &problem) ==
                PSPLIT_OK,
              "problem", &diag);
  psplit_policy_learn_options_init(&options);
  options.warm_steps = options.steps = options.graphs = options.epochs = 1;
  options.rollouts = 2;
  options.solve_seconds = 0.01;
  fuzz_must(psplit_policy_learner_create(policy, &options, &diag, &learner) == PSPLIT_OK, "learner",
            &diag);
  fuzz_must(psplit_policy_learner_add(learner, problem, &diag) == PSPLIT_OK, "add", &diag);
  return learner;
}

static file slurp(const char *path) {
  FILE *in = fopen(path, "rb");
  file made = {0};
  if (!in || fseek(in, 0, SEEK_END) != 0) abort();
  made.n = (size_t)ftell(in);
  made.bytes = malloc(made.n);
  rewind(in);
  if (!made.bytes || fread(made.bytes, 1, made.n, in) != made.n) abort();
  fclose(in);
  return made;
}

/* A good file; where another with other weights is the same, there are none. */
static file good(bool state) {
  char path[FUZZ_PATH_BYTES];
  file made[2];
  for (uint64_t seed = 0; seed < 2; seed++) {
    psplit_policy *policy = NULL;
    psplit_diag diag = {0};
    fuzz_must(psplit_policy_create(seed + 1, &diag, &policy) == PSPLIT_OK, "policy", &diag);
    psplit_policy_learner *learner = learner_of(policy);
    fuzz_path("good", path);
    const psplit_code code = state ? psplit_policy_learner_save(learner, path, &diag)
                                   : psplit_policy_write(policy, path, &diag);
    fuzz_must(code == PSPLIT_OK, "write", &diag);
    psplit_policy_learner_destroy(learner);
    psplit_policy_destroy(policy);
    made[seed] = slurp(path);
    fuzz_remove(path);
  }
  FUZZ_HOLDS(made[0].n == made[1].n);
  made[0].bare = malloc(made[0].n * sizeof *made[0].bare);
  if (!made[0].bare) abort();
  for (uint32_t i = 0; i < made[0].n; i++)
    if (made[0].bytes[i] == made[1].bytes[i]) made[0].bare[made[0].n_bare++] = i;
  free(made[1].bytes);
  return made[0];
}

/* A copy of `from`, edited; *out_n of its bytes. */
static uint8_t *edit(const file *from, const uint8_t *data, size_t n, uint8_t how, size_t *out_n) {
  enum { HEAD = 4, MOST = 16, ALL = 1 << 23 };
  uint8_t *bytes = malloc(from->n);
  if (!bytes) abort();
  memcpy(bytes, from->bytes, from->n);
  *out_n = from->n;
  while (n > HEAD) {
    const uint32_t place = (uint32_t)data[0] << 16 | (uint32_t)data[1] << 8 | data[2];
    const size_t at = place & ALL ? (place ^ ALL) % from->n : from->bare[place % from->n_bare];
    size_t width = 1 + data[3] % MOST;
    data += HEAD, n -= HEAD;
    if (how & CUT) *out_n = at;
    if (width > n) width = n;
    if (width > from->n - at) width = from->n - at;
    memcpy(bytes + at, data, width);
    data += width, n -= width;
  }
  if ((how & STATE) && (how & SIGNED)) {
    uint64_t magic, hash;
    memcpy(&magic, from->bytes, sizeof magic);
    hash = psplit_i_hash_bytes(bytes, from->n - sizeof hash, magic);
    memcpy(bytes + from->n - sizeof hash, &hash, sizeof hash);
  }
  return bytes;
}

static void check_finite(const psplit_policy *policy) {
  const uint32_t n = psplit_policy_n_parameters(policy);
  for (uint32_t i = 0; i < n; i++) FUZZ_HOLDS(isfinite(psplit_policy_parameter(policy, i)));
}

static void propose(const psplit_policy *policy) {
  psplit_problem *problem = NULL;
  psplit_proposer *proposer = NULL;
  psplit_solution *solution = NULL;
  psplit_partition_options options;
  psplit_diag diag = {0};
  fuzz_must(
    psplit_problem_parse_json(PROBLEM, sizeof PROBLEM - 1, "problem", &diag, &problem) == PSPLIT_OK,
    "problem", &diag);
  fuzz_must(psplit_policy_proposer_create(policy, 2, &diag, &proposer) == PSPLIT_OK, "proposer",
            &diag);
  psplit_partition_options_init(&options);
  options.proposer = proposer;
  options.n_threads = 1;
  fuzz_must(psplit_partition_solve(problem, &options, &diag, &solution) == PSPLIT_OK, "solve",
            &diag);
  FUZZ_HOLDS(solution->lower_bound_ns <= solution->objective_ns);
  psplit_solution_destroy(solution);
  psplit_policy_proposer_destroy(proposer);
  psplit_problem_destroy(problem);
}

static void choose(const psplit_policy *policy) {
  static const int64_t forward[] = {500, 900, 100}, backward[] = {900, 2000, 300};
  const psplit_policy_batch batch = {
    .n_stages = 3, .n_samples = 24, .fixed_ns = 50, .forward_ns = forward, .backward_ns = backward};
  psplit_policy_choice made, best;
  psplit_diag diag = {0};
  fuzz_must(psplit_policy_choose(policy, &batch, &diag, &made, &best) == PSPLIT_OK, "choose",
            &diag);
  FUZZ_HOLDS(made.fits && best.fits && best.step_ns <= made.step_ns);
}

static void learn_on(psplit_policy *policy, psplit_policy_learner *learner) {
  psplit_policy_step step;
  psplit_diag diag = {0};
  double ratio, valid;
  for (bool done = false; !done;) {
    const psplit_code code = psplit_policy_learner_step(learner, &diag, &step, &done);
    FUZZ_HOLDS((code == PSPLIT_OK) == !*diag.message);
    if (code == PSPLIT_INVALID) return check_finite(policy);
    fuzz_must(code == PSPLIT_OK, "step", &diag);
    FUZZ_HOLDS(done || (isfinite(step.loss) && isfinite(step.entropy) && isfinite(step.kl)));
  }
  check_finite(policy);
  fuzz_must(psplit_policy_learner_evaluate(learner, &diag, &ratio, &valid) == PSPLIT_OK, "evaluate",
            &diag);
  FUZZ_HOLDS(isfinite(ratio) && valid >= 0 && valid <= 1);
}

/* What refuses a state stays as it was. */
static void read_state(const char *path) {
  static psplit_policy *policy;
  static psplit_policy_learner *learner;
  psplit_diag diag = {0};
  if (!policy) {
    fuzz_must(psplit_policy_create(3, &diag, &policy) == PSPLIT_OK, "policy", &diag);
    learner = learner_of(policy);
  }
  const psplit_code code = psplit_policy_learner_load(learner, path, &diag);
  FUZZ_HOLDS((code == PSPLIT_OK) == !*diag.message);
  if (code != PSPLIT_OK) return;
  learn_on(policy, learner);
  psplit_policy_learner_destroy(learner);
  psplit_policy_destroy(policy);
  policy = NULL;
}

static void read_policy(const char *path, bool learns) {
  psplit_policy *policy = NULL;
  psplit_diag diag = {0};
  const psplit_code code = psplit_policy_read(path, &diag, &policy);
  FUZZ_HOLDS((code == PSPLIT_OK) == (policy != NULL) && (code == PSPLIT_OK) == !*diag.message);
  if (policy) {
    check_finite(policy);
    propose(policy);
    choose(policy);
    psplit_policy_learner *learner = learns ? learner_of(policy) : NULL;
    if (learner) learn_on(policy, learner);
    psplit_policy_learner_destroy(learner);
  }
  psplit_policy_destroy(policy);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n) {
  static file files[2];
  if (!n) return 0;
  const bool state = data[0] & STATE;
  file *from = &files[state];
  if (!from->n) *from = good(state);
  size_t n_made;
  char path[64];
  uint8_t *made = edit(from, data + 1, n - 1, data[0], &n_made);
  const int fd = fuzz_file(made, n_made);
  snprintf(path, sizeof path, "/proc/self/fd/%d", fd);
  free(made);
  if (state)
    read_state(path);
  else
    read_policy(path, fuzz_hash(data, n) % 4 == 0);
  close(fd);
  return 0;
}
