/* What layouts cost in a stage that does not hold where a run of blocks begins.
 *
 * Three things are charged, each as a net: what is no longer part of a convolution's kernel, with
 * the tensors that have to be brought back for it; what convolutions bring into blocks again; and
 * what the maker of a tensor that leaves brings back. Where a run begins at several nodes, the
 * first two are charged for each that is elsewhere, and the third also where the run was plain
 * already: then it is more than it costs. */
#include "cost_table.h"
#include "devices_inside.h"
#include "layout.h"
#include "operator.h"

/* Kernels that run besides. */
typedef struct kernels {
  uint64_t bytes; /* that they move */
  uint32_t n;
} kernels;

typedef struct price_list {
  const psplit_i_layouts *layouts;
  psplit_i_arena *arena;
  PSPLIT_VEC(uint32_t) makers;
  PSPLIT_VEC(uint32_t) ends; /* of each price's readers */
  PSPLIT_VEC(uint32_t) readers;
  PSPLIT_VEC(kernels) received;
  PSPLIT_VEC(kernels) sent;
  bool failed;
} price_list;

static const psplit_planner *planner_of(const price_list *l) { return l->layouts->planner; }

static void more(kernels *sum, uint64_t bytes) {
  sum->bytes = psplit_i_sat_add_u64(sum->bytes, bytes);
  sum->n++;
}

static uint64_t bytes_of(const price_list *l, uint32_t value) {
  return psplit_i_planner_value_bytes(planner_of(l), value, NULL);
}

/* From one layout into the other: each byte is read and written. */
static void reorder(const price_list *l, uint32_t value, kernels *sum) {
  more(sum, psplit_i_sat_mul_u64(2, bytes_of(l, value)));
}

/* Ends the price whose readers were pushed. */
static void add_price(price_list *l, uint32_t maker, kernels received, kernels sent) {
  const bool ok = psplit_i_vec_push(&l->makers, maker) &&
                  psplit_i_vec_push(&l->ends, (uint32_t)l->readers.n) &&
                  psplit_i_vec_push(&l->received, received) && psplit_i_vec_push(&l->sent, sent);
  l->failed |= !ok;
}

static void add_reader(price_list *l, uint32_t reader) {
  l->failed |= !psplit_i_vec_push(&l->readers, reader);
}

static bool is_convolving(const psplit_i_layouts *layouts, uint32_t n) {
  return layouts->blocked[n] &&
         psplit_i_node_has(&layouts->planner->graph->nodes[n], PSPLIT_I_OP_BLOCKED);
}

/* Whether somebody reads the value as it is for others, in the whole model already. */
static bool is_brought_back(const psplit_i_layouts *layouts, uint32_t value) {
  const psplit_i_graph *graph = layouts->planner->graph;
  bool any = graph->values[value].is_output;
  for (uint32_t c = graph->consumer_off[value]; c < graph->consumer_off[value + 1]; c++)
    any |= psplit_i_layouts_counts(layouts, graph->consumers[c]) &&
           !layouts->blocked[graph->consumers[c]];
  return any;
}

/* The reader that comes first, or last, of those that count; PSPLIT_NONE: there is none. */
static uint32_t reader_at(const psplit_i_layouts *layouts, uint32_t value, bool last) {
  const psplit_i_graph *graph = layouts->planner->graph;
  uint32_t found = PSPLIT_NONE;
  for (uint32_t c = graph->consumer_off[value]; c < graph->consumer_off[value + 1]; c++) {
    const uint32_t n = graph->consumers[c];
    if (!psplit_i_layouts_counts(layouts, n)) continue;
    if (found == PSPLIT_NONE || (layouts->position[n] > layouts->position[found]) == last)
      found = n;
  }
  return found;
}

static bool is_source_of(const psplit_i_layouts *layouts, uint32_t source, uint32_t n) {
  for (uint32_t s = layouts->source_begin[n]; s < layouts->source_end[n]; s++)
    if (layouts->sources.items[s] == source) return true;
  return false;
}

/* What a node that kept blocks costs where it is plain: a kernel of its own, and what convolutions
 * in front make brought back, which the first of its readers pays. */
static void price_kept(price_list *l, uint32_t n) {
  const psplit_i_layouts *layouts = l->layouts;
  const psplit_i_node *node = &planner_of(l)->graph->nodes[n];
  kernels sum = {0};
  uint64_t own = node->n_inputs > 1 ? bytes_of(l, node->outputs[0]) : 0; /* else in place */
  PSPLIT_FOR_EACH_READ(node, value) {
    if (psplit_i_planner_is_constant(planner_of(l), value)) continue;
    const uint32_t maker = planner_of(l)->graph->values[value].producer;
    own = psplit_i_sat_add_u64(own, bytes_of(l, value));
    if (is_convolving(layouts, maker) && !is_source_of(layouts, maker, n) &&
        reader_at(layouts, value, false) == n && !is_brought_back(layouts, value))
      reorder(l, value, &sum);
  }
  if (layouts->inside[n]) more(&sum, own);
  if (!sum.n) return;
  for (uint32_t s = layouts->source_begin[n]; s < layouts->source_end[n]; s++) {
    add_reader(l, n);
    add_price(l, layouts->sources.items[s], sum, (kernels){0});
  }
}

