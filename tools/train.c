/* onnx-pipeline-train: train the stages of a split, each on a device of its own. */
#include <inttypes.h>
#include <math.h>
#include <psplit/checkpoint.h>
#include <psplit/emit.h>
#include <psplit/file.h>
#include <psplit/train.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "cli.h"
#include "shared_options.h"

#include <getopt.h>

#include "ort_options.h"
#include "places.h"
#include "print_training.h"
#ifdef PSPLIT_HAS_MPI
#include <psplit/run_mpi.h>
#else
#define PSPLIT_HAS_MPI 0
#endif

enum {
  OPT_DATA = 256,
  OPT_EVAL_DATA,
  OPT_STEPS,
  OPT_EPOCHS,
  OPT_SEED,
  OPT_IN_ORDER,
  OPT_SCHEDULE,
  OPT_REPLICAS,
  OPT_SMOOTH,
  OPT_LR,
  OPT_LR_SCHEDULE,
  OPT_LR_LAST,
  OPT_WARMUP,
  OPT_CLIP,
  OPT_NAN,
  OPT_EVAL_EVERY,
  OPT_CHECKPOINT,
  OPT_CHECKPOINT_EVERY,
  OPT_RESUME,
  OPT_EXPORT,
  OPT_MODEL,
  OPT_FORCE,
  OPT_LOG_EVERY,
  OPT_ONNXRUNTIME,
  OPT_TIMEOUT,
  OPT_TRANSPORT,
  OPT_CHUNK,
  OPT_JSON,
  OPT_TRACE,
  OPT_MAX_TEXT,
  OPT_MAX_UNPACKED,
};

static const cli_option OPTIONS[] = {
  {0, NULL, NULL, "Data:"},
  {OPT_DATA, "data", "[NAME=]FILE",
   "samples of an input, one a row of a .npy or of arrays in an .npz (repeatable)"},
  {OPT_EVAL_DATA, "eval-data", "[NAME=]FILE",
   "the same, for --eval-every: nothing is learned from them"},
  {'i', "input", "[NAME=]FILE",
   "an input that is the same for all samples: .npy, .npz, .pb (repeatable)"},
  {'b', "batch", "N", "samples in a step, a multiple of --micro-batches; default: all"},
  {'m', "micro-batches", "M", "parts that a batch is cut into, to fill the pipeline; default: 8"},
  {OPT_IN_ORDER, "in-order", NULL, "take samples in the order of the files, not shuffled"},
  {OPT_SEED, "seed", "N", "of what is shuffled and drawn; default: 1"},
  {0, NULL, NULL, "How it trains:"},
  {'n', "steps", "N", "steps in all; default: as --epochs says"},
  {OPT_EPOCHS, "epochs", "N", "how often all data is gone through, instead of --steps; default: 1"},
  {OPT_SCHEDULE, "schedule", "fill-drain|1f1b|interleaved[:CHUNKS]|zb-h1",
   "order of the work; default: 1f1b. zb-h1 needs stages made with --weight-gradients apart; "
   "interleaved gives each device CHUNKS stages, default: 2"},
  {OPT_REPLICAS, "replicas", "R",
   "copies of all devices, which share the micro-batches; default: 1"},
  {OPT_SMOOTH, "smooth", "gamma=G,samples=K",
   "run each micro-batch K times, with weights moved by G * N(0, 1) (random smoothing)"},
  {OPT_LR, "lr", "RATE", "learning rate, at its highest; default: 0.001"},
  {OPT_LR_SCHEDULE, "lr-schedule", "constant|linear|cosine",
   "how the rate falls behind the warm-up; default: constant"},
  {OPT_LR_LAST, "lr-last", "RATE", "what linear and cosine fall to; default: 0"},
  {OPT_WARMUP, "warmup-steps", "N", "first steps, in which the rate rises; default: 0"},
  {OPT_CLIP, "clip-norm", "NORM",
   "scale all gradients down where their norm together is larger; default: never"},
  {OPT_NAN, "nan", "stop|skip",
   "at a loss or gradient that is not finite: stop (default), or go on without that update"},
  {OPT_EVAL_EVERY, "eval-every", "STEPS",
   "steps between two looks at --eval-data, and one at the end; default: none"},
  {OPT_CHECKPOINT, "checkpoint", "DIR",
   "write a checkpoint at the end and at Ctrl-C: weights and state as safetensors"},
  {OPT_CHECKPOINT_EVERY, "checkpoint-every", "STEPS",
   "and behind each so many steps; default: at the end alone"},
  {OPT_RESUME, "resume", "DIR", "go on from a checkpoint, of any number of stages"},
  {OPT_EXPORT, "export", "FILE",
   "write the model with the weights of --checkpoint, at the end; without DIR those of --resume, "
   "at once"},
  {OPT_MODEL, "model", "FILE", "the model that was split, for --export"},
  {OPT_FORCE, "force", NULL, "replace the file that --export names"},
  {0, NULL, NULL, "How ONNX Runtime runs each stage, or STAGE:"},
  SHARED_ONNXRUNTIME(OPT_ONNXRUNTIME),
  ORT_OPTIONS,
  {OPT_LEVEL, "optimization", "[STAGE=]LEVEL",
   "0, 1 (default), 2 or 99: of ONNX Runtime's graph optimiser"},
  SHARED_TIMEOUT(OPT_TIMEOUT, "longest time for a piece of a stage"),
#if PSPLIT_HAS_MPI
  SHARED_TRANSPORT(OPT_TRANSPORT, "device"),
  SHARED_CHUNK(OPT_CHUNK),
#endif
  {0, NULL, NULL, "What it tells:"},
  {OPT_LOG_EVERY, "log-every", "STEPS", "steps between two lines; default: 20 lines in all"},
  {OPT_JSON, "json", NULL, "print the report as JSON, and no lines"},
  SHARED_TRACE(OPT_TRACE),
  {0, NULL, NULL, "General:"},
  CLI_MAX_TEXT(OPT_MAX_TEXT),
  CLI_MAX_UNPACKED(OPT_MAX_UNPACKED),
  {'q', "quiet", NULL, "no lines, table or progress"},
  CLI_TALK_OPTIONS,
  CLI_LAST_OPTIONS,
};

