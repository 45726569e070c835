/* Random small models and devices, and the best of all their splits by enumeration. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
/* cmocka.h needs the four above first. */
#include <cmocka.h>
#include <stdio.h>
#include <string.h>

#include "open.h"
#include "small_plans.h"

uint32_t draw(dice *d, uint32_t below) {
  return (uint32_t)(psplit_i_splitmix64(d->seed, d->at++) % below);
}

psplit_devices *parsed(const char *text) {
  psplit_diag diag = {0};
  psplit_devices *devices = NULL;
  if (psplit_devices_parse(text, strlen(text), &diag, &devices) != PSPLIT_OK)
    fail_msg("%s\n%s", diag.message, text);
  return devices;
}

psplit_planner_options options_for(uint32_t n_stages, const psplit_devices *devices) {
  psplit_planner_options options;
  psplit_planner_options_init(&options);
  options.n_stages = n_stages;
  options.devices = devices;
  options.n_threads = 1;
  return options;
}

psplit_planner *unit_of(const psplit_model *model, const psplit_planner_options *options) {
  psplit_diag diag = {0};
  psplit_planner *planner;
  if (psplit_planner_create(model, options, &diag, &planner) != PSPLIT_OK)
    fail_msg("%s", diag.message);
  return planner;
}

/* A plan by cutting between nodes; false where there is none. */
bool plan_of(psplit_planner *planner) {
  psplit_diag diag = {0};
  const psplit_code code = psplit_planner_run(planner, "infer-shapes,cost,mark,partition", &diag);
  if (code != PSPLIT_OK && code != PSPLIT_INFEASIBLE) fail_msg("%s", diag.message);
  return code == PSPLIT_OK;
}

psplit_model *random_model(dice *d, uint32_t n) {
  psplit_i_text nodes = {0}, outputs = {0}, text = {0};
  for (uint32_t i = 1; i <= n; i++) {
    const bool product = draw(d, 2);
    const uint32_t a = draw(d, 4) ? i - 1 - draw(d, i < 3 ? i : 3) : 0;
    if (product)
      psplit_i_text_addf(&nodes, "v%u = MatMul (v%u, v%u)\n", i, a, draw(d, i));
    else
      psplit_i_text_addf(&nodes, "v%u = Softmax (v%u)\n", i, a);
    psplit_i_text_addf(&outputs, "%sfloat[64,64] v%u", i > 1 ? ", " : "", i);
  }
  psplit_i_text_addf(&text, "(float[64,64] v0) => (%s) {%s}", outputs.bytes, nodes.bytes);
  psplit_model *model = opened_text(text.bytes);
  psplit_i_text_fini(&nodes);
  psplit_i_text_fini(&outputs);
  psplit_i_text_fini(&text);
  return model;
}

void begin_links(psplit_i_text *text, const char *bytes_per_second, uint32_t latency_ns) {
  psplit_i_text_addf(text,
                     "], \"topology\": {\"same_host\": {\"bytes_per_second\": %s, "
                     "\"latency_ns\": %u}}, \"links\": [",
                     bytes_per_second, latency_ns);
}

void add_link(psplit_i_text *text, uint32_t from, uint32_t to, const char *bytes_per_second,
              uint32_t latency_ns) {
  const bool first = text->bytes[text->n - 1] == '[';
  psplit_i_text_addf(text,
                     "%s{\"from\": \"d%u\", \"to\": \"d%u\", \"bytes_per_second\": %s, "
                     "\"latency_ns\": %u}",
                     first ? "" : ", ", from, to, bytes_per_second, latency_ns);
}

psplit_devices *end_links(psplit_i_text *text) {
  psplit_i_text_puts(text, "]}");
  psplit_devices *devices = parsed(text->bytes);
  psplit_i_text_fini(text);
  return devices;
}

psplit_devices *random_devices(dice *d, uint32_t n) {
  static const char *const SPEEDS[] = {"1e8", "3e8", "1e9", "1e10", "0"};
  psplit_i_text text = {0};
  const bool limited = draw(d, 4) == 0, uneven = draw(d, 3) == 0;
  psplit_i_text_puts(&text, "{\"devices\": [");
  for (uint32_t i = 0; i < n; i++) {
    const char *preset = uneven && draw(d, 2) ? "cpu-sse" : "cpu";
    const uint32_t host = draw(d, 3), rack = draw(d, 2), memory_bytes = 70000 + draw(d, 150000);
    psplit_i_text_addf(&text,
                       "%s{\"name\": \"d%u\", \"preset\": \"%s\", \"host\": \"h%u\", "
                       "\"rack\": \"r%u\"",
                       i ? ", " : "", i, preset, host, rack);
    if (limited)
      psplit_i_text_addf(&text, ", \"keeps_copies\": false, \"memory_bytes\": %u", memory_bytes);
    psplit_i_text_puts(&text, "}");
  }
  const char *usual = draw(d, 6) ? "1e10" : "0";
  begin_links(&text, usual, draw(d, 3) * 1000);
  for (uint32_t i = 0; i < n; i++)
    for (uint32_t j = i + 1; j < n; j++) {
      if (draw(d, 3)) continue;
      const char *speed = SPEEDS[draw(d, 5)];
      add_link(&text, i, j, speed, draw(d, 4) * 10000);
    }
  return end_links(&text);
}

/* The least value of all splits of the nodes, as their plans say it; INT64_MAX: none fits. */
typedef struct enumeration {
  psplit_planner *planner;
  int64_t best_ns;
} enumeration;

static void judge(enumeration *e) {
  psplit_planner *planner = e->planner;
  psplit_diag diag = {0};
  uint32_t used = 0;
  for (uint32_t n = 0; n < planner->graph->n_nodes; n++) used |= UINT32_C(1) << planner->stage[n];
  if (used + 1 != UINT32_C(1) << planner->options.n_stages) return;
  if (psplit_i_plan_make(planner, &diag) != PSPLIT_OK) return; /* no way for a tensor */
  for (uint32_t s = 0; s < planner->options.n_stages; s++)
    if (planner->plan->stages[s].memory_bytes > psplit_devices_memory_bytes(planner->devices, s))
      return;
  const int64_t ns = planner->plan->value_ns;
  if (ns < e->best_ns) e->best_ns = ns;
}

static void place(enumeration *e, uint32_t n) {
  const psplit_i_graph *graph = e->planner->graph;
  if (n == graph->n_nodes) {
    judge(e);
    return;
  }
  uint32_t low = 0;
  PSPLIT_FOR_EACH_READ(&graph->nodes[n], value) {
    const uint32_t p = graph->values[value].producer;
    if (p != PSPLIT_NONE && e->planner->stage[p] > low) low = e->planner->stage[p];
  }
  for (uint32_t s = low; s < e->planner->options.n_stages; s++) {
    e->planner->stage[n] = s;
    place(e, n + 1);
  }
}

int64_t best_of_all(const psplit_model *model, const psplit_planner_options *options) {
  psplit_planner *planner = unit_of(model, options);
  psplit_diag diag = {0};
  if (psplit_planner_run(planner, "infer-shapes,cost,mark,attach", &diag) != PSPLIT_OK)
    fail_msg("%s", diag.message);
  enumeration e = {planner, INT64_MAX};
  place(&e, 0);
  psplit_planner_destroy(planner);
  return e.best_ns;
}
