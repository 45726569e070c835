/* Nodes that are computed again: no split with such copies is below the bound that is given for
 * them, and where copies help, the bound is mostly the best split's value. Told by enumeration. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
/* cmocka.h needs the four above first. */
#include <cmocka.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "copies.h"
#include "open.h"
#include "small_plans.h"

enum { MAX_NODES = 7 };

/* Products, which nobody computes again, and what is cheap beside its result: casts, sums, means
 * and numbers of several results. The last results are outputs; so are some others. */
static psplit_model *draw_model(dice *d, uint32_t n) {
  psplit_i_text nodes = {0}, outputs = {0}, text = {0};
  bool whole[MAX_NODES + 1] = {true}, read[MAX_NODES + 1] = {false};
  for (uint32_t i = 1; i <= n; i++) {
    uint32_t a = i - 1 - draw(d, i < 3 ? i : 3), b = draw(d, i);
    while (!whole[a]) a--;
    read[a] = whole[i] = true;
    switch (draw(d, 7)) {
      case 0:
      case 1: psplit_i_text_addf(&nodes, "v%u = MatMul (v%u, w)\n", i, a); break;
      case 2: psplit_i_text_addf(&nodes, "v%u = Neg (v%u)\n", i, a); break;
      case 3:
        psplit_i_text_addf(&nodes, "v%u = ReduceMean <axes = [1]> (v%u)\n", i, a);
        whole[i] = false;
        break;
      case 4:
        psplit_i_text_addf(&nodes,
                           "p%u, q%u = Split <axis = 0> (v%u)\n"
                           "v%u = Concat <axis = 0> (q%u, p%u)\n",
                           i, i, a, i, i, i);
        break;
      default: read[b] = true; psplit_i_text_addf(&nodes, "v%u = Add (v%u, v%u)\n", i, a, b);
    }
  }
  for (uint32_t i = 1; i <= n; i++)
    if (!read[i])
      psplit_i_text_addf(&outputs, "%sfloat[64,%u] v%u", outputs.n ? ", " : "", whole[i] ? 64 : 1,
                         i);
  psplit_i_text_addf(&text,
                     "<ir_version: 8, opset_import: [\"\": 13]> m (float[64,64] v0) => (%s)"
                     "<float[64,64] w = random(1)> {%s}",
                     outputs.bytes, nodes.bytes);
  psplit_model *model = opened_text(text.bytes);
  psplit_i_text_fini(&nodes);
  psplit_i_text_fini(&outputs);
  psplit_i_text_fini(&text);
  return model;
}

typedef struct search {
  psplit_planner *planner;
  uint32_t stage[2 * MAX_NODES];
  int64_t best_ns, plain_ns; /* of all splits, with copies and without */
} search;

static void judge(search *s) {
  psplit_planner *planner = s->planner;
  psplit_diag diag = {0};
  uint32_t used = 0;
  for (uint32_t n = 0; n < planner->graph->n_nodes; n++) {
    planner->stage[n] = s->stage[n];
    used |= UINT32_C(1) << s->stage[n];
  }
  if (used + 1 != UINT32_C(1) << planner->options.n_stages) return;
  planner->copies.n = 0;
  planner->plan_holds = false;
  assert_int_equal(psplit_i_plan_make(planner, &diag), PSPLIT_OK);
  if (planner->plan->bottleneck_ns < s->plain_ns) s->plain_ns = planner->plan->bottleneck_ns;
  assert_int_equal(psplit_planner_run(planner, "replicate", &diag), PSPLIT_OK);
  if (planner->plan->bottleneck_ns < s->best_ns) s->best_ns = planner->plan->bottleneck_ns;
}

static void place(search *s, uint32_t n) {
  const psplit_i_graph *graph = s->planner->graph;
  if (n == graph->n_nodes) {
    judge(s);
    return;
  }
  uint32_t low = 0;
  PSPLIT_FOR_EACH_READ(&graph->nodes[n], value) {
    const uint32_t p = graph->values[value].producer;
    if (p != PSPLIT_NONE && s->stage[p] > low) low = s->stage[p];
  }
  for (uint32_t k = low; k < s->planner->options.n_stages; k++) {
    s->stage[n] = k;
    place(s, n + 1);
  }
}

typedef struct counts {
  unsigned n_helped, n_tight, n_close; /* the bound is the best, or within a tenth of it */
} counts;

