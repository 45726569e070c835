/* The cheapest crossing of every bucket of the weight axis, by minimum cuts. A net counts on one
 * side only: behind J when all its pins are in every I, before I when all are outside every J; so
 * no net is counted twice in a stage.
 *
 * A cut adds up what is received and what is sent: a net of the backward pass crosses J the other
 * way. With overlap a load is the largest of the two, not their sum, so there only nets that run
 * ahead count: what a stage receives over J, and what it sends over I. */
#include "flow.h"
#include "instance.h"
#include "problem.h"
#include "team.h"
#include "weight_axis.h"
#include "weight_axis_inside.h"

#include <stdlib.h>

typedef struct cutter {
  psplit_i_flow flow;
  uint32_t *place;        /* [n] flow node of a free cluster */
  uint64_t *nets;         /* threshold << 32 | net, sorted */
  psplit_i_budget budget; /* of the bucket */
  bool failed;
} cutter;

enum {
  SOURCE = 0,
  SINK = 1,
  BATCH = 32 /* buckets that share what is left of the budget */
};

static int compare_u64(const void *a, const void *b) {
  const uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;
  return x < y ? -1 : x > y;
}

static uint32_t place_of(const psplit_i_weight_axis_build *x, const cutter *c, uint32_t q,
                         uint32_t cluster) {
  if (q >= x->tin[cluster]) return SOURCE;
  if (q <= x->tout[cluster]) return SINK;
  return c->place[cluster];
}

static void arc(cutter *c, uint32_t from, uint32_t to, int64_t cap) {
  if (to == SOURCE || from == SINK) return;
  if (!psplit_i_flow_arc_add(&c->flow, from, to, cap)) c->failed = true;
}

/* `ahead` is paid when the producer is in the downset and a consumer is not, `behind` when it is
 * the other way round. */
static void add_net(const psplit_i_weight_axis_build *x, cutter *c, uint32_t q, uint32_t e,
                    int64_t ahead, int64_t behind) {
  const uint32_t *pins = x->instance->net_pin + x->instance->net_off[e];
  const uint32_t n_pins = x->instance->net_off[e + 1] - x->instance->net_off[e];
  const uint32_t producer = place_of(x, c, q, pins[0]);
  psplit_i_spend(&c->budget, 2 * (uint64_t)n_pins);
  if (ahead > 0 && producer != SINK) {
    const uint32_t fan = n_pins == 2 ? producer : psplit_i_flow_node(&c->flow);
    if (fan == PSPLIT_NONE) {
      c->failed = true;
      return;
    }
    if (n_pins > 2) arc(c, producer, fan, ahead);
    for (uint32_t k = 1; k < n_pins; k++)
      arc(c, fan, place_of(x, c, q, pins[k]), n_pins == 2 ? ahead : PSPLIT_I_INF);
  }
  if (behind > 0 && !x->instance->net_forward[e] && producer != SOURCE) {
    const uint32_t fan = psplit_i_flow_node(&c->flow);
    if (fan == PSPLIT_NONE) {
      c->failed = true;
      return;
    }
    arc(c, fan, producer, behind);
    for (uint32_t k = 1; k < n_pins; k++) arc(c, place_of(x, c, q, pins[k]), fan, PSPLIT_I_INF);
  }
}

static void cut_bucket(const psplit_i_weight_axis_build *x, cutter *c, uint32_t q, bool incoming) {
  const psplit_i_instance *instance = x->instance;
  const psplit_i_weight_axis *axis = x->out;
  psplit_i_flow_reset(&c->flow);
  if (psplit_i_flow_node(&c->flow) != SOURCE || psplit_i_flow_node(&c->flow) != SINK)
    c->failed = true;
  for (uint32_t k = x->free_off[q]; k < x->free_off[q + 1]; k++)
    if ((c->place[x->free_cluster[k]] = psplit_i_flow_node(&c->flow)) == PSPLIT_NONE)
      c->failed = true;
  if (c->failed) return;
  psplit_i_spend(&c->budget, 4 * (uint64_t)(x->free_off[q + 1] - x->free_off[q]) +
                               8 * (uint64_t)(x->near_off[q + 1] - x->near_off[q]));
  for (uint32_t k = x->free_off[q]; k < x->free_off[q + 1]; k++) {
    const uint32_t i = x->free_cluster[k];
    psplit_i_spend(&c->budget, 2 * (uint64_t)(instance->pred_off[i + 1] - instance->pred_off[i]));
    for (uint32_t l = instance->pred_off[i]; l < instance->pred_off[i + 1]; l++)
      arc(c, c->place[i], place_of(x, c, q, instance->pred[l]), PSPLIT_I_INF);
  }
  /* Nets by the partner bucket from which on they count, nearest first. */
  uint32_t n_nets = 0;
  for (uint32_t k = x->near_off[q]; k < x->near_off[q + 1]; k++) {
    const uint32_t e = x->near_net[k];
    const uint32_t partner = incoming ? x->net_in[e] : x->net_out[e];
    const int64_t gap =
      incoming ? axis->low[partner] - axis->high[q] : axis->low[q] - axis->high[partner];
    if (gap > x->reach) continue;
    c->nets[n_nets++] = (uint64_t)(incoming ? partner : q - partner) << 32 | e;
  }
  qsort(c->nets, n_nets, sizeof *c->nets, compare_u64);
  uint32_t n_groups = 0;
  for (uint32_t k = 0; k < n_nets; k++)
    n_groups += k == 0 || c->nets[k] >> 32 != c->nets[k - 1] >> 32;
  const uint32_t stride = n_groups / PSPLIT_I_MAX_STEPS + 1;
  psplit_i_crossing_step *steps = (incoming ? x->in : x->outgoing) + (size_t)q * PSPLIT_I_MAX_STEPS;
  uint8_t n_steps = 0;
  int64_t value = 0;
  for (uint32_t k = 0; k < n_nets && !psplit_i_expired(&c->budget);) {
    uint32_t threshold = 0;
    for (uint32_t taken = 0; k < n_nets; k++) {
      const uint32_t here = (uint32_t)(c->nets[k] >> 32);
      if ((taken == 0 || here != threshold) && taken++ == stride) break;
      threshold = here;
      const uint32_t e = (uint32_t)c->nets[k];
      add_net(x, c, q, e, incoming ? x->cost_in[e] : x->cost_out[e],
              instance->overlap ? 0
              : incoming        ? x->cost_out[e]
                                : x->cost_in[e]);
    }
    const int64_t before = value;
    if (!psplit_i_flow_run(&c->flow, SOURCE, SINK, x->limit + 1, &c->budget, &value))
      c->failed = true;
    if (value > before)
      steps[n_steps++] = (psplit_i_crossing_step){incoming ? threshold : q - threshold, value};
  }
  *(incoming ? &x->n_in[q] : &x->n_outgoing[q]) = n_steps;
}

