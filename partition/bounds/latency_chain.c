/* A bound on the latency of contiguous splits, from chains of clusters each of which needs the one
 * before.
 *
 * The stages that hold clusters of a chain run one after the other, so the latency is at least the
 * sum of their loads. A stage that holds links i .. j-1 holds what lies between them, for stages
 * are convex, and pays for the tensors by which other links reach it or are reached. Where a chain
 * is cut, between links k-1 and k, look besides at what lies in that gap and at tensors made there:
 * the stage that ends with link k-1 pays at least a minimum cut of the gap, the one that begins
 * with link k another, and the longest path through the gap is run by some stage of the sequence.
 * Nothing counts twice: gaps are disjoint, and so are the tensors made in them. A program over
 * links and device states, from the last link backwards, adds up the cheapest cover; memory limits
 * how much of the chain a stage can hold.
 *
 * On a pool of devices a link stands alone: nothing that lies between it and others is there with
 * it, and it pays for no tensors.
 *
 * Two chains are tried: a longest path, and those of its clusters that everything between its ends
 * passes through, whose gaps hold whole blocks and the tensors around their branches. */
#include <string.h>

#include "automaton.h"
#include "bounds.h"
#include "budget.h"
#include "flow.h"
#include "instance.h"
#include "latency_chain.h"
#include "node_cut.h"
#include "problem.h"

static const uint64_t MAX_WORK = UINT64_C(200000000); /* operations of one program */
enum { MAX_GAP = 5000 };                              /* clusters; larger gaps are not cut */

typedef struct chain {
  const psplit_i_instance *instance;
  const psplit_i_automaton *automaton;
  psplit_i_arena arena;
  psplit_i_flow flow;
  psplit_i_budget *budget;
  uint32_t pool;                /* type of device, or NONE */
  int64_t *send, *recv;         /* [n_nets] least over the types that pay */
  int64_t *gap_send, *gap_recv; /* [n_nets] the same, 0 for nets that do not count in gaps */
  uint32_t *link, n_links;
  /* Of link k and the gap in front of it (0 for the first): */
  int64_t *time;          /* [n_types * n_links] of the link and all of the gap, on a type */
  uint64_t *bytes;        /* [n_links] of the same */
  int64_t *path;          /* [n_links] least time of the longest path through the gap */
  int64_t *leave, *enter; /* [n_links] least load that a cut here adds behind and in front of it */
  int64_t outside;        /* longest paths to the first link and from the last */
  /* Nets from link to link that jump over others count by their ends, all other nets in gaps: */
  uint32_t *link_of; /* [n] the cluster's number in the chain, or NONE */
  uint32_t *reach;   /* [n_nets] the last link that reads such a net; 0: no such net */
  uint32_t *stamp;   /* [n_nets] 1 + first link of the last stage that received it */
  /* Clusters between links that are not neighbours, by the last link they lie in front of: */
  uint32_t *side_off, *side; /* [n_links + 1], clusters */
  uint32_t *link_before;     /* [n] the last link a cluster needs, or NONE */
  /* Scratch, by cluster: */
  int64_t *length;  /* longest path up to the cluster, with it */
  int64_t *weight;  /* what the cut of a gap pays for a cluster */
  uint32_t *before; /* the cluster before it on that path, or NONE */
  uint32_t *local;  /* its number in the gap */
  uint32_t *inside; /* [n] the gap's clusters */
  bool *reached;
} chain;

