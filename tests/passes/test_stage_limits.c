/* Why: what a stage holds and how long it takes is what memory and latency are limited by. Both are
 * reckoned here once more, and every cut of a chain is tried. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
/* cmocka.h needs the four above first. */
#include <cmocka.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include <psplit/snapshot.h>

#include "bench.h"
#include "liveness.h"

/* n devices of the preset "cpu" with so much memory each. */
static psplit_devices *with_memory(uint32_t n, const uint64_t *memory_bytes) {
  psplit_i_text text = {0};
  psplit_diag diag = {0};
  psplit_devices *devices;
  psplit_i_text_puts(&text, "{\"devices\": [");
  for (uint32_t d = 0; d < n; d++)
    psplit_i_text_addf(&text,
                       "%s{\"name\": \"d%u\", \"preset\": \"cpu\","
                       " \"keeps_copies\": false, \"memory_bytes\": %llu}",
                       d ? ", " : "", d, (unsigned long long)memory_bytes[d]);
  psplit_i_text_puts(&text, "]}");
  assert_false(text.failed);
  if (psplit_devices_parse(text.bytes, strlen(text.bytes), &diag, &devices) != PSPLIT_OK)
    fail_msg("%s", diag.message);
  psplit_i_text_fini(&text);
  return devices;
}

