/* onnx-pipeline-serve: a split behind HTTP, for many clients at once. */
#include <getopt.h>
#include <inttypes.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "cli.h"
#include "http.h"
#include "ort_options.h"
#ifdef PSPLIT_HAS_MPI
#include <psplit/run_mpi.h>
#else
#define PSPLIT_HAS_MPI 0
#endif

enum {
  OPT_LISTEN = 256,
  OPT_NAME,
  OPT_ONNXRUNTIME,
  OPT_DEPTH,
  OPT_WAITING,
  OPT_DEADLINE,
  OPT_TIMEOUT,
  OPT_MAX_BATCH,
  OPT_BATCH_DELAY,
  OPT_BATCH_DIM,
  OPT_MAX_BODY,
  OPT_MAX_MEMORY,
  OPT_CONNECTIONS,
  OPT_IDLE,
  OPT_GRACE,
  OPT_MAX_TEXT,
  OPT_ISOLATE,
};

static const cli_option OPTIONS[] = {
  {0, NULL, NULL, "Clients:"},
  {OPT_LISTEN, "listen", "ADDRESS:PORT", "default: 127.0.0.1:8000, for this host alone"},
  {OPT_NAME, "model-name", "NAME", "of the model in paths; default: that of DIR"},
  {OPT_MAX_BODY, "max-body", "MIB", "largest request; default: 64"},
  {OPT_MAX_MEMORY, "max-memory", "MIB",
   "that requests which are read may take; JSON counts 32 times; default: 4096"},
  {OPT_CONNECTIONS, "max-connections", "N", "at once; default: 256"},
  {OPT_IDLE, "idle", "SECONDS", "a connection on which nothing moves is closed; default: 30"},
  {OPT_GRACE, "grace", "SECONDS", "for what was accepted, when the server ends; default: 30"},
  {0, NULL, NULL, "Requests:"},
  {OPT_WAITING, "max-waiting", "N", "before the first stage; more get 503; default: 64"},
  {OPT_DEADLINE, "deadline", "MS", "a request that takes longer gets 504; default: any time"},
  {OPT_MAX_BATCH, "max-batch", "N", "join requests up to so many rows; default: none"},
  {OPT_BATCH_DELAY, "batch-delay", "MS", "how long the first one waits for others; default: 0"},
  {OPT_BATCH_DIM, "batch-dim", "NAME",
   "the symbolic dimension they are joined along; default: batch"},
  {0, NULL, NULL, "How it runs:"},
  {OPT_ONNXRUNTIME, "onnxruntime", "FILE",
   "libonnxruntime.so; default: PSPLIT_ONNXRUNTIME, the loader's"},
  {OPT_ISOLATE, "isolate", NULL,
   "each stage is a process of its own; one that ends is started again, and nothing is lost"},
  {OPT_DEPTH, "depth", "N", "requests that wait between two stages; default: 2"},
  {OPT_TIMEOUT, "timeout", "SECONDS",
   "longest time that a stage may take for a request; default: any. Longest silence of a rank; "
   "default: 60"},
  {0, NULL, NULL, "How ONNX Runtime runs each stage, or STAGE:"},
  ORT_OPTIONS,
  {0, NULL, NULL, "General:"},
  CLI_MAX_TEXT(OPT_MAX_TEXT),
  {'q', "quiet", NULL, "say nothing but errors"},
  {'h', "help", NULL, "print this"},
  {'V', "version", NULL, "print the version"},
};

static const cli PROGRAM = {
  "onnx-pipeline-serve", "DIR [OPTION]...",
  "Serves the split in DIR, which onnx-pipeline-split wrote, over HTTP: the Open Inference "
  "Protocol\n(KServe v2) in JSON and binary, health, metadata, and metrics for Prometheus.",
  OPTIONS, sizeof OPTIONS / sizeof *OPTIONS};

/* This program as the process of a stage: --isolate. The file that runs, whatever it is called now.
 */
static const char STAGE_PROCESS[] = "--stage-process";
static const char *const STAGE_COMMAND[] = {"/proc/self/exe", STAGE_PROCESS, NULL};

typedef struct settings {
  const char *directory, *onnxruntime;
  char *name;
  bool quiet, mpi;
  double grace_s;
  ort_settings ort;
  psplit_session session;
  psplit_run_options run;
  psplit_service_options service;
  serve_http_options http;
} settings;

static volatile int interrupted; /* the signal's number */
#if PSPLIT_HAS_MPI
static uint32_t ranks; /* 0: MPI was not started */
#endif
static void on_signal(int number) {
  if (interrupted) _exit(128 + number);
  interrupted = number;
}

