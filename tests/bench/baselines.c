#include "baselines.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum { MOST_STAGES = 1024, MOST_LAYERS = 4000 };

const char *const kBaselines[N_BASELINES] = {"even", "pipedream", "islands", "copies"};

/* What must share a stage is one layer, numbered in a topological order. */
typedef struct layers {
  uint32_t n;
  uint32_t *of;           /* [n_nodes] */
  int64_t *work;          /* [n] */
  uint32_t *first, *next; /* [n + 1] into the layers that follow */
} layers;

static void *need(void *memory) {
  if (memory) return memory;
  fputs("error: out of memory\n", stderr);
  exit(6);
}

static void *zeroed(size_t n, size_t size) { return need(calloc(n + 1, size)); }

static bool forward(const psplit_problem *p, uint32_t v) {
  return !p->node_flags || !(p->node_flags[v] & PSPLIT_NODE_BACKWARD);
}

/* Numbers the classes that stay together, one for each node that is in none; returns how many. */
static uint32_t number_classes(const psplit_problem *p, uint32_t *out_of, bool *out_twin) {
  uint32_t most = 0, n = 0;
  for (uint32_t v = 0; v < p->n_nodes && p->together; v++)
    if (p->together[v] != PSPLIT_NONE && p->together[v] >= most) most = p->together[v] + 1;
  uint32_t *number = zeroed(most, sizeof *number);
  bool *ahead = zeroed(most, sizeof *ahead);
  for (uint32_t v = 0; v < p->n_nodes; v++) {
    const uint32_t class_id = p->together ? p->together[v] : PSPLIT_NONE;
    if (class_id == PSPLIT_NONE) {
      out_of[v] = n++;
      continue;
    }
    if (!number[class_id]) number[class_id] = ++n;
    out_of[v] = number[class_id] - 1;
    ahead[class_id] |= forward(p, v);
  }
  for (uint32_t v = 0; v < p->n_nodes; v++)
    out_twin[v] =
      forward(p, v) || (p->together && p->together[v] != PSPLIT_NONE && ahead[p->together[v]]);
  free(number);
  free(ahead);
  return n;
}

/* Whether tensor u -> v orders layers; if so *out_from comes before *out_to. */
static bool orders(const psplit_problem *p, const uint32_t *of, const bool *twin, uint32_t u,
                   uint32_t v, uint32_t *out_from, uint32_t *out_to) {
  const bool ahead = forward(p, u) && forward(p, v);
  const bool back = !forward(p, u) && !forward(p, v) && !(twin[u] && twin[v]);
  *out_from = ahead ? of[u] : of[v];
  *out_to = ahead ? of[v] : of[u];
  return (ahead || back) && of[u] != of[v];
}

static void make_edges(const psplit_problem *p, const bool *twin, layers *l) {
  const uint32_t n_pins = p->net_off[p->n_nets] + p->n_order;
  l->first = zeroed((size_t)l->n + 1, sizeof *l->first);
  l->next = zeroed(n_pins, sizeof *l->next);
  for (int pass = 0; pass < 2; pass++) {
    uint32_t from, to;
    for (uint32_t e = 0; e < p->n_nets; e++)
      for (uint32_t k = p->net_off[e]; k < p->net_off[e + 1]; k++) {
        if (!orders(p, l->of, twin, p->net_producer[e], p->net_consumer[k], &from, &to)) continue;
        if (pass)
          l->next[--l->first[from]] = to;
        else
          l->first[from]++;
      }
    for (uint32_t k = 0; k < p->n_order; k++) {
      if (!orders(p, l->of, twin, p->order_from[k], p->order_to[k], &from, &to)) continue;
      if (pass)
        l->next[--l->first[from]] = to;
      else
        l->first[from]++;
    }
    for (uint32_t i = 0, sum = 0; i <= l->n && !pass; i++) l->first[i] = sum += l->first[i];
  }
}

static void count_before(const layers *l, uint32_t *out_left) {
  memset(out_left, 0, l->n * sizeof *out_left);
  for (uint32_t k = 0; k < l->first[l->n]; k++) out_left[l->next[k]]++;
}

