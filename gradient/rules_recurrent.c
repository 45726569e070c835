/* Rules: LSTM, GRU and RNN.
 *
 * Each direction by itself, the backward one with time reversed. The gates of all steps are
 * computed again in one product, since the states before each step, all but the first, are the
 * operator's own output. What goes from step to step is done by a Scan; the gradients of weights
 * and data are products again, over all steps at once. Shapes: T steps, N sequences, I inputs, H
 * hidden. */
#include "scan.h"

typedef struct recurrence {
  psplit_i_at *at;
  int64_t hidden, gates;
  int64_t n_directions;
  bool backwards_only;
  ref x;     /* [T, N, I] */
  ref y;     /* [T, directions, N, H] */
  ref zeros; /* [N, H] */
} recurrence;

/* One direction: time runs forward in all of these. */
typedef struct direction {
  ref x, before;      /* [T, N, I], [T, N, H]: the state that each step starts from */
  ref after;          /* [T, N, H]: the state that it ends with */
  ref w, r;           /* [gates H, I], [gates H, H] */
  ref w_bias, r_bias; /* [gates H], or PSPLIT_NONE */
  ref g;              /* [T, N, H]: the gradient at the outputs */
  ref g_last;         /* [N, H]: that at the last state */
  ref h0;             /* [N, H] */
  bool reversed;
} direction;

/* What a direction gives. */
typedef struct parts {
  ref x, w, r, bias, h0, c0;
} parts;

static ref one_minus(psplit_i_at *at, ref a) { return sub(at, number(at, 1), a); }
/* a (1 - a), and 1 - a^2 */
static ref sigmoid_slope(psplit_i_at *at, ref a) { return mul(at, a, one_minus(at, a)); }
static ref tanh_slope(psplit_i_at *at, ref a) { return one_minus(at, mul(at, a, a)); }

static ref flipped(psplit_i_at *at, ref a) { return transposed(at, a, (int64_t[]){1, 0}, 2); }

/* Along axis 0, from the last to the first. */
static ref reversed(psplit_i_at *at, ref a) {
  const ref back = int1(at, -1);
  const ref inputs[] = {a, back, int1(at, INT64_MIN), int1(at, 0), back};
  return psplit_i_backward_node(at->b, "Slice", 5, inputs, 1);
}

/* Entry `index` along an axis, which goes. */
static ref pick(psplit_i_at *at, ref a, int64_t index, int64_t axis) {
  return a == PSPLIT_NONE ? a : gathered(at, a, psplit_i_backward_int(at->b, index), axis);
}

/* [begin, end) of the last axis, in units of H. */
static ref part_of(const recurrence *c, ref a, int64_t begin, int64_t end) {
  const ref inputs[] = {a, int1(c->at, begin * c->hidden), int1(c->at, end * c->hidden),
                        int1(c->at, -1)};
  return psplit_i_backward_node(c->at->b, "Slice", 4, inputs, 1);
}
/* Rows of a matrix, likewise. */
static ref rows_of(const recurrence *c, ref a, int64_t begin, int64_t end) {
  const ref inputs[] = {a, int1(c->at, begin * c->hidden), int1(c->at, end * c->hidden),
                        int1(c->at, 0)};
  return psplit_i_backward_node(c->at->b, "Slice", 4, inputs, 1);
}

/* The state before each step: the first one, then all but the last of `after`. */
static ref shifted(psplit_i_at *at, ref first, ref after) {
  const ref inputs[] = {after, int1(at, 0), int1(at, -1), int1(at, 0)};
  const ref rest = psplit_i_backward_node(at->b, "Slice", 4, inputs, 1);
  const ref head = unsqueezed(at, first, (int64_t[]){0}, 1);
  return concat(at, (ref[]){head, rest}, 2, 0);
}

/* Sum over steps and sequences of the outer products a b: [T, N, A], [T, N, B] -> [A, B]. */
static ref outer_sum(psplit_i_at *at, ref a, int64_t n_a, ref b, ref b_columns) {
  const ref left = reshaped(at, a, ints(at, (int64_t[]){-1, n_a}, 2));
  const ref right = reshaped(at, b, concat(at, (ref[]){int1(at, -1), b_columns}, 2, 0));
  return product(at, flipped(at, left), right);
}

static ref columns_of_x(const recurrence *c) {
  int64_t size;
  if (psplit_i_size(c->at, psplit_i_type_in(c->at, 1), 2, &size)) return int1(c->at, size);
  return psplit_i_shape_element(c->at, psplit_i_shape_in(c->at, 1), 2);
}