static bool count(const char *name, const char *text, uint64_t most, uint32_t *out) {
  uint64_t n;
  if (!cli_count(&PROGRAM, name, text, 1, most, &n)) return false;
  *out = (uint32_t)n;
  return true;
}

static bool mebibytes(const char *name, const char *text, uint64_t *out) {
  uint64_t n;
  if (!cli_count(&PROGRAM, name, text, 1, 1 << 20, &n)) return false;
  *out = n << 20;
  return true;
}

/* One option; false after an error line. */
static bool take(settings *s, int id, const char *argument) {
  double real;
  switch (id) {
    case OPT_LISTEN: s->http.listen = argument; return true;
    case OPT_NAME: return (s->name = strdup(argument)) != NULL;
    case OPT_ONNXRUNTIME: s->onnxruntime = argument; return true;
    case OPT_BATCH_DIM: s->service.batch_dim = argument; return true;
    case OPT_DEPTH: return count("depth", argument, 1000, &s->run.depth);
    case OPT_WAITING: return count("max-waiting", argument, 1000000, &s->service.max_waiting);
    case OPT_MAX_BATCH: return count("max-batch", argument, 1000000, &s->service.max_batch);
    case OPT_CONNECTIONS:
      return count("max-connections", argument, 60000, &s->http.max_connections);
    case OPT_IDLE: return count("idle", argument, 1000000, &s->http.idle_s);
    case OPT_MAX_BODY: return mebibytes("max-body", argument, &s->http.max_body_bytes);
    case OPT_MAX_MEMORY: return mebibytes("max-memory", argument, &s->http.max_memory_bytes);
    case OPT_MAX_TEXT: return cli_max_text(&PROGRAM, argument, &s->ort.max_text_bytes);
    case OPT_ISOLATE: s->service.stage_command = STAGE_COMMAND; return true;
    case OPT_GRACE: return cli_real(&PROGRAM, "grace", argument, 0, 1e9, &s->grace_s);
    case OPT_DEADLINE:
      if (!cli_real(&PROGRAM, "deadline", argument, 0.001, 1e9, &real)) return false;
      s->run.deadline_s = 1e-3 * real;
      return true;
    case OPT_BATCH_DELAY:
      if (!cli_real(&PROGRAM, "batch-delay", argument, 0, 1e6, &real)) return false;
      s->service.batch_delay_s = 1e-3 * real;
      return true;
    case OPT_TIMEOUT:
      if (!cli_real(&PROGRAM, "timeout", argument, 0.1, 1e9, &real)) return false;
      s->run.timeout_s = s->run.stall_timeout_s = real;
      return true;
    case 'q': s->quiet = true; return true;
    default: return ort_option(&PROGRAM, &s->ort, id, argument);
  }
}

/* -1: go on; else the exit status. */
static int parse(int argc, char **argv, settings *s) {
  const char *argument;
  for (int id; (id = cli_next(&PROGRAM, argc, argv, &argument)) != CLI_END;) {
    if (id == 'h') cli_print_help(&PROGRAM, stdout);
    if (id == 'V') cli_print_version(&PROGRAM, stdout);
    if (id == 'h' || id == 'V') return cli_finish(0);
    if (!take(s, id, argument)) return 2;
  }
  if (optind + 1 != argc) return cli_usage(&PROGRAM, "one directory is needed");
  s->directory = argv[optind];
  ort_settings_all(&s->ort, &s->session);
  s->run.sessions = &s->session;
  s->run.n_sessions = 1;
  return -1;
}

/* Ends the process, and so threads that do not. */
static void give_up(void *user, const psplit_diag *diag) {
  (void)user;
  const int status = cli_fail(diag);
#if PSPLIT_HAS_MPI
  if (ranks) psplit_mpi_abort(status);
#endif
  _exit(status);
}

/* --model-name, or the last part of DIR. */
static psplit_code name_model(settings *s, psplit_diag *diag) {
  char *path = s->name ? NULL : realpath(s->directory, NULL);
  const char *slash = path ? strrchr(path, '/') : NULL;
  if (!s->name) s->name = strdup(slash && slash[1] ? slash + 1 : "model");
  free(path);
  s->http.model = s->name;
  return s->name ? PSPLIT_OK : cli_nomem(diag);
}

static psplit_code start(settings *s, const psplit_onnxruntime *ort, psplit_pipeline *pipeline,
                         psplit_diag *diag, psplit_service **out) {
#if PSPLIT_HAS_MPI
  if (s->mpi) return psplit_mpi_service_start(ort, pipeline, &s->run, &s->service, diag, out);
#endif
  return psplit_service_start(ort, pipeline, &s->run, &s->service, diag, out);
}

