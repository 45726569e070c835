/* Assigns free nodes, which have no cost and impose no order, to every stage that reads their
 * results. */
#include "builder.h"

/* The stage of a free node without readers: that of the readers of the state it writes, as in a
 * decoder that outputs a constant for an unchanged cache. Otherwise the first stage. */
static uint32_t home_of_unread(const psplit_i_builder *b, uint32_t node) {
  const psplit_planner *planner = b->planner;
  const psplit_i_graph *graph = planner->graph;
  for (uint32_t o = 0; o < graph->nodes[node].n_outputs; o++) {
    const uint32_t value = graph->nodes[node].outputs[o];
    const uint32_t pair = value == PSPLIT_NONE ? 0 : planner->states.of[value];
    if (!pair) continue;
    const uint32_t input = planner->states.items[pair - 1].input;
    for (uint32_t c = graph->consumer_off[input]; c < graph->consumer_off[input + 1]; c++)
      if (b->group[graph->consumers[c]] != PSPLIT_NONE) return planner->stage[graph->consumers[c]];
  }
  return 0;
}

/* The stages that read free nodes, concatenated. */
typedef struct free_nodes {
  psplit_i_builder *b;
  PSPLIT_VEC(uint32_t) stages;
  uint32_t *first, *count; /* [n_nodes] a node's range in `stages` */
  uint32_t *met;           /* [n_stages] 1 + the last node for which the stage was seen */
} free_nodes;

static psplit_code note_stage(free_nodes *f, uint32_t node, uint32_t stage) {
  if (f->met[stage] == node + 1) return PSPLIT_OK;
  f->met[stage] = node + 1;
  return psplit_i_vec_push(&f->stages, stage) ? PSPLIT_OK : psplit_i_nomem(f->b->diag);
}

/* Adds the stages of a reader. A free reader has stages by then. */
static psplit_code note_reader(free_nodes *f, uint32_t node, uint32_t reader) {
  psplit_code code = PSPLIT_OK;
  if (f->b->group[reader] != PSPLIT_NONE) return note_stage(f, node, f->b->planner->stage[reader]);
  for (uint32_t k = 0; k < f->count[reader]; k++)
    PSPLIT_TRY(note_stage(f, node, f->stages.items[f->first[reader] + k]));
out:
  return code;
}

static psplit_code note_readers(free_nodes *f, uint32_t node) {
  const psplit_i_graph *graph = f->b->planner->graph;
  psplit_code code = PSPLIT_OK;
  f->first[node] = (uint32_t)f->stages.n;
  for (uint32_t o = 0; o < graph->nodes[node].n_outputs; o++) {
    const uint32_t value = graph->nodes[node].outputs[o];
    if (value == PSPLIT_NONE) continue;
    for (uint32_t c = graph->consumer_off[value]; c < graph->consumer_off[value + 1]; c++)
      PSPLIT_TRY(note_reader(f, node, graph->consumers[c]));
  }
  if (f->stages.n == f->first[node]) PSPLIT_TRY(note_stage(f, node, home_of_unread(f->b, node)));
  f->count[node] = (uint32_t)f->stages.n - f->first[node];
out:
  return code;
}

/* The first of its stages owns the node, and the others hold copies. */
static psplit_code place_node(free_nodes *f, uint32_t node) {
  psplit_planner *planner = f->b->planner;
  const uint32_t *stages = &f->stages.items[f->first[node]];
  uint32_t owner = UINT32_MAX;
  for (uint32_t k = 0; k < f->count[node]; k++)
    if (stages[k] < owner) owner = stages[k];
  planner->stage[node] = owner;
  for (uint32_t k = 0; k < f->count[node]; k++)
    if (stages[k] != owner &&
        !psplit_i_vec_push(&planner->copies, ((psplit_plan_copy){node, stages[k]})))
      return psplit_i_nomem(f->b->diag);
  return PSPLIT_OK;
}

/* In reverse topological order, so that free readers have stages before the free nodes they
 * read. */
psplit_code psplit_i_builder_place_free(psplit_i_builder *b) {
  const psplit_i_graph *graph = b->planner->graph;
  psplit_code code = PSPLIT_OK;
  free_nodes f = {
    .b = b,
    .first = psplit_i_arena_zeroed(b->arena, graph->n_nodes, sizeof *f.first),
    .count = psplit_i_arena_zeroed(b->arena, graph->n_nodes, sizeof *f.count),
    .met = psplit_i_arena_zeroed(b->arena, b->planner->options.n_stages, sizeof *f.met)};
  if (b->arena->failed) return psplit_i_nomem(b->diag);
  for (uint32_t i = graph->n_nodes; i-- > 0;) {
    const uint32_t n = graph->topo[i];
    if (b->group[n] != PSPLIT_NONE) continue;
    PSPLIT_TRY(note_readers(&f, n));
    PSPLIT_TRY(place_node(&f, n));
  }
  psplit_i_copies_sort(b->planner);
out:
  psplit_i_vec_fini(&f.stages);
  return code;
}