/* x w^T + before r^T + biases, for the first n gates */
static ref gates_of(const recurrence *c, const direction *d, int64_t n) {
  psplit_i_at *at = c->at;
  ref sum = add(at, product(at, d->x, flipped(at, rows_of(c, d->w, 0, n))),
                product(at, d->before, flipped(at, rows_of(c, d->r, 0, n))));
  if (d->w_bias != PSPLIT_NONE) sum = add(at, sum, rows_of(c, add(at, d->w_bias, d->r_bias), 0, n));
  return sum;
}

/* ---- LSTM: gates i, o, f, c ---- */

static parts lstm(const recurrence *c, const direction *d, ref c0, ref g_cell) {
  psplit_i_at *at = c->at;
  const ref z = gates_of(c, d, 4);
  const ref sigmoids = op1(at, "Sigmoid", part_of(c, z, 0, 3));
  const ref i = part_of(c, sigmoids, 0, 1), o = part_of(c, sigmoids, 1, 2),
            f = part_of(c, sigmoids, 2, 3), n = op1(at, "Tanh", part_of(c, z, 3, 4));

  psplit_i_scan cells = {.at = at};
  const char *cell = psplit_i_scan_state(&cells, c0);
  const char *keep = psplit_i_scan_row(&cells, f), *gain = psplit_i_scan_row(&cells, mul(at, i, n));
  const char *next =
    psplit_i_scan_op(&cells, "Add", psplit_i_scan_op(&cells, "Mul", keep, cell), gain);
  psplit_i_scan_output(&cells, next);
  psplit_i_scan_output(&cells, next);
  const ref last_cell = psplit_i_scan_end(&cells, false);
  parts p = {PSPLIT_NONE, PSPLIT_NONE, PSPLIT_NONE, PSPLIT_NONE, PSPLIT_NONE, PSPLIT_NONE};
  if (last_cell == PSPLIT_NONE) return p;
  const ref cell_after = last_cell + 1, cell_before = shifted(at, c0, cell_after);
  const ref t = op1(at, "Tanh", cell_after);

  /* What each step's gradients are multiplied by. */
  const ref to_o = mul(at, t, sigmoid_slope(at, o)), to_cell = mul(at, o, tanh_slope(at, t));
  const ref to_i = mul(at, n, sigmoid_slope(at, i)), to_n = mul(at, i, tanh_slope(at, n));
  const ref to_f = mul(at, cell_before, sigmoid_slope(at, f));

  psplit_i_scan back = {.at = at};
  const char *dh_next = psplit_i_scan_state(&back, d->g_last);
  const char *dc_next = psplit_i_scan_state(&back, g_cell);
  const char *g = psplit_i_scan_row(&back, d->g), *ko = psplit_i_scan_row(&back, to_o),
             *kc = psplit_i_scan_row(&back, to_cell), *ki = psplit_i_scan_row(&back, to_i),
             *kf = psplit_i_scan_row(&back, to_f), *kn = psplit_i_scan_row(&back, to_n),
             *forget = psplit_i_scan_row(&back, f);
  const char *dh = psplit_i_scan_op(&back, "Add", g, dh_next);
  const char *dc = psplit_i_scan_op(&back, "Add", dc_next, psplit_i_scan_op(&back, "Mul", dh, kc));
  const char *const dz_parts[] = {
    psplit_i_scan_op(&back, "Mul", dc, ki), psplit_i_scan_op(&back, "Mul", dh, ko),
    psplit_i_scan_op(&back, "Mul", dc, kf), psplit_i_scan_op(&back, "Mul", dc, kn)};
  const char *dz = psplit_i_scan_concat(&back, dz_parts, 4);
  psplit_i_scan_output(&back,
                       psplit_i_scan_op(&back, "MatMul", dz, psplit_i_scan_outer(&back, d->r)));
  psplit_i_scan_output(&back, psplit_i_scan_op(&back, "Mul", dc, forget));
  psplit_i_scan_output(&back, dz);
  const ref ends = psplit_i_scan_end(&back, true);
  if (ends == PSPLIT_NONE) return p;
  const ref all = ends + 2, sum = sum_over(at, all, (int64_t[]){0, 1}, 2, false);
  p.h0 = ends;
  p.c0 = ends + 1;
  p.x = product(at, all, d->w);
  p.w = outer_sum(at, all, 4 * c->hidden, d->x, columns_of_x(c));
  p.r = outer_sum(at, all, 4 * c->hidden, d->before, int1(at, c->hidden));
  p.bias = concat(at, (ref[]){sum, sum}, 2, 0);
  return p;
}

