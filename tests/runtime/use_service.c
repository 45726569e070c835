/* A program that puts requests to a pipeline: TAP.
 *
 *   use_service threads|processes|mpi DIR CHECK...
 *
 * DIR is a split whose model has one input of n rows of 8 floats. Each request is a number: all its
 * elements are that. What stages answer alone, one after the other, is what they have to answer
 * whoever else asks. */
#include <math.h>
#include <psplit/run_service.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#ifdef HAS_MPI
#include <psplit/run_mpi.h>
#endif

enum { N_KINDS = 16, N_THREADS = 4, N_EACH = 200, MOST_ROWS = 4 };

static psplit_onnxruntime *ort;
static psplit_pipeline *pipeline;
static bool over_mpi, over_processes;
static const char *const STAGE_COMMAND[] = {"/proc/self/exe", "stage-process", NULL};
static int n_checks, n_bad;
static uint32_t max_batch; /* of services that are started */

static void check(bool good, const char *title) {
  printf("%sok %d - %s\n", good ? "" : "not ", ++n_checks, title);
  fflush(stdout);
  n_bad += !good;
}

static void nap(int ms) { nanosleep(&(struct timespec){ms / 1000, ms % 1000 * 1000000L}, NULL); }

/* The input of a kind, and what it gave when it was alone. */
static float inputs[N_KINDS][MOST_ROWS * 8];
static int64_t dims[N_KINDS][2];
static void *wanted[N_KINDS];
static size_t n_wanted[N_KINDS];

static psplit_named_tensor input_of(int kind) {
  return (psplit_named_tensor){
    psplit_pipeline_get_info(pipeline)->inputs[0],
    {1, 2, dims[kind], inputs[kind], (uint64_t)dims[kind][0] * 8 * sizeof(float)}};
}

static psplit_request request_of(const psplit_named_tensor *input) {
  psplit_request request;
  psplit_request_init(&request);
  request.inputs = input;
  request.n_inputs = 1;
  request.wait = true;
  return request;
}

/* All outputs of a response, one after the other; malloc'd. */
static void *join(const psplit_response *response, size_t *out_n) {
  size_t n = 0;
  for (uint32_t o = 0; o < response->n_outputs; o++)
    n += (size_t)response->outputs[o].tensor.n_bytes;
  char *bytes = malloc(n + 1), *at = bytes;
  for (uint32_t o = 0; o < response->n_outputs; o++) {
    memcpy(at, response->outputs[o].tensor.data, (size_t)response->outputs[o].tensor.n_bytes);
    at += response->outputs[o].tensor.n_bytes;
  }
  *out_n = n;
  return bytes;
}

/* Kernels for more rows may round otherwise. */
static bool is_near(const psplit_response *response, const char *expected) {
  for (uint32_t o = 0; o < response->n_outputs; o++) {
    const psplit_tensor_view *view = &response->outputs[o].tensor;
    const size_t n = (size_t)view->n_bytes;
    if (view->data_type != 1 && memcmp(view->data, expected, n) != 0) return false;
    for (size_t i = 0; view->data_type == 1 && i < n / sizeof(float); i++) {
      float value;
      memcpy(&value, expected + i * sizeof value, sizeof value);
      if (fabsf(value - ((const float *)view->data)[i]) > 1e-5f) return false;
    }
    expected += n;
  }
  return true;
}

static bool is_right(const psplit_response *response, int kind) {
  size_t n;
  if (response->code != PSPLIT_OK) return false;
  void *bytes = join(response, &n);
  const bool right =
    n == n_wanted[kind] && n &&
    (max_batch ? is_near(response, wanted[kind]) : memcmp(bytes, wanted[kind], n) == 0);
  free(bytes);
  return right;
}

static psplit_service *start(uint32_t max_waiting, uint32_t depth) {
  psplit_diag diag = {0};
  psplit_run_options run;
  psplit_service_options own;
  psplit_service *service = NULL;
  psplit_run_options_init(&run);
  psplit_service_options_init(&own);
  run.depth = depth;
  own.max_waiting = max_waiting;
  own.max_batch = max_batch;
  own.batch_delay_s = 0.05;
  own.batch_dim = "n";
  if (over_processes) own.stage_command = STAGE_COMMAND;
#ifdef HAS_MPI
  const psplit_code code = over_mpi
                             ? psplit_mpi_service_start(ort, pipeline, &run, &own, &diag, &service)
                             : psplit_service_start(ort, pipeline, &run, &own, &diag, &service);
#else
  const psplit_code code = psplit_service_start(ort, pipeline, &run, &own, &diag, &service);
#endif
  if (code == PSPLIT_OK) return service;
  printf("Bail out! %s\n", diag.message);
  exit(1);
}

