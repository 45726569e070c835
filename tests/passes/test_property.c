/* Whatever passes run in whatever order over whatever graph, groups are convex, their quotient has
 * no cycle, and stages never fall along an edge: told by code that shares nothing with the passes.
 */
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
#include "planner.h"

enum { MAX_NODES = 60 };

/* A stream of draws. */
typedef struct dice {
  uint64_t seed, at;
} dice;

static uint32_t draw(dice *d, uint32_t below) {
  return (uint32_t)(psplit_i_splitmix64(d->seed, d->at++) % below);
}

/* Operators that patterns speak of, over values of recent nodes, so that their shapes come up. Has
 * below `most_nodes` of them. */
static psplit_model *random_model(dice *d, uint32_t most_nodes) {
  static const char *const ops[] = {
    "MatMul", "Add",     "Mul",       "Relu",   "Sigmoid",  "Tanh", "Erf",  "Div",
    "Sub",    "Softmax", "Transpose", "Concat", "Softplus", "Neg",  "Conv", "BatchNormalization",
    "Exp",    "Shape",   "Identity"};
  static const unsigned arity[] = {2, 2, 2, 1, 1, 1, 1, 2, 2, 1, 1, 2, 1, 1, 2, 5, 1, 1, 1};
  psplit_i_text nodes = {0}, outputs = {0};
  const uint32_t n = 5 + draw(d, most_nodes - 5);
  for (uint32_t i = 0; i < n; i++) {
    const uint32_t op = draw(d, sizeof ops / sizeof *ops);
    psplit_i_text_addf(&nodes, "v%u = %s (", i + 2, ops[op]);
    for (unsigned k = 0; k < arity[op]; k++) {
      const uint32_t n_known = i + 2, window = n_known < 6 ? n_known : 6;
      char input[16];
      if (k > 0 && draw(d, 3) == 0)
        snprintf(input, sizeof input, "%s", draw(d, 2) ? "W" : "K");
      else
        snprintf(input, sizeof input, "v%u",
                 draw(d, 8) ? n_known - 1 - draw(d, window) : draw(d, n_known));
      psplit_i_text_addf(&nodes, "%s%s", k ? ", " : "", input);
    }
    psplit_i_text_puts(&nodes, ")\n");
    if (i + 1 == n || draw(d, 10) == 0)
      psplit_i_text_addf(&outputs, "%sfloat[4] v%u", outputs.n ? ", " : "", i + 2);
  }
  psplit_i_text text = {0};
  psplit_i_text_addf(&text,
                     "(float[4] v0, float[4] v1) => (%s) <float[1] W = {0}, float[1] K = {0}> {%s}",
                     outputs.bytes, nodes.bytes);
  psplit_model *model = opened_text(text.bytes);
  psplit_i_text_fini(&text);
  psplit_i_text_fini(&nodes);
  psplit_i_text_fini(&outputs);
  return model;
}

/* Groups numbered by the leader of each node; repeatedly removes one that waits for none. */
static void assert_acyclic(const psplit_planner *planner, const char *pipeline) {
  const psplit_i_graph *graph = planner->graph;
  bool gone[MAX_NODES] = {0};
  for (bool progress = true; progress;) {
    progress = false;
    for (uint32_t leader = 0; leader < graph->n_nodes; leader++) {
      bool waits = gone[leader];
      for (uint32_t n = 0; n < graph->n_nodes && !waits; n++) {
        if (psplit_i_group_of(&planner->grouping, n) != leader) continue;
        for (uint32_t i = 0; i < graph->nodes[n].n_inputs && !waits; i++) {
          const uint32_t from = graph->values[graph->nodes[n].inputs[i]].producer;
          if (from == PSPLIT_NONE || (planner->node_flags[from] & PSPLIT_I_NODE_FREE)) continue;
          const uint32_t other = psplit_i_group_of(&planner->grouping, from);
          waits = other != leader && !gone[other];
        }
      }
      if (!waits) gone[leader] = progress = true;
    }
  }
  for (uint32_t n = 0; n < graph->n_nodes; n++)
    if (!gone[psplit_i_group_of(&planner->grouping, n)])
      fail_msg("%s: a cycle through the group of node %u", pipeline, n);
}

static void assert_forward(const psplit_planner *planner, const psplit_plan *plan) {
  const psplit_i_graph *graph = planner->graph;
  for (uint32_t n = 0; n < graph->n_nodes; n++)
    for (uint32_t i = 0; i < graph->nodes[n].n_inputs; i++) {
      const uint32_t from = graph->values[graph->nodes[n].inputs[i]].producer;
      if (from == PSPLIT_NONE) continue;
      bool here = plan->node_stage[from] <= plan->node_stage[n];
      for (uint32_t c = 0; c < plan->n_copies && !here; c++)
        here = plan->copies[c].node == from && plan->copies[c].stage == plan->node_stage[n];
      assert_true(here);
    }
}

