/* Cost of CPU kernels beyond the arithmetic of the operator: overheads of inner loops. Block sizes
 * and costs per element were measured with individual kernels of ONNX Runtime, see
 * docs/costs.md. */
#include "operator.h"
#include "work_inside.h"

/* Lanes of a vector, which is a block of channels. */
enum { LANES = 16 };

/* Steps (psplit_i_kernel) of what vectors do not do. */
enum {
  STEPS_CALL = 1500,        /* one product of many, one group, one step of a sequence */
  STEPS_ROW = 50,           /* of a normalisation, where it ends one sum and starts the next */
  STEPS_NEAR = 4,           /* an element brought to another axis and back: the next to last, */
  STEPS_FAR = 25,           /* and any other */
  STEPS_POWER = 75,         /* an element to a power */
  STEPS_COLUMN = 1,         /* an element of the matrix that a convolution is made a product by, */
  STEPS_COLUMN_INTEGER = 6, /* of integers along one axis, */
  STEPS_SCATTER = 4,        /* and one that is summed up behind a product: of an image, */
  STEPS_SCATTER_1D = 10,    /* along one axis */
  STEPS_BRANCH = 8,         /* a node of a tree */
  STEPS_LINEAR = 3,         /* an element between others, by weights made for each axis; */
  STEPS_CUBIC = 170         /* by weights made for each element */
};

static uint64_t mul(uint64_t a, uint64_t b) { return psplit_i_sat_mul_u64(a, b); }
static void add(uint64_t *sum, uint64_t more) { *sum = psplit_i_sat_add_u64(*sum, more); }

/* `flops` as many times as the padded size holds the size. */
static uint64_t padded(uint64_t flops, uint64_t size) {
  if (size == 0) return flops;
  const uint64_t whole = (size + LANES - 1) / LANES * LANES;
  return mul(flops, whole) / size;
}

static uint64_t dim(psplit_i_tally *t, const psplit_i_vtype *type, int32_t axis) {
  return axis >= 0 && axis < type->rank ? psplit_i_tally_dim(t, type->dims[axis]) : 0;
}

static uint64_t volume(psplit_i_tally *t, const psplit_i_vtype *type, int32_t from, int32_t to) {
  uint64_t product = 1;
  for (int32_t axis = from; axis < to && axis < type->rank; axis++)
    product = mul(product, dim(t, type, axis));
  return product;
}

static bool is_integer(int32_t elem) {
  enum { UINT8 = 2, INT8 = 3 };
  return elem == UINT8 || elem == INT8;
}

/* Elements of the matrix with a column for each place of the kernel. */
static uint64_t columns(psplit_i_tally *t, const psplit_i_vtype *weights, const psplit_i_vtype *out,
                        uint64_t groups) {
  const uint64_t channels = dim(t, out, 1);
  const uint64_t places = channels ? psplit_i_tally_elements(t, out) / channels : 0;
  return mul(mul(places, groups), volume(t, weights, 1, weights->rank));
}

static void conv(psplit_i_tally *t, const psplit_i_site *at, psplit_i_kernel *k) {
  enum { INT8 = 3, LINE_RANK = 3, DEPTHWISE_BLOCK = 4 };
  const psplit_i_vtype *weights = psplit_i_in(at, 1), *out = psplit_i_site_output(at, 0);
  const int64_t group = psplit_i_int(at, "group", 1);
  const uint64_t groups = group > 1 ? (uint64_t)group : 1;
  const uint64_t in = dim(t, weights, 1), n = dim(t, weights, 0) / groups;
  const bool line = weights->rank == LINE_RANK;
  const bool wide = line && dim(t, weights, 2) > 1;
  if (is_integer(psplit_i_elem(at, 0))) {
    /* The weights are the first operand here, and that has no fast kernel with a sign. */
    if (weights->elem == INT8) k->issued = mul(k->issued, 5);
    if (wide) add(&k->steps, mul(STEPS_COLUMN_INTEGER, columns(t, weights, out, groups)));
  } else if (groups == 1) {
    k->issued = padded(k->issued, n);
    if (in >= LANES) k->issued = padded(k->issued, in);
    if (wide) add(&k->steps, mul(STEPS_COLUMN, columns(t, weights, out, 1)));
  } else if (in == 1 && n == 1 && groups % DEPTHWISE_BLOCK == 0) {
    /* The class of its own has kernels of its own. */
  } else if (in % LANES == 0 && n % LANES == 0) {
    k->issued = mul(k->issued, 8) / 5;
  } else { /* group by group */
    if (in == 1 || in > DEPTHWISE_BLOCK) k->issued = mul(k->issued, in == 1 ? 4 : 2);
    if (in > 1) add(&k->steps, mul(STEPS_COLUMN, columns(t, weights, out, groups)));
    add(&k->steps, mul(STEPS_CALL, groups));
  }
}

