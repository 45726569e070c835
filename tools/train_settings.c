#include "train_settings.h"

#include <stdlib.h>
#include <string.h>

#include "cli.h"
#include "shared_options.h"

#include <getopt.h>

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
   "samples of an input, one per row of a .npy or of the arrays in an .npz (repeatable)"},
  {OPT_EVAL_DATA, "eval-data", "[NAME=]FILE", "samples for --eval-every, which are not trained on"},
  {'i', "input", "[NAME=]FILE",
   "data for an input that is the same for all samples: .npy, .npz, .pb (repeatable)"},
  {'b', "batch", "N", "samples per step, a multiple of --micro-batches; default: all"},
  {'m', "micro-batches", "M", "micro-batches per batch; default: 8"},
  {OPT_IN_ORDER, "in-order", NULL, "do not shuffle the samples"},
  {OPT_SEED, "seed", "N", "seed of shuffling and of random masks; default: 1"},
  {0, NULL, NULL, "Training:"},
  {'n', "steps", "N", "total number of steps; default: as given by --epochs"},
  {OPT_EPOCHS, "epochs", "N", "passes over the data, instead of --steps; default: 1"},
  {OPT_SCHEDULE, "schedule", "fill-drain|1f1b|interleaved[:CHUNKS]|zb-h1",
   "pipeline schedule; default: the one that the split was planned for, fill-drain or 1f1b. zb-h1 "
   "needs a split made with --weight-gradients apart; interleaved gives each device CHUNKS stages, "
   "default: 2"},
  {OPT_REPLICAS, "replicas", "R",
   "data-parallel replicas of the pipeline, which share the micro-batches; default: 1"},
  {OPT_SMOOTH, "smooth", "gamma=G,samples=K",
   "randomized smoothing: run each micro-batch K times, with weights perturbed by G * N(0, 1)"},
  {OPT_LR, "lr", "RATE", "peak learning rate; default: 0.001"},
  {OPT_LR_SCHEDULE, "lr-schedule", "constant|linear|cosine",
   "how the rate decays after the warm-up; default: constant"},
  {OPT_LR_LAST, "lr-last", "RATE", "final rate of linear and cosine; default: 0"},
  {OPT_WARMUP, "warmup-steps", "N", "steps of linear warm-up; default: 0"},
  {OPT_CLIP, "clip-norm", "NORM", "clip the global norm of the gradients; default: no clipping"},
  {OPT_NAN, "nan", "stop|skip",
   "if a loss or gradient is not finite: stop (default), or skip that update"},
  {OPT_EVAL_EVERY, "eval-every", "STEPS",
   "evaluate on --eval-data every STEPS steps and at the end; default: never"},
  {OPT_CHECKPOINT, "checkpoint", "DIR",
   "write a checkpoint at the end and on Ctrl-C: weights and optimizer state as safetensors"},
  {OPT_CHECKPOINT_EVERY, "checkpoint-every", "STEPS",
   "also write a checkpoint every STEPS steps; default: only at the end"},
  {OPT_RESUME, "resume", "DIR", "continue from a checkpoint, of any number of stages"},
  {OPT_EXPORT, "export", "FILE",
   "write the model with the trained weights at the end; without DIR and with --resume, those of "
   "that checkpoint"},
  {OPT_MODEL, "model", "FILE", "the model that was split, for --export"},
  {OPT_FORCE, "force", NULL, "replace the file that --export names"},
  {0, NULL, NULL, "ONNX Runtime sessions, of each stage or of STAGE:"},
  ORT_LIBRARY_OPTIONS,
  ORT_OPTIONS,
  {OPT_LEVEL, "optimization", "[STAGE=]LEVEL",
   "0, 1 (default), 2 or 99: of ONNX Runtime's graph optimiser"},
  SHARED_TIMEOUT(OPT_TIMEOUT, "time limit for one micro-batch of a stage"),
#if PSPLIT_HAS_MPI
  SHARED_TRANSPORT(OPT_TRANSPORT, "device"),
  SHARED_CHUNK(OPT_CHUNK),
