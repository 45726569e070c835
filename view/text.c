/* The text format: `kind id title key=value ...`, one item a line, in a fixed order. What is not
 * known is "-"; a size that rests on an assumption has '~' before it. */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "view.h"

static void put_id(psplit_i_text *out, const char *key, uint32_t id) {
  if (id == PSPLIT_NONE)
    psplit_i_text_addf(out, " %s=-", key);
  else
    psplit_i_text_addf(out, " %s=%" PRIu32, key, id);
}

static void put_u64(psplit_i_text *out, const char *key, bool known, uint64_t number) {
  if (known)
    psplit_i_text_addf(out, " %s=%" PRIu64, key, number);
  else
    psplit_i_text_addf(out, " %s=-", key);
}

static void put_ns(psplit_i_text *out, const char *key, bool known, int64_t ns) {
  if (known)
    psplit_i_text_addf(out, " %s=%" PRId64, key, ns);
  else
    psplit_i_text_addf(out, " %s=-", key);
}

/* Bytes of tensors: unknown, assumed or sure. */
static void put_bytes(psplit_i_text *out, const psplit_snapshot *s, const char *key, bool sure,
                      uint64_t bytes) {
  if (!(s->facts & PSPLIT_SNAPSHOT_COSTS))
    put_u64(out, key, false, 0);
  else
    psplit_i_text_addf(out, " %s=%s%" PRIu64, key, sure ? "" : "~", bytes);
}

static void put_values(psplit_i_text *out, const psplit_snapshot *s, const char *key,
                       const uint32_t *values, uint32_t n) {
  psplit_i_text_addf(out, " %s=", key);
  for (uint32_t i = 0; i < n; i++) {
    if (i) psplit_i_text_puts(out, ",");
    psplit_i_view_word(out, values[i] == PSPLIT_NONE ? "" : s->values[values[i]].name);
  }
  if (!n) psplit_i_text_puts(out, "-");
}

/* "float32[batch,64]": a word, without the spaces. */
static void put_type(psplit_i_text *out, const char *type) {
  if (!type) psplit_i_text_puts(out, "-");
  while (type && *type) {
    const size_t n = strcspn(type, ", ");
    psplit_i_view_escaped(out, type, n);
    type += n;
    if (*type == ',') psplit_i_text_puts(out, ",");
    if (*type) type++;
  }
}

static void put_node_name(psplit_i_text *out, const psplit_snapshot *s, uint32_t node) {
  if (*s->nodes[node].name)
    psplit_i_view_word(out, s->nodes[node].name);
  else
    psplit_i_text_addf(out, "#%" PRIu32, node);
}

static void put_operator(psplit_i_text *out, const psplit_snapshot *s, uint32_t id) {
  const psplit_snapshot_node *node = &s->nodes[id];
  const bool costs = s->facts & PSPLIT_SNAPSHOT_COSTS;
  psplit_i_text_addf(out, "operator %" PRIu32 " ", id);
  put_node_name(out, s, id);
  psplit_i_text_puts(out, " op=");
  if (*node->domain) {
    psplit_i_view_word(out, node->domain);
    psplit_i_text_puts(out, "::");
  }
  psplit_i_view_word(out, node->op_type);
  put_id(out, "supernode", node->group);
  put_id(out, "stage", node->stage);
  psplit_i_text_addf(out, " class=%s", costs ? node->class_name : "-");
  put_ns(out, "cost_ns", costs, node->cost_ns);
  put_u64(out, "flops", costs && node->work.known, node->work.flops);
  put_u64(out, "bytes_read", costs && node->work.known, node->work.bytes_read);
  put_u64(out, "bytes_written", costs && node->work.known, node->work.bytes_written);
  psplit_i_text_puts(out, " flags=");
  if (!(s->facts & PSPLIT_SNAPSHOT_LIVE))
    psplit_i_text_puts(out, "-");
  else if (node->flags & PSPLIT_SNAPSHOT_NODE_FREE)
    psplit_i_text_puts(out, "constant");
  else if (node->flags & PSPLIT_SNAPSHOT_NODE_DEAD)
    psplit_i_text_puts(out, "dead");
  else if (node->flags & PSPLIT_SNAPSHOT_NODE_REPEATABLE)
    psplit_i_text_puts(out, "repeatable");
  else
    psplit_i_text_puts(out, "unique");
  if (node->flags & PSPLIT_SNAPSHOT_NODE_DATA) psplit_i_text_puts(out, ",data-dependent");
  put_values(out, s, "inputs", node->inputs, node->n_inputs);
  if (node->n_captures) put_values(out, s, "captures", node->captures, node->n_captures);
  put_values(out, s, "outputs", node->outputs, node->n_outputs);
  psplit_i_text_puts(out, " types=");
  for (uint32_t o = 0; o < node->n_outputs; o++) {
    const uint32_t v = node->outputs[o];
    if (o) psplit_i_text_puts(out, ";");
    put_type(out, v == PSPLIT_NONE ? NULL : s->values[v].type);
  }
  if (!node->n_outputs) psplit_i_text_puts(out, "-");
  psplit_i_text_puts(out, "\n");
}