/* Convolutions that read the value elsewhere bring it into blocks, once in a stage. */
static void price_received(price_list *l, uint32_t maker, uint32_t value) {
  const psplit_i_layouts *layouts = l->layouts;
  const psplit_i_graph *graph = planner_of(l)->graph;
  const bool kept = !is_convolving(layouts, maker);
  const uint32_t n = kept ? layouts->source_end[maker] - layouts->source_begin[maker] : 1;
  kernels sum = {0};
  reorder(l, value, &sum);
  for (uint32_t s = 0; s < n; s++) {
    const size_t first = l->readers.n;
    for (uint32_t c = graph->consumer_off[value]; c < graph->consumer_off[value + 1]; c++)
      if (is_convolving(layouts, graph->consumers[c])) add_reader(l, graph->consumers[c]);
    if (l->readers.n > first)
      add_price(l, kept ? layouts->sources.items[layouts->source_begin[maker] + s] : maker, sum,
                (kernels){0});
  }
}

/* The maker brings back what leaves its stage, once: where the last reader joins what others make
 * of it, none is behind that one. */
static void price_sent(price_list *l, uint32_t maker, uint32_t value) {
  const psplit_i_layouts *layouts = l->layouts;
  const psplit_i_graph *graph = planner_of(l)->graph;
  const uint32_t last = reader_at(layouts, value, true);
  kernels sum = {0};
  if (last == PSPLIT_NONE || is_brought_back(layouts, value)) return;
  reorder(l, value, &sum);
  const bool joins = !is_convolving(layouts, last);
  for (uint32_t c = graph->consumer_off[value]; c < graph->consumer_off[value + 1]; c++)
    if (joins ? graph->consumers[c] == last : psplit_i_layouts_counts(layouts, graph->consumers[c]))
      add_reader(l, graph->consumers[c]);
  add_price(l, maker, (kernels){0}, sum);
}

static void price_all(price_list *l) {
  const psplit_i_graph *graph = planner_of(l)->graph;
  for (uint32_t i = 0; i < graph->n_nodes && !l->failed; i++) {
    const uint32_t n = graph->topo[i];
    if (!l->layouts->blocked[n]) continue;
    const uint32_t value = graph->nodes[n].outputs[0];
    if (!is_convolving(l->layouts, n)) price_kept(l, n);
    price_received(l, n, value);
    price_sent(l, n, value);
  }
}

/* Where costs were measured without blocked layouts, stages run without them too. */
static bool has_blocks(const psplit_planner *planner, uint32_t device_class) {
  for (size_t c = 0; c < planner->options.n_costs; c++)
    if (planner->options.costs[c]->unblocked) return false;
  return planner->devices->devices[planner->class_device[device_class]].model.keeps_copies;
}

static int64_t time_of(const psplit_planner *planner, uint32_t device_class, kernels k) {
  const psplit_i_device_model *model =
    &planner->devices->devices[planner->class_device[device_class]].model;
  if (!k.n || !has_blocks(planner, device_class)) return 0;
  const double move_ns = 1e9 * planner->move_factor * (double)k.bytes / model->memory_bandwidth;
  return psplit_i_sat_add_i64(psplit_i_sat_mul_i64(model->overhead_ns, k.n),
                              psplit_i_whole_ns(move_ns));
}

/* The lists into arrays that outlive them. */
static psplit_code hand_out(const price_list *l, psplit_diag *diag, psplit_i_layout_prices *out) {
  const psplit_planner *planner = planner_of(l);
  const size_t n = l->makers.n, n_classes = planner->n_classes;
  out->maker = PSPLIT_NEW(l->arena, uint32_t, n);
  out->off = PSPLIT_NEW(l->arena, uint32_t, n + 1);
  out->reader = PSPLIT_NEW(l->arena, uint32_t, l->readers.n);
  out->recv_ns = psplit_i_arena_zeroed(l->arena, n, n_classes * sizeof(int64_t));
  out->send_ns = psplit_i_arena_zeroed(l->arena, n, n_classes * sizeof(int64_t));
  if (l->arena->failed) return psplit_i_nomem(diag);
  for (size_t p = 0; p < n; p++) {
    out->maker[p] = l->makers.items[p];
    out->off[p + 1] = l->ends.items[p];
    for (uint32_t c = 0; c < n_classes; c++) {
      out->recv_ns[p * n_classes + c] = time_of(planner, c, l->received.items[p]);
      out->send_ns[p * n_classes + c] = time_of(planner, c, l->sent.items[p]);
    }
  }
  for (size_t r = 0; r < l->readers.n; r++) out->reader[r] = l->readers.items[r];
  out->n = (uint32_t)n;
  return PSPLIT_OK;
}

psplit_code psplit_i_layout_prices_find(const psplit_planner *planner, psplit_i_arena *arena,
                                        psplit_diag *diag, psplit_i_layout_prices *out) {
  psplit_i_layouts layouts;
  bool any = false;
  *out = (psplit_i_layout_prices){0};
  for (uint32_t c = 0; c < planner->n_classes; c++) any |= has_blocks(planner, c);
  if (!any || planner->options.n_stages < 2) return PSPLIT_OK;
  psplit_i_arena own; /* of the layouts, which go before the prices do */
  psplit_i_arena_init(&own, 0);
  psplit_code code = psplit_i_layouts_find(planner, &own, diag, &layouts);
  price_list l = {.layouts = &layouts, .arena = arena};
  if (code == PSPLIT_OK) price_all(&l);
  if (code == PSPLIT_OK) code = l.failed ? psplit_i_nomem(diag) : hand_out(&l, diag, out);
  psplit_i_vec_fini(&l.makers);
  psplit_i_vec_fini(&l.ends);
  psplit_i_vec_fini(&l.readers);
  psplit_i_vec_fini(&l.received);
  psplit_i_vec_fini(&l.sent);
  psplit_i_layouts_fini(&layouts);
  psplit_i_arena_fini(&own);
  return code;
}
