/* needs: costs, live, groups  keeps: everything  breaks: nothing
 *
 * Turns supernodes into a bare partition problem, solves it, and gives every node its stage. Free
 * nodes (functions of constants) are not part of the problem: each goes to every stage that reads
 * its result. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "fit.h"
#include "liveness.h"
#include "tied.h"

#define COARSE_GAP 0.005

enum { OPTION_SOLVER, OPTION_GAP, OPTION_TIME_LIMIT };

/* What one run of the solver is asked for. */
typedef struct request {
  const psplit_i_option_value *values;
  const psplit_i_ties *ties;
  const uint8_t *joined; /* [ties->weights.n] the weight's users share a stage */
  bool quick;            /* is there a split at all? */
} request;

typedef struct cutter {
  psplit_unit *unit;
  const psplit_i_option_value *values;
  const psplit_i_ties *ties;
} cutter;

/* A problem under construction; every array lives in the pass scratch. */
typedef struct builder {
  psplit_unit *unit;
  psplit_arena *arena;
  psplit_diag *diag;
  uint32_t *group; /* [n_nodes] supernode, PSPLIT_NONE for free nodes */
  uint32_t n_groups;
  uint32_t *together; /* [n_groups] class, or PSPLIT_NONE */
  psplit_problem problem;
} builder;

static void *array(builder *b, size_t n, size_t size) {
  return psplit_i_arena_zeroed(b->arena, n, size);
}

static psplit_code build_nodes(builder *b) {
  const psplit_unit *unit = b->unit;
  const psplit_graph *graph = unit->graph;
  const size_t n = b->n_groups, n_classes = unit->n_classes;
  int64_t *time_ns = array(b, n * n_classes, sizeof *time_ns);
  uint8_t *flags = array(b, n, sizeof *flags);
  uint32_t *pin = array(b, n, sizeof *pin);
  uint32_t *together = array(b, n, sizeof *together);
  const char **names = array(b, n, sizeof *names);
  /* Classes that a group's members join become one: `merged` points from class to class. */
  uint32_t *merged = array(b, unit->n_together, sizeof *merged);
  if (!time_ns || !flags || !pin || !together || !names || !merged) return psplit_i_nomem(b->diag);
  for (uint32_t c = 0; c < unit->n_together; c++) merged[c] = c;
  for (uint32_t g = 0; g < n; g++) {
    pin[g] = together[g] = PSPLIT_NONE;
    flags[g] = PSPLIT_NODE_AUXILIARY;
  }
  for (uint32_t i = 0; i < graph->n_nodes; i++) {
    const uint32_t g = b->group[i];
    if (g == PSPLIT_NONE) continue;
    if (!names[g]) names[g] = graph->nodes[i].name;
    if (!(unit->node_flags[i] & PSPLIT_I_NODE_DEAD)) flags[g] = 0;
    if (unit->pin[i] != PSPLIT_NONE) pin[g] = unit->pin[i];
    for (size_t c = 0; c < n_classes; c++)
      time_ns[g * n_classes + c] =
        psplit_i_sat_add_i64(time_ns[g * n_classes + c], unit->node_ns[c * graph->n_nodes + i]);
    uint32_t class_id = unit->together[i];
    if (class_id == PSPLIT_NONE) continue;
    while (merged[class_id] != class_id) class_id = merged[class_id];
    if (together[g] != PSPLIT_NONE) {
      uint32_t other = together[g];
      while (merged[other] != other) other = merged[other];
      merged[other] = class_id;
    }
    together[g] = class_id;
  }
  for (uint32_t g = 0; g < n; g++)
    while (together[g] != PSPLIT_NONE && merged[together[g]] != together[g])
      together[g] = merged[together[g]];
  b->problem.n_nodes = b->n_groups;
  b->problem.n_classes = unit->n_classes;
  b->problem.time_ns = time_ns;
  b->problem.node_flags = flags;
  b->problem.pin = pin;
  b->together = together;
  b->problem.together = unit->n_together ? together : NULL;
  b->problem.node_name = names;
  return PSPLIT_OK;
}

/* Time to send `bytes` from, or receive them on, a device of the class: over the link to the
 * nearest device in the order of stages that it has one to; 0 where it has none at all. */
