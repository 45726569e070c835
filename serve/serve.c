/* onnx-pipeline-serve: serves a split over HTTP to concurrent clients. */
#include <getopt.h>
#include <inttypes.h>
#ifdef __GLIBC__
#include <malloc.h>
#endif
#include <signal.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <time.h>
#include <unistd.h>

#include "cli.h"
#include "http.h"
#include "ort_library.h"
#include "shared_options.h"
#if PSPLIT_HAS_MPI
#include <psplit/run_mpi.h>
#endif

enum {
  OPT_LISTEN = 256,
  OPT_NAME,
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
  OPT_ADMIN,
};

static const cli_option OPTIONS[] = {
  {0, NULL, NULL, "Clients:"},
  {OPT_LISTEN, "listen", "ADDRESS:PORT",
   "address to listen on; port 0: any free port; default: 127.0.0.1:8000"},
  {OPT_ADMIN, "admin", "ADDRESS:PORT",
   "loopback address of the admin interface, which reloads the split; default: none"},
  {OPT_NAME, "model-name", "NAME", "name of the model in URLs; default: the last component of DIR"},
  {OPT_MAX_BODY, "max-body", "MIB", "maximum size of a request body; default: 64"},
  {OPT_MAX_MEMORY, "max-memory", "MIB",
   "memory limit for requests being read, where JSON counts 32 times; default: 4096"},
  {OPT_CONNECTIONS, "max-connections", "N", "maximum number of connections; default: 256"},
  {OPT_IDLE, "idle", "SECONDS", "close connections that are idle for SECONDS; default: 30"},
  {OPT_GRACE, "grace", "SECONDS", "time to finish accepted requests on shutdown; default: 30"},
  {0, NULL, NULL, "Requests:"},
  {OPT_WAITING, "max-waiting", "N",
   "maximum queue length; requests beyond it get 503; default: 64"},
  {OPT_DEADLINE, "deadline", "MS",
   "time limit of a request, which gets 504 after it; default: none"},
  {OPT_MAX_BATCH, "max-batch", "N", "batch requests up to N rows; default: no batching"},
  {OPT_BATCH_DELAY, "batch-delay", "MS",
   "how long a request waits for others to batch with; default: 0"},
  {OPT_BATCH_DIM, "batch-dim", "NAME", "symbolic dimension to batch along; default: batch"},
  {0, NULL, NULL, "Execution:"},
  ORT_LIBRARY_OPTIONS,
  {OPT_ISOLATE, "isolate", NULL,
   "run each stage in a process of its own, which is restarted if it dies; no request is lost"},
  {OPT_DEPTH, "depth", "N", "requests that may be queued between two stages; default: 2"},
  SHARED_TIMEOUT(OPT_TIMEOUT, "time limit of a stage for a request"),
  {0, NULL, NULL, "ONNX Runtime sessions, of each stage or of STAGE:"},
  ORT_OPTIONS,
  ORT_REPLICAS_OPTION,
  ORT_LEVEL_OPTION,
  {0, NULL, NULL, "General:"},
  CLI_MAX_TEXT(OPT_MAX_TEXT),
  {'q', "quiet", NULL, "print only errors"},
  CLI_LOGGING_OPTIONS,
  CLI_LAST_OPTIONS,
};

static const cli PROGRAM = {
  "onnx-pipeline-serve", "DIR [OPTION]...",
  "Serves the split in DIR, which onnx-pipeline-split wrote, over HTTP: the Open Inference "
  "Protocol\n(KServe v2) in JSON and binary, health, metadata, and metrics for Prometheus.\n\n"
  "Example: onnx-pipeline-serve out --listen 127.0.0.1:8000 --max-batch 8 --batch-delay 2",
  OPTIONS, sizeof OPTIONS / sizeof *OPTIONS};

/* This program as the process of a stage: --isolate. The file that runs, whatever it is called now.
 */
static const char STAGE_PROCESS[] = "--stage-process";
static const char *const STAGE_COMMAND[] = {"/proc/self/exe", STAGE_PROCESS, NULL};

typedef struct settings {
  ort_library library;
  char *name;
  bool quiet;
  double grace_s;
  ort_settings ort;
  psplit_session session;
  serve_model_options model;
  serve_http_options http;
  serve_current *current; /* NULL: not yet */
} settings;

