/* A lower bound on latency from clusters of a longest path (links) and the blocks between them. A
 * block consists of all clusters that are successors of one link and predecessors of the next, on
 * the path or not. Any subset of the path is a row (latency_row.c), since everything between two
 * neighbouring links precedes everything between the next two. Clusters that follow no link of the
 * row, or precede none, are not counted.
 *
 * A row of many links leaves little between neighbours, and a row of few makes few blocks that must
 * run one after the other. Which links are best depends on what a device is worth. Given a price
 * per device, dynamic programming over the path finds the row whose blocks have the largest total,
 * each with its best number of devices. For each of these rows a second dynamic program distributes
 * the devices, and its value guides a local search that adds and removes links. Last, blocks count
 * the cost of their tensors as well (row_cuts.h). O(clusters + edges + prices * links^2 * devices),
 * and the cuts of blocks. */
#include <math.h>
#include <string.h>

#include "automaton.h"
#include "bounds.h"
#include "budget.h"
#include "latency_row.h"
#include "row_cuts.h"

enum {
  MOST_LINKS = 128, /* links are taken from the path at even distances */
  PRICES = 8        /* number of device prices to try */
};

typedef struct path_row {
  const psplit_i_instance *instance;
  const psplit_i_automaton *automaton;
  const int64_t *min_time;
  psplit_i_budget *budget;
  psplit_i_arena *arena;
  psplit_i_row_cuts *cuts; /* cuts of blocks, or NULL before these are to be computed */
  int64_t **known;         /* [(n_links + 2)^2] results for blocks that were cut, or NULL */
  int64_t *length;         /* [n] length of the longest path that ends with the cluster */
  uint32_t *before;        /* [n] its predecessor on that path, or NONE */
  uint32_t *first;         /* [n] the last link before the cluster; 0: none */
  uint32_t *last;          /* [n] the first link behind it; n_links + 1: none */
  uint32_t *link; /* [n_links + 2] clusters, from 1 on; 0 and n_links + 1 stand for the ends */
  uint32_t n_links;
  int64_t total;  /* length of the path */
  int64_t *work;  /* [(n_links + 2)^2] work between two links or ends */
  double *most;   /* [n_links + 2] largest total of a row that ends with a link, at a price */
  uint32_t *from; /* [n_links + 2] the link before it in that row */
  uint32_t *rows; /* [PRICES][n_links + 2] links of each row, with the two ends */
  uint32_t n_row[PRICES]; /* number of entries of each */
  uint32_t *tried;        /* [n_links + 2] the neighbouring row under evaluation */
  int64_t *time; /* [(n_links + 3) * (stages + 1)] least time of a prefix of a row, by stages */
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

/* Allocates the tables for the actual number of links. */
static bool init_tables(path_row *r, psplit_i_arena *a) {
  const size_t n = r->n_links + 2, n_stages = r->instance->n_stages;
  r->work = PSPLIT_NEW(a, int64_t, n * n);
  r->most = PSPLIT_NEW(a, double, n);
  r->from = PSPLIT_NEW(a, uint32_t, n);
  r->rows = PSPLIT_NEW(a, uint32_t, PRICES * n);
  r->tried = PSPLIT_NEW(a, uint32_t, n);
  r->known = PSPLIT_NEW(a, int64_t *, n * n);
  r->arena = a;
  r->time = psplit_i_arena_array(a, n_stages + 1, (n + 1) * sizeof *r->time);
  return !a->failed;
}

/* Selects the links of a longest path, numbered from 1. */
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

/* For each cluster, the links between which it lies. */
static void find_sides(path_row *r) {
  const psplit_i_instance *instance = r->instance;
  const uint32_t none = r->n_links + 1;
  /* index of the cluster as a link, or 0 */
  for (uint32_t i = 0; i < instance->n; i++) r->before[i] = 0;
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

/* The work between any two links: a cluster whose nearest links are `first` and `last` also lies
 * between every link up to `first` and every link from `last` on. */
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

/* A lower bound on the time of a block plus the price of its stages. The number of stages is
 * relaxed to a real number. */
static double least_at(const psplit_i_row_block *b, bool outside, uint32_t n_devices,
                       double price) {
  const double work = (double)b->work;
  double share = fmin(sqrt(work / price), n_devices);
  if (share * (double)b->path > work) share = work / (double)b->path;
  const double least = share > 1 ? fmin(work / share + share * price, work) : work;
  return outside ? least : fmin(work, least + price);
}

/* Finds the row with the largest total at the given device price. */
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

/* Copies the links of the row that was found, with its two ends. Returns their number. */
static uint32_t take_row(const path_row *r, uint32_t *at) {
  uint32_t n = 1;
  for (uint32_t j = r->n_links + 1; j; j = r->from[j]) n++;
  for (uint32_t j = r->n_links + 1, k = n; k; j = r->from[j]) at[--k] = j;
  return n;
}

/* The block between two links, with its cuts if these are to be computed. False: out of memory. */
static bool measure(path_row *r, uint32_t i, uint32_t j, psplit_i_row_block *out_block) {
  psplit_i_row_cuts *c = r->cuts;
  *out_block = block_between(r, i, j);
  if (!c) return true;
  int64_t **known = &r->known[(size_t)i * (r->n_links + 2) + j];
  out_block->least = *known;
  if (*known) return true;
  const uint32_t front = i ? r->link[i] : PSPLIT_NONE;
  const uint32_t behind = j <= r->n_links ? r->link[j] : PSPLIT_NONE;
  psplit_i_spend(r->budget, r->instance->n / 4);
  c->n_clusters = 0;
  for (uint32_t v = 0; v < r->instance->n; v++)
    if (r->first[v] >= i && r->last[v] <= j) c->cluster[c->n_clusters++] = v;
  if (!psplit_i_row_cuts_measure(c, front, behind, out_block)) return false;
  if (!out_block->least) return true;
  const size_t n_least = (size_t)psplit_i_row_enough(out_block, r->instance->n_stages) + 1;
  *known = PSPLIT_NEW(r->arena, int64_t, n_least);
  if (*known) memcpy(*known, out_block->least, n_least * sizeof **known);
  return *known;
}

/* The least latency of a row, or 0 if the budget ran out. A stage that holds several links holds
 * everything between the first and the last of them. open[i]: the least time where the last stage
 * begins with link i. */
static int64_t row_latency(path_row *r, const uint32_t *at, uint32_t n) {
  const uint32_t n_devices = r->instance->n_stages;
  const size_t width = (size_t)n_devices + 1;
  int64_t *closed = r->time, *open = r->time + width;
  for (uint32_t k = 0; k <= n_devices; k++) closed[k] = PSPLIT_I_INF;
  closed[1] = 0;
  for (uint32_t j = 1; j < n; j++) {
    psplit_i_row_block b;
    const bool outside = j == 1 || j + 1 == n;
    if (!measure(r, at[j - 1], at[j], &b)) return 0;
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

/* Copies the row to r->tried with one link added or removed. Returns its length. */
static uint32_t toggle(path_row *r, const uint32_t *at, uint32_t n, uint32_t link) {
  uint32_t k = 0, n_tried = 0;
  for (; at[k] < link; k++) r->tried[n_tried++] = at[k];
  if (at[k] == link)
    k++;
  else
    r->tried[n_tried++] = link;
  for (; k < n; k++) r->tried[n_tried++] = at[k];
  return n_tried;
}

/* Local search: adds and removes links while the bound of the row at[n] grows. Returns its new
 * length. */
static uint32_t climb(path_row *r, uint32_t *at, uint32_t n, int64_t *inout_least) {
  uint32_t n_idle = 0;
  for (uint32_t link = 1; n_idle < r->n_links; link = link % r->n_links + 1, n_idle++) {
    const uint32_t n_tried = toggle(r, at, n, link);
    const int64_t least = n_tried > 2 ? row_latency(r, r->tried, n_tried) : 0;
    if (psplit_i_expired(r->budget)) break;
    if (least <= *inout_least) continue;
    *inout_least = least;
    n = n_tried;
    memcpy(at, r->tried, n * sizeof *at);
    n_idle = 0;
  }
  return n;
}

/* Computes and improves rows for several device prices, from the gain of one more stage for a
 * single block of all work to that for as many blocks as devices. Fills r->rows and returns their
 * number. */
static uint32_t ask_prices(path_row *r, int64_t *inout_bound) {
  const uint32_t n = r->n_links + 2;
  const double n_devices = r->instance->n_stages;
  const double all = (double)*work_between(r, 0, n - 1) / n_devices;
  int64_t least[PRICES];
  uint32_t k = 0;
  for (; k < PRICES && all > 0 && psplit_i_spend(r->budget, (uint64_t)n * n); k++) {
    uint32_t *at = r->rows + (size_t)k * n;
    find_row(r, all * 2 / pow(4 * n_devices, (double)k / (PRICES - 1)));
    r->n_row[k] = take_row(r, at);
    least[k] = row_latency(r, at, r->n_row[k]);
    if (least[k] > *inout_bound) *inout_bound = least[k];
  }
  for (uint32_t i = 0; i < k; i++) {
    r->n_row[i] = climb(r, r->rows + (size_t)i * n, r->n_row[i], &least[i]);
    if (least[i] > *inout_bound) *inout_bound = least[i];
  }
  return k;
}

/* Evaluates the same rows with the cost of tensors, and repeats the local search on the best of
 * them. */
static void cut_rows(path_row *r, uint32_t n_rows, int64_t *inout_bound) {
  int64_t most = 0;
  uint32_t best = 0;
  for (uint32_t k = 0; k < n_rows; k++) {
    const int64_t least = row_latency(r, r->rows + (size_t)k * (r->n_links + 2), r->n_row[k]);
    if (least <= most) continue;
    most = least;
    best = k;
  }
  if (most) climb(r, r->rows + (size_t)best * (r->n_links + 2), r->n_row[best], &most);
  if (most > *inout_bound) *inout_bound = most;
}

/* Cuts get only a part of the budget, since the searches need the rest. */
static psplit_code ask_rows(path_row *r, int64_t *inout_bound) {
  psplit_i_row_cuts cuts;
  const uint32_t n_rows = ask_prices(r, inout_bound);
  psplit_code code = psplit_i_row_cuts_init(&cuts, r->instance, r->automaton, r->budget);
  r->budget = &cuts.budget;
  r->cuts = &cuts;
  if (code == PSPLIT_OK) cut_rows(r, n_rows, inout_bound);
  if (cuts.network.failed || r->arena->failed) code = PSPLIT_NOMEM;
  psplit_i_row_cuts_fini(&cuts);
  return code;
}

psplit_code psplit_i_bound_path_row(const psplit_i_bound_query *query, psplit_i_budget *budget,
                                    int64_t *inout_bound) {
  const psplit_i_instance *instance = query->instance;
  path_row r = {.instance = instance,
                .automaton = query->automaton,
                .min_time = query->automaton->min_time,
                .budget = budget};
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
  code = ask_rows(&r, inout_bound);
out:
  psplit_i_arena_fini(&arena);
  return code;
}