/* Depth first among what may come next: out_place[n]. Returns how many have a place. */
static uint32_t find_places(const layers *l, uint32_t *out_place) {
  uint32_t *left = zeroed(l->n, sizeof *left), *stack = zeroed(l->n, sizeof *stack);
  uint32_t size = 0, at = 0;
  count_before(l, left);
  for (uint32_t i = l->n; i-- > 0;)
    if (left[i] == 0) stack[size++] = i;
  while (size) {
    const uint32_t i = stack[--size];
    out_place[i] = at++;
    for (uint32_t k = l->first[i]; k < l->first[i + 1]; k++)
      if (--left[l->next[k]] == 0) stack[size++] = l->next[k];
  }
  free(left);
  free(stack);
  return at;
}

/* Numbers the strongly connected components: out_of[n]. Tarjan 1972, without recursion. */
static uint32_t find_components(const layers *l, uint32_t *out_of) {
  const uint32_t n = l->n;
  uint32_t *index = zeroed(n, sizeof *index), *low = zeroed(n, sizeof *low);
  uint32_t *at = zeroed(n, sizeof *at), *path = zeroed(n, sizeof *path);
  uint32_t *open = zeroed(n, sizeof *open), n_open = 0, depth = 0, time = 0, n_found = 0;
  memset(out_of, 0xff, n * sizeof *out_of);
  for (uint32_t root = 0; root < n; root++) {
    if (index[root]) continue;
    path[depth++] = root;
    while (depth) {
      const uint32_t i = path[depth - 1];
      if (!index[i]) {
        index[i] = low[i] = ++time;
        at[i] = l->first[i];
        open[n_open++] = i;
      }
      if (at[i] < l->first[i + 1]) {
        const uint32_t j = l->next[at[i]++];
        if (!index[j])
          path[depth++] = j;
        else if (out_of[j] == PSPLIT_NONE && index[j] < low[i])
          low[i] = index[j];
        continue;
      }
      if (--depth && low[i] < low[path[depth - 1]]) low[path[depth - 1]] = low[i];
      if (low[i] != index[i]) continue;
      do out_of[open[--n_open]] = n_found;
      while (open[n_open] != i);
      n_found++;
    }
  }
  free(index);
  free(low);
  free(at);
  free(path);
  free(open);
  return n_found;
}

/* Numbers the layers anew: layer i becomes number[i] < n. */
static void renumber(const psplit_problem *p, const bool *twin, const uint32_t *number, uint32_t n,
                     layers *l) {
  for (uint32_t v = 0; v < p->n_nodes; v++) l->of[v] = number[l->of[v]];
  l->n = n;
  free(l->first);
  free(l->next);
  make_edges(p, twin, l);
}

static void layers_fini(layers *l) {
  free(l->of);
  free(l->work);
  free(l->first);
  free(l->next);
}

static void layers_init(const psplit_problem *p, layers *out) {
  const uint32_t class_id = p->devices[0].class_id;
  bool *twin = zeroed(p->n_nodes, sizeof *twin);
  *out = (layers){.of = zeroed(p->n_nodes, sizeof *out->of)};
  out->n = number_classes(p, out->of, twin);
  make_edges(p, twin, out);
  uint32_t *number = zeroed(out->n, sizeof *number);
  const uint32_t n_components = find_components(out, number);
  if (n_components < out->n) renumber(p, twin, number, n_components, out);
  renumber(p, twin, number, find_places(out, number), out);
  out->work = zeroed(out->n, sizeof *out->work);
  for (uint32_t v = 0; v < p->n_nodes; v++) {
    const int64_t ns = p->time_ns[(size_t)v * p->n_classes + class_id];
    if (ns > 0) out->work[out->of[v]] += ns;
  }
  free(number);
  free(twin);
}

/* The value of a split of layers, as the checker counts it; 0: it breaks a limit. */
static double value_of(const psplit_problem *p, const layers *l, const uint32_t *stage_of) {
  psplit_partition_options options;
  psplit_diag diag = {0};
  psplit_solution *s = NULL;
  uint32_t *stage = zeroed(p->n_nodes, sizeof *stage);
  psplit_partition_options_init(&options);
  for (uint32_t v = 0; v < p->n_nodes; v++) stage[v] = stage_of[l->of[v]];
  double value = 0;
  if (psplit_partition_check(p, &options, stage, NULL, NULL, NULL, &diag, &s) == PSPLIT_OK)
    value = (double)s->objective_ns;
  psplit_solution_destroy(s);
  free(stage);
  return value;
}

