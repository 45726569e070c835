/* onnx-pipeline-run: run the stages of a split, all at work at once. */
#include <inttypes.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "cli.h"

#include <getopt.h>

#include "feed_options.h"
#include "outputs.h"
#include "places.h"
#include "profile_model.h"
#include "report.h"
#include "session_options.h"
#ifdef PSPLIT_HAS_MPI
#include "mpi_transport.h"
#else
#define PSPLIT_HAS_MPI 0
#endif

enum {
  OPT_WARMUP = 256,
  OPT_ONNXRUNTIME,
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
};

static const cli_option OPTIONS[] = {
  {0, NULL, NULL, "Inputs and outputs:"},
  FEED_OPTIONS,
  {OPT_RANDOM, "random", NULL, "random numbers for inputs that no file gives"},
  {OPT_STREAM, "stream", NULL,
   "take micro-batches as they come, until the inputs end: from standard input (\"-\"), pipes, {}"},
  {'o', "output", "DIR",
   "write each output of each micro-batch as .npy; a pipe, or \"-\": one after the other into it"},
  {0, NULL, NULL, "How it runs:"},
  {'m', "micro-batches", "M", "how many to run; default: 1, with --profile 20, of a stream all"},
  {OPT_WARMUP, "warmup", "N", "run so many before the clock starts; default: 1"},
  {OPT_ONNXRUNTIME, "onnxruntime", "FILE",
   "libonnxruntime.so; default: PSPLIT_ONNXRUNTIME, the loader's"},
  {OPT_DEPTH, "depth", "N", "micro-batches that wait between two stages; default: 2"},
  {OPT_PIN, "pin", NULL, "keep each stage on a core of its own, where nothing else needs it"},
  {OPT_NO_PIN, "no-pin", NULL, "leave that to the system; this is the default"},
  {OPT_ALONE, "one-at-a-time", NULL, "no two stages compute at once: what each takes by itself"},
#if PSPLIT_HAS_MPI
  {OPT_TRANSPORT, "transport", "WHAT",
   "threads, or mpi: a stage per rank; default: mpi under mpirun"},
  {OPT_TIMEOUT, "timeout", "SECONDS", "longest silence of a rank; default: 60"},
  {OPT_CHUNK, "chunk", "BYTES", "largest message between ranks; default: 1 GiB"},
#endif
  {0, NULL, NULL, "How ONNX Runtime runs each stage, or STAGE:"},
  SESSION_OPTIONS,
  {0, NULL, NULL, "What it tells:"},
  {OPT_JSON, "json", NULL, "print the report as JSON instead of the table"},
  {OPT_PROFILE, "profile", "FILE", "run MODEL whole and write what its nodes cost, for --costs"},
  {OPT_TRACE, "trace", "FILE", "write a trace for Perfetto or chrome://tracing"},
  {0, NULL, NULL, "General:"},
  CLI_MAX_TEXT(OPT_MAX_TEXT),
  {'q', "quiet", NULL, "no table"},
  {'h', "help", NULL, "print this"},
  {'V', "version", NULL, "print the version"},
};

static const cli PROGRAM = {"onnx-pipeline-run", "DIR [OPTION]... | --profile FILE MODEL",
                            "Runs the stages in DIR, which onnx-pipeline-split wrote, in ONNX "
                            "Runtime: all at once, each on its\n"
                            "own micro-batch. Reports how fast it was beside what was predicted.",
                            OPTIONS, sizeof OPTIONS / sizeof *OPTIONS};

enum { PROFILE_RUNS = 20 };

typedef struct settings {
  const char *directory, *onnxruntime, *output, *trace, *profile;
  bool json, quiet, mpi, stream;
  feed_settings feed;
  session_settings sessions;
  psplit_i_run_options run;
} settings;

static atomic_int interrupted;
static atomic_bool failed;
static uint32_t ranks; /* 0: MPI was not started */
static void on_signal(int number) {
  atomic_store(&interrupted, number);
  cli_leave_soon(number);
}

static pthread_mutex_t turn = PTHREAD_MUTEX_INITIALIZER;

