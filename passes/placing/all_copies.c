#include "all_copies.h"

#include <string.h>

#include "builder.h"
#include "cancel.h"
#include "copies.h"
#include "copying.h"
#include "devices_inside.h"
#include "plan_budget.h"

/* The nodes that are assigned to stages, in topological order. */
typedef struct few_nodes {
  psplit_i_builder b;
  psplit_i_copying p;
  psplit_device_link link;
  double share; /* of the planner's time limit, for each run */
  uint32_t node[PSPLIT_I_COPYING_MOST], group[PSPLIT_I_COPYING_MOST], pin[PSPLIT_I_COPYING_MOST];
  uint32_t *at; /* [n_nodes] index in `node`, or PSPLIT_NONE */
  int64_t ns[PSPLIT_I_COPYING_MOST * PSPLIT_I_COPYING_STAGES];
  psplit_i_copying_net net[PSPLIT_I_COPYING_MOST];
} few_nodes;

bool psplit_i_all_copies_apply(const psplit_planner *planner) {
  const psplit_planner_options *options = &planner->options;
  uint32_t n_placed = 0;
  for (uint32_t n = 0; n < planner->graph->n_nodes && n_placed <= PSPLIT_I_COPYING_MOST; n++)
    n_placed += !(planner->node_flags[n] & PSPLIT_I_NODE_FREE);
  if (n_placed > PSPLIT_I_COPYING_MOST) return false;
  if (planner->order_chosen && planner->n_candidates > options->n_stages) return false;
  return options->objective == PSPLIT_THROUGHPUT && !options->training && !planner->segmented &&
         !planner->n_replicas && options->tied_weights != PSPLIT_TIED_TOGETHER &&
         options->n_stages > 1 && options->n_stages <= PSPLIT_I_COPYING_STAGES &&
         (!planner->next_hop || planner->passes_on) &&
         (planner->n_classes == 1 || !(planner->order_is_free || planner->order_chosen));
}

static bool has(uint64_t bits, uint32_t n) { return bits >> n & 1; }

static void number_nodes(few_nodes *f) {
  const psplit_planner *planner = f->b.planner;
  const psplit_i_graph *graph = planner->graph;
  f->p.n_stages = planner->options.n_stages;
  for (uint32_t i = 0; i < graph->n_nodes; i++) {
    const uint32_t n = graph->topo[i];
    f->at[n] = PSPLIT_NONE;
    if (f->b.group[n] == PSPLIT_NONE) continue;
    f->at[n] = f->p.n_nodes;
    f->node[f->p.n_nodes++] = n;
  }
}

/* Merges the groups of a and b. */
static void join(few_nodes *f, uint32_t a, uint32_t b) {
  const uint32_t from = f->group[b], to = f->group[a];
  for (uint32_t i = 0; i < f->p.n_nodes; i++)
    if (f->group[i] == from) f->group[i] = to;
}

static void describe_node(few_nodes *f, uint32_t i) {
  const psplit_planner *planner = f->b.planner;
  const psplit_i_graph *graph = planner->graph;
  const uint32_t n = f->node[i];
  const psplit_i_node *node = &graph->nodes[n];
  const uint64_t bit = UINT64_C(1) << i;
  f->group[i] = f->b.group[n];
  f->pin[i] = planner->pin[n];
  if (psplit_i_node_runs(planner->node_flags[n])) f->p.live |= bit;
  if (psplit_i_may_be_copied(planner, n)) f->p.copyable |= bit;
  for (uint32_t o = 0; o < node->n_outputs; o++)
    if (node->outputs[o] != PSPLIT_NONE && graph->values[node->outputs[o]].is_output)
      f->p.outputs |= bit;
  for (uint32_t s = 0; s < f->p.n_stages; s++)
    f->ns[s * f->p.n_nodes + i] =
      psplit_i_planner_refuses(planner, s, n)
        ? PSPLIT_TIME_FORBIDDEN
        : planner->node_ns[(size_t)planner->device_class[s] * graph->n_nodes + n];
}

