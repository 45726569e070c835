/* onnx-pipeline-learn: a policy from partition problems. */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <getopt.h>
#include <inttypes.h>
#include <psplit/file.h>
#include <psplit/policy.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "cli.h"
#include "measure.h"
#include "places.h"
#include "shared_options.h"

enum {
  OPT_STEPS = 256,
  OPT_WARM,
  OPT_GRAPHS,
  OPT_ROLLOUTS,
  OPT_EPOCHS,
  OPT_RATE,
  OPT_LAST_RATE,
  OPT_REWARD,
  OPT_BATCH,
  OPT_FIXED,
  OPT_SCHEDULE_STEPS,
  OPT_SEED,
  OPT_SOLVE,
  OPT_STATE,
  OPT_RESUME,
  OPT_LOG,
  OPT_FROM,
  OPT_RUNS
};

static const cli_option OPTIONS[] = {
  {0, NULL, NULL, "Training:"},
  {'o', "output", "FILE", "the policy, an ONNX model (required)"},
  {OPT_WARM, "warm-steps", "N",
   "steps of imitation learning, on splits that solvers found; default: 600"},
  {OPT_STEPS, "steps", "N", "steps of reinforcement learning after them; default: 400"},
  {OPT_GRAPHS, "graphs", "N", "problems per step; default: 8"},
  {OPT_ROLLOUTS, "rollouts", "N", "splits sampled for each problem; default: 12"},
  {OPT_EPOCHS, "epochs", "N", "maximum number of passes over the samples of a step; default: 3"},
  {OPT_RATE, "rate", "X", "initial learning rate of reinforcement learning; default: 0.001"},
  {OPT_LAST_RATE, "last-rate", "X", "final learning rate; default: 0.0001"},
  {OPT_REWARD, "reward", "model|schedule|measured",
   "reward of a split: its slowest stage (default), the time of a step in the schedule that the "
   "policy chooses, or measured in ONNX Runtime (for models only)"},
  {OPT_BATCH, "batch", "N", "samples in a simulated training step; default: 64"},
  {OPT_FIXED, "fixed-cost", "X",
   "fixed cost of each micro-batch of that step, in units of the bound on a sample's slowest "
   "stage; default: 0.05"},
  {OPT_SCHEDULE_STEPS, "schedule-steps", "N",
   "final steps, which only train schedules and micro-batches; default: 200"},
  {OPT_SEED, "seed", "N", "seed of initial weights and of sampling; default: 1"},
  {OPT_FROM, "from", "POLICY.onnx", "policy to start from; default: random weights"},
  {OPT_SOLVE, "solve", "SECONDS", "work limit for solving each problem first; default: 1"},
  {0, NULL, NULL, "Models in CORPUS (*.onnx):"},
  {'k', "stages", "N", "number of devices; default: those of --devices"},
  {PLAN_DEVICES, "devices", "FILE",
   "devices and links as JSON (-: stdin), or a preset's name (N times the preset cpu)"},
  {PLAN_COSTS, "costs", "FILE",
   "measured or given costs (-: stdin; repeatable); default: a roofline model"},
  {PLAN_DIM, "dim", "NAME=VALUE", "fix a symbolic dimension (repeatable)"},
  {PLAN_SHAPE, "shape", "NAME=N,N,...", "fix all symbolic dimensions of an input (repeatable)"},
  {OPT_RUNS, "runs", "N",
   "with --reward measured: micro-batches per run; default: half a second's, at least 12"},
  ORT_LIBRARY_OPTIONS,
  {0, NULL, NULL, "General:"},
  CLI_MAX_TEXT(PLAN_MAX_TEXT),
  {OPT_STATE, "state", "FILE", "state to resume from, written every 20 steps; default: none"},
  {OPT_RESUME, "resume", NULL, "continue from --state, with otherwise unchanged options"},
  {OPT_LOG, "log", "FILE", "write a line of JSON for each step; --resume appends"},
  {'q', "quiet", NULL, "no lines on stdout, no progress"},
  CLI_VERBOSE_OPTION,
  CLI_LAST_OPTIONS,
};