static int64_t transfer_ns(const psplit_unit *unit, uint32_t class_id, uint64_t bytes, bool send) {
  const uint32_t device = unit->class_device[class_id], n = unit->options.n_stages;
  for (int side = 0; side < 2; side++) /* the other side at the ends of the pipeline */
    for (uint32_t distance = 1; distance < n; distance++) {
      const bool up = send != (side == 1);
      if (up ? distance >= n - device : distance > device) break;
      const uint32_t peer = up ? device + distance : device - distance;
      const uint32_t from = up ? device : peer, to = up ? peer : device;
      if (psplit_devices_link(unit->devices, from, to).bytes_per_second > 0)
        return psplit_devices_transfer_ns(unit->devices, from, to, bytes);
    }
  return 0;
}

/* One net for every value that some other group than its producer's reads. */
static psplit_code build_nets(builder *b) {
  const psplit_unit *unit = b->unit;
  const psplit_graph *graph = unit->graph;
  const size_t n_classes = unit->n_classes;
  size_t n_nets = 0, n_pins = 0;
  for (uint32_t v = 0; v < graph->n_values; v++) {
    const uint32_t p = graph->values[v].producer;
    if (p == PSPLIT_NONE || b->group[p] == PSPLIT_NONE) continue;
    n_nets++;
    n_pins += graph->consumer_off[v + 1] - graph->consumer_off[v];
  }
  uint32_t *producer = array(b, n_nets, sizeof *producer);
  uint32_t *off = array(b, n_nets + 1, sizeof *off);
  uint32_t *consumer = array(b, n_pins, sizeof *consumer);
  uint64_t *bytes = array(b, n_nets, sizeof *bytes);
  int64_t *send_ns = array(b, n_nets * n_classes, sizeof *send_ns);
  int64_t *recv_ns = array(b, n_nets * n_classes, sizeof *recv_ns);
  uint8_t *flags = array(b, n_nets, sizeof *flags);
  uint32_t *last = array(b, b->n_groups, sizeof *last); /* 1 + last value that met the group */
  if (!producer || !off || !consumer || !bytes || !send_ns || !recv_ns || !flags || !last)
    return psplit_i_nomem(b->diag);
  uint32_t net = 0, pin = 0;
  for (uint32_t v = 0; v < graph->n_values; v++) {
    const uint32_t p = graph->values[v].producer;
    if (p == PSPLIT_NONE || b->group[p] == PSPLIT_NONE) continue;
    const uint32_t first = pin;
    last[b->group[p]] = v + 1;
    for (uint32_t c = graph->consumer_off[v]; c < graph->consumer_off[v + 1]; c++) {
      const uint32_t g = b->group[graph->consumers[c]];
      if (last[g] == v + 1) continue;
      last[g] = v + 1;
      consumer[pin++] = g;
    }
    if (pin == first) continue;
    producer[net] = b->group[p];
    bytes[net] = psplit_i_unit_value_bytes(unit, v, NULL);
    if (!psplit_i_unit_sendable(unit, v) || unit->uncuttable[v]) flags[net] = PSPLIT_NET_UNCUTTABLE;
    for (uint32_t c = 0; c < n_classes; c++) {
      send_ns[net * n_classes + c] = transfer_ns(unit, c, bytes[net], true);
      recv_ns[net * n_classes + c] = transfer_ns(unit, c, bytes[net], false);
    }
    off[++net] = pin;
  }
  b->problem.n_nets = net;
  b->problem.net_producer = producer;
  b->problem.net_off = off;
  b->problem.net_consumer = consumer;
  b->problem.net_bytes = bytes;
  b->problem.net_send_ns = send_ns;
  b->problem.net_recv_ns = recv_ns;
  b->problem.net_flags = flags;
  return PSPLIT_OK;
}