static void put_supernode(psplit_i_text *out, const psplit_snapshot *s, uint32_t id) {
  const psplit_snapshot_group *group = &s->groups[id];
  psplit_i_text_addf(out, "supernode %" PRIu32 " ", id);
  psplit_i_view_word(out, group->title);
  put_id(out, "stage", group->stage);
  psplit_i_text_addf(out, " operators=%" PRIu32, group->n_nodes);
  put_ns(out, "cost_ns", s->facts & PSPLIT_SNAPSHOT_COSTS, group->cost_ns);
  put_bytes(out, s, "weight_bytes", true, group->weight_bytes);
  put_bytes(out, s, "bytes_in", group->bytes_known, group->bytes_in);
  put_bytes(out, s, "bytes_out", group->bytes_known, group->bytes_out);
  psplit_i_text_puts(out, " members=");
  for (uint32_t i = 0; i < group->n_nodes; i++) {
    if (i) psplit_i_text_puts(out, ",");
    put_node_name(out, s, group->nodes[i]);
  }
  psplit_i_text_puts(out, "\n");
}

static void put_edge(psplit_i_text *out, const psplit_snapshot *s,
                     const psplit_snapshot_edge *edge) {
  const psplit_snapshot_value *value = &s->values[edge->value];
  psplit_i_text_addf(out, "edge %" PRIu32 " %" PRIu32 " tensor=", edge->from, edge->to);
  psplit_i_view_word(out, value->name);
  put_bytes(out, s, "bytes", value->bytes_known, value->bytes);
  psplit_i_text_puts(out, " type=");
  put_type(out, value->type);
  psplit_i_text_puts(out, "\n");
}

/* Totals of all blocks. */
static void put_repeat(psplit_i_text *out, const psplit_snapshot *s, uint32_t id) {
  const psplit_snapshot_repeat *repeat = &s->repeats[id];
  const uint32_t n = repeat->n_blocks * repeat->n_groups;
  int64_t cost_ns = 0;
  uint64_t weight_bytes = 0;
  for (uint32_t g = repeat->first; g < repeat->first + n; g++) {
    cost_ns = psplit_i_sat_add_i64(cost_ns, s->groups[g].cost_ns);
    weight_bytes = psplit_i_sat_add_u64(weight_bytes, s->groups[g].weight_bytes);
  }
  psplit_i_text_addf(out, "repeat %" PRIu32 " ", id);
  psplit_i_view_word(out, repeat->title);
  psplit_i_text_addf(out,
                     " blocks=%" PRIu32 " supernodes=%" PRIu32 " first=%" PRIu32 " last=%" PRIu32,
                     repeat->n_blocks, repeat->n_groups, repeat->first, repeat->first + n - 1);
  put_ns(out, "cost_ns", s->facts & PSPLIT_SNAPSHOT_COSTS, cost_ns);
  put_bytes(out, s, "weight_bytes", true, weight_bytes);
  psplit_i_text_puts(out, "\n");
}

/* The text comes last and as it is, but for what would break the line. */
static void put_note(psplit_i_text *out, const psplit_snapshot *s,
                     const psplit_snapshot_note *note) {
  psplit_i_text_puts(out, "note ");
  psplit_i_view_word(out, note->pass);
  put_id(out, "supernode", note->node == PSPLIT_NONE ? PSPLIT_NONE : s->nodes[note->node].group);
  psplit_i_text_puts(out, " operator=");
  if (note->node == PSPLIT_NONE)
    psplit_i_text_puts(out, "-");
  else
    put_node_name(out, s, note->node);
  psplit_i_text_puts(out, " text=");
  psplit_i_view_line(out, note->text);
  psplit_i_text_puts(out, "\n");
}

