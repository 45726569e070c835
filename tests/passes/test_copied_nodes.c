/* Where nodes are computed again, and which of them move: idle ones go to who computes them, and
 * whatever a stage uses, it or an earlier one has made. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
/* cmocka.h needs the four above first. */
#include <cmocka.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "open.h"
#include "small_plans.h"

/* What becomes of a split once nodes are computed again, of its node 3 above all. */
typedef struct outcome {
  int64_t before_ns, after_ns;
  uint32_t stage, n_transfers;
} outcome;

static outcome outcome_over(const char *a_to_c, const char *text, uint32_t n_stages,
                            const uint32_t *split, uint32_t n_nodes, uint32_t pin) {
  char json[512];
  snprintf(
    json, sizeof json,
    "{\"devices\": [{\"name\": \"a\", \"preset\": \"cpu\"}, {\"name\": \"b\", "
    "\"preset\": \"cpu\"}, {\"name\": \"c\", \"preset\": \"cpu\"}], \"topology\": "
    "{\"same_host\": {\"bytes_per_second\": 1e6, \"latency_ns\": 0}}, \"links\": [{\"from\": "
    "\"a\", \"to\": \"c\", \"bytes_per_second\": %s, \"latency_ns\": 0}]}",
    a_to_c);
  psplit_model *model = opened_text(text);
  psplit_devices *devices = parsed(json);
  psplit_planner_options options = options_for(n_stages, devices);
  options.device_order = PSPLIT_DEVICE_ORDER_GIVEN;
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

static outcome outcome_of(const char *text, uint32_t n_stages, const uint32_t *split,
                          uint32_t n_nodes, uint32_t pin) {
  return outcome_over("1e6", text, n_stages, split, n_nodes, pin);
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

/* Stage 0 holds node 0 alone, which stage 1 computes again for node 1. That has a dead reader
 * there, but a live one in stage 2 alone, which computes it again, too. That copy goes, as node 1
 * cannot, and with it a use of node 0, whose result is sent then. */
static void copies_that_went_use_nothing(void **state) {
  (void)state;
  static const uint32_t split[] = {0, 1, 1, 2, 1, 1};
  const outcome o =
    outcome_over("1e12",
                 "<ir_version: 8, opset_import: [\"\": 13]> m (float[1,16] x) => (float[1,16] v3, "
                 "float[1,16] v5)"
                 "<float[16,16] w = random(1)> {"
                 " v0 = MatMul (x, w)\n v1 = Relu (v0)\n v2 = Exp (v1)\n v3 = Abs (v1)\n"
                 " v4 = MatMul (x, w)\n v5 = MatMul (v4, w)}",
                 3, split, 6, PSPLIT_NONE);
  assert_int_equal(o.n_transfers, 2);
}

/* If node 1 moved to its reader in stage 2, which nothing gets to from stage 0, node 0 would be
 * alone there without a use. */
static void nodes_do_not_leave_others_without_a_use(void **state) {
  (void)state;
  static const uint32_t split[] = {0, 1, 1, 2, 1};
  const outcome o = outcome_over(
    "0",
    "<ir_version: 8, opset_import: [\"\": 13]> m (float[1,16] x) => (float[1,16] v3, float[1,16] "
    "v4)"
    "<float[16,16] w = random(1)> {"
    " v0 = Neg (x)\n v1 = Relu (v0)\n v2 = MatMul (x, w)\n v3 = Abs (v1)\n v4 = MatMul (v2, w)}",
    3, split, 5, PSPLIT_NONE);
  assert_int_equal(o.n_transfers, 2);
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

int main(void) {
  const struct CMUnitTest tests[] = {
    cmocka_unit_test(nodes_move_to_those_that_compute_them_again),
    cmocka_unit_test(pinned_nodes_do_not_move),
    cmocka_unit_test(nodes_that_dead_ones_read_do_not_move),
    cmocka_unit_test(nodes_do_not_leave_dead_ones_alone),
    cmocka_unit_test(copies_that_went_use_nothing),
    cmocka_unit_test(nodes_do_not_leave_others_without_a_use),
    cmocka_unit_test(nothing_is_used_before_it_is_made),
    cmocka_unit_test(nor_is_anything_of_5000_nodes),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
