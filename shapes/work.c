/* Work of nodes: bytes, classes, bodies; the arithmetic is counted in work_flops.c. */
#include "work_inside.h"

#include "operator.h"

/* Integer tensors up to this size are sizes, not data. */
enum { SHAPE_ELEMENTS = 64, DEPTHWISE_CHANNELS = 4 };

static void add_kernel(psplit_i_kernel *sum, const psplit_i_kernel *more, uint64_t times) {
  sum->issued = psplit_i_sat_add_u64(sum->issued, psplit_i_sat_mul_u64(more->issued, times));
  sum->steps = psplit_i_sat_add_u64(sum->steps, psplit_i_sat_mul_u64(more->steps, times));
  sum->weight_bytes =
    psplit_i_sat_add_u64(sum->weight_bytes, psplit_i_sat_mul_u64(more->weight_bytes, times));
}

static void add_work(psplit_work *sum, const psplit_work *more, uint64_t times) {
  sum->flops = psplit_i_sat_add_u64(sum->flops, psplit_i_sat_mul_u64(more->flops, times));
  sum->bytes_read =
    psplit_i_sat_add_u64(sum->bytes_read, psplit_i_sat_mul_u64(more->bytes_read, times));
  sum->bytes_written =
    psplit_i_sat_add_u64(sum->bytes_written, psplit_i_sat_mul_u64(more->bytes_written, times));
  const uint64_t launches =
    psplit_i_sat_add_u64(sum->launches, psplit_i_sat_mul_u64(more->launches, times));
  sum->launches = launches > UINT32_MAX ? UINT32_MAX : (uint32_t)launches;
  if (!more->known) sum->known = false;
}

/* Adds one part to those of its class and type. */
static void add_part(psplit_i_costs *costs, psplit_i_part **parts, const psplit_i_part *more,
                     uint64_t times) {
  psplit_i_part **at = parts;
  while (*at && ((*at)->work.op_class != more->work.op_class ||
                 (*at)->work.data_type != more->work.data_type))
    at = &(*at)->next;
  if (!*at) {
    if (!(*at = psplit_i_costs_take(costs, 1, sizeof **at))) {
      costs->failed = true;
      return;
    }
    (*at)->work = (psplit_work){
      .op_class = more->work.op_class, .data_type = more->work.data_type, .known = true};
  }
  add_work(&(*at)->work, &more->work, times);
  add_kernel(&(*at)->kernel, &more->kernel, times);
}

/* Adds what a node or a scope runs. */
static void add_parts(psplit_i_costs *costs, psplit_i_part **parts, const psplit_i_node_cost *more,
                      uint64_t times) {
  if (more->kernel.inside) return;
  if (!more->parts)
    add_part(costs, parts, &(psplit_i_part){.work = more->work, .kernel = more->kernel}, times);
  for (const psplit_i_part *part = more->parts; part; part = part->next)
    add_part(costs, parts, part, times);
}

static bool is_small_integer(const psplit_i_tally *tally, const psplit_i_vtype *type) {
  int64_t n;
  return psplit_i_is_int_type(type->elem) && psplit_i_count(tally->costs->shapes->dims, type, &n) &&
         n <= SHAPE_ELEMENTS;
}

/* Whether the node only computes with sizes. */
static bool is_shape_work(const psplit_i_tally *tally, const psplit_i_site *at) {
  for (uint32_t o = 0; o < at->node->n_outputs; o++)
    if (psplit_i_wants(at, o) && !is_small_integer(tally, psplit_i_site_output(at, o)))
      return false;
  for (uint32_t i = 0; i < at->node->n_inputs; i++)
    if (psplit_i_has(at, i) && !is_small_integer(tally, psplit_i_in(at, i))) return false;
  return true;
}

static bool repeated(const psplit_i_node *node, uint32_t input) {
  for (uint32_t i = 0; i < input && i < 64; i++)
    if (node->inputs[i] == node->inputs[input]) return true;
  return false;
}

/* Strings that are written are labels, which are short; those that are read may be texts. */
static uint64_t written_bytes(psplit_i_tally *tally, const psplit_i_vtype *type) {
  enum { STRING = 8, STRING_BYTES = 32 };
  if (type->elem != STRING) return psplit_i_tally_bytes(tally, type);
  return psplit_i_sat_mul_u64(psplit_i_tally_elements(tally, type), STRING_BYTES);
}

