/* Why: a program with a Cancel button, or a user at Ctrl-C, does not wait. Opening, planning,
 * solving, writing and proving are begun again and again with a flag that a timer sets, later each
 * time, until a call ends before its timer: each of the others says CANCELLED, soon after the flag
 * was set, and leaves no memory behind. */
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/time.h>
#include <time.h>

#include <cmocka.h>

#include <psplit/emit.h>
#include <psplit/passes.h>
#include <psplit/verify.h>

#include "failing.h"
#include "open.h"
#include "scratch.h"
#include "text_model.h"

enum { N_NODES = 30000, WIDTH = 300, STAGES = 4 };

static volatile int flag;
static volatile double flag_s; /* of processor time, when it was set */

static double processor_s(void) {
  struct timespec t;
  clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
  return (double)t.tv_sec + (double)t.tv_nsec * 1e-9;
}

static void set_flag(int number) {
  (void)number;
  flag_s = processor_s();
  flag = 1;
}

static void set_timer(long us) {
  const struct itimerval timer = {.it_value = {us / 1000000, us % 1000000}};
  setitimer(ITIMER_PROF, &timer, NULL);
}

/* One call that is to be cancelled; what it makes, it destroys. */
typedef psplit_code (*cancellable)(psplit_diag *diag);

/* Sanitizers, and fuzzers' counters, make the same steps take up to nine times as long. */
#ifdef SANITIZED
#define MOST_S 9.0
#else
#define MOST_S 1.0
#endif

/* Processor time of all threads counts, so that a busy machine changes nothing. */
static void cancel_at_all_times(const char *name, cancellable call, bool ends) {
  static const double LAST_LOOK_S = 0.05;
  bool before = true; /* the flag is set before the call */
  for (long us = 500; us < (ends ? 60000000 : 1000000); us = before ? us : us * 2) {
    psplit_diag diag = {0};
    const long live_before = live_blocks();
    flag = before;
    flag_s = processor_s();
    if (!before) set_timer(us);
    const psplit_code code = call(&diag);
    const double took_s = processor_s() - flag_s;
    set_timer(0);
    if (live_blocks() != live_before)
      fail_msg("%s, %ld us: %ld blocks stay", name, us, live_blocks() - live_before);
    /* A flag that is set once the last look is taken changes nothing. */
    if (code == PSPLIT_OK && ends && !before && (!flag || took_s < LAST_LOOK_S)) return;
    if (code != PSPLIT_CANCELLED || strcmp(diag.message, "interrupted") != 0)
      fail_msg("%s, %ld us: %s %s", name, us, psplit_code_name(code), diag.message);
    if (took_s > MOST_S) fail_msg("%s, %ld us: %.2f s from the flag to the end", name, us, took_s);
    before = false;
  }
  if (ends) fail_msg("%s does not end", name);
}

/* --- what is cancelled --- */

static psplit_model *model;
static psplit_planner *planned; /* its plan is what is written */

static psplit_code open_it(psplit_diag *diag) {
  const psplit_read_options options = {.struct_size = sizeof options, .cancel = &flag};
  psplit_model *opened_one = NULL;
  const psplit_code code = psplit_model_open("model.onnx", &options, diag, &opened_one);
  psplit_model_close(opened_one);
  return code;
}

static psplit_code make_plan(const char *pipeline, double limit_s, psplit_diag *diag) {
  psplit_planner_options options;
  psplit_planner *planner = NULL;
  psplit_planner_options_init(&options);
  options.n_stages = STAGES;
  options.time_limit_s = limit_s;
  options.cancel = &flag;
  psplit_code code = psplit_planner_create(model, &options, diag, &planner);
  if (code == PSPLIT_OK) code = psplit_planner_run(planner, pipeline, diag);
  psplit_planner_destroy(planner);
  return code;
}

static psplit_code plan_it(psplit_diag *diag) { return make_plan(NULL, 0.2, diag); }

/* Every supernode a node, and no limit: this would take for ever. */
static psplit_code plan_without_end(psplit_diag *diag) {
  return make_plan("infer-shapes,cost,mark,partition:solver=exact", -1, diag);
}