/* Weights: private to a group, or shared by several and then counted once per stage. */
static psplit_code build_weights(builder *b) {
  const psplit_unit *unit = b->unit;
  const psplit_graph *graph = unit->graph;
  size_t n_shared = 0, n_users = 0;
  for (uint32_t v = 0; v < graph->n_values; v++)
    if (psplit_i_unit_is_constant(unit, v)) {
      n_shared++;
      n_users += graph->consumer_off[v + 1] - graph->consumer_off[v];
    }
  uint64_t *private_bytes = array(b, b->n_groups, sizeof *private_bytes);
  uint64_t *shared_bytes = array(b, n_shared, sizeof *shared_bytes);
  uint32_t *off = array(b, n_shared + 1, sizeof *off);
  uint32_t *user = array(b, n_users, sizeof *user);
  uint32_t *last = array(b, b->n_groups, sizeof *last);
  if (!private_bytes || !shared_bytes || !off || !user || !last) return psplit_i_nomem(b->diag);
  for (uint32_t n = 0; n < graph->n_nodes; n++) {
    const uint32_t g = b->group[n];
    if (g == PSPLIT_NONE || (!graph->nodes[n].n_bodies && graph->nodes[n].function == PSPLIT_NONE))
      continue;
    private_bytes[g] = psplit_i_sat_add_u64(private_bytes[g], psplit_i_node_inner_bytes(graph, n));
  }
  uint32_t weight = 0, at = 0;
  for (uint32_t v = 0; v < graph->n_values; v++) {
    if (!psplit_i_unit_is_constant(unit, v)) continue;
    const uint32_t first = at;
    for (uint32_t c = graph->consumer_off[v]; c < graph->consumer_off[v + 1]; c++) {
      const uint32_t g = b->group[graph->consumers[c]];
      if (g == PSPLIT_NONE || last[g] == v + 1) continue;
      last[g] = v + 1;
      user[at++] = g;
    }
    const uint64_t bytes = psplit_i_unit_weight_bytes(unit, v);
    if (at == first + 1) {
      private_bytes[user[first]] = psplit_i_sat_add_u64(private_bytes[user[first]], bytes);
      at = first;
    } else if (at > first) {
      shared_bytes[weight++] = bytes;
      off[weight] = at;
    }
  }
  b->problem.weight_bytes = private_bytes;
  b->problem.n_weights = weight;
  b->problem.weight_group_bytes = shared_bytes;
  b->problem.weight_off = off;
  b->problem.weight_user = user;
  return PSPLIT_OK;
}

static psplit_code build_devices(builder *b, const uint64_t *memory_bytes) {
  const psplit_unit *unit = b->unit;
  psplit_device *devices = array(b, unit->options.n_stages, sizeof *devices);
  if (!devices) return psplit_i_nomem(b->diag);
  for (uint32_t d = 0; d < unit->options.n_stages; d++)
    devices[d] =
      (psplit_device){.class_id = unit->device_class[d],
                      .count = 1,
                      .memory_bytes = memory_bytes[d] == UINT64_MAX ? 0 : memory_bytes[d],
                      .name = psplit_devices_name(unit->devices, d)};
  b->problem.n_devices = unit->options.n_stages;
  b->problem.devices = devices;
  b->problem.comm = PSPLIT_COMM_P2P;
  b->problem.next_hop = unit->next_hop;
  b->problem.ticks_per_unit = 1;
  return PSPLIT_OK;
}

/* Stages that read a free node's result; the least owns the node, the others hold copies. Walks
 * backwards: by then a free node's free readers know their stages. */
static psplit_code place_free_nodes(builder *b) {
  psplit_unit *unit = b->unit;
  const psplit_graph *graph = unit->graph;
  psplit_code code = PSPLIT_OK;
  uint32_t *first = array(b, graph->n_nodes, sizeof *first); /* of a node's range in `stages` */
  uint32_t *count = array(b, graph->n_nodes, sizeof *count);
  uint32_t *met = array(b, unit->options.n_stages, sizeof *met); /* 1 + node that met the stage */
  PSPLIT_VEC(uint32_t) stages = {0};
  if (!first || !count || !met) return psplit_i_nomem(b->diag);
  for (uint32_t i = graph->n_nodes; i-- > 0;) {
    const uint32_t n = graph->topo[i];
    if (b->group[n] != PSPLIT_NONE) continue;
    first[n] = (uint32_t)stages.n;
    for (uint32_t o = 0; o < graph->nodes[n].n_outputs; o++) {
      const uint32_t value = graph->nodes[n].outputs[o];
      if (value == PSPLIT_NONE) continue;
      for (uint32_t c = graph->consumer_off[value]; c < graph->consumer_off[value + 1]; c++) {
        const uint32_t reader = graph->consumers[c];
        const bool is_free = b->group[reader] == PSPLIT_NONE;
        const uint32_t n_stages = is_free ? count[reader] : 1;
        for (uint32_t k = 0; k < n_stages; k++) {
          const uint32_t stage = is_free ? stages.items[first[reader] + k] : unit->stage[reader];
          if (met[stage] == n + 1) continue;
          met[stage] = n + 1;
          if (!psplit_i_vec_push(&stages, stage)) {
            code = psplit_i_nomem(b->diag);
            goto out;
          }
        }
      }
    }
    if (stages.n == first[n] && !psplit_i_vec_push(&stages, 0)) { /* read by nobody */
      code = psplit_i_nomem(b->diag);
      goto out;
    }
    count[n] = (uint32_t)stages.n - first[n];
    uint32_t owner = UINT32_MAX;
    for (uint32_t k = 0; k < count[n]; k++)
      if (stages.items[first[n] + k] < owner) owner = stages.items[first[n] + k];
    unit->stage[n] = owner;
    for (uint32_t k = 0; k < count[n]; k++) {
      const uint32_t stage = stages.items[first[n] + k];
      if (stage != owner && !psplit_i_vec_push(&unit->copies, ((psplit_plan_copy){n, stage}))) {
        code = psplit_i_nomem(b->diag);
        goto out;
      }
    }
  }
  psplit_i_copies_sort(unit);
out:
  psplit_i_vec_fini(&stages);
  return code;
}