/* Until a signal comes, or a stage breaks down. */
static psplit_code serve(settings *s, const psplit_onnxruntime *ort, psplit_pipeline *pipeline,
                         psplit_diag *diag) {
  const psplit_pipeline_info *info = psplit_pipeline_get_info(pipeline);
  static const long LOOK_NS = 20000000;
  static const double SEND_S = 2; /* other ranks wait for us meanwhile, to end MPI */
  psplit_service *service = NULL;
  serve_http *http = NULL;
  psplit_diag ignored = {0};
  psplit_code code = name_model(s, diag);
  if (code == PSPLIT_OK) code = start(s, ort, pipeline, diag, &service);
  if (code == PSPLIT_OK) code = serve_http_start(&s->http, service, info, diag, &http);
  if (code == PSPLIT_OK && !s->quiet) {
    printf("model %s, %" PRIu32 " stages: http://%.*s:%u/v2/models/%s\n", s->name, info->n_stages,
           (int)(strrchr(s->http.listen, ':') - s->http.listen), s->http.listen,
           serve_http_port(http), s->name);
    fflush(stdout);
  }
  while (code == PSPLIT_OK && !interrupted && psplit_service_is_ready(service))
    nanosleep(&(struct timespec){0, LOOK_NS}, NULL);
  if (http) serve_http_quiesce(http);
  const psplit_code stopped = service ? psplit_service_stop(service, interrupted ? s->grace_s : 0,
                                                            code == PSPLIT_OK ? diag : &ignored)
                                      : PSPLIT_OK;
  serve_http_stop(http, SEND_S);
  psplit_service_destroy(service);
  return code == PSPLIT_OK ? stopped : code;
}

static psplit_code run(settings *s, uint32_t rank, psplit_diag *diag) {
  psplit_pipeline_options reading;
  psplit_pipeline *pipeline = NULL;
  psplit_onnxruntime *ort = NULL;
  psplit_pipeline_options_init(&reading);
  reading.max_text_bytes = s->ort.max_text_bytes;
  psplit_code code = psplit_pipeline_open(s->directory, &reading, diag, &pipeline);
  if (code == PSPLIT_OK) {
    const psplit_pipeline_info *info = psplit_pipeline_get_info(pipeline);
    code = ort_settings_apply(&s->ort, info, diag);
    s->run.sessions = s->ort.stages;
    s->run.n_sessions = info->n_stages;
  }
  if (code == PSPLIT_OK) code = psplit_onnxruntime_open(s->onnxruntime, diag, &ort);
#if PSPLIT_HAS_MPI
  if (code == PSPLIT_OK && rank) code = psplit_mpi_service_run(ort, pipeline, &s->run, diag);
#endif
  if (code == PSPLIT_OK && !rank) code = serve(s, ort, pipeline, diag);
  psplit_onnxruntime_close(ort);
  psplit_pipeline_close(pipeline);
  return code;
}

int main(int argc, char **argv) {
  settings s = {.session = {.optimization = -1},
                .grace_s = 30,
                .http = {.listen = "127.0.0.1:8000",
                         .max_body_bytes = (uint64_t)64 << 20,
                         .max_memory_bytes = (uint64_t)4 << 30,
                         .max_connections = 256,
                         .n_threads = 4,
                         .idle_s = 30}};
  psplit_diag diag = {0};
  psplit_code code = PSPLIT_OK;
  uint32_t rank = 0;
  if (argc > 1 && strcmp(argv[1], STAGE_PROCESS) == 0)
    return psplit_stage_process(&diag) == PSPLIT_OK ? 0 : cli_fail(&diag);
  psplit_run_options_init(&s.run);
  psplit_service_options_init(&s.service);
  s.run.give_up = give_up;
  int status = parse(argc, argv, &s);
  if (status < 0) {
#if PSPLIT_HAS_MPI
    s.mpi = psplit_mpi_launched();
    if (s.mpi) code = psplit_mpi_begin(&diag, &rank, &ranks);
#endif
    cli_on_interrupt(on_signal);
    signal(SIGPIPE, SIG_IGN);
    if (code == PSPLIT_OK) code = run(&s, rank, &diag);
    status = code == PSPLIT_OK ? 0 : cli_fail(&diag);
  }
  free(s.name);
  ort_settings_fini(&s.ort);
#if PSPLIT_HAS_MPI
  if (ranks && code != PSPLIT_OK) psplit_mpi_abort(status);
  if (ranks) psplit_mpi_end();
#endif
  return status;
}
