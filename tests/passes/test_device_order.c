/* Which stage runs on which device: the best order, and the best devices where there are more than
 * stages, however they are listed. Told by enumeration. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
/* cmocka.h needs the four above first. */
#include <cmocka.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "devices_inside.h"
#include "open.h"
#include "sample.h"
#include "small_plans.h"

enum { MAX_DEVICES = 4, MAX_NODES = 6 };

static psplit_model *products(void) {
  return opened_text(
    "(float[256,256] x, float[256,256] w) => (float[256,256] p4) {"
    "  p1 = MatMul (x, w)"
    "  p2 = MatMul (p1, w)"
    "  p3 = MatMul (p2, w)"
    "  p4 = MatMul (p3, w)"
    "}");
}

/* Plans `model` as the options say; its device names by stage go to out[n_stages]. */
static psplit_planner *planned(const psplit_model *model, const psplit_planner_options *options,
                               const char **out) {
  psplit_planner *planner = unit_of(model, options);
  if (!plan_of(planner)) fail_msg("no plan");
  const psplit_plan *plan = psplit_planner_plan(planner);
  for (uint32_t s = 0; s < plan->n_stages; s++) {
    out[s] = plan->stages[s].device;
    assert_string_equal(psplit_devices_name(options->devices, plan->stages[s].device_id), out[s]);
  }
  return planner;
}

/* Three devices in three orders: one plan, down to the bytes that cross. */
static void the_order_of_the_file_does_not_matter(void **state) {
  (void)state;
  static const char *const files[] = {
    "{\"devices\": [{\"name\": \"pi\", \"preset\": \"raspberry-pi-5\"},"
    " {\"name\": \"gpu\", \"preset\": \"nvidia-l4\"}, {\"name\": \"cpu\", \"preset\": \"cpu\"}]}",
    "{\"devices\": [{\"name\": \"gpu\", \"preset\": \"nvidia-l4\"},"
    " {\"name\": \"cpu\", \"preset\": \"cpu\"}, {\"name\": \"pi\", \"preset\": "
    "\"raspberry-pi-5\"}]}",
    "{\"devices\": [{\"name\": \"cpu\", \"preset\": \"cpu\"},"
    " {\"name\": \"pi\", \"preset\": \"raspberry-pi-5\"}, {\"name\": \"gpu\", \"preset\": "
    "\"nvidia-l4\"}]}"};
  psplit_model *model = products();
  char first[3][16];
  int64_t first_ns = 0;
  for (uint32_t n_stages = 1; n_stages <= 3; n_stages++)
    for (size_t f = 0; f < 3; f++) {
      const char *names[3];
      psplit_devices *devices = parsed(files[f]);
      psplit_planner_options options = options_for(n_stages, devices);
      psplit_planner *planner = planned(model, &options, names);
      const psplit_plan *plan = psplit_planner_plan(planner);
      assert_string_equal(plan->device_order, "chosen");
      assert_string_equal(plan->single_device, "gpu");
      assert_true(plan->proved_optimal);
      if (f == 0) first_ns = plan->bottleneck_ns;
      assert_int_equal(plan->bottleneck_ns, first_ns);
      for (uint32_t s = 0; s < n_stages; s++) {
        if (f == 0) snprintf(first[s], sizeof first[s], "%s", names[s]);
        assert_string_equal(names[s], first[s]);
      }
      if (n_stages == 1) assert_string_equal(names[0], "gpu");
      psplit_planner_destroy(planner);
      psplit_devices_destroy(devices);
    }
  psplit_model_close(model);
}