static bool init(chain *c) {
  const size_t n = c->instance->n;
  psplit_i_arena *a = &c->arena;
  c->send = PSPLIT_NEW(a, int64_t, c->instance->n_nets);
  c->recv = PSPLIT_NEW(a, int64_t, c->instance->n_nets);
  c->gap_send = PSPLIT_NEW(a, int64_t, c->instance->n_nets);
  c->gap_recv = PSPLIT_NEW(a, int64_t, c->instance->n_nets);
  c->link = PSPLIT_NEW(a, uint32_t, n);
  c->time = PSPLIT_NEW(a, int64_t, n * c->instance->n_types);
  c->bytes = PSPLIT_NEW(a, uint64_t, n);
  c->path = PSPLIT_NEW(a, int64_t, n);
  c->leave = PSPLIT_NEW(a, int64_t, n);
  c->enter = PSPLIT_NEW(a, int64_t, n);
  c->length = PSPLIT_NEW(a, int64_t, n);
  c->weight = PSPLIT_NEW(a, int64_t, n);
  c->before = PSPLIT_NEW(a, uint32_t, n);
  c->local = PSPLIT_NEW(a, uint32_t, n);
  c->inside = PSPLIT_NEW(a, uint32_t, n);
  c->reached = PSPLIT_NEW(a, bool, n);
  c->link_of = PSPLIT_NEW(a, uint32_t, n);
  c->reach = PSPLIT_NEW(a, uint32_t, c->instance->n_nets);
  c->stamp = PSPLIT_NEW(a, uint32_t, c->instance->n_nets);
  c->side_off = PSPLIT_NEW(a, uint32_t, n + 2);
  c->side = PSPLIT_NEW(a, uint32_t, n);
  c->link_before = PSPLIT_NEW(a, uint32_t, n);
  if (!c->link_of || !c->reach || !c->stamp || !c->side_off || !c->side || !c->link_before)
    return false;
  return c->send && c->recv && c->gap_send && c->gap_recv && c->link && c->time && c->bytes &&
         c->path && c->leave && c->enter && c->length && c->weight && c->before && c->local &&
         c->inside && c->reached;
}

/* Longest paths of least times to the clusters of [first, last] that `reached` allows (NULL:
 * all). */
static void longest_paths(chain *c, uint32_t first, uint32_t last, const bool *reached) {
  const psplit_i_instance *instance = c->instance;
  for (uint32_t i = first; i <= last; i++) {
    c->length[i] = 0;
    c->before[i] = PSPLIT_NONE;
    if (reached && !reached[i]) continue;
    for (uint32_t k = instance->pred_off[i]; k < instance->pred_off[i + 1]; k++) {
      const uint32_t p = instance->pred[k];
      if (p < first || (reached && !reached[p])) continue;
      if (c->before[i] == PSPLIT_NONE || c->length[p] > c->length[i]) {
        c->length[i] = c->length[p];
        c->before[i] = p;
      }
    }
    c->length[i] += c->automaton->min_time[i];
  }
}

/* The chain of all clusters of a longest path. */
static void take_longest_path(chain *c) {
  const uint32_t n = c->instance->n;
  longest_paths(c, 0, n - 1, NULL);
  uint32_t last = 0;
  for (uint32_t i = 1; i < n; i++)
    if (c->length[i] > c->length[last]) last = i;
  c->n_links = 0;
  for (uint32_t i = last; i != PSPLIT_NONE; i = c->before[i]) c->n_links++;
  uint32_t k = c->n_links;
  for (uint32_t i = last; i != PSPLIT_NONE; i = c->before[i]) c->link[--k] = i;
}

/* reached[i]: cluster i lies on a path from `first` to `last`, ends included. */
static void mark_between(chain *c, uint32_t first, uint32_t last) {
  const psplit_i_instance *instance = c->instance;
  for (uint32_t i = first; i <= last; i++) {
    c->reached[i] = i == first;
    for (uint32_t k = instance->pred_off[i]; k < instance->pred_off[i + 1]; k++)
      c->reached[i] |= instance->pred[k] >= first && c->reached[instance->pred[k]];
  }
  for (uint32_t i = last; i-- > first;) {
    bool leads = false;
    for (uint32_t k = instance->succ_off[i]; k < instance->succ_off[i + 1]; k++)
      leads |= instance->succ[k] <= last && c->reached[instance->succ[k]];
    c->reached[i] &= leads;
  }
}