/* -1: go on; else the exit status. */
static int parse(int argc, char **argv, settings *s) {
  const char *argument;
  uint64_t count;
  for (int id; (id = cli_next(&PROGRAM, argc, argv, &argument)) != CLI_END;) {
    bool good = true;
    switch (id) {
      case OPT_RANDOM: s->feed.options.random = true; break;
      case OPT_STREAM: s->stream = true; break;
      case 'o': s->output = argument; break;
      case 'm':
        if ((good = cli_count(&PROGRAM, "micro-batches", argument, 1, 10000000, &count)))
          s->run.n_micro_batches = (uint32_t)count;
        break;
      case OPT_WARMUP:
        if ((good = cli_count(&PROGRAM, "warmup", argument, 0, 1000000, &count)))
          s->run.n_warmup = (uint32_t)count;
        break;
      case OPT_ONNXRUNTIME: s->onnxruntime = argument; break;
      case OPT_DEPTH:
        if ((good = cli_count(&PROGRAM, "depth", argument, 1, 1000, &count)))
          s->run.depth = (uint32_t)count;
        break;
      case OPT_PIN: s->run.pin = true; break;
      case OPT_NO_PIN: s->run.pin = false; break;
      case OPT_ALONE: s->run.turn = &turn; break;
#if PSPLIT_HAS_MPI
      case OPT_TRANSPORT:
        s->mpi = strcmp(argument, "mpi") == 0;
        if (s->mpi || strcmp(argument, "threads") == 0) break;
        cli_usage(&PROGRAM, "--transport takes threads or mpi, not \"%s\"", argument);
        return 2;
      case OPT_TIMEOUT:
        good = cli_real(&PROGRAM, "timeout", argument, 0.1, 1e9, &s->run.timeout_s);
        break;
      case OPT_CHUNK:
        good = cli_count(&PROGRAM, "chunk", argument, 1, 1 << 30, &s->run.chunk_bytes);
        break;
#endif
      case OPT_JSON: s->json = true; break;
      case OPT_MAX_TEXT:
        good = cli_max_text(&PROGRAM, argument, &s->sessions.max_text_bytes);
        break;
      case OPT_TRACE: s->trace = argument; break;
      case OPT_PROFILE: s->profile = argument; break;
      case 'q': s->quiet = true; break;
      case 'h': cli_print_help(&PROGRAM, stdout); return cli_finish(0);
      case 'V': cli_print_version(&PROGRAM, stdout); return cli_finish(0);
      default:
        good = feed_option(&PROGRAM, &s->feed, id, argument) ||
               session_option(&PROGRAM, &s->sessions, id, argument);
    }
    if (!good) return 2;
  }
  if (optind + 1 != argc)
    return cli_usage(&PROGRAM, s->profile ? "one model is needed" : "one directory is needed");
  if (s->profile && (s->output || s->trace || s->json || s->stream))
    return cli_usage(&PROGRAM, "--profile FILE takes no --output, --stream, --trace or --json");
  if (!s->run.n_micro_batches)
    s->run.n_micro_batches = s->profile ? PROFILE_RUNS : s->stream ? PSPLIT_I_ENDLESS : 1;
  session_settings_all(&s->sessions, &s->run.session);
  s->directory = argv[optind];
  s->run.feed = s->feed.options;
  if (s->stream) s->run.n_warmup = 0;
  return -1;
}

static int exit_status(psplit_code code) {
  const int number = atomic_load(&interrupted);
  return code == PSPLIT_OK ? 0 : number ? 128 + number : cli_exit_status(code);
}

/* Ends the process, and so the threads that are left. */
static void give_up(void *user, const psplit_diag *diag) {
  (void)user;
  cli_fail(diag);
#if PSPLIT_HAS_MPI
  if (ranks) psplit_i_mpi_abort(exit_status(diag->code));
#endif
  _exit(exit_status(diag->code));
}

/* Four digits that matter, without an exponent. */
static const char *rate(double per_s, char *buffer) {
  snprintf(buffer, CLI_TEXT, per_s < 9999.5 ? "%.4g" : "%.0f", per_s);
  return buffer;
}