/* ---- GRU: gates z, r, h ---- */

/* Reset after the product: n = tanh(x w_n + b + r * q), q = before r_n^T + bias. */
static parts gru(const recurrence *c, const direction *d, bool after_product) {
  psplit_i_at *at = c->at;
  const ref zr = op1(at, "Sigmoid", gates_of(c, d, 2));
  const ref z = part_of(c, zr, 0, 1), r = part_of(c, zr, 1, 2);
  const ref w_n = rows_of(c, d->w, 2, 3), r_n = rows_of(c, d->r, 2, 3);
  const bool biased = d->w_bias != PSPLIT_NONE;
  ref from_x = product(at, d->x, flipped(at, w_n));
  if (biased) from_x = add(at, from_x, rows_of(c, d->w_bias, 2, 3));
  const ref reset = after_product ? d->before : mul(at, r, d->before);
  ref q = product(at, reset, flipped(at, r_n));
  if (biased) q = add(at, q, rows_of(c, d->r_bias, 2, 3));
  const ref n = op1(at, "Tanh", add(at, from_x, after_product ? mul(at, r, q) : q));

  const ref to_z = mul(at, sub(at, d->before, n), sigmoid_slope(at, z));
  const ref to_n = mul(at, one_minus(at, z), tanh_slope(at, n));
  const ref to_r = mul(at, after_product ? q : d->before, sigmoid_slope(at, r));

  psplit_i_scan back = {.at = at};
  const char *dh_next = psplit_i_scan_state(&back, d->g_last);
  const char *g = psplit_i_scan_row(&back, d->g), *kz = psplit_i_scan_row(&back, to_z),
             *kr = psplit_i_scan_row(&back, to_r), *kn = psplit_i_scan_row(&back, to_n),
             *keep = psplit_i_scan_row(&back, z), *gate = psplit_i_scan_row(&back, r);
  const char *dh = psplit_i_scan_op(&back, "Add", g, dh_next);
  const char *dz = psplit_i_scan_op(&back, "Mul", dh, kz);
  const char *dn = psplit_i_scan_op(&back, "Mul", dh, kn);
  const char *kept = psplit_i_scan_op(&back, "Mul", dh, keep);
  const char *dr, *dq, *through;
  if (after_product) {
    dr = psplit_i_scan_op(&back, "Mul", dn, kr);
    dq = psplit_i_scan_op(&back, "Mul", dn, gate);
    const char *const all[] = {dz, dr, dq};
    through = psplit_i_scan_op(&back, "MatMul", psplit_i_scan_concat(&back, all, 3),
                               psplit_i_scan_outer(&back, d->r));
  } else {
    const char *d_reset = psplit_i_scan_op(&back, "MatMul", dn, psplit_i_scan_outer(&back, r_n));
    dr = psplit_i_scan_op(&back, "Mul", d_reset, kr);
    dq = dn;
    const char *const gates[] = {dz, dr};
    const char *by_gates = psplit_i_scan_op(&back, "MatMul", psplit_i_scan_concat(&back, gates, 2),
                                            psplit_i_scan_outer(&back, rows_of(c, d->r, 0, 2)));
    through =
      psplit_i_scan_op(&back, "Add", by_gates, psplit_i_scan_op(&back, "Mul", d_reset, gate));
  }
  psplit_i_scan_output(&back, psplit_i_scan_op(&back, "Add", kept, through));
  const char *const for_w[] = {dz, dr, dn};
  psplit_i_scan_output(&back, psplit_i_scan_concat(&back, for_w, 3));
  psplit_i_scan_output(&back, dq);
  const ref ends = psplit_i_scan_end(&back, true);
  parts p = {PSPLIT_NONE, PSPLIT_NONE, PSPLIT_NONE, PSPLIT_NONE, PSPLIT_NONE, PSPLIT_NONE};
  if (ends == PSPLIT_NONE) return p;
  const ref all = ends + 1, dq_all = ends + 2, hidden = int1(at, c->hidden);
  const ref gates = part_of(c, all, 0, 2);
  p.h0 = ends;
  p.x = product(at, all, d->w);
  p.w = outer_sum(at, all, 3 * c->hidden, d->x, columns_of_x(c));
  p.r = concat(at,
               (ref[]){outer_sum(at, gates, 2 * c->hidden, d->before, hidden),
                       outer_sum(at, dq_all, c->hidden, reset, hidden)},
               2, 0);
  const int64_t outer[] = {0, 1};
  p.bias = concat(at,
                  (ref[]){sum_over(at, all, outer, 2, false), sum_over(at, gates, outer, 2, false),
                          sum_over(at, dq_all, outer, 2, false)},
                  3, 0);
  return p;
}