static psplit_code submit(psplit_service *service, const psplit_request *request, uint64_t *id) {
  psplit_diag diag = {0};
  const psplit_code code = psplit_service_submit(service, request, &diag, id);
  if ((code == PSPLIT_OK) != !*diag.message) check(false, "a failure has a message");
  return code;
}

static const psplit_response *wait_for(psplit_service *service, uint64_t id) {
  psplit_diag diag = {0};
  const psplit_response *response = NULL;
  if (psplit_service_wait(service, id, 30, &diag, &response) != PSPLIT_OK)
    printf("# %s\n", diag.message);
  return response;
}

/* Of each kind, alone. */
static void learn(psplit_service *service) {
  for (int kind = 0; kind < N_KINDS; kind++) {
    dims[kind][0] = 1 + kind % MOST_ROWS;
    dims[kind][1] = 8;
    for (int i = 0; i < MOST_ROWS * 8; i++) inputs[kind][i] = (float)(kind + i) / 64;
    const psplit_named_tensor input = input_of(kind);
    const psplit_request request = request_of(&input);
    uint64_t id = 0;
    const psplit_response *response =
      submit(service, &request, &id) == PSPLIT_OK ? wait_for(service, id) : NULL;
    if (!response || response->code != PSPLIT_OK) {
      printf("Bail out! %s\n", response ? response->message : "no answer");
      exit(1);
    }
    free(wanted[kind]); /* of another service */
    wanted[kind] = join(response, &n_wanted[kind]);
    psplit_response_release(response);
  }
}

/* Many threads at once, half of them by callbacks. */
typedef struct asked {
  int kind;
  atomic_int n_answers, n_right;
  psplit_code code;
} asked;
typedef struct client {
  psplit_service *service;
  uint32_t seed;
  asked each[N_EACH];
  int n_bad;
} client;

static void respond(void *user, const psplit_response *response) {
  asked *a = user;
  a->code = response->code;
  atomic_fetch_add(&a->n_right, is_right(response, a->kind));
  atomic_fetch_add(&a->n_answers, 1);
}

static void *ask(void *user) {
  client *c = user;
  for (int i = 0; i < N_EACH; i++) {
    asked *a = &c->each[i];
    c->seed = c->seed * 1664525 + 1013904223;
    a->kind = (int)(c->seed >> 16) % N_KINDS;
    const psplit_named_tensor input = input_of(a->kind);
    psplit_request request = request_of(&input);
    uint64_t id = 0;
    if (c->seed >> 31) {
      request.respond = respond;
      request.user = a;
    }
    if (submit(c->service, &request, &id) != PSPLIT_OK || !id) c->n_bad++;
    if (request.respond) continue;
    const psplit_response *response = wait_for(c->service, id);
    if (!response || response->id != id) c->n_bad++;
    if (response) respond(a, response);
    psplit_response_release(response);
  }
  return NULL;
}

static void many(void) {
  static client clients[N_THREADS];
  psplit_diag diag = {0};
  psplit_service *service = start(8, 2);
  psplit_service_stats stats = {.struct_size = sizeof stats};
  pthread_t threads[N_THREADS];
  learn(service);
  for (uint32_t t = 0; t < N_THREADS; t++) {
    clients[t].service = service;
    clients[t].seed = t + 1;
    if (pthread_create(&threads[t], NULL, ask, &clients[t])) exit(1);
  }
  for (int t = 0; t < N_THREADS; t++) pthread_join(threads[t], NULL);
  check(psplit_service_stop(service, 30, &diag) == PSPLIT_OK, "it stops when all are answered");
  int n_once = 0, n_right = 0, n_bad_calls = 0;
  for (int t = 0; t < N_THREADS; t++) {
    n_bad_calls += clients[t].n_bad;
    for (int i = 0; i < N_EACH; i++) {
      n_once += clients[t].each[i].n_answers == 1;
      n_right += clients[t].each[i].n_right == 1;
    }
  }
  printf("# %d once, %d right, %d bad\n", n_once, n_right, n_bad_calls);
  check(n_once == N_THREADS * N_EACH && !n_bad_calls, "each request is answered once");
  check(n_right == N_THREADS * N_EACH, "each has the bits that it has alone");
  psplit_service_get_stats(service, &stats);
  check(stats.n_accepted == N_THREADS * N_EACH + N_KINDS && stats.n_good == stats.n_accepted &&
          !stats.n_failed && !stats.n_waiting && !stats.n_under_way,
        "and is counted");
  psplit_service_stage_stats stage = {.struct_size = sizeof stage};
  psplit_service_get_stage(service, 0, &stage);
  check(stage.n_micro_batches == stats.n_accepted && stage.busy_ns > 0,
        "so is the work of stage 0");
  psplit_service_destroy(service);
}

