/* Why: a plan made while memory runs out is the plan, or an error. The i-th allocation fails, for
 * every i until none is reached: the call says NOMEM, or gives what it gives otherwise, and leaves
 * no memory behind. So with a request to an arena or a table of names from each chain of callers:
 * failing every request takes longer, and finds nothing else. Groups that were not merged, and
 * constants that were not read, once gave another split, silently. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
/* cmocka.h needs the four above first. */
#include <cmocka.h>
#include <psplit/passes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "failing.h"
#include "failing_requests.h"
#include "open.h"

enum { LAYERS = 3, STAGES = 2 };

/* Layers of a MatMul, an activation that is one by its exponent alone (3: gelu; 2 in the last
 * layer: none), a reshape by computed sizes, a softmax; and a residual run of convolutions, which
 * cuts make dearer. */
static psplit_model *make_layers(void) {
  psplit_i_text text = {0};
  psplit_i_text_puts(&text,
                     "<ir_version: 8, opset_import: [\"\": 17]>\n"
                     "(y0, float[1,8,4,4] image) => (y3, e2) <float[8,8,1,1] k = raw {0 * 64}, "
                     "float[4,4] w = raw {1, 2, 3, 4, 0 * 12}, "
                     "int64[1] zero = raw {0}, float three = raw {3}, "
                     "float two = raw {2}, float one = raw {1}, "
                     "float half = raw {0.5}> {\n");
  for (unsigned layer = 1; layer <= LAYERS; layer++) {
    /* '#' stands for the number of the layer, '<' for that before it. */
    const char *lines = layer == LAYERS ? "w# = Pow (x#, two) " : "w# = Pow (x#, three) ";
    const char *const pieces[] = {
      "i# = Unsqueeze (y<, zero) j# = Squeeze (i#, zero) [pin#] x# = Sin (j#) ", lines,
      "v# = Mul (w#, half) u# = Add (x#, v#) s# = Mul (u#, half) t# = Tanh (s#) "
      "f# = Add (t#, one) h# = Mul (x#, half) g# = Mul (h#, f#) size# = Shape (x#) "
      "r# = Reshape (g#, size#) y# = Softmax (r#)\n"};
    for (size_t p = 0; p < sizeof pieces / sizeof *pieces; p++)
      for (const char *c = pieces[p]; *c; c++)
        if (*c == '#' || *c == '<')
          psplit_i_text_addf(&text, "%u", *c == '#' ? layer : layer - 1);
        else
          psplit_i_text_add(&text, c, 1);
  }
  psplit_i_text_puts(&text,
                     "c0 = Conv (image, k) c1 = Conv (c0, k) e1 = Add (c0, c1) "
                     "c2 = Conv (e1, k) e2 = Add (c2, e1) }\n");
  psplit_model *model = opened_text(text.bytes);
  psplit_i_text_fini(&text);
  return model;
}

/* A mask that every layer reads, a skip over all of them, and a weight of the first and last. */
static psplit_model *make_masked(void) {
  return opened_text(
    "<ir_version: 8, opset_import: [\"\": 17]>\n"
    "(float[1,16] x, float[1,16] m) => (y) <float[16,16] tied = random(1),"
    " float[16,16] w = random(2)> {"
    " [k] k = Neg (m) [q] q = Abs (k) [e] e = MatMul (x, tied)"
    " [a] a = MatMul (e, w) [a2] b = Add (a, q) [c] c = MatMul (b, w) [c2] d = Add (c, q)"
    " [f] f = MatMul (d, w) [f2] g = Add (f, q) [h] h = Add (g, e) [l] y = MatMul (h, tied) }");
}