static const cli PROGRAM = {
  "onnx-pipeline-learn",
  "[OPTION]... CORPUS... -o POLICY.onnx",
  "Trains a network that proposes splits to onnx-pipeline-plan and onnx-pipeline-split "
  "(--policy).\n"
  "CORPUS is a partition problem (docs/partitioning/problem.md), a directory of them,\n"
  "*.json, or a model.\n\n"
  "Example: onnx-pipeline-learn problems/ -o policy.onnx --seed 1",
  OPTIONS,
  sizeof OPTIONS / sizeof *OPTIONS,
};

/* How a line of --log begins. */
#define LOG_HEAD "{\"step\": "

typedef struct settings {
  const char *output, *state, *log, *from;
  psplit_policy_learn_options options;
  measure_options measured;
  plan_options plan;
  bool resume, quiet;
} settings;

static bool take_option(settings *s, int id, char *text) {
  psplit_policy_learn_options *o = &s->options;
  int reward;
  switch (id) {
    case 'o': s->output = text; return true;
    case OPT_STEPS: return cli_count32(&PROGRAM, "steps", text, 0, 1000000, &o->steps);
    case OPT_WARM: return cli_count32(&PROGRAM, "warm-steps", text, 0, 1000000, &o->warm_steps);
    case OPT_GRAPHS: return cli_count32(&PROGRAM, "graphs", text, 1, 256, &o->graphs);
    case OPT_ROLLOUTS: return cli_count32(&PROGRAM, "rollouts", text, 2, 256, &o->rollouts);
    case OPT_EPOCHS: return cli_count32(&PROGRAM, "epochs", text, 1, 100, &o->epochs);
    case OPT_RATE: return cli_real(&PROGRAM, "rate", text, 1e-9, 1, &o->rate);
    case OPT_LAST_RATE: return cli_real(&PROGRAM, "last-rate", text, 1e-9, 1, &o->last_rate);
    case OPT_REWARD:
      if (!cli_choice(&PROGRAM, "reward", text, &reward)) return false;
      o->reward = (psplit_policy_reward)reward;
      return true;
    case OPT_BATCH: return cli_count32(&PROGRAM, "batch", text, 1, 4096, &o->batch);
    case OPT_FIXED: return cli_real(&PROGRAM, "fixed-cost", text, 0, 1e5, &o->fixed_cost);
    case OPT_SCHEDULE_STEPS:
      return cli_count32(&PROGRAM, "schedule-steps", text, 0, 1000000, &o->schedule_steps);
    case OPT_SEED: return cli_count(&PROGRAM, "seed", text, 0, UINT64_MAX, &o->seed);
    case OPT_SOLVE: return cli_real(&PROGRAM, "solve", text, 0, 1e6, &o->solve_seconds);
    case OPT_STATE: s->state = text; return true;
    case OPT_RESUME: s->resume = true; return true;
    case OPT_LOG: s->log = text; return true;
    case 'q': s->quiet = true; return true;
    case OPT_FROM: s->from = text; return true;
    case 'k': return cli_count32(&PROGRAM, "stages", text, 1, 1024, &s->measured.n_stages);
    case PLAN_DEVICES:
    case PLAN_COSTS:
    case PLAN_DIM:
    case PLAN_SHAPE:
    case PLAN_MAX_TEXT: return plan_option(&PROGRAM, &s->plan, id, text);
    case OPT_RUNS:
      return cli_count32(&PROGRAM, "runs", text, 2, 1000000, &s->measured.n_micro_batches);
    case OPT_ONNXRUNTIME:
    case OPT_CUSTOM_OPS: return ort_library_option(&PROGRAM, &s->measured.library, id, text);
    default: return false;
  }
}

static bool is_model(const char *path) {
  const size_t n = strlen(path);
  return n > 5 && strcmp(path + n - 5, ".onnx") == 0;
}