static void print_table(const psplit_i_report *report, const psplit_i_pipe *pipe, FILE *out) {
  char text[6][CLI_TEXT], device[CLI_NAME];
  int width = 10;
  for (uint32_t s = 0; s < report->n_stages; s++)
    width = cli_width(width, pipe->manifest.stages[s].device);
  fprintf(out, "%-5s  %-*s %11s %11s %11s %11s %11s %11s\n", "stage", width, "device", "busy",
          "predicted", "wait in", "wait out", "transfer", "received");
  for (uint32_t s = 0; s < report->n_stages; s++) {
    const psplit_i_stage_report *row = &report->stages[s];
    const int64_t predicted = pipe->manifest.stages[s].compute_ns;
    fprintf(out, "%5" PRIu32 "  %-*s %11s %11s %11s %11s %11s %11s\n", s, width,
            cli_printable(pipe->manifest.stages[s].device, device, sizeof device),
            cli_time(row->busy_ns, text[0]), predicted < 0 ? "?" : cli_time(predicted, text[1]),
            cli_time(row->wait_in_ns, text[2]), cli_time(row->wait_out_ns, text[3]),
            cli_time(row->transfer_ns, text[4]), cli_bytes(row->bytes, text[5]));
  }
  fprintf(out, "\n%" PRIu64 " micro-batches in %.3g s: %s a second", report->n_micro_batches,
          report->seconds, rate(report->throughput, text[0]));
  if (report->steady_throughput > 0)
    fprintf(out, ", %s once filled", rate(report->steady_throughput, text[0]));
  if (pipe->manifest.bottleneck_ns > 0)
    fprintf(out, ", predicted %s", rate(1e9 / (double)pipe->manifest.bottleneck_ns, text[0]));
  fprintf(out,
          " (costs %s)\nlatency %s, at most %s\nidle %.1f %% of the stages' time; filling and "
          "draining alone is %.1f %%\n",
          pipe->manifest.cost_source, cli_time(report->latency_median_ns, text[0]),
          cli_time(report->latency_max_ns, text[1]), 100 * report->bubble_frac,
          100 * report->bubble_fill_frac);
}

static bool to_stdout(const settings *s) { return s->output && strcmp(s->output, "-") == 0; }
/* Outputs go one after the other into one file, not each into one of its own. */
static bool to_stream(const settings *s) { return s->output && psplit_i_records_are_in(s->output); }

static psplit_code put_trace(const settings *s, const psplit_i_text *trace, psplit_diag *diag) {
  const psplit_i_out_options options = {.stop = &interrupted};
  return psplit_i_out_put(s->trace, &options, trace->bytes, trace->n, diag);
}

static psplit_code tell(const settings *s, const psplit_i_ort *ort, const psplit_i_pipe *pipe,
                        const psplit_i_timeline *timeline, psplit_diag *diag) {
  psplit_i_report report = {0};
  psplit_i_text json = {0}, trace = {0};
  psplit_code code;
  FILE *out = to_stdout(s) ? stderr : stdout; /* outputs are not to be mixed with words */
  PSPLIT_TRY(psplit_i_report_make(timeline, diag, &report));
  if (s->trace) {
    psplit_i_trace_json(timeline, pipe, &trace);
    PSPLIT_TRY(trace.failed ? psplit_i_nomem(diag) : put_trace(s, &trace, diag));
  }
  if (s->json) {
    psplit_i_report_json(&report, pipe, s->mpi ? "mpi" : "threads", ort->version, &json);
    if (json.failed)
      code = psplit_i_nomem(diag);
    else
      fputs(json.bytes, out);
  } else if (!s->quiet) {
    print_table(&report, pipe, out);
  }
  if (fflush(out) != 0 || ferror(out))
    code = psplit_i_fail(diag, PSPLIT_IO, "standard output cannot be written");
out:
  psplit_i_text_fini(&trace);
  psplit_i_text_fini(&json);
  psplit_i_report_fini(&report);
  return code;
}