/* Devices of one kind on two hosts are different where the links are. */
static void hosts_are_kept_together(void **state) {
  (void)state;
  psplit_model *model = products();
  psplit_devices *devices = parsed(
    "{\"devices\": [{\"name\": \"a\", \"preset\": \"cpu\", \"host\": \"1\"},"
    " {\"name\": \"b\", \"preset\": \"cpu\", \"host\": \"2\"},"
    " {\"name\": \"c\", \"preset\": \"cpu\", \"host\": \"1\"},"
    " {\"name\": \"d\", \"preset\": \"cpu\", \"host\": \"2\"}]}");
  const char *names[4];
  psplit_planner_options options = options_for(4, devices);
  psplit_planner *planner = planned(model, &options, names);
  assert_string_equal(names[0], "a");
  assert_string_equal(names[1], "c");
  assert_string_equal(names[2], "b");
  assert_string_equal(names[3], "d");
  assert_true(psplit_planner_plan(planner)->proved_optimal);
  psplit_planner_destroy(planner);
  options.n_stages = 2;
  planner = planned(model, &options, names);
  assert_string_equal(names[0], "a");
  assert_string_equal(names[1], "c");
  psplit_planner_destroy(planner);
  psplit_devices_destroy(devices);
  psplit_model_close(model);
}

/* As listed, where that is asked for, or where a pin says what is on a stage. */
static void an_order_can_be_given(void **state) {
  (void)state;
  psplit_model *model = opened_text(
    "(float[256,256] x) => (float[256,256] y) {"
    "  [one] a = MatMul (x, x)"
    "  [two] y = MatMul (a, a)"
    "}");
  psplit_devices *devices = parsed(
    "{\"devices\": [{\"name\": \"slow\", \"preset\": \"cpu-sse\"},"
    " {\"name\": \"fast\", \"preset\": \"nvidia-l4\"}]}");
  const char *const pin = "two=0";
  for (int pinned = 0; pinned < 2; pinned++) {
    const char *names[2];
    psplit_planner_options options = options_for(pinned ? 1 : 2, devices);
    options.pins = &pin;
    options.n_pins = pinned ? 1 : 0;
    options.device_order = pinned ? PSPLIT_DEVICE_ORDER_CHOSEN : PSPLIT_DEVICE_ORDER_GIVEN;
    psplit_planner *planner = planned(model, &options, names);
    assert_string_equal(names[0], "slow");
    assert_string_equal(psplit_planner_plan(planner)->device_order, "given");
    psplit_planner_destroy(planner);
  }
  psplit_devices_destroy(devices);
  psplit_model_close(model);
}

/* `n` devices, each a kind of its own, and n_stages of them: too many orders, or too many ways to
 * take some, to try all. Device i needs i us for each operator besides; odd ones are on another
 * host where there are two. */
static psplit_planner *of_many(const psplit_model *model, uint32_t n, uint32_t n_stages,
                               uint32_t n_hosts, psplit_device_order order, const char **out) {
  psplit_i_text text = {0};
  psplit_planner_options options;
  psplit_i_text_puts(&text, "{\"devices\": [");
  for (uint32_t i = 0; i < n; i++)
    psplit_i_text_addf(&text,
                       "%s{\"name\": \"d%u\", \"preset\": \"cpu\", \"overhead_ns\": %u, "
                       "\"host\": \"%u\"}",
                       i ? ", " : "", i, 1000 * i, i % n_hosts);
  psplit_i_text_puts(&text, "]}");
  psplit_devices *devices = parsed(text.bytes);
  psplit_i_text_fini(&text);
  psplit_planner_options_init(&options);
  options.n_stages = n_stages;
  options.devices = devices;
  options.device_order = order;
  options.n_threads = 1;
  psplit_planner *planner = planned(model, &options, out);
  for (uint32_t s = 0; s < n_stages; s++) { /* the names go with the devices */
    static char names[8][8];
    snprintf(names[s], sizeof names[s], "%s", out[s]);
    out[s] = names[s];
  }
  psplit_devices_destroy(devices);
  return planner;
}

