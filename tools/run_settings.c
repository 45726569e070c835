#include "run_settings.h"

#include "cli.h"
#include "resume.h"
#include "shared_options.h"

#include <getopt.h>

enum {
  OPT_WARMUP = 256,
  OPT_DEPTH,
  OPT_PIN,
  OPT_NO_PIN,
  OPT_ALONE,
  OPT_TRANSPORT,
  OPT_TIMEOUT,
  OPT_CHUNK,
  OPT_JSON,
  OPT_TRACE,
  OPT_STREAM,
  OPT_PROFILE,
  OPT_MAX_TEXT,
  OPT_ON_ERROR,
  OPT_DEADLINE,
  OPT_RESUME,
};

static const cli_option OPTIONS[] = {
  {0, NULL, NULL, "Inputs and outputs:"},
  FEED_OPTIONS,
  {OPT_RANDOM, "random", NULL, "fill inputs that have no file with random numbers"},
  {OPT_STREAM, "stream", NULL,
   "process micro-batches as they arrive, until the inputs end: from standard input (\"-\"), pipes "
   "or files with {}"},
  {'o', "output", "DIR",
   "write the outputs of each micro-batch as .npy files; if it is a pipe or \"-\", as a stream"},
  {0, NULL, NULL, "Execution:"},
  {'m', "micro-batches", "M",
   "number of micro-batches; default: 1, with --profile 20, with --stream all"},
  {OPT_RESUME, "resume-from", "N|last",
   "start at micro-batch N (from 0), or after those in -o DIR; --micro-batches still counts all"},
  {OPT_WARMUP, "warmup", "N", "micro-batches to run before timing starts; default: 1"},
  ORT_LIBRARY_OPTIONS,
  {OPT_DEPTH, "depth", "N",
   "micro-batches that may be queued between two stages; default: 2 to 32"},
  {OPT_PIN, "pin", NULL, "pin each stage to a core of its own, unless other work needs it"},
  {OPT_NO_PIN, "no-pin", NULL, "do not pin stages to cores (default)"},
  {OPT_ALONE, "one-at-a-time", NULL, "run one stage at a time, to measure each in isolation"},
  {OPT_ON_ERROR, "on-error", "stop|skip",
   "if a micro-batch fails, deliver those before it and stop (default), or skip it"},
  {OPT_DEADLINE, "deadline", "MS",
   "time limit of a micro-batch, which fails after it; default: none"},
  SHARED_TIMEOUT(OPT_TIMEOUT, "time limit for opening a stage, and for each of its micro-batches"),
#if PSPLIT_HAS_MPI
  SHARED_TRANSPORT(OPT_TRANSPORT, "stage"),
  SHARED_CHUNK(OPT_CHUNK),
#endif
  {0, NULL, NULL, "ONNX Runtime sessions, of each stage or of STAGE:"},
  ORT_OPTIONS,
  ORT_REPLICAS_OPTION,
  ORT_LEVEL_OPTION,
  {0, NULL, NULL, "Reports:"},
  {OPT_JSON, "json", NULL, "print the report as JSON instead of the table"},
  {OPT_PROFILE, "profile", "FILE",
   "profile MODEL, or the stages in DIR one at a time, and write the costs of nodes, for --costs"},
  SHARED_TRACE(OPT_TRACE),
  {0, NULL, NULL, "General:"},
  CLI_MAX_TEXT(OPT_MAX_TEXT),
  {'q', "quiet", NULL, "no table or progress"},
  CLI_LOGGING_OPTIONS,
  CLI_LAST_OPTIONS,
};

static const cli PROGRAM = {
  "onnx-pipeline-run", "DIR [OPTION]... | --profile FILE MODEL|DIR",
  "Runs the stages in DIR, which onnx-pipeline-split wrote, as a pipeline in ONNX Runtime.\n"
  "Reports the measured throughput next to the predicted one.\n\n"
  "Examples: onnx-pipeline-run out --random --dim batch=1 -m 100\n"
  "          onnx-pipeline-run --profile costs.json model.onnx --dim batch=1",
  OPTIONS, sizeof OPTIONS / sizeof *OPTIONS};