static const cli PROGRAM = {
  "onnx-pipeline-train", "DIR --data [NAME=]FILE... [OPTION]...",
  "Trains the stages in DIR, which onnx-pipeline-split --training wrote, in ONNX Runtime: each "
  "stage on\na device of its own, micro-batches of a batch one behind the other.\n\n"
  "Example: onnx-pipeline-train out --data data.npz --batch 64 --epochs 10 --checkpoint trained",
  OPTIONS, sizeof OPTIONS / sizeof *OPTIONS};

typedef struct files {
  psplit_feed_file *list;
  size_t n;
} files;

typedef struct settings {
  const char *directory, *onnxruntime, *trace, *export, *model;
  bool json, quiet, mpi, force, leads; /* leads: rank 0 */
  uint64_t log_every;
  files data, eval_data, fixed;
  ort_settings ort;
  psplit_train_options train;
} settings;

#if PSPLIT_HAS_MPI
static uint32_t ranks; /* 0: MPI was not started */
#endif

/* [NAME=]FILE; the text is argv's, cut in two at the first '='. */
static void add_file(files *to, const char *argument) {
  to->list = cli_need(cli_grow(to->list, to->n, sizeof *to->list));
  char *text = (char *)(uintptr_t)argument, *at = strchr(text, '=');
  if (at) *at = '\0';
  to->list[to->n++] = (psplit_feed_file){at ? text : NULL, at ? at + 1 : text};
}

static bool take_schedule(settings *s, const char *argument) {
  static const psplit_schedule_kind KINDS[] = {PSPLIT_SCHEDULE_FILL_DRAIN, PSPLIT_SCHEDULE_1F1B,
                                               PSPLIT_SCHEDULE_INTERLEAVED,
                                               PSPLIT_SCHEDULE_ZERO_BUBBLE};
  static const char MANY[] = "interleaved:";
  enum { MOST_CHUNKS = 1024 };
  uint64_t n_chunks = 2;
  int choice = 2;
  if (strncmp(argument, MANY, sizeof MANY - 1) == 0) {
    if (!cli_count(&PROGRAM, "schedule interleaved", argument + sizeof MANY - 1, 2, MOST_CHUNKS,
                   &n_chunks))
      return false;
  } else if (!cli_choice(&PROGRAM, "schedule", argument, &choice)) {
    return false;
  }
  s->train.schedule = KINDS[choice];
  s->train.n_chunks = s->train.schedule == PSPLIT_SCHEDULE_INTERLEAVED ? (uint32_t)n_chunks : 1;
  return true;
}