static counts compare(uint32_t n_models, bool overlap, psplit_message_latency latency) {
  counts found = {0};
  for (uint32_t m = 0; m < n_models; m++) {
    dice d = {m, 0};
    psplit_planner_options options = options_for(2 + draw(&d, 2), NULL);
    options.overlap = overlap;
    options.message_latency = latency;
    psplit_model *model = draw_model(&d, 4 + draw(&d, MAX_NODES - 3));
    psplit_planner *planner = unit_of(model, &options);
    if (planner->graph->n_nodes <= MAX_NODES + 2 && plan_of(planner)) {
      psplit_diag diag = {0};
      psplit_solution *solution = planner->solution;
      search s = {.planner = planner, .best_ns = INT64_MAX, .plain_ns = INT64_MAX};
      uint32_t stage[2 * MAX_NODES];
      int64_t bound_ns = 0;
      assert_int_equal(psplit_i_bound_with_copies(planner, &diag, &bound_ns, stage), PSPLIT_OK);
      planner->solution = NULL; /* no bound of its own */
      place(&s, 0);
      planner->solution = solution;
      if (bound_ns > s.best_ns)
        fail_msg("model %u: the bound %ld is above %ld", m, (long)bound_ns, (long)s.best_ns);
      if (s.best_ns < s.plain_ns) {
        found.n_helped++;
        found.n_tight += bound_ns == s.best_ns;
        found.n_close += bound_ns >= s.best_ns - s.best_ns / 10;
      }
    }
    psplit_planner_destroy(planner);
    psplit_model_close(model);
  }
  print_message("# copies help in %u, the bound is the best in %u, and near it in %u\n",
                found.n_helped, found.n_tight, found.n_close);
  return found;
}

static void no_split_is_below_the_bound(void **state) {
  (void)state;
  const counts found = compare(50, false, PSPLIT_LATENCY_PER_TENSOR);
  assert_true(found.n_helped >= 15);
  assert_true(found.n_tight * 10 >= found.n_helped * 6);
}

/* Where copies may save all that they can, the bound holds and is mostly lower. */
static void none_is_where_stages_send_while_they_compute(void **state) {
  (void)state;
  assert_true(compare(16, true, PSPLIT_LATENCY_PER_TENSOR).n_helped >= 2);
}

/* Where latency is a message's, bytes have their price, and so have messages that stages need
 * whatever they compute again: without the price of messages the bound is the best in two and near
 * in four, without that of bytes, too, near in two. Where the plan passes tensors on, the bound is
 * by shared memory, for all ways, and lower. */
static void none_is_where_latency_is_a_messages(void **state) {
  (void)state;
  const counts found = compare(50, false, PSPLIT_LATENCY_PER_PAIR);
  assert_true(found.n_helped >= 20 && found.n_tight >= 6 && found.n_close >= 10);
}

/* A mask that takes three nodes to make, each of which takes less than what it reads takes to be
 * received: where it is read again, all three are computed again. */
static void a_mask_is_computed_again_from_the_models_inputs(void **state) {
  (void)state;
  psplit_model *model = opened_text(
    "<ir_version: 8, opset_import: [\"\": 13]> m (float[256,256] x, float[1,8] m) => "
    "(float[256,256] y)"
    "<float[256,256] w = random(1)> {"
    " a = Neg (m)\n b = Abs (a)\n c = Neg (b)\n d = ReduceMean <keepdims = 0> (c)\n"
    " h1 = MatMul (x, w)\n h2 = Add (h1, d)\n h3 = MatMul (h2, w)\n h4 = MatMul (h3, w)\n"
    " h5 = Add (h4, d)\n y = MatMul (h5, w)}");
  psplit_planner_options options = options_for(2, NULL);
  options.message_latency = PSPLIT_LATENCY_PER_TENSOR;
  psplit_planner *planner = unit_of(model, &options);
  psplit_diag diag = {0};
  assert_true(plan_of(planner));
  assert_int_equal(psplit_planner_plan(planner)->n_transfers, 2);
  assert_int_equal(psplit_planner_run(planner, "replicate", &diag), PSPLIT_OK);
  const psplit_plan *plan = psplit_planner_plan(planner);
  assert_int_equal(plan->n_transfers, 1);
  assert_int_equal(plan->n_copies, 4);
  for (uint32_t c = 0; c < plan->n_copies; c++) assert_int_equal(plan->copies[c].stage, 1);
  psplit_planner_destroy(planner);
  psplit_model_close(model);
}