/* An output may not be a file that the options name for reading. */
static psplit_code check_unread(const settings *s, const char *path, psplit_diag *diag) {
  psplit_code code = PSPLIT_OK;
  if (s->sessions.devices_file && cli_is_file(s->sessions.devices_file))
    PSPLIT_TRY(place_check_unread(path, s->sessions.devices_file, diag));
  for (size_t i = 0; i < s->feed.given.n; i++)
    PSPLIT_TRY(place_check_unread(path, s->feed.given.items[i].path, diag));
out:
  return code;
}

/* Named as outputs of micro-batches are; {} stands for a number. */
static bool is_result_name(const char *name) {
  static const char NUMBER[] = "0123456789{}";
  const size_t n = strspn(name, NUMBER);
  if (!n || name[n] != '-') return false;
  const size_t m = strspn(name + n + 1, NUMBER);
  const char *end = name + n + 1 + m;
  return m && (strcmp(end, ".npy") == 0 || strcmp(end, ".pb") == 0);
}

/* -o DIR may not hold inputs that its files would replace. */
static psplit_code check_results(const settings *s, psplit_diag *diag) {
  psplit_code code = PSPLIT_OK;
  for (size_t i = 0; i < s->feed.given.n; i++) {
    const char *path = s->feed.given.items[i].path, *slash = strrchr(path, '/');
    if (!is_result_name(slash ? slash + 1 : path)) continue;
    char *directory = slash ? strndup(path, (size_t)(slash - path) + 1) : strdup(".");
    if (!directory) return psplit_i_nomem(diag);
    code = place_check_unread(s->output, directory, diag);
    free(directory);
    if (code != PSPLIT_OK) return code;
  }
  return code;
}

/* --trace, before the run: nor one of the split. */
static psplit_code check_trace(const settings *s, const psplit_i_pipe *pipe, psplit_diag *diag) {
  psplit_code code;
  psplit_i_text path = {0};
  PSPLIT_TRY(check_unread(s, s->trace, diag));
  for (uint32_t i = 0; i <= pipe->manifest.n_stages; i++) {
    psplit_i_text_fini(&path);
    psplit_i_text_addf(
      &path, "%s/%s", s->directory,
      i < pipe->manifest.n_stages ? pipe->manifest.stages[i].file : "pipeline.json");
    if (path.failed) PSPLIT_TRY(psplit_i_nomem(diag));
    PSPLIT_TRY(place_check_unread(s->trace, path.bytes, diag));
  }
  PSPLIT_TRY(place_check(s->trace, NULL, diag));
out:
  psplit_i_text_fini(&path);
  return code;
}

/* --profile: what the whole model's nodes cost, to a file that appears whole. */
static psplit_code profile(const settings *s, psplit_diag *diag) {
  char *text = NULL;
  psplit_model *model = NULL;
  psplit_code code;
  PSPLIT_TRY(psplit_model_open(s->directory, NULL, diag, &model));
  PSPLIT_TRY(feed_check_model(&s->feed, model, diag));
  PSPLIT_TRY(check_unread(s, s->profile, diag));
  PSPLIT_TRY(place_check(s->profile, model, diag));
  PSPLIT_TRY(profile_model(s->directory, NULL, s->onnxruntime, &s->run, &s->feed, diag, &text));
  const psplit_i_out_options options = {.stop = &interrupted};
  PSPLIT_TRY(psplit_i_out_put(s->profile, &options, text, strlen(text), diag));
out:
  psplit_model_close(model);
  free(text);
  return code;
}