static void count_bytes(psplit_i_tally *tally, const psplit_i_site *at, psplit_work *work) {
  const bool part = psplit_i_node_has(at->node, PSPLIT_I_OP_READS_PART);
  for (uint32_t o = 0; o < at->node->n_outputs; o++)
    if (psplit_i_wants(at, o))
      work->bytes_written = psplit_i_sat_add_u64(work->bytes_written,
                                                 written_bytes(tally, psplit_i_site_output(at, o)));
  for (uint32_t i = 0; i < at->node->n_inputs; i++) {
    if (!psplit_i_has(at, i) || repeated(at->node, i)) continue;
    const psplit_i_vtype *type = psplit_i_in(at, i);
    const bool skip = part && i == 0;
    const uint64_t bytes =
      skip && !type->is_weight ? work->bytes_written : psplit_i_tally_bytes(tally, type);
    work->bytes_read = psplit_i_sat_add_u64(work->bytes_read, skip ? work->bytes_written : bytes);
    if (type->is_weight) work->weight_bytes = psplit_i_sat_add_u64(work->weight_bytes, bytes);
  }
}

static psplit_i_node_cost scope_cost(psplit_i_costs *costs, psplit_i_scope *scope);

static void add_dependence(psplit_i_tally *tally, const psplit_i_node_cost *cost) {
  tally->assumed |= cost->assumed;
  tally->data |= cost->data;
  tally->heavy |= cost->heavy;
  tally->data_heavy |= cost->data_heavy;
}

/* How often a body runs; who runs it how often may hang on the data. */
static uint64_t count_trips(psplit_i_tally *tally, const psplit_i_child *child,
                            const psplit_i_node_cost *cost) {
  psplit_i_tally trips = {.costs = tally->costs};
  const uint64_t n = psplit_i_tally_dim(&trips, child->trips);
  add_dependence(tally, cost);
  tally->unknown |= trips.unknown;
  tally->assumed |= trips.assumed;
  tally->data |= trips.data;
  tally->data_heavy |= (trips.data || trips.unknown) && cost->heavy;
  /* Without a trip count, one trip is the least that says something. */
  return trips.unknown ? 1 : n;
}

static bool same_work(const psplit_work *a, const psplit_work *b) {
  return a->flops == b->flops && a->launches == b->launches &&
         psplit_i_sat_add_u64(a->bytes_read, a->bytes_written) ==
           psplit_i_sat_add_u64(b->bytes_read, b->bytes_written);
}

/* What hangs on node `id` of a scope: calls and bodies by their trips, of branches the costlier. */
static void count_children(psplit_i_tally *tally, const psplit_i_site *at, psplit_work *work,
                           psplit_i_part **parts) {
  const psplit_i_scope *scope = at->scope;
  uint32_t low = 0, high = scope->n_children;
  while (low < high) {
    const uint32_t middle = low + (high - low) / 2;
    if (scope->children[middle].node < at->id)
      low = middle + 1;
    else
      high = middle;
  }
  psplit_i_node_cost costlier = {.work.known = true};
  bool any_branch = false, any = false, differ = false;
  for (; low < scope->n_children && scope->children[low].node == at->id; low++) {
    const psplit_i_child *child = &scope->children[low];
    const psplit_i_node_cost cost = scope_cost(tally->costs, child->scope);
    if (!child->again)
      work->weight_bytes = psplit_i_sat_add_u64(work->weight_bytes, cost.work.weight_bytes);
    any = true;
    if (!child->alternative) {
      const uint64_t trips = count_trips(tally, child, &cost);
      add_work(work, &cost.work, trips);
      add_parts(tally->costs, parts, &cost, trips);
      continue;
    }
    const bool more =
      cost.work.flops > costlier.work.flops ||
      (cost.work.flops == costlier.work.flops &&
       psplit_i_sat_add_u64(cost.work.bytes_read, cost.work.bytes_written) >
         psplit_i_sat_add_u64(costlier.work.bytes_read, costlier.work.bytes_written));
    add_dependence(tally, &cost);
    if (!cost.work.known) tally->unknown = true;
    differ |= any_branch && !same_work(&cost.work, &costlier.work);
    if (!any_branch || more) costlier = cost;
    any_branch = true;
  }
  if (any_branch) {
    add_work(work, &costlier.work, 1);
    add_parts(tally->costs, parts, &costlier, 1);
  }
  if (differ) { /* the branch that runs may be the cheaper one */
    tally->data = true;
    tally->data_heavy |= tally->heavy;
  }
  if (!any) tally->heavy = tally->data_heavy = true; /* nobody looked inside */
  if (!any || !work->known) tally->unknown = true;
}