/* Two, of which the second has so much memory. */
static psplit_devices *two_devices(uint64_t memory_bytes, double bytes_per_second, int latency_ns) {
  char text[512];
  snprintf(text, sizeof text,
           "{\"devices\": [{\"name\": \"a\", \"preset\": \"cpu\"},"
           " {\"name\": \"b\", \"preset\": \"cpu\", \"memory_bytes\": %lu}], \"topology\": "
           "{\"same_host\": {\"bytes_per_second\": %.0f, \"latency_ns\": %d}}}",
           (unsigned long)memory_bytes, bytes_per_second, latency_ns);
  return parsed(text);
}

/* In their order, with a latency for each tensor. */
static psplit_planner_options options_for_two(const psplit_devices *devices) {
  psplit_planner_options options = options_for(2, devices);
  options.device_order = PSPLIT_DEVICE_ORDER_GIVEN;
  options.message_latency = PSPLIT_LATENCY_PER_TENSOR;
  return options;
}

/* What two results follow from is cheap beside a message: another split is far better with a copy,
 * though the best one without has no use for any. */
static void a_split_that_only_copies_make_best_is_found(void **state) {
  (void)state;
  psplit_model *model = opened_text(
    "<ir_version: 8, opset_import: [\"\": 13]> m (float[4,64] x) => (float[4,64] v3, float[4,64] "
    "v5)"
    "<float[64,64] w = random(1), float[64,64] u = random(2), float[64,64] t = random(3)> {"
    " v0 = MatMul (x, w)\n v1 = Relu (v0)\n v2 = MatMul (v0, u)\n v3 = Add (v1, v1)\n"
    " v4 = Add (v2, v0)\n v5 = MatMul (v4, t)}");
  psplit_devices *devices = parsed(
    "{\"devices\": [{\"name\": \"a\", \"preset\": \"cpu\"}, {\"name\": \"b\", \"preset\": "
    "\"cpu\"}], \"topology\": {\"same_host\": {\"bytes_per_second\": 1e9, \"latency_ns\": "
    "1000000}}}");
  for (int per_tensor = 0; per_tensor < 2; per_tensor++) {
    psplit_planner_options options;
    psplit_planner_options_init(&options);
    options.n_stages = 2;
    options.devices = devices;
    options.slack_frac = 0;
    options.message_latency = per_tensor ? PSPLIT_LATENCY_PER_TENSOR : PSPLIT_LATENCY_PER_PAIR;
    psplit_planner *planner = unit_of(model, &options);
    psplit_diag diag = {0};
    assert_true(plan_of(planner));
    assert_true(psplit_planner_plan(planner)->bottleneck_ns > 1000000);
    assert_int_equal(psplit_planner_run(planner, "replicate", &diag), PSPLIT_OK);
    const psplit_plan *plan = psplit_planner_plan(planner);
    assert_true(plan->bottleneck_ns < 1000000);
    assert_true(plan->lower_bound_ns <= plan->bottleneck_ns);
    assert_true(!plan->proof_scope || !strstr(plan->proof_scope, "without copies"));
    assert_int_equal(plan->n_transfers, 0);
    psplit_planner_destroy(planner);
  }
  psplit_devices_destroy(devices);
  psplit_model_close(model);
}

/* Two halves of nine products each, which begin with three cheap results and end with another one:
 * the best split without copies cuts both in their middles, and the one where each stage has a half
 * and makes all that is cheap itself sends nothing. */
typedef struct moved {
  int64_t before_ns, after_ns, bound_ns;
  uint64_t bytes; /* of the second stage */
  bool differs;   /* the split is another one */
} moved;

