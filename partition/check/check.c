/* The independent checker: loads, constraints and objective from the problem alone. It shares
 * nothing with the solvers but the definition of a net's transfer time. */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "check_inside.h"
#include "methods.h"

static uint64_t virtual_stage(const psplit_i_check *c, uint32_t v) {
  return (uint64_t)(c->chunk ? c->chunk[v] : 0) * c->out->n_stages + c->stage[v];
}

static psplit_code mismatch_nodes(const psplit_i_check *c, uint32_t u, uint32_t v,
                                  const char *what) {
  char a[32], b[32];
  return psplit_i_fail(
    c->diag, PSPLIT_MISMATCH, "nodes %s (stage %" PRIu32 ") and %s (stage %" PRIu32 "): %s",
    psplit_i_node_name(c->p, u, a), c->stage[u], psplit_i_node_name(c->p, v, b), c->stage[v], what);
}

static psplit_code check_labels(psplit_i_check *c) {
  char name[32];
  for (uint32_t v = 0; v < c->p->n_nodes; v++) {
    if (c->stage[v] >= c->out->n_stages || (c->chunk && c->chunk[v] >= c->options->chunks))
      return psplit_i_fail(c->diag, PSPLIT_MISMATCH, "node %s: no such stage",
                           psplit_i_node_name(c->p, v, name));
    if (c->p->pin && c->p->pin[v] != PSPLIT_NONE && c->p->pin[v] != c->stage[v])
      return psplit_i_fail(c->diag, PSPLIT_MISMATCH,
                           "node %s is pinned to stage %" PRIu32 " but on stage %" PRIu32,
                           psplit_i_node_name(c->p, v, name), c->p->pin[v], c->stage[v]);
  }
  return PSPLIT_OK;
}

/* Whether nodes that are to stay together do. out_twin[n_nodes]: whether the node, or one of its
 * class, is a forward node. */
static psplit_code check_together(psplit_i_check *c, bool *out_twin) {
  const uint32_t n = c->p->n_nodes;
  for (uint32_t v = 0; v < n; v++) out_twin[v] = !psplit_i_check_is_backward(c, v);
  if (!c->p->together) return PSPLIT_OK;
  uint32_t largest = 0;
  for (uint32_t v = 0; v < n; v++)
    if (c->p->together[v] != PSPLIT_NONE && c->p->together[v] > largest)
      largest = c->p->together[v];
  /* Class ids need not be dense: hash them by open addressing. */
  size_t size = 16;
  while (size < 2 * (size_t)n) size *= 2;
  uint32_t *first = malloc(size * sizeof *first); /* node of each class */
  bool *any_forward = calloc(size, 1);
  psplit_code code = PSPLIT_OK;
  if (!first || !any_forward) {
    code = psplit_i_nomem(c->diag);
    goto out;
  }
  memset(first, 0xff, size * sizeof *first);
  for (int pass = 0; pass < 2; pass++)
    for (uint32_t v = 0; v < n; v++) {
      if (c->p->together[v] == PSPLIT_NONE) continue;
      size_t slot = (size_t)psplit_i_mix64(c->p->together[v]) & (size - 1);
      while (first[slot] != PSPLIT_NONE && c->p->together[first[slot]] != c->p->together[v])
        slot = (slot + 1) & (size - 1);
      if (first[slot] == PSPLIT_NONE) first[slot] = v;
      any_forward[slot] |= !psplit_i_check_is_backward(c, v);
      if (pass == 1) out_twin[v] = any_forward[slot];
      if (virtual_stage(c, v) != virtual_stage(c, first[slot])) {
        code = mismatch_nodes(c, first[slot], v, "they must stay together");
        goto out;
      }
    }
out:
  free(first);
  free(any_forward);
  return code;
}

static psplit_code check_edge(psplit_i_check *c, const bool *twin, uint32_t from, uint32_t to) {
  const bool back_from = psplit_i_check_is_backward(c, from),
             back_to = psplit_i_check_is_backward(c, to);
  if (back_from != back_to) return PSPLIT_OK;
  if (!back_from && virtual_stage(c, from) > virtual_stage(c, to))
    return mismatch_nodes(c, from, to, "the edge between them goes back to an earlier stage");
  if (back_from && (!twin[from] || !twin[to]) && virtual_stage(c, from) < virtual_stage(c, to))
    return mismatch_nodes(c, from, to, "the backward edge between them goes to a later stage");
  return PSPLIT_OK;
}