/* Keeps the links that are comparable with everything between the first and the last: no edge
 * between clusters there jumps over them. */
static void keep_separators(chain *c) {
  const psplit_i_instance *instance = c->instance;
  const uint32_t first = c->link[0], last = c->link[c->n_links - 1];
  mark_between(c, first, last);
  uint32_t *furthest = c->local; /* the last successor of any cluster before */
  uint32_t furthest_so_far = first, n = 0;
  for (uint32_t i = first; i <= last; i++) {
    furthest[i] = furthest_so_far;
    for (uint32_t k = instance->succ_off[i]; c->reached[i] && k < instance->succ_off[i + 1]; k++) {
      const uint32_t s = instance->succ[k];
      if (s <= last && c->reached[s] && s > furthest_so_far) furthest_so_far = s;
    }
  }
  for (uint32_t k = 0; k < c->n_links; k++)
    if (furthest[c->link[k]] <= c->link[k]) c->link[n++] = c->link[k];
  c->n_links = n;
}

/* Least load of a set with `with` and without `without`, of what lies in the gap. */
static bool cut_gap(chain *c, uint32_t n, uint32_t with, uint32_t without, int64_t *out_value) {
  const psplit_i_cut_costs costs = {.cluster = c->inside,
                                    .local = c->local,
                                    .n = n,
                                    .weight = c->weight,
                                    .send = c->gap_send,
                                    .recv = c->gap_recv};
  *out_value = 0;
  return psplit_i_set_network(&c->flow, c->instance, &costs) &&
         psplit_i_flow_arc_add(&c->flow, c->local[without], n, PSPLIT_I_INF) &&
         psplit_i_flow_run(&c->flow, c->local[with], n, PSPLIT_I_INF, c->budget, out_value);
}

/* Measures link k and the gap in front of it. False: out of memory. */
static bool measure(chain *c, uint32_t k) {
  const psplit_i_instance *instance = c->instance;
  const uint32_t last = c->link[k], first = k ? c->link[k - 1] : last;
  uint32_t n = 0;
  c->leave[k] = c->enter[k] = c->path[k] = 0;
  c->bytes[k] = 0;
  for (uint32_t t = 0; t < instance->n_types; t++) c->time[(size_t)t * c->n_links + k] = 0;
  mark_between(c, first, last);
  psplit_i_spend(c->budget, 4 * (uint64_t)(last - first + 1) + c->instance->succ_off[last + 1] -
                              c->instance->succ_off[first]);
  for (uint32_t i = first; i <= last; i++) {
    if (!c->reached[i]) continue;
    c->local[i] = n;
    c->inside[n++] = i;
    if (i == first && k) continue; /* of the link before */
    for (uint32_t t = 0; t < instance->n_types; t++) {
      int64_t *time = &c->time[(size_t)t * c->n_links + k];
      const int64_t w = instance->w[(size_t)t * instance->n + i];
      *time = w >= PSPLIT_I_INF || *time >= PSPLIT_I_INF ? PSPLIT_I_INF : *time + w;
    }
    c->bytes[k] = psplit_i_sat_add_u64(c->bytes[k], instance->weight_bytes[i]);
  }
  bool ok = true;
  if (k) {
    longest_paths(c, first, last, c->reached);
    c->path[k] = c->length[last] - c->automaton->min_time[first] - c->automaton->min_time[last];
    for (uint32_t i = 0; i < n; i++) c->weight[c->inside[i]] = c->automaton->min_time[c->inside[i]];
    for (uint32_t i = last; i != PSPLIT_NONE; i = c->before[i]) c->weight[i] = 0;
    ok = instance->overlap || n > MAX_GAP ||
         (cut_gap(c, n, first, last, &c->leave[k]) && cut_gap(c, n, last, first, &c->enter[k]));
  }
  for (uint32_t i = 0; i < n; i++) c->local[c->inside[i]] = PSPLIT_NONE;
  return ok;
}