/* One option; false after an error line. */
static bool take(run_settings *s, int id, const char *argument) {
  int choice;
  switch (id) {
    case OPT_RANDOM: s->feed.options.random = true; return true;
    case OPT_STREAM: s->run.stream = true; return true;
    case 'o': s->run.output = argument; return true;
    case 'm':
      return cli_count32(&PROGRAM, "micro-batches", argument, 1, 10000000, &s->run.n_micro_batches);
    case OPT_RESUME: return resume_parse(&PROGRAM, argument, &s->resume);
    case OPT_WARMUP: return cli_count32(&PROGRAM, "warmup", argument, 0, 1000000, &s->run.n_warmup);
    case OPT_ONNXRUNTIME:
    case OPT_CUSTOM_OPS: return ort_library_option(&PROGRAM, &s->library, id, argument);
    case OPT_DEPTH: return cli_count32(&PROGRAM, "depth", argument, 1, 1000, &s->run.depth);
    case OPT_PIN: s->run.pin = true; return true;
    case OPT_NO_PIN: s->run.pin = false; return true;
    case OPT_ALONE: s->run.one_at_a_time = true; return true;
    case OPT_ON_ERROR:
      if (!cli_choice(&PROGRAM, "on-error", argument, &choice)) return false;
      s->run.on_error = choice ? PSPLIT_ON_ERROR_SKIP : PSPLIT_ON_ERROR_STOP;
      return true;
    case OPT_DEADLINE:
      if (!cli_real(&PROGRAM, "deadline", argument, 0.001, 1e9, &s->run.deadline_s)) return false;
      s->run.deadline_s *= 1e-3;
      return true;
    case OPT_TIMEOUT:
      return shared_timeout(&PROGRAM, argument, &s->run.timeout_s, &s->run.stall_timeout_s);
#if PSPLIT_HAS_MPI
    case OPT_TRANSPORT: return shared_transport(&PROGRAM, argument, &s->mpi);
    case OPT_CHUNK: return cli_size(&PROGRAM, "chunk", argument, 1 << 30, &s->run.chunk_bytes);
#endif
    case OPT_JSON: s->json = true; return true;
    case OPT_MAX_TEXT: return cli_max_text(&PROGRAM, argument, &s->ort.max_text_bytes);
    case OPT_TRACE: s->trace = argument; return true;
    case OPT_PROFILE: s->profile = argument; return true;
    case 'q': s->quiet = true; return true;
    default:
      return feed_option(&PROGRAM, &s->feed, id, argument) ||
             ort_option(&PROGRAM, &s->ort, id, argument);
  }
}

int run_settings_parse(int argc, char **argv, run_settings *s) {
  enum { PROFILE_RUNS = 20 };
  const char *argument;
  for (int id; (id = cli_next(&PROGRAM, argc, argv, &argument)) != CLI_END;)
    if (!take(s, id, argument)) return 2;
  if (optind + 1 != argc)
    return cli_usage(&PROGRAM,
                     s->profile ? "one model or directory is needed in addition to --profile FILE, "
                                  "which is written"
                                : "one directory is needed");
  if (s->profile && (s->run.output || s->trace || s->json || s->run.stream))
    return cli_usage(&PROGRAM, "--profile FILE takes no --output, --stream, --trace or --json");
  if (s->profile && s->resume) return cli_usage(&PROGRAM, "--profile FILE takes no --resume-from");
  if (s->profile && (s->run.on_error == PSPLIT_ON_ERROR_SKIP || s->run.deadline_s > 0))
    return cli_usage(
      &PROGRAM,
      "--profile FILE takes no --on-error skip or --deadline: times of micro-batches "
      "that fail are not those of nodes");
  if (s->resume == PSPLIT_NONE && (!s->run.output || psplit_is_tensor_stream(s->run.output)))
    return cli_usage(&PROGRAM, "--resume-from last needs --output DIR");
  if (!s->run.n_micro_batches)
    s->run.n_micro_batches = s->profile ? PROFILE_RUNS : s->run.stream ? PSPLIT_RUN_ENDLESS : 1;
  ort_settings_all(&s->ort, &s->session);
  s->run.sessions = &s->session;
  s->run.n_sessions = 1;
  s->run.feed = &s->feed.options;
  s->directory = argv[optind];
  return -1;
}

void run_settings_init(run_settings *s) {
  *s = (run_settings){.session = {.optimization = -1}};
  feed_init(&s->feed);
  psplit_run_options_init(&s->run);
  s->run.n_micro_batches = 0; /* not given */
}

void run_settings_fini(run_settings *s) {
  feed_fini(&s->feed);
  ort_settings_fini(&s->ort);
}