static void describe_nodes(few_nodes *f) {
  const psplit_planner *planner = f->b.planner;
  for (uint32_t i = 0; i < f->p.n_nodes; i++) describe_node(f, i);
  for (uint32_t i = 0; i < f->p.n_nodes; i++)
    for (uint32_t k = 0; k < i; k++) {
      const uint32_t a = f->node[k], b = f->node[i];
      if ((planner->together[a] != PSPLIT_NONE && planner->together[a] == planner->together[b]) ||
          (planner->state_class[a] != PSPLIT_NONE &&
           planner->state_class[a] == planner->state_class[b]))
        join(f, k, i);
    }
}

/* Returns false if there are too many nets. */
static bool add_net(few_nodes *f, uint32_t maker, const uint32_t *reader, uint32_t n,
                    psplit_i_copying_net net) {
  if (f->at[maker] == PSPLIT_NONE) return true;
  net.producer = f->at[maker];
  for (uint32_t r = 0; r < n; r++)
    if (f->at[reader[r]] != PSPLIT_NONE) net.readers |= UINT64_C(1) << f->at[reader[r]];
  if (!net.readers) return true;
  if (f->p.n_nets == PSPLIT_I_COPYING_MOST) return false;
  f->net[f->p.n_nets++] = net;
  return true;
}

static bool add_tensors(few_nodes *f) {
  const psplit_planner *planner = f->b.planner;
  const psplit_i_graph *graph = planner->graph;
  for (uint32_t v = 0; v < graph->n_values; v++) {
    const uint32_t p = graph->values[v].producer, first = graph->consumer_off[v];
    if (p == PSPLIT_NONE) continue;
    const int64_t ns = psplit_i_link_ns(&f->link, psplit_i_planner_sent_bytes(planner, v, NULL));
    if (!add_net(
          f, p, graph->consumers + first, graph->consumer_off[v + 1] - first,
          (psplit_i_copying_net){
            .send_ns = ns, .recv_ns = ns, .sendable = psplit_i_planner_sendable(planner, v)}))
      return false;
  }
  return true;
}

/* Adds layout prices. With several device classes, the cheapest class counts, so the value is a
 * lower bound. */
static bool add_layouts(few_nodes *f, const psplit_i_layout_prices *prices) {
  const uint32_t n_classes = f->b.planner->n_classes;
  for (uint32_t i = 0; i < prices->n; i++) {
    psplit_i_copying_net net = {.send_ns = INT64_MAX, .recv_ns = INT64_MAX, .price = true};
    for (uint32_t c = 0; c < n_classes; c++) {
      const size_t at = (size_t)i * n_classes + c;
      if (prices->send_ns[at] < net.send_ns) net.send_ns = prices->send_ns[at];
      if (prices->recv_ns[at] < net.recv_ns) net.recv_ns = prices->recv_ns[at];
    }
    const uint32_t first = prices->off[i];
    if (!add_net(f, prices->maker[i], prices->reader + first, prices->off[i + 1] - first, net))
      return false;
  }
  return true;
}

/* *out_few: the exact program applies. */
static psplit_code make(few_nodes *f, bool *out_few) {
  psplit_code code;
  psplit_i_links links;
  psplit_i_layout_prices prices;
  psplit_planner *planner = f->b.planner;
  const psplit_planner_options *options = &planner->options;
  *out_few = false;
  PSPLIT_TRY(psplit_i_builder_number(&f->b));
  f->at = psplit_i_builder_array(&f->b, planner->graph->n_nodes, sizeof *f->at);
  if (!f->at) PSPLIT_FAIL(psplit_i_nomem(f->b.diag));
  PSPLIT_TRY(psplit_i_links_find(planner, true, f->b.arena, f->b.diag, &links));
  if (links.n != 1 || !f->b.n_groups) goto out;
  number_nodes(f);
  f->link = links.link[0];
  if (options->message_latency == PSPLIT_LATENCY_PER_PAIR) {
    f->p.message_ns = f->link.latency_ns;
    f->link.latency_ns = 0;
  }
  f->p.overlap = options->overlap;
  describe_nodes(f);
  PSPLIT_TRY(psplit_i_layout_prices_find(planner, f->b.arena, f->b.diag, &prices));
  *out_few = add_tensors(f) && add_layouts(f, &prices);
  f->p.group = f->group;
  f->p.pin = f->pin;
  f->p.ns = f->ns;
  f->p.net = f->net;
out:
  return code;
}