static moved move_with_copies(uint64_t memory_bytes) {
  psplit_i_text nodes = {0};
  psplit_i_text_puts(&nodes,
                     "<ir_version: 8, opset_import: [\"\": 13]> m (float[256,256] x, float[1,8] m) "
                     "=> (float[256,256] y, float[256,256] z) <float[1] one = {1}");
  for (int i = 0; i < 8; i++)
    psplit_i_text_addf(&nodes, ", float[256,256] v%d = random(2), float[256,256] w%d = random(3)",
                       i, i);
  psplit_i_text_puts(&nodes,
                     "> { d0 = Neg (m)\n d = ReduceMean <keepdims = 0> (d0)\n c1 = Add (x, d)\n"
                     " c2 = Abs (x)\n c3 = Relu (x)\n a0 = Gemm (c2, c1, c3)\n"
                     " b0 = Gemm (c1, c2, c3)\n");
  for (int i = 0; i < 8; i++)
    psplit_i_text_addf(&nodes, " a%d = MatMul (a%d, v%d)\n b%d = MatMul (b%d, w%d)\n", i + 1, i, i,
                       i + 1, i, i);
  psplit_i_text_puts(&nodes, " y = Add (a8, d)\n z = Add (b8, d)}");
  psplit_model *model = opened_text(nodes.bytes);
  psplit_devices *devices = two_devices(memory_bytes, 1e13, 300000);
  psplit_planner_options options = options_for_two(devices);
  options.slack_frac = 0;
  psplit_planner *planner = unit_of(model, &options);
  psplit_diag diag = {0};
  moved found = {0};
  assert_true(plan_of(planner));
  const uint32_t n = planner->graph->n_nodes;
  uint32_t *stage = malloc(n * sizeof *stage);
  assert_non_null(stage);
  memcpy(stage, planner->stage, n * sizeof *stage);
  found.before_ns = psplit_planner_plan(planner)->bottleneck_ns;
  if (psplit_planner_run(planner, "replicate", &diag)) fail_msg("%s", diag.message);
  const psplit_plan *plan = psplit_planner_plan(planner);
  found.after_ns = plan->bottleneck_ns;
  found.bound_ns = plan->lower_bound_ns;
  found.bytes = plan->stages[1].memory_bytes;
  found.differs = memcmp(stage, planner->stage, n * sizeof *stage) != 0;
  free(stage);
  psplit_planner_destroy(planner);
  psplit_devices_destroy(devices);
  psplit_model_close(model);
  psplit_i_text_fini(&nodes);
  return found;
}

static void another_split_is_taken_for_its_copies(void **state) {
  (void)state;
  const moved found = move_with_copies(UINT64_C(1) << 30);
  assert_true(found.differs && found.after_ns < found.before_ns);
  assert_true(found.bound_ns > 0 && found.bound_ns <= found.after_ns);
  /* Where the second device has room for few of the weights, the plan is slower than that split
   * is without copies. */
  const moved limited = move_with_copies(found.bytes - 7 * (UINT64_C(1) << 18));
  assert_true(!limited.differs && limited.after_ns < limited.before_ns);
  assert_true(limited.bound_ns > 0 && limited.bound_ns <= limited.after_ns);
}

/* The plan on two devices, of which the second has so much memory; what that holds. */
static uint64_t held_by_second(const psplit_model *model, uint64_t memory_bytes,
                               const char *pipeline, uint32_t *out_n_copies) {
  psplit_diag diag = {0};
  psplit_devices *devices = two_devices(memory_bytes, 1e10, 100000);
  const psplit_planner_options options = options_for_two(devices);
  psplit_planner *planner = unit_of(model, &options);
  if (psplit_planner_run(planner, pipeline, &diag)) fail_msg("%s", diag.message);
  const psplit_plan *plan = psplit_planner_plan(planner);
  const uint64_t bytes = plan->stages[1].memory_bytes;
  *out_n_copies = plan->n_copies;
  psplit_planner_destroy(planner);
  psplit_devices_destroy(devices);
  return bytes;
}

/* What copies hold besides weights counts, too: with less memory there are fewer, or none. */
static void copies_fit_into_memory(void **state) {
  (void)state;
  static const char without[] = "infer-shapes,cost,mark,partition",
                    with[] = "infer-shapes,cost,mark,partition,replicate";
  psplit_model *model = opened_text(
    "<ir_version: 8, opset_import: [\"\": 13]> m (float[256,256] x, float[64,256] m) => "
    "(float[256,256] y)"
    "<float[256,256] w = random(1)> {"
    " d = ReduceMean <axes = [0]> (m)\n"
    " h1 = MatMul (x, w)\n h2 = Add (h1, d)\n h3 = MatMul (h2, w)\n h4 = MatMul (h3, w)\n"
    " h5 = Add (h4, d)\n y = MatMul (h5, w)}");
  uint32_t n_copies;
  const uint64_t most = UINT64_C(1) << 40, least = held_by_second(model, most, without, &n_copies);
  const uint64_t enough = held_by_second(model, most, with, &n_copies);
  print_message("# %lu bytes, %lu with copies\n", (unsigned long)least, (unsigned long)enough);
  assert_true(enough > least && n_copies > 0);
  const uint64_t limits[] = {least, least + 1, enough - 1, enough};
  for (size_t i = 0; i < sizeof limits / sizeof *limits; i++) {
    const uint64_t need = held_by_second(model, limits[i], with, &n_copies);
    if (need > limits[i] || (n_copies > 0) != (limits[i] == enough))
      fail_msg("%lu bytes are needed of %lu, with %u copies", (unsigned long)need,
               (unsigned long)limits[i], n_copies);
  }
  psplit_model_close(model);
}

