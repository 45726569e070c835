/* A lower bound for splits with copied nodes. Each of several relaxations says what results of
 * other stages take at least, whether they are received or computed again, and is solved as a
 * partition problem. */
#include "copies.h"

#include <math.h>

#include "builder.h"
#include "copy_charges.h"
#include "devices_inside.h"
#include "keep_state.h"
#include "links.h"
#include "plan_budget.h"

#define NO_COPY INT64_MAX

/* The worst and the best latency and bandwidth of some links, each by itself. */
typedef struct link_range {
  psplit_device_link slowest, fastest;
} link_range;

static const link_range NO_LINKS = {{.bytes_per_second = HUGE_VAL}, {.latency_ns = INT64_MAX}};

static void widen(link_range *r, psplit_device_link link) {
  if (link.bytes_per_second < r->slowest.bytes_per_second)
    r->slowest.bytes_per_second = link.bytes_per_second;
  if (link.latency_ns > r->slowest.latency_ns) r->slowest.latency_ns = link.latency_ns;
  if (!(link.bytes_per_second > 0)) return; /* it is missing */
  if (link.bytes_per_second > r->fastest.bytes_per_second)
    r->fastest.bytes_per_second = link.bytes_per_second;
  if (link.latency_ns < r->fastest.latency_ns) r->fastest.latency_ns = link.latency_ns;
}

/* Of the links between the stages in either direction. */
static link_range range_of_links(const psplit_planner *planner) {
  link_range r = NO_LINKS;
  for (uint32_t from = 0; from < planner->options.n_stages; from++)
    for (uint32_t to = 0; to < planner->options.n_stages; to++)
      if (from != to) widen(&r, psplit_devices_link(planner->devices, from, to));
  return r;
}

/* The least time of the node over all device classes; INT64_MAX if none runs it. */
static int64_t least_ns(const psplit_planner *planner, uint32_t node) {
  int64_t least = INT64_MAX;
  for (uint32_t c = 0; c < planner->n_classes; c++) {
    const size_t at = (size_t)c * planner->graph->n_nodes + node;
    if (planner->node_refused && planner->node_refused[at]) continue;
    if (planner->node_ns[at] < least) least = planner->node_ns[at];
  }
  return least;
}

/* Whether the node is the only reader of the value. */
static bool is_private(const psplit_i_graph *graph, uint32_t value, uint32_t node) {
  for (uint32_t c = graph->consumer_off[value]; c < graph->consumer_off[value + 1]; c++)
    if (graph->consumers[c] != node) return false;
  return true;
}

bool psplit_i_may_be_copied(const psplit_planner *planner, uint32_t node) {
  return (planner->node_flags[node] & PSPLIT_I_NODE_REPEATABLE) &&
         !planner->graph->nodes[node].n_bodies && planner->pin[node] == PSPLIT_NONE &&
         !psplit_i_planner_reads_state(planner, node);
}

/* A lower bound on the cost of a copy, where inputs that only this node reads are received or
 * computed again (least[n_nodes] of earlier nodes). Other inputs may be there for other readers.
 * NO_COPY: the node is never copied. */
static int64_t copy_ns(const psplit_planner *planner, const psplit_device_link *link,
                       const int64_t *least, uint32_t n) {
  const psplit_i_graph *graph = planner->graph;
  const psplit_i_node *node = &graph->nodes[n];
  if (!psplit_i_may_be_copied(planner, n)) return NO_COPY;
  int64_t sum = least_ns(planner, n);
  for (uint32_t i = 0; i < node->n_inputs; i++) {
    const uint32_t value = node->inputs[i];
    const uint32_t producer = value == PSPLIT_NONE ? PSPLIT_NONE : graph->values[value].producer;
    bool met = false;
    for (uint32_t k = 0; k < i; k++) met |= node->inputs[k] == value;
    if (producer == PSPLIT_NONE || met || !is_private(graph, value, n) ||
        (planner->node_flags[producer] & PSPLIT_I_NODE_FREE))
      continue;
    const bool sendable = psplit_i_planner_sendable(planner, value);
    const uint64_t bytes = psplit_i_planner_sent_bytes(planner, value, NULL);
    const int64_t sent_ns = sendable ? psplit_i_link_ns(link, bytes) : NO_COPY;
    if (!sendable && least[producer] == NO_COPY) return NO_COPY;
    sum = psplit_i_sat_add_i64(sum, sent_ns < least[producer] ? sent_ns : least[producer]);
  }
  return sum;
}