/* A problem without any split teaches nothing, and is left out. */
static psplit_code add_file(const settings *s, psplit_policy_learner *learner, measure *runs,
                            const char *path, uint32_t *io_n, psplit_diag *diag) {
  psplit_problem *problem = NULL;
  psplit_code code;
  cli_doing("solving %s", path);
  if (is_model(path)) {
    code = measure_model(runs, path, diag, &problem);
  } else {
    code = cli_read_problem(path, s->plan.max_text_bytes, false, diag, &problem);
    if (code == PSPLIT_OK) code = measure_bare(runs, diag);
  }
  if (code != PSPLIT_OK) return code;
  code = psplit_policy_learner_add(learner, problem, diag);
  psplit_problem_destroy(problem);
  if (code == PSPLIT_INFEASIBLE) {
    cli_warn("%s is left out: %s", path, diag->message);
    *diag = (psplit_diag){0};
    return PSPLIT_OK;
  }
  if (code == PSPLIT_OK) ++*io_n;
  return code;
}

static psplit_code check_not_read(const settings *s, const char *file, psplit_diag *diag) {
  const char *const outputs[] = {s->output, s->state, s->log};
  psplit_code code = PSPLIT_OK;
  for (size_t i = 0; i < sizeof outputs / sizeof *outputs && code == PSPLIT_OK; i++)
    if (outputs[i]) code = place_check_unread(outputs[i], file, diag);
  return code;
}

static int is_json(const struct dirent *entry) {
  const size_t n = strlen(entry->d_name);
  return entry->d_name[0] != '.' && n > 5 && strcmp(entry->d_name + n - 5, ".json") == 0;
}

/* What is done with each file of the corpus. */
typedef psplit_code (*file_visitor)(void *user, const char *path, psplit_diag *diag);

/* Files of a directory in the order of their names, or one file. */
static psplit_code visit_all(const char *path, file_visitor visit, void *user, psplit_diag *diag) {
  struct dirent **entries;
  psplit_code code = PSPLIT_OK;
  const int n = scandir(path, &entries, is_json, alphasort);
  if (n < 0) return errno == ENOMEM ? cli_nomem(diag) : visit(user, path, diag);
  for (int i = 0; i < n; i++) {
    char *name = NULL;
    if (code == PSPLIT_OK && asprintf(&name, "%s/%s", path, entries[i]->d_name) < 0)
      name = NULL, code = cli_nomem(diag);
    if (code == PSPLIT_OK) code = visit(user, name, diag);
    free(name);
    free(entries[i]);
  }
  free(entries);
  return code;
}

typedef struct corpus {
  const settings *s;
  psplit_policy_learner *learner;
  measure *runs;
  uint32_t n_problems;
} corpus;

static psplit_code visit_to_check(void *user, const char *path, psplit_diag *diag) {
  return check_not_read(((const corpus *)user)->s, path, diag);
}

static psplit_code visit_to_add(void *user, const char *path, psplit_diag *diag) {
  corpus *c = user;
  return add_file(c->s, c->learner, c->runs, path, &c->n_problems, diag);
}

/* Outputs are found out before the work: none is read, or another one too. */
static psplit_code check_outputs(settings *s, int argc, char **argv, psplit_diag *diag) {
  const char *const outputs[] = {s->output, s->state, s->log};
  corpus c = {.s = s};
  psplit_code code = psplit_file_check(s->output, diag);
  if (code == PSPLIT_OK && s->state) code = psplit_file_check(s->state, diag);
  for (size_t i = 0; i < sizeof outputs / sizeof *outputs && code == PSPLIT_OK; i++) {
    if (!outputs[i]) continue;
    for (size_t k = 0; k < i && code == PSPLIT_OK; k++)
      if (outputs[k]) code = place_check_apart(outputs[i], outputs[k], diag);
    if (code == PSPLIT_OK) code = plan_check_output(&s->plan, outputs[i], diag);
  }
  /* The policy to begin with may be the one that is written in the end. */
  if (code == PSPLIT_OK && s->from && s->state) code = place_check_unread(s->state, s->from, diag);
  if (code == PSPLIT_OK && s->from && s->log) code = place_check_unread(s->log, s->from, diag);
  for (int i = optind; i < argc && code == PSPLIT_OK; i++)
    code = visit_all(argv[i], visit_to_check, &c, diag);
  return code;
}

