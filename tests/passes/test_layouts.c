/* What cuts cost in layouts: the planner pays for it, and what it says of its plan is true of the
 * priced times. Told by enumerating cuts. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
/* cmocka.h needs the four above first. */
#include <cmocka.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "builder.h"
#include "cost_table.h"
#include "layout.h"
#include "open.h"
#include "plan_budget.h"

static const char DEVICE[] = "\"preset\": \"cpu\", \"overhead_ns\": 0";

static psplit_devices *devices_of(const char *text) {
  psplit_diag diag = {0};
  psplit_devices *devices = NULL;
  if (psplit_devices_parse(text, strlen(text), &diag, &devices) != PSPLIT_OK)
    fail_msg("%s\n%s", diag.message, text);
  return devices;
}

/* Alike, with links that take next to nothing. */
static psplit_devices *cpus(uint32_t n) {
  psplit_i_text text = {0};
  psplit_i_text_puts(&text, "{\"devices\": [");
  for (uint32_t d = 0; d < n; d++)
    psplit_i_text_addf(&text, "%s{\"name\": \"d%u\", %s}", d ? ", " : "", d, DEVICE);
  psplit_i_text_puts(&text,
                     "], \"topology\": {\"same_host\": {\"bytes_per_second\": 1e15,"
                     " \"latency_ns\": 0}}}");
  assert_false(text.failed);
  psplit_devices *devices = devices_of(text.bytes);
  psplit_i_text_fini(&text);
  return devices;
}

/* A residual run of n blocks, then as many convolutions in a row; 64 channels of 16 x 16. */
static void residual(uint32_t n, psplit_i_text *out) {
  psplit_i_text_puts(out,
                     "(float[1,64,16,16] x) => (y) <float[64,64,1,1] w = raw {0 * 4096}> {"
                     " v0 = Conv (x, w)");
  for (uint32_t b = 1; b <= n; b++)
    psplit_i_text_addf(out, " a%u = Conv (v%u, w) s%u = Add (a%u, v%u) v%u = Relu (s%u)", b, b - 1,
                       b, b, b - 1, b, b);
  for (uint32_t b = n + 1; b <= 2 * n; b++)
    psplit_i_text_addf(out, " v%u = Conv (v%u, w)", b, b - 1);
  psplit_i_text_addf(out, " y = GlobalAveragePool (v%u) }", 2 * n);
}

/* Layers that each read all that was made before. */
static void dense(uint32_t n, psplit_i_text *out) {
  psplit_i_text_puts(out, "(float[1,16,16,16] x) => (y) <float[16] k = raw {0 * 16}");
  for (uint32_t l = 0; l <= n; l++)
    psplit_i_text_addf(out, "%s float[16,%u,1,1] w%u = raw {0 * %u}", ",", 16 * (l ? l : 1), l,
                       256 * (l ? l : 1));
  for (uint32_t l = 1; l <= n; l++)
    psplit_i_text_addf(out, ", float[%u] k%u = raw {0 * %u}", 16 * l, l, 16 * l);
  psplit_i_text_puts(out, "> { f0 = Conv (x, w0)");
  for (uint32_t l = 1; l <= n; l++) {
    psplit_i_text_addf(out, " j%u = Concat <axis = 1> (f0", l);
    for (uint32_t f = 1; f < l; f++) psplit_i_text_addf(out, ", f%u", f);
    psplit_i_text_addf(out,
                       ") n%u = BatchNormalization (j%u, k%u, k%u, k%u, k%u) r%u = Relu (n%u)"
                       " f%u = Conv (r%u, w%u)",
                       l, l, l, l, l, l, l, l, l, l, l);
  }
  psplit_i_text_addf(out, " y = GlobalAveragePool (f%u) }", n);
}

typedef struct bench {
  psplit_model *model;
  psplit_planner *planner;
  psplit_devices *devices;
} bench;

/* Plans by cutting between nodes. `costs`: a table, or NULL. */
static bench plan(const char *text, psplit_devices *devices, uint32_t n_stages,
                  const psplit_cost_table *costs) {
  bench b = {.model = opened_text(text), .devices = devices};
  static const psplit_cost_table *held[1]; /* the planner looks again */
  held[0] = costs;
  psplit_diag diag = {0};
  psplit_planner_options options;
  psplit_planner_options_init(&options);
  options.n_stages = n_stages;
  options.verify_each = true;
  options.devices = devices;
  options.device_order = PSPLIT_DEVICE_ORDER_GIVEN;
  options.costs = held;
  options.n_costs = costs != NULL;
  if (psplit_planner_create(b.model, &options, &diag, &b.planner) != PSPLIT_OK ||
      psplit_planner_run(b.planner, "infer-shapes,cost,mark,partition", &diag) != PSPLIT_OK)
    fail_msg("%s", diag.message);
  return b;
}

