/* What each pass does to small models: which nodes it groups, marks and computes again, what the
 * plan says, and which requests cannot be met. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
/* cmocka.h needs the four above first. */
#include <cmocka.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "liveness.h"
#include "open.h"
#include "planner.h"

/* A model and a unit over it. */
typedef struct bench {
  psplit_model *model;
  psplit_planner *planner;
  const psplit_i_graph *graph;
} bench;

static bench start(const char *model, const psplit_planner_options *options) {
  bench b = {.model = opened_text(model)};
  psplit_diag diag = {0};
  if (psplit_planner_create(b.model, options, &diag, &b.planner) != PSPLIT_OK)
    fail_msg("%s", diag.message);
  b.graph = psplit_i_model_graph(b.model);
  return b;
}

static void stop(bench *b) {
  psplit_planner_destroy(b->planner);
  psplit_model_close(b->model);
}

static void run(bench *b, const char *pipeline) {
  psplit_diag diag = {0};
  if (psplit_planner_run(b->planner, pipeline, &diag) != PSPLIT_OK) fail_msg("%s", diag.message);
}

static psplit_planner_options stages(uint32_t n) {
  psplit_planner_options options;
  psplit_planner_options_init(&options);
  options.n_stages = n;
  options.verify_each = true;
  return options;
}

static uint32_t node_of(const bench *b, const char *value) {
  const uint32_t v = psplit_i_graph_find_value(b->graph, value);
  assert_int_not_equal(v, PSPLIT_NONE);
  return b->graph->values[v].producer;
}

static bool together(const bench *b, const char *x, const char *y) {
  return psplit_i_group_of(&b->planner->grouping, node_of(b, x)) ==
         psplit_i_group_of(&b->planner->grouping, node_of(b, y));
}

/* A convolution and what runtimes run with it: normalisation, residual sum, activation. */
static void fuse_follows_a_convolution(void **state) {
  (void)state;
  const psplit_planner_options options = stages(1);
  bench b = start(
    "(float[1,4,8,8] x) => (float[1,4,8,8] pool)"
    "<float[4,4,1,1] w = raw {0 * 16}, float[4] s = raw {0 * 4}> {"
    "  c1 = Conv (x, w)"
    "  n1 = BatchNormalization (c1, s, s, s, s)"
    "  r1 = Relu (n1)"
    "  c2 = Conv (r1, w)"
    "  sum = Add (c2, x)"
    "  r2 = Relu (sum)"
    "  pool = MaxPool (r2)"
    "}",
    &options);
  run(&b, "mark,fuse");
  assert_true(together(&b, "c1", "n1") && together(&b, "c1", "r1"));
  assert_true(together(&b, "c2", "sum") && together(&b, "c2", "r2"));
  assert_false(together(&b, "r1", "c2"));
  assert_false(together(&b, "r2", "pool"));
  stop(&b);
}

/* Activations that exporters write as several nodes: SiLU, HardSwish, Gelu. */
static void fuse_follows_decomposed_activations(void **state) {
  (void)state;
  const psplit_planner_options options = stages(1);
  bench b = start(
    "(float[4,8] x) => (float[4,8] y) <float[8,8] w = raw {0 * 64}, float[1] k = raw {0}> {"
    "  m1 = MatMul (x, w)"
    "  b1 = Add (m1, k)"
    "  g1 = Sigmoid (b1)"
    "  silu = Mul (b1, g1)"
    "  m2 = MatMul (silu, w)"
    "  e1 = Div (m2, k)"
    "  e2 = Erf (e1)"
    "  e3 = Add (e2, k)"
    "  e4 = Mul (m2, e3)"
    "  gelu = Mul (e4, k)"
    "  y = Softmax (gelu)"
    "}",
    &options);
  run(&b, "mark,fuse");
  assert_true(together(&b, "m1", "b1") && together(&b, "m1", "g1") && together(&b, "m1", "silu"));
  assert_true(together(&b, "m2", "e1") && together(&b, "m2", "e4") && together(&b, "m2", "gelu"));
  assert_false(together(&b, "silu", "m2"));
  assert_false(together(&b, "gelu", "y"));
  stop(&b);
}

