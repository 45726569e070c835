#include "outlook.h"

#include <string.h>

/* So many cuts are looked at, from the farthest that is reached. */
enum { MOST_CUTS = 64 };

psplit_code psplit_i_outlook_init(psplit_i_outlook *o, const psplit_i_view *v,
                                  psplit_i_arena *arena) {
  const psplit_items *in = v->items;
  const uint32_t n = in->n_items;
  uint32_t widest = 0;
  *o = (psplit_i_outlook){.view = v};
  for (uint32_t e = 0; e < in->n_nets; e++)
    if (in->net_off[e + 1] - in->net_off[e] > widest) widest = in->net_off[e + 1] - in->net_off[e];
  o->place = PSPLIT_NEW(arena, uint32_t, n);
  o->ahead = PSPLIT_NEW(arena, double, (size_t)n + 1);
  o->bytes = PSPLIT_NEW(arena, double, (size_t)n + 1);
  o->enter = PSPLIT_NEW(arena, double, (size_t)n + 2);
  o->leave = PSPLIT_NEW(arena, double, (size_t)n + 2);
  o->need = PSPLIT_NEW(arena, uint32_t, (size_t)n + 1);
  o->reach = PSPLIT_NEW(arena, uint32_t, n);
  o->back = PSPLIT_NEW(arena, uint32_t, n);
  o->sorted = PSPLIT_NEW(arena, uint32_t, (size_t)widest + 1);
  if (!o->place || !o->ahead || !o->bytes || !o->enter || !o->leave || !o->need || !o->reach ||
      !o->back || !o->sorted)
    return PSPLIT_NOMEM;
  double devices = 0, speed = 0;
  bool limited = true;
  for (uint32_t t = 0; t < in->n_types; t++) {
    devices += in->type_count[t];
    speed += v->speed[t] * in->type_count[t];
    limited &= in->type_memory[t] > 0;
    if ((double)in->type_memory[t] > o->memory) o->memory = (double)in->type_memory[t];
  }
  o->mean_speed = devices > 0 && speed > 0 ? speed / devices : 1;
  if (!limited) o->memory = 0;
  for (uint32_t p = 0; p < n; p++) {
    const uint32_t i = v->order[p];
    o->place[i] = p;
    o->ahead[p + 1] = o->ahead[p] + (double)v->least[i] / o->mean_speed;
    o->bytes[p + 1] = o->bytes[p] + (double)in->weight_bytes[i] + (double)in->activation_bytes[i];
  }
  return PSPLIT_OK;
}

static bool within(const psplit_i_outlook *o, uint32_t from, uint32_t to, double room) {
  return o->ahead[to] - o->ahead[from] <= room &&
         (o->memory <= 0 || o->bytes[to] - o->bytes[from] <= o->memory);
}

static void find_reach(psplit_i_outlook *o) {
  const uint32_t n = o->view->items->n_items;
  for (uint32_t p = 0, end = 0; p < n; p++) {
    if (end < p + 1) end = p + 1;
    while (end < n && within(o, p, end + 1, o->target)) end++;
    o->reach[p] = end;
  }
  for (uint32_t p = 0, begin = 0; p < n; p++) {
    while (begin < p && !within(o, begin, p + 1, o->target)) begin++;
    o->back[p] = begin;
  }
}

static void sort(uint32_t *x, uint32_t n) {
  for (uint32_t gap = n / 2; gap > 0; gap /= 2)
    for (uint32_t i = gap; i < n; i++) {
      const uint32_t value = x[i];
      uint32_t k = i;
      for (; k >= gap && x[k - gap] > value; k -= gap) x[k] = x[k - gap];
      x[k] = value;
    }
}

/* Adds ns to the places from .. to. */
static void add(double *difference, uint32_t from, uint32_t to, double ns) {
  if (from > to) return;
  difference[from] += ns;
  difference[to + 1] -= ns;
}

/* Who pays for a net at which cut: the producer's stage, if one stage reaches from there to the
 * cut, and that of each consumer likewise. */