/* Whether edges may lead from any stage to any other. */
static bool any_order(const psplit_i_check *c) {
  return c->options->noncontiguous || c->options->objective == PSPLIT_CALL_LATENCY;
}

static psplit_code check_edges(psplit_i_check *c, const bool *twin) {
  const psplit_problem *p = c->p;
  for (uint32_t e = 0; e < p->n_nets; e++)
    for (uint32_t k = p->net_off[e]; k < p->net_off[e + 1]; k++) {
      const uint32_t u = p->net_producer[e], v = p->net_consumer[k];
      if (p->net_flags && (p->net_flags[e] & PSPLIT_NET_UNCUTTABLE) &&
          virtual_stage(c, u) != virtual_stage(c, v))
        return mismatch_nodes(c, u, v, "the tensor between them cannot be sent");
      if (any_order(c)) continue;
      const psplit_code code = check_edge(c, twin, u, v);
      if (code != PSPLIT_OK) return code;
    }
  for (uint32_t k = 0; k < p->n_order && !any_order(c); k++) {
    const psplit_code code = check_edge(c, twin, p->order_from[k], p->order_to[k]);
    if (code != PSPLIT_OK) return code;
  }
  return PSPLIT_OK;
}

static void add_memory(psplit_i_check *c) {
  const psplit_problem *p = c->p;
  const uint32_t n_stages = c->out->n_stages;
  for (uint32_t v = 0; v < p->n_nodes; v++) {
    const uint32_t s = c->stage[v];
    const uint64_t held = p->stash_1f1b ? n_stages - s : 1;
    if (p->weight_bytes) c->out->stages[s].memory_bytes += p->weight_bytes[v];
    if (p->activation_bytes)
      c->out->stages[s].memory_bytes = psplit_i_sat_add_u64(
        c->out->stages[s].memory_bytes, psplit_i_sat_mul_u64(held, p->activation_bytes[v]));
  }
  memset(c->mark, 0xff, n_stages * sizeof *c->mark);
  for (uint32_t g = 0; g < p->n_weights; g++)
    for (uint32_t k = p->weight_off[g]; k < p->weight_off[g + 1]; k++) {
      const uint32_t s = c->stage[p->weight_user[k]];
      if (c->mark[s] == g) continue;
      c->mark[s] = g;
      c->out->stages[s].memory_bytes += p->weight_group_bytes[g];
    }
}

static uint64_t parameter_bytes(const psplit_i_check *c, uint32_t s) {
  const psplit_problem *p = c->p;
  uint64_t held = 0;
  for (uint32_t v = 0; p->activation_bytes && v < p->n_nodes; v++)
    if (c->stage[v] == s)
      held = psplit_i_sat_add_u64(
        held,
        psplit_i_sat_mul_u64(p->stash_1f1b ? c->out->n_stages - s : 1, p->activation_bytes[v]));
  return c->out->stages[s].memory_bytes - held;
}

static psplit_code finish_stage(psplit_i_check *c, uint32_t s) {
  psplit_stage_load *load = &c->out->stages[s];
  const psplit_device *device = &c->p->devices[load->device];
  int64_t parts = load->compute_ns + load->recv_ns + load->send_ns;
  if (c->p->overlap) {
    parts = load->compute_ns > load->recv_ns ? load->compute_ns : load->recv_ns;
    if (load->send_ns > parts) parts = load->send_ns;
  }
  load->load_ns = parts;
  if (load->replicas > 1) {
    const double r = load->replicas;
    double sync = 0;
    if (c->options->sync_bytes_per_s > 0 && parameter_bytes(c, s) > 0)
      sync =
        4 * (r - 1) / r * (double)parameter_bytes(c, s) *
        (1e9 * c->p->ticks_per_unit / (c->options->micro_batches * c->options->sync_bytes_per_s));
    load->load_ns = (parts + load->replicas - 1) / load->replicas +
                    (sync < 0x1p60 ? (int64_t)sync : INT64_C(1) << 60);
  }
  c->out->comm_ns += load->recv_ns + load->send_ns;
  if (device->memory_bytes && load->memory_bytes > device->memory_bytes)
    return psplit_i_fail(c->diag, PSPLIT_MISMATCH,
                         "stage %" PRIu32 " holds %" PRIu64 " bytes, its device %" PRIu64, s,
                         load->memory_bytes, device->memory_bytes);
  return PSPLIT_OK;
}