static bool joins_any(const request *r) {
  bool any = false;
  for (size_t w = 0; w < r->ties->weights.n; w++) any |= r->joined[w] != 0;
  return any;
}

static psplit_code join_tied(builder *b, const request *r) {
  if (!joins_any(r)) return PSPLIT_OK;
  if (!psplit_i_ties_join(r->ties, r->joined, b->group, b->n_groups, b->unit->n_together, b->arena,
                          b->together))
    return psplit_i_nomem(b->diag);
  b->problem.together = b->together;
  return PSPLIT_OK;
}

static psplit_code number_groups(builder *b) {
  b->group = array(b, b->unit->graph->n_nodes, sizeof *b->group);
  if (!b->group) return psplit_i_nomem(b->diag);
  psplit_i_grouping_number(&b->unit->grouping, b->group);
  b->n_groups = b->unit->grouping.n_groups;
  return PSPLIT_OK;
}

/* The problem on the devices, which have memory_bytes[n_stages]; UINT64_MAX: no limit. */
static psplit_code build(builder *b, const uint64_t *memory_bytes) {
  psplit_code code;
  PSPLIT_TRY(build_nodes(b));
  PSPLIT_TRY(build_nets(b));
  PSPLIT_TRY(build_weights(b));
  PSPLIT_TRY(build_devices(b, memory_bytes));
out:
  return code;
}

psplit_code psplit_i_problem_make(psplit_unit *unit, psplit_diag *diag,
                                  psplit_problem *out_problem, uint32_t **out_group) {
  psplit_code code;
  builder b = {.unit = unit, .arena = &unit->scratch, .diag = diag};
  uint64_t *no_limit = array(&b, unit->options.n_stages, sizeof *no_limit);
  if (!no_limit) return psplit_i_nomem(diag);
  for (uint32_t s = 0; s < unit->options.n_stages; s++) no_limit[s] = UINT64_MAX;
  PSPLIT_TRY(number_groups(&b));
  PSPLIT_TRY(build(&b, no_limit));
  *out_problem = b.problem;
  *out_group = b.group;
out:
  return code;
}

void psplit_i_partition_options(const psplit_unit *unit, psplit_partition_options *out) {
  psplit_partition_options_init(out);
  out->objective = unit->options.objective;
  out->require_nonempty = unit->options.n_stages > 1; /* constants alone are a model too */
  out->time_limit_s = unit->options.time_limit_s;
  out->limit_by_work = unit->options.limit_by_work;
  out->n_threads = unit->options.n_threads;
  out->seed = unit->options.seed;
  out->sink = unit->options.sink;
}

/* `share` of the time limit is for this solution. */
static psplit_code solve(psplit_unit *unit, const request *r, const uint64_t *memory_bytes,
                         double share, psplit_diag *diag) {
  psplit_code code;
  const psplit_i_option_value *values = r->values;
  builder b = {.unit = unit, .arena = &unit->scratch, .diag = diag};
  PSPLIT_TRY(number_groups(&b));
  unit->copies.n = 0;
  if (b.n_groups == 0) { /* constants alone: all of them in the one stage */
    PSPLIT_TRY(place_free_nodes(&b));
    goto out;
  }
  PSPLIT_TRY(build(&b, memory_bytes));
  PSPLIT_TRY(join_tied(&b, r));
  psplit_partition_options options;
  psplit_i_partition_options(unit, &options);
  options.solver = strcmp(values[OPTION_SOLVER].text, "auto") != 0 ? values[OPTION_SOLVER].text
                   : unit->options.solver                          ? unit->options.solver
                                                                   : "auto";
  if (values[OPTION_TIME_LIMIT].real >= 0) {
    options.time_limit_s = values[OPTION_TIME_LIMIT].real;
    options.limit_by_work = false;
  }
  options.time_limit_s *= share; /* no limit, which is below 0, stays none */
  if (r->quick) options.time_limit_s = 0;
  options.gap_frac = values[OPTION_GAP].real;
  /* What coarsening lost is not known: proofs to the last bit say nothing about the model. */
  if (unit->coarsened && options.gap_frac < COARSE_GAP) options.gap_frac = COARSE_GAP;
  psplit_solution *solution;
  PSPLIT_TRY(psplit_partition_solve(&b.problem, &options, diag, &solution));
  psplit_solution_destroy(unit->solution);
  unit->solution = solution;
  for (uint32_t n = 0; n < unit->graph->n_nodes; n++)
    if (b.group[n] != PSPLIT_NONE) unit->stage[n] = solution->stage[b.group[n]];
  PSPLIT_TRY(place_free_nodes(&b));
out:
  psplit_i_arena_reset(&unit->scratch);
  return code;
}