/* gamma=G,samples=K, in any order; the text is argv's, cut in two. */
static bool take_smooth(settings *s, const char *argument) {
  static const char GAMMA[] = "gamma=", SAMPLES[] = "samples=";
  char *rest = (char *)(uintptr_t)argument;
  bool has_gamma = false, has_samples = false;
  while (rest) {
    char *word = rest;
    if ((rest = strchr(word, ','))) *rest++ = '\0';
    if (!has_gamma && strncmp(word, GAMMA, sizeof GAMMA - 1) == 0) {
      has_gamma = true;
      if (!cli_real(&PROGRAM, "smooth gamma", word + sizeof GAMMA - 1, 0, 1e30,
                    &s->train.smooth_gamma))
        return false;
    } else if (!has_samples && strncmp(word, SAMPLES, sizeof SAMPLES - 1) == 0) {
      has_samples = true;
      if (!cli_count32(&PROGRAM, "smooth samples", word + sizeof SAMPLES - 1, 1, 1 << 20,
                       &s->train.smooth_samples))
        return false;
    } else {
      cli_usage(&PROGRAM, "--smooth takes gamma=G,samples=K, not %s", word);
      return false;
    }
  }
  if (!has_gamma || !has_samples) cli_usage(&PROGRAM, "--smooth takes both gamma=G,samples=K");
  return has_gamma && has_samples;
}

/* An option of how it trains; false after an error line, or where `id` is none of them. */
static bool take_training(settings *s, int id, const char *argument) {
  static const double MOST = 1e38;
  const uint64_t most_steps = UINT64_C(1) << 50;
  psplit_train_options *o = &s->train;
  int choice = 0;
  bool good;
  switch (id) {
    case 'n': return cli_count(&PROGRAM, "steps", argument, 1, most_steps, &o->n_steps);
    case OPT_EPOCHS: return cli_count(&PROGRAM, "epochs", argument, 1, UINT32_MAX, &o->n_epochs);
    case OPT_REPLICAS:
      return cli_count32(&PROGRAM, "replicas", argument, 1, 1 << 16, &o->n_replicas);
    case OPT_SMOOTH: return take_smooth(s, argument);
    case OPT_SCHEDULE: return take_schedule(s, argument);
    case OPT_LR: return cli_real(&PROGRAM, "lr", argument, 0, MOST, &o->learning_rate);
    case OPT_LR_SCHEDULE:
      good = cli_choice(&PROGRAM, "lr-schedule", argument, &choice);
      o->rate = (psplit_train_rate)choice;
      return good;
    case OPT_LR_LAST:
      return cli_real(&PROGRAM, "lr-last", argument, 0, MOST, &o->last_learning_rate);
    case OPT_WARMUP:
      return cli_count(&PROGRAM, "warmup-steps", argument, 0, most_steps, &o->warmup_steps);
    case OPT_CLIP: return cli_real(&PROGRAM, "clip-norm", argument, 1e-30, 1e30, &o->clip_norm);
    case OPT_NAN:
      good = cli_choice(&PROGRAM, "nan", argument, &choice);
      o->on_nan = (psplit_on_nan)choice;
      return good;
    case OPT_CHECKPOINT: o->checkpoint = argument; return true;
    case OPT_CHECKPOINT_EVERY:
      return cli_count(&PROGRAM, "checkpoint-every", argument, 1, most_steps, &o->checkpoint_every);
    case OPT_RESUME: o->resume = argument; return true;
    case OPT_EVAL_EVERY:
      return cli_count(&PROGRAM, "eval-every", argument, 1, most_steps, &o->eval_every);
    default: return ort_option(&PROGRAM, &s->ort, id, argument);
  }
}