static void stop(bench *b) {
  psplit_planner_destroy(b->planner);
  psplit_model_close(b->model);
  psplit_devices_destroy(b->devices);
}

static const psplit_plan *plan_of(const bench *b) { return psplit_planner_plan(b->planner); }

/* Puts the first nodes in stage 0, those from `cut` on in stage 1, from `next` on in stage 2, and
 * makes the plan of that. */
static const psplit_plan *cut_twice(bench *b, uint32_t cut, uint32_t next) {
  psplit_diag diag = {0};
  const psplit_i_graph *graph = psplit_i_model_graph(b->model);
  for (uint32_t i = 0; i < graph->n_nodes; i++)
    b->planner->stage[graph->topo[i]] = (uint32_t)(i >= cut) + (i >= next);
  psplit_solution_destroy(b->planner->solution);
  b->planner->solution = NULL; /* its bound is of other stages */
  if (psplit_i_plan_make(b->planner, &diag) != PSPLIT_OK) fail_msg("%s", diag.message);
  return plan_of(b);
}

/* In two stages. */
static const psplit_plan *cut_at(bench *b, uint32_t cut) { return cut_twice(b, cut, PSPLIT_NONE); }

static int64_t layouts_of(const psplit_plan *p) {
  int64_t sum = 0;
  for (uint32_t s = 0; s < p->n_stages; s++) sum += p->stages[s].layout_ns;
  return sum;
}

static void check_sums(const psplit_plan *p) {
  int64_t compute_ns = 0;
  for (uint32_t s = 0; s < p->n_stages; s++) {
    const psplit_plan_stage *stage = &p->stages[s];
    assert_int_equal(stage->load_ns, stage->compute_ns + stage->recv_ns + stage->send_ns);
    assert_true(stage->layout_ns >= 0 && stage->layout_ns <= stage->compute_ns);
    compute_ns += stage->compute_ns;
  }
  assert_int_equal(compute_ns, p->total_compute_ns + layouts_of(p));
}

typedef void write_model(uint32_t n, psplit_i_text *out);

/* Of all ways to cut a chain in two, the plan's is the best by the priced times, and it says so. */
static void the_planner_pays(write_model *write, bool chain) {
  psplit_i_text text = {0};
  write(6, &text);
  assert_false(text.failed);
  bench b = plan(text.bytes, cpus(2), 2, NULL);
  const psplit_plan *p = plan_of(&b);
  const int64_t best_ns = p->bottleneck_ns;
  assert_true(p->proved_optimal);
  assert_int_equal(p->bottleneck_ns, b.planner->solution->objective_ns);
  check_sums(p);

  const uint32_t n_nodes = psplit_i_model_graph(b.model)->n_nodes;
  int64_t least_ns = INT64_MAX, most_ns = 0;
  for (uint32_t cut = 1; cut < n_nodes; cut++) {
    p = cut_at(&b, cut);
    check_sums(p);
    if (p->bottleneck_ns < least_ns) least_ns = p->bottleneck_ns;
    if (layouts_of(p) > most_ns) most_ns = layouts_of(p);
  }
  assert_true(most_ns > 0 && best_ns <= least_ns);
  if (chain) assert_int_equal(best_ns, least_ns);
  stop(&b);
  psplit_i_text_fini(&text);
}

static void the_planner_pays_for_residual_runs(void **state) {
  (void)state;
  the_planner_pays(residual, true);
}

static void the_planner_pays_for_dense_blocks(void **state) {
  (void)state;
  the_planner_pays(dense, true);
}

