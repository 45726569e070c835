/* A bound on any placement: what each cluster adds at least to the loads of all devices, its share
 * of the communication included, against what the devices can take.
 *
 * Let S be a device's clusters, w(S) their time, comm(S) what it sends and receives, and let its
 * load w(S) + comm(S) be at most T. For a cluster v and 0 <= b < 1 let g be the least comm(S) + b
 * w(S) of all sets with v, a minimum cut. Then comm(S) / w(S) >= (g - b T) / (T - g) for every such
 * S with v, as the two lines comm = g - b w and comm = T - w show. So the sizes w(v) (1 + r(v)),
 * with the best such ratio as r, sum to at most T on any device, and every bound of bin packing
 * holds for them. The b that serves a cluster best lies where the least set turns from above T to
 * below. Sets: Lagrange multipliers of the knapsack constraint; bins: dual feasible functions of
 * Fekete and Schepers, "New classes of fast lower bounds for bin packing problems", Mathematical
 * Programming 2001. */
#include <stdlib.h>

#include "automaton.h"
#include "bisect.h"
#include "bounds.h"
#include "budget.h"
#include "communication_share.h"
#include "flow.h"
#include "instance.h"
#include "node_cut.h"
#include "problem.h"
#include "team.h"

enum {
  ROUNDS = 2,
  CUTS = 8, /* for a cluster and round */
  FUNCTIONS = 24,
  MANY = 20000,
  BATCH = 64,    /* clusters that share what is left of the budget */
  WORK = 300000, /* clusters times pins for a second of the time limit */
};
static const double SLACK = 1e-9; /* far above what doubles round away */

/* Ratio that held best when it was looked for; it holds for every T. */
typedef struct share {
  double b, g; /* ticks */
} share;

typedef struct network {
  const psplit_i_instance *instance;
  const int64_t *send, *recv, *w; /* [n_nets], [n] of the cheapest device that pays */
  int64_t total;
  double scale; /* of capacities, a power of two, so that rounding them does not matter */
  psplit_i_flow whole;
} network;

static int64_t scaled(const network *net, double x) { return (int64_t)(x * net->scale); }

/* With arcs to the sink that least_set() gives their capacities. */
static bool build(network *net, psplit_i_arena *arena) {
  const psplit_i_instance *instance = net->instance;
  uint32_t *all = PSPLIT_NEW(arena, uint32_t, instance->n);
  int64_t *nothing = PSPLIT_NEW(arena, int64_t, instance->n);
  int64_t *send = PSPLIT_NEW(arena, int64_t, instance->n_nets);
  int64_t *recv = PSPLIT_NEW(arena, int64_t, instance->n_nets);
  if (!all || !nothing || !send || !recv) return false;
  for (uint32_t i = 0; i < instance->n; i++) all[i] = i;
  for (uint32_t e = 0; e < instance->n_nets; e++) {
    send[e] = scaled(net, (double)net->send[e]);
    recv[e] = scaled(net, (double)net->recv[e]);
  }
  const psplit_i_cut_costs costs = {
    .cluster = all, .local = all, .n = instance->n, .weight = nothing, .send = send, .recv = recv};
  return psplit_i_set_network(&net->whole, instance, &costs);
}

typedef struct line {
  double comm, w; /* of a set: comm + b w */
} line;

/* What one thread cuts the network with. */
typedef struct finder {
  psplit_i_flow flow;
  bool *side;             /* [nodes of the network] */
  psplit_i_budget budget; /* of the current cluster */
  bool failed;            /* out of memory */
} finder;

