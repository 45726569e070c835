/* A pass plugin: a table of what a company's devices are good and bad at.
 *
 * Each line of the table is OPERATOR DEVICE FACTOR: on devices whose name starts with DEVICE, the
 * operator takes FACTOR times as long as the cost model says, or, where FACTOR is "never", does not
 * run at all. "*" stands for any device. '#' starts a comment.
 *
 *   NonZero  npu  never
 *   Resize   npu  8
 *   Conv     dsp  0.5
 *
 *   onnx-pipeline-split MODEL -k 4 -o out --load-pass-plugin ./device_table.so --passes PASSES
 *
 * with PASSES:
 *
 *   infer-shapes,cost,mark,attach,fuse,device-table:file=npu.txt,coarsen,partition,replicate
 *
 * An operator that only one device runs is pinned there; where several do, the others are priced
 * out. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <psplit/plugin.h>

enum { MAX_RULES = 1024, WORD = 64 };

typedef struct rule {
  char op[WORD], device[WORD];
  double factor; /* < 0: never */
} rule;

static int fail(const psplit_plugin_host *host, psplit_plugin_planner *planner, const char *file,
                unsigned line, const char *what) {
  char text[256];
  snprintf(text, sizeof text, "%s:%u: %s", file, line, what);
  host->fail(planner, text);
  return -1;
}

/* The number of rules, or -1 after `fail`. */
static int read_table(const psplit_plugin_host *host, psplit_plugin_planner *planner,
                      const char *name, rule *rules) {
  FILE *file = fopen(name, "r");
  if (!file) return fail(host, planner, name, 0, strerror(errno));
  char text[512];
  int n = 0;
  for (unsigned line = 1; n >= 0 && fgets(text, sizeof text, file); line++) {
    char factor[WORD], more;
    text[strcspn(text, "#\n")] = '\0';
    if (!text[strspn(text, " \t\r")]) continue;
    if (n == MAX_RULES)
      n = fail(host, planner, name, line, "too many lines");
    else if (sscanf(text, "%63s %63s %63s %c", rules[n].op, rules[n].device, factor, &more) != 3)
      n = fail(host, planner, name, line, "it is: OPERATOR DEVICE FACTOR");
    if (n < 0) break;
    char *end;
    rules[n].factor = strcmp(factor, "never") == 0 ? -1 : strtod(factor, &end);
    if (rules[n].factor != -1 && (*end || !(rules[n].factor >= 0 && rules[n].factor <= 1e6)))
      n = fail(host, planner, name, line, "FACTOR is a number from 0 to 1000000, or \"never\"");
    else
      n++;
  }
  fclose(file);
  return n;
}

/* Factor of an operator on a device; later lines count more. */
static double factor_of(const rule *rules, int n, const char *op, const char *device) {
  for (int i = n; i-- > 0;)
    if (strcmp(rules[i].op, op) == 0 &&
        (strcmp(rules[i].device, "*") == 0 ||
         strncmp(device, rules[i].device, strlen(rules[i].device)) == 0))
      return rules[i].factor;
  return 1;
}

static void apply(const psplit_plugin_host *host, psplit_plugin_planner *planner, const rule *rules,
                  int n_rules, uint32_t node) {
  static const int64_t FORBIDDEN_NS = INT64_C(1000000000000); /* a quarter of an hour */
  uint32_t n_able = 0, able = PSPLIT_PLUGIN_NONE;
  const uint32_t n_stages = host->n_stages(planner);
  int64_t *ns = malloc(n_stages * sizeof *ns);
  if (!ns) return;
  for (uint32_t s = 0; s < n_stages; s++) {
    const double factor =
      factor_of(rules, n_rules, host->node_op_type(planner, node), host->stage_device(planner, s));
    ns[s] = factor < 0 ? FORBIDDEN_NS : (int64_t)((double)host->node_ns(planner, node, s) * factor);
    if (factor >= 0) {
      n_able++;
      able = s;
    }
  }
  for (uint32_t s = 0; s < n_stages; s++) host->set_cost(planner, node, s, ns[s]);
  free(ns);
  if (n_able == 1 && n_stages > 1 && !host->pin(planner, node, able))
    host->note(planner, node, "device-table: its group is pinned elsewhere");
}

static int run(const psplit_plugin_host *host, psplit_plugin_planner *planner,
               const psplit_plugin_value *values) {
  if (!*values[0].text) {
    host->fail(planner, "a table is needed: device-table:file=FILE");
    return 1;
  }
  rule *rules = calloc(MAX_RULES, sizeof *rules);
  const int n = rules ? read_table(host, planner, values[0].text, rules) : -1;
  for (uint32_t node = 0; n > 0 && node < host->n_nodes(planner); node++)
    if (!host->node_is_constant(planner, node)) {
      bool listed = false;
      for (int i = 0; i < n && !listed; i++)
        listed = strcmp(rules[i].op, host->node_op_type(planner, node)) == 0;
      if (listed) apply(host, planner, rules, n, node);
    }
  free(rules);
  return n < 0;
}

static const psplit_plugin_option OPTIONS[] = {
  {"file", PSPLIT_PLUGIN_TEXT, "", 0, 0, "the table: lines of OPERATOR DEVICE FACTOR"},
};

static const psplit_plugin_pass PASS = {
  .struct_size = sizeof PASS,
  .name = "device-table",
  .help = "costs and prohibitions of operators by device, from a table",
  .options = OPTIONS,
  .n_options = 1,
  .run = run,
};

PSPLIT_PLUGIN_OF("device-table", "1", &PASS)