/* A residual run of convolutions, then others: a cut in the run costs layouts. */
static psplit_model *make_residual(void) {
  return opened_text(
    "<ir_version: 8, opset_import: [\"\": 17]>\n"
    "(float[1,16,16,16] x) => (y) <float[16,16,1,1] w = random(1)> {"
    " v0 = Conv (x, w) a1 = Conv (v0, w) s1 = Add (a1, v0) v1 = Relu (s1)"
    " a2 = Conv (v1, w) s2 = Add (a2, v1) v2 = Relu (s2) v3 = Conv (v2, w) v4 = Conv (v3, w)"
    " y = GlobalAveragePool (v4) }");
}

/* What a plan says, as text. */
typedef struct outcome {
  char text[1 << 16];
} outcome;

static void describe(const psplit_plan *plan, outcome *out) {
  size_t n = (size_t)snprintf(out->text, sizeof out->text,
                              "%u supernodes, %u copies, %u transfers, %lld ns, bound %lld:",
                              plan->n_supernodes, plan->n_copies, plan->n_transfers,
                              (long long)plan->bottleneck_ns, (long long)plan->lower_bound_ns);
  for (uint32_t i = 0; i < plan->n_nodes; i++)
    n += (size_t)snprintf(out->text + n, sizeof out->text - n, " %u", plan->node_stage[i]);
  for (uint32_t s = 0; s < plan->n_stages; s++)
    n += (size_t)snprintf(out->text + n, sizeof out->text - n, "; %lld %llu",
                          (long long)plan->stages[s].compute_ns,
                          (unsigned long long)plan->stages[s].memory_bytes);
  for (uint32_t i = 0; i < plan->n_assumed; i++)
    n += (size_t)snprintf(out->text + n, sizeof out->text - n, "; %s", plan->assumed_names[i]);
  assert_true(n < sizeof out->text);
}

typedef struct way {
  const char *name, *pipeline;
  psplit_objective objective;
  bool hosts; /* three devices, the middle one on another host */
  bool certify;
  /* The rest of the options, for the layers alone. */
  void (*set)(psplit_planner_options *options);
  /* Whether the plan has what this way is for; NULL: nothing of its own. */
  bool (*shows)(const psplit_plan *plan);
  psplit_code code; /* where nothing fails */
} way;

static psplit_code add_certificate(const psplit_planner *planner, psplit_diag *diag, outcome *out) {
  psplit_certified made;
  const psplit_code code = psplit_planner_certificate(planner, diag, &made);
  if (code != PSPLIT_OK) return code;
  const size_t n = strlen(out->text);
  assert_true(n + made.n_certificate < sizeof out->text);
  memcpy(out->text + n, made.certificate, made.n_certificate + 1);
  psplit_certified_fini(&made);
  return PSPLIT_OK;
}

static psplit_code make_plan(const psplit_model *model, const way *w, const psplit_devices *hosts,
                             outcome *out) {
  psplit_diag diag = {0};
  psplit_planner *planner = NULL;
  psplit_planner_options options;
  psplit_planner_options_init(&options);
  options.n_stages = w->hosts ? STAGES + 1 : STAGES;
  options.devices = w->hosts ? hosts : NULL;
  options.n_threads = 1;
  options.objective = w->objective;
  options.certify = w->certify;
  options.slack_frac = 0.05;
  options.time_limit_s = 0.02; /* of work: the plan is the same each time */
  if (w->set) w->set(&options);
  psplit_code code = psplit_planner_create(model, &options, &diag, &planner);
  if (code == PSPLIT_OK) code = psplit_planner_run(planner, w->pipeline, &diag);
  if (code == PSPLIT_OK) describe(psplit_planner_plan(planner), out);
  if (code == PSPLIT_OK && w->shows && !w->shows(psplit_planner_plan(planner)))
    fail_msg("%s: the plan has nothing of it: %s", w->name, out->text);
  if (code == PSPLIT_OK && w->certify) code = add_certificate(planner, &diag, out);
  psplit_planner_destroy(planner);
  return code;
}

static void set_pins(psplit_planner_options *options) {
  static const char *const pins[] = {"pin1=0"}, *const together[] = {"pin[23]"};
  options->pins = pins;
  options->n_pins = 1;
  options->pins_text = "# no more\npin1=0\n";
  options->n_pins_text = strlen(options->pins_text);
  options->keep_together = together;
  options->n_keep_together = 1;
}