/* A quantised chain is cut where the tensor is int8, and the cut sends the int8 tensor. */
static void quantised_tensors_cross_as_int8(void **state) {
  (void)state;
  const psplit_planner_options options = stages(2);
  bench b = start(
    "(float[64,64] x) => (float[64,64] m2)"
    "<float[64,64] w = raw {0 * 4096}, float[1] scale = raw {0}, int8 zero = raw {0}> {"
    "  m1 = MatMul (x, w)"
    "  q1 = QuantizeLinear (m1, scale, zero)"
    "  d1 = DequantizeLinear (q1, scale, zero)"
    "  m2 = MatMul (d1, w)"
    "}",
    &options);
  run(&b, NULL);
  assert_true(together(&b, "m1", "q1") && together(&b, "d1", "m2"));
  const psplit_plan *plan = psplit_planner_plan(b.planner);
  assert_int_equal(plan->n_transfers, 1);
  assert_string_equal(plan->transfers[0].tensor, "q1");
  assert_int_equal(plan->transfers[0].bytes, 64 * 64);
  assert_true(plan->transfers[0].bytes_known);
  stop(&b);
}

/* Constants stand where they are used, dead nodes stay and cost nothing, random ones are not free.
 */
static void prune_sorts_nodes(void **state) {
  (void)state;
  const psplit_planner_options options = stages(2);
  bench b = start(
    "(float[8,8] x) => (float[8,8] z) <float[8,8] w = raw {0 * 64}> {"
    "  w2 = Identity (w)"
    "  a = MatMul (x, w2)"
    "  y = MatMul (a, w2)"
    "  dead = Relu (a)"
    "  noise = RandomNormalLike (w)"
    "  z = Add (y, noise)"
    "}",
    &options);
  run(&b, NULL);
  const uint8_t *flags = b.planner->node_flags;
  assert_true(flags[node_of(&b, "w2")] & PSPLIT_I_NODE_FREE);
  assert_true(flags[node_of(&b, "dead")] & PSPLIT_I_NODE_DEAD);
  assert_false(flags[node_of(&b, "noise")] & (PSPLIT_I_NODE_FREE | PSPLIT_I_NODE_REPEATABLE));
  const psplit_plan *plan = psplit_planner_plan(b.planner);
  assert_int_equal(plan->n_dead_nodes, 1);
  assert_int_equal(b.planner->node_ns[node_of(&b, "dead")], 0);
  uint32_t n_nodes = 0;
  for (uint32_t s = 0; s < 2; s++)
    n_nodes += plan->stages[s].n_nodes - plan->stages[s].n_duplicated;
  assert_int_equal(n_nodes, b.graph->n_nodes);
  assert_int_equal(plan->n_copies, 1); /* the constant, in the second stage too */
  assert_int_equal(plan->copies[0].node, node_of(&b, "w2"));
  stop(&b);
}

/* Why there are fewer stages to be had than nodes: what reaches no output is no stage's work. */
static void dead_nodes_are_named(void **state) {
  (void)state;
  const psplit_planner_options options = stages(2);
  bench b = start(
    "(float[8,8] x) => (float[8,8] z) {"
    "  z = Relu (x)"
    "  dead = Tanh (z)"
    "  deader = Neg (dead)"
    "}",
    &options);
  psplit_diag diag = {0};
  assert_int_equal(psplit_planner_run(b.planner, NULL, &diag), PSPLIT_INFEASIBLE);
  assert_non_null(strstr(diag.message, "; 2 nodes reach no output of the model and count "));
  stop(&b);
}

/* A float mask made from a bool model input is made again where it is needed, not sent. */
static void replicate_makes_masks_again(void **state) {
  (void)state;
  const psplit_planner_options options = stages(2);
  bench b = start(
    "(float[256,256] x, bool[256,256] ids) => (float[256,256] bm)"
    "<float[256,256] w = raw {0 * 65536}> {"
    "  mask = Cast <to = 1> (ids)"
    "  a = MatMul (x, w)"
    "  as = Softmax (a)"
    "  am = Mul (as, mask)"
    "  at = Tanh (am)" /* so that the best cut is behind the mask's first reader */
    "  b = MatMul (at, w)"
    "  bs = Softmax (b)"
    "  bt = Tanh (bs)"
    "  bm = Mul (bt, mask)"
    "}",
    &options);
  run(&b, NULL);
  const psplit_plan *plan = psplit_planner_plan(b.planner);
  for (uint32_t t = 0; t < plan->n_transfers; t++)
    assert_string_not_equal(plan->transfers[t].tensor, "mask");
  assert_int_equal(plan->n_copies, 1);
  assert_int_equal(plan->copies[0].node, node_of(&b, "mask"));
  stop(&b);
}