/* One option; false after an error line. */
static bool take(settings *s, int id, const char *argument) {
  switch (id) {
    case OPT_DATA: add_file(&s->data, argument); return true;
    case OPT_EVAL_DATA: add_file(&s->eval_data, argument); return true;
    case 'i': add_file(&s->fixed, argument); return true;
    case 'b': return cli_count32(&PROGRAM, "batch", argument, 1, 1 << 30, &s->train.batch);
    case 'm':
      return cli_count32(&PROGRAM, "micro-batches", argument, 1, 1 << 20,
                         &s->train.n_micro_batches);
    case OPT_IN_ORDER: s->train.in_order = true; return true;
    case OPT_SEED: return cli_count(&PROGRAM, "seed", argument, 0, UINT64_MAX, &s->train.seed);
    case OPT_ONNXRUNTIME: s->onnxruntime = argument; return true;
    case OPT_TIMEOUT:
      if (!cli_real(&PROGRAM, "timeout", argument, 0.1, 1e9, &s->train.timeout_s)) return false;
      s->train.stall_timeout_s = s->train.timeout_s;
      return true;
#if PSPLIT_HAS_MPI
    case OPT_TRANSPORT: return shared_transport(&PROGRAM, argument, &s->mpi);
    case OPT_CHUNK: return cli_size(&PROGRAM, "chunk", argument, 1 << 30, &s->train.chunk_bytes);
#endif
    case OPT_LOG_EVERY:
      return cli_count(&PROGRAM, "log-every", argument, 1, UINT64_MAX, &s->log_every);
    case OPT_JSON: s->json = true; return true;
    case OPT_TRACE: s->trace = argument; return true;
    case OPT_EXPORT: s->export = argument; return true;
    case OPT_MODEL: s->model = argument; return true;
    case OPT_FORCE: s->force = true; return true;
    case OPT_MAX_UNPACKED:
      return cli_mebibytes(&PROGRAM, "max-unpacked", argument, &s->train.max_unpacked_bytes);
    case OPT_MAX_TEXT: return cli_max_text(&PROGRAM, argument, &s->ort.max_text_bytes);
    case 'q': s->quiet = true; return true;
    default: return take_training(s, id, argument);
  }
}

/* -1: go on; else the exit status. */
static int parse(int argc, char **argv, settings *s) {
  const char *argument;
  for (int id; (id = cli_next(&PROGRAM, argc, argv, &argument)) != CLI_END;)
    if (!take(s, id, argument)) return 2;
  if (!s->export != !s->model) return cli_usage(&PROGRAM, "--export and --model go together");
  if (s->export && optind == argc && s->train.resume) return -1;
  if (optind + 1 != argc) return cli_usage(&PROGRAM, "one directory is needed");
  if (s->export && !s->train.checkpoint)
    return cli_usage(&PROGRAM, "--export needs --checkpoint DIR, or --resume DIR and no stages");
  if (!s->train.eval_every != !s->eval_data.n)
    return cli_usage(&PROGRAM, "--eval-every and --eval-data go together");
  if (s->train.checkpoint_every && !s->train.checkpoint)
    return cli_usage(&PROGRAM, "--checkpoint-every needs --checkpoint DIR");
  s->directory = argv[optind];
  s->train.data = s->data.list;
  s->train.n_data = s->data.n;
  s->train.eval_data = s->eval_data.list;
  s->train.n_eval_data = s->eval_data.n;
  s->train.fixed = s->fixed.list;
  s->train.n_fixed = s->fixed.n;
  return -1;
}

/* Ends the process, and so the threads that are left. */
static void give_up(void *user, const psplit_diag *diag) {
  (void)user;
  cli_fail(diag);
#if PSPLIT_HAS_MPI
  if (ranks) psplit_mpi_abort(cli_end_status(diag->code));
#endif
  _exit(cli_end_status(diag->code));
}

/* Of psplit_train_options: the one that a signal asks for is written, however long that takes. */
static void wait_for_checkpoint(void *user, bool begins) {
  (void)user;
  cli_ends(begins ? CLI_ENDS_BEHIND : CLI_ENDS_SOON);
}

/* Steps done and steps in all, for the thread that shows them. */
static atomic_uint_least64_t steps_done, steps_all;

/* A cli_counter. */
static uint64_t count_steps(void *user, uint64_t *out_all) {
  (void)user;
  *out_all = atomic_load(&steps_all);
  return atomic_load(&steps_done);
}

static void print_step(void *user, const psplit_train_step *t) {
  const settings *s = user;
  atomic_store(&steps_all, t->n_steps);
  atomic_store(&steps_done, t->step);
  if (s->json || s->quiet) return;
  enum { LINES = 20 };
  const uint64_t each = s->log_every ? s->log_every : (t->n_steps + LINES - 1) / LINES;
  if (t->step % each != 0 && t->step != 1 && t->step != t->n_steps && !t->evaluated && !t->skipped)
    return;
  cli_make_room();
  print_training_step(t, stdout);
  fflush(stdout);
}

/* Who asks for no more steps than a checkpoint has is told so. */
static void tell_nothing_left(const settings *s, const psplit_train_report *r) {
  if (!s->train.resume || r->n_steps || r->first_step < r->all_steps) return;
  cli_warn("%s is at step %" PRIu64 ", and --%s asks for %" PRIu64
           " in all: nothing was left to do",
           s->train.resume, r->first_step, s->train.n_steps ? "steps" : "epochs", r->all_steps);
}