static atomic_int hung_up; /* SIGHUP, which any thread may get: a reload is asked for */
#if PSPLIT_HAS_MPI
static uint32_t ranks; /* 0: MPI was not started */
#endif
static void on_hang_up(int number) {
  (void)number;
  hung_up = 1;
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
    case OPT_ADMIN: s->http.admin = argument; return true;
    case OPT_NAME: free(s->name); return (s->name = strdup(argument)) != NULL;
    case OPT_ONNXRUNTIME:
    case OPT_CUSTOM_OPS: return ort_library_option(&PROGRAM, &s->library, id, argument);
    case OPT_BATCH_DIM: s->model.service.batch_dim = argument; return true;
    case OPT_DEPTH: return cli_count32(&PROGRAM, "depth", argument, 1, 1000, &s->model.run.depth);
    case OPT_WAITING:
      return cli_count32(&PROGRAM, "max-waiting", argument, 1, 1000000,
                         &s->model.service.max_waiting);
    case OPT_MAX_BATCH:
      return cli_count32(&PROGRAM, "max-batch", argument, 1, 1000000, &s->model.service.max_batch);
    case OPT_CONNECTIONS:
      return cli_count32(&PROGRAM, "max-connections", argument, 1, 60000, &s->http.max_connections);
    case OPT_IDLE: return cli_count32(&PROGRAM, "idle", argument, 1, 1000000, &s->http.idle_s);
    case OPT_MAX_BODY: return mebibytes("max-body", argument, &s->http.max_body_bytes);
    case OPT_MAX_MEMORY: return mebibytes("max-memory", argument, &s->http.max_memory_bytes);
    case OPT_MAX_TEXT: return cli_max_text(&PROGRAM, argument, &s->ort.max_text_bytes);
    case OPT_ISOLATE: s->model.service.stage_command = STAGE_COMMAND; return true;
    case OPT_GRACE: return cli_real(&PROGRAM, "grace", argument, 0, 1e9, &s->grace_s);
    case OPT_DEADLINE:
      if (!cli_real(&PROGRAM, "deadline", argument, 0.001, 1e9, &real)) return false;
      s->model.run.deadline_s = 1e-3 * real;
      return true;
    case OPT_BATCH_DELAY:
      if (!cli_real(&PROGRAM, "batch-delay", argument, 0, 1e6, &real)) return false;
      s->model.service.batch_delay_s = 1e-3 * real;
      return true;
    case OPT_TIMEOUT:
      if (!cli_real(&PROGRAM, "timeout", argument, 0.1, 1e9, &real)) return false;
      s->model.run.timeout_s = s->model.run.stall_timeout_s = real;
      return true;
    case 'q': s->quiet = true; return true;
    default: return ort_option(&PROGRAM, &s->ort, id, argument);
  }
}

/* -1: go on; else the exit status. */
static int parse(int argc, char **argv, settings *s) {
  const char *argument;
  for (int id; (id = cli_next(&PROGRAM, argc, argv, &argument)) != CLI_END;) {
    if (!take(s, id, argument)) return 2;
  }
  if (optind + 1 != argc) return cli_usage(&PROGRAM, "one directory is needed");
  s->model.directory = argv[optind];
  ort_settings_all(&s->ort, &s->session);
  s->model.run.sessions = &s->session;
  s->model.run.n_sessions = 1;
  return -1;
}

/* Whether no more requests are taken, and none is left. */
static bool is_over(serve_current *current) {
  psplit_service_stats now = {.struct_size = sizeof now};
  if (!current || serve_current_is_ready(current)) return false;
  serve_model *model = serve_current_hold(current);
  psplit_service_get_stats(serve_model_service(model), &now);
  serve_model_release(model);
  return !now.n_waiting && !now.n_under_way;
}

/* Ends the process, and so threads that do not: stages that are not closed, too. */
static void give_up(void *user, const psplit_diag *diag) {
  const settings *s = user;
  if (diag->code == PSPLIT_CANCELLED && cli_ended_by() && is_over(s->current)) {
    cli_say_line(
      "note", "all requests are answered; stages that did not end afterwards were abandoned", true);
    fflush(stdout);
    _exit(0);
  }
  const int status = cli_fail(diag);
#if PSPLIT_HAS_MPI
  if (ranks) psplit_mpi_abort(status);
#endif
  _exit(status);
}

