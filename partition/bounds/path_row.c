/* A bound on latency from clusters of a longest path and what lies between them: all that is behind
 * the one and before the other, wherever it is. Any clusters of a path are a row (latency_row.c),
 * since what lies between two neighbours is before all that lies between the next two. What is
 * behind no cluster of the row, or before none, does not count.
 *
 * Many clusters of the path leave little between neighbours, few make few blocks that wait for each
 * other. Which are best depends on what a device is worth: with a price for each device, a program
 * over the path finds the row whose blocks take the most, each with as many devices as are best for
 * it. Over each of these rows another program shares the devices out.
 * O(clusters + edges + prices * links^2 * devices). */
#include <math.h>

#include "automaton.h"
#include "bounds.h"
#include "budget.h"
#include "latency_row.h"

enum {
  MOST_LINKS = 128, /* of the path, evenly taken */
  PRICES = 8        /* of devices */
};

typedef struct path_row {
  const psplit_i_instance *instance;
  const int64_t *min_time;
  psplit_i_budget *budget;
  int64_t *length;  /* [n] longest path up to a cluster, with it */
  uint32_t *before; /* [n] the cluster before it on that path, or NONE */
  uint32_t *first;  /* [n] the last link that a cluster is behind; 0: none */
  uint32_t *last;   /* [n] the first link that it is before; n_links + 1: none */
  uint32_t *link;   /* [n_links + 2] clusters, from 1 on; 0 and n_links + 1 stand for the ends */
  uint32_t n_links;
  int64_t total;  /* length of the path */
  int64_t *work;  /* [(n_links + 2)^2] of what lies between two links or ends */
  double *most;   /* [n_links + 2] what a row up to a link takes at a price */
  uint32_t *from; /* [n_links + 2] the link before it in that row */
  uint32_t *at;   /* [n_links + 2] links of that row, and the ends */
  int64_t *time;  /* [(n_links + 3) * (stages + 1)] of a row, by stages */
} path_row;

static bool init(path_row *r, psplit_i_arena *a) {
  const size_t n = r->instance->n;
  r->length = PSPLIT_NEW(a, int64_t, n);
  r->before = PSPLIT_NEW(a, uint32_t, n);
  r->first = PSPLIT_NEW(a, uint32_t, n);
  r->last = PSPLIT_NEW(a, uint32_t, n);
  r->link = PSPLIT_NEW(a, uint32_t, MOST_LINKS + 2);
  return !a->failed;
}

/* For as many links as there are. */
static bool init_tables(path_row *r, psplit_i_arena *a) {
  const size_t n = r->n_links + 2, n_stages = r->instance->n_stages;
  r->work = PSPLIT_NEW(a, int64_t, n * n);
  r->most = PSPLIT_NEW(a, double, n);
  r->from = PSPLIT_NEW(a, uint32_t, n);
  r->at = PSPLIT_NEW(a, uint32_t, n);
  r->time = psplit_i_arena_array(a, n_stages + 1, (n + 1) * sizeof *r->time);
  return !a->failed;
}

/* Links of a longest path, from 1 on. */
static void take_path(path_row *r) {
  const psplit_i_instance *instance = r->instance;
  uint32_t end = 0, n = 0;
  for (uint32_t i = 0; i < instance->n; i++) {
    r->before[i] = PSPLIT_NONE;
    for (uint32_t k = instance->pred_off[i]; k < instance->pred_off[i + 1]; k++) {
      const uint32_t p = instance->pred[k];
      if (r->before[i] != PSPLIT_NONE && r->length[p] <= r->length[r->before[i]]) continue;
      r->before[i] = p;
    }
    r->length[i] = r->min_time[i] + (r->before[i] == PSPLIT_NONE ? 0 : r->length[r->before[i]]);
    if (r->length[i] > r->length[end]) end = i;
  }
  r->total = r->length[end];
  for (uint32_t i = end; i != PSPLIT_NONE; i = r->before[i]) n++;
  r->n_links = n < MOST_LINKS ? n : MOST_LINKS;
  uint32_t k = r->n_links;
  for (uint32_t i = end, at = n; i != PSPLIT_NONE; i = r->before[i], at--)
    if (k && (uint64_t)k * n / r->n_links == at) r->link[k--] = i;
}

