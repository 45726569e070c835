/* Rules: arithmetic on several tensors that are broadcast to each other. */
#include "rule.h"

/* Gives input i its part, summed over the axes it was broadcast along. */
static void give_sum(psplit_i_at *at, uint32_t i, ref part) {
  give(at, i, psplit_i_sum_like(at, part, psplit_i_type_out(at, 0), i));
}

/* Before opset 7 an operand was broadcast only on request, from an axis that an attribute names. */
static bool modern(psplit_i_at *at) {
  if (at->node->opset >= 7 || !psplit_i_int_or(at, "broadcast", 0)) return true;
  psplit_i_refuse(at, "broadcast by an attribute, as before opset 7");
  return false;
}

void psplit_i_gradient_add(psplit_i_at *at) {
  if (!modern(at)) return;
  for (uint32_t i = 0; i < at->node->n_inputs; i++)
    if (wanted(at, i)) give_sum(at, i, grad(at));
}

void psplit_i_gradient_mean(psplit_i_at *at) {
  const ref part = mul(at, grad(at), number(at, 1.0 / at->node->n_inputs));
  for (uint32_t i = 0; i < at->node->n_inputs; i++)
    if (wanted(at, i)) give_sum(at, i, part);
}

void psplit_i_gradient_sub(psplit_i_at *at) {
  if (!modern(at)) return;
  if (wanted(at, 0)) give_sum(at, 0, grad(at));
  if (wanted(at, 1))
    give(at, 1, neg(at, psplit_i_sum_like(at, grad(at), psplit_i_type_out(at, 0), 1)));
}

void psplit_i_gradient_mul(psplit_i_at *at) {
  if (!modern(at)) return;
  if (wanted(at, 0)) give_sum(at, 0, mul(at, grad(at), in(at, 1)));
  if (wanted(at, 1)) give_sum(at, 1, mul(at, grad(at), in(at, 0)));
}

void psplit_i_gradient_div(psplit_i_at *at) {
  if (!modern(at)) return;
  const ref part = quotient(at, grad(at), in(at, 1));
  if (wanted(at, 0)) give_sum(at, 0, part);
  if (wanted(at, 1)) give_sum(at, 1, neg(at, mul(at, part, out(at, 0))));
}

/* d(a^b)/da = b a^(b-1), 0 where b is 0; d(a^b)/db = y ln a, 0 where a and y are 0. */
void psplit_i_gradient_pow(psplit_i_at *at) {
  double p;
  if (!modern(at)) return;
  const ref a = in(at, 0);
  const ref b = wanted(at, 0) || wanted(at, 1) ? in(at, 1) : PSPLIT_NONE;
  const int32_t elem = psplit_i_type_in(at, 1)->elem;
  if (wanted(at, 0) && psplit_i_known_number(at, 1, &p)) {
    ref part = mul(at, grad(at), number(at, p));
    if (p == 2)
      part = mul(at, part, a);
    else if (p != 1)
      part = mul(at, part, op2(at, "Pow", a, number(at, p - 1)));
    give_sum(at, 0, p == 0 ? mul(at, grad(at), number(at, 0)) : part);
  } else if (wanted(at, 0)) {
    const ref power = elem == at->elem ? b : cast(at, b, at->elem);
    const ref zero = op2(at, "Equal", power, number(at, 0));
    const ref slope = mul(at, power, op2(at, "Pow", a, sub(at, power, number(at, 1))));
    give_sum(at, 0, mul(at, grad(at), choose(at, zero, number(at, 0), slope)));
  }
  if (wanted(at, 1)) {
    const ref vanishes = op2(at, "Equal", a, number(at, 0));
    const ref safe = choose(at, vanishes, number(at, 1), a);
    const ref slope = mul(at, out(at, 0), op1(at, "Log", safe));
    ref part = mul(at, grad(at), slope);
    if (elem != at->elem) part = cast(at, part, elem);
    give_sum(at, 1, part);
  }
}

void psplit_i_gradient_mod(psplit_i_at *at) {
  if (wanted(at, 0)) give_sum(at, 0, grad(at));
  if (!wanted(at, 1)) return;
  /* a - b trunc(a / b) = y; the whole quotient is (a - y) / b. */
  const ref whole = quotient(at, sub(at, in(at, 0), out(at, 0)), in(at, 1));
  give_sum(at, 1, neg(at, mul(at, grad(at), op1(at, "Round", whole))));
}

/* Max and Min: shared evenly by the operands that are it. */
void psplit_i_gradient_extremum(psplit_i_at *at) {
  const uint32_t n = at->node->n_inputs;
  if (n == 1) {
    give(at, 0, grad(at));
    return;
  }
  const ref y = out(at, 0);
  ref count = PSPLIT_NONE;
  for (uint32_t i = 0; i < n; i++) {
    const ref is = indicator(at, op2(at, "Equal", in(at, i), y));
    count = sum_given(at, count, is);
  }
  const ref share = quotient(at, grad(at), count);
  for (uint32_t i = 0; i < n; i++)
    if (wanted(at, i))
      give_sum(at, i, mul(at, share, indicator(at, op2(at, "Equal", in(at, i), y))));
}

void psplit_i_gradient_where(psplit_i_at *at) {
  const ref condition = in(at, 0), zero = number(at, 0);
  if (wanted(at, 1)) give_sum(at, 1, choose(at, condition, grad(at), zero));
  if (wanted(at, 2)) give_sum(at, 2, choose(at, condition, zero, grad(at)));
}
