/* A lower bound on the memory of every stage: that of the smallest supernode, whatever else the
 * stage holds and wherever its inputs come from. A supernode needs its weights and what is live
 * while one of its nodes runs. */
#include "least_memory.h"

#include "builder.h"
#include "liveness.h"

/* The memory of supernodes, as far as it grows with the rest of the stage. */
typedef struct least {
  uint64_t weight_bytes, activation_bytes;
  uint32_t n_nodes, peak_node, largest_value;
} least;

typedef struct supernodes {
  psplit_planner *planner;
  uint32_t n;
  least *least; /* [n] */
  uint64_t least_activation_bytes;
} supernodes;

static psplit_code measure(supernodes *s, psplit_diag *diag) {
  psplit_code code;
  psplit_planner *planner = s->planner;
  psplit_i_arena *arena = &planner->scratch;
  const uint32_t n_nodes = planner->graph->n_nodes;
  psplit_i_liveness liveness;
  psplit_i_builder b = {.planner = planner, .arena = arena, .diag = diag};
  PSPLIT_TRY(psplit_i_builder_number(&b));
  s->n = b.n_groups;
  s->least = PSPLIT_NEW(arena, least, s->n);
  uint32_t *off = PSPLIT_NEW(arena, uint32_t, (size_t)s->n + 2);
  uint32_t *node = PSPLIT_NEW(arena, uint32_t, n_nodes);
  if (arena->failed) PSPLIT_FAIL(psplit_i_nomem(diag));
  PSPLIT_TRY(psplit_i_liveness_init(&liveness, planner, arena, diag));
  for (uint32_t n = 0; n < n_nodes; n++)
    if (b.group[n] != PSPLIT_NONE) off[b.group[n] + 2]++;
  for (uint32_t g = 0; g < s->n; g++) off[g + 2] += off[g + 1];
  for (uint32_t n = 0; n < n_nodes; n++)
    if (b.group[n] != PSPLIT_NONE) node[off[b.group[n] + 1]++] = n;
  s->least_activation_bytes = UINT64_MAX;
  for (uint32_t g = 0; g < s->n; g++) {
    psplit_i_stage_memory memory;
    psplit_i_liveness_least(&liveness, node + off[g], off[g + 1] - off[g], &memory);
    s->least[g] = (least){memory.weight_bytes, memory.activation_bytes, memory.n_nodes,
                          memory.peak_node, memory.largest_value};
    if (memory.activation_bytes < s->least_activation_bytes)
      s->least_activation_bytes = memory.activation_bytes;
  }
out:
  return code;
}

static uint64_t need_of(const supernodes *s, uint32_t device, least of) {
  const psplit_i_stage_memory memory = {.weight_bytes = of.weight_bytes,
                                        .activation_bytes = of.activation_bytes,
                                        .n_nodes = of.n_nodes};
  return psplit_i_stage_need(s->planner, device, &memory);
}

static uint64_t memory_of(const supernodes *s, uint32_t device) {
  return psplit_devices_memory_bytes(s->planner->devices, device);
}

/* The least memory of a stage on the device. Stops as soon as a supernode fits. */
static uint64_t least_need(const supernodes *s, uint32_t device) {
  uint64_t need = UINT64_MAX;
  for (uint32_t g = 0; g < s->n && need > memory_of(s, device); g++) {
    const uint64_t this = need_of(s, device, s->least[g]);
    if (this < need) need = this;
  }
  return need;
}

static bool all_fit_somewhere(const supernodes *s, uint32_t n_devices, psplit_i_least_memory *out) {
  for (uint32_t g = 0, d = 0; g < s->n; g++) { /* the device that was assigned last */
    uint32_t n_tried = 0;
    for (; n_tried < n_devices && need_of(s, d, s->least[g]) > memory_of(s, d); n_tried++)
      d = d + 1 < n_devices ? d + 1 : 0;
    if (n_tried < n_devices) continue;
    out->node = s->least[g].peak_node;
    out->value = s->least[g].largest_value;
    out->node_bytes = UINT64_MAX;
    for (d = 0; d < n_devices; d++)
      if (need_of(s, d, s->least[g]) < out->node_bytes)
        out->node_bytes = need_of(s, d, s->least[g]);
    return false;
  }
  return true;
}

/* The bytes of all weights that are not read by free nodes only, each counted once. */
static uint64_t total_weight_bytes(const psplit_planner *planner) {
  const psplit_i_graph *graph = planner->graph;
  uint64_t sum = 0;
  for (uint32_t v = 0; v < graph->n_values; v++)
    if (psplit_i_planner_is_constant(planner, v))
      for (uint32_t c = graph->consumer_off[v]; c < graph->consumer_off[v + 1]; c++)
        if (!(planner->node_flags[graph->consumers[c]] & PSPLIT_I_NODE_FREE)) {
          sum = psplit_i_sat_add_u64(sum, psplit_i_planner_weight_bytes(planner, v));
          break;
        }
  for (uint32_t n = 0; n < graph->n_nodes; n++)
    if (!(planner->node_flags[n] & PSPLIT_I_NODE_FREE))
      sum = psplit_i_sat_add_u64(sum, psplit_i_node_inner_bytes(graph, n));
  return sum;
}

static bool weights_fit(const supernodes *s, uint32_t n_devices) {
  const least but_weights = {.activation_bytes = s->least_activation_bytes, .n_nodes = 1};
  uint64_t room = 0;
  for (uint32_t d = 0; d < n_devices; d++) {
    const uint64_t has = memory_of(s, d), need = need_of(s, d, but_weights);
    if (has == UINT64_MAX) return true;
    room = psplit_i_sat_add_u64(room, has > need ? has - need : 0);
  }
  return total_weight_bytes(s->planner) <= room;
}

psplit_code psplit_i_least_memory_find(psplit_planner *planner, uint32_t n_devices,
                                       psplit_i_least_memory *out, psplit_diag *diag) {
  psplit_code code = PSPLIT_OK;
  supernodes s = {.planner = planner};
  uint32_t n_able = 0;
  bool any_limit = false;
  *out = (psplit_i_least_memory){.device = PSPLIT_NONE, .node = PSPLIT_NONE, .value = PSPLIT_NONE};
  for (uint32_t d = 0; d < n_devices; d++) any_limit |= memory_of(&s, d) != UINT64_MAX;
  if (!any_limit) return PSPLIT_OK;
  PSPLIT_TRY(measure(&s, diag));
  if (s.n == 0) goto out; /* constants only */
  for (uint32_t d = 0; d < n_devices; d++) {
    const uint64_t need = least_need(&s, d);
    n_able += need <= memory_of(&s, d);
    if (need <= memory_of(&s, d) || out->device != PSPLIT_NONE) continue;
    out->device = d;
    out->n_bytes = need;
  }
  const bool all_fit = all_fit_somewhere(&s, n_devices, out);
  out->too_little = n_able < planner->options.n_stages || !all_fit || !weights_fit(&s, n_devices);
out:
  psplit_i_arena_reset(&planner->scratch);
  return code;
}
