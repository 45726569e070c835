#include <stdlib.h>

#include "check_inside.h"

/* Latency: a stage starts when all stages that feed it have ended. Stage numbers are a topological
 * order of the stages. Counting by bucket keeps this O(pins). */
psplit_code psplit_i_check_latency(psplit_i_check *c, int64_t *out_ns) {
  const psplit_problem *p = c->p;
  const uint32_t n_stages = c->out->n_stages;
  uint32_t *off = calloc((size_t)n_stages + 1, sizeof *off);
  uint32_t *nets = calloc((size_t)p->n_nets + p->n_order + 1, sizeof *nets);
  int64_t *ready = calloc(n_stages, sizeof *ready);
  psplit_code code = PSPLIT_OK;
  if (!off || !nets || !ready) {
    code = psplit_i_nomem(c->diag);
    goto out;
  }
  for (uint32_t e = 0; e < p->n_nets; e++) off[c->stage[p->net_producer[e]]]++;
  for (uint32_t k = 0; k < p->n_order; k++) off[c->stage[p->order_from[k]]]++;
  uint32_t sum = 0;
  for (uint32_t s = 0; s <= n_stages; s++) {
    const uint32_t n = s < n_stages ? off[s] : 0;
    off[s] = sum;
    sum += n;
  }
  for (uint32_t e = 0; e < p->n_nets; e++) nets[off[c->stage[p->net_producer[e]]]++] = e;
  for (uint32_t k = 0; k < p->n_order; k++) nets[off[c->stage[p->order_from[k]]]++] = p->n_nets + k;
  int64_t last = 0;
  uint32_t at = 0;
  for (uint32_t s = 0; s < n_stages; s++) {
    const int64_t end = ready[s] + c->out->stages[s].load_ns;
    if (end > last) last = end;
    for (uint32_t t = s + 1; c->hops && t < n_stages; t++)
      if (c->hops[(size_t)s * n_stages + t] && end > ready[t]) ready[t] = end;
    for (; at < off[s]; at++) {
      const uint32_t e = nets[at];
      const uint32_t from = e < p->n_nets ? p->net_off[e] : 0;
      const uint32_t to = e < p->n_nets ? p->net_off[e + 1] : 1;
      for (uint32_t k = from; k < to; k++) {
        const uint32_t t =
          c->stage[e < p->n_nets ? p->net_consumer[k] : p->order_to[e - p->n_nets]];
        if (t != s && end > ready[t]) ready[t] = end;
      }
    }
  }
  *out_ns = last;
out:
  free(off);
  free(nets);
  free(ready);
  return code;
}

/* One edge u -> v of the latency of calls: whether v, or all of its stage, has to wait longer. */
static bool wait_for(const psplit_i_check *c, const int64_t *end, int64_t *ready, uint32_t u,
                     uint32_t v) {
  const bool call_u = !c->p->devices[c->out->stages[c->stage[u]].device].free_comm;
  const bool call_v = !c->p->devices[c->out->stages[c->stage[v]].device].free_comm;
  if (call_u && call_v && c->stage[u] == c->stage[v]) return false;
  int64_t *of = call_v ? &ready[c->stage[v]] : &ready[c->out->n_stages + v];
  if (end[u] <= *of) return false;
  *of = end[u];
  return true;
}

/* Latency of calls: accelerators start when all that they read from elsewhere has ended, nodes on
 * CPUs each by itself. Relaxes all edges until nothing waits longer, once for each unit at most:
 * what goes on waits for itself. */
psplit_code psplit_i_check_call_latency(psplit_i_check *c, int64_t *out_ns) {
  const psplit_problem *p = c->p;
  int64_t *ready = calloc((size_t)c->out->n_stages + p->n_nodes, sizeof *ready);
  int64_t *end = calloc((size_t)p->n_nodes + 1, sizeof *end);
  psplit_code code = ready && end ? PSPLIT_OK : psplit_i_nomem(c->diag);
  bool waits = true;
  for (uint32_t round = 0; code == PSPLIT_OK && waits; round++) {
    waits = false;
    *out_ns = 0;
    for (uint32_t v = 0; v < p->n_nodes; v++) {
      const uint32_t s = c->stage[v], device = c->out->stages[s].device;
      end[v] = p->devices[device].free_comm
                 ? ready[c->out->n_stages + v] +
                     p->time_ns[(size_t)v * p->n_classes + p->devices[device].class_id]
                 : ready[s] + c->out->stages[s].load_ns;
      if (end[v] > *out_ns) *out_ns = end[v];
    }
    for (uint32_t e = 0; e < p->n_nets; e++)
      for (uint32_t k = p->net_off[e]; k < p->net_off[e + 1]; k++)
        waits |= wait_for(c, end, ready, p->net_producer[e], p->net_consumer[k]);
    for (uint32_t k = 0; k < p->n_order; k++)
      waits |= wait_for(c, end, ready, p->order_from[k], p->order_to[k]);
    if (waits && round > p->n_nodes)
      code = psplit_i_fail(c->diag, PSPLIT_MISMATCH, "devices wait for each other in a circle");
  }
  free(ready);
  free(end);
  return code;
}