/* ---- RNN ---- */

static parts simple(const recurrence *c, const direction *d, ref slope) {
  psplit_i_at *at = c->at;
  psplit_i_scan back = {.at = at};
  const char *dh_next = psplit_i_scan_state(&back, d->g_last);
  const char *g = psplit_i_scan_row(&back, d->g), *k = psplit_i_scan_row(&back, slope);
  const char *dz = psplit_i_scan_op(&back, "Mul", psplit_i_scan_op(&back, "Add", g, dh_next), k);
  psplit_i_scan_output(&back,
                       psplit_i_scan_op(&back, "MatMul", dz, psplit_i_scan_outer(&back, d->r)));
  psplit_i_scan_output(&back, dz);
  const ref ends = psplit_i_scan_end(&back, true);
  parts p = {PSPLIT_NONE, PSPLIT_NONE, PSPLIT_NONE, PSPLIT_NONE, PSPLIT_NONE, PSPLIT_NONE};
  if (ends == PSPLIT_NONE) return p;
  const ref all = ends + 1, sum = sum_over(at, all, (int64_t[]){0, 1}, 2, false);
  p.h0 = ends;
  p.x = product(at, all, d->w);
  p.w = outer_sum(at, all, c->hidden, d->x, columns_of_x(c));
  p.r = outer_sum(at, all, c->hidden, d->before, int1(at, c->hidden));
  p.bias = concat(at, (ref[]){sum, sum}, 2, 0);
  return p;
}

/* ---- common ---- */

/* Reads what is common; refuses what the rules do not know. */
static bool start(psplit_i_at *at, int64_t gates, const char *const *activations, size_t n,
                  recurrence *c) {
  *c = (recurrence){.at = at, .gates = gates, .n_directions = 1};
  const char *why = psplit_i_given(at, 4)                    ? "it has sequence_lens"
                    : psplit_i_given(at, 7)                  ? "it has peepholes"
                    : psplit_i_int_or(at, "layout", 0)       ? "its layout is batch first"
                    : psplit_i_int_or(at, "input_forget", 0) ? "it couples its gates"
                    : psplit_i_float_or(at, "clip", 0) > 0   ? "it clips"
                    : !psplit_i_texts_repeat(at, "activations", activations, n)
                      ? "its activations are not the usual ones"
                      : NULL;
  c->hidden = psplit_i_int_or(at, "hidden_size", 0);
  if (!why && (c->hidden < 1 || c->hidden > INT32_MAX) &&
      !psplit_i_size(at, psplit_i_type_in(at, 2), 2, &c->hidden))
    why = "its hidden size is not known";
  if (why) {
    psplit_i_refuse(at, "%s", why);
    return false;
  }
  if (psplit_i_text_equals(at, "direction", "bidirectional")) c->n_directions = 2;
  c->backwards_only = psplit_i_text_equals(at, "direction", "reverse");
  c->x = in(at, 0);
  if (at->node->n_outputs > 0 && at->node->outputs[0] != PSPLIT_NONE) {
    c->y = out(at, 0);
  } else {
    /* The forward pass keeps the last state alone: again, for all of them. */
    ref inputs[8];
    const uint32_t n_inputs = at->node->n_inputs < 8 ? at->node->n_inputs : 8;
    for (uint32_t i = 0; i < n_inputs; i++) inputs[i] = in(at, i);
    psplit_i_copy_attributes(at);
    c->y = psplit_i_backward_node(at->b, at->node->op_type, n_inputs, inputs, 1);
  }
  int64_t batch;
  const ref batch_size = psplit_i_size(at, psplit_i_type_in(at, 0), 1, &batch)
                           ? int1(at, batch)
                           : psplit_i_shape_element(at, psplit_i_shape_in(at, 0), 1);
  c->zeros = psplit_i_zeros(at, concat(at, (ref[]){batch_size, int1(at, c->hidden)}, 2, 0));
  return true;
}

static ref or_zeros(const recurrence *c, ref a) { return a == PSPLIT_NONE ? c->zeros : a; }

/* Input i of direction `index`: [directions, N, H] -> [N, H], zeros where it is omitted. */
static ref initial(const recurrence *c, uint32_t i, int64_t index) {
  return psplit_i_given(c->at, i) ? pick(c->at, in(c->at, i), index, 0) : c->zeros;
}