static psplit_code cannot_log(const char *path, const char *why, psplit_diag *diag) {
  return psplit_diag_fail(diag, PSPLIT_IO, "--log %s: cannot be written: %s", path, why);
}

/* Whether it is empty, or a log of learning; what is not a regular file holds nothing. */
static bool may_log(int fd, const struct stat *status) {
  char head[sizeof LOG_HEAD - 1];
  return !S_ISREG(status->st_mode) || status->st_size == 0 ||
         (pread(fd, head, sizeof head, 0) == (ssize_t)sizeof head &&
          memcmp(head, LOG_HEAD, sizeof head) == 0);
}

/* It is written line by line, so that it can be looked at meanwhile; with `goes_on` behind what it
 * has. No FIFO is waited for. */
static psplit_code open_log(const char *path, bool goes_on, psplit_diag *diag, FILE **out) {
  enum { HOW = O_NONBLOCK | O_NOCTTY | O_CLOEXEC };
  struct stat status;
  const bool is_fifo = stat(path, &status) == 0 && S_ISFIFO(status.st_mode);
  const int fd = open(path, is_fifo ? O_WRONLY | HOW : O_RDWR | O_CREAT | HOW, 0666);
  if (fd < 0) return cannot_log(path, errno == ENXIO ? "nobody reads it" : strerror(errno), diag);
  psplit_code code = PSPLIT_OK;
  if (fstat(fd, &status) != 0)
    code = cannot_log(path, strerror(errno), diag);
  else if (!may_log(fd, &status))
    code = psplit_diag_fail(diag, PSPLIT_IO,
                            "--log %s: it is not a log of learning, so it is not replaced; give "
                            "another name",
                            path);
  else if (S_ISREG(status.st_mode) && (goes_on ? lseek(fd, 0, SEEK_END) : ftruncate(fd, 0)) < 0)
    code = cannot_log(path, strerror(errno), diag);
  else if (fcntl(fd, F_SETFL, 0) != 0) /* waits for whoever reads a FIFO */
    code = cannot_log(path, strerror(errno), diag);
  else if (!(*out = fdopen(fd, "w")))
    code = cli_nomem(diag);
  if (code != PSPLIT_OK) close(fd);
  return code;
}

static psplit_code log_step(const settings *s, FILE *log, const psplit_policy_step *step,
                            psplit_diag *diag) {
  fprintf(log,
          LOG_HEAD "%" PRIu32
                   ", \"warm\": %s, \"loss\": %.6f, \"reward\": %.6f, \"ratio\": %.6f, "
                   "\"valid\": %.4f, \"entropy\": %.5f, \"kl\": %.5f, \"epochs\": %" PRIu32
                   ", \"micro_batches\": %.2f, \"cpu_seconds\": %.2f}\n",
          step->step, step->warm ? "true" : "false", step->loss,
          step->ratio > 0 ? 1 / step->ratio : 0, step->ratio, step->valid, step->entropy, step->kl,
          step->epochs, step->micro_batches, (double)clock() / CLOCKS_PER_SEC);
  if (fflush(log) == 0 && !ferror(log)) return PSPLIT_OK;
  return cannot_log(s->log, strerror(errno), diag);
}

static psplit_code say(psplit_policy_learner *learner, const psplit_policy_step *s,
                       psplit_diag *diag) {
  double ratio, valid;
  const psplit_code code = psplit_policy_learner_evaluate(learner, diag, &ratio, &valid);
  cli_make_room();
  if (code == PSPLIT_OK)
    printf("step %" PRIu32
           "%s: value over bound %.4f on the corpus, %.1f %% valid, entropy %.3f, "
           "KL %.4f, %.1f s of CPU time\n",
           s->step, s->warm ? " (warm)" : "", ratio, 100 * valid, s->entropy, s->kl,
           (double)clock() / CLOCKS_PER_SEC);
  fflush(stdout);
  return code;
}

