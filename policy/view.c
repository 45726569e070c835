#include "view.h"

#include "counter_random.h"

enum { X = PSPLIT_I_ITEM_FEATURES };

/* Beyond this a ratio says no more than that it is large. */
static const double MOST = 4;

static psplit_i_real ratio(double x, double of) {
  const double r = of > 0 ? x / of : 0;
  return (psplit_i_real)(r < MOST ? r : MOST);
}

/* Which of those that become ready at once comes first: by id, or by chance. */
static void shuffle(uint32_t kind, uint32_t *items, uint32_t n) {
  const psplit_i_random_stream stream = {kind, PSPLIT_I_RANDOM_POLICY, 0, 4};
  for (uint32_t k = 1; k < n && kind >= PSPLIT_I_N_FIXED_ORDERS; k++) {
    const uint32_t at = (uint32_t)psplit_i_random_below(&stream, items[k], k + 1), item = items[k];
    items[k] = items[at];
    items[at] = item;
  }
}

static void depth_first(const psplit_items *in, uint32_t kind, uint32_t *left, uint32_t *stack,
                        uint32_t *order) {
  const uint32_t n = in->n_items;
  const bool reversed = kind == 1;
  const uint32_t *in_off = reversed ? in->succ_off : in->pred_off;
  const uint32_t *out_off = reversed ? in->pred_off : in->succ_off;
  const uint32_t *out = reversed ? in->pred : in->succ;
  uint32_t size = 0, at = 0;
  for (uint32_t k = 0; k < n; k++) {
    const uint32_t i = reversed ? k : n - 1 - k;
    left[i] = in_off[i + 1] - in_off[i];
    if (left[i] == 0) stack[size++] = i;
  }
  shuffle(kind, stack, size);
  while (size) {
    const uint32_t i = stack[--size];
    order[reversed ? n - 1 - at : at] = i;
    at++;
    const uint32_t first = size;
    for (uint32_t k = out_off[i]; k < out_off[i + 1]; k++)
      if (--left[out[k]] == 0) stack[size++] = out[k];
    shuffle(kind, stack + first, size - first);
  }
}

static psplit_code measure(psplit_i_view *v, psplit_i_arena *arena) {
  const psplit_items *in = v->items;
  const uint32_t n = in->n_items;
  v->least = PSPLIT_NEW(arena, int64_t, n);
  v->speed = PSPLIT_NEW(arena, double, in->n_types);
  if (!v->least || !v->speed) return PSPLIT_NOMEM;
  int64_t heaviest = 0;
  for (uint32_t i = 0; i < n; i++) {
    v->least[i] = PSPLIT_ITEM_FORBIDDEN;
    for (uint32_t t = 0; t < in->n_types; t++) {
      const int64_t ns = in->time_ns[(size_t)t * n + i];
      if (in->type_count[t] > 0 && ns < v->least[i]) v->least[i] = ns;
    }
    if (v->least[i] >= PSPLIT_ITEM_FORBIDDEN) v->least[i] = 0; /* nothing can run it */
    if (v->least[i] > PSPLIT_ITEM_FORBIDDEN - v->total) return PSPLIT_LIMIT;
    v->total += v->least[i];
    heaviest = v->least[i] > heaviest ? v->least[i] : heaviest;
  }
  double devices = 0;
  for (uint32_t t = 0; t < in->n_types; t++) {
    double least = 0, own = 0;
    for (uint32_t i = 0; i < n; i++) {
      if (in->time_ns[(size_t)t * n + i] >= PSPLIT_ITEM_FORBIDDEN) continue;
      least += (double)v->least[i];
      own += (double)in->time_ns[(size_t)t * n + i];
    }
    v->speed[t] = own > 0 ? least / own : 1;
    devices += v->speed[t] * in->type_count[t];
  }
  v->ideal = devices > 0 ? (double)v->total / devices : 1;
  if (v->ideal < (double)heaviest) v->ideal = (double)heaviest;
  if (v->ideal < 1) v->ideal = 1;
  return PSPLIT_OK;
}

/* No stage behind these: an item and all that need it have pins and, where the order of devices is
 * given, must find one that can run them. */
static void find_last_stages(psplit_i_view *v) {
  const psplit_items *in = v->items;
  for (uint32_t k = in->n_items; k-- > 0;) {
    const uint32_t i = v->order[k];
    uint32_t last = in->n_stages - 1;
    if (in->pin[i] < last) last = in->pin[i];
    for (uint32_t e = in->succ_off[i]; e < in->succ_off[i + 1]; e++)
      if (v->last_stage[in->succ[e]] < last) last = v->last_stage[in->succ[e]];
    while (in->stage_type && last > 0 &&
           in->time_ns[(size_t)in->stage_type[last] * in->n_items + i] >= PSPLIT_ITEM_FORBIDDEN)
      last--;
    v->last_stage[i] = last;
  }
}

static void find_stuck(psplit_i_view *v) {
  const psplit_items *in = v->items;
  enum { MOST_TYPES = 6 };
  for (uint32_t k = in->n_items; k-- > 0;) {
    const uint32_t i = v->order[k];
    uint32_t runs = 0;
    v->bytes += in->weight_bytes[i] + in->activation_bytes[i];
    if (in->n_types > MOST_TYPES) continue;
    for (uint32_t t = 0; t < in->n_types; t++)
      if (in->time_ns[(size_t)t * in->n_items + i] < PSPLIT_ITEM_FORBIDDEN) runs |= 1u << t;
    for (uint32_t set = 0; set < 1u << in->n_types; set++)
      if (!(set & runs)) v->stuck[i] |= UINT64_C(1) << set;
    for (uint32_t e = in->succ_off[i]; e < in->succ_off[i + 1]; e++)
      v->stuck[i] |= v->stuck[in->succ[e]];
  }
}