static psplit_code solve(const char *text, const psplit_planner_options *options,
                         psplit_diag *diag) {
  psplit_model *model = opened_text(text);
  psplit_planner *planner = NULL;
  psplit_code code = psplit_planner_create(model, options, diag, &planner);
  if (code == PSPLIT_OK) code = psplit_planner_run(planner, NULL, diag);
  psplit_planner_destroy(planner);
  psplit_model_close(model);
  return code;
}

static const char CHAIN[] =
  "(float[8,8] x) => (float[8,8] c) { a = Softmax (x) b = Softmax (a) c = Softmax (b) }";

/* `n` blocks of a residual run, 64 channels; the first node of block b is named b<b>. */
static bench residual(uint32_t n, uint32_t cut, const char *preset) {
  psplit_i_text text = {0};
  static char pins[64][32];
  static const char *list[64];
  psplit_i_text_puts(&text,
                     "(float[1,64,16,16] x) => (y) <float[64,64,3,3] w = raw {0 * 36864}> {"
                     " [b0] a0 = Conv <pads = [1, 1, 1, 1]> (x, w) [r0] v0 = Relu (a0)");
  for (uint32_t b = 1; b <= n; b++)
    psplit_i_text_addf(&text,
                       " [b%u] a%u = Conv <pads = [1, 1, 1, 1]> (v%u, w) [s%u] s%u = Add (a%u, v%u)"
                       " [r%u] v%u = Relu (s%u)",
                       b, b, b - 1, b, b, b, b - 1, b, b, b);
  psplit_i_text_addf(&text, " [last] y = GlobalAveragePool (v%u) }", n);
  uint32_t n_pins = 0;
  for (uint32_t b = 0; b <= n; b++) {
    snprintf(pins[n_pins], sizeof pins[0], "[brs]%u=%u", b, b >= cut);
    list[n_pins] = pins[n_pins];
    n_pins++;
  }
  psplit_planner_options options = stages(2);
  options.pins = list;
  options.n_pins = n_pins;
  psplit_diag diag = {0};
  static psplit_devices *devices;
  psplit_devices_destroy(devices);
  if (psplit_devices_preset(preset, 2, &diag, &devices) != PSPLIT_OK) fail_msg("%s", diag.message);
  options.devices = devices;
  assert_false(text.failed);
  bench b = start(text.bytes, &options);
  psplit_i_text_fini(&text);
  run(&b, NULL);
  return b;
}

/* A received tensor is plain: the more of the residual run is left behind the cut, the more sums
 * are no longer part of a convolution's kernel. Only where the runtime has blocks. */
static void cuts_in_residual_runs_cost_what_is_left_of_them(void **state) {
  (void)state;
  int64_t before = INT64_MAX;
  for (uint32_t cut = 1; cut <= 6; cut++) {
    bench b = residual(6, cut, "cpu");
    const psplit_plan *plan = psplit_planner_plan(b.planner);
    const psplit_plan_stage *from = &plan->stages[0], *to = &plan->stages[1];
    /* The sender brings one tensor back, the receiver pays the more the more is left. */
    assert_true(from->layout_ns > 0 && to->layout_ns > from->layout_ns);
    assert_true(to->layout_ns < before);
    assert_true(plan->speed_up * (double)plan->bottleneck_ns <= (double)plan->single_device_ns);
    before = to->layout_ns;
    stop(&b);
  }
  bench b = residual(6, 1, "nvidia-l4");
  assert_int_equal(psplit_planner_plan(b.planner)->layout_ns, 0);
  stop(&b);
  const psplit_planner_options options = stages(2);
  b = start(CHAIN, &options);
  run(&b, NULL);
  assert_int_equal(psplit_planner_plan(b.planner)->layout_ns, 0);
  stop(&b);
}