/* What becomes of a split once nodes are computed again, of its node 3 above all. */
typedef struct outcome {
  int64_t before_ns, after_ns;
  uint32_t stage, n_transfers;
} outcome;

static outcome outcome_of(const char *text, uint32_t n_stages, const uint32_t *split,
                          uint32_t n_nodes, uint32_t pin) {
  psplit_model *model = opened_text(text);
  psplit_devices *devices = parsed(
    "{\"devices\": [{\"name\": \"a\", \"preset\": \"cpu\"}, {\"name\": \"b\", \"preset\": "
    "\"cpu\"}, {\"name\": \"c\", \"preset\": \"cpu\"}], \"topology\": {\"same_host\": "
    "{\"bytes_per_second\": 1e6, \"latency_ns\": 0}}}");
  psplit_planner_options options = options_for(n_stages, devices);
  psplit_planner *planner = unit_of(model, &options);
  psplit_diag diag = {0};
  outcome o;
  assert_true(plan_of(planner));
  assert_int_equal(planner->graph->n_nodes, n_nodes);
  planner->pin[3] = pin;
  psplit_solution *solution = planner->solution;
  planner->solution = NULL;
  memcpy(planner->stage, split, n_nodes * sizeof *split);
  planner->copies.n = 0;
  planner->plan_holds = false;
  assert_int_equal(psplit_i_plan_make(planner, &diag), PSPLIT_OK);
  o.before_ns = planner->plan->bottleneck_ns;
  assert_int_equal(psplit_planner_run(planner, "replicate", &diag), PSPLIT_OK);
  o.after_ns = planner->plan->bottleneck_ns;
  o.n_transfers = planner->plan->n_transfers;
  o.stage = planner->plan->node_stage[3];
  planner->solution = solution;
  psplit_planner_destroy(planner);
  psplit_devices_destroy(devices);
  psplit_model_close(model);
  return o;
}

/* A model whose node 3 node 6 alone reads, and what `more` adds. */
#define IDLE(more)                                                                   \
  "<ir_version: 8, opset_import: [\"\": 13]> m (float[1,16] x) => (float[1,16] v2, " \
  "float[1,16] v5, float[1,16] v6)"                                                  \
  "<float[16,16] w = random(1)> {"                                                   \
  " v0 = Add (x, x)\n v1 = MatMul (x, w)\n v2 = MatMul (v1, w)\n v3 = Tanh (v0)\n"   \
  " v4 = MatMul (v0, w)\n v5 = MatMul (v4, w)\n v6 = Sigmoid (v3)" more "}"

/* A split whose node 3, in stage 1, stage 2 alone reads, and computes again. */
static outcome move_idle_node(uint32_t pin) {
  static const uint32_t split[] = {0, 1, 1, 1, 0, 0, 2};
  return outcome_of(IDLE(""), 3, split, 7, pin);
}

/* Where all that read a node compute it again, it is there and nowhere else: nothing is sent. */
static void nodes_move_to_those_that_compute_them_again(void **state) {
  (void)state;
  const outcome o = move_idle_node(PSPLIT_NONE);
  assert_int_equal(o.stage, 2);
  assert_int_equal(o.n_transfers, 0);
  assert_true(o.after_ns * 10 < o.before_ns);
}

static void pinned_nodes_do_not_move(void **state) {
  (void)state;
  assert_int_equal(move_idle_node(1).stage, 1);
}

/* Who reads an idle node may be dead, and stay behind: then the node does not move. */
static void nodes_that_dead_ones_read_do_not_move(void **state) {
  (void)state;
  static const uint32_t split[] = {0, 1, 1, 1, 0, 0, 2, 1};
  assert_int_equal(outcome_of(IDLE("\n v7 = Exp (v3)"), 3, split, 8, PSPLIT_NONE).stage, 1);
}

/* Bounds are of splits that have live nodes in all stages. */
static void nodes_do_not_leave_dead_ones_alone(void **state) {
  (void)state;
  static const uint32_t split[] = {0, 0, 0, 1, 0, 0, 2, 1};
  assert_int_equal(outcome_of(IDLE("\n v7 = Exp (x)"), 3, split, 8, PSPLIT_NONE).stage, 1);
}

/* Layers whose nodes read two of the layer before; the last result is the output, so that most of
 * them are dead where layers are wide. */