static double value_of_cuts(const psplit_problem *p, const layers *l, const uint32_t *cut,
                            uint32_t k) {
  uint32_t *stage = zeroed(l->n, sizeof *stage);
  for (uint32_t i = 0, j = 0; i < l->n; i++) {
    while (j + 1 < k && i >= cut[j + 1]) j++;
    stage[i] = j;
  }
  const double value = value_of(p, l, stage);
  free(stage);
  return value;
}

static int64_t total(const layers *l) {
  int64_t sum = 0;
  for (uint32_t i = 0; i < l->n; i++) sum += l->work[i];
  return sum;
}

static double even_prefix(const psplit_problem *p, const layers *l, uint32_t k) {
  uint32_t cut[MOST_STAGES + 1] = {0}, j = 1;
  const int64_t all = total(l);
  int64_t before = 0;
  for (uint32_t i = 0; i < l->n; i++) {
    while (j < k && before + l->work[i] / 2 >= all / k * j) cut[j++] = i;
    before += l->work[i];
  }
  while (j < k) cut[j++] = l->n;
  return value_of_cuts(p, l, cut, k);
}

/* Narayanan et al., "PipeDream", SOSP 2019, section 3.1, over a chain of layers: the largest of a
 * stage's work and of what one layer hands to the next, which it counts as the tensor of the layer
 * in front of the cut alone. */
static double pipedream(const psplit_problem *p, const layers *l, uint32_t k) {
  const uint32_t n = l->n, class_id = p->devices[0].class_id;
  if (n > MOST_LAYERS) return 0;
  const size_t width = (size_t)n + 1;
  double *best = zeroed(width * (k + 1), sizeof *best), *sum = zeroed(width, sizeof *sum);
  double *tensor = zeroed(n, sizeof *tensor);
  uint32_t *from = zeroed(width * (k + 1), sizeof *from), cut[MOST_STAGES + 1] = {0};
  for (uint32_t i = 0; i < n; i++) sum[i + 1] = sum[i] + (double)l->work[i];
  for (uint32_t e = 0; e < p->n_nets; e++)
    if (forward(p, p->net_producer[e])) {
      double *of = &tensor[l->of[p->net_producer[e]]];
      *of = fmax(*of, 2 * (double)p->net_send_ns[(size_t)e * p->n_classes + class_id]);
    }
  for (uint32_t j = 1; j <= k; j++)
    for (uint32_t i = 0; i <= n; i++) {
      double *b = &best[j * width + i];
      *b = j == 1 ? sum[i] : INFINITY;
      for (uint32_t h = 0; j > 1 && h <= i; h++) {
        double value = fmax(best[(j - 1) * width + h], sum[i] - sum[h]);
        if (h > 0 && h < i) value = fmax(value, tensor[h - 1]);
        if (value < *b) *b = value, from[j * width + i] = h;
      }
    }
  for (uint32_t j = k, i = n; j > 1; j--) cut[j - 1] = i = from[j * width + i];
  free(best);
  free(sum);
  free(tensor);
  free(from);
  return value_of_cuts(p, l, cut, k);
}

/* What the island saves by taking a layer: the tensors from it that the layer reads. */
static void add_gains(const psplit_problem *p, const layers *l, uint32_t layer,
                      const uint32_t *net_first, const uint32_t *net, double *gain) {
  for (uint32_t k = net_first[layer]; k < net_first[layer + 1]; k++) {
    const uint32_t e = net[k];
    for (uint32_t c = p->net_off[e]; c < p->net_off[e + 1]; c++)
      gain[l->of[p->net_consumer[c]]] +=
        (double)p->net_send_ns[(size_t)e * p->n_classes + p->devices[0].class_id];
  }
}