static void what_cannot_be_met_is_refused(void **state) {
  (void)state;
  psplit_diag diag = {0};
  psplit_planner_options options = stages(4);
  assert_int_equal(solve(CHAIN, &options, &diag), PSPLIT_INFEASIBLE);

  options = stages(2);
  options.pins = (const char *const[]){"nothing*=0"};
  options.n_pins = 1;
  diag = (psplit_diag){0};
  assert_int_equal(solve(CHAIN, &options, &diag), PSPLIT_USAGE);
  assert_non_null(strstr(diag.message, "matches no node"));

  options.pins = (const char *const[]){"a=2"};
  diag = (psplit_diag){0};
  assert_int_equal(solve(CHAIN, &options, &diag), PSPLIT_USAGE);
  assert_non_null(strstr(diag.message, "stages are 0 to 1"));
}

/* n devices of the preset "cpu" with this much memory. */
static psplit_devices *limited(uint32_t n, uint64_t memory_bytes) {
  psplit_i_text text = {0};
  psplit_diag diag = {0};
  psplit_devices *devices;
  psplit_i_text_puts(&text, "{\"devices\": [");
  for (uint32_t d = 0; d < n; d++)
    psplit_i_text_addf(&text,
                       "%s{\"name\": \"d%u\", \"preset\": \"cpu\","
                       " \"keeps_copies\": false, \"memory_bytes\": %llu}",
                       d ? ", " : "", d, (unsigned long long)memory_bytes);
  psplit_i_text_puts(&text, "]}");
  assert_false(text.failed);
  if (psplit_devices_parse(text.bytes, strlen(text.bytes), &diag, &devices) != PSPLIT_OK)
    fail_msg("%s", diag.message);
  psplit_i_text_fini(&text);
  return devices;
}

enum { LINKS = 7 };

/* x of width[0] floats through LINKS products with weights of width[i] x width[i + 1]. */
static bench start_products(const int64_t width[LINKS + 1], const psplit_planner_options *options) {
  psplit_i_text text = {0};
  psplit_i_text_addf(&text, "(float[1,%" PRId64 "] v0) => (float[1,%" PRId64 "] v%d) <", width[0],
                     width[LINKS], LINKS);
  for (int i = 0; i < LINKS; i++)
    psplit_i_text_addf(&text, "%sfloat[%" PRId64 ",%" PRId64 "] w%d = raw {0 * %" PRId64 "}",
                       i ? ", " : "", width[i], width[i + 1], i, width[i] * width[i + 1]);
  psplit_i_text_puts(&text, "> {");
  for (int i = 0; i < LINKS; i++)
    psplit_i_text_addf(&text, "v%d = MatMul (v%d, w%d) ", i + 1, i, i);
  psplit_i_text_puts(&text, "}");
  const bench b = start(text.bytes, options);
  psplit_i_text_fini(&text);
  return b;
}

/* A cache of `past` is read, and one of `present` made, by one of two stages; what it holds. */
typedef struct cache_case {
  const char *why, *past, *present, *sizes; /* names, and sizes of the output */
  uint64_t state_bytes, activation_bytes;   /* of the stage with the cache */
} cache_case;