/* The least set with `cluster` for `b`; *out_least is a lower bound on its comm + b w. */
static bool least_set(const network *net, uint32_t cluster, double b, finder *f, line *out,
                      double *out_least) {
  const psplit_i_instance *instance = net->instance;
  psplit_i_flow *flow = &f->flow;
  bool *side = f->side;
  int64_t value = 0;
  if (!psplit_i_flow_copy(flow, &net->whole)) return false;
  psplit_i_spend(&f->budget, flow->arcs.n); /* copied, and looked through for the side */
  for (uint32_t i = 0; i < instance->n; i++)
    flow->arcs.items[2 * (size_t)i].cap =
      net->w[i] >= PSPLIT_I_INF ? PSPLIT_I_INF : scaled(net, b * (double)net->w[i]);
  if (!psplit_i_flow_run(flow, cluster, instance->n, PSPLIT_I_INF, &f->budget, &value) ||
      !psplit_i_flow_side(flow, cluster, side))
    return false;
  *out_least = (double)value / net->scale;
  *out = (line){0, 0};
  for (uint32_t i = 0; i < instance->n; i++)
    if (side[i]) out->w += (double)net->w[i];
  for (uint32_t e = 0; e < instance->n_nets; e++) {
    bool in = false, outside = false;
    for (uint32_t k = instance->net_off[e] + 1; k < instance->net_off[e + 1]; k++)
      *(side[instance->net_pin[k]] ? &in : &outside) = true;
    const bool home = side[instance->net_pin[instance->net_off[e]]];
    if (home && outside) out->comm += (double)net->send[e];
    if (!home && in) out->comm += (double)net->recv[e];
  }
  return true;
}

static double ratio(const share *s, double t) {
  if (s->g > t) return (double)PSPLIT_I_INF;
  return s->g < t && s->g > s->b * t ? (s->g - s->b * t) / (t - s->g) : 0;
}

/* The best b for `cluster` when no load is above t: between a set too large and one that is not. */
static bool find_share(const network *net, uint32_t cluster, double t, finder *f, share *best) {
  line small, large = {0, (double)net->total};
  double least, top = ratio(best, t);
  if (!least_set(net, cluster, 1, f, &small, &least)) return false;
  if (least > t) {
    *best = (share){1, least};
    return true;
  }
  for (int k = 0; k < CUTS && small.w < large.w && small.comm > large.comm; k++) {
    line middle;
    const double b = (small.comm - large.comm) / (large.w - small.w);
    const double met = small.comm + b * small.w;
    if (b >= 1) break;
    if (!least_set(net, cluster, b, f, &middle, &least)) return false;
    const share s = {b, least};
    if (ratio(&s, t) > top) top = ratio(&s, t), *best = s;
    if (least >= met * (1 - 1e-6) || psplit_i_expired(&f->budget)) break;
    if (middle.comm + middle.w > t)
      large = middle;
    else
      small = middle;
  }
  return true;
}

typedef struct devices {
  double n_paying, n_free;
  int64_t *free_w; /* [n] on the fastest of those that pay nothing; INF: on none */
} devices;

typedef struct weighed {
  int64_t w;
  uint32_t cluster;
} weighed;

typedef struct portion {
  double size, time;
} portion;

/* Most relieved by those that pay nothing, for their time, first. */
static int compare_portions(const void *a, const void *b) {
  const portion *x = a, *y = b;
  const double left = x->size * y->time, right = y->size * x->time;
  return left > right ? -1 : left < right;
}

/* Bin packing's view of a size 0..1; `k`: which of the functions. Rounded down. */
static double seen(double x, uint32_t k) {
  x *= 1 - SLACK;
  if (k == 0) return x;
  const uint32_t parts = (k + 1) / 2;
  if (k & 1) return (double)(int64_t)((parts + 1) * x) / parts;
  const double small = 1.0 / (parts + 1);
  return x > 1 - small + SLACK ? 1 : x < small ? 0 : x;
}

/* Is a bottleneck of t impossible? portions[n]: scratch. */
static bool impossible(const network *net, const devices *d, const share *shares, double t,
                       portion *portions) {
  const uint32_t n = net->instance->n;
  if (t < 1) return false;
  for (uint32_t k = 0; k < FUNCTIONS; k++) {
    double sum = 0, left = d->n_free * (1 + SLACK);
    uint32_t n_either = 0;
    for (uint32_t v = 0; v < n; v++) {
      const double r = ratio(&shares[v], t);
      const double x = (double)net->w[v] / t * (1 + r);
      const double time = (double)d->free_w[v] / t;
      const bool pays = net->w[v] < PSPLIT_I_INF && r < 0x1p60 && x <= 1 + SLACK;
      const bool may_go = d->n_free > 0 && d->free_w[v] < PSPLIT_I_INF;
      if (!pays && !may_go) return true;
      const double size = pays ? seen(x > 1 ? 1 : x, k) : 0;
      if (!pays)
        left -= time;
      else if (!may_go)
        sum += size;
      else if (size >
               0) /* without a size and a time a cluster would equal every other in the order */
        portions[n_either++] = (portion){size, time};
    }
    if (left < 0) return true;
    if (n_either) qsort(portions, n_either, sizeof *portions, compare_portions);
    for (uint32_t i = 0; i < n_either; i++) {
      const double gone = portions[i].time <= left ? 1
                          : portions[i].time > 0   ? left / portions[i].time
                                                   : 1;
      left -= gone * portions[i].time;
      sum += (1 - gone) * portions[i].size;
    }
    if (sum > d->n_paying * (1 + SLACK)) return true;
  }
  return false;
}