/* Longest paths before the first link and behind the last. */
static void measure_outside(chain *c) {
  const psplit_i_instance *instance = c->instance;
  const uint32_t first = c->link[0], last = c->link[c->n_links - 1];
  longest_paths(c, 0, instance->n - 1, NULL);
  c->outside = c->length[first] - c->automaton->min_time[first];
  int64_t most = 0, *down = c->length;
  for (uint32_t i = instance->n; i-- > last;) {
    down[i] = 0;
    for (uint32_t k = instance->succ_off[i]; k < instance->succ_off[i + 1]; k++)
      if (down[instance->succ[k]] > down[i]) down[i] = down[instance->succ[k]];
    if (i == last) most = down[i];
    down[i] += c->automaton->min_time[i];
  }
  c->outside += most;
}

static void relax(int64_t *cell, int64_t value) {
  if (value < *cell) *cell = value;
}

/* Finds nets that jump over links, and clusters between links that are not neighbours. */
static void find_jumps(chain *c) {
  const psplit_i_instance *instance = c->instance;
  uint32_t *after = c->local; /* the first link that needs a cluster, or NONE */
  memset(c->link_of, 0xff, instance->n * sizeof *c->link_of);
  memset(c->reach, 0, instance->n_nets * sizeof *c->reach);
  memset(c->stamp, 0, instance->n_nets * sizeof *c->stamp);
  memset(c->side_off, 0, (c->n_links + 2) * sizeof *c->side_off);
  for (uint32_t k = 0; k < c->n_links; k++) c->link_of[c->link[k]] = k;
  for (uint32_t e = 0; e < instance->n_nets; e++) {
    const uint32_t from = c->link_of[instance->net_pin[instance->net_off[e]]];
    for (uint32_t k = instance->net_off[e] + 1; from != PSPLIT_NONE && k < instance->net_off[e + 1];
         k++) {
      const uint32_t to = c->link_of[instance->net_pin[k]];
      if (to != PSPLIT_NONE && to > from + 1 && to > c->reach[e]) c->reach[e] = to;
    }
  }
  for (uint32_t e = 0; e < instance->n_nets; e++) {
    c->gap_send[e] = c->reach[e] ? 0 : c->send[e];
    c->gap_recv[e] = c->reach[e] ? 0 : c->recv[e];
  }
  for (uint32_t i = 0; i < instance->n; i++) {
    uint32_t last = c->link_of[i];
    for (uint32_t k = instance->pred_off[i]; k < instance->pred_off[i + 1]; k++) {
      const uint32_t p = c->link_before[instance->pred[k]];
      if (p != PSPLIT_NONE && (last == PSPLIT_NONE || p > last)) last = p;
    }
    c->link_before[i] = last;
  }
  for (uint32_t i = instance->n; i-- > 0;) {
    after[i] = c->link_of[i];
    for (uint32_t k = instance->succ_off[i]; k < instance->succ_off[i + 1]; k++)
      if (after[instance->succ[k]] < after[i]) after[i] = after[instance->succ[k]];
  }
  for (int pass = 0; pass < 2; pass++) { /* counts, then places */
    for (uint32_t i = 0; i < instance->n; i++) {
      if (after[i] == PSPLIT_NONE || c->link_before[i] == PSPLIT_NONE ||
          after[i] <= c->link_before[i] + 1)
        continue;
      if (pass == 0)
        c->side_off[after[i] + 2]++;
      else
        c->side[c->side_off[after[i] + 1]++] = i;
    }
    for (uint32_t k = 0; pass == 0 && k < c->n_links; k++) c->side_off[k + 2] += c->side_off[k + 1];
  }
  memset(c->local, 0xff, instance->n * sizeof *c->local);
}