static direction enter(const recurrence *c, int64_t index) {
  psplit_i_at *at = c->at;
  direction d = {.reversed = c->backwards_only || index == 1};
  d.after = pick(at, c->y, index, 1);
  d.g = pick(at, psplit_i_gradient_at(at, 0), index, 1);
  d.x = c->x;
  if (d.reversed) {
    d.x = reversed(at, d.x);
    d.after = reversed(at, d.after);
    if (d.g != PSPLIT_NONE) d.g = reversed(at, d.g);
  }
  if (d.g == PSPLIT_NONE) d.g = psplit_i_zeros(at, op1(at, "Shape", d.after));
  d.g_last = or_zeros(c, pick(at, psplit_i_gradient_at(at, 1), index, 0));
  d.h0 = initial(c, 5, index);
  d.before = shifted(at, d.h0, d.after);
  d.w = pick(at, in(at, 1), index, 0);
  d.r = pick(at, in(at, 2), index, 0);
  d.w_bias = d.r_bias = PSPLIT_NONE;
  if (psplit_i_given(at, 3)) {
    const ref both = pick(at, in(at, 3), index, 0);
    d.w_bias = rows_of(c, both, 0, c->gates);
    d.r_bias = rows_of(c, both, c->gates, 2 * c->gates);
  }
  return d;
}

/* Parts of both directions, one behind the other on a new first axis. */
static void give_stacked(const recurrence *c, uint32_t i, const ref *each) {
  psplit_i_at *at = c->at;
  ref stacked[2];
  if (!wanted(at, i)) return;
  for (int64_t k = 0; k < c->n_directions; k++)
    stacked[k] = unsqueezed(at, each[k], (int64_t[]){0}, 1);
  give(at, i, concat(at, stacked, (uint32_t)c->n_directions, 0));
}

static void finish(const recurrence *c, const parts *p) {
  psplit_i_at *at = c->at;
  ref w[2], r[2], bias[2], h0[2], c0[2];
  if (at->b->failed) return;
  for (int64_t k = 0; k < c->n_directions; k++) {
    const bool backwards = c->backwards_only || k == 1;
    w[k] = p[k].w;
    r[k] = p[k].r;
    bias[k] = p[k].bias;
    h0[k] = p[k].h0;
    c0[k] = p[k].c0;
    if (wanted(at, 0)) give(at, 0, backwards ? reversed(at, p[k].x) : p[k].x);
  }
  give_stacked(c, 1, w);
  give_stacked(c, 2, r);
  give_stacked(c, 3, bias);
  give_stacked(c, 5, h0);
  give_stacked(c, 6, c0);
}

void psplit_i_gradient_lstm(psplit_i_at *at) {
  static const char *const activations[] = {"Sigmoid", "Tanh", "Tanh"};
  recurrence c;
  parts p[2];
  if (!start(at, 4, activations, 3, &c)) return;
  for (int64_t k = 0; k < c.n_directions; k++) {
    const direction d = enter(&c, k);
    const ref g_cell = or_zeros(&c, pick(at, psplit_i_gradient_at(at, 2), k, 0));
    p[k] = lstm(&c, &d, initial(&c, 6, k), g_cell);
  }
  finish(&c, p);
}

void psplit_i_gradient_gru(psplit_i_at *at) {
  static const char *const activations[] = {"Sigmoid", "Tanh"};
  recurrence c;
  parts p[2];
  if (!start(at, 3, activations, 2, &c)) return;
  for (int64_t k = 0; k < c.n_directions; k++) {
    const direction d = enter(&c, k);
    p[k] = gru(&c, &d, psplit_i_int_or(at, "linear_before_reset", 0) != 0);
  }
  finish(&c, p);
}

void psplit_i_gradient_rnn(psplit_i_at *at) {
  static const char *const tanh_name[] = {"Tanh"}, *const relu_name[] = {"Relu"};
  recurrence c;
  parts p[2];
  const bool relu = !psplit_i_texts_repeat(at, "activations", tanh_name, 1);
  if (!start(at, 1, relu ? relu_name : tanh_name, 1, &c)) return;
  for (int64_t k = 0; k < c.n_directions; k++) {
    const direction d = enter(&c, k);
    const ref slope =
      relu ? indicator(at, op2(at, "Greater", d.after, number(at, 0))) : tanh_slope(at, d.after);
    p[k] = simple(&c, &d, slope);
  }
  finish(&c, p);
}