/* Whether the copy is cheaper than receiving all results over the slowest link. */
static bool is_cheaper(const psplit_planner *planner, const psplit_device_link *slowest, uint32_t n,
                       int64_t ns) {
  const psplit_i_node *node = &planner->graph->nodes[n];
  int64_t receive_ns = 0;
  if (planner->next_hop) return true; /* routes may have several links */
  for (uint32_t o = 0; o < node->n_outputs; o++)
    if (node->outputs[o] != PSPLIT_NONE)
      receive_ns = psplit_i_sat_add_i64(
        receive_ns,
        psplit_i_link_ns(slowest, psplit_i_planner_sent_bytes(planner, node->outputs[o], NULL)));
  return ns < receive_ns;
}

/* out_ns[n_nodes]: a lower bound on the cost of a copy, or NO_COPY. */
static void find_copy_costs(const psplit_planner *planner, psplit_device_link fastest,
                            int64_t *out_ns) {
  const psplit_i_graph *graph = planner->graph;
  /* A fetched tensor may share a message that is sent anyway. */
  if (planner->options.message_latency == PSPLIT_LATENCY_PER_PAIR) fastest.latency_ns = 0;
  for (uint32_t i = 0; i < graph->n_nodes; i++) {
    const uint32_t n = graph->topo[i];
    out_ns[n] =
      psplit_i_n_results(&graph->nodes[n]) ? copy_ns(planner, &fastest, out_ns, n) : NO_COPY;
  }
}

/* out_copied[n_nodes]: a copy may be cheaper than receiving the results. */
static void find_copied(const psplit_planner *planner, const int64_t *copy_ns,
                        const psplit_device_link *slowest, uint8_t *out_copied) {
  for (uint32_t n = 0; n < planner->graph->n_nodes; n++)
    out_copied[n] = copy_ns[n] != NO_COPY && is_cheaper(planner, slowest, n, copy_ns[n]);
}

/* What is known for all relaxations. */
typedef struct copy_facts {
  const uint8_t *copied; /* [n_nodes] a copy may be cheaper somewhere */
  psplit_i_copy_costs costs;
  bool any_order; /* of devices */
  bool differ;    /* the stages' links are of several kinds */
  bool charged;   /* what is copied is charged for; otherwise it costs nothing */
} copy_facts;

enum { MOST_KINDS = 8 }; /* of stages; with more, the best link counts for all */

static bool same_link(psplit_device_link a, psplit_device_link b) {
  return a.latency_ns == b.latency_ns && !(a.bytes_per_second < b.bytes_per_second) &&
         !(a.bytes_per_second > b.bytes_per_second);
}

/* The best link of a range; without links, tensors take no time. */
static psplit_device_link best_of(const link_range *r) {
  return r->fastest.bytes_per_second > 0 ? r->fastest
                                         : (psplit_device_link){.bytes_per_second = HUGE_VAL};
}

typedef struct stage_links {
  link_range in, out;
} stage_links;

static stage_links links_of(const psplit_planner *planner, uint32_t stage) {
  stage_links of = {NO_LINKS, NO_LINKS};
  for (uint32_t s = 0; s < planner->options.n_stages; s++)
    if (s != stage)
      widen(s < stage ? &of.in : &of.out,
            psplit_devices_link(planner->devices, s < stage ? s : stage, s < stage ? stage : s));
  return of;
}

/* Adds the kind of a stage's links to the costs, unless there is one that is like it. `slowest` are
 * the slowest links to each kind. False: there are too many. */