static psplit_code refused(psplit_service *service, const psplit_named_tensor *given, uint32_t n,
                           const char *word) {
  psplit_diag diag = {0};
  psplit_request request = request_of(given);
  request.n_inputs = n;
  const psplit_code code = psplit_service_submit(service, &request, &diag, NULL);
  if (!strstr(diag.message, word)) printf("# %s\n", diag.message);
  return strstr(diag.message, word) ? code : PSPLIT_OK;
}

static void inputs_that_are_none(void) {
  psplit_diag diag = {0};
  psplit_service *service = start(8, 2);
  learn(service);
  psplit_named_tensor input = input_of(1), other[2] = {input, input};
  check(refused(service, &input, 0, "there is no data for input x") == PSPLIT_USAGE, "none");
  check(refused(service, other, 2, "twice") == PSPLIT_USAGE, "one twice");
  input.name = "nix";
  check(refused(service, &input, 1, "no input nix") == PSPLIT_USAGE, "one of another name");
  input = input_of(1);
  input.tensor.data_type = 11;
  check(refused(service, &input, 1, "float64") == PSPLIT_INVALID, "another type");
  input.tensor.data_type = 99;
  check(refused(service, &input, 1, "99") == PSPLIT_INVALID, "no type");
  input = input_of(1);
  input.tensor.n_bytes--;
  check(refused(service, &input, 1, "bytes") == PSPLIT_INVALID, "bytes that the shape has not");
  const int64_t wide[] = {1, 16}, negative[] = {-1, 8};
  input = input_of(1);
  input.tensor.dims = wide;
  check(refused(service, &input, 1, "dimension 1 is 16, the model's is 8") == PSPLIT_INVALID,
        "another size");
  input.tensor.dims = negative;
  check(refused(service, &input, 1, "") == PSPLIT_INVALID, "a negative size");
  input = input_of(1);
  input.tensor.n_dims = 1;
  input.tensor.n_bytes = (uint64_t)dims[1][0] * sizeof(float);
  check(refused(service, &input, 1, "1 dimensions, the model's has 2") == PSPLIT_INVALID,
        "another rank");
  const psplit_response *response = NULL;
  check(psplit_service_wait(service, 12345, 1, &diag, &response) == PSPLIT_USAGE,
        "an answer that nobody asked for");
  psplit_service_destroy(service);
}

