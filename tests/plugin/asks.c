/* A plugin that asks the host for all that it tells of the model in plugins.py, and holds it
 * against what that model says. What differs first is the reason that its pass fails for. */
#include <psplit/plugin.h>
#include <string.h>

typedef const psplit_plugin_host host_of;

static uint32_t node_named(host_of *host, const psplit_plugin_planner *planner, const char *name) {
  for (uint32_t n = 0; n < host->n_nodes(planner); n++)
    if (strcmp(host->node_name(planner, n), name) == 0) return n;
  return PSPLIT_PLUGIN_NONE;
}

static uint32_t value_named(host_of *host, const psplit_plugin_planner *planner, const char *name) {
  for (uint32_t v = 0; v < host->n_values(planner); v++)
    if (strcmp(host->value_name(planner, v), name) == 0) return v;
  return PSPLIT_PLUGIN_NONE;
}

#define ASK(truth)               \
  do {                           \
    if (!(truth)) return #truth; \
  } while (0)

static const char *ask_nodes(host_of *host, const psplit_plugin_planner *planner) {
  const uint32_t *ids, *order = host->topological_order(planner);
  const uint32_t mm = node_named(host, planner, "mm"), branch = node_named(host, planner, "if"),
                 fixed = node_named(host, planner, "cst"), gelu = node_named(host, planner, "g");
  const uint32_t a = value_named(host, planner, "a"), w = value_named(host, planner, "w");
  uint32_t n_before = 0;
  ASK(host->n_stages(planner) == 2);
  while (order[n_before] != branch) n_before++;
  ASK(n_before > 0);
  ASK(strcmp(host->node_op_type(planner, mm), "MatMul") == 0 && !*host->node_domain(planner, mm));
  ASK(strcmp(host->node_domain(planner, gelu), "com.microsoft") == 0);
  ASK(host->node_inputs(planner, mm, &ids) == 2 && ids[1] == w);
  ASK(host->node_outputs(planner, mm, &ids) == 1 && ids[0] == a);
  ASK(host->node_captures(planner, mm, &ids) == 0);
  ASK(host->node_captures(planner, branch, &ids) == 1);
  ASK(strcmp(host->value_name(planner, ids[0]), "b") == 0);
  ASK(host->node_is_constant(planner, fixed) && !host->node_is_constant(planner, mm));
  ASK(host->node_ns(planner, mm, 0) > 0 && host->node_ns(planner, mm, 2) == 0);
  ASK(host->node_ns(planner, fixed, 0) == 0);
  ASK(strcmp(host->stage_device(planner, 1), "cpu1") == 0);
  return NULL;
}

static const char *ask_attributes(host_of *host, const psplit_plugin_planner *planner) {
  const uint32_t leaky = node_named(host, planner, "lrn"), turn = node_named(host, planner, "t"),
                 sums = node_named(host, planner, "ein"), soft = node_named(host, planner, "s");
  int64_t number = 0;
  float real = 0;
  const char *text = NULL;
  const int64_t *list = NULL;
  size_t n = 0;
  ASK(host->attr_int(planner, soft, "axis", &number) && number == -1);
  ASK(host->attr_float(planner, leaky, "alpha", &real) && real == 0.25f);
  ASK(host->attr_string(planner, sums, "equation", &text, &n) && n == 5 &&
      memcmp(text, "ij,jk", n) == 0);
  ASK(host->attr_ints(planner, turn, "perm", &list, &n) && n == 2 && list[0] == 1 && list[1] == 0);
  ASK(!host->attr_int(planner, leaky, "axis", &number));
  ASK(!host->attr_float(planner, soft, "alpha", &real));
  ASK(!host->attr_string(planner, soft, "axis", &text, &n));
  ASK(!host->attr_ints(planner, soft, "perm", &list, &n));
  const uint32_t none = host->n_nodes(planner);
  ASK(!host->attr_float(planner, none, "alpha", &real));
  ASK(!host->attr_string(planner, none, "equation", &text, &n));
  ASK(!host->attr_ints(planner, none, "perm", &list, &n));
  return NULL;
}