/* The bare problem that is solved, exported and certified charges what the plan does. */
static void the_bare_problem_has_the_prices(void **state) {
  (void)state;
  write_model *const models[] = {residual, dense};
  for (size_t m = 0; m < sizeof models / sizeof *models; m++) {
    psplit_i_text text = {0};
    models[m](5, &text);
    bench b = plan(text.bytes, cpus(2), 2, NULL);
    const uint32_t n_nodes = psplit_i_model_graph(b.model)->n_nodes;
    for (uint32_t cut = 1; cut < n_nodes; cut++) {
      const psplit_plan *p = cut_at(&b, cut);
      psplit_diag diag = {0};
      psplit_problem problem;
      psplit_solution *solution;
      psplit_partition_options options;
      uint32_t *group, stage[128] = {0};
      if (psplit_i_problem_make(b.planner, &diag, &problem, &group) != PSPLIT_OK)
        fail_msg("%s", diag.message);
      for (uint32_t n = 0; n < n_nodes; n++)
        if (group[n] != PSPLIT_NONE) stage[group[n]] = b.planner->stage[n];
      psplit_i_partition_options(b.planner, 1, &options);
      if (psplit_partition_check(&problem, &options, stage, NULL, NULL, NULL, &diag, &solution) !=
          PSPLIT_OK)
        fail_msg("%s", diag.message);
      for (uint32_t s = 0; s < 2; s++)
        assert_int_equal(solution->stages[s].load_ns, p->stages[s].load_ns);
      psplit_solution_destroy(solution);
    }
    stop(&b);
    psplit_i_text_fini(&text);
  }
}

/* The more is left of the run behind the cut, the more it costs; behind the run, least. */
static void it_costs_what_is_left_of_the_run(void **state) {
  (void)state;
  write_model *const models[] = {residual, dense};
  for (size_t m = 0; m < sizeof models / sizeof *models; m++) {
    psplit_i_text text = {0};
    models[m](6, &text);
    bench b = plan(text.bytes, cpus(2), 2, NULL);
    const uint32_t of_block = m ? 4 : 3; /* nodes */
    int64_t before = INT64_MAX;
    for (uint32_t block = 0; block < 6; block++) {
      const int64_t ns = cut_at(&b, 1 + of_block * block)->stages[1].layout_ns;
      assert_true(ns > 0 && ns < before);
      before = ns;
    }
    stop(&b);
    psplit_i_text_fini(&text);
  }
}

/* Two branches meet in a sum: with either one elsewhere, it is plain. */
static void a_run_may_begin_at_several_nodes(void **state) {
  (void)state;
  static const char TEXT[] =
    "(float[1,16,8,8] x) => (y) <float[16,16,1,1] w = raw {0 * 256}> {"
    "  a = Conv (x, w)"
    "  b = Conv (x, w)"
    "  s = Add (a, b)"
    "  t = Relu (s)"
    "  c = Conv (t, w)"
    "  y = GlobalAveragePool (c) }";
  bench b = plan(TEXT, cpus(2), 2, NULL);
  psplit_i_layouts l;
  psplit_diag diag = {0};
  assert_int_equal(psplit_i_layouts_find(b.planner, &b.planner->scratch, &diag, &l), PSPLIT_OK);
  assert_true(l.blocked[0] && l.blocked[2] && l.inside[2] && l.inside[3] && !l.inside[4]);
  assert_int_equal(l.source_end[2] - l.source_begin[2], 2);
  assert_int_equal(l.source_end[3] - l.source_begin[3], 2);
  psplit_i_layouts_fini(&l);
  psplit_i_arena_reset(&b.planner->scratch);
  const int64_t one_ns = cut_at(&b, 1)->stages[1].layout_ns;
  const int64_t both_ns = cut_at(&b, 2)->stages[1].layout_ns;
  assert_true(one_ns > 0 && both_ns >= one_ns);
  check_sums(plan_of(&b));
  stop(&b);
}

/* Lists of where runs begin stay short, whatever joins what. */
static void wide_joins_take_no_time(void **state) {
  (void)state;
  enum { WIDE = 300, LONG = 300 };
  psplit_i_text text = {0};
  psplit_i_text_puts(&text, "(float[1,16,8,8] x) => (y) <float[16,16,1,1] w = raw {0 * 256}> {");
  for (uint32_t i = 0; i < WIDE; i++) psplit_i_text_addf(&text, " c%u = Conv (x, w)", i);
  for (uint32_t j = 0; j < LONG; j++) {
    psplit_i_text_addf(&text, " j%u = Concat <axis = 1> (", j);
    for (uint32_t i = 0; i < WIDE; i++)
      psplit_i_text_addf(&text, "c%u%s", i, i + 1 < WIDE ? ", " : "");
    psplit_i_text_puts(&text, ")");
  }
  psplit_i_text_puts(&text, " y = GlobalAveragePool (j0) }");
  psplit_model *model = opened_text(text.bytes);
  psplit_diag diag = {0};
  psplit_planner *planner;
  psplit_planner_options options;
  psplit_i_layouts l;
  psplit_planner_options_init(&options);
  options.n_stages = 2;
  if (psplit_planner_create(model, &options, &diag, &planner) != PSPLIT_OK ||
      psplit_planner_run(planner, "infer-shapes,mark,cost", &diag) != PSPLIT_OK)
    fail_msg("%s", diag.message);
  assert_int_equal(psplit_i_layouts_find(planner, &planner->scratch, &diag, &l), PSPLIT_OK);
  assert_true(l.blocked[WIDE] && l.source_end[WIDE] - l.source_begin[WIDE] <= 64);
  assert_true(l.sources.n <= 64 * LONG);
  psplit_i_layouts_fini(&l);
  psplit_planner_destroy(planner);
  psplit_model_close(model);
  psplit_i_text_fini(&text);
}