/* Links that clusters are between. */
static void find_sides(path_row *r) {
  const psplit_i_instance *instance = r->instance;
  const uint32_t none = r->n_links + 1;
  for (uint32_t i = 0; i < instance->n; i++) r->before[i] = 0; /* its own number as a link */
  for (uint32_t k = 1; k <= r->n_links; k++) r->before[r->link[k]] = k;
  for (uint32_t i = 0; i < instance->n; i++) {
    r->first[i] = 0;
    for (uint32_t k = instance->pred_off[i]; k < instance->pred_off[i + 1]; k++) {
      const uint32_t p = instance->pred[k], f = r->before[p] ? r->before[p] : r->first[p];
      if (f > r->first[i]) r->first[i] = f;
    }
  }
  for (uint32_t i = instance->n; i-- > 0;) {
    r->last[i] = none;
    for (uint32_t k = instance->succ_off[i]; k < instance->succ_off[i + 1]; k++) {
      const uint32_t s = instance->succ[k], l = r->before[s] ? r->before[s] : r->last[s];
      if (l < r->last[i]) r->last[i] = l;
    }
  }
}

static int64_t *work_between(const path_row *r, uint32_t i, uint32_t j) {
  return &r->work[(size_t)i * (r->n_links + 2) + j];
}

/* What lies between each two links: a cluster that is between `first` and `last` is between all
 * links before the one and behind the other. */
static void add_up_work(path_row *r) {
  const uint32_t n = r->n_links + 2;
  for (uint32_t i = 0; i < n; i++)
    for (uint32_t j = 0; j < n; j++) *work_between(r, i, j) = 0;
  for (uint32_t i = 0; i < r->instance->n; i++)
    *work_between(r, r->first[i], r->last[i]) += r->min_time[i];
  for (uint32_t i = n; i-- > 0;)
    for (uint32_t j = 1; j < n; j++) {
      *work_between(r, i, j) += *work_between(r, i, j - 1);
      if (i + 1 < n)
        *work_between(r, i, j) += *work_between(r, i + 1, j) - *work_between(r, i + 1, j - 1);
    }
}

static psplit_i_row_block block_between(const path_row *r, uint32_t i, uint32_t j) {
  const bool ends = j > r->n_links;
  const int64_t from = i ? r->length[r->link[i]] : 0;
  psplit_i_row_block b = {.work = *work_between(r, i, j),
                          .end = ends ? 0 : r->min_time[r->link[j]]};
  b.path = (ends ? r->total : r->length[r->link[j]]) - from - b.end;
  return b;
}

/* What a block and the stages that it takes pay at least, at a price for each, with any part of a
 * stage. */
static double least_at(const psplit_i_row_block *b, bool outside, uint32_t n_devices,
                       double price) {
  const double work = (double)b->work;
  double share = fmin(sqrt(work / price), n_devices);
  if (share * (double)b->path > work) share = work / (double)b->path;
  const double least = share > 1 ? fmin(work / share + share * price, work) : work;
  return outside ? least : fmin(work, least + price);
}

/* The row whose blocks take the most at that price. */
static void find_row(path_row *r, double price) {
  const uint32_t n = r->n_links + 2, n_devices = r->instance->n_stages;
  r->most[0] = 0;
  for (uint32_t j = 1; j < n; j++) {
    r->most[j] = -1;
    for (uint32_t i = 0; i < j; i++) {
      if (i == 0 && j + 1 == n) continue;
      const psplit_i_row_block b = block_between(r, i, j);
      const double most =
        r->most[i] + least_at(&b, i == 0 || j + 1 == n, n_devices, price) + (double)b.end;
      if (most <= r->most[j]) continue;
      r->most[j] = most;
      r->from[j] = i;
    }
  }
}