static bool add_kind(const stage_links *of, psplit_i_copy_costs *io, psplit_device_link *slowest,
                     uint32_t *out) {
  const psplit_device_link in = best_of(&of->in), to = best_of(&of->out);
  uint32_t k = 0;
  while (k < io->n_kinds && !(same_link(io->kinds[k].in, in) && same_link(io->kinds[k].out, to) &&
                              same_link(slowest[k], of->in.slowest)))
    k++;
  if (k == MOST_KINDS) return false;
  io->kinds[k] = (psplit_i_copy_kind){.in = in, .out = to};
  slowest[k] = of->in.slowest;
  if (k == io->n_kinds) io->n_kinds++;
  *out = k;
  return true;
}

/* The kinds of stages, each of which is a column of the problem. False: there are too many. */
static bool find_kinds(const psplit_planner *planner, psplit_i_copy_costs *io,
                       psplit_device_link *slowest) {
  for (uint32_t s = 0; s < planner->options.n_stages; s++) {
    const stage_links of = links_of(planner, s);
    if (!add_kind(&of, io, slowest, &io->kind_of_column[s])) return false;
  }
  return true;
}

/* Describes what tensors take, whose links are all in `all`. With overlap, copies may save
 * everything. */
static psplit_code find_costs(psplit_planner *planner, psplit_i_arena *arena, const link_range *all,
                              const int64_t *copy_ns, psplit_diag *diag, copy_facts *io) {
  psplit_code code;
  psplit_i_links links;
  psplit_device_link slowest[MOST_KINDS];
  psplit_i_copy_costs *costs = &io->costs;
  const uint32_t n_nodes = planner->graph->n_nodes, n_stages = planner->options.n_stages;
  io->any_order = planner->order_chosen || planner->order_is_free;
  PSPLIT_TRY(psplit_i_links_find(planner, io->any_order, arena, diag, &links));
  io->differ = links.n > 1;
  io->charged = links.n > 0 && !planner->options.overlap;
  costs->kinds = PSPLIT_NEW(arena, psplit_i_copy_kind, MOST_KINDS);
  costs->kind_of_column = PSPLIT_NEW(arena, uint32_t, n_stages);
  if (arena->failed) PSPLIT_FAIL(psplit_i_nomem(diag));
  if (!io->differ || io->any_order || !find_kinds(planner, costs, slowest)) {
    const psplit_device_link best = links.n == 1 ? links.link[0] : best_of(all);
    costs->n_kinds = 1;
    costs->kind_of_column = NULL;
    costs->kinds[0] = (psplit_i_copy_kind){.in = best, .out = best};
    slowest[0] = all->slowest;
  }
  for (uint32_t k = 0; k < costs->n_kinds; k++) {
    uint8_t *copied = PSPLIT_NEW(arena, uint8_t, n_nodes);
    if (!copied) PSPLIT_FAIL(psplit_i_nomem(diag));
    find_copied(planner, copy_ns, &slowest[k], copied);
    costs->kinds[k].copied = copied;
  }
out:
  return code;
}

static psplit_code find_facts(psplit_planner *planner, psplit_i_arena *arena, psplit_diag *diag,
                              copy_facts *out) {
  psplit_code code;
  const uint32_t n_nodes = planner->graph->n_nodes;
  const link_range all = range_of_links(planner);
  uint8_t *copied = PSPLIT_NEW(arena, uint8_t, n_nodes);
  int64_t *compute_ns = psplit_i_arena_array(arena, n_nodes, sizeof *compute_ns);
  int64_t *copy_ns = psplit_i_arena_array(arena, n_nodes, sizeof *copy_ns);
  if (!copied || !compute_ns || !copy_ns) return psplit_i_nomem(diag);
  find_copy_costs(planner, all.fastest, copy_ns);
  find_copied(planner, copy_ns, &all.slowest, copied);
  for (uint32_t n = 0; n < n_nodes; n++) compute_ns[n] = least_ns(planner, n);
  *out = (copy_facts){.copied = copied, .costs.compute_ns = compute_ns};
  PSPLIT_TRY(find_costs(planner, arena, &all, copy_ns, diag, out));
out:
  return code;
}

/* Whether each stage has a device of the same class as in the plan. The solver may have chosen
 * another order. */