static void too_many_to_try_all(void **state) {
  (void)state;
  enum { ORDERED = 5, KINDS = 8, TAKEN = 4 };
  const char *names[KINDS];
  psplit_model *model = opened_text(
    "(float[256,256] x, float[256,256] w) => (float[256,256] p5) { p1 = MatMul (x, w)"
    " p2 = MatMul (p1, w) p3 = MatMul (p2, w) p4 = MatMul (p3, w) p5 = MatMul (p4, w) }");
  psplit_planner *planner = of_many(model, ORDERED, ORDERED, 2, PSPLIT_DEVICE_ORDER_GIVEN, names);
  const int64_t given_ns = psplit_planner_plan(planner)->bottleneck_ns;
  psplit_planner_destroy(planner);
  planner = of_many(model, ORDERED, ORDERED, 2, PSPLIT_DEVICE_ORDER_CHOSEN, names);
  const psplit_plan *plan = psplit_planner_plan(planner);
  uint32_t used = 0, n_crossings = 0;
  for (uint32_t s = 0; s < ORDERED; s++) {
    used |= UINT32_C(1) << (names[s][1] - '0');
    n_crossings += s && (names[s][1] - names[s - 1][1]) % 2 != 0;
  }
  assert_string_equal(plan->device_order, "chosen");
  assert_int_equal(used, (1 << ORDERED) - 1);
  assert_true(n_crossings < ORDERED - 1); /* as listed every link is one */
  assert_true(plan->bottleneck_ns < given_ns && plan->lower_bound_ns <= plan->bottleneck_ns);
  psplit_planner_destroy(planner);
  planner = of_many(model, KINDS, TAKEN, 1, PSPLIT_DEVICE_ORDER_CHOSEN, names);
  plan = psplit_planner_plan(planner);
  used = 0;
  for (uint32_t s = 0; s < TAKEN; s++) used |= UINT32_C(1) << (names[s][1] - '0');
  assert_int_equal(used, (1 << TAKEN) - 1); /* the fastest */
  assert_string_equal(plan->device_order, "chosen");
  /* Of the other devices it is known that all share the work. */
  assert_true(plan->lower_bound_ns > 0 && plan->lower_bound_ns <= plan->bottleneck_ns);
  assert_string_equal(plan->bound, "share of the work");
  psplit_planner_destroy(planner);
  psplit_model_close(model);
}

/* Groups that are fewer than stages are cut between operators, on the devices that are best for
 * that, not on those that are listed first. */
static void operators_choose_devices(void **state) {
  (void)state;
  enum { N = 3 };
  psplit_model *model = opened_text(
    "(float[256,256] x, float[256,256] w, float[256] b) => (float[256,256] y) {"
    "  p = MatMul (x, w)"
    "  q = Add (p, b)"
    "  y = Relu (q)"
    "}");
  psplit_devices *devices = parsed(
    "{\"devices\": [{\"name\": \"far\", \"preset\": \"cpu\", \"host\": \"1\"},"
    " {\"name\": \"a\", \"preset\": \"cpu-sse\", \"host\": \"2\"},"
    " {\"name\": \"b\", \"preset\": \"cpu-avx512\", \"host\": \"2\"},"
    " {\"name\": \"c\", \"preset\": \"cpu-sse\", \"host\": \"2\"}]}");
  psplit_planner_options options = options_for(N, devices);
  psplit_planner *planner = unit_of(model, &options);
  psplit_diag diag = {0};
  assert_int_equal(psplit_planner_run(planner, NULL, &diag), PSPLIT_OK);
  const psplit_plan *plan = psplit_planner_plan(planner);
  assert_string_equal(plan->device_order, "chosen");
  assert_string_equal(plan->stages[0].device, "b"); /* of the product */
  for (uint32_t s = 0; s < N; s++) assert_string_not_equal(plan->stages[s].device, "far");
  psplit_planner_destroy(planner);
  psplit_devices_destroy(devices);
  psplit_model_close(model);
}

/* Too many orders to try all, of which the first has no split; the second has. Tensors go from
 * each device to the next of `way` alone. */