static psplit_code assign_devices(psplit_i_check *c, const uint32_t *stage_device,
                                  const uint32_t *replicas) {
  const psplit_problem *p = c->p;
  uint32_t s = 0;
  for (uint32_t d = 0; !stage_device && d < p->n_devices; d++)
    for (uint32_t k = 0; k < p->devices[d].count; k++) c->out->stages[s++].device = d;
  for (s = 0; s < c->out->n_stages; s++) {
    if (stage_device && stage_device[s] >= p->n_devices)
      return psplit_i_fail(c->diag, PSPLIT_MISMATCH, "stage %" PRIu32 ": no such device", s);
    if (stage_device) c->out->stages[s].device = stage_device[s];
    c->out->stages[s].replicas = replicas ? replicas[s] : 1;
  }
  return PSPLIT_OK;
}

/* Devices in use, replicas included, are at most those there are, and in their order. */
static psplit_code check_devices(psplit_i_check *c) {
  const psplit_problem *p = c->p;
  for (uint32_t d = 0; d < p->n_devices; d++) {
    uint64_t used = 0;
    for (uint32_t s = 0; s < c->out->n_stages; s++)
      if (c->out->stages[s].device == d && c->out->stages[s].n_nodes > 0)
        used += c->out->stages[s].replicas;
    if (used > p->devices[d].count)
      return psplit_i_fail(c->diag, PSPLIT_MISMATCH,
                           "%" PRIu64 " devices of entry %" PRIu32 " in use, there are %" PRIu32,
                           used, d, p->devices[d].count);
  }
  for (uint32_t d = 0, s = 0; p->n_link_classes && d < p->n_devices; d++)
    for (uint32_t k = 0; k < p->devices[d].count; k++, s++)
      if (c->out->stages[s].device != d)
        return psplit_i_fail(c->diag, PSPLIT_MISMATCH,
                             "stage %" PRIu32 " is on entry %" PRIu32
                             ", but its links are of "
                             "entry %" PRIu32,
                             s, c->out->stages[s].device, d);
  uint32_t last = 0;
  for (uint32_t s = 0; !p->any_device_order && s < c->out->n_stages; s++) {
    if (c->out->stages[s].n_nodes == 0) continue;
    if (c->out->stages[s].device < last)
      return psplit_i_fail(c->diag, PSPLIT_MISMATCH, "stage %" PRIu32 ": device out of order", s);
    last = c->out->stages[s].device;
  }
  return PSPLIT_OK;
}

static psplit_code add_compute(psplit_i_check *c) {
  const psplit_problem *p = c->p;
  char name[32];
  for (uint32_t v = 0; v < p->n_nodes; v++) {
    psplit_stage_load *load = &c->out->stages[c->stage[v]];
    const int64_t ns = p->time_ns[(size_t)v * p->n_classes + p->devices[load->device].class_id];
    if (ns == PSPLIT_TIME_FORBIDDEN)
      return psplit_i_fail(c->diag, PSPLIT_MISMATCH, "node %s cannot run on its device",
                           psplit_i_node_name(p, v, name));
    load->compute_ns += ns;
    load->n_nodes++;
  }
  if (!c->options->require_nonempty) return PSPLIT_OK;
  memset(c->mark, 0, c->out->n_stages * sizeof *c->mark);
  for (uint32_t v = 0; v < p->n_nodes; v++)
    if (!p->node_flags || !(p->node_flags[v] & PSPLIT_NODE_AUXILIARY)) c->mark[c->stage[v]] = 1;
  for (uint32_t s = 0; s < c->out->n_stages; s++)
    if (!c->mark[s])
      return psplit_i_fail(c->diag, PSPLIT_MISMATCH, "stage %" PRIu32 " is empty", s);
  return PSPLIT_OK;
}