static psplit_model *layers_of(dice *d, uint32_t n, uint32_t width, uint32_t n_outputs) {
  psplit_i_text text = {0};
  psplit_i_text_puts(&text, "<ir_version: 8, opset_import: [\"\": 13]> m (float[64] x) => (");
  for (uint32_t i = n - n_outputs; i < n; i++)
    psplit_i_text_addf(&text, "%sfloat[64] v%u", i > n - n_outputs ? ", " : "", i);
  psplit_i_text_puts(&text, ") {");
  for (uint32_t i = 0; i < n; i++) {
    const uint32_t layer = i / width * width;
    if (!layer) {
      psplit_i_text_addf(&text, "v%u = Neg (x)\n", i);
      continue;
    }
    const uint32_t a = layer - width + draw(d, width), b = layer - width + draw(d, width);
    psplit_i_text_addf(&text, draw(d, 4) ? "v%u = Add (v%u, v%u)\n" : "v%u = Neg (v%u)\n", i, a, b);
  }
  psplit_i_text_puts(&text, "}");
  psplit_model *model = opened_text(text.bytes);
  psplit_i_text_fini(&text);
  return model;
}

/* Runs the plan: whatever a stage uses it has made, or an earlier one has, which it gets it from.
 * Returns the number of tensors that stages get. */
static uint32_t run_stages(const psplit_planner *planner) {
  const psplit_i_graph *graph = planner->graph;
  uint8_t *made = calloc(graph->n_values + 1, 1), *here = malloc(graph->n_values + 1);
  uint8_t *runs = malloc(graph->n_nodes + 1);
  uint32_t n_got = 0;
  assert_true(made && here && runs);
  for (uint32_t s = 0; s < planner->options.n_stages; s++) {
    memset(here, 0, graph->n_values);
    for (uint32_t n = 0; n < graph->n_nodes; n++) runs[n] = planner->stage[n] == s;
    for (size_t c = 0; c < planner->copies.n; c++)
      if (planner->copies.items[c].stage == s) runs[planner->copies.items[c].node] = 2;
    for (uint32_t i = 0; i < graph->n_nodes; i++) {
      const psplit_i_node *node = &graph->nodes[graph->topo[i]];
      if (!runs[graph->topo[i]]) continue;
      PSPLIT_FOR_EACH_READ(node, value) {
        if (graph->values[value].producer == PSPLIT_NONE || here[value]) continue;
        if (!made[value]) fail_msg("stage %u uses \"%s\"", s, graph->values[value].name);
        n_got += here[value] = 1;
      }
      for (uint32_t o = 0; o < node->n_outputs; o++)
        if (node->outputs[o] != PSPLIT_NONE) here[node->outputs[o]] = 1;
    }
    for (uint32_t n = 0; n < graph->n_nodes; n++)
      for (uint32_t o = 0; runs[n] == 1 && o < graph->nodes[n].n_outputs; o++)
        if (graph->nodes[n].outputs[o] != PSPLIT_NONE) made[graph->nodes[n].outputs[o]] = 1;
  }
  free(runs);
  free(here);
  free(made);
  return n_got;
}

/* Stages at random, in the order of the nodes or as far apart as reading allows. */
static void split_at_random(psplit_planner *planner, dice *d, bool by_order) {
  const psplit_i_graph *graph = planner->graph;
  const uint32_t n_stages = planner->options.n_stages;
  for (uint32_t i = 0; i < graph->n_nodes; i++) {
    const uint32_t n = graph->topo[i];
    uint32_t low = 0;
    PSPLIT_FOR_EACH_READ(&graph->nodes[n], value) {
      const uint32_t p = graph->values[value].producer;
      if (p != PSPLIT_NONE && planner->stage[p] > low) low = planner->stage[p];
    }
    const uint32_t usual = (uint32_t)((uint64_t)i * n_stages / graph->n_nodes);
    planner->stage[n] =
      by_order ? (usual > low ? usual : low) : low + (draw(d, 3) ? 0 : draw(d, n_stages - low));
  }
}

typedef struct moves {
  unsigned n_splits, n_helped, n_moved; /* nodes */
} moves;

static psplit_devices *slow_links(uint32_t n) {
  psplit_i_text json = {0};
  psplit_i_text_puts(&json, "{\"devices\": [");
  for (uint32_t i = 0; i < n; i++)
    psplit_i_text_addf(&json, "%s{\"name\": \"d%u\", \"preset\": \"cpu\"}", i ? ", " : "", i);
  psplit_i_text_puts(&json,
                     "], \"topology\": {\"same_host\": {\"bytes_per_second\": 1e9, "
                     "\"latency_ns\": 0}}}");
  psplit_devices *devices = parsed(json.bytes);
  psplit_i_text_fini(&json);
  return devices;
}