static bool in_plans_order(const psplit_planner *planner, const psplit_solution *solution) {
  for (uint32_t s = 0; s < solution->n_stages; s++)
    if (planner->device_class[solution->stages[s].device] != planner->device_class[s]) return false;
  return true;
}

/* Which results take time, and which make messages. */
typedef enum relaxation {
  UNCOPIED,        /* those that are never copied, over the links as they are */
  CHARGES,         /* those in charges; messages are made by what is never copied */
  MESSAGE_CHARGES, /* both in charges */
} relaxation;

/* Solves one relaxation. Updates *io_bound_ns if the bound is higher, and the stages if their
 * devices match those of the plan. */
static psplit_code relax(psplit_planner *planner, const copy_facts *facts, relaxation kind,
                         psplit_diag *diag, int64_t *io_bound_ns, uint32_t *io_stage) {
  static const double SHARE = 0.3; /* of the time limit of the split itself */
  psplit_code code;
  psplit_solution *solution = NULL;
  psplit_partition_options options;
  psplit_i_charges charges;
  const uint32_t n_nodes = planner->graph->n_nodes;
  psplit_i_builder b = {.planner = planner,
                        .arena = &planner->scratch,
                        .diag = diag,
                        .any_order = planner->order_chosen, /* as for the bound of the plan */
                        .copied = facts->copied,
                        .charges_messages = kind == MESSAGE_CHARGES};
  PSPLIT_TRY(psplit_i_builder_number(&b));
  if (kind != UNCOPIED) {
    if (facts->differ && !facts->any_order) b.link_model = PSPLIT_I_LINKS_BEST;
    PSPLIT_TRY(psplit_i_copy_charges_make(&b, &facts->costs, &charges));
    b.charges = &charges;
  }
  PSPLIT_TRY(psplit_i_builder_unlimited(&b));
  psplit_i_partition_options(planner, SHARE, &options);
  psplit_diag why = {0};
  code = psplit_i_plan_solve(planner, &b.problem, &options, &why, &solution);
  if (code == PSPLIT_OK && solution->lower_bound_ns > *io_bound_ns) {
    *io_bound_ns = solution->lower_bound_ns;
    const uint32_t n_taken = in_plans_order(planner, solution) ? n_nodes : 0;
    for (uint32_t n = 0; n < n_taken; n++)
      io_stage[n] = b.group[n] == PSPLIT_NONE ? PSPLIT_NONE : solution->stage[b.group[n]];
  }
  psplit_solution_destroy(solution);
  code =
    code == PSPLIT_NOMEM || code == PSPLIT_CANCELLED ? psplit_i_fail_as(diag, &why) : PSPLIT_OK;
out:
  psplit_i_arena_reset(&planner->scratch);
  return code;
}

psplit_code psplit_i_bound_with_copies(psplit_planner *planner, psplit_diag *diag,
                                       int64_t *out_bound_ns, uint32_t *out_stage) {
  psplit_code code;
  copy_facts facts;
  psplit_i_arena arena; /* since each relaxation resets the planner's scratch */
  *out_bound_ns = 0;
  for (uint32_t n = 0; n < planner->graph->n_nodes; n++) out_stage[n] = PSPLIT_NONE;
  /* The bound would say nothing about other subsets of devices. */
  if (planner->order_chosen && planner->n_candidates > planner->options.n_stages) return PSPLIT_OK;
  psplit_i_arena_init(&arena, 0);
  PSPLIT_TRY(find_facts(planner, &arena, diag, &facts));
  const bool per_pair = planner->options.message_latency == PSPLIT_LATENCY_PER_PAIR;
  const bool as_they_are = facts.differ || (planner->next_hop && !planner->passes_on);
  const bool asked[] = {as_they_are || !facts.charged, facts.charged, facts.charged && per_pair};
  for (int kind = UNCOPIED; kind <= MESSAGE_CHARGES; kind++)
    if (asked[kind] && *out_bound_ns < planner->plan->bottleneck_ns)
      PSPLIT_TRY(relax(planner, &facts, (relaxation)kind, diag, out_bound_ns, out_stage));
out:
  psplit_i_arena_fini(&arena);
  return code;
}
