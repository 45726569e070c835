#include "segment_runs.h"

#include <stdlib.h>

static const int64_t NEVER = INT64_MAX / 4;

typedef struct rows {
  const psplit_problem *p;
  uint32_t n, n_devices, n_runs;
  int64_t *time; /* [n][n_devices] weighted; NEVER: the device does not run it */
  /* [n][n_devices] weighted cost of the tensors it receives from earlier segments */
  int64_t *recv, *send;
  int64_t *best; /* [n][n_runs][n_devices] least cost up to the segment, with run + 1 runs */
  uint8_t *from; /* the device of the segment before */
} rows;

static int64_t *at(int64_t *table, const rows *r, uint32_t segment, uint32_t device) {
  return &table[(size_t)segment * r->n_devices + device];
}

static size_t state(const rows *r, uint32_t segment, uint32_t run, uint32_t device) {
  return ((size_t)segment * r->n_runs + run) * r->n_devices + device;
}

static void add(int64_t *sum, int64_t ns, uint32_t weight) {
  const int64_t weighted = psplit_i_sat_mul_i64(ns, (int64_t)weight);
  *sum = psplit_i_sat_add_i64(*sum, weighted);
  if (*sum > NEVER) *sum = NEVER;
}

static void sum_up(rows *r, const uint32_t *segment, const uint32_t *weight) {
  const psplit_problem *p = r->p;
  for (uint32_t v = 0; v < p->n_nodes; v++)
    for (uint32_t d = 0; d < r->n_devices; d++) {
      const int64_t ns = p->time_ns[(size_t)v * p->n_classes + p->devices[d].class_id];
      int64_t *sum = at(r->time, r, segment[v], d);
      if (ns == PSPLIT_TIME_FORBIDDEN)
        *sum = NEVER;
      else
        add(sum, ns, weight[d]);
    }
  for (uint32_t e = 0; e < p->n_nets; e++) {
    /* the last segment that has the tensor; each receives it once */
    uint32_t last = segment[p->net_producer[e]];
    for (uint32_t k = p->net_off[e]; k < p->net_off[e + 1]; k++) {
      const uint32_t to = segment[p->net_consumer[k]];
      if (to <= last) continue;
      last = to;
      for (uint32_t d = 0; d < r->n_devices; d++) {
        const size_t row = (size_t)e * p->n_classes + p->devices[d].class_id;
        add(at(r->recv, r, to, d), p->net_recv_ns[row], weight[d]);
        add(at(r->send, r, to, d), p->net_send_ns[row], weight[d]);
      }
    }
  }
}

/* The least cost with segment i on `device` in the given run, where run 0 is the first. */
static void extend(rows *r, uint32_t i, uint32_t run, uint32_t device) {
  const int64_t own = *at(r->time, r, i, device);
  const size_t here = state(r, i, run, device);
  r->best[here] = NEVER;
  if (own >= NEVER) return;
  if (i == 0) {
    if (run == 0) r->best[here] = own;
    return;
  }
  for (uint32_t d = 0; d < r->n_devices; d++) {
    if (d != device && run == 0) continue;
    int64_t ns = r->best[state(r, i - 1, d == device ? run : run - 1, d)];
    if (d != device)
      ns = psplit_i_sat_add_i64(
        ns, psplit_i_sat_add_i64(*at(r->send, r, i, d), *at(r->recv, r, i, device)));
    ns = psplit_i_sat_add_i64(ns, own);
    if (ns >= r->best[here]) continue;
    r->best[here] = ns;
    r->from[here] = (uint8_t)d;
  }
}

static bool trace_back(const rows *r, uint32_t *out_device) {
  uint32_t run = 0, device = 0;
  int64_t least = NEVER;
  for (uint32_t k = 0; k < r->n_runs; k++)
    for (uint32_t d = 0; d < r->n_devices; d++)
      if (r->best[state(r, r->n - 1, k, d)] < least) {
        least = r->best[state(r, r->n - 1, k, d)];
        run = k;
        device = d;
      }
  for (uint32_t i = r->n; least < NEVER && i-- > 0;) {
    out_device[i] = device;
    const uint32_t before = r->from[state(r, i, run, device)];
    if (i && before != device) run--;
    device = before;
  }
  return least < NEVER;
}

psplit_code psplit_i_join_segments(const psplit_problem *problem, const psplit_i_segment_row *row,
                                   psplit_diag *diag, uint32_t *out_device, bool *out_found) {
  enum { MOST_DEVICES = 16, MOST_RUNS = 128 };
  const uint32_t n = row->n;
  rows r = {.p = problem, .n = n, .n_devices = problem->n_devices, .n_runs = row->most_runs};
  *out_found = false;
  if (r.n_devices > MOST_DEVICES) return PSPLIT_OK;
  if (r.n_runs > n) r.n_runs = n;
  if (r.n_runs > MOST_RUNS) r.n_runs = MOST_RUNS;
  const size_t n_rows = (size_t)n * r.n_devices, n_states = n_rows * r.n_runs;
  r.time = calloc(n_rows, sizeof *r.time);
  r.recv = calloc(n_rows, sizeof *r.recv);
  r.send = calloc(n_rows, sizeof *r.send);
  r.best = calloc(n_states, sizeof *r.best);
  r.from = calloc(n_states, sizeof *r.from);
  const bool good = r.time && r.recv && r.send && r.best && r.from;
  if (good) {
    sum_up(&r, row->segment, row->weight);
    for (uint32_t i = 0; i < n; i++)
      for (uint32_t run = 0; run < r.n_runs; run++)
        for (uint32_t d = 0; d < r.n_devices; d++) extend(&r, i, run, d);
    *out_found = trace_back(&r, out_device);
  }
  free(r.time);
  free(r.recv);
  free(r.send);
  free(r.best);
  free(r.from);
  return good ? PSPLIT_OK : psplit_i_nomem(diag);
}