/* Links of the row that was found, and its two ends; returns how many. */
static uint32_t take_row(const path_row *r, uint32_t *at) {
  uint32_t n = 1;
  for (uint32_t j = r->n_links + 1; j; j = r->from[j]) n++;
  for (uint32_t j = r->n_links + 1, k = n; k; j = r->from[j]) at[--k] = j;
  return n;
}

/* The least latency of a row, of which a stage that holds several links holds all between the first
 * and the last of them; 0 if the budget does not do. open[i]: of stages that begin with link i. */
static int64_t row_latency(path_row *r, const uint32_t *at, uint32_t n) {
  const uint32_t n_devices = r->instance->n_stages;
  const size_t width = (size_t)n_devices + 1;
  int64_t *closed = r->time, *open = r->time + width;
  for (uint32_t k = 0; k <= n_devices; k++) closed[k] = PSPLIT_I_INF;
  closed[1] = 0;
  for (uint32_t j = 1; j < n; j++) {
    const psplit_i_row_block b = block_between(r, at[j - 1], at[j]);
    const bool outside = j == 1 || j + 1 == n;
    if (!psplit_i_spend(r->budget, j * width / 4)) return 0;
    if (!psplit_i_row_cut(&b, closed, n_devices, outside, r->budget, open + j * width)) return 0;
    for (uint32_t k = 0; k <= n_devices; k++) closed[k] = PSPLIT_I_INF;
    for (uint32_t i = 1; i <= j; i++) {
      if (j + 1 == n && i < j) continue;
      const int64_t held =
        (i < j ? *work_between(r, at[i], at[j]) + r->min_time[r->link[at[i]]] : 0) + b.end;
      for (uint32_t k = 0; k <= n_devices; k++)
        if (open[i * width + k] < PSPLIT_I_INF && open[i * width + k] + held < closed[k])
          closed[k] = open[i * width + k] + held;
    }
  }
  int64_t least = PSPLIT_I_INF;
  for (uint32_t k = 1; k <= n_devices; k++)
    if (closed[k] < least) least = closed[k];
  return least < PSPLIT_I_INF ? least : 0;
}

/* Rows of several prices, from what one block that holds all work gains by one more stage to what
 * as many blocks as there are devices gain. */
static void ask_prices(path_row *r, int64_t *inout_bound) {
  const uint32_t n = r->n_links + 2;
  const double n_devices = r->instance->n_stages;
  const double all = (double)*work_between(r, 0, n - 1) / n_devices;
  for (uint32_t k = 0; k < PRICES && all > 0; k++) {
    if (!psplit_i_spend(r->budget, (uint64_t)n * n)) return;
    find_row(r, all * 2 / pow(4 * n_devices, (double)k / (PRICES - 1)));
    const int64_t least = row_latency(r, r->at, take_row(r, r->at));
    if (least > *inout_bound) *inout_bound = least;
  }
}

psplit_code psplit_i_bound_path_row(const psplit_i_bound_query *query, psplit_i_budget *budget,
                                    int64_t *inout_bound) {
  const psplit_i_instance *instance = query->instance;
  path_row r = {.instance = instance, .min_time = query->automaton->min_time, .budget = budget};
  psplit_i_arena arena;
  psplit_i_arena_init(&arena, 0);
  psplit_code code = PSPLIT_NOMEM;
  if (!init(&r, &arena)) goto out;
  code = PSPLIT_OK;
  if (!psplit_i_spend(budget, 3 * ((uint64_t)instance->n + instance->succ_off[instance->n])))
    goto out;
  take_path(&r);
  PSPLIT_TRY(init_tables(&r, &arena) ? PSPLIT_OK : PSPLIT_NOMEM);
  find_sides(&r);
  add_up_work(&r);
  ask_prices(&r, inout_bound);
out:
  psplit_i_arena_fini(&arena);
  return code;
}