/* x * Sigmoid(x) runs as one plain kernel, a gate for each channel is of another size: neither
 * keeps blocks, so nothing is lost behind them. */
static void gates_are_plain(void **state) {
  (void)state;
  static const char *const texts[] = {
    "(float[1,16,8,8] x) => (y) <float[16,16,1,1] w = raw {0 * 256}> {"
    " a = Conv (x, w) g = Sigmoid (a) m = Mul (a, g) b = Conv (m, w) y = GlobalAveragePool (b) }",
    "(float[1,16,8,8] x) => (y) <float[16,16,1,1] w = raw {0 * 256}> {"
    " a = Conv (x, w) p = GlobalAveragePool (a) m = Mul (a, p) b = Conv (m, w)"
    " y = GlobalAveragePool (b) }"};
  for (size_t t = 0; t < 2; t++) {
    bench b = plan(texts[t], cpus(2), 2, NULL);
    psplit_i_layouts l;
    psplit_diag diag = {0};
    assert_int_equal(psplit_i_layouts_find(b.planner, &b.planner->scratch, &diag, &l), PSPLIT_OK);
    const uint32_t gate = 2;
    assert_true(l.blocked[0] && !l.blocked[gate] && l.blocked[3]);
    psplit_i_layouts_fini(&l);
    psplit_i_arena_reset(&b.planner->scratch);
    assert_int_equal(layouts_of(cut_at(&b, 3)), 0); /* the gated tensor is plain in any case */
    stop(&b);
  }
}

static psplit_cost_table *costs_of(const char *text) {
  psplit_diag diag = {0};
  psplit_cost_table *table;
  if (psplit_cost_table_parse("costs", text, strlen(text), &diag, &table) != PSPLIT_OK)
    fail_msg("%s", diag.message);
  return table;
}

/* Other devices have no layouts of their own, nor has ONNX Runtime below level 99; and a profile
 * that has seen a sum run on plain tensors is right. */
static void no_price_without_blocks(void **state) {
  (void)state;
  static const char *const devices[] = {
    "{\"devices\": [{\"name\": \"a\", \"preset\": \"nvidia-l4\"},"
    " {\"name\": \"b\", \"preset\": \"nvidia-l4\"}]}",
    "{\"devices\": [{\"name\": \"a\", \"preset\": \"cpu\", \"keeps_copies\": false},"
    " {\"name\": \"b\", \"preset\": \"cpu\", \"keeps_copies\": false}]}"};
  psplit_i_text text = {0};
  residual(4, &text);
  for (size_t d = 0; d < 2; d++) {
    bench b = plan(text.bytes, devices_of(devices[d]), 2, NULL);
    for (uint32_t cut = 1; cut < 12; cut++) assert_int_equal(layouts_of(cut_at(&b, cut)), 0);
    stop(&b);
  }
  psplit_cost_table *level = costs_of(
    "{\"format\": \"onnx-pipeline-split-costs\", \"version\": 1, \"optimization\": 2,"
    " \"costs\": [{\"outputs\": [\"v0\"], \"ns\": 5000}]}");
  psplit_cost_table *seen = costs_of(
    "{\"format\": \"onnx-pipeline-split-costs\", \"version\": 1, \"costs\": ["
    "{\"outputs\": [\"s1\"], \"ns\": 5000, \"blocked\": false},"
    "{\"outputs\": [\"s3\"], \"ns\": 5000, \"blocked\": true}]}");
  bench b = plan(text.bytes, cpus(2), 2, level);
  for (uint32_t cut = 1; cut < 12; cut++) assert_int_equal(layouts_of(cut_at(&b, cut)), 0);
  stop(&b);
  /* With the first sum plain, and so those behind, the run is over at once. */
  b = plan(text.bytes, cpus(2), 2, NULL);
  const int64_t expected_ns = cut_at(&b, 1)->stages[1].layout_ns;
  stop(&b);
  b = plan(text.bytes, cpus(2), 2, seen);
  assert_true(cut_at(&b, 1)->stages[1].layout_ns < expected_ns);
  assert_int_equal(layouts_of(cut_at(&b, 4)), 0);
  stop(&b);
  psplit_cost_table_destroy(level);
  psplit_cost_table_destroy(seen);
  psplit_i_text_fini(&text);
}