static void conv_transpose(psplit_i_tally *t, const psplit_i_site *at, psplit_i_kernel *k) {
  enum { LINE_RANK = 3 };
  const psplit_i_vtype *in = psplit_i_in(at, 0);
  const uint64_t channels = dim(t, in, 1);
  const uint64_t summed = channels ? k->issued / 2 / channels : 0;
  add(&k->steps, mul(in->rank == LINE_RANK ? STEPS_SCATTER_1D : STEPS_SCATTER, summed));
}

/* Each matrix of a batch is a product by itself, unless all go by one. */
static void mat_mul(psplit_i_tally *t, const psplit_i_site *at, uint32_t b, psplit_i_kernel *k) {
  const psplit_i_vtype *out = psplit_i_site_output(at, 0), *other = psplit_i_in(at, b);
  if (out->rank < 1) return;
  k->issued = padded(k->issued, dim(t, out, out->rank - 1));
  const uint64_t products = other->rank == 2 ? 1 : volume(t, out, 0, out->rank - 2);
  add(&k->steps, mul(STEPS_CALL, products));
}

/* Rows along the axis; along another than the last one elements are brought there and back. */
static void softmax(psplit_i_tally *t, const psplit_i_site *at, psplit_i_kernel *k) {
  enum { ANY_AXIS = 13 }; /* before this opset all axes from the one on are a row */
  const psplit_i_vtype *in = psplit_i_in(at, 0);
  const bool rest = !*at->node->domain && at->node->opset < ANY_AXIS;
  int32_t axis;
  if (in->rank < 1 || !psplit_i_axis(psplit_i_int(at, "axis", rest ? 1 : -1), in->rank, &axis))
    return;
  const uint64_t elements = psplit_i_tally_elements(t, in);
  const uint64_t row = rest ? volume(t, in, axis, in->rank) : dim(t, in, axis);
  add(&k->steps, mul(STEPS_ROW, row ? elements / row : 0));
  if (!rest && axis < in->rank - 1)
    add(&k->steps, mul(axis == in->rank - 2 ? STEPS_NEAR : STEPS_FAR, elements));
}

static void norm(psplit_i_tally *t, const psplit_i_site *at, psplit_i_kernel *k) {
  const psplit_i_vtype *in = psplit_i_in(at, 0);
  int32_t axis;
  if (in->rank < 1) return;
  if (psplit_i_attribute(at, "size")) /* over neighbouring channels */
    add(&k->steps, mul(STEPS_POWER, psplit_i_tally_elements(t, in)));
  else if (psplit_i_attribute(at, "axis") &&
           psplit_i_axis(psplit_i_int(at, "axis", -1), in->rank, &axis))
    add(&k->steps, mul(STEPS_ROW, volume(t, in, 0, axis)));
}

static void rnn(psplit_i_tally *t, const psplit_i_site *at, psplit_i_kernel *k) {
  const uint64_t directions = dim(t, psplit_i_in(at, 2), 0);
  add(&k->steps, mul(STEPS_CALL, mul(dim(t, psplit_i_in(at, 0), 0), directions)));
}

static void resize(psplit_i_tally *t, const psplit_i_site *at, psplit_i_kernel *k) {
  const bool cubic =
    psplit_i_text_is(at, "mode", "cubic", false) || psplit_i_text_is(at, "mode", "bicubic", false);
  const bool nearest = psplit_i_text_is(at, "mode", "nearest", at->node->op_type[0] != 'G');
  const uint64_t elements = psplit_i_tally_elements(t, psplit_i_site_output(at, 0));
  if (cubic)
    add(&k->steps, mul(STEPS_CUBIC, elements));
  else
    add(&k->steps, mul(STEPS_LINEAR, elements) / (nearest ? 2 : 1));
}

psplit_i_kernel psplit_i_kernel_of(psplit_i_tally *t, const psplit_i_site *at,
                                   const psplit_i_rule *rule, const psplit_work *work) {
  psplit_i_kernel k = {.issued = work->flops};
  if (!psplit_i_node_has(at->node, PSPLIT_I_OP_READS_PART))
    k.weight_bytes = work->weight_bytes < work->bytes_read ? work->weight_bytes : work->bytes_read;
  switch (rule->flops) {
    case PSPLIT_FLOPS_CONV: conv(t, at, &k); break;
    case PSPLIT_FLOPS_CONV_TRANSPOSE: conv_transpose(t, at, &k); break;
    case PSPLIT_FLOPS_MATMUL: mat_mul(t, at, 1, &k); break;
    case PSPLIT_FLOPS_QMATMUL: mat_mul(t, at, 3, &k); break;
    case PSPLIT_FLOPS_OUT_MANY:
      if (rule->op_class == PSPLIT_CLASS_NORM) softmax(t, at, &k);
      break;
    case PSPLIT_FLOPS_NORM: norm(t, at, &k); break;
    case PSPLIT_FLOPS_RNN: rnn(t, at, &k); break;
    case PSPLIT_FLOPS_RESIZE: resize(t, at, &k); break;
    case PSPLIT_FLOPS_TREES: add(&k.steps, mul(STEPS_BRANCH / 2, k.issued)); break;
    case PSPLIT_FLOPS_SVM: add(&k.steps, k.issued / 2); break;
    case PSPLIT_FLOPS_LINEAR: add(&k.steps, mul(STEPS_ROW, dim(t, psplit_i_in(at, 0), 0))); break;
    case PSPLIT_FLOPS_NONE:
      if (psplit_i_attribute(at, "perm")) /* every other element, as it were */
        add(&k.steps, psplit_i_tally_elements(t, psplit_i_site_output(at, 0)) / 2);
      break;
    default: break;
  }
  add(&k.steps, psplit_i_count_pieces(t->costs, at, rule, work));
  return k;
}