/* --model-name, or the last part of DIR. */
static psplit_code name_model(settings *s, psplit_diag *diag) {
  char *path = s->name ? NULL : realpath(s->model.directory, NULL);
  const char *slash = path ? strrchr(path, '/') : NULL;
  if (!s->name) s->name = strdup(slash && slash[1] ? slash + 1 : "model");
  free(path);
  s->http.model = s->name;
  return s->name ? PSPLIT_OK : cli_nomem(diag);
}

/* A serve_reloaded. */
static void tell_reload(void *user, psplit_code code, const psplit_diag *diag) {
  const settings *s = user;
  if (code != PSPLIT_OK) {
    cli_fail(diag);
    cli_say_line("note", "the split that was served before still is", true);
  } else if (!s->quiet) {
    printf("reloaded\n");
    fflush(stdout);
  }
}

/* SIGHUP, now and then looked for. */
static void look_for_reload(settings *s, serve_current *current) {
  if (!hung_up) return;
  hung_up = 0;
  if (s->model.mpi)
    cli_warn("over MPI a split is not reloaded: start another server");
  else if (!serve_current_reload(current, NULL, NULL))
    cli_warn("out of memory: the split is not reloaded");
}

/* "127.0.0.1:" of an address with its port. */
static int host_of(const char *address) { return (int)(strrchr(address, ':') - address); }

static void tell_start(const settings *s, serve_current *current, const serve_http *http) {
  serve_model *model = serve_current_hold(current);
  const uint32_t n_stages = serve_model_info(model)->n_stages;
  printf("model %s, %" PRIu32 " stage%s: http://%.*s:%u/v2/models/%s\n", s->name, n_stages,
         n_stages == 1 ? "" : "s", host_of(s->http.listen), s->http.listen, serve_http_port(http),
         s->name);
  if (s->http.admin)
    printf("admin: http://%.*s:%u/v2/repository/models/%s/load\n", host_of(s->http.admin),
           s->http.admin, serve_http_admin_port(http), s->name);
  fflush(stdout);
  serve_model_release(model);
}

/* What large requests took is given back to the system, once it is much: malloc keeps it, in as
 * many places as there are threads. */
static void give_back_memory(uint64_t *io_least_bytes) {
#ifdef __GLIBC__
  static const uint64_t MUCH_BYTES = 8 << 20;
  const uint64_t bytes = serve_resident_bytes();
  if (*io_least_bytes && bytes > *io_least_bytes + MUCH_BYTES) {
    malloc_trim(0);
    *io_least_bytes = serve_resident_bytes();
  } else if (!*io_least_bytes || bytes < *io_least_bytes) {
    *io_least_bytes = bytes;
  }
#else
  (void)io_least_bytes;
#endif
}

/* Each connection is an open file, of which a process may have some thousand only: raises that as
 * far as it may be, and takes fewer connections where that is not enough. */
static void make_room_for_connections(serve_http_options *http) {
  enum { OTHERS = 128 }; /* what stages, ONNX Runtime and a split that is loaded have open */
  const uint32_t n_entrances = http->admin ? 2 : 1;
  const rlim_t wanted = (rlim_t)http->max_connections * n_entrances + OTHERS;
  struct rlimit files;
  if (getrlimit(RLIMIT_NOFILE, &files) != 0 || files.rlim_cur >= wanted) return;
  const rlim_t most = wanted < files.rlim_max ? wanted : files.rlim_max;
  if (most > files.rlim_cur &&
      setrlimit(RLIMIT_NOFILE, &(struct rlimit){most, files.rlim_max}) == 0)
    files.rlim_cur = most;
  if (files.rlim_cur >= wanted) return;
  http->max_connections =
    files.rlim_cur > OTHERS + n_entrances ? (uint32_t)((files.rlim_cur - OTHERS) / n_entrances) : 1;
  cli_warn("there are at most %" PRIu32 " connections at once: the limit of open files is %" PRIu64,
           http->max_connections, (uint64_t)files.rlim_cur);
}