static psplit_code solve(few_nodes *f, bool any_way, int64_t below_ns, psplit_i_copying_split *out,
                         int64_t *out_bound_ns) {
  psplit_code code;
  psplit_partition_options options;
  psplit_i_partition_options(f->b.planner, f->share, &options);
  psplit_i_budget budget = psplit_i_budget_of(&options);
  f->p.any_way = any_way;
  code = psplit_i_copying_solve(&f->p, below_ns, &budget, f->b.diag, out, out_bound_ns);
  psplit_i_plan_spend(f->b.planner, budget.spent);
  if (code != PSPLIT_OK) return code;
  PSPLIT_TRY(psplit_i_go_on(options.cancel, f->b.diag));
out:
  return code;
}

static psplit_code keep(few_nodes *f, const psplit_i_copying_split *split,
                        psplit_i_all_copies *out) {
  psplit_planner *planner = f->b.planner;
  const uint32_t n_nodes = planner->graph->n_nodes;
  out->stage = psplit_i_arena_array(&planner->arena, n_nodes, sizeof *out->stage);
  out->copies = psplit_i_arena_array(&planner->arena, (size_t)f->p.n_nodes * f->p.n_stages,
                                     sizeof *out->copies);
  if (!out->stage || !out->copies) return psplit_i_nomem(f->b.diag);
  for (uint32_t n = 0; n < n_nodes; n++) out->stage[n] = PSPLIT_NONE;
  for (uint32_t s = 0; s < f->p.n_stages; s++)
    for (uint32_t i = 0; i < f->p.n_nodes; i++) {
      if (has(split->home[s], i)) out->stage[f->node[i]] = s;
      if (has(split->copied[s], i))
        out->copies[out->n_copies++] = (psplit_plan_copy){f->node[i], s};
    }
  out->value_ns = split->value_ns;
  return PSPLIT_OK;
}

psplit_code psplit_i_all_copies_find(psplit_planner *planner, int64_t below_ns, double share,
                                     psplit_diag *diag, psplit_i_all_copies *out) {
  psplit_code code = PSPLIT_OK;
  psplit_i_copying_split split;
  bool few;
  *out = (psplit_i_all_copies){.value_ns = INT64_MAX};
  if (!psplit_i_all_copies_apply(planner)) return PSPLIT_OK;
  few_nodes *f = PSPLIT_NEW(&planner->scratch, few_nodes, 1);
  if (!f) PSPLIT_FAIL(psplit_i_nomem(diag));
  f->b = (psplit_i_builder){.planner = planner, .arena = &planner->scratch, .diag = diag};
  f->share = share;
  PSPLIT_TRY(make(f, &few));
  if (!few) goto out;
  const bool one_way = f->p.n_stages == 2;
  if (!one_way) PSPLIT_TRY(solve(f, true, below_ns, &split, &out->any_bound_ns));
  if (out->any_bound_ns < below_ns) {
    PSPLIT_TRY(solve(f, false, below_ns, &split, &out->bound_ns));
    if (split.value_ns < below_ns) PSPLIT_TRY(keep(f, &split, out));
  }
  if (out->bound_ns < out->any_bound_ns) out->bound_ns = out->any_bound_ns;
  if (one_way) out->any_bound_ns = out->bound_ns;
out:
  psplit_i_arena_reset(&planner->scratch);
  return code;
}