/* What a node may be to the kernel of a convolution or product in front. */
typedef enum place {
  NOWHERE,
  HEAD,     /* the kernel's own operator */
  FOLDED,   /* with constants, a part of its weights */
  SUMMED,   /* adds another tensor */
  ACTIVATED /* the last thing that it does */
} place;

static place place_of(psplit_i_scope *scope, uint32_t node, int depth);

static bool is_head(const psplit_i_site *at) {
  const psplit_op_class op_class = psplit_i_op_class(at->node->domain, at->node->op_type);
  if (at->node->function != PSPLIT_NONE || is_integer(psplit_i_elem(at, 0))) return false;
  return op_class == PSPLIT_CLASS_CONV && psplit_i_node_has(at->node, PSPLIT_I_OP_BLOCKED);
}

/* Whether the node is all that reads the value, so that nobody misses it. */
static bool is_only_reader(psplit_i_scope *scope, uint32_t value) {
  const psplit_i_graph *graph = scope->graph;
  return value != PSPLIT_NONE && graph->values[value].producer != PSPLIT_NONE &&
         !graph->values[value].is_output &&
         graph->consumer_off[value + 1] - graph->consumer_off[value] == 1;
}

/* Whether all inputs but one are constants, with sizes for each channel where `channels`. */
static bool others_are_constant(const psplit_i_site *at, uint32_t input, bool channels) {
  for (uint32_t i = 0; i < at->node->n_inputs; i++) {
    if (i == input || !psplit_i_has(at, i)) continue;
    const psplit_i_vtype *type = psplit_i_in(at, i);
    if (!type->is_weight) return false;
    if (channels && type->rank < psplit_i_in(at, input)->rank - 1) return false;
  }
  return true;
}

/* What the node is behind `front`, as reader of its input `input`. */
static place place_behind(const psplit_i_site *at, uint32_t input, place front) {
  const bool norm = psplit_i_op_class(at->node->domain, at->node->op_type) == PSPLIT_CLASS_NORM;
  const bool plain = front == HEAD || front == FOLDED;
  const bool sum = psplit_i_node_has(at->node, PSPLIT_I_OP_COMMUTATIVE);
  if (plain && psplit_i_node_has(at->node, PSPLIT_I_OP_FOLDS) &&
      others_are_constant(at, input, !norm))
    return FOLDED;
  if (!psplit_i_node_has(at->node, PSPLIT_I_OP_KERNEL_TAIL)) return NOWHERE;
  if (sum)
    return plain && at->node->n_inputs == 2 && !others_are_constant(at, input, false) ? SUMMED
                                                                                      : NOWHERE;
  return input == 0 && others_are_constant(at, 0, false) ? ACTIVATED : NOWHERE;
}

static place place_of(psplit_i_scope *scope, uint32_t node, int depth) {
  enum { DEEPEST = 8 };
  const psplit_i_site at = {.scope = scope, .node = &scope->graph->nodes[node], .id = node};
  if (is_head(&at)) return HEAD;
  if (depth == DEEPEST || !psplit_i_node_has(at.node, PSPLIT_I_OP_FOLDS | PSPLIT_I_OP_KERNEL_TAIL))
    return NOWHERE;
  for (uint32_t i = 0; i < at.node->n_inputs && i < 2; i++) {
    if (!is_only_reader(scope, at.node->inputs[i])) continue;
    const place front =
      place_of(scope, scope->graph->values[at.node->inputs[i]].producer, depth + 1);
    const place here =
      front == NOWHERE || front == ACTIVATED ? NOWHERE : place_behind(&at, i, front);
    if (here != NOWHERE) return here;
  }
  return NOWHERE;
}

bool psplit_i_is_inside_kernel(const psplit_i_site *at) {
  return place_of(at->scope, at->id, 0) > HEAD;
}