/* First stage that needs more than its device has; n_stages where all fit. */
static uint32_t first_too_large(const psplit_unit *unit) {
  uint32_t s = 0;
  while (s < unit->options.n_stages &&
         unit->plan->stages[s].memory_bytes <= psplit_devices_memory_bytes(unit->devices, s))
    s++;
  return s;
}

static bool any_memory_limit(const psplit_unit *unit) {
  for (uint32_t s = 0; s < unit->options.n_stages; s++)
    if (psplit_devices_memory_bytes(unit->devices, s) != UINT64_MAX) return true;
  return false;
}

static bool any_pin(const psplit_unit *unit) {
  for (uint32_t n = 0; n < unit->graph->n_nodes; n++)
    if (unit->pin[n] != PSPLIT_NONE || unit->together[n] != PSPLIT_NONE) return true;
  return false;
}

static const char *name_of_value(const psplit_unit *unit, uint32_t value) {
  return value == PSPLIT_NONE ? "?" : unit->graph->values[value].name;
}

/* An unnamed node goes by what it makes. */
static const char *name_of_node(const psplit_unit *unit, uint32_t node) {
  if (node == PSPLIT_NONE) return "?";
  const psplit_node *n = &unit->graph->nodes[node];
  return *n->name || !n->n_outputs ? n->name : name_of_value(unit, n->outputs[0]);
}

/* Bytes as people read them in an error: whole MiB where that loses little. */
static const char *amount(uint64_t bytes, char out[32]) {
  const bool large = bytes >= UINT64_C(10) << 20;
  snprintf(out, 32, "%" PRIu64 " %s", large ? bytes >> 20 : bytes >> 10, large ? "MiB" : "KiB");
  return out;
}

/* Says what does not fit where, and what would. `solved`: the plan is the best that was found. */
static psplit_code too_large(psplit_unit *unit, bool solved, const psplit_i_fit *fit,
                             psplit_diag *diag) {
  char need[32], weights[32], activations[32], buffers[32], workspace[32], limit[32];
  char advice[PSPLIT_DIAG_BYTES / 2];
  uint64_t largest = 0;
  for (uint32_t s = 0; s < unit->options.n_stages; s++)
    if (psplit_devices_memory_bytes(unit->devices, s) > largest)
      largest = psplit_devices_memory_bytes(unit->devices, s);
  if (fit->n_stages == 0)
    snprintf(advice, sizeof advice,
             "no number of stages fits: node \"%s\" and what must stay with it need %s, the "
             "largest tensor there is \"%s\"",
             name_of_node(unit, fit->blocking_node), amount(fit->blocking_bytes, need),
             name_of_value(unit, fit->blocking_value));
  else if (fit->n_stages != unit->options.n_stages)
    snprintf(advice, sizeof advice, "%" PRIu32 " stages would fit%s", fit->n_stages,
             any_pin(unit) ? " without pins" : "");
  else
    snprintf(advice, sizeof advice, "without pins it would fit");
  const uint32_t s = solved ? first_too_large(unit) : unit->options.n_stages;
  if (s == unit->options.n_stages)
    return psplit_i_fail(diag, PSPLIT_INFEASIBLE,
                         "memory: no split into %" PRIu32
                         " stages fits the devices, of which the largest has %s; %s",
                         s, amount(largest, limit), advice);
  const psplit_plan_stage *stage = &unit->plan->stages[s];
  return psplit_i_fail(diag, PSPLIT_INFEASIBLE,
                       "memory: stage %" PRIu32
                       " needs %s (weights %s, activations %s, buffers %s, workspace %s) and "
                       "device %s has %s; %s",
                       s, amount(stage->memory_bytes, need), amount(stage->weight_bytes, weights),
                       amount(stage->peak_activation_bytes, activations),
                       amount(stage->buffer_bytes, buffers),
                       amount(stage->workspace_bytes, workspace), stage->device,
                       amount(psplit_devices_memory_bytes(unit->devices, s), limit), advice);
}