/* With a stage that takes 100 ms: what waits can be refused, cancelled, late. */
static void slow(void) {
  psplit_diag diag = {0};
  psplit_service *service = start(2, 1);
  learn(service);
  const psplit_named_tensor input = input_of(3);
  psplit_request request = request_of(&input);
  asked each[32] = {{.kind = 3}};
  uint64_t ids[32];
  int n = 0;
  request.wait = false;
  request.respond = respond;
  psplit_code code = PSPLIT_OK;
  bool was_refused = false;
  for (int tries = 0; tries < 10000 && (n < 5 || !was_refused) && n < 32; tries++) {
    each[n].kind = 3;
    request.user = &each[n];
    code = submit(service, &request, &ids[n]);
    n += code == PSPLIT_OK;
    was_refused = code == PSPLIT_LIMIT;
    if (was_refused) nap(5);
  }
  check(was_refused && n >= 5, "what has no room is refused");
  check(psplit_service_cancel(service, ids[n - 1]) && each[n - 1].n_answers == 1 &&
          each[n - 1].code == PSPLIT_IO,
        "one that waits is cancelled at once");
  const int away = n - 3; /* two have room to wait */
  check(psplit_service_cancel(service, ids[away]) && each[away].n_answers == 1 &&
          each[away].code == PSPLIT_IO,
        "so is one that is under way");
  check(!psplit_service_cancel(service, ids[away]) && !psplit_service_cancel(service, 999),
        "but once, and only those that there are");
  request.wait = true;
  request.respond = NULL;
  request.deadline_s = 0.02;
  uint64_t late = 0, patient = 0;
  const psplit_response *response = NULL;
  if (submit(service, &request, &late) == PSPLIT_OK) response = wait_for(service, late);
  /* It may have missed it before there was room. */
  check(!late || (response && response->code == PSPLIT_LIMIT && strstr(response->message, "deadl")),
        "one that misses its deadline");
  psplit_response_release(response);
  request.deadline_s = INFINITY; /* whatever time it takes */
  response = NULL;
  check(submit(service, &request, &patient) == PSPLIT_OK &&
          psplit_service_wait(service, patient, 0.001, &diag, &response) == PSPLIT_LIMIT &&
          !response,
        "one that is not there yet");
  response = wait_for(service, patient);
  check(response && is_right(response, 3) && response->total_ns >= 100000000, "and then is");
  psplit_response_release(response);
  int n_right = 0, n_once = 0;
  for (int i = 0; i < n; i++) {
    n_right += each[i].n_right;
    n_once += each[i].n_answers == 1;
  }
  check(n_once == n && n_right == n - 2, "all others are answered, once");
  psplit_service_destroy(service);
}

/* Stopped with work in it. */
static void stopping(void) {
  for (int patient = 0; patient < 2; patient++) {
    psplit_diag diag = {0};
    psplit_service *service = start(8, 1);
    learn(service);
    const psplit_named_tensor input = input_of(3);
    psplit_request request = request_of(&input);
    asked each[8] = {{.kind = 3}};
    request.respond = respond;
    for (int i = 0; i < 8; i++) {
      each[i].kind = 3;
      request.user = &each[i];
      if (submit(service, &request, NULL) != PSPLIT_OK) check(false, "it is accepted");
    }
    check(psplit_service_stop(service, patient ? 30 : 0, &diag) == PSPLIT_OK, "it stops");
    int n_once = 0, n_right = 0;
    for (int i = 0; i < 8; i++) {
      n_once += each[i].n_answers == 1;
      n_right += each[i].n_right;
    }
    check(n_once == 8 && (patient ? n_right == 8 : n_right < 8),
          patient ? "with all answers" : "at once, and tells all");
    check(submit(service, &request, NULL) == PSPLIT_IO && !psplit_service_is_ready(service),
          "it takes no more");
    psplit_service_destroy(service);
    if (over_mpi) return; /* the other ranks are in the first alone */
  }
}

/* Run 20 of stage 1 fails: 16 kinds were learnt before. */
static void failing(void) {
  psplit_service *service = start(8, 2);
  learn(service);
  int n_right = 0, n_failed = 0;
  for (int i = 0; i < 10; i++) {
    const psplit_named_tensor input = input_of(i);
    const psplit_request request = request_of(&input);
    uint64_t id = 0;
    if (submit(service, &request, &id) != PSPLIT_OK) break;
    const psplit_response *response = wait_for(service, id);
    n_right += response && is_right(response, i);
    n_failed += response && i == 4 && response->code == PSPLIT_INVALID &&
                strstr(response->message, "stage 1 ") &&
                strstr(response->message, "as it was told");
    psplit_response_release(response);
  }
  check(n_right == 9 && n_failed == 1, "one that fails is one that fails");
  psplit_service_destroy(service);
}

