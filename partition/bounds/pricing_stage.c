/* Traces a stage of about the largest value within a load. Each step, from the last one on, takes
 * the label with the largest price within its share of the load, and divides the remaining load
 * among the tables it joined. Since loads were rounded down, the load of the stage is recomputed
 * from the instance, and the trace is repeated with a smaller load if that exceeds the limit. */
#include "pricing_inside.h"

#include <string.h>

/* The index of the list of a step for the current labels. */
static uint32_t place_of_own(const psplit_i_pricing *p, const step *s) {
  uint32_t index = 0;
  for (uint32_t i = s->n_scope; i-- > 0;) index = index * LABELS + p->label[s->scope[i]];
  return s->first_list + index;
}

void psplit_i_pricing_join_inside(psplit_i_pricing *p, const step *s, entry own, uint32_t *n_row) {
  int64_t floor[MOST_JOINED];
  const bool above = p->above.on;
  const bool any = !above || psplit_i_pricing_floors(p, s, place_of_own(p, s), own, floor);
  entry *const others = p->row[MOST_JOINED + 1];
  for (uint32_t t = 0; t + 1 < s->n_tables; t++) {
    const list l = p->inside[psplit_i_pricing_place_of(p, s, t)];
    const entry *from = psplit_i_pricing_at(p, l);
    uint32_t n = any ? l.n : 0;
    if (above && any) {
      n = psplit_i_pricing_reach(p, l, floor[t], others);
      from = others;
    }
    n_row[t] = n;
    if (t == 0 && n > 0) memcpy(p->row[0], from, n * sizeof(entry));
    if (t > 0) n_row[t] = psplit_i_pricing_sums(p, p->row[t - 1], n_row[t - 1], from, n, p->row[t]);
  }
}

/* The best combination of table t with those before it, within `room`. */
static pick best_at(const psplit_i_pricing *p, const step *s, uint32_t t, const uint32_t *n_row,
                    int32_t room) {
  static const entry none = {0, 0};
  const list l = p->inside[psplit_i_pricing_place_of(p, s, t)];
  return psplit_i_pricing_best_of(room, t ? p->row[t - 1] : &none, t ? n_row[t - 1] : 1,
                                  psplit_i_pricing_at(p, l), l.n);
}

/* Chooses the label of the step's variable with the largest price within the step's load. */
static bool choose_label(psplit_i_pricing *p, const step *s, int32_t room, uint8_t *out_label,
                         int32_t *out_rest) {
  uint32_t n_row[MOST_JOINED];
  int32_t most = -1;
  entry own;
  for (uint32_t x = 0; x < LABELS; x++) {
    if (!psplit_i_pricing_set_own(p, s, (uint8_t)x, &own) || own.load > room) continue;
    pick best = {0, 0, 0};
    psplit_i_pricing_join_inside(p, s, own, n_row);
    if (s->n_tables > 0) best = best_at(p, s, s->n_tables - 1, n_row, room - own.load);
    if (best.price < 0 || best.price + own.price <= most) continue;
    most = best.price + own.price;
    *out_label = (uint8_t)x;
    *out_rest = room - own.load;
  }
  return most >= 0;
}

/* Divides the load that a step's own factors leave among its tables. Lists understate loads, so the
 * slack is divided as well. */
static bool share_out(psplit_i_pricing *p, const step *s, int32_t rest) {
  uint32_t n_row[MOST_JOINED];
  psplit_i_pricing_join_inside(p, s, (entry){0, 0}, n_row);
  for (uint32_t t = s->n_tables; t-- > 0;) {
    const pick best = best_at(p, s, t, n_row, rest);
    if (best.price < 0) return false;
    const int32_t more = t ? (rest - best.load_a - best.load_b) / 2 : rest - best.load_b;
    p->room[psplit_i_pricing_step_of(p, s, t) - p->steps] = best.load_b + more;
    rest -= best.load_b + more;
  }
  return true;
}

/* Labels a stage of about the largest value within a load, from the last step on. */
static bool trace(psplit_i_pricing *p, int32_t load) {
  p->room[p->n_vars - 1] = load;
  for (uint32_t k = p->n_vars; k-- > 0;) {
    const step *s = &p->steps[k];
    uint8_t label = 0;
    int32_t rest = 0;
    if (!choose_label(p, s, p->room[k], &label, &rest)) return false;
    p->label[s->var] = label;
    if (!share_out(p, s, rest)) return false;
  }
  return true;
}

/* Moves consumers behind their producers, for nets that were left out. Returns false if the new
 * side of a cluster is not permitted. */
static bool take_along(psplit_i_pricing *p) {
  const psplit_i_instance *in = p->instance;
  for (uint32_t v = 0; v < in->n; v++)
    for (uint32_t l = in->succ_off[v]; l < in->succ_off[v + 1]; l++) {
      const uint32_t w = in->succ[l];
      if (p->label[w] >= p->label[v]) continue;
      p->label[w] = p->label[v];
      if (!psplit_i_pricing_may_be(p, w, p->label[w])) return false;
    }
  return true;
}

int64_t psplit_i_pricing_load(const psplit_i_pricing *pricing, const uint8_t *side) {
  const psplit_i_instance *in = pricing->instance;
  int64_t load = 0;
  for (uint32_t v = 0; v < in->n; v++) load += side[v] == PSPLIT_I_INSIDE ? in->w[v] : 0;
  for (uint32_t e = 0; e < in->n_nets; e++) {
    const bool sends = side[in->net_pin[in->net_off[e]]] == PSPLIT_I_INSIDE;
    bool crosses = false;
    for (uint32_t q = in->net_off[e] + 1; q < in->net_off[e + 1]; q++)
      crosses = crosses || (side[in->net_pin[q]] == PSPLIT_I_INSIDE) != sends;
    if (crosses) load += (sends ? in->send : in->recv)[e];
  }
  return load;
}

psplit_code psplit_i_pricing_stage(psplit_i_pricing *pricing, int64_t limit, uint32_t n_parts,
                                   const int32_t *price, const uint8_t *sides,
                                   psplit_i_budget *budget, uint8_t *out_side, bool *out_found) {
  psplit_i_pricing *p = pricing;
  p->receiver = NULL;
  *out_found = false;
  const psplit_code code = psplit_i_pricing_fill(p, limit, n_parts, price, sides, budget);
  if (code != PSPLIT_OK || p->late) return code;
  for (int64_t cap = limit, k = 0; k < MOST_TRACES && cap >= 0 && !*out_found; k++) {
    if (!trace(p, (int32_t)(cap >> p->shift)) || !take_along(p)) break;
    const int64_t load = psplit_i_pricing_load(p, p->label);
    *out_found = load <= limit;
    cap -= load - limit;
  }
  if (*out_found) memcpy(out_side, p->label, p->instance->n * sizeof *out_side);
  return PSPLIT_OK;
}