/* Few input channels per group: little arithmetic per byte, and slower kernels. */
static bool is_depthwise(const psplit_i_site *at, const psplit_i_rule *rule) {
  const bool quantised = rule->flops == PSPLIT_FLOPS_QCONV;
  if (rule->flops != PSPLIT_FLOPS_CONV && !quantised) return false;
  const psplit_i_vtype *weights = psplit_i_in(at, quantised ? 3 : 1);
  return psplit_i_int(at, "group", 1) > 1 && weights->rank > 2 &&
         psplit_i_dim_high(at->dims, weights->dims[1]) <= DEPTHWISE_CHANNELS;
}

/* Products with weights of 8 bits are computed in their type: whether that has a sign decides which
 * instructions there are. */
static int32_t compute_type(const psplit_i_site *at, psplit_op_class op_class,
                            const psplit_i_rule *rule) {
  enum { UINT8 = 2, INT8 = 3 };
  const int32_t in = psplit_i_elem(at, 0), out = psplit_i_site_output(at, 0)->elem;
  if (psplit_i_is_product(op_class) && rule && rule->flops != PSPLIT_FLOPS_NBITS) {
    const bool behind_scales = rule->flops == PSPLIT_FLOPS_QCONV ||
                               rule->flops == PSPLIT_FLOPS_QMATMUL ||
                               rule->flops == PSPLIT_FLOPS_QGEMM;
    const int32_t weights = psplit_i_elem(at, behind_scales ? 3 : 1);
    if (weights == UINT8 || weights == INT8) return weights;
  }
  return psplit_i_is_product(op_class) && in ? in : out ? out : in;
}

/* Classes whose nodes are worth a model's time, by themselves, when there is much data. */
static bool is_heavy(const psplit_i_rule *rule, psplit_op_class op_class) {
  return !rule || psplit_i_is_product(op_class) || rule->flops == PSPLIT_FLOPS_DFT;
}

static psplit_i_node_cost node_cost(psplit_i_costs *costs, psplit_i_scope *scope, uint32_t id) {
  psplit_i_tally tally = {.costs = costs};
  const psplit_i_site at = {
    .dims = costs->shapes->dims, .scope = scope, .node = &scope->graph->nodes[id], .id = id};
  psplit_work work = {.launches = 1, .known = true};
  psplit_i_kernel kernel = {0};
  psplit_i_part *parts = NULL;
  const psplit_i_rule *rule =
    at.node->function != PSPLIT_NONE ? NULL : psplit_i_rule_of(costs->shapes, at.node);
  const bool control =
    at.node->function != PSPLIT_NONE || (rule && rule->flops == PSPLIT_FLOPS_CONTROL);
  if (control) {
    work.op_class = PSPLIT_CLASS_CONTROL;
    work.launches = at.node->function != PSPLIT_NONE ? 0 : 1;
    count_children(&tally, &at, &work, &parts);
  } else if (!rule) {
    count_bytes(&tally, &at, &work);
    tally.unknown = true;
  } else {
    work.op_class = rule->op_class;
    if (is_depthwise(&at, rule)) work.op_class = PSPLIT_CLASS_DEPTHWISE;
    const bool movable = work.op_class == PSPLIT_CLASS_ELEMENTWISE ||
                         work.op_class == PSPLIT_CLASS_MOVE ||
                         work.op_class == PSPLIT_CLASS_REDUCE || work.op_class == PSPLIT_CLASS_VIEW;
    if (movable && is_shape_work(&tally, &at)) work.op_class = PSPLIT_CLASS_SHAPE;
    if (work.op_class == PSPLIT_CLASS_CONSTANT) {
      work.weight_bytes = psplit_i_tally_bytes(&tally, psplit_i_site_output(&at, 0));
      work.launches = 0;
    } else if (work.op_class == PSPLIT_CLASS_VIEW) {
      count_bytes(&tally, &at, &work);
      work.bytes_read = work.bytes_written = 0;
      work.launches = 0;
    } else if (rule->op_class == PSPLIT_CLASS_SHAPE) {
      /* Reads a size, not the data. */
    } else {
      count_bytes(&tally, &at, &work);
      work.flops = psplit_i_count_flops(&tally, &at, rule->flops);
      kernel = psplit_i_kernel_of(&(psplit_i_tally){.costs = costs}, &at, rule, &work);
      kernel.inside = psplit_i_is_inside_kernel(&at);
    }
  }
  work.data_type = compute_type(&at, work.op_class, rule);
  work.known = !tally.unknown;
  const bool data = tally.data || tally.unknown;
  const bool heavy = control ? tally.heavy : is_heavy(rule, work.op_class);
  return (psplit_i_node_cost){.work = work,
                              .kernel = kernel,
                              .parts = parts,
                              .assumed = tally.assumed,
                              .data = data,
                              .heavy = heavy,
                              .data_heavy = control ? tally.data_heavy : data && heavy};
}

