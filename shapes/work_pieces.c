/* Pieces that a CPU kernel copies individually: runs that are contiguous on both sides but too
 * short for vector instructions. Costs per piece were measured, see docs/costs.md. */
#include "work_inside.h"

/* Steps (psplit_i_kernel) of a short piece. */
enum {
  STEPS_JOINED = 6,  /* a short piece that is moved: one of all that lie there, */
  STEPS_PART = 12,   /* one between others that stay, */
  STEPS_PICKED = 18, /* one that an index says, */
  STEPS_SPREAD = 30, /* one that others are put between, or that is there several times, */
  STEPS_SPAN = 20    /* one of results for which an operand is the same all along, or goes along */
};

static uint64_t mul(uint64_t a, uint64_t b) { return psplit_i_sat_mul_u64(a, b); }
static uint64_t add(uint64_t a, uint64_t b) { return psplit_i_sat_add_u64(a, b); }

static uint64_t volume_behind(psplit_i_tally *t, const psplit_i_vtype *type, int32_t axis) {
  uint64_t product = 1;
  while (++axis < type->rank) product = mul(product, psplit_i_tally_dim(t, type->dims[axis]));
  return product;
}

/* `elements` in pieces of `piece` of a type: how many, where these are too short for vectors. What
 * was asked for the size of a piece is in `t`: one that only a run tells may be any. */
static uint64_t short_pieces(const psplit_i_tally *t, uint64_t elements, uint64_t piece,
                             const psplit_i_vtype *type) {
  enum { SHORT_BITS = 512 };
  const uint64_t bits = mul(piece, psplit_i_dtype_bits(type->elem));
  if (t->unknown || t->assumed || t->data) return 0;
  return bits > 0 && bits < SHORT_BITS ? elements / piece : 0;
}

static uint64_t count(psplit_i_costs *costs, const psplit_i_vtype *type) {
  return psplit_i_tally_elements(&(psplit_i_tally){.costs = costs}, type);
}

/* Size of an axis, counted from the last one. */
static uint64_t from_end(psplit_i_tally *t, const psplit_i_vtype *type, int32_t axis) {
  return axis < type->rank ? psplit_i_tally_dim(t, type->dims[type->rank - 1 - axis]) : 1;
}

/* Pieces of the smaller of two tensors that lie together in both, where they have `least` elements.
 */
static uint64_t pieces(psplit_i_costs *costs, const psplit_i_vtype *small,
                       const psplit_i_vtype *large, uint64_t least) {
  psplit_i_tally own = {.costs = costs}, *t = &own;
  const uint64_t elements = count(costs, small);
  uint64_t piece = 1;
  int32_t axis = 0;
  for (; axis < large->rank && from_end(t, small, axis) == from_end(t, large, axis); axis++)
    piece = mul(piece, from_end(t, large, axis));
  if (axis >= large->rank) return 0;
  piece = mul(piece, from_end(t, small, axis));
  return piece < least ? 0 : short_pieces(t, elements, piece, small);
}

/* Single elements are brought together, or apart, in a loop of its own. */
static uint64_t join(psplit_i_costs *costs, const psplit_i_site *at) {
  const psplit_i_vtype *in = psplit_i_in(at, 0), *out = psplit_i_site_output(at, 0);
  uint64_t n = 0;
  if (at->node->n_outputs > 1) {
    for (uint32_t o = 0; o < at->node->n_outputs; o++)
      n = add(n, pieces(costs, psplit_i_site_output(at, o), in, 2));
    return n;
  }
  for (uint32_t i = 0; i < at->node->n_inputs; i++)
    if (psplit_i_has(at, i)) n = add(n, pieces(costs, psplit_i_in(at, i), out, 2));
  return n;
}

static uint64_t pick(psplit_i_costs *costs, const psplit_i_site *at) {
  psplit_i_tally own = {.costs = costs}, *t = &own;
  const psplit_i_vtype *in = psplit_i_in(at, 0), *out = psplit_i_site_output(at, 0);
  int32_t axis;
  if (in->rank < 1 || !psplit_i_axis(psplit_i_int(at, "axis", 0), in->rank, &axis)) return 0;
  const uint64_t elements = count(costs, out);
  const uint64_t piece = volume_behind(t, in, axis);
  return short_pieces(t, elements, piece, out);
}

/* Where an operand is repeated along the last axes, or along the one before them, results go piece
 * by piece. */
static uint64_t broadcast(psplit_i_costs *costs, const psplit_i_site *at) {
  const psplit_i_vtype *out = psplit_i_site_output(at, 0);
  const uint64_t elements = count(costs, out);
  uint64_t most = 0;
  for (uint32_t i = 0; i < at->node->n_inputs; i++) {
    const psplit_i_vtype *in = psplit_i_in(at, i);
    uint64_t span = 1, size;
    int32_t axis = 0, repeats = -1;
    psplit_i_tally own = {.costs = costs};
    if (in->rank < 0 || count(costs, in) <= 1) continue;
    for (; axis < out->rank; axis++, span = mul(span, size)) {
      if ((size = from_end(&own, out, axis)) == 1) continue;
      const int32_t here = from_end(&own, in, axis) != size;
      if (repeats >= 0 && here != repeats) break;
      repeats = here;
    }
    if (axis >= out->rank) continue;
    const uint64_t n = short_pieces(&own, elements, span, out);
    if (n > most) most = n;
  }
  return most;
}

uint64_t psplit_i_count_pieces(psplit_i_costs *costs, const psplit_i_site *at,
                               const psplit_i_rule *rule, const psplit_work *work) {
  const psplit_i_vtype *in = psplit_i_in(at, 0), *out = psplit_i_site_output(at, 0);
  if (work->op_class == PSPLIT_CLASS_SHAPE) return 0;
  switch (rule->flops) {
    case PSPLIT_FLOPS_JOIN: return mul(STEPS_JOINED, join(costs, at));
    case PSPLIT_FLOPS_PART: return mul(STEPS_PART, pieces(costs, out, in, 1));
    case PSPLIT_FLOPS_PICK: return mul(STEPS_PICKED, pick(costs, at));
    case PSPLIT_FLOPS_SPREAD: return mul(STEPS_SPREAD, pieces(costs, in, out, 1));
    default: break;
  }
  if (rule->op_class != PSPLIT_CLASS_ELEMENTWISE || at->node->n_inputs < 2) return 0;
  return mul(STEPS_SPAN, broadcast(costs, at));
}