static psplit_devices *limited(uint32_t n, uint64_t memory_bytes) {
  uint64_t each[40];
  assert_true(n <= sizeof each / sizeof *each);
  for (uint32_t d = 0; d < n; d++) each[d] = memory_bytes;
  return with_memory(n, each);
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

/* Whether some cut into three fits devices of these limits, in this order. */
static bool any_cut_fits(const int64_t *width, const uint64_t *limit) {
  for (int i = 1; i < LINKS - 1; i++)
    for (int j = i + 1; j < LINKS; j++)
      if (bytes_of_products(width, 0, i) <= limit[0] &&
          bytes_of_products(width, i, j) <= limit[1] &&
          bytes_of_products(width, j, LINKS) <= limit[2])
        return true;
  return false;
}

/* What is refused before any search fits in no way, whichever devices are small. */
static void too_little_memory_is_seen_before_a_search(void **state) {
  (void)state;
  uint32_t random = 11;
  int n_at_once = 0, n_fitting = 0;
  for (int round = 0; round < 400; round++) {
    int64_t width[LINKS + 1];
    uint64_t limit[3];
    for (int i = 0; i <= LINKS; i++) {
      random = random * 1664525 + 1013904223;
      width[i] = 1 + (random >> 16) % 40;
    }
    for (int d = 0; d < 3; d++) {
      random = random * 1664525 + 1013904223;
      limit[d] = 1 + (random >> 16) % (round % 2 ? 12000 : 24000);
    }
    psplit_devices *devices = with_memory(3, limit);
    psplit_planner_options options = stages(3);
    options.devices = devices;
    options.device_order = PSPLIT_DEVICE_ORDER_GIVEN;
    options.time_limit_s = 0.01; /* what it says is the same for any */
    bench b = start_products(width, &options);
    psplit_diag diag = {0};
    const psplit_code code =
      psplit_planner_run(b.planner, "infer-shapes,cost,mark,partition", &diag);
    stop(&b);
    psplit_devices_destroy(devices);
    const bool at_once = strstr(diag.message, "and a stage on it needs") != NULL;
    if (at_once) assert_int_equal(code, PSPLIT_INFEASIBLE);
    if ((at_once || code != PSPLIT_INFEASIBLE) && any_cut_fits(width, limit) == at_once)
      fail_msg("round %d: %s", round, diag.message);
    n_at_once += at_once;
    n_fitting += code == PSPLIT_OK;
  }
  if (n_at_once < 20 || n_fitting < 50) fail_msg("%d at once, %d fit", n_at_once, n_fitting);
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

/* Where no number of stages and of segments helps, inlining may: what is in the way is an If. */
static void an_if_that_is_too_large_can_be_inlined(void **state) {
  static const char CHOICE[] =
    "(float[64,64] x, bool c) => (float[64,64] y) <float[64,64] w = random(1), float[64,64] v ="
    " random(2), float[64,64] u = random(3), float[64,64] s = random(4)> { p = MatMul (x, w)"
    " [choice] q = If (c) <then_branch = t () => (a) { d = MatMul (p, v) a = MatMul (d, u) },"
    " else_branch = e () => (b) { b = Abs (p) }> y = MatMul (q, s) }";
  static const struct {
    uint64_t limit;
    uint32_t max_segments;
    const char *words;
  } cases[] = {
    {50000, 1, "no number of stages fits: node \"choice\""},
    {50000, 2, "more segments do not"},
    {90000, 1, "in a stage of their own, the largest tensor"},
  };
  (void)state;
  for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
    psplit_devices *devices = limited(2, cases[i].limit);
    psplit_planner_options options = stages(2);
    psplit_diag diag = {0};
    options.devices = devices;
    options.max_segments = cases[i].max_segments;
    bench b = start(CHOICE, &options);
    assert_int_equal(psplit_planner_run(b.planner, NULL, &diag), PSPLIT_INFEASIBLE);
    stop(&b);
    if (!strstr(diag.message, cases[i].words) ||
        !strstr(diag.message, "no cut goes through the branches of this If") ||
        diag.hint != PSPLIT_HINT_INLINE_ASSUMED ||
        strcmp(psplit_hint_argument(&diag, 0), "choice") != 0)
      fail_msg("%s, hint %d", diag.message, (int)diag.hint);
    psplit_devices_destroy(devices);
  }
}

/* Many stages for nodes of which none fits alone: no search, which would take long and name a stage
 * of what it found. */
static void many_stages_of_what_does_not_fit_are_refused_at_once(void **state) {
  (void)state;
  enum { N_STAGES = 40 };
  psplit_i_text text = {0};
  psplit_i_text_puts(&text, "(float[64,64] x) => (float[64,64] v47) { v0 = Relu (x) ");
  for (int i = 1; i < 48; i++) psplit_i_text_addf(&text, "v%d = Relu (v%d) ", i, i - 1);
  psplit_i_text_puts(&text, "}");
  psplit_devices *devices = limited(N_STAGES, 20000);
  psplit_planner_options options = stages(N_STAGES);
  psplit_diag diag = {0};
  options.devices = devices;
  bench b = start(text.bytes, &options);
  assert_int_equal(psplit_planner_run(b.planner, "infer-shapes,cost,mark,partition", &diag),
                   PSPLIT_INFEASIBLE);
  stop(&b);
  if (!strstr(diag.message, "no split into 40 stages fits") ||
      !strstr(diag.message, "no number of stages fits"))
    fail_msg("%s", diag.message);
  psplit_devices_destroy(devices);
  psplit_i_text_fini(&text);
}

static void a_device_without_limit_is_not_blamed(void **state) {
  (void)state;
  static const struct {
    const char *devices, *words;
  } cases[] = {
    {"{\"devices\": [{\"name\": \"a\", \"preset\": \"cpu\"},"
     " {\"name\": \"b\", \"preset\": \"cpu\", \"memory_bytes\": 1}]}",
     "of which the smallest has 1 B; 1 stage would fit on devices like \"a\"; device b has 1 B, "
     "and a stage on it needs "},
    {"{\"devices\": [{\"name\": \"b\", \"preset\": \"cpu\", \"memory_bytes\": 1},"
     " {\"name\": \"a\", \"preset\": \"cpu\"}]}",
     "1 stage would fit on devices like \"a\"; device b has 1 B, and a stage on it needs "},
  };
  static const psplit_device_order orders[] = {PSPLIT_DEVICE_ORDER_CHOSEN,
                                               PSPLIT_DEVICE_ORDER_GIVEN};
  const int64_t width[] = {8, 8, 8, 8, 8, 8, 8, 8};
  for (size_t i = 0; i < 4; i++) {
    psplit_devices *devices = NULL;
    psplit_diag diag = {0};
    const char *text = cases[i / 2].devices;
    assert_int_equal(psplit_devices_parse(text, strlen(text), &diag, &devices), PSPLIT_OK);
    psplit_planner_options options = stages(2);
    options.devices = devices;
    options.device_order = orders[i % 2];
    bench b = start_products(width, &options);
    assert_int_equal(psplit_planner_run(b.planner, NULL, &diag), PSPLIT_INFEASIBLE);
    stop(&b);
    if (!strstr(diag.message, cases[i / 2].words)) fail_msg("%s", diag.message);
    psplit_devices_destroy(devices);
  }
}

/* Layers with a cache each: a stage holds it for as many sequences as there are stages. */
static void add_caches(psplit_i_text *text) {
  enum { N_LAYERS = 6 };
  psplit_i_text_puts(text, "(float[1,8] v0");
  for (int i = 0; i < N_LAYERS; i++)
    psplit_i_text_addf(text, ", float[4,8] \"past_key_values.%d.key\"", i);
  psplit_i_text_addf(text, ") => (float[1,8] v%d", N_LAYERS);
  for (int i = 0; i < N_LAYERS; i++) psplit_i_text_addf(text, ", float[4,8] \"present.%d.key\"", i);
  psplit_i_text_puts(text, ") <float[8,8] w = raw {0 * 64}> { ");
  for (int i = 0; i < N_LAYERS; i++)
    psplit_i_text_addf(text,
                       "v%d = MatMul (v%d, w) "
                       "\"present.%d.key\" = Add (\"past_key_values.%d.key\", v%d) ",
                       i + 1, i, i, i, i + 1);
  psplit_i_text_puts(text, "}");
}

/* What is long is made and read at once, again and again: alone, these nodes need most, for buffers
 * of what they send. */
static void add_long_tensors(psplit_i_text *text) {
  psplit_i_text_puts(text,
                     "(float[1,8] v0) => (float[1,8] v6) <int64[2] long = {64, 8}, "
                     "int64[1] first = {0}> { ");
  for (int i = 0; i < 6; i += 2)
    psplit_i_text_addf(text,
                       "v%d = Expand (v%d, long) v%d = ReduceMean <keepdims = 1> (v%d, first) ",
                       i + 1, i, i + 2, i + 1);
  psplit_i_text_puts(text, "}");
}

/* Nodes that reach no output are no work, and a stage of them alone is none. */
static void add_dead_ends(psplit_i_text *text) {
  psplit_i_text_puts(text, "(float[8,8] v0) => (float[8,8] v2) { v1 = Relu (v0) v2 = Relu (v1) ");
  for (int i = 3; i < 8; i++) psplit_i_text_addf(text, "v%d = Exp (v%d) ", i, i - 1);
  psplit_i_text_puts(text, "}");
}

static psplit_code plan_within(const char *model, uint32_t n_stages, uint64_t memory_bytes,
                               psplit_diag *diag) {
  psplit_devices *devices = limited(n_stages, memory_bytes);
  psplit_planner_options options = stages(n_stages);
  options.devices = devices;
  options.time_limit_s = 0.05;
  bench b = start(model, &options);
  const psplit_code code = psplit_planner_run(b.planner, NULL, diag);
  stop(&b);
  psplit_devices_destroy(devices);
  return code;
}

static void what_is_said_to_fit_does(void **state) {
  (void)state;
  static void (*const add[])(psplit_i_text *) = {add_caches, add_long_tensors, add_dead_ends};
  static const uint64_t step[] = {300, 1400, 120};
  enum { MOST = 6 };
  uint32_t n_said = 0, n_none = 0, n_fewer = 0;
  for (size_t m = 0; m < sizeof add / sizeof *add; m++) {
    psplit_i_text text = {0};
    add[m](&text);
    for (uint64_t bytes = step[m]; bytes < 8 * step[m]; bytes += step[m])
      for (uint32_t k = 1; k <= MOST; k += m == 1 ? 1 : 4) {
        psplit_diag diag = {0};
        const psplit_code code = plan_within(text.bytes, k, bytes, &diag);
        if (code == PSPLIT_OK) continue;
        assert_int_equal(code, PSPLIT_INFEASIBLE);
        uint32_t n = 0;
        const char *words = strstr(diag.message, "; "), *would = strstr(diag.message, " would fit");
        if (would) sscanf(words, "; %" SCNu32, &n);
        const bool none = strstr(diag.message, "no number of stages") != NULL;
        for (uint32_t other = 1; other <= MOST; other++) {
          if (other != n && !none) continue;
          const bool fits = plan_within(text.bytes, other, bytes, &(psplit_diag){0}) == PSPLIT_OK;
          if ((other == n && !fits) || (none && fits))
            fail_msg("model %zu, %" PRIu64 " bytes, %" PRIu32 " stages: %s", m, bytes, other,
                     diag.message);
        }
        if (n > MOST) fail_msg("%s", diag.message);
        if (n && n < k) assert_int_equal(diag.hint, PSPLIT_HINT_FEWER_STAGES);
        n_said += n > k;
        n_fewer += n && n < k;
        n_none += none;
      }
    psplit_i_text_fini(&text);
  }
  assert_true(n_said && n_fewer && n_none);
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

/* The last of a chain has a table of n numbers, and words for labels; in bodies if `inside`. */
static bench start_table(int n, bool inside, const psplit_planner_options *options) {
  psplit_i_text text = {0};
  psplit_i_text_puts(&text,
                     "(float[2,4] x, bool t) => (string[2] l, float[2,2] c) {"
                     " a = ai.onnx.ml.Scaler <offset = [0.5], scale = [2.0]> (x)"
                     " b = ai.onnx.ml.Scaler <offset = [0.5], scale = [2.0]> (a)");
  if (inside) psplit_i_text_puts(&text, " l, c = If (t) <then_branch = g1 () => (l1, c1) {");
  for (int twice = 0; twice <= inside; twice++) {
    const char *end = !inside ? "" : twice ? "2" : "1";
    if (twice) psplit_i_text_puts(&text, "}, else_branch = g2 () => (l2, c2) {");
    psplit_i_text_addf(&text, " l%s, c%s = ai.onnx.ml.LinearClassifier <coefficients = [", end,
                       end);
    for (int i = 0; i < n; i++) psplit_i_text_puts(&text, i ? ", 0.5" : "0.5");
    psplit_i_text_puts(&text,
                       "], intercepts = [0.0, 0.0], classlabels_strings = [\"cat\","
                       " \"dog\"]> (b)");
  }
  psplit_i_text_puts(&text, inside ? "}> }" : "}");
  const bench b = start(text.bytes, options);
  psplit_i_text_fini(&text);
  return b;
}

/* Tables in attributes of more than 1 KiB are weights, for plans and for their limits. */
static void tables_in_attributes_count(void **state) {
  (void)state;
  for (int inside = 0; inside < 2; inside++)
    for (int n = 256; n <= 4096; n *= 16) {
      const psplit_planner_options options = stages(2);
      bench b = start_table(n, inside, &options);
      psplit_diag diag = {0};
      assert_int_equal(psplit_planner_run(b.planner, NULL, &diag), PSPLIT_OK);
      const psplit_plan *plan = psplit_planner_plan(b.planner);
      const uint64_t bytes = n > 256 ? (uint64_t)n * sizeof(float) * (inside ? 2 : 1) : 0;
      assert_int_equal(plan->stages[0].weight_bytes, 0);
      assert_int_equal(plan->stages[1].weight_bytes, bytes);
      psplit_snapshot *snapshot = NULL;
      assert_int_equal(psplit_snapshot_take(b.planner, &diag, &snapshot), PSPLIT_OK);
      uint64_t of_groups = 0;
      for (uint32_t g = 0; g < snapshot->n_groups; g++)
        of_groups += snapshot->groups[g].weight_bytes;
      assert_int_equal(of_groups, bytes);
      psplit_snapshot_destroy(snapshot);
      stop(&b);
    }
  psplit_devices *devices = limited(2, 16384);
  psplit_planner_options options = stages(2);
  options.devices = devices;
  for (int n = 256; n <= 4096; n *= 16) {
    bench b = start_table(n, false, &options);
    psplit_diag diag = {0};
    assert_int_equal(psplit_planner_run(b.planner, NULL, &diag),
                     n > 256 ? PSPLIT_INFEASIBLE : PSPLIT_OK);
    stop(&b);
  }
  psplit_devices_destroy(devices);
}

/* What labels take to write is known though their lengths are not: they are short. Words that are
 * read may be texts. */
static void labels_are_counted(void **state) {
  (void)state;
  const psplit_planner_options options = stages(1);
  bench b = start_table(8, false, &options);
  run(&b, "infer-shapes,cost");
  assert_true(psplit_i_costs_node(b.planner->costs, node_of(&b, "l")).known);
  assert_int_equal(psplit_i_costs_node(b.planner->costs, node_of(&b, "l")).bytes_written,
                   2 * 32 + 4 * sizeof(float));
  stop(&b);
  b = start(
    "(string[2] x) => (int64[2] y) { y = ai.onnx.ml.LabelEncoder <keys_strings = [\"cat\"],"
    " values_int64s = [1]> (x) }",
    &options);
  run(&b, "infer-shapes,cost");
  assert_false(psplit_i_costs_node(b.planner->costs, node_of(&b, "y")).known);
  stop(&b);
}

int main(void) {
  const struct CMUnitTest tests[] = {
    cmocka_unit_test(a_cache_is_held_once_for_each_sequence),
    cmocka_unit_test(memory_is_what_a_stage_holds),
    cmocka_unit_test(memory_limits_a_cut_as_brute_force_says),
    cmocka_unit_test(too_little_memory_is_seen_before_a_search),
    cmocka_unit_test(latency_is_as_brute_force_says),
    cmocka_unit_test(memory_error_says_what_is_in_the_way),
    cmocka_unit_test(an_if_that_is_too_large_can_be_inlined),
    cmocka_unit_test(many_stages_of_what_does_not_fit_are_refused_at_once),
    cmocka_unit_test(a_device_without_limit_is_not_blamed),
    cmocka_unit_test(what_is_said_to_fit_does),
    cmocka_unit_test(sparse_weights_count),
    cmocka_unit_test(tables_in_attributes_count),
    cmocka_unit_test(labels_are_counted),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