/* Supernodes and the edges between them; with `fold`, of repeated blocks the first alone. */
static bool put_supernodes(psplit_i_text *out, const psplit_snapshot *s, bool fold) {
  bool *hidden = calloc((size_t)s->n_groups + 1, sizeof *hidden);
  if (!hidden) return false;
  for (uint32_t r = 0; fold && r < s->n_repeats; r++) {
    const psplit_snapshot_repeat *repeat = &s->repeats[r];
    const uint32_t n = repeat->n_blocks * repeat->n_groups;
    for (uint32_t i = repeat->n_groups; i < n; i++) hidden[repeat->first + i] = true;
  }
  for (uint32_t r = 0; r < s->n_repeats; r++) put_repeat(out, s, r);
  for (uint32_t g = 0; g < s->n_groups; g++)
    if (!hidden[g]) put_supernode(out, s, g);
  for (uint32_t e = 0; e < s->n_edges; e++)
    if (!hidden[s->edges[e].from] && !hidden[s->edges[e].to]) put_edge(out, s, &s->edges[e]);
  free(hidden);
  return true;
}

static void put_pattern(psplit_i_text *out, const psplit_snapshot_pattern *pattern) {
  psplit_i_text_puts(out, "pattern ");
  psplit_i_view_word(out, pattern->name);
  psplit_i_text_addf(out, " matches=%" PRIu32 " operators=%" PRIu32 "\n", pattern->n_matches,
                     pattern->n_nodes);
}

static void put_stage(psplit_i_text *out, const psplit_snapshot *s, uint32_t id) {
  const psplit_plan_stage *stage = &s->plan->stages[id];
  psplit_i_text_addf(out, "stage %" PRIu32 " ", id);
  psplit_i_view_word(out, stage->device);
  psplit_i_text_addf(out,
                     " operators=%" PRIu32 " duplicated=%" PRIu32 " supernodes=%" PRIu32
                     " compute_ns=%" PRId64 " recv_ns=%" PRId64 " send_ns=%" PRId64
                     " load_ns=%" PRId64 " weight_bytes=%" PRIu64 " activation_bytes=%" PRIu64
                     " buffer_bytes=%" PRIu64 " workspace_bytes=%" PRIu64 " memory_bytes=%" PRIu64,
                     stage->n_nodes, stage->n_duplicated, stage->n_supernodes, stage->compute_ns,
                     stage->recv_ns, stage->send_ns, stage->load_ns, stage->weight_bytes,
                     stage->peak_activation_bytes, stage->buffer_bytes, stage->workspace_bytes,
                     stage->memory_bytes);
  if (stage->state_bytes) psplit_i_text_addf(out, " state_bytes=%" PRIu64, stage->state_bytes);
  if (s->plan->trains)
    psplit_i_text_addf(out, " forward_ns=%" PRId64 " backward_ns=%" PRId64 " stash_bytes=%" PRIu64,
                       stage->compute_ns - stage->backward_ns, stage->backward_ns,
                       stage->stash_bytes);
  if (stage->layout_ns) psplit_i_text_addf(out, " layout_ns=%" PRId64, stage->layout_ns);
  const uint64_t limit = s->memory_limit_bytes[id];
  put_u64(out, "memory_limit_bytes", limit != UINT64_MAX, limit);
  psplit_i_text_puts(out, "\n");
}

static void put_transfer(psplit_i_text *out, const psplit_snapshot *s, uint32_t tag) {
  const psplit_plan_transfer *transfer = &s->plan->transfers[tag];
  psplit_i_text_addf(out, "transfer %" PRIu32 " ", tag);
  psplit_i_view_word(out, transfer->tensor);
  psplit_i_text_addf(out, " from=%" PRIu32 " to=%" PRIu32, transfer->from, transfer->to);
  put_bytes(out, s, "bytes", transfer->bytes_known, transfer->bytes);
  psplit_i_text_puts(out, "\n");
}