static void the_first_of_too_many_has_no_split(void **state) {
  (void)state;
  enum { N = 5 };
  static const char *const way[N] = {"d2", "d4", "d1", "d0", "d3"};
  psplit_model *model = opened_text(
    "(float[256,256] x, float[256,256] w) => (float[256,256] p5) { p1 = MatMul (x, w)"
    " p2 = MatMul (p1, w) p3 = MatMul (p2, w) p4 = MatMul (p3, w) p5 = MatMul (p4, w) }");
  psplit_i_text text = {0};
  psplit_i_text_puts(&text, "{\"devices\": [");
  for (uint32_t i = 0; i < N; i++)
    psplit_i_text_addf(&text, "%s{\"name\": \"d%u\", \"preset\": \"cpu\", \"overhead_ns\": %u}",
                       i ? ", " : "", i, 1000 * i);
  psplit_i_text_puts(&text,
                     "], \"topology\": {\"same_host\": {\"bytes_per_second\": 0}}, \"links\": [");
  for (uint32_t i = 0; i + 1 < N; i++)
    psplit_i_text_addf(&text, "%s{\"from\": \"%s\", \"to\": \"%s\", \"bytes_per_second\": 1e9}",
                       i ? ", " : "", way[i], way[i + 1]);
  psplit_i_text_puts(&text, "]}");
  psplit_devices *devices = parsed(text.bytes);
  psplit_i_text_fini(&text);
  psplit_planner_options options = options_for(N, devices);
  const char *names[N];
  psplit_planner *planner = planned(model, &options, names);
  for (uint32_t s = 0; s < N; s++) assert_string_equal(names[s], way[s]);
  psplit_planner_destroy(planner);
  psplit_devices_destroy(devices);
  psplit_model_close(model);
}

/* The least over all orders of n_stages of the devices. */
static int64_t best_order(const psplit_model *model, const psplit_planner_options *options) {
  uint32_t order[MAX_DEVICES], n = psplit_devices_count(options->devices);
  int64_t best_ns = INT64_MAX;
  uint32_t n_codes = 1;
  for (uint32_t i = 0; i < n; i++) n_codes *= n;
  for (uint32_t code = 0; code < n_codes; code++) {
    uint32_t used = 0;
    for (uint32_t i = 0, rest = code; i < n; i++, rest /= n) {
      order[i] = rest % n;
      used |= UINT32_C(1) << order[i];
    }
    if (used + 1 != UINT32_C(1) << n) continue;
    psplit_devices *ordered = psplit_i_devices_pick(options->devices, order, n);
    psplit_planner_options given = *options;
    given.devices = ordered;
    given.device_order = PSPLIT_DEVICE_ORDER_GIVEN;
    const int64_t ns = best_of_all(model, &given);
    if (ns < best_ns) best_ns = ns;
    psplit_devices_destroy(ordered);
  }
  return best_ns;
}