static void any_passes_in_any_order(void **state) {
  (void)state;
  static const char *const passes[] = {"mark",
                                       "attach",
                                       "fuse",
                                       "coarsen:max_nodes=12",
                                       "cost",
                                       "infer-shapes",
                                       "coarsen:max_nodes=4",
                                       "coarsen:exact=true"};
  uint32_t n_grouped = 0, n_planned = 0;
  for (uint64_t seed = 0; seed < 200; seed++) {
    dice d = {.seed = seed};
    psplit_model *model = random_model(&d, MAX_NODES);
    psplit_planner_options options;
    psplit_planner_options_init(&options);
    options.allow_invalid = true; /* sizes are drawn too */
    options.n_stages = 1 + draw(&d, 3);
    options.allow_invalid = true; /* operators and types are drawn apart */
    options.verify_each = true;
    options.time_limit_s = 0.05;
    options.n_threads = 1;
    char pipeline[512] = "";
    for (unsigned i = 0; i < 7; i++)
      strcat(strcat(pipeline, i ? "," : ""), passes[draw(&d, sizeof passes / sizeof *passes)]);
    strcat(pipeline, seed % 2 ? ",partition" : ",attach");
    psplit_planner *planner;
    psplit_diag diag = {0};
    assert_int_equal(psplit_planner_create(model, &options, &diag, &planner), PSPLIT_OK);
    const psplit_code code = psplit_planner_run(planner, pipeline, &diag);
    if (code != PSPLIT_INFEASIBLE) {
      if (code != PSPLIT_OK) fail_msg("seed %u, %s: %s", (unsigned)seed, pipeline, diag.message);
      assert_acyclic(planner, pipeline);
      n_grouped += planner->grouping.n_groups < planner->graph->n_nodes;
      if (psplit_planner_plan(planner)) {
        assert_forward(planner, psplit_planner_plan(planner));
        n_planned++;
      }
    }
    psplit_planner_destroy(planner);
    psplit_model_close(model);
  }
  assert_true(n_grouped > 100 && n_planned > 25); /* often enough to mean something */
}

/* The unit's best cut after a pipeline. */
static int64_t best_cut(const psplit_model *model, uint32_t n_stages, const char *pipeline,
                        uint32_t *out_n_groups) {
  psplit_planner_options options;
  psplit_planner_options_init(&options);
  options.allow_invalid = true;
  options.n_stages = n_stages;
  options.allow_invalid = true;
  options.verify_each = true;
  options.n_threads = 1;
  options.message_latency = PSPLIT_LATENCY_PER_TENSOR; /* always proved */
  psplit_planner *planner;
  psplit_diag diag = {0};
  assert_int_equal(psplit_planner_create(model, &options, &diag, &planner), PSPLIT_OK);
  const psplit_code code = psplit_planner_run(planner, pipeline, &diag);
  if (code != PSPLIT_OK && code != PSPLIT_INFEASIBLE) fail_msg("%s: %s", pipeline, diag.message);
  *out_n_groups = planner->grouping.n_groups;
  int64_t best = INT64_MAX;
  if (code == PSPLIT_OK) {
    assert_true(planner->solution->proved_optimal);
    best = planner->solution->objective_ns;
  }
  psplit_planner_destroy(planner);
  return best;
}

static void exact_coarsening_loses_nothing(void **state) {
  (void)state;
  uint32_t n_before = 0, n_after = 0;
  for (uint64_t seed = 1000; seed < 1080; seed++) {
    dice d = {.seed = seed};
    psplit_model *model = random_model(&d, 14);
    const uint32_t n_stages = 2 + draw(&d, 2);
    uint32_t before, after;
    const int64_t best = best_cut(model, n_stages, "cost,mark,partition", &before);
    const int64_t again =
      best_cut(model, n_stages, "cost,mark,coarsen:exact=true,partition", &after);
    if (again != best)
      fail_msg("seed %u: %lld with %u supernodes, %lld with %u", (unsigned)seed, (long long)again,
               (unsigned)after, (long long)best, (unsigned)before);
    psplit_model_close(model);
    n_before += before;
    n_after += after;
  }
  print_message("# %u supernodes became %u\n", (unsigned)n_before, (unsigned)n_after);
  assert_true(n_after < n_before);
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(any_passes_in_any_order),
                                     cmocka_unit_test(exact_coarsening_loses_nothing)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