static void put_header(psplit_i_text *out, const psplit_snapshot *s) {
  uint32_t n_constants = 0;
  for (uint32_t n = 0; n < s->n_nodes; n++)
    n_constants += (s->nodes[n].flags & PSPLIT_SNAPSHOT_NODE_FREE) != 0;
  psplit_i_text_addf(out, "model operators=%" PRIu32, s->n_nodes);
  put_u64(out, "constants", s->facts & PSPLIT_SNAPSHOT_LIVE, n_constants);
  psplit_i_text_addf(out, " supernodes=%" PRIu32, s->n_groups);
  put_u64(out, "stages", s->plan != NULL, s->n_stages);
  psplit_i_text_addf(out, " after=%s\n", s->pass ? s->pass : "-");
}

static void put_state(psplit_i_text *out, const psplit_snapshot *s, uint32_t id) {
  const psplit_snapshot_state *state = &s->states[id];
  const psplit_snapshot_value *input = &s->values[state->input];
  psplit_i_text_addf(out, "state %" PRIu32 " ", id);
  psplit_i_view_word(out, s->values[state->output].name);
  psplit_i_text_puts(out, " input=");
  psplit_i_view_word(out, input->name);
  put_id(out, "writer", state->writer);
  put_id(out, "reader", state->reader);
  put_bytes(out, s, "bytes", input->bytes_known, input->bytes);
  psplit_i_text_addf(out, " buffers=%d by=%s\n", state->shared_buffer ? 1 : 2,
                     state->named ? "option" : "name");
}

static void put_plan(psplit_i_text *out, const psplit_plan *plan) {
  psplit_i_text_addf(out, "plan %s%s solver=%s bound=", plan->objective,
                     plan->overlap ? " overlap" : "", plan->solver);
  psplit_i_view_word(out, plan->bound);
  psplit_i_text_addf(out, " bottleneck_ns=%" PRId64 " latency_ns=%" PRId64, plan->bottleneck_ns,
                     plan->latency_ns);
  if (psplit_plan_is_fill_drain(plan))
    psplit_i_text_addf(out, " fill_drain_ns=%" PRId64, plan->fill_drain_ns);
  psplit_i_text_addf(out, " lower_bound_ns=%" PRId64 " proved_optimal=%s device_order=%s%s\n",
                     plan->lower_bound_ns, plan->proved_optimal ? "yes" : "no", plan->device_order,
                     plan->latency_per_pair ? " message_latency=per_pair" : "");
  if (plan->bound_scope) {
    psplit_i_text_puts(out, plan->proof_scope ? "proved_optimal " : "lower_bound ");
    psplit_i_view_line(out, plan->bound_scope);
    psplit_i_text_puts(out, "\n");
  }
  if (plan->best_ns)
    psplit_i_text_addf(
      out, "given_up best_bottleneck_ns=%" PRId64 " best_transfers=%" PRIu32 " best_proved=%s\n",
      plan->best_ns, plan->best_transfers, plan->best_proved ? "yes" : "no");
  if (!plan->headline) return;
  psplit_i_text_puts(out, "headline ");
  psplit_i_view_line(out, plan->headline);
  psplit_i_text_puts(out, "\n");
}

void psplit_i_view_text(const psplit_snapshot *s, const psplit_view_options *options,
                        psplit_i_text *out) {
  put_header(out, s);
  for (uint32_t n = 0; n < s->n_notes; n++) put_note(out, s, &s->notes[n]);
  for (uint32_t i = 0; i < s->n_states; i++) put_state(out, s, i);
  switch (options->level) {
    case PSPLIT_VIEW_OPERATORS:
      for (uint32_t i = 0; i < s->n_nodes; i++) put_operator(out, s, s->topo[i]);
      break;
    case PSPLIT_VIEW_SUPERNODES:
      if (!put_supernodes(out, s, options->fold)) out->failed = true;
      break;
    case PSPLIT_VIEW_STAGES:
      put_plan(out, s->plan);
      for (uint32_t i = 0; i < s->n_stages; i++) put_stage(out, s, i);
      for (uint32_t t = 0; t < s->plan->n_transfers; t++) put_transfer(out, s, t);
      break;
    case PSPLIT_VIEW_PATTERNS:
      for (uint32_t p = 0; p < s->n_patterns; p++) put_pattern(out, &s->patterns[p]);
      break;
  }
}