static psplit_code cheapest_costs(psplit_i_weight_axis_build *x) {
  const psplit_i_instance *instance = x->instance;
  x->cost_in = PSPLIT_NEW(&x->arena, int64_t, instance->n_nets);
  x->cost_out = PSPLIT_NEW(&x->arena, int64_t, instance->n_nets);
  if (!x->cost_in || !x->cost_out) return PSPLIT_NOMEM;
  bool any = false;
  for (uint32_t t = 0; t < instance->n_types; t++) {
    if (instance->problem->devices[t].free_comm || x->automaton->count[t] == 0) continue;
    for (uint32_t e = 0; e < instance->n_nets; e++) {
      const int64_t recv = instance->recv[(size_t)t * instance->n_nets + e];
      const int64_t send = instance->send[(size_t)t * instance->n_nets + e];
      if (!any || recv < x->cost_in[e]) x->cost_in[e] = recv;
      if (!any || send < x->cost_out[e]) x->cost_out[e] = send;
    }
    any = true;
  }
  return PSPLIT_OK;
}

psplit_code psplit_i_weight_axis_cut(psplit_i_weight_axis_build *x, int n_threads) {
  const uint32_t n_buckets = x->out->n_buckets;
  x->in = psplit_i_arena_array(&x->arena, (size_t)n_buckets * PSPLIT_I_MAX_STEPS, sizeof *x->in);
  x->outgoing =
    psplit_i_arena_array(&x->arena, (size_t)n_buckets * PSPLIT_I_MAX_STEPS, sizeof *x->outgoing);
  x->n_in = PSPLIT_NEW(&x->arena, uint8_t, n_buckets);
  x->n_outgoing = PSPLIT_NEW(&x->arena, uint8_t, n_buckets);
  if (!x->in || !x->outgoing || !x->n_in || !x->n_outgoing) return PSPLIT_NOMEM;
  bool failed = cheapest_costs(x) != PSPLIT_OK;
  uint64_t spent[BATCH];
#pragma omp parallel num_threads(n_threads) reduction(|| : failed)
  {
    cutter c = {0};
    c.place = malloc((x->instance->n + 1) * sizeof *c.place);
    c.nets = malloc(((size_t)x->instance->n_nets + 1) * sizeof *c.nets);
    c.failed = !c.place || !c.nets;
    for (uint32_t first = 1; first + 1 < n_buckets; first += BATCH) {
      const uint32_t end = n_buckets - 1 - first < BATCH ? n_buckets - 1 : first + BATCH;
#pragma omp for schedule(dynamic, 4)
      for (uint32_t q = first; q < end; q++) {
        /* A bucket without crossings bounds less, but holds. */
        c.budget = psplit_i_budget_share(x->budget, BATCH);
        const bool may = !psplit_i_expired(&c.budget);
        if (may && !c.failed) cut_bucket(x, &c, q, true);
        if (may && !c.failed) cut_bucket(x, &c, q, false);
        spent[q - first] = c.budget.spent;
      }
#pragma omp single
      for (uint32_t q = first; q < end; q++) psplit_i_spend(x->budget, spent[q - first]);
    }
    failed = c.failed;
    psplit_i_flow_fini(&c.flow);
    free(c.place);
    free(c.nets);
  }
  return failed ? PSPLIT_NOMEM : PSPLIT_OK;
}