static void count_net(psplit_i_outlook *o, uint32_t e) {
  const psplit_items *in = o->view->items;
  const uint32_t from = o->place[in->net_pin[in->net_off[e]]];
  const double send = (double)psplit_i_least_of(in, in->send_ns, e);
  const double recv = (double)psplit_i_least_of(in, in->recv_ns, e);
  uint32_t n = 0;
  for (uint32_t k = in->net_off[e] + 1; k < in->net_off[e + 1]; k++)
    o->sorted[n++] = o->place[in->net_pin[k]];
  sort(o->sorted, n);
  if (n == 0) return;
  const uint32_t first = o->sorted[0], last = o->sorted[n - 1];
  if (last > from) add(o->leave, from + 1, last < o->reach[from] ? last : o->reach[from], send);
  if (first < from)
    add(o->enter, first + 1 > o->back[from] ? first + 1 : o->back[from], from, send);
  uint32_t behind = from + 1, in_front = 0; /* cuts that are counted already */
  for (uint32_t k = 0; k < n; k++) {
    const uint32_t c = o->sorted[k];
    if (c > from) {
      add(o->enter, o->back[c] > behind ? o->back[c] : behind, c, recv);
      behind = c + 1;
    } else if (c < from) {
      const uint32_t end = o->reach[c] < from ? o->reach[c] : from;
      add(o->leave, c + 1 > in_front ? c + 1 : in_front, end, recv);
      in_front = end + 1 > in_front ? end + 1 : in_front;
    }
  }
}

static bool holds(const psplit_i_outlook *o, uint32_t from, uint32_t to) {
  const double work = o->ahead[to] - o->ahead[from];
  if (o->view->items->overlap)
    return work <= o->target && o->enter[from] <= o->target && o->leave[to] <= o->target;
  return work + o->enter[from] + o->leave[to] <= o->target;
}

void psplit_i_outlook_aim(psplit_i_outlook *o, double target) {
  const psplit_items *in = o->view->items;
  const uint32_t n = in->n_items;
  o->target = target > 1 ? target : 1;
  memset(o->enter, 0, ((size_t)n + 2) * sizeof *o->enter);
  memset(o->leave, 0, ((size_t)n + 2) * sizeof *o->leave);
  find_reach(o);
  for (uint32_t e = 0; e < in->n_nets; e++) count_net(o, e);
  for (uint32_t p = 0; p < n; p++) {
    o->enter[p + 1] += o->enter[p];
    o->leave[p + 1] += o->leave[p];
  }
  /* Differences of large numbers leave dust. */
  for (uint32_t p = 0; p <= n; p++) {
    if (o->enter[p] < 0.5) o->enter[p] = 0;
    if (o->leave[p] < 0.5) o->leave[p] = 0;
  }
  o->need[n] = 0;
  for (uint32_t p = n; p-- > 0;) {
    uint32_t best = o->need[p + 1], looked = 0; /* where nothing holds, one item alone */
    for (uint32_t to = o->reach[p]; to > p + 1; to--) {
      if (looked++ >= MOST_CUTS && best < o->need[p + 1]) break;
      if (o->need[to] < best && holds(o, p, to)) best = o->need[to];
    }
    o->need[p] = best + 1;
  }
}

double psplit_i_outlook_least(psplit_i_outlook *o) {
  const uint32_t n_stages = o->view->items->n_stages;
  double low = o->view->ideal, high = low, step = low / 32;
  for (uint32_t k = 0; k < 24; k++) {
    psplit_i_outlook_aim(o, high);
    if (o->need[0] <= n_stages) break;
    low = high;
    high += step;
    step *= 2;
  }
  while (high - low > low / 500) {
    const double middle = low + (high - low) / 2;
    psplit_i_outlook_aim(o, middle);
    if (o->need[0] <= n_stages)
      high = middle;
    else
      low = middle;
  }
  psplit_i_outlook_aim(o, high);
  return high;
}

psplit_i_prospect psplit_i_outlook_from(const psplit_i_outlook *o, uint32_t place, double room) {
  const uint32_t n = o->view->items->n_items;
  psplit_i_prospect found = {o->need[place], o->enter[place] + o->leave[place], 0};
  uint32_t low = place, high = n; /* the farthest place within the room */
  while (low < high) {
    const uint32_t middle = low + (high - low + 1) / 2;
    if (within(o, place, middle, room))
      low = middle;
    else
      high = middle - 1;
  }
  for (uint32_t to = low, looked = 0; to > place && looked < MOST_CUTS; to--, looked++) {
    const double fill = o->ahead[to] - o->ahead[place], cut = o->enter[to] + o->leave[to];
    if (fill + o->leave[to] > room && !o->view->items->overlap) continue;
    if (o->need[to] < found.need) found.need = o->need[to], found.fill = fill;
    if (cut < found.cut) found.cut = cut;
  }
  return found;
}