/* Only the stage on the device with layouts pays. */
static void each_device_has_its_price(void **state) {
  (void)state;
  psplit_i_text text = {0}, mixed = {0};
  residual(4, &text);
  psplit_i_text_addf(&mixed,
                     "{\"devices\": [{\"name\": \"a\", %s}, {\"name\": \"b\", %s,"
                     " \"keeps_copies\": false}]}",
                     DEVICE, DEVICE);
  bench b = plan(text.bytes, devices_of(mixed.bytes), 2, NULL);
  assert_int_equal(plan_of(&b)->bottleneck_ns, b.planner->solution->objective_ns);
  const psplit_plan *p = cut_at(&b, 4);
  assert_true(p->stages[0].layout_ns > 0);
  assert_int_equal(p->stages[1].layout_ns, 0);
  stop(&b);
  psplit_i_text_fini(&text);
  psplit_i_text_fini(&mixed);
}

/* Where links differ between pairs, too, the planner pays: no way to cut the chain in three is
 * better, and the bound is hardly below it. */
static void it_pays_where_links_differ(void **state) {
  (void)state;
  static const char *const hosts[] = {"ppq", "pqq", "pqr"};
  for (uint32_t h = 0; h < 3; h++)
    for (uint32_t blocks = 4; blocks < 8; blocks++) {
      psplit_i_text text = {0}, apart = {0};
      residual(blocks, &text);
      psplit_i_text_puts(&apart, "{\"devices\": [");
      for (uint32_t d = 0; d < 3; d++)
        psplit_i_text_addf(&apart, "%s{\"name\": \"d%u\", \"host\": \"%c\", %s}", d ? ", " : "", d,
                           hosts[h][d], DEVICE);
      psplit_i_text_addf(&apart,
                         "], \"topology\": {\"same_host\": {\"bytes_per_second\": 1e12,"
                         " \"latency_ns\": 10}, \"same_rack\": {\"bytes_per_second\": %s,"
                         " \"latency_ns\": 100}}, \"links\": [{\"from\": \"d0\", \"to\": \"d2\","
                         " \"bytes_per_second\": 1e10, \"latency_ns\": 50}]}",
                         blocks % 2 ? "1e11" : "3e10");
      bench b = plan(text.bytes, devices_of(apart.bytes), 3, NULL);
      const psplit_plan *p = plan_of(&b);
      const int64_t best_ns = p->bottleneck_ns, bound_ns = p->lower_bound_ns;
      check_sums(p);
      const uint32_t n_nodes = psplit_i_model_graph(b.model)->n_nodes;
      int64_t least_ns = INT64_MAX;
      for (uint32_t cut = 1; cut < n_nodes; cut++)
        for (uint32_t next = cut + 1; next < n_nodes; next++) {
          p = cut_twice(&b, cut, next);
          if (p->bottleneck_ns < least_ns) least_ns = p->bottleneck_ns;
        }
      assert_int_equal(best_ns, least_ns);
      assert_true(bound_ns <= best_ns && bound_ns >= best_ns - best_ns / 500);
      stop(&b);
      psplit_i_text_fini(&text);
      psplit_i_text_fini(&apart);
    }
}

int main(void) {
  const struct CMUnitTest tests[] = {
    cmocka_unit_test(the_planner_pays_for_residual_runs),
    cmocka_unit_test(the_planner_pays_for_dense_blocks),
    cmocka_unit_test(the_bare_problem_has_the_prices),
    cmocka_unit_test(it_costs_what_is_left_of_the_run),
    cmocka_unit_test(a_run_may_begin_at_several_nodes),
    cmocka_unit_test(wide_joins_take_no_time),
    cmocka_unit_test(gates_are_plain),
    cmocka_unit_test(no_price_without_blocks),
    cmocka_unit_test(each_device_has_its_price),
    cmocka_unit_test(it_pays_where_links_differ),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
