/* The DOT format: boxes by stage, arrows with bytes. */
#include <inttypes.h>
#include <stdio.h>

#include "view.h"

/* A box of two lines, the first a name. */
static void put_box(psplit_i_text *out, char kind, uint32_t id, const char *name,
                    const char *detail) {
  psplit_i_text label = {0};
  psplit_i_view_dot_string(&label, name);
  if (label.failed)
    out->failed = true;
  else
    label.bytes[label.n - 1] = '\0'; /* without the closing quote */
  psplit_i_text_addf(out, "    %c%" PRIu32 " [label=%s\\n", kind, id,
                     label.bytes ? label.bytes : "\"");
  psplit_i_text second = {0};
  psplit_i_view_dot_string(&second, detail);
  if (second.failed) out->failed = true;
  psplit_i_text_puts(out, second.bytes ? second.bytes + 1 : "\"");
  psplit_i_text_puts(out, "];\n");
  psplit_i_text_fini(&second);
  psplit_i_text_fini(&label);
}

static void put_arrow(psplit_i_text *out, const psplit_snapshot *s, char kind, uint32_t from,
                      uint32_t to, uint32_t v) {
  const psplit_snapshot_value *value = &s->values[v];
  char bytes[PSPLIT_I_UNIT_BYTES] = "";
  if (s->facts & PSPLIT_SNAPSHOT_COSTS) psplit_i_in_bytes(value->bytes, bytes);
  psplit_i_text_addf(out, "  %c%" PRIu32 " -> %c%" PRIu32 " [tooltip=", kind, from, kind, to);
  psplit_i_view_dot_string(out, value->name);
  psplit_i_text_addf(out, ", label=\"%s\"];\n", bytes);
}

/* Boxes of one stage, or all where there are no stages (PSPLIT_NONE). */
static void put_groups(psplit_i_text *out, const psplit_snapshot *s, uint32_t stage) {
  for (uint32_t g = 0; g < s->n_groups; g++) {
    const psplit_snapshot_group *group = &s->groups[g];
    char time[PSPLIT_I_UNIT_BYTES] = "", detail[80];
    if (group->stage != stage) continue;
    if (s->facts & PSPLIT_SNAPSHOT_COSTS) psplit_i_in_seconds(group->cost_ns, time);
    snprintf(detail, sizeof detail, "%" PRIu32 " operator%s%s%s", group->n_nodes,
             group->n_nodes == 1 ? "" : "s", *time ? ", " : "", time);
    put_box(out, 'g', g, group->title, detail);
  }
}

static void put_nodes(psplit_i_text *out, const psplit_snapshot *s, uint32_t stage) {
  for (uint32_t i = 0; i < s->n_nodes; i++) {
    const uint32_t n = s->topo[i];
    const psplit_snapshot_node *node = &s->nodes[n];
    if (node->stage == stage && !(node->flags & PSPLIT_SNAPSHOT_NODE_FREE))
      put_box(out, 'n', n, node->op_type, node->name);
  }
}

static void put_by_stage(psplit_i_text *out, const psplit_snapshot *s,
                         void (*put)(psplit_i_text *, const psplit_snapshot *, uint32_t)) {
  if (!s->plan) {
    put(out, s, PSPLIT_NONE);
    return;
  }
  for (uint32_t i = 0; i < s->n_stages; i++) {
    psplit_i_text_addf(out,
                       "  subgraph cluster_%" PRIu32 " {\n    label=\"stage %" PRIu32
                       "\"; colorscheme=set312; color=%" PRIu32 "; style=filled;\n",
                       i, i, i % 12 + 1);
    put(out, s, i);
    psplit_i_text_puts(out, "  }\n");
  }
}

static void put_node_arrows(psplit_i_text *out, const psplit_snapshot *s) {
  for (uint32_t i = 0; i < s->n_nodes; i++) {
    const uint32_t n = s->topo[i];
    const psplit_snapshot_node *node = &s->nodes[n];
    if (node->flags & PSPLIT_SNAPSHOT_NODE_FREE) continue;
    PSPLIT_I_EACH_READ(node, v) {
      const psplit_snapshot_value *value = &s->values[v];
      if (value->producer != PSPLIT_NONE && !value->is_constant)
        put_arrow(out, s, 'n', value->producer, n, v);
    }
  }
}

static void put_stages(psplit_i_text *out, const psplit_snapshot *s) {
  for (uint32_t i = 0; i < s->n_stages; i++) {
    const psplit_plan_stage *stage = &s->plan->stages[i];
    char time[PSPLIT_I_UNIT_BYTES], detail[80], name[160];
    psplit_i_in_seconds(stage->load_ns, time);
    snprintf(detail, sizeof detail, "%" PRIu32 " operators, %s", stage->n_nodes, time);
    snprintf(name, sizeof name, "stage %" PRIu32 ": %.100s", i, stage->device);
    put_box(out, 's', i, name, detail);
  }
  for (uint32_t t = 0; t < s->plan->n_transfers; t++) {
    const psplit_plan_transfer *transfer = &s->plan->transfers[t];
    put_arrow(out, s, 's', transfer->from, transfer->to, transfer->value);
  }
}

void psplit_i_view_dot(const psplit_snapshot *s, psplit_view_level level, psplit_i_text *out) {
  psplit_i_text_puts(out,
                     "digraph model {\n"
                     "  node [shape=box, style=\"rounded,filled\", fillcolor=white, "
                     "fontname=\"sans-serif\"];\n"
                     "  edge [fontname=\"sans-serif\", fontsize=9];\n");
  switch (level) {
    case PSPLIT_VIEW_OPERATORS:
      put_by_stage(out, s, put_nodes);
      put_node_arrows(out, s);
      break;
    case PSPLIT_VIEW_SUPERNODES:
      put_by_stage(out, s, put_groups);
      for (uint32_t e = 0; e < s->n_edges; e++)
        put_arrow(out, s, 'g', s->edges[e].from, s->edges[e].to, s->edges[e].value);
      break;
    case PSPLIT_VIEW_STAGES: put_stages(out, s); break;
    case PSPLIT_VIEW_PATTERNS: break; /* refused by psplit_view */
  }
  psplit_i_text_puts(out, "}\n");
}