/* Two kinds of devices, of which two of three are used. */
static psplit_devices *kinds;

static void set_kinds(psplit_planner_options *options) { options->devices = kinds; }

/* Of the masked layers: products take their time, all else next to none. */
static const psplit_cost_table *products;

static void set_products(psplit_planner_options *options) {
  options->costs = &products;
  options->n_costs = 1;
  options->n_stages = 3;
  options->message_latency = PSPLIT_LATENCY_PER_TENSOR; /* for which copies pay */
}

static void set_masks(psplit_planner_options *options) {
  set_products(options);
  options->slack_frac = 0; /* for which the message that is saved would be given up */
  options->message_latency = PSPLIT_LATENCY_PER_PAIR;
}

static void set_tied_masks(psplit_planner_options *options) {
  set_products(options);
  options->tied_weights = PSPLIT_TIED_AUTO;
}

/* All between the ends of the skip is in one stage then, and only the mask is left for others. */
static void set_masks_together(psplit_planner_options *options) {
  set_products(options);
  options->n_stages = 4;
  options->tied_weights = PSPLIT_TIED_TOGETHER;
}

/* Two devices, neither of which runs all of the masked layers; and three that hold less than the
 * first split needs, with replicas and without. */
static psplit_devices *halves, *narrow, *narrower;

static void set_halves(psplit_planner_options *options) {
  set_products(options);
  options->n_stages = 2;
  options->devices = halves;
  options->max_segments = UINT32_MAX;
}

static void set_narrow(psplit_planner_options *options) {
  set_products(options);
  options->devices = narrow;
}

static void set_replicas(psplit_planner_options *options) {
  set_products(options);
  options->max_replicas = 2;
}

/* Where two devices compute a stage it holds too much: each has its own. */
static void set_narrow_replicas(psplit_planner_options *options) {
  set_replicas(options);
  options->devices = narrower;
}

static void set_layouts(psplit_planner_options *options) {
  options->n_stages = 3;
  options->overlap = true;
}

static bool has_copies(const psplit_plan *plan) { return plan->n_copies > 0; }

static bool passes_on(const psplit_plan *plan) {
  for (uint32_t a = 0; a < plan->n_transfers; a++)
    for (uint32_t b = 0; b < plan->n_transfers; b++)
      if (plan->transfers[a].value == plan->transfers[b].value &&
          plan->transfers[a].to == plan->transfers[b].from)
        return true;
  return false;
}

/* Not what the solver found: that did not fit. */
static bool is_cut_to_fit(const psplit_plan *plan) { return strcmp(plan->solver, "fit") == 0; }

static bool goes_back(const psplit_plan *plan) { return plan->n_stages > plan->n_devices; }

static bool has_replicas(const psplit_plan *plan) {
  return plan->stages[0].n_replicas + plan->stages[plan->n_stages - 1].n_replicas > 2;
}

static bool has_none_but_fits(const psplit_plan *plan) {
  return plan->n_stages == 3 && plan->n_devices == 3;
}

static bool has_layouts(const psplit_plan *plan) { return plan->layout_ns > 0; }

/* A way of planning, and what it gives where nothing fails. */
typedef struct expected {
  const char *title;
  const way *way;
  const psplit_devices *hosts;
  psplit_code code;
  const char *text;
} expected;

/* Plans where something fails for the nth time, until `stop`; returns whether it has. */
static bool try_failing(const psplit_model *model, const expected *e, long nth,
                        bool (*stop)(void)) {
  static outcome found;
  const long live = live_blocks();
  const psplit_code code = make_plan(model, e->way, e->hosts, &found);
  const bool failed = stop();
  if (live_blocks() != live || (code != e->code && (code != PSPLIT_NOMEM || !failed)))
    fail_msg("%s, %s, failure %ld: %s, %ld blocks stay", e->title, e->way->name, nth,
             psplit_code_name(code), live_blocks() - live);
  if (code == PSPLIT_OK && strcmp(found.text, e->text) != 0)
    fail_msg("%s, %s, failure %ld: another plan\n%s\n%s", e->title, e->way->name, nth, found.text,
             e->text);
  return failed;
}