/* What the checker works on and fills, with the labels that it is given; false: no memory. */
static bool begin(psplit_i_check *c) {
  const psplit_problem *problem = c->p;
  const uint32_t n = problem->n_nodes, n_stages = psplit_problem_n_stages(problem);
  const bool hops = problem->next_hop && c->options->objective == PSPLIT_LATENCY;
  const bool sent = problem->next_hop && problem->message_ns;
  psplit_solution *out = c->out;
  out->n_nodes = n;
  out->n_stages = n_stages;
  out->solver = out->bound = "check";
  out->stage = malloc(n * sizeof *out->stage);
  out->chunk = calloc(n, sizeof *out->chunk);
  out->stages = calloc(n_stages, sizeof *out->stages);
  c->mark = malloc(n_stages * sizeof *c->mark);
  if (hops) c->hops = calloc((size_t)n_stages * n_stages, sizeof *c->hops);
  if (sent) c->sent = calloc((size_t)n_stages * n_stages, sizeof *c->sent);
  if (!out->stage || !out->chunk || !out->stages || !c->mark) return false;
  if ((hops && !c->hops) || (sent && !c->sent)) return false;
  memcpy(out->stage, c->stage, n * sizeof *out->stage);
  if (c->chunk) memcpy(out->chunk, c->chunk, n * sizeof *out->chunk);
  return true;
}

psplit_code psplit_partition_check(const psplit_problem *problem,
                                   const psplit_partition_options *given, const uint32_t *stage,
                                   const uint32_t *chunk, const uint32_t *stage_device,
                                   const uint32_t *replicas, psplit_diag *diag,
                                   psplit_solution **out_solution) {
  psplit_partition_options taken;
  const psplit_partition_options *options = &taken;
  psplit_partition_options_init(&taken);
  psplit_code code = PSPLIT_I_TAKE_OPTIONS(psplit_partition_options, given, &taken, diag);
  if (code != PSPLIT_OK) return code;
  code = psplit_i_problem_validate(problem, diag);
  if (code != PSPLIT_OK) return code;
  if (options->objective == PSPLIT_FILL_DRAIN)
    code = psplit_i_features_check(psplit_i_features_of(problem, options), diag);
  if (code != PSPLIT_OK) return code;
  psplit_i_check c = {problem, options, stage, chunk, calloc(1, sizeof *c.out),
                      diag,    NULL,    NULL,  NULL};
  bool *twin = malloc(problem->n_nodes);
  if (!c.out || !twin || !begin(&c)) PSPLIT_FAIL(psplit_i_nomem(diag));
  PSPLIT_TRY(check_labels(&c));
  PSPLIT_TRY(assign_devices(&c, stage_device, replicas));
  PSPLIT_TRY(check_together(&c, twin));
  PSPLIT_TRY(check_edges(&c, twin));
  PSPLIT_TRY(add_compute(&c));
  PSPLIT_TRY(check_devices(&c));
  PSPLIT_TRY(psplit_i_check_add_transfers(&c));
  add_memory(&c);
  for (uint32_t s = 0; s < c.out->n_stages; s++) {
    PSPLIT_TRY(finish_stage(&c, s));
    if (c.out->stages[s].load_ns > c.out->objective_ns)
      c.out->objective_ns = c.out->stages[s].load_ns;
  }
  if (options->objective == PSPLIT_LATENCY)
    PSPLIT_TRY(psplit_i_check_latency(&c, &c.out->objective_ns));
  if (options->objective == PSPLIT_CALL_LATENCY)
    PSPLIT_TRY(psplit_i_check_call_latency(&c, &c.out->objective_ns));
  if (options->objective == PSPLIT_FILL_DRAIN) c.out->objective_ns = psplit_i_check_directions(&c);
  c.out->gap_frac = c.out->objective_ns > 0 ? 1 : 0;
  *out_solution = c.out;
  c.out = NULL;
out:
  free(c.hops);
  free(c.sent);
  free(c.mark);
  free(twin);
  psplit_solution_destroy(c.out);
  return code;
}

void psplit_solution_destroy(psplit_solution *solution) {
  if (!solution) return;
  free(solution->stage);
  free(solution->chunk);
  free(solution->stages);
  free(solution);
}