/* One run of all nodes of a scope. Weights that several nodes read count once per scope. */
static psplit_i_node_cost scope_cost(psplit_i_costs *costs, psplit_i_scope *scope) {
  if (costs->scope_done[scope->index]) return costs->scopes[scope->index];
  psplit_i_node_cost sum = {.work = {.known = true, .op_class = PSPLIT_CLASS_CONTROL}};
  psplit_i_tally tally = {.costs = costs};
  for (uint32_t n = 0; n < scope->graph->n_nodes; n++) {
    const psplit_i_node_cost cost = node_cost(costs, scope, n);
    add_work(&sum.work, &cost.work, 1);
    add_parts(costs, &sum.parts, &cost, 1);
    sum.assumed |= cost.assumed;
    sum.data |= cost.data;
    sum.heavy |= cost.heavy;
    sum.data_heavy |= cost.data_heavy;
    if (cost.work.op_class == PSPLIT_CLASS_CONTROL || cost.work.op_class == PSPLIT_CLASS_CONSTANT)
      sum.work.weight_bytes = psplit_i_sat_add_u64(sum.work.weight_bytes, cost.work.weight_bytes);
  }
  for (uint32_t v = 0; v < scope->graph->n_values; v++)
    if (scope->types[v].is_weight && scope->graph->values[v].producer == PSPLIT_NONE)
      sum.work.weight_bytes =
        psplit_i_sat_add_u64(sum.work.weight_bytes, psplit_i_tally_bytes(&tally, &scope->types[v]));
  costs->scopes[scope->index] = sum;
  costs->scope_done[scope->index] = true;
  return sum;
}

/* Costs alike that were met lately, by a hash of their bytes: most nodes of a large graph cost what
 * another of its blocks does. */
enum { N_RECENT = 256 };

static bool is_same_cost(const psplit_i_node_cost *a, const psplit_i_node_cost *b) {
  const psplit_work *x = &a->work, *y = &b->work;
  const psplit_i_kernel *k = &a->kernel, *l = &b->kernel;
  return x->flops == y->flops && x->bytes_read == y->bytes_read &&
         x->bytes_written == y->bytes_written && x->weight_bytes == y->weight_bytes &&
         x->launches == y->launches && x->data_type == y->data_type && x->op_class == y->op_class &&
         x->known == y->known && k->issued == l->issued && k->steps == l->steps &&
         k->weight_bytes == l->weight_bytes && k->inside == l->inside && !a->parts && !b->parts &&
         a->assumed == b->assumed && a->data == b->data && a->heavy == b->heavy &&
         a->data_heavy == b->data_heavy;
}

bool psplit_i_costs_count(psplit_i_costs *costs) {
  uint32_t recent[N_RECENT] = {0}; /* 1 + index */
  for (uint32_t n = 0; n < costs->shapes->graph->n_nodes; n++) {
    const psplit_i_node_cost cost = node_cost(costs, costs->shapes->root, n);
    costs->n_unknown += !cost.work.known;
    costs->n_assumed += cost.assumed;
    costs->n_data += cost.data;
    uint32_t *place =
      &recent[psplit_i_mix64(cost.work.flops ^ cost.work.bytes_read << 24 ^
                             cost.work.bytes_written << 48 ^ (uint64_t)cost.work.op_class) %
              N_RECENT];
    if (!*place || !is_same_cost(&costs->distinct.items[*place - 1], &cost)) {
      if (costs->failed || !psplit_i_vec_push(&costs->distinct, cost)) return false;
      *place = (uint32_t)costs->distinct.n;
    }
    costs->node_cost[n] = *place - 1;
  }
  return true;
}
