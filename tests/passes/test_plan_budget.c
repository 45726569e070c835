/* One budget for a plan: however many problems are solved for it, one after the other, they take
 * what the plan's limit says, together. Each had the limit for itself, so that plans took two to
 * three times as long. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
/* cmocka.h needs the four above first. */
#include <cmocka.h>
#include <stdio.h>

#include "plan_budget.h"
#include "small_plans.h"

enum { NODES = 120, STAGES = 8 };
static const double LIMIT_S = 0.2, MOST = 1.2;

static void directly(psplit_planner_options *o) { o->message_latency = PSPLIT_LATENCY_PER_TENSOR; }
static void in_messages(psplit_planner_options *o) { o->message_latency = PSPLIT_LATENCY_PER_PAIR; }
static void with_slack(psplit_planner_options *o) {
  in_messages(o);
  o->slack_frac = 0.05;
}
static void overlapped(psplit_planner_options *o) { o->overlap = true; }
static void in_segments(psplit_planner_options *o) { o->max_segments = 3; }
static void in_replicas(psplit_planner_options *o) { o->max_replicas = 3; }
static void for_latency(psplit_planner_options *o) { o->objective = PSPLIT_LATENCY; }

typedef struct kind {
  const char *name;
  void (*set)(psplit_planner_options *options);
  bool two_kinds;        /* of devices, whose order is chosen */
  uint64_t memory_bytes; /* of each device; 0: no limit */
} kind;

static psplit_devices *devices_of(const kind *k) {
  psplit_i_text text = {0};
  psplit_i_text_addf(&text, "{\"devices\": [");
  for (uint32_t i = 0; i < STAGES; i++) {
    psplit_i_text_addf(&text, "%s{\"name\": \"d%u\", \"preset\": \"%s\", \"host\": \"h\"",
                       i ? ", " : "", i, k->two_kinds && i % 2 ? "cpu-sse" : "cpu");
    if (k->memory_bytes)
      psplit_i_text_addf(&text, ", \"keeps_copies\": false, \"memory_bytes\": %llu",
                         (unsigned long long)k->memory_bytes);
    psplit_i_text_addf(&text, "}");
  }
  psplit_i_text_addf(
    &text, "], \"topology\": {\"same_host\": {\"bytes_per_second\": 1e9, \"latency_ns\": 20000}}}");
  psplit_devices *devices = parsed(text.bytes);
  psplit_i_text_fini(&text);
  return devices;
}

/* Of the limit, what the plan took. */
static double part_of(const psplit_model *model, const kind *k, bool by_work) {
  psplit_diag diag = {0};
  psplit_devices *devices = devices_of(k);
  psplit_planner_options options = options_for(STAGES, devices);
  k->set(&options);
  options.time_limit_s = LIMIT_S;
  options.limit_by_work = by_work;
  psplit_planner *planner = unit_of(model, &options);
  if (psplit_planner_run(planner, "infer-shapes,cost,mark,partition,replicate", &diag) != PSPLIT_OK)
    fail_msg("%s: %s", k->name, diag.message);
  const double part = psplit_i_plan_seconds(planner) / LIMIT_S;
  const psplit_plan *plan = psplit_planner_plan(planner);
  print_message("# %s: %.2f of the limit, %lld ns, none below %lld\n", k->name, part,
                (long long)plan->value_ns, (long long)plan->lower_bound_ns);
  psplit_planner_destroy(planner);
  psplit_devices_destroy(devices);
  return part;
}

static void plans_end_within_their_limit(void **state) {
  (void)state;
  static const kind KINDS[] = {
    {.name = "tensors", .set = directly},
    {.name = "messages", .set = in_messages},
    {.name = "slack", .set = with_slack},
    {.name = "overlap", .set = overlapped},
    {.name = "segments", .set = in_segments},
    {.name = "replicas", .set = in_replicas},
    {.name = "latency", .set = for_latency},
    {.name = "two kinds of devices", .set = directly, .two_kinds = true},
    {.name = "messages between two kinds", .set = in_messages, .two_kinds = true},
    {.name = "memory", .set = directly, .memory_bytes = 1000000},
  };
  for (size_t k = 0; k < sizeof KINDS / sizeof *KINDS; k++) {
    dice d = {.seed = 40 + k};
    psplit_model *model = random_model(&d, NODES);
    for (unsigned by_work = 0; by_work < 2; by_work++) {
      const double part = part_of(model, &KINDS[k], by_work);
      if (part > MOST) fail_msg("%s: %.2f of the limit", KINDS[k].name, part);
    }
    psplit_model_close(model);
  }
}

int main(void) {
  const struct CMUnitTest tests[] = {
    cmocka_unit_test(plans_end_within_their_limit),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