static void a_cache_is_held_once_for_each_sequence(void **state) {
  (void)state;
  enum { CACHE = 4 * 2 * 8, ROW = 4 * 8 }; /* bytes of float[2,8] and float[1,8] */
  static const cache_case cases[] = {
    {"one buffer, as long as it may get", "past_key_values.0.key", "present.0.key", "2,8",
     2 * CACHE, 2 * ROW},
    {"a longer one is made of it", "past_key_values.0.key", "present.0.key", "3,8", 2 * CACHE,
     CACHE + 2 * ROW},
    {"another exporter's names", "past_key_self_0", "present_key_self_0", "2,8", 2 * CACHE,
     2 * ROW},
    {"one word for all", "past_key_values.0.key", "present_key_values.0.key", "2,8", 2 * CACHE,
     2 * ROW},
    {"a part of a word is none", "pastor.0", "presentor.0", "2,8", 0, ROW + 2 * CACHE},
    {"names that do not belong together", "past.0", "present.1", "2,8", 0, ROW + 2 * CACHE},
    {"nor do types", "past.0", "present.0", "1,2,8", 0, ROW + 2 * CACHE},
  };
  for (size_t c = 0; c < sizeof cases / sizeof *cases; c++) {
    const cache_case *at = &cases[c];
    const bool grows = at->sizes[0] == '3', lifted = at->sizes[0] == '1';
    psplit_i_text text = {0};
    psplit_i_text_addf(&text,
                       "(float[1,8] x, float[2,8] \"%s\") => (float[1,8] y, float[%s] \"%s\")",
                       at->past, at->sizes, at->present);
    psplit_i_text_puts(&text, " <int64[1] zero = {0}> { y = Relu (x) ");
    psplit_i_text_addf(&text, "\"%s\" = ", at->present);
    if (grows)
      psplit_i_text_addf(&text, "Concat <axis = 0> (\"%s\", y) }", at->past);
    else if (lifted)
      psplit_i_text_addf(&text, "Unsqueeze (\"%s\", zero) }", at->past);
    else
      psplit_i_text_addf(&text, "Add (\"%s\", y) }", at->past);
    psplit_planner_options options = stages(2);
    bench b = start(text.bytes, &options);
    psplit_i_text_fini(&text);
    run(&b, "partition");
    psplit_i_liveness liveness;
    psplit_i_stage_memory memory;
    psplit_diag diag = {0};
    assert_int_equal(psplit_i_liveness_init(&liveness, b.planner, &b.planner->scratch, &diag),
                     PSPLIT_OK);
    psplit_i_liveness_measure(&liveness, b.planner->graph->topo, b.planner->graph->n_nodes, NULL, 0,
                              &memory);
    if (psplit_i_stage_state(&memory) != at->state_bytes ||
        memory.activation_bytes != at->activation_bytes)
      fail_msg("%s: state %d, not %d; activations %d, not %d", at->why,
               (int)psplit_i_stage_state(&memory), (int)at->state_bytes,
               (int)memory.activation_bytes, (int)at->activation_bytes);
    uint64_t sum = 0, planned = 0;
    for (uint32_t s = 0; s < 2; s++) {
      const psplit_plan_stage *stage = &b.planner->plan->stages[s];
      planned += stage->state_bytes;
      sum += stage->memory_bytes - stage->weight_bytes - stage->peak_activation_bytes -
             stage->buffer_bytes - stage->workspace_bytes;
    }
    assert_int_equal(planned, at->state_bytes);
    assert_int_equal(sum, at->state_bytes);
    stop(&b);
  }
}

static void memory_is_what_a_stage_holds(void **state) {
  (void)state;
  psplit_devices *devices = limited(2, 1 << 20);
  psplit_planner_options options = stages(2);
  options.devices = devices;
  options.queue_depth = 3;
  bench b = start_products((const int64_t[]){8, 8, 16, 8, 8, 8, 8, 4}, &options);
  b.planner->pin[node_of(&b, "v2")] = 0;
  b.planner->pin[node_of(&b, "v3")] = 1;
  run(&b, "partition");
  const psplit_plan_stage *first = &b.planner->plan->stages[0],
                          *second = &b.planner->plan->stages[1];
  assert_int_equal(first->weight_bytes, 4 * (8 * 8 + 8 * 16));
  assert_int_equal(first->peak_activation_bytes, 4 * (8 + 16)); /* v1 and v2 */
  assert_int_equal(first->buffer_bytes, 3 * 4 * 16);            /* v2, sent */
  assert_int_equal(first->memory_bytes,
                   first->weight_bytes + first->peak_activation_bytes + first->buffer_bytes);
  assert_int_equal(second->weight_bytes, 4 * (16 * 8 + 3 * 8 * 8 + 8 * 4));
  assert_int_equal(second->peak_activation_bytes, 4 * (16 + 8)); /* v2 and v3 */
  assert_int_equal(second->buffer_bytes, 3 * 4 * 16);
  stop(&b);
  psplit_devices_destroy(devices);
}

/* Bytes that products i..j-1 hold in a stage of their own, boundary buffers of depth 2 included. */
static uint64_t bytes_of_products(const int64_t *width, int i, int j) {
  uint64_t weights = 0, peak = 0;
  for (int p = i; p < j; p++) {
    const uint64_t live = 4 * (uint64_t)(width[p] + width[p + 1]);
    weights += 4 * (uint64_t)(width[p] * width[p + 1]);
    if (live > peak) peak = live;
  }
  return weights + peak + 2 * 4 * (uint64_t)((i ? width[i] : 0) + (j < LINKS ? width[j] : 0));
}

static int64_t load_of_products(const bench *b, const int64_t *width, int i, int j) {
  int64_t ns = 0;
  for (int p = i; p < j; p++) {
    char name[16];
    snprintf(name, sizeof name, "v%d", p + 1);
    ns += b->planner->node_ns[node_of(b, name)];
  }
  if (i) ns += psplit_devices_transfer_ns(b->planner->devices, 0, 1, 4 * (uint64_t)width[i]);
  if (j < LINKS)
    ns += psplit_devices_transfer_ns(b->planner->devices, 0, 1, 4 * (uint64_t)width[j]);
  return ns;
}

