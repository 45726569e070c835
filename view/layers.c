/* Layers of a model by stage, as runtimes take them that split between layers. */
#include <stdlib.h>
#include <string.h>

#include "view.h"

/* The last number in a name; PSPLIT_NONE: there is none. */
static uint32_t number_in(const char *name) {
  const char *end = name + strlen(name);
  while (end > name && (end[-1] < '0' || end[-1] > '9')) end--;
  const char *at = end;
  while (at > name && at[-1] >= '0' && at[-1] <= '9') at--;
  return at == end || end - at > 9 ? PSPLIT_NONE : (uint32_t)strtoul(at, NULL, 10);
}

/* The blocks of the repeat that takes most of the model. */
static const psplit_snapshot_repeat *longest(const psplit_snapshot *s) {
  const psplit_snapshot_repeat *best = NULL;
  for (uint32_t r = 0; r < s->n_repeats; r++)
    if (!best || s->repeats[r].n_blocks * s->repeats[r].n_groups > best->n_blocks * best->n_groups)
      best = &s->repeats[r];
  return best;
}

/* The stage that takes longest for a block; *out_torn: it is not the only one. */
static uint32_t stage_of_block(const psplit_snapshot *s, const psplit_snapshot_repeat *repeat,
                               uint32_t block, int64_t *ns, bool *out_torn) {
  const uint32_t first = repeat->first + block * repeat->n_groups;
  uint32_t best = s->groups[first].stage;
  memset(ns, 0, s->n_stages * sizeof *ns);
  *out_torn = false;
  for (uint32_t g = first; g < first + repeat->n_groups; g++) {
    *out_torn |= s->groups[g].stage != s->groups[first].stage;
    ns[s->groups[g].stage] += s->groups[g].cost_ns;
  }
  for (uint32_t k = 0; k < s->n_stages; k++)
    if (ns[k] > ns[best]) best = k;
  return best;
}

/* Whether a layer's supernodes are in several stages, where the blocks tell. */
static uint32_t count_torn(const psplit_snapshot *s, const psplit_snapshot_repeat *repeat,
                           int64_t *ns) {
  uint32_t n = 0;
  for (uint32_t b = 0; repeat && b < repeat->n_blocks; b++) {
    bool torn;
    (void)stage_of_block(s, repeat, b, ns, &torn);
    n += torn;
  }
  return n;
}

/* A layer for each number in names of state; false: they are not numbered from 0. */
static bool layers_of_state(const psplit_snapshot *s, uint32_t *out_layers) {
  uint32_t most = 0;
  for (uint32_t i = 0; i < s->n_states; i++) {
    const uint32_t number = number_in(s->values[s->states[i].input].name);
    if (number >= s->n_states || s->states[i].writer == PSPLIT_NONE) return false;
    if (number > most) most = number;
  }
  for (uint32_t layer = 0; s->n_states && layer <= most; layer++) {
    uint32_t i = 0;
    while (i < s->n_states && number_in(s->values[s->states[i].input].name) != layer) i++;
    if (i == s->n_states) return false;
    out_layers[s->states[i].writer]++;
  }
  return s->n_states > 0;
}

psplit_code psplit_view_layers(const psplit_snapshot *s, psplit_diag *diag, uint32_t *out_layers,
                               uint32_t *out_torn) {
  if (!s->plan) return psplit_i_fail(diag, PSPLIT_USAGE, "there are no stages yet");
  const psplit_snapshot_repeat *repeat = longest(s);
  int64_t *ns = malloc(((size_t)s->n_stages + 1) * sizeof *ns);
  if (!ns) return psplit_i_nomem(diag);
  memset(out_layers, 0, s->n_stages * sizeof *out_layers);
  psplit_code code = PSPLIT_OK;
  if (!layers_of_state(s, out_layers)) {
    memset(out_layers, 0, s->n_stages * sizeof *out_layers);
    for (uint32_t b = 0; repeat && b < repeat->n_blocks; b++) {
      bool torn;
      out_layers[stage_of_block(s, repeat, b, ns, &torn)]++;
    }
    if (!repeat)
      code =
        psplit_i_fail(diag, PSPLIT_UNSUPPORTED,
                      "the model has no layers: neither numbered state nor blocks that repeat");
  }
  if (code == PSPLIT_OK && out_torn) *out_torn = count_torn(s, repeat, ns);
  free(ns);
  return code;
}