/* Steps done and steps in all, for the thread that shows them. */
static atomic_uint_least64_t steps_done, steps_all;

/* A cli_counter. */
static uint64_t count_steps(void *user, uint64_t *out_all) {
  (void)user;
  *out_all = atomic_load(&steps_all);
  return atomic_load(&steps_done);
}

/* Where runs are noisy, reinforcement alone does not end at the best split that was run: the last
 * steps are on that one, as those on proved optima are. */
static psplit_code settle_on_best(psplit_policy_learner *learner, measure *runs, uint32_t n,
                                  psplit_diag *diag) {
  enum { MOST_STEPS = 300 };
  psplit_code code = PSPLIT_OK;
  cli_doing("running the best splits again");
  for (uint32_t problem = 0; problem < n && code == PSPLIT_OK; problem++) {
    const uint32_t *stage;
    uint32_t n_nodes, n_steps;
    code = measure_choose(runs, problem, &stage, &n_nodes, diag);
    if (code == PSPLIT_OK && stage)
      code =
        psplit_policy_learner_imitate(learner, problem, stage, n_nodes, MOST_STEPS, diag, &n_steps);
    if (code == PSPLIT_OK && stage && n_steps == MOST_STEPS)
      cli_warn(
        "the most likely choices are still not the best split that was run, after %d steps on it",
        (int)MOST_STEPS);
  }
  return code;
}

static psplit_code learn(psplit_policy *policy, psplit_policy_learner *learner, measure *runs,
                         uint32_t n_problems, const settings *s, FILE **io_log, psplit_diag *diag) {
  enum { SAVE_EVERY = 20, SAY_EVERY = 100 };
  psplit_code code = PSPLIT_OK;
  psplit_policy_step step = {0};
  cli_doing("learning");
  atomic_store(&steps_all,
               (uint64_t)s->options.warm_steps + s->options.steps + s->options.schedule_steps);
  cli_count_by(count_steps, NULL, "steps");
  if (s->resume) code = psplit_policy_learner_load(learner, s->state, diag);
  for (bool done = false; code == PSPLIT_OK;) {
    code = psplit_policy_learner_step(learner, diag, &step, &done);
    if (code != PSPLIT_OK || done) break;
    atomic_store(&steps_done, step.step);
    if (*io_log) code = log_step(s, *io_log, &step, diag);
    if (code == PSPLIT_OK && s->state && step.step % SAVE_EVERY == 0)
      code = psplit_policy_learner_save(learner, s->state, diag);
    if (code == PSPLIT_OK && !s->quiet && step.step % SAY_EVERY == 0)
      code = say(learner, &step, diag);
  }
  if (code == PSPLIT_OK && s->state) code = psplit_policy_learner_save(learner, s->state, diag);
  if (code == PSPLIT_OK && s->measured.run) code = settle_on_best(learner, runs, n_problems, diag);
  if (code == PSPLIT_OK && !s->quiet) code = say(learner, &step, diag);
  if (code == PSPLIT_OK && *io_log) {
    FILE *log = *io_log;
    *io_log = NULL;
    if (fclose(log) != 0) code = cannot_log(s->log, strerror(errno), diag);
  }
  return code == PSPLIT_OK ? psplit_policy_write(policy, s->output, diag) : code;
}