/* Every allocation of one way of planning, and a request of every chain of callers. */
static void fail_way(const psplit_model *model, const char *title, const way *w,
                     const psplit_devices *hosts, bool all) {
  static long n_chains;
  static outcome wanted;
  const psplit_code usual = make_plan(model, w, hosts, &wanted);
  if (w->hosts && usual != PSPLIT_OK) return; /* too few nodes for three stages */
  if (all && usual != w->code) fail_msg("%s: %s", w->name, psplit_code_name(usual));
  const expected expect = {title, w, hosts, usual, wanted.text};
  long nth = 0;
  for (bool failed = true; failed; nth++) {
    fail_allocation_after(nth);
    failed = try_failing(model, &expect, nth, stop_failing);
  }
  assert_true(nth > 5); /* else the wrapping does not work */
  for (bool failed = true; failed; n_chains++) {
    fail_new_request();
    failed = try_failing(model, &expect, n_chains, stop_failing_requests);
  }
  assert_true(n_chains > 100); /* the first way makes many */
}

static psplit_devices *parsed(const char *text) {
  psplit_devices *devices;
  assert_int_equal(psplit_devices_parse(text, strlen(text), NULL, &devices), PSPLIT_OK);
  return devices;
}

/* Three CPUs, of which the second may have more memory. */
static psplit_devices *three(unsigned memory_bytes, unsigned second_bytes) {
  char text[512];
  snprintf(text, sizeof text,
           "{\"devices\": [{\"name\": \"a\", \"preset\": \"cpu\", \"memory_bytes\": %u},"
           " {\"name\": \"b\", \"preset\": \"cpu\", \"memory_bytes\": %u},"
           " {\"name\": \"c\", \"preset\": \"cpu\", \"memory_bytes\": %u}]}",
           memory_bytes, second_bytes, memory_bytes);
  return parsed(text);
}

/* The same of every way. */
static void fail_each(const psplit_model *model, const char *title, bool all) {
  static const way ways[] = {
    {.name = "default"},
    {.name = "latency", .objective = PSPLIT_LATENCY},
    {.name = "hosts", .hosts = true},
    {.name = "hosts, latency", .objective = PSPLIT_LATENCY, .hosts = true},
    {.name = "certified", .certify = true},
    {.name = "coarse",
     .pipeline = "infer-shapes,cost,mark,attach,fuse,coarsen:max_nodes=6,partition,replicate"},
    {.name = "blocks",
     .pipeline = "infer-shapes,cost,mark,attach,fuse,blocks,coarsen,partition,replicate"},
    {.name = "pins", .set = set_pins},
    {.name = "several devices", .set = set_kinds},
  };
  psplit_devices *hosts = parsed(
    "{\"devices\": [{\"name\": \"a\", \"preset\": \"cpu\", \"host\": \"1\"},"
    " {\"name\": \"b\", \"preset\": \"cpu\", \"host\": \"2\"},"
    " {\"name\": \"c\", \"preset\": \"cpu\", \"host\": \"1\"}]}");
  kinds = parsed(
    "{\"devices\": [{\"name\": \"a\", \"preset\": \"cpu\"},"
    " {\"name\": \"b\", \"preset\": \"nvidia-l4\"}, {\"name\": \"c\", \"preset\": \"cpu\"}]}");
  for (size_t i = 0; i < sizeof ways / sizeof *ways; i++)
    if (all || !ways[i].set) fail_way(model, title, &ways[i], hosts, all);
  psplit_devices_destroy(hosts);
  psplit_devices_destroy(kinds);
}