static psplit_code tell(const settings *s, const psplit_training_run *run, psplit_diag *diag) {
  char *text = NULL;
  psplit_code code = PSPLIT_OK;
  tell_nothing_left(s, psplit_training_run_report(run));
  if (s->trace) {
    code = psplit_training_run_trace(run, diag, &text);
    if (code == PSPLIT_OK)
      code = psplit_file_write(s->trace, text, strlen(text), s->train.cancel, diag);
    free(text);
    text = NULL;
  }
  if (code == PSPLIT_OK && s->json) {
    code = psplit_training_run_json(run, diag, &text);
    if (code == PSPLIT_OK) fputs(text, stdout);
    free(text);
  } else if (code == PSPLIT_OK && !s->quiet) {
    print_training_table(psplit_training_run_report(run), stdout);
  }
  if (fflush(stdout) != 0 || ferror(stdout))
    code = psplit_diag_fail(diag, PSPLIT_IO, "standard output cannot be written");
  return code;
}

/* The trained model, from a checkpoint. */
static psplit_code put_model(const settings *s, const char *checkpoint, psplit_diag *diag) {
  psplit_emit_options how;
  psplit_checkpoint *opened = NULL;
  psplit_model *model = NULL;
  psplit_emit_options_init(&how);
  how.replace = s->force;
  how.cancel = s->train.cancel;
  psplit_code code = psplit_checkpoint_open(checkpoint, diag, &opened);
  if (code == PSPLIT_OK) code = psplit_model_open(s->model, NULL, diag, &model);
  if (code == PSPLIT_OK) code = psplit_checkpoint_export(opened, model, s->export, &how, diag);
  psplit_model_close(model);
  psplit_checkpoint_close(opened);
  return code;
}

/* What is written may not name a file that is read. */
static psplit_code check_unread(const settings *s, const char *path, psplit_diag *diag) {
  const files *const all[] = {&s->data, &s->eval_data, &s->fixed};
  psplit_code code = PSPLIT_OK;
  if (s->ort.devices_file && cli_is_file(s->ort.devices_file))
    code = place_check_unread(path, s->ort.devices_file, diag);
  for (size_t k = 0; k < sizeof all / sizeof *all; k++)
    for (size_t i = 0; i < all[k]->n && code == PSPLIT_OK; i++)
      code = place_check_unread(path, all[k]->list[i].path, diag);
  return code;
}

static psplit_code check_outside(const char *path, const char *checkpoint, psplit_diag *diag) {
  psplit_diag inside = {0};
  if (place_check_outside(path, checkpoint, &inside) != PSPLIT_USAGE) return PSPLIT_OK;
  return psplit_diag_fail(diag, PSPLIT_USAGE,
                          "%s lies in the checkpoint %s, which holds its own files alone; give "
                          "another place",
                          path, checkpoint);
}

/* Nor one of the split, nor one that is written as well. */
static psplit_code check_trace(const settings *s, const psplit_pipeline_info *pipeline,
                               psplit_diag *diag) {
  psplit_code code = check_unread(s, s->trace, diag);
  if (code == PSPLIT_OK) code = ort_check_unread(s->trace, s->directory, pipeline, diag);
  if (code == PSPLIT_OK && s->model) code = place_check_unread(s->trace, s->model, diag);
  if (code == PSPLIT_OK && s->export) code = place_check_apart(s->trace, s->export, diag);
  const char *const checkpoints[] = {s->train.checkpoint, s->train.resume};
  for (size_t i = 0; i < 2 && code == PSPLIT_OK; i++)
    if (checkpoints[i]) code = check_outside(s->trace, checkpoints[i], diag);
  return code == PSPLIT_OK ? place_check(s->trace, NULL, diag) : code;
}

/* Whether the trained model can be written, before the time is taken to train it. */
static psplit_code check_export(const settings *s, const char *checkpoint, psplit_diag *diag) {
  psplit_model *model = NULL;
  psplit_code code = psplit_model_open(s->model, NULL, diag, &model);
  if (code == PSPLIT_OK) code = check_outside(s->export, checkpoint, diag);
  if (code == PSPLIT_OK && s->train.resume) code = check_outside(s->export, s->train.resume, diag);
  if (code == PSPLIT_OK) code = psplit_emit_file_check(model, s->export, s->force, diag);
  if (code == PSPLIT_OK) code = place_check_split(s->export, diag);
  psplit_model_close(model);
  return code == PSPLIT_OK ? check_unread(s, s->export, diag) : code;
}