/* Numbers groups in another topological order: by the stage that the solver gave them, then as they
 * are. */
static psplit_code number_by_stage(builder *b) {
  const psplit_unit *unit = b->unit;
  const uint32_t n_stages = unit->options.n_stages;
  uint32_t *stage = array(b, b->n_groups, sizeof *stage);
  uint32_t *at = array(b, (size_t)n_stages + 1, sizeof *at);
  uint32_t *number = array(b, b->n_groups, sizeof *number);
  if (!stage || !at || !number) return psplit_i_nomem(b->diag);
  for (uint32_t n = 0; n < unit->graph->n_nodes; n++)
    if (b->group[n] != PSPLIT_NONE) stage[b->group[n]] = unit->stage[n];
  for (uint32_t g = 0; g < b->n_groups; g++) at[stage[g] + 1]++;
  for (uint32_t s = 0; s < n_stages; s++) at[s + 1] += at[s];
  for (uint32_t g = 0; g < b->n_groups; g++) number[g] = at[stage[g]]++;
  for (uint32_t n = 0; n < unit->graph->n_nodes; n++)
    if (b->group[n] != PSPLIT_NONE) b->group[n] = number[b->group[n]];
  return PSPLIT_OK;
}

/* Gives the nodes that are not free these stages, and makes the plan. */
static psplit_code adopt(builder *b, const uint32_t *node_stage) {
  psplit_code code;
  psplit_unit *unit = b->unit;
  unit->copies.n = 0;
  for (uint32_t n = 0; n < unit->graph->n_nodes; n++)
    if (b->group[n] != PSPLIT_NONE) unit->stage[n] = node_stage[n];
  PSPLIT_TRY(place_free_nodes(b));
  PSPLIT_TRY(psplit_i_plan_make(unit, b->diag)); /* ends the scratch, and with it b's arrays */
out:
  return code;
}

/* The best cut of an order of the groups where the solver's does not fit, or is worse; an error
 * that says why not where none fits. `solved`: there is a plan; it fits if first_too_large says so.
 */
static psplit_code cut_to_fit(psplit_unit *unit, const request *r, bool solved,
                              psplit_diag *diag) {
  psplit_code code;
  psplit_i_fit fit;
  bool found;
  const uint32_t n_nodes = unit->graph->n_nodes;
  const bool fitting = solved && first_too_large(unit) == unit->options.n_stages;
  builder b = {.unit = unit, .arena = &unit->scratch, .diag = diag};
  PSPLIT_TRY(number_groups(&b));
  uint32_t *group_stage = array(&b, b.n_groups, sizeof *group_stage);
  uint32_t *old = psplit_i_arena_array(&unit->arena, n_nodes, sizeof *old);
  uint32_t *cut = psplit_i_arena_array(&unit->arena, n_nodes, sizeof *cut);
  if (!group_stage || !old || !cut) return psplit_i_nomem(diag);
  PSPLIT_TRY(psplit_i_fit_memory(unit, b.group, b.n_groups, group_stage, &fit, &found, diag));
  if (solved && !found) {
    psplit_i_fit other;
    PSPLIT_TRY(number_by_stage(&b));
    PSPLIT_TRY(psplit_i_fit_memory(unit, b.group, b.n_groups, group_stage, &other, &found, diag));
    if (other.n_stages && (!fit.n_stages || other.n_stages < fit.n_stages)) fit = other;
  }
  /* It knows nothing of these. */
  found = found && !any_pin(unit) && !unit->next_hop && !joins_any(r);
  if (!found && !fitting) return too_large(unit, solved, &fit, diag);
  if (!found) goto out;
  memcpy(old, unit->stage, n_nodes * sizeof *old);
  for (uint32_t n = 0; n < n_nodes; n++)
    cut[n] = b.group[n] == PSPLIT_NONE ? 0 : group_stage[b.group[n]];
  const int64_t old_ns = fitting ? unit->plan->bottleneck_ns : INT64_MAX;
  PSPLIT_TRY(adopt(&b, cut));
  if (first_too_large(unit) < unit->options.n_stages) {
    if (!fitting) return too_large(unit, true, &fit, diag);
  } else if (unit->plan->bottleneck_ns < old_ns) {
    if (unit->solution) unit->solution->solver = "fit";
    unit->plan->solver = "fit";
    goto out;
  }
  PSPLIT_TRY(number_groups(&b));
  PSPLIT_TRY(adopt(&b, old));
out:
  psplit_i_arena_reset(&unit->scratch);
  return code;
}