typedef struct bottleneck_search {
  const network *net;
  const devices *d;
  const share *shares;
  portion *portions;
  psplit_i_budget *budget;
} bottleneck_search;

/* Packing is charged where clusters are many; once the budget is spent, who knows. */
static bool may_be_possible(const void *of, int64_t t) {
  const bottleneck_search *s = of;
  const uint64_t n = s->net->instance->n;
  if (n > MANY && !psplit_i_spend(s->budget, FUNCTIONS * n)) return true;
  return !impossible(s->net, s->d, s->shares, (double)t, s->portions);
}

/* Costs and times of the devices that pay, the least of all types; and of those that do not. */
static void least_of_types(const psplit_i_instance *instance, const psplit_i_automaton *m,
                           int64_t *send, int64_t *recv, int64_t *w, devices *d) {
  for (uint32_t i = 0; i < instance->n; i++) w[i] = d->free_w[i] = PSPLIT_I_INF;
  for (uint32_t e = 0; e < instance->n_nets; e++) send[e] = recv[e] = PSPLIT_I_INF;
  for (uint32_t t = 0; t < instance->n_types; t++) {
    const bool pays = !instance->problem->devices[t].free_comm;
    int64_t *least = pays ? w : d->free_w;
    if (m->count[t] == 0) continue;
    *(pays ? &d->n_paying : &d->n_free) += m->count[t];
    for (uint32_t i = 0; i < instance->n; i++)
      if (instance->w[(size_t)t * instance->n + i] < least[i])
        least[i] = instance->w[(size_t)t * instance->n + i];
    for (uint32_t e = 0; pays && e < instance->n_nets; e++) {
      const size_t cell = (size_t)t * instance->n_nets + e;
      if (instance->send[cell] < send[e]) send[e] = instance->send[cell];
      if (instance->recv[cell] < recv[e]) recv[e] = instance->recv[cell];
    }
  }
}

/* The heaviest clusters first: they tell most. */
static int compare_weights(const void *a, const void *b) {
  const weighed *x = a, *y = b;
  if (x->w != y->w) return x->w > y->w ? -1 : 1;
  return x->cluster < y->cluster ? -1 : x->cluster > y->cluster;
}

typedef struct batch {
  const network *net;
  double t;
  const weighed *list;
  psplit_i_budget *budget;
  share *shares;
  finder *finders; /* of each thread */
  size_t first;
  uint64_t spent[BATCH];
} batch;

static void find_one(void *with, size_t i, int thread) {
  batch *b = with;
  finder *f = &b->finders[thread];
  const uint32_t cluster = b->list[i].cluster;
  f->budget = psplit_i_budget_beside(b->budget, BATCH);
  if (!f->failed && !psplit_i_expired(&f->budget))
    f->failed = !find_share(b->net, cluster, b->t, f, &b->shares[cluster]);
  b->spent[i - b->first] = f->budget.spent;
}