/* Copies for one split of a model: nothing is used before it is made, and no stage is slower than
 * the slowest was. */
static void copy_for(const psplit_model *model, uint32_t n_stages, dice *d, bool by_order,
                     moves *m) {
  psplit_devices *devices = slow_links(n_stages);
  psplit_planner_options options = options_for(n_stages, devices);
  options.device_order = PSPLIT_DEVICE_ORDER_GIVEN;
  psplit_planner *planner = unit_of(model, &options);
  psplit_diag diag = {0};
  if (psplit_planner_run(planner, "infer-shapes,cost,mark,attach", &diag))
    fail_msg("%s", diag.message);
  const uint32_t n_nodes = planner->graph->n_nodes;
  uint32_t *before = malloc(n_nodes * sizeof *before);
  assert_true(before != NULL);
  split_at_random(planner, d, by_order);
  memcpy(before, planner->stage, n_nodes * sizeof *before);
  planner->facts |= PSPLIT_I_FACT_STAGES;
  if (psplit_i_plan_make(planner, &diag)) fail_msg("%s", diag.message);
  const int64_t before_ns = planner->plan->bottleneck_ns;
  if (psplit_planner_run(planner, "replicate", &diag)) fail_msg("%s", diag.message);
  assert_int_equal(run_stages(planner), planner->plan->n_transfers);
  assert_true(planner->plan->bottleneck_ns <= before_ns);
  m->n_splits++;
  m->n_helped += planner->plan->bottleneck_ns < before_ns;
  for (uint32_t n = 0; n < n_nodes; n++) m->n_moved += before[n] != planner->stage[n];
  free(before);
  psplit_planner_destroy(planner);
  psplit_devices_destroy(devices);
}

static void nothing_is_used_before_it_is_made(void **state) {
  (void)state;
  moves m = {0};
  for (uint32_t seed = 0; seed < 1000; seed++) {
    dice d = {seed, 0};
    const uint32_t width = 2 + draw(&d, 4), n = width + 4 + draw(&d, 16);
    psplit_model *model = layers_of(&d, n, width, 1 + draw(&d, 3));
    copy_for(model, 2 + draw(&d, 3), &d, false, &m);
    psplit_model_close(model);
  }
  print_message("# %u splits, %u faster, %u nodes moved\n", m.n_splits, m.n_helped, m.n_moved);
  assert_true(m.n_helped >= 100 && m.n_moved >= 150);
}

static void nor_is_anything_of_5000_nodes(void **state) {
  (void)state;
  moves m = {0};
  for (uint32_t seed = 0; seed < 3; seed++) {
    dice d = {seed, 0};
    psplit_model *model = layers_of(&d, 5000, seed ? 100 : 1000, seed ? 50 : 1);
    copy_for(model, 4, &d, true, &m);
    psplit_model_close(model);
  }
  print_message("# %u splits, %u faster, %u nodes moved\n", m.n_splits, m.n_helped, m.n_moved);
  assert_true(m.n_helped >= 2 && m.n_moved >= 1000);
}

static void keep_line(void *user, psplit_severity severity, const char *line) {
  char *kept = user;
  if (severity == PSPLIT_NOTE && strstr(line, "without")) snprintf(kept, 200, "%s", line);
}

/* Five branches on three devices: copies might save more than what is known of plans without. */
static void gaps_without_copies_are_told(void **state) {
  (void)state;
  char line[200] = "";
  const psplit_logger logger = {.emit = keep_line, .user = line};
  psplit_planner_options options = options_for(3, NULL);
  options.logger = &logger;
  psplit_i_text text = {0};
  psplit_i_text_puts(&text,
                     "<ir_version: 8, opset_import: [\"\": 13]> m (float[64,64] x) => "
                     "(float[64,64] y)<float[64,64] w = random(1)> { a = Neg (x)\n");
  for (unsigned b = 0; b < 5; b++)
    psplit_i_text_addf(&text, "b%u = MatMul (a, w)\n c%u = MatMul (b%u, w)\n", b, b, b);
  psplit_i_text_puts(&text, "y = Sum (c0, c1, c2, c3, c4)}");
  psplit_model *model = opened_text(text.bytes);
  psplit_i_text_fini(&text);
  psplit_planner *planner = unit_of(model, &options);
  psplit_diag diag = {0};
  assert_true(plan_of(planner));
  const int64_t plain_ns = psplit_planner_plan(planner)->lower_bound_ns;
  assert_int_equal(psplit_planner_run(planner, "replicate", &diag), PSPLIT_OK);
  const psplit_plan *plan = psplit_planner_plan(planner);
  char want[200];
  snprintf(want, sizeof want,
           "the gap is to plans with copies; to those without that the bound covers, it is %.2f %%",
           100.0 * (double)(plan->bottleneck_ns - plain_ns) / (double)plan->bottleneck_ns);
  assert_true(plan->n_copies > 0 && plan->lower_bound_ns < plain_ns);
  assert_string_equal(line, want);
  psplit_planner_destroy(planner);
  psplit_model_close(model);
}