static psplit_code first_fit_suffices(psplit_unit *unit, bool *out, psplit_diag *diag) {
  psplit_code code;
  psplit_i_fit fit;
  bool cut;
  builder b = {.unit = unit, .arena = &unit->scratch, .diag = diag};
  PSPLIT_TRY(number_groups(&b));
  PSPLIT_TRY(psplit_i_fit_memory(unit, b.group, b.n_groups, NULL, &fit, &cut, diag));
  *out = fit.n_stages && fit.n_stages <= unit->options.n_stages;
  psplit_i_arena_reset(&unit->scratch);
out:
  return code;
}

/* Whether all devices together cannot hold what each weight takes once: no search can help. */
static bool weights_exceed_memory(const psplit_unit *unit) {
  const psplit_graph *graph = unit->graph;
  uint64_t weights = 0, room = 0;
  for (uint32_t v = 0; v < graph->n_values; v++)
    if (psplit_i_unit_is_constant(unit, v))
      for (uint32_t c = graph->consumer_off[v]; c < graph->consumer_off[v + 1]; c++)
        if (!(unit->node_flags[graph->consumers[c]] & PSPLIT_I_NODE_FREE)) {
          weights = psplit_i_sat_add_u64(weights, psplit_i_unit_weight_bytes(unit, v));
          break;
        }
  for (uint32_t s = 0; s < unit->options.n_stages; s++)
    room = psplit_i_sat_add_u64(room, psplit_devices_memory_bytes(unit->devices, s));
  return weights > room;
}

/* The solver limits weights alone; a stage's other memory is known once it is cut. While a stage
 * does not fit, its device offers the solver that much less. The bound of the first round, which
 * offered everything, holds for every split; those of later rounds do not. */
static psplit_code solve_within_memory(psplit_unit *unit, const request *r, double share,
                                       psplit_diag *diag) {
  enum { MAX_ROUNDS = 6 };
  psplit_code code = PSPLIT_OK;
  int64_t bound_ns = 0;
  const uint32_t n_stages = unit->options.n_stages;
  uint64_t *offered = psplit_i_arena_array(&unit->arena, n_stages, sizeof *offered);
  if (!offered) return psplit_i_nomem(diag);
  for (uint32_t s = 0; s < n_stages; s++)
    offered[s] = psplit_devices_memory_bytes(unit->devices, s);
  if (any_memory_limit(unit) && !any_pin(unit)) {
    if (weights_exceed_memory(unit)) return cut_to_fit(unit, r, false, diag);
    bool easy;
    PSPLIT_TRY(first_fit_suffices(unit, &easy, diag));
    if (!easy) share /= 5; /* there may be no split at all: a search should not take all the time */
  }
  for (unsigned round = 0; round < MAX_ROUNDS; round++) {
    psplit_diag why = {0};
    code = solve(unit, r, offered, round ? share / 10 : share, &why);
    if (code == PSPLIT_INFEASIBLE && round) break;
    if (code == PSPLIT_INFEASIBLE && any_memory_limit(unit) && !any_pin(unit))
      return cut_to_fit(unit, r, false, diag);
    if (code != PSPLIT_OK) return psplit_i_fail(diag, code, "%s", why.message);
    if (unit->solution) {
      if (round == 0) bound_ns = unit->solution->lower_bound_ns;
      unit->solution->lower_bound_ns = bound_ns;
      unit->solution->proved_optimal &= unit->solution->objective_ns == bound_ns;
    }
    PSPLIT_TRY(psplit_i_plan_make(unit, diag));
    if (first_too_large(unit) == n_stages) break;
    for (uint32_t s = 0; s < n_stages; s++) {
      const uint64_t need = unit->plan->stages[s].memory_bytes;
      const uint64_t limit = psplit_devices_memory_bytes(unit->devices, s);
      if (need <= limit) continue;
      const uint64_t excess = need - limit;
      offered[s] = offered[s] > excess + 1 ? offered[s] - excess : 1;
    }
  }
  if (first_too_large(unit) == n_stages && (unit->plan->proved_optimal || !any_memory_limit(unit)))
    return PSPLIT_OK;
  return cut_to_fit(unit, r, true, diag);
out:
  return code;
}