#endif
  {0, NULL, NULL, "Reports:"},
  {OPT_LOG_EVERY, "log-every", "STEPS",
   "steps between two lines of output; default: 20 lines in total"},
  {OPT_JSON, "json", NULL, "print the report as JSON only"},
  SHARED_TRACE(OPT_TRACE),
  {0, NULL, NULL, "General:"},
  CLI_MAX_TEXT(OPT_MAX_TEXT),
  CLI_MAX_UNPACKED(OPT_MAX_UNPACKED),
  {'q', "quiet", NULL, "no lines, table or progress"},
  CLI_LOGGING_OPTIONS,
  CLI_LAST_OPTIONS,
};

static const cli PROGRAM = {
  "onnx-pipeline-train", "DIR --data [NAME=]FILE... [OPTION]...",
  "Trains the stages in DIR, which onnx-pipeline-split --training wrote, as a pipeline in ONNX\n"
  "Runtime: each stage on a device of its own, with several micro-batches per batch.\n\n"
  "Example: onnx-pipeline-train out --data data.npz --batch 64 --epochs 10 --checkpoint trained",
  OPTIONS, sizeof OPTIONS / sizeof *OPTIONS};

/* [NAME=]FILE of option `name`; the text is argv's, cut in two at the first '='. */
static bool add_file(train_files *to, const char *name, const char *argument) {
  if (!cli_names_input(&PROGRAM, name, argument)) return false;
  to->list = cli_need(cli_grow(to->list, to->n, sizeof *to->list));
  char *text = (char *)(uintptr_t)argument, *at = strchr(text, '=');
  if (at) *at = '\0';
  to->list[to->n++] = (psplit_feed_file){at ? text : NULL, at ? at + 1 : text};
  return true;
}

static bool take_schedule(train_settings *s, const char *argument) {
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
  s->train.as_planned = false;
  s->train.n_chunks = s->train.schedule == PSPLIT_SCHEDULE_INTERLEAVED ? (uint32_t)n_chunks : 1;
  return true;
}

/* gamma=G,samples=K, in any order; the text is argv's, cut in two. */
static bool take_smooth(train_settings *s, const char *argument) {
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
static bool take_training(train_settings *s, int id, const char *argument) {
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
static bool take(train_settings *s, int id, const char *argument) {
  switch (id) {
    case OPT_DATA: return add_file(&s->data, "data", argument);
    case OPT_EVAL_DATA: return add_file(&s->eval_data, "eval-data", argument);
    case 'i': return add_file(&s->fixed, "input", argument);
    case 'b': return cli_count32(&PROGRAM, "batch", argument, 1, 1 << 30, &s->train.batch);
    case 'm':
      return cli_count32(&PROGRAM, "micro-batches", argument, 1, 1 << 20,
                         &s->train.n_micro_batches);
    case OPT_IN_ORDER: s->train.in_order = true; return true;
    case OPT_SEED: return cli_count(&PROGRAM, "seed", argument, 0, UINT64_MAX, &s->train.seed);
    case OPT_ONNXRUNTIME:
    case OPT_CUSTOM_OPS: return ort_library_option(&PROGRAM, &s->library, id, argument);
    case OPT_TIMEOUT:
      return shared_timeout(&PROGRAM, argument, &s->train.timeout_s, &s->train.stall_timeout_s);
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

int train_settings_parse(int argc, char **argv, train_settings *s) {
  const char *argument;
  for (int id; (id = cli_next(&PROGRAM, argc, argv, &argument)) != CLI_END;)
    if (!take(s, id, argument)) return 2;
  if (!s->export != !s->model)
    return cli_usage(&PROGRAM, "--export and --model must be given together");
  if (s->export && optind == argc && s->train.resume) return -1;
  if (optind + 1 != argc) return cli_usage(&PROGRAM, "one directory is needed");
  if (s->export && !s->train.checkpoint)
    return cli_usage(&PROGRAM, "--export needs --checkpoint DIR, or --resume DIR and no stages");
  if (!s->train.eval_every != !s->eval_data.n)
    return cli_usage(&PROGRAM, "--eval-every and --eval-data must be given together");
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

void train_settings_init(train_settings *s) {
  *s = (train_settings){.ort = {.trains = true, .no_replicas = true}};
  psplit_train_options_init(&s->train);
  s->train.as_planned = true;
}

void train_settings_fini(train_settings *s) {
  free(s->data.list);
  free(s->eval_data.list);
  free(s->fixed.list);
  ort_settings_fini(&s->ort);
}
