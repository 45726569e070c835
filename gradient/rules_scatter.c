/* Rules: ScatterElements and ScatterND, with their reductions. */
#include "rule.h"

/* What the operator does with an update and the element that it meets. */
typedef enum reduction { REPLACES, ADDS, MULTIPLIES, TAKES_EXTREMUM, UNKNOWN } reduction;

/* One node, as ScatterElements or, by_index, as ScatterND. */
typedef struct scatter {
  psplit_i_at *at;
  const char *op, *gather;
  int64_t axis;
  bool by_index;
  ref indices;
} scatter;

static reduction reduction_of(psplit_i_at *at) {
  const char *text;
  size_t n;
  if (!psplit_i_attr_string(at->node, "reduction", &text, &n) ||
      psplit_i_text_equals(at, "reduction", "none"))
    return REPLACES;
  if (psplit_i_text_equals(at, "reduction", "add")) return ADDS;
  if (psplit_i_text_equals(at, "reduction", "mul")) return MULTIPLIES;
  if (psplit_i_text_equals(at, "reduction", "max") || psplit_i_text_equals(at, "reduction", "min"))
    return TAKES_EXTREMUM;
  psplit_i_refuse(at, "its reduction is not known");
  return UNKNOWN;
}

/* The elements of `a`, which has the data's shape, at the indices of the updates. */
static ref gather_of(const scatter *s, ref a) {
  if (!s->by_index) with_int(s->at, "axis", s->axis);
  return op2(s->at, s->gather, a, s->indices);
}

static ref scatter_of(const scatter *s, ref data, ref updates, const char *how) {
  if (!s->by_index) with_int(s->at, "axis", s->axis);
  if (how) with_text(s->at, "reduction", how);
  return op3(s->at, s->op, data, s->indices, updates);
}

/* The gradient is divided evenly among the elements of data and updates that equal the maximum or
 * minimum. */
static void scatter_extremum(const scatter *s) {
  psplit_i_at *at = s->at;
  const ref y = out(at, 0), best = gather_of(s, y);
  const ref data_is = indicator(at, op2(at, "Equal", in(at, 0), y));
  const ref update_is = indicator(at, op2(at, "Equal", in(at, 2), best));
  const ref share = quotient(at, grad(at), scatter_of(s, data_is, update_is, "add"));
  if (wanted(at, 0)) give(at, 0, mul(at, share, data_is));
  if (wanted(at, 2)) give(at, 2, mul(at, gather_of(s, share), update_is));
}

/* `a` with its zeros replaced by 1; *out_is_zero is 1 where there was one, else 0. */
static ref without_zeros(psplit_i_at *at, ref a, ref *out_is_zero) {
  const ref zero = op2(at, "Equal", a, number(at, 0));
  *out_is_zero = indicator(at, zero);
  return choose(at, zero, number(at, 1), a);
}

/* The product of all other factors, which is 0 if one of them is. `zeros`: number of zeros among
 * all factors; is_zero: 1 where the factor itself is one. */
static ref others(psplit_i_at *at, ref product_of_all, ref zeros, ref factor, ref is_zero) {
  const ref alone = op2(at, "Equal", sub(at, zeros, is_zero), number(at, 0));
  return choose(at, alone, quotient(at, product_of_all, factor), number(at, 0));
}

static void scatter_product(const scatter *s) {
  psplit_i_at *at = s->at;
  ref data_zero, update_zero;
  const ref data = without_zeros(at, in(at, 0), &data_zero);
  const ref update = without_zeros(at, in(at, 2), &update_zero);
  const ref all = scatter_of(s, data, update, "mul");
  const ref zeros = scatter_of(s, data_zero, update_zero, "add");
  if (wanted(at, 0)) give(at, 0, mul(at, grad(at), others(at, all, zeros, data, data_zero)));
  if (!wanted(at, 2)) return;
  const ref g = gather_of(s, grad(at)), all_there = gather_of(s, all);
  const ref zeros_there = gather_of(s, zeros);
  give(at, 2, mul(at, g, others(at, all_there, zeros_there, update, update_zero)));
}

static void scatter_rule(scatter *s) {
  psplit_i_at *at = s->at;
  const reduction how = reduction_of(at);
  s->indices = in(at, 1);
  if (how == UNKNOWN) return;
  if (how == TAKES_EXTREMUM) {
    scatter_extremum(s);
  } else if (how == MULTIPLIES) {
    scatter_product(s);
  } else {
    if (wanted(at, 0) && how == ADDS) give(at, 0, grad(at));
    if (wanted(at, 0) && how == REPLACES) {
      const ref zeros = psplit_i_zeros(at, psplit_i_shape_in(at, 2));
      give(at, 0, scatter_of(s, grad(at), zeros, NULL));
    }
    if (wanted(at, 2)) give(at, 2, gather_of(s, grad(at)));
  }
}

void psplit_i_gradient_scatter_elements(psplit_i_at *at) {
  scatter s = {.at = at, .op = "ScatterElements", .gather = "GatherElements"};
  s.axis = psplit_i_int_or(at, "axis", 0);
  scatter_rule(&s);
}

void psplit_i_gradient_scatter_nd(psplit_i_at *at) {
  scatter s = {.at = at, .op = "ScatterND", .gather = "GatherND", .by_index = true};
  scatter_rule(&s);
}