static const char *scope_of(uint32_t n_stages, const psplit_devices *devices, char *buffer,
                            size_t n) {
  psplit_planner_options options = options_for(n_stages, devices);
  options.message_latency = PSPLIT_LATENCY_PER_TENSOR;
  options.device_order = PSPLIT_DEVICE_ORDER_GIVEN;
  psplit_model *model = opened_text(
    "<ir_version: 8, opset_import: [\"\": 13]> m (float[64,64] x) => (float[64,64] y)"
    "<float[64,64] w = random(1)> {"
    " a = MatMul (x, w)\n b = MatMul (a, w)\n c = MatMul (b, w)\n y = MatMul (c, w)}");
  psplit_planner *planner = unit_of(model, &options);
  assert_true(plan_of(planner));
  const psplit_plan *plan = psplit_planner_plan(planner);
  assert_true(plan->proved_optimal && plan->proof_scope);
  snprintf(buffer, n, "%s", plan->proof_scope);
  psplit_planner_destroy(planner);
  psplit_model_close(model);
  return buffer;
}

static void proofs_say_among_which_plans(void **state) {
  (void)state;
  char scope[200];
  psplit_devices *differ = parsed(
    "{\"devices\": [{\"name\": \"a\", \"preset\": \"cpu\"}, {\"name\": \"b\", \"preset\": "
    "\"cpu-sse\"}]}");
  assert_string_equal(scope_of(1, NULL, scope, sizeof scope), "among all plans");
  assert_string_equal(scope_of(2, NULL, scope, sizeof scope), "among plans without copies");
  assert_string_equal(scope_of(3, NULL, scope, sizeof scope),
                      "among plans without copies that send directly");
  assert_string_equal(scope_of(2, differ, scope, sizeof scope),
                      "among plans without copies, for this order of devices");
  psplit_devices_destroy(differ);
}

/* Whoever cancels while the bound is asked for is not told a bound. */
static void cancelling_ends_it(void **state) {
  (void)state;
  dice d = {3, 0};
  const volatile int cancelled = 1;
  psplit_planner_options options = options_for(2, NULL);
  psplit_model *model = draw_model(&d, MAX_NODES);
  psplit_planner *planner = unit_of(model, &options);
  uint32_t stage[4 * MAX_NODES];
  int64_t bound_ns;
  psplit_diag diag = {0};
  assert_true(plan_of(planner) && planner->graph->n_nodes <= 4 * MAX_NODES);
  planner->options.cancel = &cancelled;
  assert_int_equal(psplit_i_bound_with_copies(planner, &diag, &bound_ns, stage), PSPLIT_CANCELLED);
  assert_int_equal(diag.code, PSPLIT_CANCELLED);
  psplit_planner_destroy(planner);
  psplit_model_close(model);
}

int main(void) {
  const struct CMUnitTest tests[] = {
    cmocka_unit_test(copies_fit_into_memory),
    cmocka_unit_test(nodes_move_to_those_that_compute_them_again),
    cmocka_unit_test(pinned_nodes_do_not_move),
    cmocka_unit_test(nodes_that_dead_ones_read_do_not_move),
    cmocka_unit_test(nodes_do_not_leave_dead_ones_alone),
    cmocka_unit_test(nothing_is_used_before_it_is_made),
    cmocka_unit_test(nor_is_anything_of_5000_nodes),
    cmocka_unit_test(gaps_without_copies_are_told),
    cmocka_unit_test(proofs_say_among_which_plans),
    cmocka_unit_test(cancelling_ends_it),
    cmocka_unit_test(a_mask_is_computed_again_from_the_models_inputs),
    cmocka_unit_test(a_split_that_only_copies_make_best_is_found),
    cmocka_unit_test(another_split_is_taken_for_its_copies),
    cmocka_unit_test(no_split_is_below_the_bound),
    cmocka_unit_test(none_is_where_stages_send_while_they_compute),
    cmocka_unit_test(none_is_where_latency_is_a_messages),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