/* Against all cuts into three: a plan exactly where one fits, and then the fastest. */
static void memory_limits_a_cut_as_brute_force_says(void **state) {
  (void)state;
  uint32_t random = 1;
  int n_fitting = 0, n_refused = 0, n_of_weights = 0;
  for (int round = 0; round < 200; round++) {
    int64_t width[LINKS + 1];
    for (int i = 0; i <= LINKS; i++) {
      random = random * 1664525 + 1013904223;
      width[i] = 1 + (random >> 16) % 40;
    }
    random = random * 1664525 + 1013904223;
    const uint64_t limit = 2000 + (random >> 16) % 12000;
    psplit_devices *devices = limited(3, limit);
    psplit_planner_options options = stages(3);
    options.devices = devices;
    bench b = start_products(width, &options);
    psplit_diag diag = {0};
    const psplit_code code =
      psplit_planner_run(b.planner, "infer-shapes,cost,mark,partition", &diag);
    int64_t best_ns = INT64_MAX;
    for (int i = 1; i < LINKS - 1; i++)
      for (int j = i + 1; j < LINKS; j++) {
        const int end[] = {0, i, j, LINKS};
        int64_t slowest_ns = 0;
        for (int s = 0; s < 3; s++) {
          const int64_t ns = bytes_of_products(width, end[s], end[s + 1]) > limit
                               ? INT64_MAX
                               : load_of_products(&b, width, end[s], end[s + 1]);
          if (ns > slowest_ns) slowest_ns = ns;
        }
        if (slowest_ns < best_ns) best_ns = slowest_ns;
      }
    if (best_ns == INT64_MAX) {
      n_refused++;
      assert_int_equal(code, PSPLIT_INFEASIBLE);
      assert_non_null(strstr(diag.message, "memory: "));
    } else {
      n_fitting++;
      if (code != PSPLIT_OK) fail_msg("round %d: %s", round, diag.message);
      assert_int_equal(b.planner->plan->bottleneck_ns, best_ns);
      assert_true(b.planner->plan->lower_bound_ns <= best_ns);
      n_of_weights += strstr(b.planner->plan->bound, ", of weights' memory alone") != NULL;
      for (int s = 0; s < 3; s++) assert_true(b.planner->plan->stages[s].memory_bytes <= limit);
    }
    stop(&b);
    psplit_devices_destroy(devices);
  }
  assert_true(n_fitting > 20 && n_refused > 20 && n_of_weights > 5);
}

/* Of a chain the latency is all that stages do; value and bound are of it, not of the slowest
 * stage, which is larger in the best of such plans. */
static void latency_is_as_brute_force_says(void **state) {
  (void)state;
  uint32_t random = 7;
  for (int round = 0; round < 50; round++) {
    int64_t width[LINKS + 1];
    for (int i = 0; i <= LINKS; i++) {
      random = random * 1664525 + 1013904223;
      width[i] = 1 + (random >> 16) % 400;
    }
    psplit_planner_options options = stages(3);
    options.objective = round % 2 ? PSPLIT_LATENCY : PSPLIT_THROUGHPUT;
    bench b = start_products(width, &options);
    psplit_diag diag = {0};
    assert_int_equal(
      psplit_planner_run(b.planner, "infer-shapes,cost,mark,partition,replicate", &diag),
      PSPLIT_OK);
    const psplit_plan *plan = b.planner->plan;
    int64_t best_ns = INT64_MAX, sum_ns = 0;
    for (int i = 1; i < LINKS - 1; i++)
      for (int j = i + 1; j < LINKS; j++) {
        const int64_t ns = load_of_products(&b, width, 0, i) + load_of_products(&b, width, i, j) +
                           load_of_products(&b, width, j, LINKS);
        if (ns < best_ns) best_ns = ns;
      }
    for (int s = 0; s < 3; s++) sum_ns += plan->stages[s].load_ns;
    assert_int_equal(plan->latency_ns, sum_ns);
    if (round % 2) {
      assert_int_equal(plan->latency_ns, best_ns);
      assert_true(plan->lower_bound_ns <= best_ns && plan->lower_bound_ns > plan->bottleneck_ns);
      assert_true(!plan->proved_optimal || plan->lower_bound_ns == best_ns);
    } else {
      assert_true(plan->lower_bound_ns <= plan->bottleneck_ns);
    }
    stop(&b);
  }
}