/* Runs this process's part: all stages, or that of this rank. Rank 0 reports. */
static psplit_code run(settings *s, psplit_diag *diag, uint32_t rank) {
  psplit_i_pipe pipe = {0};
  psplit_i_ort ort = {0};
  psplit_i_timeline timeline = {0};
  psplit_i_output_directory outputs = {s->output};
  psplit_i_output_stream stream = {"standard output", STDOUT_FILENO, &failed};
  psplit_code code;
  PSPLIT_TRY(psplit_i_pipe_read(s->directory, s->sessions.max_text_bytes, diag, &pipe));
  PSPLIT_TRY(feed_check(&s->feed, &pipe, diag));
  if (s->trace && rank == 0) PSPLIT_TRY(check_trace(s, &pipe, diag));
  if (s->stream || to_stream(s))
    PSPLIT_TRY(psplit_i_pipe_open_ends(&pipe, s->stream, to_stream(s), diag));
  PSPLIT_TRY(session_settings_apply(&s->sessions, &pipe.manifest, diag));
  s->run.stage_sessions = s->sessions.stages;
  if (s->mpi && ranks != pipe.manifest.n_stages) {
    code = psplit_i_fail(diag, PSPLIT_USAGE,
                         "%u ranks for %u stages: mpirun -n %u, of the MPI it is built with", ranks,
                         pipe.manifest.n_stages, pipe.manifest.n_stages);
    goto out;
  }
  PSPLIT_TRY(psplit_i_ort_open(s->onnxruntime, diag, &ort));
  if (to_stream(s)) {
    if (rank == 0 && !to_stdout(s))
      PSPLIT_TRY(psplit_i_output_stream_open(s->output, &interrupted, diag, &stream));
    s->run.logger = psplit_i_outputs_stream;
    s->run.user = &stream;
  } else if (s->output) {
    PSPLIT_TRY(check_results(s, diag));
    PSPLIT_TRY(psplit_i_outputs_begin(s->output, diag));
    if (rank == 0)
      PSPLIT_TRY(psplit_i_outputs_index(s->output, &pipe.manifest, s->run.n_micro_batches, diag));
    s->run.logger = psplit_i_outputs_write;
    s->run.user = &outputs;
  }
#if PSPLIT_HAS_MPI
  if (s->mpi) PSPLIT_TRY(psplit_i_run_mpi(&ort, &pipe, &s->run, rank, diag, &timeline));
#endif
  if (!s->mpi) PSPLIT_TRY(psplit_i_run_threads(&ort, &pipe, &s->run, diag, &timeline));
  if (rank == 0 && s->stream && s->output && !to_stream(s))
    PSPLIT_TRY(psplit_i_outputs_index(s->output, &pipe.manifest, timeline.n_micro_batches, diag));
  if (s->output && !to_stream(s)) PSPLIT_TRY(psplit_i_outputs_end(s->output, diag));
  if (rank == 0) PSPLIT_TRY(tell(s, &ort, &pipe, &timeline, diag));
out:
  if (stream.fd != STDOUT_FILENO) close(stream.fd);
  psplit_i_timeline_fini(&timeline);
  psplit_i_ort_close(&ort);
  psplit_i_pipe_fini(&pipe);
  return code;
}

int main(int argc, char **argv) {
  settings s = {.run = {.session = {.optimization = 99, .n_threads = 1},
                        .n_warmup = 1,
                        .depth = 2,
                        .timeout_s = 60,
                        .chunk_bytes = 1 << 30,
                        .interrupted = &interrupted,
                        .failed = &failed,
                        .give_up = give_up},
                .feed.options.seed = 1};
  psplit_diag diag = {0};
  psplit_code code = PSPLIT_OK;
  uint32_t rank = 0;
#if PSPLIT_HAS_MPI
  s.mpi = psplit_i_mpi_launched();
#endif
  int status = parse(argc, argv, &s);
  if (s.profile || s.run.turn) s.mpi = false;
  if (status < 0) {
#if PSPLIT_HAS_MPI
    if (s.mpi) code = psplit_i_mpi_begin(&diag, &rank, &ranks);
#endif
    cli_on_interrupt(on_signal);
    signal(SIGPIPE, SIG_IGN); /* a reader that has gone is an error like any other */
    if (code == PSPLIT_OK) code = s.profile ? profile(&s, &diag) : run(&s, &diag, rank);
    status = exit_status(code);
    if (code != PSPLIT_OK) cli_fail(&diag);
  }
  feed_fini(&s.feed);
  session_settings_fini(&s.sessions);
#if PSPLIT_HAS_MPI
  if (ranks && code != PSPLIT_OK) psplit_i_mpi_abort(status);
  if (ranks) psplit_i_mpi_end();
#endif
  return status;
}