static void chosen_orders_are_the_best(void **state) {
  (void)state;
  const uint64_t n_seeds = sample_of(24, 100);
  uint32_t n_plans = 0, n_proved = 0, n_best = 0, n_chosen = 0;
  for (uint64_t seed = 0; seed < n_seeds; seed++) {
    dice d = {.seed = 1000 + seed};
    const uint32_t n_devices = 2 + draw(&d, MAX_DEVICES - 1);
    const uint32_t n_stages = draw(&d, 3) ? n_devices : 1 + draw(&d, n_devices);
    psplit_model *model = random_model(&d, n_stages + draw(&d, MAX_NODES + 1 - n_stages));
    psplit_devices *devices = random_devices(&d, n_devices);
    psplit_planner_options options = options_for(n_stages, devices);
    options.objective = draw(&d, 3) ? PSPLIT_THROUGHPUT : PSPLIT_LATENCY;
    const int64_t best_ns = best_order(model, &options);
    psplit_planner *planner = unit_of(model, &options);
    if (plan_of(planner)) {
      const psplit_plan *plan = psplit_planner_plan(planner);
      const int64_t value_ns = plan->value_ns;
      const bool chosen = strcmp(plan->device_order, "chosen") == 0;
      n_plans++;
      n_chosen += chosen;
      n_proved += chosen && plan->proved_optimal;
      n_best += chosen && value_ns == best_ns;
      if (value_ns < best_ns || (chosen && plan->lower_bound_ns > best_ns) ||
          (chosen && plan->proved_optimal && value_ns != best_ns))
        fail_msg("seed %u: bound %lld (%s), value %lld, but the optimum of all orders is %lld",
                 (unsigned)seed, (long long)plan->lower_bound_ns, plan->bound, (long long)value_ns,
                 (long long)best_ns);
    } else if (best_ns != INT64_MAX && psplit_devices_memory_bytes(devices, 0) == UINT64_MAX) {
      fail_msg("seed %u: no plan, but there is one of %lld", (unsigned)seed, (long long)best_ns);
    }
    psplit_planner_destroy(planner);
    psplit_devices_destroy(devices);
    psplit_model_close(model);
  }
  print_message("# %u plans, of %u whose order was chosen %u are best and %u proved\n", n_plans,
                n_chosen, n_best, n_proved);
  assert_true(n_chosen > n_plans / 2 && n_best >= n_chosen * 9 / 10 &&
              n_proved >= n_chosen * 3 / 4);
}

/* With little time another order may be better than the one that is chosen: then no bound says that
 * there is none. Links are alike, so that the solver orders devices, which are not. */
static void little_time_proves_no_order(void **state) {
  (void)state;
  static const double limits_s[] = {0, 0.0001, 0.0003, 0.001, 0.003, 0.01};
  uint32_t n_plans = 0, n_worse = 0;
  psplit_devices *devices = parsed(
    "{\"devices\": [{\"name\": \"a\", \"preset\": \"cpu\", \"overhead_ns\": 9000},"
    " {\"name\": \"b\", \"preset\": \"cpu\"}, {\"name\": \"c\", \"preset\": \"cpu\", "
    "\"overhead_ns\": 3000}]}");
  for (uint64_t seed = 0; seed < 24; seed++) {
    dice d = {.seed = 4000 + seed};
    psplit_model *model = random_model(&d, 6 + draw(&d, 2));
    psplit_planner_options options;
    psplit_planner_options_init(&options);
    options.n_stages = 3;
    options.devices = devices;
    options.n_threads = 1;
    options.slack_frac = 0;
    options.objective = seed % 2 ? PSPLIT_THROUGHPUT : PSPLIT_LATENCY;
    options.message_latency = PSPLIT_LATENCY_PER_TENSOR;
    const int64_t best_ns = best_order(model, &options);
    for (size_t i = 0; i < sizeof limits_s / sizeof *limits_s; i++) {
      options.time_limit_s = limits_s[i];
      psplit_planner *planner = unit_of(model, &options);
      assert_true(plan_of(planner));
      const psplit_plan *plan = psplit_planner_plan(planner);
      if (plan->lower_bound_ns > best_ns)
        fail_msg("seed %u, %g s: bound %lld (%s), but the optimum of all orders is %lld",
                 (unsigned)seed, limits_s[i], (long long)plan->lower_bound_ns, plan->bound,
                 (long long)best_ns);
      n_plans++;
      n_worse += plan->value_ns > best_ns;
      psplit_planner_destroy(planner);
    }
    psplit_model_close(model);
  }
  print_message("# %u plans, %u not the best\n", n_plans, n_worse);
  assert_true(n_worse > 0);
  psplit_devices_destroy(devices);
}