/* Until a signal comes, or a stage breaks down. */
static psplit_code serve(settings *s, const psplit_onnxruntime *ort, serve_model *model,
                         psplit_diag *diag) {
  static const long LOOK_NS = 20000000;
  enum { LOOKS_A_SECOND = 50 };
  uint64_t n_looks = 0, least_bytes = 0;
  static const double SEND_S = 2; /* other ranks wait for us meanwhile, to end MPI */
  serve_current *current = NULL;
  serve_http *http = NULL;
  psplit_diag ignored = {0};
  const serve_current_options options = {s->model, ort, s->grace_s, tell_reload, s};
  psplit_code code = serve_current_create(&options, model, diag, &current);
  s->current = current;
  /* What was accepted is answered before the end. */
  if (code == PSPLIT_OK) cli_ends(CLI_ENDS_BEHIND);
  make_room_for_connections(&s->http);
  if (code == PSPLIT_OK) code = serve_http_start(&s->http, current, diag, &http);
  cli_idle();
  if (code == PSPLIT_OK && !s->quiet) tell_start(s, current, http);
  while (code == PSPLIT_OK && !cli_ended_by() && serve_current_is_ready(current)) {
    look_for_reload(s, current);
    if (++n_looks % LOOKS_A_SECOND == 0) give_back_memory(&least_bytes);
    nanosleep(&(struct timespec){0, LOOK_NS}, NULL);
  }
  if (http) serve_http_quiesce(http);
  const psplit_code stopped = current ? serve_current_stop(current, cli_ended_by() ? s->grace_s : 0,
                                                           code == PSPLIT_OK ? diag : &ignored)
                                      : PSPLIT_OK;
  if (code == PSPLIT_OK) code = stopped;
  if (current && !serve_current_join(current)) {
    fflush(stdout);
    _exit(code == PSPLIT_OK ? 0 : cli_fail(diag));
  }
  serve_http_stop(http, SEND_S);
  serve_current_destroy(current);
  return code;
}

/* What a rank other than the first does. A launcher tells all of them of a signal, and the first
 * one says when they end. */
static psplit_code work(const psplit_onnxruntime *ort, serve_model *model, psplit_diag *diag) {
  cli_ends(CLI_ENDS_BEHIND);
  const psplit_code code = serve_model_work(model, ort, diag);
  serve_model_release(model);
  return code;
}

static psplit_code run(settings *s, uint32_t rank, psplit_diag *diag) {
  psplit_onnxruntime *ort = NULL;
  serve_model *model = NULL;
  s->model.ort = &s->ort;
  psplit_code code = rank ? PSPLIT_OK : serve_http_check(&s->http, diag);
  if (code == PSPLIT_OK) code = name_model(s, diag);
  cli_doing("opening the stages of %s", s->model.directory);
  if (code == PSPLIT_OK) code = serve_model_open(&s->model, diag, &model);
  if (code == PSPLIT_OK) code = ort_library_open(&s->library, diag, &ort);
  if (code == PSPLIT_OK)
    code = rank ? work(ort, model, diag) : serve(s, ort, model, diag);
  else
    serve_model_release(model);
  psplit_onnxruntime_close(ort);
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
  psplit_run_options_init(&s.model.run);
  psplit_service_options_init(&s.model.service);
  s.model.run.give_up = give_up;
  s.model.run.give_up_user = &s;
  int status = parse(argc, argv, &s);
  if (status < 0) {
#if PSPLIT_HAS_MPI
    s.model.mpi = psplit_mpi_launched();
    if (s.model.mpi) code = psplit_mpi_begin(&diag, &rank, &ranks);
#endif
    s.model.run.cancel = cli_ends(CLI_ENDS_SOON);
    signal(SIGHUP, on_hang_up);
    signal(SIGPIPE, SIG_IGN);
    if (code == PSPLIT_OK) code = run(&s, rank, &diag);
    status = cli_logging_end(code == PSPLIT_OK ? 0 : cli_fail(&diag));
  }
  free(s.name);
  ort_settings_fini(&s.ort);
#if PSPLIT_HAS_MPI
  if (ranks && code != PSPLIT_OK) psplit_mpi_abort(status);
  if (ranks) psplit_mpi_end();
#endif
  return status;
}