/* before and behind: longest paths of least times to the item and from it, itself included. */
static void describe(const psplit_i_view *v, const double *before, const double *behind,
                     psplit_i_real *x) {
  const psplit_items *in = v->items;
  const uint32_t n = in->n_items;
  double longest = 1, placed = 0;
  uint64_t memory = 0;
  for (uint32_t i = 0; i < n; i++) longest = before[i] > longest ? before[i] : longest;
  for (uint32_t t = 0; t < in->n_types; t++)
    memory = in->type_memory[t] > memory ? in->type_memory[t] : memory;
  for (uint32_t k = 0; k < n; k++) {
    const uint32_t i = v->order[k];
    psplit_i_real *f = x + (size_t)i * X;
    double recv = 0, send = 0, most = 0, slowest = 0;
    uint32_t n_forbidden = 0;
    for (uint32_t e = in->inc_off[i]; e < in->inc_off[i + 1]; e++) {
      const uint32_t net = in->inc[e] / 2;
      const double ns =
        (double)psplit_i_least_of(in, in->inc[e] % 2 ? in->send_ns : in->recv_ns, net);
      if (in->inc[e] % 2)
        send += ns;
      else
        recv += ns;
      most = ns > most ? ns : most;
    }
    for (uint32_t t = 0; t < in->n_types; t++) {
      const int64_t ns = in->time_ns[(size_t)t * n + i];
      if (ns >= PSPLIT_ITEM_FORBIDDEN)
        n_forbidden++;
      else if ((double)ns > slowest)
        slowest = (double)ns;
    }
    const double least = (double)v->least[i];
    f[0] = ratio(least, v->ideal);
    f[1] = (psplit_i_real)(1 + psplit_i_policy_log(0.001 + least / v->ideal) / 7);
    f[2] = ratio(recv, v->ideal);
    f[3] = ratio(send, v->ideal);
    f[4] = ratio(before[i], longest);
    f[5] = ratio(behind[i], longest);
    f[6] = ratio(placed, (double)v->total);
    f[7] = (psplit_i_real)(1 / (1.0 + (in->pred_off[i + 1] - in->pred_off[i])));
    f[8] = (psplit_i_real)(1 / (1.0 + (in->succ_off[i + 1] - in->succ_off[i])));
    f[9] = ratio(most, v->ideal);
    f[10] = (psplit_i_real)(psplit_i_policy_log(n) / 10);
    f[11] = (psplit_i_real)(psplit_i_policy_log(in->n_stages) / 5);
    f[12] = ratio((double)in->weight_bytes[i] + (double)in->activation_bytes[i], (double)memory);
    f[13] = in->pin[i] != PSPLIT_NONE;
    f[14] = (psplit_i_real)((double)n_forbidden / in->n_types);
    f[15] =
      least > 0 && slowest > least ? (psplit_i_real)(psplit_i_policy_log(slowest / least) / 3) : 0;
    placed += least;
  }
}

psplit_code psplit_i_view_init(psplit_i_view *v, const psplit_items *items, uint32_t order,
                               psplit_i_arena *arena) {
  const uint32_t n = items->n_items;
  *v = (psplit_i_view){.items = items};
  const psplit_code code = measure(v, arena);
  if (code != PSPLIT_OK) return code;
  v->order = PSPLIT_NEW(arena, uint32_t, n);
  v->last_stage = PSPLIT_NEW(arena, uint32_t, n);
  v->stuck = PSPLIT_NEW(arena, uint64_t, n);
  psplit_i_real *x = PSPLIT_NEW(arena, psplit_i_real, (size_t)n * X);
  double *before = PSPLIT_NEW(arena, double, n), *behind = PSPLIT_NEW(arena, double, n);
  uint32_t *left = PSPLIT_NEW(arena, uint32_t, n), *stack = PSPLIT_NEW(arena, uint32_t, n);
  if (!v->order || !v->last_stage || !v->stuck || !x || !before || !behind || !left || !stack)
    return PSPLIT_NOMEM;
  if (order == 2)
    for (uint32_t i = 0; i < n; i++) v->order[i] = i;
  else
    depth_first(items, order, left, stack, v->order);
  find_last_stages(v);
  find_stuck(v);
  for (uint32_t k = 0; k < n; k++) {
    const uint32_t i = v->order[k];
    for (uint32_t e = items->pred_off[i]; e < items->pred_off[i + 1]; e++)
      if (before[items->pred[e]] > before[i]) before[i] = before[items->pred[e]];
    before[i] += (double)v->least[i];
  }
  for (uint32_t k = n; k-- > 0;) {
    const uint32_t i = v->order[k];
    for (uint32_t e = items->succ_off[i]; e < items->succ_off[i + 1]; e++)
      if (behind[items->succ[e]] > behind[i]) behind[i] = behind[items->succ[e]];
    behind[i] += (double)v->least[i];
  }
  describe(v, before, behind, x);
  v->graph =
    (psplit_i_policy_graph){n, items->pred_off, items->pred, items->succ_off, items->succ, x};
  return PSPLIT_OK;
}