/* Branches of convolutions: what cuts add in layouts differs from cut to cut. */
static psplit_model *branches(dice *d, uint32_t n_blocks) {
  psplit_i_text text = {0};
  psplit_i_text_puts(&text,
                     "(float[1,16,32,32] x) => (y) <float[16,16,3,3] w = raw {0 * 2304},"
                     " float[16,16,1,1] u = raw {0 * 256}> { v0 = Relu (x)");
  for (uint32_t b = 1; b <= n_blocks; b++) {
    const uint32_t from = b - 1 - draw(d, b < 3 ? b : 3);
    const bool wide = draw(d, 2);
    psplit_i_text_addf(&text, " c%u = Conv %s (v%u, %s)", b, wide ? "<pads = [1,1,1,1]>" : "",
                       b - 1, wide ? "w" : "u");
    psplit_i_text_addf(&text, " v%u = %s (c%u, v%u)", b, draw(d, 3) ? "Add" : "Mul", b, from);
  }
  psplit_i_text_addf(&text, " y = GlobalAveragePool (v%u) }", n_blocks);
  psplit_model *model = opened_text(text.bytes);
  psplit_i_text_fini(&text);
  return model;
}

/* As a user might list them: two by two on hosts. */
static psplit_devices *pairs_of_cpus(uint32_t n) {
  psplit_i_text text = {0};
  psplit_i_text_puts(&text, "{\"devices\": [");
  for (uint32_t i = 0; i < n; i++)
    psplit_i_text_addf(&text, "%s{\"name\": \"d%u\", \"preset\": \"cpu\", \"host\": \"%u\"}",
                       i ? ", " : "", i, i / 2);
  psplit_i_text_puts(&text, "]}");
  psplit_devices *devices = parsed(text.bytes);
  psplit_i_text_fini(&text);
  return devices;
}

/* Where links differ and cuts cost layouts, which orders are not tried with: that of the file is
 * never better than the chosen one. */
static void the_listed_order_is_no_better(void **state) {
  (void)state;
  const uint64_t n_seeds = sample_of(24, 100);
  uint32_t n_better = 0;
  for (uint64_t seed = 0; seed < n_seeds; seed++) {
    dice d = {.seed = 6000 + seed};
    const uint32_t n_stages = 4 + draw(&d, 5);
    psplit_model *model = branches(&d, 2 * n_stages + draw(&d, 24));
    psplit_devices *devices = pairs_of_cpus(n_stages);
    psplit_planner_options options = options_for(n_stages, devices);
    options.slack_frac = 0;
    options.time_limit_s = 0.2;
    psplit_planner *chosen = unit_of(model, &options);
    options.device_order = PSPLIT_DEVICE_ORDER_GIVEN;
    psplit_planner *given = unit_of(model, &options);
    assert_true(plan_of(chosen) && plan_of(given));
    const int64_t chosen_ns = psplit_planner_plan(chosen)->value_ns,
                  given_ns = psplit_planner_plan(given)->value_ns;
    if (chosen_ns > given_ns || psplit_planner_plan(chosen)->lower_bound_ns > given_ns)
      fail_msg("seed %u, %u stages: chosen %lld, bound %lld, as listed %lld", (unsigned)seed,
               n_stages, (long long)chosen_ns,
               (long long)psplit_planner_plan(chosen)->lower_bound_ns, (long long)given_ns);
    n_better += chosen_ns < given_ns;
    psplit_planner_destroy(chosen);
    psplit_planner_destroy(given);
    psplit_devices_destroy(devices);
    psplit_model_close(model);
  }
  print_message("# of %u plans %u are better than in the listed order\n", (unsigned)n_seeds,
                n_better);
}

static void holds_for_all_orders(const psplit_plan *plan, int64_t best_ns, uint64_t seed) {
  if (plan->value_ns < best_ns || plan->lower_bound_ns > best_ns)
    fail_msg("seed %u: bound %lld (%s), value %lld, but the optimum of all orders is %lld",
             (unsigned)seed, (long long)plan->lower_bound_ns, plan->bound,
             (long long)plan->value_ns, (long long)best_ns);
}