/* What is copied, passed on, tied, and goes back and forth. */
static void masked(void **state) {
  (void)state;
  static const way ways[] = {
    {.name = "copies", .set = set_products, .shows = has_copies},
    {.name = "messages", .set = set_masks, .shows = passes_on},
    {.name = "tied weights apart", .set = set_tied_masks, .shows = has_copies},
    {.name = "tied weights together", .set = set_masks_together, .code = PSPLIT_INFEASIBLE},
    {.name = "back and forth", .set = set_halves, .shows = goes_back},
    {.name = "back and forth, latency",
     .objective = PSPLIT_LATENCY,
     .set = set_halves,
     .shows = goes_back},
    {.name = "narrow",
     .pipeline = "infer-shapes,cost,mark,attach,fuse,partition",
     .set = set_narrow,
     .shows = is_cut_to_fit},
    {.name = "replicas", .set = set_replicas, .shows = has_replicas},
    {.name = "narrow replicas", .set = set_narrow_replicas, .shows = has_none_but_fits},
  };
  static const char text[] =
    "{\"format\": \"onnx-pipeline-split-costs\", \"version\": 1, \"costs\": ["
    "{\"nodes\": [\"e\"], \"ns\": 200000}, {\"nodes\": [\"a\"], \"ns\": 200000},"
    "{\"nodes\": [\"c\"], \"ns\": 200000}, {\"nodes\": [\"f\"], \"ns\": 200000},"
    "{\"nodes\": [\"l\"], \"ns\": 200000},"
    "{\"nodes\": [\"k\", \"q\", \"a2\", \"c2\", \"f2\", \"h\"], \"ns\": 600}]}";
  psplit_cost_table *costs;
  assert_int_equal(psplit_cost_table_parse("costs", text, strlen(text), NULL, &costs), PSPLIT_OK);
  halves = parsed(
    "{\"devices\": [{\"name\": \"a\", \"preset\": \"cpu\","
    " \"unsupported\": {\"operators\": [\"Add\"]}},"
    " {\"name\": \"b\", \"preset\": \"cpu\", \"unsupported\": {\"operators\": [\"MatMul\"]}}]}");
  narrow = three(914000, 930000);
  narrower = three(934300, 934300);
  products = costs;
  psplit_model *model = make_masked();
  for (size_t i = 0; i < sizeof ways / sizeof *ways; i++)
    fail_way(model, "masks", &ways[i], NULL, true);
  psplit_model_close(model);
  psplit_devices_destroy(halves);
  psplit_devices_destroy(narrow);
  psplit_devices_destroy(narrower);
  psplit_cost_table_destroy(costs);
}

/* Sending overlaps with computing, and layouts cost: two splits are made. Copies would do without
 * the layouts. */
static void residual(void **state) {
  (void)state;
  static const way layouts = {.name = "layouts",
                              .pipeline = "infer-shapes,cost,mark,attach,fuse,coarsen,partition",
                              .set = set_layouts,
                              .shows = has_layouts};
  psplit_model *model = make_residual();
  fail_way(model, "residual", &layouts, NULL, true);
  psplit_model_close(model);
}

static void layers(void **state) {
  (void)state;
  psplit_model *model = make_layers();
  fail_each(model, "layers", true);
  psplit_model_close(model);
}

/* The files that the program is started with. */
static void files(void **state) {
  for (char **file = *state; *file; file++) {
    psplit_diag diag = {0};
    psplit_model *model;
    if (psplit_model_open(*file, NULL, &diag, &model) != PSPLIT_OK) fail_msg("%s", diag.message);
    fail_each(model, *file, false);
    psplit_model_close(model);
  }
}

int main(int argc, char **argv) {
  fail_requests_by_chain();
  const struct CMUnitTest tests[] = {cmocka_unit_test(layers), cmocka_unit_test(masked),
                                     cmocka_unit_test(residual),
                                     cmocka_unit_test_prestate(files, argv + (argc > 0))};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