static psplit_code solve_without_end(psplit_diag *diag) {
  enum { N = 400 };
  static int64_t time_ns[N], send_ns[N];
  static uint32_t producer[N], consumer[N], off[N + 1];
  const psplit_device device = {.count = 8};
  for (uint32_t v = 0; v < N; v++) {
    time_ns[v] = 1000 + v * 7919 % 1000;
    producer[v] = v;
    consumer[v] = v + 20 < N ? v + 20 : v;
    send_ns[v] = 500 + v * 104729 % 1000;
    off[v + 1] = v + 1;
  }
  const psplit_problem problem = {.n_nodes = N,
                                  .n_classes = 1,
                                  .time_ns = time_ns,
                                  .n_nets = N - 20,
                                  .net_producer = producer,
                                  .net_off = off,
                                  .net_consumer = consumer,
                                  .net_send_ns = send_ns,
                                  .net_recv_ns = send_ns,
                                  .n_devices = 1,
                                  .devices = &device,
                                  .ticks_per_unit = 1};
  psplit_partition_options options;
  psplit_partition_options_init(&options);
  options.time_limit_s = -1;
  options.cancel = &flag;
  psplit_solution *solution = NULL;
  const psplit_code code = psplit_partition_solve(&problem, &options, diag, &solution);
  assert_true(code != PSPLIT_OK || solution);
  psplit_solution_destroy(solution);
  return code;
}

static psplit_code emit_it(psplit_diag *diag) {
  const psplit_emit_options options = {
    .struct_size = sizeof options, .replace = true, .cancel = &flag};
  return psplit_emit(model, psplit_planner_plan(planned), "out", &options, diag);
}

static psplit_code verify_it(psplit_diag *diag) {
  const psplit_verify_options options = {.struct_size = sizeof options, .cancel = &flag};
  return psplit_verify("split", model, &options, diag, NULL);
}

/* --- the model: layers that read two nodes of the layer above, and its split --- */

static void write_model(void) {
  psplit_i_text text = {0};
  psplit_i_text_puts(&text, "(float[64] x) => (float[64] y) <float[64] w = random(1)> {\n");
  for (unsigned i = 0; i < N_NODES; i++) {
    const unsigned row = i / WIDTH, at = i % WIDTH;
    if (row == 0)
      psplit_i_text_addf(&text, "v%u = Add (x, w)\n", i);
    else
      psplit_i_text_addf(&text, "v%u = Add (v%u, v%u)\n", i, i - WIDTH,
                         (row - 1) * WIDTH + (at * 17 + row) % WIDTH);
  }
  psplit_i_text_addf(&text, "y = Relu (v%u) }\n", N_NODES - 1);
  write_model_text("model.onnx", text.bytes);
  psplit_i_text_fini(&text);
}

static int make(void **state) {
  psplit_diag diag = {0};
  const struct sigaction action = {.sa_handler = set_flag, .sa_flags = SA_RESTART};
  if (enter_scratch(state) != 0 || sigaction(SIGPROF, &action, NULL) != 0) return -1;
  write_model();
  assert_int_equal(psplit_model_open("model.onnx", NULL, &diag, &model), PSPLIT_OK);
  psplit_planner_options options;
  psplit_planner_options_init(&options);
  options.n_stages = STAGES;
  options.time_limit_s = 0;
  if (psplit_planner_create(model, &options, &diag, &planned) != PSPLIT_OK ||
      psplit_planner_run(planned, "infer-shapes,cost,mark,partition", &diag) != PSPLIT_OK ||
      psplit_emit(model, psplit_planner_plan(planned), "split", NULL, &diag) != PSPLIT_OK)
    fail_msg("%s", diag.message);
  return 0;
}

static int unmake(void **state) {
  psplit_planner_destroy(planned);
  psplit_model_close(model);
  return leave_scratch(state);
}

#define CANCELS(call, ends)                 \
  static void call##_ends(void **state) {   \
    (void)state;                            \
    cancel_at_all_times(#call, call, ends); \
  }
CANCELS(open_it, true)
CANCELS(plan_it, true)
CANCELS(plan_without_end, false)
CANCELS(solve_without_end, false)
CANCELS(emit_it, true)
CANCELS(verify_it, true)

int main(void) {
  const struct CMUnitTest tests[] = {
    cmocka_unit_test(open_it_ends),          cmocka_unit_test(plan_it_ends),
    cmocka_unit_test(plan_without_end_ends), cmocka_unit_test(solve_without_end_ends),
    cmocka_unit_test(emit_it_ends),          cmocka_unit_test(verify_it_ends)};
  return cmocka_run_group_tests_name("cancel", tests, make, unmake);
}