static const char *ask_values(host_of *host, const psplit_plugin_planner *planner) {
  const uint32_t x = value_named(host, planner, "x"), u = value_named(host, planner, "u"),
                 w = value_named(host, planner, "w"), a = value_named(host, planner, "a"),
                 y = value_named(host, planner, "y"), r = value_named(host, planner, "r"),
                 none = host->n_values(planner);
  const uint32_t *ids;
  uint64_t bytes = 0;
  ASK(host->value_producer(planner, a) == node_named(host, planner, "mm"));
  ASK(host->value_producer(planner, x) == PSPLIT_PLUGIN_NONE);
  ASK(host->value_producer(planner, none) == PSPLIT_PLUGIN_NONE);
  ASK(host->value_consumers(planner, a, &ids) == 1 && ids[0] == node_named(host, planner, "lrn"));
  ASK(host->value_is_constant(planner, w) && !host->value_is_constant(planner, a));
  ASK(!host->value_is_constant(planner, none));
  ASK(host->value_is_input(planner, x) && !host->value_is_input(planner, w));
  ASK(!host->value_is_input(planner, a) && !host->value_is_input(planner, none));
  ASK(host->value_is_output(planner, y) && !host->value_is_output(planner, a));
  ASK(!host->value_is_output(planner, none));
  ASK(host->value_dtype(planner, x) == 1 && host->value_dtype(planner, none) == 0);
  ASK(host->value_rank(planner, x) == 2 && host->value_rank(planner, r) == -1);
  ASK(host->value_dim(planner, x, 0) == 2 && host->value_dim(planner, x, 2) == -1);
  ASK(host->value_dim(planner, u, 0) == -1 && host->value_dim(planner, u, 1) == 4);
  ASK(host->value_dim(planner, r, 0) == -1);
  ASK(host->value_bytes(planner, x, &bytes) && bytes == 2 * 4 * sizeof(float));
  ASK(!host->value_bytes(planner, none, &bytes));
  ASK(!host->value_bytes(planner, u, &bytes) && !host->value_bytes(planner, r, &bytes));
  return NULL;
}

/* Wishes, in each form that is allowed and does nothing here. */
static const char *wish(host_of *host, psplit_plugin_planner *planner) {
  const uint32_t mm = node_named(host, planner, "mm"), leaky = node_named(host, planner, "lrn"),
                 fixed = node_named(host, planner, "cst");
  const uint32_t two[] = {mm, leaky}, with[] = {fixed, mm};
  ASK(host->group(planner, two, 2) && host->group(planner, NULL, 0));
  ASK(host->group_of(planner, mm) == host->group_of(planner, leaky));
  host->must_group(planner, two, 2);
  host->must_group(planner, with, 2);
  host->keep_together(planner, with, 2);
  host->set_cost(planner, mm, PSPLIT_PLUGIN_NONE, 4000);
  ASK(host->node_ns(planner, mm, 0) == 4000 && host->node_ns(planner, mm, 1) == 4000);
  host->set_cost(planner, mm, 0, 5000);
  host->set_cost(planner, mm, 2, 6000);
  ASK(host->node_ns(planner, mm, 1) == 5000);
  ASK(host->pin(planner, mm, 0) && !host->pin(planner, leaky, 1) && !host->pin(planner, fixed, 0));
  host->say(planner, "asked all");
  host->say(planner, NULL);
  return NULL;
}

static int run(host_of *host, psplit_plugin_planner *planner, const psplit_plugin_value *values) {
  const char *why = NULL;
  if (values[0].integer == 3 && values[1].real == 0.5 && strcmp(values[2].text, "so") == 0 &&
      values[3].boolean) {
    if (!why) why = ask_nodes(host, planner);
    if (!why) why = ask_attributes(host, planner);
    if (!why) why = ask_values(host, planner);
    if (!why) why = wish(host, planner);
  } else if (values[0].integer == 1) {
    host->fail(planner, NULL); /* without a reason */
    return 4;
  } else {
    why = "other values than were given";
  }
  if (why) host->fail(planner, why);
  return why ? 1 : 0;
}

static const psplit_plugin_option OPTIONS[] = {
  {"count", PSPLIT_PLUGIN_INT, "1", 0, 10, "a number"},
  {"part", PSPLIT_PLUGIN_REAL, "0.25", 0, 1, NULL},
  {"word", PSPLIT_PLUGIN_TEXT, "none", 0, 0, "a word"},
  {"really", PSPLIT_PLUGIN_BOOL, "false", 0, 0, "a choice"}};

static const psplit_plugin_pass PASS = {
  .struct_size = sizeof PASS, .name = "asks", .options = OPTIONS, .n_options = 4, .run = run};
static const psplit_plugin_pass *const PASSES[] = {&PASS};
static const psplit_plugin PLUGIN = {.abi = PSPLIT_PLUGIN_ABI,
                                     .struct_size = sizeof PLUGIN,
                                     .name = "asks",
                                     .version = "1",
                                     .passes = PASSES,
                                     .n_passes = 1};

const psplit_plugin *psplit_plugin_query(void) { return &PLUGIN; }