/* Trains this process's part: all devices, or that of this rank. */
static psplit_code take_through(const settings *s, const psplit_onnxruntime *ort,
                                psplit_pipeline *pipeline, psplit_diag *diag,
                                psplit_training_run **out) {
#if PSPLIT_HAS_MPI
  if (s->mpi) return psplit_mpi_train(ort, pipeline, &s->train, diag, out);
#endif
  return psplit_train(ort, pipeline, &s->train, diag, out);
}

/* The model of a checkpoint that there is. */
static psplit_code put_trained(const settings *s, psplit_diag *diag) {
  const psplit_code code = check_export(s, s->train.resume, diag);
  return code == PSPLIT_OK ? put_model(s, s->train.resume, diag) : code;
}

static psplit_code train(settings *s, psplit_diag *diag) {
  psplit_pipeline *pipeline = NULL;
  psplit_onnxruntime *ort = NULL;
  psplit_training_run *made = NULL;
  psplit_pipeline_options reading;
  psplit_pipeline_options_init(&reading);
  reading.max_text_bytes = s->ort.max_text_bytes;
  reading.for_training = true;
  cli_doing("reading %s", s->directory);
  psplit_code code = psplit_pipeline_open(s->directory, &reading, diag, &pipeline);
  const psplit_pipeline_info *info = pipeline ? psplit_pipeline_get_info(pipeline) : NULL;
  if (code == PSPLIT_OK && s->trace) code = check_trace(s, info, diag);
  if (code == PSPLIT_OK && s->export && s->leads)
    code = ort_check_unread(s->export, s->directory, info, diag);
  if (code == PSPLIT_OK && s->export && s->leads) code = check_export(s, s->train.checkpoint, diag);
  if (code == PSPLIT_OK && s->train.checkpoint && s->leads)
    code = place_check_split(s->train.checkpoint, diag);
  if (code == PSPLIT_OK) code = ort_settings_apply(&s->ort, info, diag);
  s->train.sessions = s->ort.stages;
  s->train.n_sessions = info ? info->n_stages : 0;
  if (code == PSPLIT_OK) code = psplit_onnxruntime_open(s->onnxruntime, diag, &ort);
  cli_doing("training %s", s->directory);
  cli_count_by(count_steps, NULL, "steps");
  if (code == PSPLIT_OK) code = take_through(s, ort, pipeline, diag, &made);
  cli_doing("writing what was trained");
  cli_make_room();
  if (code == PSPLIT_OK && made) code = tell(s, made, diag);
  if (code == PSPLIT_OK && made && s->export) code = put_model(s, s->train.checkpoint, diag);
  psplit_training_run_destroy(made);
  psplit_onnxruntime_close(ort);
  psplit_pipeline_close(pipeline);
  return code;
}

int main(int argc, char **argv) {
  settings s = {.ort = {.trains = true, .no_replicas = true}};
  psplit_diag diag = {0};
  psplit_code code = PSPLIT_OK;
  uint32_t rank = 0;
  psplit_train_options_init(&s.train);
  s.train.give_up = give_up;
#if PSPLIT_HAS_MPI
  s.mpi = psplit_mpi_launched();
#endif
  int status = parse(argc, argv, &s);
  if (status < 0) {
#if PSPLIT_HAS_MPI
    if (s.mpi) code = psplit_mpi_begin(&diag, &rank, &ranks);
#endif
    s.train.progress = print_step;
    s.train.progress_user = &s;
    s.leads = rank == 0;
    s.train.cancel = cli_ends(CLI_ENDS_SOON);
    s.train.saving = wait_for_checkpoint;
    signal(SIGPIPE, SIG_IGN); /* a reader that has gone is an error like any other */
    if (code == PSPLIT_OK && !s.directory)
      code = s.leads ? put_trained(&s, &diag) : PSPLIT_OK;
    else if (code == PSPLIT_OK)
      code = train(&s, &diag);
    status = cli_end_status(code);
    if (code != PSPLIT_OK) cli_fail(&diag);
  }
  status = cli_talk_end(status);
  free(s.data.list);
  free(s.eval_data.list);
  free(s.fixed.list);
  ort_settings_fini(&s.ort);
#if PSPLIT_HAS_MPI
  if (ranks && code != PSPLIT_OK) psplit_mpi_abort(status);
  if (ranks) psplit_mpi_end();
#endif
  return status;
}