/* Says what may stand in the way: values that keep their producer and their readers together. */
static void name_unsendable(const psplit_unit *unit, psplit_diag *diag) {
  uint32_t first = PSPLIT_NONE, n = 0;
  for (uint32_t v = 0; v < unit->graph->n_values; v++) {
    if (unit->graph->values[v].producer == PSPLIT_NONE || psplit_i_unit_sendable(unit, v) ||
        unit->graph->consumer_off[v] == unit->graph->consumer_off[v + 1])
      continue;
    if (!n++) first = v;
  }
  const size_t used = strlen(diag->message);
  if (n == 1)
    snprintf(diag->message + used, sizeof diag->message - used,
             "; \"%s\" is not known to be a dense tensor and is never sent",
             unit->graph->values[first].name);
  else if (n)
    snprintf(diag->message + used, sizeof diag->message - used,
             "; \"%s\" and %" PRIu32 " more are not known to be dense tensors and are never sent",
             unit->graph->values[first].name, n - 1);
}

static psplit_code cut(psplit_unit *unit, const request *r, psplit_diag *diag) {
  psplit_code code = PSPLIT_INFEASIBLE;
  const uint32_t n_stages = unit->options.n_stages;
  psplit_diag first = {0};
  if (unit->grouping.n_groups >= n_stages || n_stages == 1)
    code = solve_within_memory(unit, r, 1, &first);
  if (code == PSPLIT_INFEASIBLE && unit->grouping.n_groups < unit->graph->n_nodes) {
    /* Groups are a wish, stages are asked for: let go of the groups before giving up. */
    const uint32_t n_groups = unit->grouping.n_groups;
    if (!psplit_i_grouping_init(&unit->grouping, unit->graph, unit->node_flags, unit->pin,
                                &unit->arena))
      return psplit_i_nomem(diag);
    if (unit->grouping.n_groups > n_groups && unit->grouping.n_groups >= n_stages) {
      code = solve_within_memory(unit, r, 0.25, diag);
      if (code == PSPLIT_OK)
        psplit_i_say(unit->options.sink, PSPLIT_NOTE,
                     "%" PRIu32 " supernodes allow no such split; cut between operators instead",
                     n_groups);
      return code;
    }
  }
  if (code == PSPLIT_INFEASIBLE && first.code == PSPLIT_OK)
    return psplit_i_fail(diag, PSPLIT_INFEASIBLE,
                         "%" PRIu32 " stages cannot all have work: the model has %" PRIu32
                         " nodes besides constants; ask for fewer stages",
                         n_stages, unit->grouping.n_groups);
  if (code != PSPLIT_OK) psplit_i_fail(diag, code, "%s", first.message);
  return code;
}

static psplit_code cut_joined(void *user, const uint8_t *joined, psplit_i_effort effort,
                              psplit_diag *diag) {
  cutter *c = user;
  const request r = {c->values, c->ties, joined, effort == PSPLIT_I_CUT_ANY};
  return effort == PSPLIT_I_CUT ? cut(c->unit, &r, diag)
                                : solve_within_memory(c->unit, &r, 1, diag);
}

static psplit_code run(psplit_unit *unit, const psplit_i_option_value *values, psplit_diag *diag) {
  psplit_i_ties ties = {0};
  cutter c = {unit, values, &ties};
  psplit_code code = psplit_i_ties_find(unit, diag, &ties);
  psplit_i_arena_reset(&unit->scratch);
  if (code == PSPLIT_OK) code = psplit_i_ties_settle(unit, &ties, cut_joined, &c, diag);
  psplit_i_ties_fini(&ties);
  if (code == PSPLIT_INFEASIBLE) name_unsendable(unit, diag);
  if (code == PSPLIT_INFEASIBLE) psplit_i_name_unreachable(unit, diag);
  return code;
}

static const psplit_i_option OPTIONS[] = {
  [OPTION_SOLVER] = {"solver", PSPLIT_I_OPTION_TEXT, "auto", 0, 0,
                     "auto, exact, search, anneal, multilevel or slice"},
  [OPTION_GAP] = {"gap", PSPLIT_I_OPTION_REAL, "0", 0, 1, "stop at this relative gap"},
  [OPTION_TIME_LIMIT] = {"time_limit", PSPLIT_I_OPTION_REAL, "-1", -1, 1e9,
                         "seconds; -1: as --time-limit says"},
};

const psplit_i_pass psplit_i_pass_partition = {
  .name = "partition",
  .help = "assign supernodes to stages, minimising the slowest one",
  .needs = PSPLIT_I_FACT_SHAPES | PSPLIT_I_FACT_COSTS | PSPLIT_I_FACT_LIVE | PSPLIT_I_FACT_GROUPS,
  .keeps = ~0u,
  .makes = PSPLIT_I_FACT_STAGES,
  .options = OPTIONS,
  .n_options = sizeof OPTIONS / sizeof *OPTIONS,
  .run = run,
};