/* A residual run, which cuts cost layouts, in a row of convolutions. */
static psplit_model *residual(dice *d) {
  psplit_i_text text = {0};
  const uint32_t n_nodes = 5 + draw(d, 3);
  psplit_i_text_puts(&text,
                     "(float[1,64,16,16] x) => (y) <float[64,64,1,1] w = raw {0 * 4096}> {"
                     " v0 = Conv (x, w)");
  for (uint32_t i = 1, kept = 0; i <= n_nodes; i++) {
    const bool sum = i - 1 > kept && draw(d, 2);
    psplit_i_text_addf(&text, sum ? " v%u = Add (v%u, v%u)" : " v%u = Conv (v%u, w)", i, i - 1,
                       kept);
    if (sum) kept = i;
  }
  psplit_i_text_addf(&text, " y = GlobalAveragePool (v%u) }", n_nodes);
  psplit_model *model = opened_text(text.bytes);
  psplit_i_text_fini(&text);
  return model;
}

/* CPUs of several kinds, on one host or two. */
static psplit_devices *unlike_cpus(dice *d, uint32_t n) {
  static const char *const PRESETS[] = {"cpu", "cpu-sse", "cpu-avx512"};
  psplit_i_text text = {0};
  const bool apart = draw(d, 2);
  psplit_i_text_puts(&text, "{\"devices\": [");
  for (uint32_t i = 0; i < n; i++) {
    const uint32_t preset = draw(d, 3), overhead_ns = 1000 * draw(d, 3);
    const uint32_t host = apart ? draw(d, 2) : 0;
    psplit_i_text_addf(&text,
                       "%s{\"name\": \"d%u\", \"preset\": \"%s\", \"overhead_ns\": %u,"
                       " \"host\": \"%u\"}",
                       i ? ", " : "", i, PRESETS[preset], overhead_ns, host);
  }
  psplit_i_text_puts(&text,
                     "], \"topology\": {\"same_host\": {\"bytes_per_second\": 1e11,"
                     " \"latency_ns\": 0}, \"same_rack\": {\"bytes_per_second\": 2e10,"
                     " \"latency_ns\": 100}}}");
  psplit_devices *devices = parsed(text.bytes);
  psplit_i_text_fini(&text);
  return devices;
}

/* Where cuts cost layouts, what a plan says of all orders is true, with overlap and without. */
static void bounds_know_layouts(void **state) {
  (void)state;
  const uint64_t n_seeds = sample_of(24, 200);
  uint32_t n_plans[2] = {0}, n_proved[2] = {0}, n_best[2] = {0};
  for (uint64_t seed = 0; seed < n_seeds; seed++) {
    dice d = {.seed = 8000 + seed};
    const bool overlap = seed % 2;
    const uint32_t n_devices = 2 + draw(&d, MAX_DEVICES - 1);
    const uint32_t n_stages = draw(&d, 3) ? n_devices : 2 + draw(&d, n_devices - 1);
    psplit_model *model = residual(&d);
    psplit_devices *devices = unlike_cpus(&d, n_devices);
    psplit_planner_options options = options_for(n_stages, devices);
    options.slack_frac = 0;
    options.overlap = overlap;
    const int64_t best_ns = best_order(model, &options);
    psplit_planner *planner = unit_of(model, &options);
    assert_true(plan_of(planner));
    const psplit_plan *plan = psplit_planner_plan(planner);
    holds_for_all_orders(plan, best_ns, seed);
    n_plans[overlap]++;
    n_proved[overlap] += plan->proved_optimal;
    n_best[overlap] += plan->value_ns == best_ns;
    psplit_planner_destroy(planner);
    psplit_devices_destroy(devices);
    psplit_model_close(model);
  }
  for (int o = 0; o < 2; o++) {
    print_message("# %s overlap: of %u plans %u are best and %u proved\n", o ? "with" : "without",
                  n_plans[o], n_best[o], n_proved[o]);
    assert_true(n_best[o] >= n_plans[o] * 9 / 10 && n_proved[o] >= n_plans[o] * 3 / 4);
  }
}