/* The layer of `ready` with the largest gain; of equal ones the first in the order. */
static uint32_t largest(const uint32_t *ready, uint32_t n, const double *gain) {
  uint32_t best = 0;
  for (uint32_t i = 1; i < n; i++)
    if (gain[ready[i]] > gain[ready[best]] ||
        (gain[ready[i]] == gain[ready[best]] && ready[i] < ready[best]))
      best = i;
  return best;
}

/* A stage takes, of the layers that may come next, the one that reads most of what it holds, until
 * it has its share of the work that is left. */
static double islands(const psplit_problem *p, const layers *l, uint32_t k) {
  uint32_t *left = zeroed(l->n, sizeof *left), *ready = zeroed(l->n, sizeof *ready), size = 0;
  uint32_t *stage = zeroed(l->n, sizeof *stage), *net = zeroed(p->n_nets, sizeof *net);
  uint32_t *net_first = zeroed((size_t)l->n + 1, sizeof *net_first);
  double *gain = zeroed(l->n, sizeof *gain);
  for (uint32_t e = 0; e < p->n_nets; e++) net_first[l->of[p->net_producer[e]]]++;
  for (uint32_t i = 0, sum = 0; i <= l->n; i++) net_first[i] = sum += net_first[i];
  for (uint32_t e = p->n_nets; e-- > 0;) net[--net_first[l->of[p->net_producer[e]]]] = e;
  count_before(l, left);
  for (uint32_t i = 0; i < l->n; i++)
    if (left[i] == 0) ready[size++] = i;
  int64_t rest = total(l), held = 0;
  uint32_t j = 0;
  while (size) {
    const uint32_t at = largest(ready, size, gain), i = ready[at];
    if (j + 1 < k && held > 0 && held + l->work[i] / 2 >= rest / (k - j)) {
      rest -= held;
      held = 0;
      j++;
      memset(gain, 0, l->n * sizeof *gain);
      continue;
    }
    ready[at] = ready[--size];
    stage[i] = j;
    held += l->work[i];
    add_gains(p, l, i, net_first, net, gain);
    for (uint32_t s = l->first[i]; s < l->first[i + 1]; s++)
      if (--left[l->next[s]] == 0) ready[size++] = l->next[s];
  }
  const double value = value_of(p, l, stage);
  free(left);
  free(ready);
  free(stage);
  free(net);
  free(net_first);
  free(gain);
  return value;
}

/* Each device computes every so manyth sample, if the model fits. */
static double copies(const psplit_problem *p, const layers *l, uint32_t k) {
  double bytes = 0;
  for (uint32_t v = 0; v < p->n_nodes; v++)
    bytes += (p->weight_bytes ? (double)p->weight_bytes[v] : 0) +
             (p->activation_bytes ? (double)p->activation_bytes[v] : 0);
  for (uint32_t g = 0; g < p->n_weights; g++) bytes += (double)p->weight_group_bytes[g];
  const uint64_t limit = p->devices[0].memory_bytes;
  return limit && bytes > (double)limit ? 0 : (double)total(l) / k;
}

void baselines_run(const psplit_problem *p, double *out_value, double *out_ms) {
  static double (*const run[N_BASELINES])(const psplit_problem *, const layers *, uint32_t) = {
    even_prefix, pipedream, islands, copies};
  const uint32_t k = psplit_problem_n_stages(p);
  layers l = {0};
  memset(out_value, 0, N_BASELINES * sizeof *out_value);
  memset(out_ms, 0, N_BASELINES * sizeof *out_ms);
  if (p->n_devices == 1 && k > 0 && k <= MOST_STAGES && p->net_send_ns) {
    layers_init(p, &l);
    for (int b = 0; b < N_BASELINES; b++) {
      const clock_t start = clock();
      out_value[b] = run[b](p, &l, k);
      out_ms[b] = (double)(clock() - start) * 1e3 / CLOCKS_PER_SEC;
    }
  }
  layers_fini(&l);
}

psplit_problem baselines_of_one_entry(const psplit_problem *problem, psplit_device *io_device) {
  psplit_problem one = *problem;
  *io_device = problem->devices[0];
  one.devices = io_device;
  one.n_devices = 1;
  return one;
}