static psplit_code find_shares(const network *net, double t, const weighed *list, uint32_t n_list,
                               uint32_t n_threads, psplit_i_budget *budget, share *shares) {
  const int team = n_list < 32 ? 1 : psplit_i_budget_team(budget, 0, n_threads);
  batch b = {.net = net, .t = t, .list = list, .budget = budget, .shares = shares};
  b.finders = calloc((size_t)team, sizeof *b.finders);
  if (!b.finders) return PSPLIT_NOMEM;
  bool failed = false;
  for (int i = 0; i < team; i++) {
    b.finders[i].side = malloc((size_t)net->whole.head.n + 1);
    failed |= !b.finders[i].side;
  }
  for (size_t first = 0; !failed && first < n_list; first += BATCH) {
    const size_t end = n_list - first < BATCH ? n_list : first + BATCH;
    b.first = first;
    psplit_i_team_for(team, first, end, find_one, &b);
    for (size_t i = first; i < end; i++) psplit_i_spend(budget, b.spent[i - first]);
  }
  for (int i = 0; i < team; i++) {
    failed |= b.finders[i].failed;
    psplit_i_flow_fini(&b.finders[i].flow);
    free(b.finders[i].side);
  }
  free(b.finders);
  return failed ? PSPLIT_NOMEM : PSPLIT_OK;
}

psplit_code psplit_i_communication_share_bound(const psplit_i_instance *instance,
                                               const psplit_i_automaton *automaton, int64_t limit,
                                               const psplit_partition_options *options,
                                               psplit_i_budget *budget, int64_t *inout_bound) {
  if (!psplit_i_takes(PSPLIT_I_BOUND_COMMUNICATION_SHARE, automaton->features) ||
      limit >= PSPLIT_I_INF)
    return PSPLIT_OK;
  psplit_i_arena arena;
  psplit_i_arena_init(&arena, 0);
  psplit_code code = PSPLIT_NOMEM;
  int64_t *send = PSPLIT_NEW(&arena, int64_t, instance->n_nets);
  int64_t *recv = PSPLIT_NEW(&arena, int64_t, instance->n_nets);
  int64_t *w = PSPLIT_NEW(&arena, int64_t, instance->n);
  devices d = {.free_w = PSPLIT_NEW(&arena, int64_t, instance->n)};
  share *shares = PSPLIT_NEW(&arena, share, instance->n);
  portion *portions = PSPLIT_NEW(&arena, portion, instance->n);
  weighed *list = PSPLIT_NEW(&arena, weighed, instance->n);
  network net = {.instance = instance, .send = send, .recv = recv, .w = w};
  if (!send || !recv || !w || !d.free_w || !shares || !portions || !list) goto out;
  least_of_types(instance, automaton, send, recv, w, &d);
  code = PSPLIT_OK;
  if (d.n_paying == 0) goto out;
  double sum = 1;
  for (uint32_t i = 0; i < instance->n; i++)
    if (w[i] < PSPLIT_I_INF) net.total += w[i];
  for (uint32_t e = 0; e < instance->n_nets; e++) sum += (double)send[e] + (double)recv[e];
  net.scale = 1;
  while ((sum + (double)net.total) * net.scale < 0x1p48 && net.scale < 0x1p30) net.scale *= 2;
  uint32_t n_list = 0;
  for (uint32_t i = 0; i < instance->n; i++)
    if (w[i] > 0) list[n_list++] = (weighed){w[i], i};
  qsort(list, n_list, sizeof *list, compare_weights);
  const double seconds = options->time_limit_s;
  const double most =
    WORK * (seconds < 0 || seconds > 10 ? 10 : seconds) / (instance->net_off[instance->n_nets] + 1);
  if (n_list > most) n_list = (uint32_t)most;
  PSPLIT_TRY(build(&net, &arena) ? PSPLIT_OK : PSPLIT_NOMEM);
  for (uint32_t round = 0; round < ROUNDS && *inout_bound < limit; round++) {
    const double t = round == 0 ? (double)limit : (double)*inout_bound;
    PSPLIT_TRY(find_shares(&net, t, list, n_list, options->n_threads, budget, shares));
    const bottleneck_search s = {&net, &d, shares, portions, budget};
    *inout_bound = psplit_i_bisect(*inout_bound, limit, may_be_possible, &s);
  }
out:
  psplit_i_flow_fini(&net.whole);
  psplit_i_arena_fini(&arena);
  return code;
}

psplit_code psplit_i_bound_communication_share(const psplit_i_bound_query *query,
                                               psplit_i_budget *budget, int64_t *inout_bound) {
  return psplit_i_communication_share_bound(query->instance, query->automaton, query->value,
                                            query->request->options, budget, inout_bound);
}