/* Requests that come together run together, where stage 1 fails in its first run or not. */
static void run_together(bool fails) {
  psplit_diag diag = {0};
  asked each[N_KINDS];
  psplit_service *service = start(64, 2);
  learn(service);
  psplit_service_destroy(service);
  max_batch = 8;
  service = start(64, 2);
  for (int i = 0; i < N_KINDS; i++) {
    each[i] = (asked){.kind = i};
    const psplit_named_tensor input = input_of(i);
    psplit_request request = request_of(&input);
    request.respond = respond;
    request.user = &each[i];
    if (submit(service, &request, NULL) != PSPLIT_OK) check(false, "it is accepted");
  }
  check(psplit_service_stop(service, 30, &diag) == PSPLIT_OK, "joined requests: it stops");
  int n_right = 0, n_once = 0, n_rows = 0;
  for (int i = 0; i < N_KINDS; i++) {
    n_right += each[i].n_right;
    n_once += each[i].n_answers == 1;
    n_rows += (int)dims[i][0];
  }
  check(n_right == N_KINDS && n_once == N_KINDS, "each gets its own rows, once");
  psplit_service_stage_stats stage = {.struct_size = sizeof stage};
  psplit_service_get_stage(service, 0, &stage);
  const uint64_t n = stage.n_micro_batches;
  printf("# %d rows in %d micro-batches\n", n_rows, (int)n);
  check(fails || (n < N_KINDS && n * max_batch >= (uint64_t)n_rows),
        "they ran together, and not too many at once");
  psplit_service_destroy(service);
  max_batch = 0;
}
static void batches(void) { run_together(false); }
static void failing_batch(void) { run_together(true); }

/* A dimension that there is not. */
static void no_batches(void) {
  psplit_diag diag = {0};
  psplit_service_options own;
  psplit_service *service = NULL;
  psplit_service_options_init(&own);
  own.max_batch = 4;
  check(psplit_service_start(ort, pipeline, NULL, &own, &diag, &service) == PSPLIT_USAGE &&
          strstr(diag.message, "no input has a dimension batch") && strstr(diag.message, "n"),
        "a dimension that the model has not");
}

/* Stage 1 never comes back; nobody is left without an answer where the process lives on. */
static void dropped(void) {
  psplit_service *service = start(8, 2);
  learn(service);
  const psplit_named_tensor input = input_of(0);
  const psplit_request request = request_of(&input);
  uint64_t id = 0;
  check(submit(service, &request, &id) == PSPLIT_OK, "it is accepted");
  nap(20);
  psplit_service_destroy(service); /* with an answer that nobody fetched */
  check(true, "answers that nobody takes are freed");
}

static int fail(const psplit_diag *diag) {
  printf("Bail out! %s\n", diag->message);
  return 1;
}

int main(int argc, char **argv) {
  static const struct {
    const char *name;
    void (*run)(void);
    int n_services; /* that it starts, one after the other */
  } CHECKS[] = {{"many", many, 1},
                {"inputs", inputs_that_are_none, 1},
                {"slow", slow, 1},
                {"stopping", stopping, 1},
                {"failing", failing, 1},
                {"dropped", dropped, 1},
                {"batches", batches, 2},
                {"failing-batch", failing_batch, 2},
                {"no-batches", no_batches, 0}};
  psplit_diag diag = {0};
  uint32_t rank = 0;
  if (argc > 1 && strcmp(argv[1], STAGE_COMMAND[1]) == 0)
    return psplit_stage_process(&diag) == PSPLIT_OK ? 0 : fail(&diag);
  if (argc < 4) return 2;
  over_processes = strcmp(argv[1], "processes") == 0;
  over_mpi = strcmp(argv[1], "mpi") == 0;
#ifdef HAS_MPI
  uint32_t n_ranks = 1;
  if (over_mpi && psplit_mpi_begin(&diag, &rank, &n_ranks) != PSPLIT_OK) return fail(&diag);
#endif
  if (psplit_onnxruntime_open(NULL, &diag, &ort) != PSPLIT_OK) return fail(&diag);
  if (psplit_pipeline_open(argv[2], NULL, &diag, &pipeline) != PSPLIT_OK) return fail(&diag);
  for (int i = 3; i < argc; i++)
    for (size_t c = 0; c < sizeof CHECKS / sizeof *CHECKS; c++) {
      if (strcmp(CHECKS[c].name, argv[i]) != 0) continue;
      if (!rank) CHECKS[c].run();
#ifdef HAS_MPI
      for (int s = 0; rank && s < CHECKS[c].n_services; s++)
        if (psplit_mpi_service_run(ort, pipeline, NULL, &diag) != PSPLIT_OK) {
          fprintf(stderr, "rank %u: %s\n", rank, diag.message);
          psplit_mpi_abort(1);
        }
#endif
    }
  if (!rank) printf("1..%d\n", n_checks);
  for (int kind = 0; kind < N_KINDS; kind++) free(wanted[kind]);
  psplit_pipeline_close(pipeline);
  psplit_onnxruntime_close(ort);
#ifdef HAS_MPI
  if (over_mpi) psplit_mpi_end();
#endif
  return n_bad != 0;
}