/* A stage of links first .. last that grows at its end. */
typedef struct segment {
  uint32_t first;
  int64_t *time; /* [n_types] */
  int64_t comm;  /* of nets that jump */
  uint64_t bytes;
} segment;

static void add_time(const chain *c, segment *s, const int64_t *time, size_t stride) {
  for (uint32_t t = 0; t < c->instance->n_types; t++) {
    const int64_t more = time[t * stride];
    s->time[t] =
      more >= PSPLIT_I_INF || s->time[t] >= PSPLIT_I_INF ? PSPLIT_I_INF : s->time[t] + more;
  }
}

static void add_cluster(const chain *c, segment *s, uint32_t cluster) {
  add_time(c, s, c->instance->w + cluster, c->instance->n);
  s->bytes = psplit_i_sat_add_u64(s->bytes, c->instance->weight_bytes[cluster]);
}

static void add_link(chain *c, segment *s, uint32_t k) {
  const psplit_i_instance *instance = c->instance;
  const uint32_t cluster = c->link[k];
  if (k == s->first) {
    add_cluster(c, s, cluster);
  } else {
    add_time(c, s, c->time + k, c->n_links);
    s->bytes = psplit_i_sat_add_u64(s->bytes, c->bytes[k]);
    for (uint32_t i = c->side_off[k]; i < c->side_off[k + 1]; i++)
      if (c->link_before[c->side[i]] >= s->first) add_cluster(c, s, c->side[i]);
  }
  for (uint32_t l = instance->inc_off[cluster];
       l < instance->inc_off[cluster + 1] && !instance->overlap; l++) {
    const uint32_t e = instance->inc[l] >> 1;
    if (!c->reach[e]) continue;
    if (instance->inc[l] & 1) {
      s->comm += c->send[e];
    } else if (c->link_of[instance->net_pin[instance->net_off[e]]] >= s->first) {
      if (c->reach[e] == k) s->comm -= c->send[e];
    } else if (c->stamp[e] != s->first + 1) {
      c->stamp[e] = s->first + 1;
      s->comm += c->recv[e];
    }
  }
}

/* Makes the stage, which ends in front of link j, before every state behind it. */
static void relax_stage(const chain *c, const segment *s, uint32_t j, const int64_t *behind,
                        int64_t *here) {
  const psplit_i_automaton *m = c->automaton;
  const psplit_problem *p = c->instance->problem;
  const int64_t cut = c->enter[s->first] + s->comm + (j < c->n_links ? c->leave[j] : 0);
  for (uint32_t state = 0; state < m->n_states; state++) {
    if (behind[state] >= PSPLIT_I_INF) continue;
    for (uint32_t k = m->move_off[state]; k < m->move_off[state + 1]; k++) {
      const psplit_device *device = &p->devices[m->moves[k].type];
      const int64_t time = s->time[m->moves[k].type];
      if (m->moves[k].type == c->pool || time >= PSPLIT_I_INF ||
          (device->memory_bytes && s->bytes > device->memory_bytes))
        continue;
      relax(&here[m->moves[k].next],
            behind[state] + c->path[s->first] + time + (device->free_comm ? 0 : cut));
    }
  }
}

/* Link i by itself on the pool, before every state behind it. */
static void relax_pool(const chain *c, uint32_t i, const int64_t *behind, int64_t *here) {
  const int64_t time = c->instance->w[(size_t)c->pool * c->instance->n + c->link[i]];
  for (uint32_t state = 0; state < c->automaton->n_states; state++)
    if (behind[state] < PSPLIT_I_INF && time < PSPLIT_I_INF)
      relax(&here[state], behind[state] + c->path[i] + time);
}