/* Fills the settings; 0 to go on, else the exit status. */
static int parse(settings *s, int argc, char **argv) {
  const char *argument;
  psplit_policy_learn_options_init(&s->options);
  plan_options_init(&s->plan);
  for (int id; (id = cli_next(&PROGRAM, argc, argv, &argument)) != CLI_END;)
    if (id == CLI_BAD || !take_option(s, id, (char *)(uintptr_t)argument))
      return cli_finish(cli_exit_status(PSPLIT_USAGE));
  if (optind == argc) return cli_usage(&PROGRAM, "a corpus is needed: problems, or a directory");
  if (!s->output) return cli_usage(&PROGRAM, "-o FILE is needed");
  if (s->resume && !s->state) return cli_usage(&PROGRAM, "--resume needs --state FILE");
  s->measured.run = s->options.reward == PSPLIT_REWARD_MEASURED;
  for (int i = optind; i < argc; i++) {
    if (is_model(argv[i]) && s->measured.n_stages == 0 && !s->plan.devices)
      return cli_usage(&PROGRAM,
                       "%s is a model: -k N or --devices FILE is needed for the number of stages",
                       argv[i]);
    if (!is_model(argv[i]) && s->measured.run)
      return cli_usage(&PROGRAM, "--reward measured runs models, *.onnx, which %s is not", argv[i]);
  }
  s->options.cancel = cli_ends(CLI_ENDS_SOON);
  s->measured.plan = &s->plan;
  s->measured.cancel = s->options.cancel;
  return 0;
}

/* All that learning takes. */
typedef struct school {
  psplit_policy *policy;
  psplit_policy_learner *learner;
  measure *runs;
  FILE *log;
} school;

static psplit_code open_school(settings *s, int argc, char **argv, psplit_diag *diag, school *out) {
  psplit_code code = plan_load_files(&s->plan, diag);
  if (code == PSPLIT_OK) code = check_outputs(s, argc, argv, diag);
  if (code == PSPLIT_OK && s->log) code = open_log(s->log, s->resume, diag, &out->log);
  if (code == PSPLIT_OK)
    code = s->from ? psplit_policy_read(s->from, diag, &out->policy)
                   : psplit_policy_create(s->options.seed, diag, &out->policy);
  if (code == PSPLIT_OK) code = measure_create(&s->measured, diag, &out->runs);
  s->options.measure = measure_split;
  s->options.measure_user = out->runs;
  if (code == PSPLIT_OK)
    code = psplit_policy_learner_create(out->policy, &s->options, diag, &out->learner);
  return code;
}

static psplit_code add_corpus(const settings *s, int argc, char **argv, const school *in,
                              psplit_diag *diag) {
  psplit_code code = PSPLIT_OK;
  corpus all = {.s = s, .learner = in->learner, .runs = in->runs};
  for (int i = optind; i < argc && code == PSPLIT_OK; i++)
    code = visit_all(argv[i], visit_to_add, &all, diag);
  if (code == PSPLIT_OK) code = measure_check_names(in->runs, diag);
  cli_make_room();
  if (code == PSPLIT_OK && !s->quiet)
    printf("%" PRIu32 " problem%s, %" PRIu32 " parameters, %.1f s of CPU time to solve them\n",
           all.n_problems, all.n_problems == 1 ? "" : "s", psplit_policy_n_parameters(in->policy),
           (double)clock() / CLOCKS_PER_SEC);
  fflush(stdout);
  return code;
}

int main(int argc, char **argv) {
  static settings s;
  psplit_diag diag = {0};
  school in = {0};
  const int status = parse(&s, argc, argv);
  if (status) return status;
  psplit_code code = open_school(&s, argc, argv, &diag, &in);
  if (code == PSPLIT_OK) code = add_corpus(&s, argc, argv, &in, &diag);
  if (code == PSPLIT_OK)
    code = learn(in.policy, in.learner, in.runs, (uint32_t)(argc - optind), &s, &in.log, &diag);
  if (code == PSPLIT_OK && !s.quiet) code = measure_print(in.runs, stdout, &diag);
  if (in.log) fclose(in.log);
  psplit_policy_learner_destroy(in.learner);
  psplit_policy_destroy(in.policy);
  measure_destroy(in.runs);
  plan_options_fini(&s.plan);
  return cli_finish(code == PSPLIT_OK ? 0 : cli_fail(&diag));
}