/* A tensor that several others read. */
static psplit_model *star(dice *d) {
  psplit_i_text text = {0};
  const uint32_t n = 2 + draw(d, 3);
  psplit_i_text_puts(&text, "(float[64,64] x) => (float[64,64] y) { r = Softmax (x)");
  for (uint32_t i = 0; i < n; i++) psplit_i_text_addf(&text, " m%u = MatMul (r, r)", i);
  psplit_i_text_puts(&text, " y = Sum (r");
  for (uint32_t i = 0; i < n; i++) psplit_i_text_addf(&text, ", m%u", i);
  psplit_i_text_puts(&text, ") }");
  psplit_model *model = opened_text(text.bytes);
  psplit_i_text_fini(&text);
  return model;
}

/* Each linked to the next alone. */
static psplit_devices *row_of_devices(dice *d, uint32_t n) {
  static const char *const SPEEDS[] = {"1e8", "3e8", "1e9", "3e9"};
  psplit_i_text text = {0};
  psplit_i_text_puts(&text, "{\"devices\": [");
  for (uint32_t i = 0; i < n; i++) {
    const uint32_t overhead_ns = 1000 * draw(d, 3);
    psplit_i_text_addf(&text, "%s{\"name\": \"d%u\", \"preset\": \"cpu\", \"overhead_ns\": %u}",
                       i ? ", " : "", i, overhead_ns);
  }
  begin_links(&text, "0", 0);
  for (uint32_t i = 0; i + 1 < n; i++) {
    const char *speed = SPEEDS[draw(d, 4)];
    add_link(&text, i, i + 1, speed, 0);
  }
  return end_links(&text);
}

/* A stage that relays a tensor sends it in place of the producer, which no bound is above. */
static void bounds_know_relays(void **state) {
  (void)state;
  const uint64_t n_seeds = sample_of(24, 100);
  uint32_t n_best = 0, n_proved = 0;
  for (uint64_t seed = 0; seed < n_seeds; seed++) {
    dice d = {.seed = 18100 + seed};
    const uint32_t n_devices = 3 + draw(&d, 2);
    psplit_model *model = draw(&d, 2) ? star(&d) : random_model(&d, 4 + draw(&d, 3));
    psplit_devices *devices = row_of_devices(&d, n_devices);
    psplit_planner_options options = options_for(3, devices);
    options.slack_frac = 0;
    options.overlap = draw(&d, 2);
    options.message_latency = draw(&d, 2) ? PSPLIT_LATENCY_PER_TENSOR : PSPLIT_LATENCY_PER_PAIR;
    const int64_t best_ns = best_order(model, &options);
    psplit_planner *planner = unit_of(model, &options);
    assert_true(plan_of(planner));
    const psplit_plan *plan = psplit_planner_plan(planner);
    holds_for_all_orders(plan, best_ns, seed);
    n_best += plan->value_ns == best_ns;
    n_proved += plan->proved_optimal;
    psplit_planner_destroy(planner);
    psplit_devices_destroy(devices);
    psplit_model_close(model);
  }
  print_message("# of %u plans with relays %u are best and %u proved\n", (unsigned)n_seeds, n_best,
                n_proved);
  assert_true(n_best >= n_seeds * 9 / 10);
}

int main(void) {
  const struct CMUnitTest tests[] = {
    cmocka_unit_test(the_order_of_the_file_does_not_matter),
    cmocka_unit_test(hosts_are_kept_together),
    cmocka_unit_test(an_order_can_be_given),
    cmocka_unit_test(too_many_to_try_all),
    cmocka_unit_test(operators_choose_devices),
    cmocka_unit_test(the_first_of_too_many_has_no_split),
    cmocka_unit_test(chosen_orders_are_the_best),
    cmocka_unit_test(little_time_proves_no_order),
    cmocka_unit_test(the_listed_order_is_no_better),
    cmocka_unit_test(bounds_know_layouts),
    cmocka_unit_test(bounds_know_relays),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