static void memory_error_says_what_is_in_the_way(void **state) {
  (void)state;
  const int64_t width[] = {8, 8, 8, 64, 64, 8, 8, 8};
  const struct {
    uint64_t limit;
    const char *words[4];
  } cases[] = {
    {21600, {"memory: stage", "device d", "would fit"}},
    {9000, {"\"v4\"", "KiB", "largest tensor there is \"w3\"", "no number of stages fits"}},
  };
  for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
    psplit_devices *devices = limited(1, cases[i].limit);
    psplit_planner_options options = stages(1);
    psplit_diag diag = {0};
    options.devices = devices;
    bench b = start_products(width, &options);
    assert_int_equal(psplit_planner_run(b.planner, NULL, &diag), PSPLIT_INFEASIBLE);
    stop(&b);
    for (size_t w = 0; w < 4 && cases[i].words[w]; w++)
      if (!strstr(diag.message, cases[i].words[w]))
        fail_msg("no \"%s\" in: %s", cases[i].words[w], diag.message);
    psplit_devices_destroy(devices);
  }
}

/* Every value between the two ends is a sequence: no cut sends one. */
static void sequences_are_never_cut(void **state) {
  (void)state;
  psplit_planner_options options = stages(2);
  psplit_diag diag = {0};
  assert_int_equal(solve("(float[8,8] x) => (float[8,8] y) {"
                         "  seq = SplitToSequence (x)"
                         "  y = ConcatFromSequence <axis = 0> (seq)"
                         "}",
                         &options, &diag),
                   PSPLIT_INFEASIBLE);
}

/* Passes in any order leave convex groups: verify_each checks after every one. */
static void any_order_of_passes_is_safe(void **state) {
  (void)state;
  static const char *const names[] = {"mark", "attach",       "fuse",      "coarsen:max_nodes=4",
                                      "cost", "infer-shapes", "partition", "replicate"};
  static const char model[] =
    "(float[1,4,8,8] x) => (float[1,4,8,8] i) <float[4,4,1,1] w = raw {0 * 16}> {"
    "  a = Conv (x, w)"
    "  b = Relu (a)"
    "  c = Conv (b, w)"
    "  d = Sigmoid (c)"
    "  e = Mul (c, d)"
    "  f = Add (e, b)"
    "  s = Shape (f)"
    "  h = Conv (f, w)"
    "  i = Reshape (h, s)"
    "}";
  for (uint64_t seed = 0; seed < 60; seed++) {
    const psplit_planner_options options = stages(1 + (uint32_t)(seed % 3));
    bench b = start(model, &options);
    psplit_i_text text = {0};
    for (unsigned step = 0; step < 10; step++)
      psplit_i_text_addf(&text, "%s%s", step ? "," : "",
                         names[psplit_i_splitmix64(seed, step) % (sizeof names / sizeof *names)]);
    run(&b, text.bytes);
    psplit_i_text_fini(&text);
    stop(&b);
  }
}

static const char SPARSE_CHAIN[] =
  "(float[8,64] x) => (float[8,64] c) @{sparse_initializer: [{values: float[4] s = raw {1, 2, 3, "
  "4},"
  "  indices: int64[4] = raw {0, 9, 70, 4095}, dims: [64, 64]}]}"
  "<float[64,64] w = raw {0 * 4096}> {"
  "  a = MatMul (x, s)"
  "  b = MatMul (a, w)"
  "  c = MatMul (b, s)"
  "}";