/* The cheapest cover of the chain by stages; INF: there is none. False: out of memory. */
static bool cover(chain *c, int64_t *out_value) {
  const psplit_i_instance *instance = c->instance;
  const size_t n_states = c->automaton->n_states;
  const uint32_t n = c->n_links;
  int64_t *best = psplit_i_arena_array(&c->arena, ((size_t)n + 1) * n_states, sizeof *best);
  int64_t *time = PSPLIT_NEW(&c->arena, int64_t, instance->n_types);
  if (!best || !time) return false;
  for (size_t k = 0; k < ((size_t)n + 1) * n_states; k++) best[k] = PSPLIT_I_INF;
  best[n * n_states] = 0;
  for (uint32_t i = n; i-- > 0;) {
    segment s = {.first = i, .time = time};
    memset(time, 0, instance->n_types * sizeof *time);
    if (c->pool != PSPLIT_NONE) relax_pool(c, i, best + (i + 1) * n_states, best + i * n_states);
    for (uint32_t j = i; j < n; j++) {
      add_link(c, &s, j);
      relax_stage(c, &s, j + 1, best + (j + 1) * n_states, best + i * n_states);
    }
  }
  *out_value = PSPLIT_I_INF;
  for (size_t state = 0; state < n_states; state++) relax(out_value, best[state]);
  return true;
}

/* Operations of the program over n links: moves for each pair of them, and for each link all that
 * stands beside a chain behind it. */
static uint64_t ops_of_cover(const chain *c, uint64_t n) {
  const uint64_t n_moves = c->automaton->move_off[c->automaton->n_states];
  return n * n * n_moves / 2 + n * c->instance->n / 2;
}

/* Leaves every r-th link, so that pairs of links are not too many: what is left is a chain. */
static void thin(chain *c) {
  uint32_t step = 1;
  const uint64_t left = psplit_i_budget_left(c->budget) / 4;
  const uint64_t most = left < MAX_WORK ? left : MAX_WORK;
  while (step < c->n_links && ops_of_cover(c, c->n_links / step) > most) step++;
  uint32_t n = 0;
  for (uint32_t k = 0; k < c->n_links; k += step) c->link[n++] = c->link[k];
  c->n_links = n;
  psplit_i_spend(c->budget, ops_of_cover(c, n));
}

static psplit_code raise_bound(chain *c, int64_t *inout_bound) {
  int64_t value;
  thin(c);
  find_jumps(c);
  for (uint32_t k = 0; k < c->n_links; k++)
    if (!measure(c, k)) return PSPLIT_NOMEM;
  measure_outside(c);
  if (!cover(c, &value)) return PSPLIT_NOMEM;
  if (value < PSPLIT_I_INF && value + c->outside > *inout_bound) *inout_bound = value + c->outside;
  return PSPLIT_OK;
}

psplit_code psplit_i_latency_chain_bound(const psplit_i_instance *instance,
                                         const psplit_i_automaton *automaton, uint32_t pool,
                                         psplit_i_budget *budget, int64_t *inout_bound) {
  if (!psplit_i_takes(PSPLIT_I_BOUND_LATENCY_CHAIN, automaton->features)) return PSPLIT_OK;
  psplit_code code = PSPLIT_NOMEM;
  chain c = {.instance = instance, .automaton = automaton, .budget = budget, .pool = pool};
  psplit_i_arena_init(&c.arena, 0);
  if (!init(&c)) goto out;
  psplit_i_least_costs(instance, automaton, c.send, c.recv, c.length);
  take_longest_path(&c);
  PSPLIT_TRY(raise_bound(&c, inout_bound));
  if (psplit_i_expired(budget)) goto out;
  take_longest_path(&c);
  keep_separators(&c);
  PSPLIT_TRY(raise_bound(&c, inout_bound));
out:
  psplit_i_flow_fini(&c.flow);
  psplit_i_arena_fini(&c.arena);
  return code;
}

psplit_code psplit_i_bound_latency_chain(const psplit_i_bound_query *query, psplit_i_budget *budget,
                                         int64_t *inout_bound) {
  return psplit_i_latency_chain_bound(query->instance, query->automaton, PSPLIT_NONE, budget,
                                      inout_bound);
}
