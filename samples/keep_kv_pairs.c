/* A pass plugin: the two halves of each layer's key/value cache share a stage.
 *
 * A decoder that was exported with its cache takes `past_key_values.3.key` and `.value` and gives
 * `present.3.key` and `.value`. A server keeps a layer's cache on one device, so whatever reads or
 * writes the cache of layer 3 belongs to one stage. Put it before `partition`:
 *
 *   --load-pass-plugin ./keep_kv_pairs.so \
 *   --passes infer-shapes,cost,mark,attach,fuse,keep-kv-pairs,coarsen,partition,replicate */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <psplit/plugin.h>

enum { MAX_LAYERS = 4096 };

/* The layer of a cache's name: the first number between dots that "key" or "value" follows. */
static long layer_of(const char *name) {
  const char *dot = strchr(name, '.');
  for (; dot; dot = strchr(dot + 1, '.')) {
    char *end;
    const long layer = strtol(dot + 1, &end, 10);
    const int is_pair =
      strstr(end, ".key") == end || strstr(end, ".value") == end || strstr(end, ".decoder.") == end;
    if (end != dot + 1 && is_pair && layer >= 0 && layer < MAX_LAYERS) return layer;
  }
  return -1;
}

static int run(const psplit_plugin_host *host, psplit_plugin_planner *planner,
               const psplit_plugin_value *values) {
  static const char *const prefixes[] = {"past", "present"};
  /* The first node met of each layer: every other one joins it. */
  uint32_t *first = malloc(MAX_LAYERS * sizeof *first);
  if (!first) {
    host->fail(planner, "out of memory");
    return 1;
  }
  for (int i = 0; i < MAX_LAYERS; i++) first[i] = PSPLIT_PLUGIN_NONE;
  unsigned n_layers = 0;
  for (uint32_t value = 0; value < host->n_values(planner); value++) {
    const char *name = host->value_name(planner, value);
    const bool in = host->value_is_input(planner, value),
               out = host->value_is_output(planner, value);
    const char *prefix = prefixes[in ? 0 : 1];
    const long layer = in || out ? layer_of(name) : -1;
    if (layer < 0 || strncmp(name, prefix, strlen(prefix)) != 0) continue;
    const uint32_t producer = host->value_producer(planner, value);
    const uint32_t *nodes = &producer;
    const uint32_t n = in ? host->value_consumers(planner, value, &nodes) : 1;
    for (uint32_t i = 0; i < n; i++) {
      if (nodes[i] == PSPLIT_PLUGIN_NONE) continue;
      if (first[layer] == PSPLIT_PLUGIN_NONE) {
        first[layer] = nodes[i];
        n_layers++;
      }
      host->keep_together(planner, (const uint32_t[]){first[layer], nodes[i]}, 2);
      host->note(planner, nodes[i], name);
    }
  }
  char line[64];
  snprintf(line, sizeof line, "keep-kv-pairs: caches of %u layers", n_layers);
  if (values[0].boolean) host->say(planner, line);
  free(first);
  return 0;
}

static const psplit_plugin_option OPTIONS[] = {
  {"report", PSPLIT_PLUGIN_BOOL, "true", 0, 0, "say how many layers have a cache"},
};

static const psplit_plugin_pass PASS = {
  .struct_size = sizeof PASS,
  .name = "keep-kv-pairs",
  .help = "one stage for all that reads or writes a layer's key/value cache",
  .options = OPTIONS,
  .n_options = 1,
  .run = run,
};

PSPLIT_PLUGIN_OF("keep-kv-pairs", "1", &PASS)