/* A sparse initializer is a weight of its dense size, also for the partitioner's memory limits. */
static void sparse_weights_count(void **state) {
  (void)state;
  static const char devices_text[] =
    "{\"devices\": [{\"name\": \"a\", \"preset\": \"cpu\", \"keeps_copies\": false, "
    "\"memory_bytes\": 60000},"
    " {\"name\": \"b\", \"preset\": \"cpu\", \"keeps_copies\": false, \"memory_bytes\": %d}]}";
  for (int fits = 0; fits < 2; fits++) {
    char text[256];
    psplit_devices *devices = NULL;
    psplit_diag diag = {0};
    const int n = snprintf(text, sizeof text, devices_text, fits ? 30000 : 16000);
    assert_int_equal(psplit_devices_parse(text, (size_t)n, &diag, &devices), PSPLIT_OK);
    psplit_planner_options options = stages(2);
    options.devices = devices;
    bench b = start(SPARSE_CHAIN, &options);
    const psplit_code code = psplit_planner_run(b.planner, NULL, &diag);
    assert_int_equal(code, fits ? PSPLIT_OK : PSPLIT_INFEASIBLE);
    if (fits) {
      const psplit_plan *plan = psplit_planner_plan(b.planner);
      assert_true(plan->stages[0].weight_bytes >= 16384 && plan->stages[1].weight_bytes >= 16384);
    } else {
      assert_non_null(strstr(diag.message, "memory"));
    }
    stop(&b);
    psplit_devices_destroy(devices);
  }
}

static void keep_last(void *user, psplit_severity severity, const char *line) {
  if (severity == PSPLIT_WARNING) snprintf(user, 256, "%s", line);
}

/* ONNX Runtime refuses them, in bodies too. */
static void names_that_nodes_share_are_warned_of(void **state) {
  (void)state;
  static const struct {
    const char *text, *warns;
  } kCases[] = {
    {"(float[4] x) => (float[4] y) { [a] t = Relu (x) [b] y = Abs (t) }", ""},
    {"(float[4] x) => (float[4] y) { t = Relu (x) y = Abs (t) }", ""},
    {"(float[4] x) => (float[4] y) { [a] t = Relu (x) [a] y = Abs (t) }",
     "two nodes of one graph are called \"a\": ONNX Runtime loads"},
    {"(float[4] x) => (float[4] y) { [a] t = Relu (x) [b] u = Abs (t) [b] v = Neg (u)"
     " [a] w = Abs (v) [b] y = Relu (w) }",
     "called \"b\", and 2 more share one: ONNX"},
    {"(float[4] x, bool c) => (float[4] y) { [a] t = Relu (x) [b] y = If (c) <then_branch = () =>"
     " (p) { [a] p = Abs (t) }, else_branch = () => (q) { [a] q = Neg (t) }> }",
     ""},
    {"(float[4] x, bool c) => (float[4] y) { [a] t = Relu (x) [b] y = If (c) <then_branch = () =>"
     " (p) { [c] o = Abs (t) [c] p = Neg (o) }, else_branch = () => (q) { [a] q = Neg (t) }> }",
     "called \"c\": ONNX"},
  };
  for (size_t i = 0; i < sizeof kCases / sizeof *kCases; i++) {
    char line[256] = "";
    const psplit_logger logger = {.emit = keep_last, .user = line};
    psplit_planner_options options = stages(1);
    options.logger = &logger;
    bench b = start(kCases[i].text, &options);
    psplit_diag diag = {0};
    assert_int_equal(psplit_planner_run(b.planner, NULL, &diag), PSPLIT_OK);
    if (kCases[i].warns[0])
      assert_non_null(strstr(line, kCases[i].warns));
    else
      assert_string_equal(line, "");
    stop(&b);
  }
}

int main(void) {
  const struct CMUnitTest tests[] = {
    cmocka_unit_test(fuse_follows_a_convolution),
    cmocka_unit_test(fuse_follows_decomposed_activations),
    cmocka_unit_test(quantised_tensors_cross_as_int8),
    cmocka_unit_test(prune_sorts_nodes),
    cmocka_unit_test(dead_nodes_are_named),
    cmocka_unit_test(replicate_makes_masks_again),
    cmocka_unit_test(cuts_in_residual_runs_cost_what_is_left_of_them),
    cmocka_unit_test(what_cannot_be_met_is_refused),
    cmocka_unit_test(memory_is_what_a_stage_holds),
    cmocka_unit_test(a_cache_is_held_once_for_each_sequence),
    cmocka_unit_test(memory_limits_a_cut_as_brute_force_says),
    cmocka_unit_test(latency_is_as_brute_force_says),
    cmocka_unit_test(memory_error_says_what_is_in_the_way),
    cmocka_unit_test(sequences_are_never_cut),
    cmocka_unit_test(sparse_weights_count),
    cmocka_unit_test(any_order_of_passes_is_safe),
    cmocka_unit_test(names_that_nodes_share_are_warned_of),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
