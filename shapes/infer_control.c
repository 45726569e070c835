/* Rules: If, Loop, Scan, SequenceMap: bodies in their own scopes. */
#include <assert.h>
#include <string.h>

#include "infer.h"

enum { INT64 = 7, BOOL = 9, MAX_PASSES = 8, WIDEN_AT = 2, FEW_TRIPS = 8 };

static const psplit_i_graph *body_of(const psplit_i_site *at, const char *name) {
  const Onnx__AttributeProto *a = psplit_i_attribute(at, name);
  if (!a || !a->g) return NULL;
  for (uint32_t b = 0; b < at->node->n_bodies; b++)
    if (at->node->bodies[b]->proto == a->g) return at->node->bodies[b];
  return NULL;
}

static const psplit_i_vtype *output_of(const psplit_i_scope *scope, uint32_t output) {
  static const psplit_i_vtype unknown = {.rank = -1};
  return output < scope->graph->n_outputs ? &scope->types[scope->graph->outputs[output]] : &unknown;
}

static psplit_i_scope *run_branch(psplit_i_site *at, const psplit_i_graph *branch,
                                  bool alternative) {
  psplit_i_scope *scope = branch ? psplit_i_scope_body(at, branch) : NULL;
  if (!scope) return NULL;
  psplit_i_scope_run(at->s, scope);
  psplit_i_scope_attach(at, scope, psplit_i_dim_const(at->dims, 1), alternative);
  return scope;
}

void psplit_i_infer_if(psplit_i_site *at) {
  int64_t condition;
  const psplit_i_graph *then_graph = body_of(at, "then_branch"),
                       *else_graph = body_of(at, "else_branch");
  if (psplit_i_int_input(at, 0, &condition)) {
    const psplit_i_scope *taken = run_branch(at, condition ? then_graph : else_graph, false);
    for (uint32_t o = 0; taken && o < at->node->n_outputs; o++)
      psplit_i_out_type(at, o, output_of(taken, o));
    return;
  }
  const psplit_i_scope *a = run_branch(at, then_graph, true);
  const psplit_i_scope *b = run_branch(at, else_graph, true);
  for (uint32_t o = 0; a && b && o < at->node->n_outputs; o++) {
    const psplit_i_vtype merged = psplit_i_type_merge(at, output_of(a, o), output_of(b, o));
    psplit_i_out_type(at, o, &merged);
  }
}

static void set_scalar(psplit_i_site *at, psplit_i_vtype *type, int32_t elem, psplit_dim value) {
  *type = (psplit_i_vtype){.kind = PSPLIT_TYPE_TENSOR, .elem = elem, .rank = 0};
  psplit_dim *element = psplit_i_new_elements(at, 1);
  if (!element) return;
  *element = value;
  type->elements = element;
  type->n_elements = 1;
}

/* Whether `type` already allows for what `now` says. Sizes made up since `since` stand for any. */
static bool covers(const psplit_i_site *at, psplit_dim since, const psplit_i_vtype *type,
                   const psplit_i_vtype *now) {
  if (type->kind == PSPLIT_TYPE_UNKNOWN) return true;
  if (type->kind != now->kind) return false;
  if (type->elem != 0 && type->elem != now->elem) return false;
  const int32_t rank = type->rank;
  if (rank < 0) return true;
  if (rank != now->rank) return false;
  const psplit_dim *dims = type->dims, *others = now->dims;
  assert(rank == 0 || (dims && others));
  for (int32_t i = 0; i < rank; i++)
    if (dims[i] != others[i] && (dims[i] < since || !psplit_i_dim_is_anonymous(at->dims, dims[i])))
      return false;
  return true;
}

/* A type with fresh sizes where the loop made them vary; `from` is the type before the loop. */
static psplit_i_vtype after_loop(psplit_i_site *at, const psplit_i_vtype *from,
                                 const psplit_i_vtype *inside) {
  psplit_i_vtype result = psplit_i_type_alone(inside);
  if (from->rank != inside->rank || inside->rank < 0) return result;
  bool varies = false;
  psplit_dim dims[PSPLIT_MAX_RANK];
  for (int32_t i = 0; i < inside->rank; i++) {
    dims[i] = inside->dims[i];
    if (from->dims[i] == inside->dims[i]) continue;
    dims[i] = psplit_i_dim_fresh(at->dims);
    varies = true;
  }
  if (!varies) return result;
  psplit_dim *copy = psplit_i_arena_array(&at->s->arena, (size_t)inside->rank, sizeof *copy);
  if (!copy) {
    at->s->failed = true;
    return (psplit_i_vtype){.rank = -1};
  }
  memcpy(copy, dims, (size_t)inside->rank * sizeof *copy);
  result.dims = copy;
  return result;
}

/* dims[0 .. rank] = `type` with `size` put in at `axis`; false if that cannot be done. */
static bool stacked(psplit_i_site *at, const psplit_i_vtype *type, int64_t axis, psplit_dim size,
                    psplit_dim *dims) {
  int32_t on;
  (void)at;
  if (type->rank < 0 || type->rank >= PSPLIT_MAX_RANK || !psplit_i_axis(axis, type->rank + 1, &on))
    return false;
  for (int32_t i = 0; i <= type->rank; i++)
    dims[i] = i < on ? type->dims[i] : i > on ? type->dims[i - 1] : size;
  return true;
}

/* Runs a body until the types of its carried inputs hold for every iteration; NULL if they do not
 * settle. Carried inputs are body inputs [first, first + n) and leave as outputs [first_out,
 * first_out + n). `prepare` sets the other inputs. */
static psplit_i_scope *run_to_fixpoint(psplit_i_site *at, const psplit_i_graph *body,
                                       uint32_t first, uint32_t first_out, uint32_t n,
                                       psplit_i_vtype *types,
                                       void (*prepare)(psplit_i_site *at, psplit_i_scope *scope)) {
  const psplit_dim since = psplit_i_dims_count(at->dims);
  for (int pass = 0; pass < MAX_PASSES; pass++) {
    psplit_i_scope *scope = psplit_i_scope_body(at, body);
    if (!scope) return NULL;
    prepare(at, scope);
    for (uint32_t i = 0; i < n && first + i < body->n_inputs; i++)
      scope->types[body->inputs[first + i]] = types[i];
    psplit_i_scope_run(at->s, scope);
    bool stable = true;
    for (uint32_t i = 0; i < n; i++) {
      const psplit_i_vtype *now = output_of(scope, first_out + i);
      if (covers(at, since, &types[i], now)) continue;
      stable = false;
      psplit_i_vtype merged = psplit_i_type_merge(at, &types[i], now);
      if (pass >= WIDEN_AT) merged.rank = -1;
      types[i] = psplit_i_type_alone(&merged);
    }
    if (stable) return scope;
  }
  return NULL;
}

/* A Loop whose condition starts true hands that on, so that a body that passes it through is seen
 * to run to its trip count. */
static void prepare_loop(psplit_i_site *at, psplit_i_scope *scope) {
  const psplit_i_graph *body = scope->graph;
  int64_t condition = 1;
  const bool starts = !psplit_i_has(at, 1) || psplit_i_int_input(at, 1, &condition);
  if (body->n_inputs > 0)
    set_scalar(at, &scope->types[body->inputs[0]], INT64, psplit_i_dim_fresh(at->dims));
  if (body->n_inputs > 1)
    set_scalar(
      at, &scope->types[body->inputs[1]], BOOL,
      starts && condition ? psplit_i_dim_const(at->dims, 1) : psplit_i_dim_fresh_value(at->dims));
}

/* The trip count, or a fresh size where the condition may stop the loop. */
static psplit_dim loop_trips(psplit_i_site *at, const psplit_i_scope *scope) {
  int64_t condition = 0;
  uint32_t n;
  if (psplit_i_has(at, 1) && !psplit_i_int_input(at, 1, &condition))
    return psplit_i_dim_fresh(at->dims);
  if (psplit_i_has(at, 1) && !condition) return psplit_i_dim_const(at->dims, 0);
  const psplit_i_vtype *stays = output_of(scope, 0);
  if (stays->n_elements != 1 || !psplit_i_dim_is_const(at->dims, stays->elements[0], &condition) ||
      !condition)
    return psplit_i_dim_fresh(at->dims);
  const psplit_dim *trips = psplit_i_has(at, 0) ? psplit_i_elements(at, 0, &n) : NULL;
  if (!trips || n != 1) return psplit_i_dim_fresh(at->dims);
  if (psplit_i_dim_is_anonymous(at->dims, *trips)) return *trips;
  return psplit_i_dim_max(at->dims, *trips, psplit_i_dim_const(at->dims, 0));
}

/* Whether what a loop carries is another thing in each trip: a sequence, or sizes that vary. */
static bool changes(const psplit_i_site *at, const psplit_i_vtype *types, uint32_t n) {
  for (uint32_t i = 0; i < n; i++) {
    const psplit_i_vtype *before = psplit_i_in(at, 2 + i);
    if (before->kind == PSPLIT_TYPE_SEQUENCE || before->rank != types[i].rank) return true;
    for (int32_t axis = 0; axis < before->rank; axis++)
      if (before->dims[axis] != types[i].dims[axis]) return true;
  }
  return false;
}

/* The trips of a loop one by one, each with the number that it has and what the one before it
 * made; runs[n_trips] are hung on the node. False where they take too much of what may be visited.
 */
static bool run_trips(psplit_i_site *at, const psplit_i_graph *body, uint32_t n, uint32_t n_trips,
                      psplit_i_scope **runs) {
  /* Loops in loops multiply, and what is left is for all the rest of the model. */
  const uint64_t price = ((uint64_t)body->n_nodes + body->n_values) * n_trips;
  if (price > at->s->budget_nodes / 16) return false;
  for (uint32_t trip = 0; trip < n_trips; trip++) {
    psplit_i_scope *scope = psplit_i_scope_body(at, body);
    if (!scope) return false;
    set_scalar(at, &scope->types[body->inputs[0]], INT64, psplit_i_dim_const(at->dims, trip));
    set_scalar(at, &scope->types[body->inputs[1]], BOOL, psplit_i_dim_const(at->dims, 1));
    for (uint32_t i = 0; i < n; i++) {
      uint32_t n_known;
      if (trip == 0) psplit_i_known_elements(at, 2 + i, &n_known);
      psplit_i_vtype *type = &scope->types[body->inputs[2 + i]];
      *type = trip > 0 ? *output_of(runs[trip - 1], 1 + i) : *psplit_i_in(at, 2 + i);
      type->is_weight = type->declared_wrong = false;
    }
    psplit_i_scope_run(at->s, scope);
    runs[trip] = scope;
  }
  psplit_i_scope_attach(at, runs[0], psplit_i_dim_const(at->dims, 1), false);
  for (uint32_t trip = 1; trip < n_trips; trip++) psplit_i_scope_attach_again(at, runs[trip]);
  return true;
}

/* Whether a loop has few trips that differ, and all of its body's inputs. */
static bool few_trips(const psplit_i_site *at, const psplit_i_graph *body, psplit_dim trips,
                      const psplit_i_vtype *types, uint32_t n, uint32_t *out_n_trips) {
  int64_t number;
  if (!psplit_i_dim_is_const(at->dims, trips, &number) || number < 1 || number > FEW_TRIPS ||
      body->n_inputs != 2 + n || !changes(at, types, n))
    return false;
  *out_n_trips = (uint32_t)number;
  return true;
}

void psplit_i_infer_loop(psplit_i_site *at) {
  const psplit_i_graph *body = body_of(at, "body");
  const uint32_t n = at->node->n_inputs > 2 ? at->node->n_inputs - 2 : 0;
  psplit_i_vtype *types = PSPLIT_NEW(&at->s->arena, psplit_i_vtype, n);
  if (!types) at->s->failed = true;
  if (!body || !types) return;
  for (uint32_t i = 0; i < n; i++) types[i] = psplit_i_type_alone(psplit_i_in(at, 2 + i));
  psplit_i_scope *scope = run_to_fixpoint(at, body, 2, 1, n, types, prepare_loop);
  if (!scope) return;
  const psplit_dim trips = loop_trips(at, scope);
  psplit_i_scope *runs[FEW_TRIPS] = {0};
  uint32_t n_runs = 0;
  const bool each =
    few_trips(at, body, trips, types, n, &n_runs) && run_trips(at, body, n, n_runs, runs);
  if (each)
    scope = runs[n_runs - 1];
  else
    psplit_i_scope_attach(at, scope, trips, false);
  for (uint32_t o = 0; o < at->node->n_outputs; o++) {
    const psplit_i_vtype *inside = output_of(scope, o + 1);
    if (o < n && each) {
      psplit_i_out_type(at, o, inside);
    } else if (o < n) {
      const psplit_i_vtype type = after_loop(at, psplit_i_in(at, 2 + o), &types[o]);
      psplit_i_out_type(at, o, &type);
    } else {
      psplit_dim dims[PSPLIT_MAX_RANK];
      const bool known = stacked(at, inside, 0, trips, dims);
      /* A size that differs between iterations cannot be stacked, so the body's sizes hold; those
       * that it makes up are named anew outside. */
      for (int32_t i = 1; known && i <= inside->rank; i++)
        if (psplit_i_dim_has_anonymous(at->dims, dims[i])) dims[i] = psplit_i_dim_fresh(at->dims);
      psplit_i_out(at, o, inside->elem, known ? inside->rank + 1 : -1, dims);
    }
  }
}

typedef struct scan_shape {
  uint32_t n_states, n_scans, skip; /* skip: inputs before the states (opset 8: sequence_lens) */
  int32_t batch;                    /* 1 with a leading batch axis (opset 8), else 0 */
} scan_shape;

static scan_shape scan_of(const psplit_i_site *at) {
  scan_shape shape = {0};
  const bool old = at->node->opset == 8;
  shape.skip = old ? 1 : 0;
  shape.batch = old ? 1 : 0;
  const int64_t n = psplit_i_int(at, "num_scan_inputs", 0);
  const uint32_t inputs = at->node->n_inputs > shape.skip ? at->node->n_inputs - shape.skip : 0;
  shape.n_scans = n < 0 || n > inputs ? inputs : (uint32_t)n;
  shape.n_states = inputs - shape.n_scans;
  return shape;
}

/* Axis that scan input or output `i` runs over, counted as the attribute counts. */
static int64_t scan_axis(const psplit_i_site *at, const char *name, uint32_t i, int32_t batch) {
  size_t n;
  const int64_t *axes = batch ? NULL : psplit_i_int_list(at, name, &n);
  return axes && i < n ? axes[i] : batch;
}

/* A type without one axis. */
static psplit_i_vtype slice_of(psplit_i_site *at, const psplit_i_vtype *type, const bool *drop) {
  psplit_i_vtype result = psplit_i_type_alone(type);
  if (type->rank < 0) return result;
  psplit_dim *dims = psplit_i_arena_array(&at->s->arena, (size_t)type->rank, sizeof *dims);
  if (!dims) {
    at->s->failed = true;
    return (psplit_i_vtype){.rank = -1};
  }
  result.rank = 0;
  for (int32_t i = 0; i < type->rank; i++)
    if (!drop[i]) dims[result.rank++] = type->dims[i];
  result.dims = dims;
  return result;
}

static void prepare_scan(psplit_i_site *at, psplit_i_scope *scope) {
  const scan_shape shape = scan_of(at);
  const psplit_i_graph *body = scope->graph;
  for (uint32_t i = 0; i < shape.n_scans && shape.n_states + i < body->n_inputs; i++) {
    const psplit_i_vtype *type = psplit_i_in(at, shape.skip + shape.n_states + i);
    bool drop[PSPLIT_MAX_RANK] = {false};
    int32_t axis;
    psplit_i_vtype part = {.rank = -1};
    if (type->rank >= 0 &&
        psplit_i_axis(scan_axis(at, "scan_input_axes", i, shape.batch), type->rank, &axis)) {
      drop[axis] = true;
      if (shape.batch) drop[0] = true;
      part = slice_of(at, type, drop);
    } else {
      part.kind = type->kind;
      part.elem = type->elem;
    }
    scope->types[body->inputs[shape.n_states + i]] = part;
  }
}

void psplit_i_infer_scan(psplit_i_site *at) {
  const scan_shape shape = scan_of(at);
  const psplit_i_graph *body = body_of(at, "body");
  psplit_i_vtype *types = PSPLIT_NEW(&at->s->arena, psplit_i_vtype, shape.n_states);
  if (!types) at->s->failed = true;
  if (!body || !types) return;
  const bool drop[PSPLIT_MAX_RANK] = {true};
  for (uint32_t i = 0; i < shape.n_states; i++) {
    const psplit_i_vtype *type = psplit_i_in(at, shape.skip + i);
    types[i] = shape.batch ? slice_of(at, type, drop) : psplit_i_type_alone(type);
  }
  psplit_dim trips = PSPLIT_NONE;
  int32_t axis;
  const psplit_i_vtype *scanned = psplit_i_in(at, shape.skip + shape.n_states);
  if (shape.n_scans > 0 && scanned->rank >= 0 &&
      psplit_i_axis(scan_axis(at, "scan_input_axes", 0, shape.batch), scanned->rank, &axis))
    trips = scanned->dims[axis];
  if (trips == PSPLIT_NONE) trips = psplit_i_dim_fresh(at->dims);
  psplit_i_scope *scope = run_to_fixpoint(at, body, 0, 0, shape.n_states, types, prepare_scan);
  if (!scope) return;
  psplit_i_scope_attach(at, scope, trips, false);
  for (uint32_t o = 0; o < at->node->n_outputs; o++) {
    const psplit_i_vtype *inside = output_of(scope, o);
    psplit_dim dims[PSPLIT_MAX_RANK];
    if (o < shape.n_states && !shape.batch) {
      const psplit_i_vtype type = after_loop(at, psplit_i_in(at, o), &types[o]);
      psplit_i_out_type(at, o, &type);
    } else if (o < shape.n_states) {
      const bool known = stacked(at, &types[o], 0, psplit_i_dim_of(at, shape.skip + o, 0), dims);
      psplit_i_out(at, o, types[o].elem, known ? types[o].rank + 1 : -1, dims);
    } else if (shape.batch) {
      psplit_dim two[PSPLIT_MAX_RANK];
      bool known = stacked(at, inside, 0, trips, dims);
      const psplit_i_vtype once = {.rank = inside->rank + 1, .dims = dims};
      known =
        known && stacked(at, &once, 0, psplit_i_dim_of(at, shape.skip + shape.n_states, 0), two);
      psplit_i_out(at, o, inside->elem, known ? inside->rank + 2 : -1, two);
    } else {
      const bool known =
        stacked(at, inside, scan_axis(at, "scan_output_axes", o - shape.n_states, 0), trips, dims);
      psplit_i_out(at, o, inside->elem, known ? inside->rank + 1 : -1, dims);
    }
  }
}

void psplit_i_infer_sequence_map(psplit_i_site *at) {
  const psplit_i_graph *body = body_of(at, "body");
  psplit_i_scope *scope = body ? psplit_i_scope_body(at, body) : NULL;
  if (!scope) return;
  for (uint32_t i = 0; i < at->node->n_inputs && i < body->n_inputs; i++) {
    const psplit_i_vtype *type = psplit_i_in(at, i);
    scope->types[body->inputs[i]] =
      type->kind == PSPLIT_TYPE_SEQUENCE ? psplit_i_type_inside(type) : psplit_i_type_alone(type);
  }
  psplit_i_scope_run(at->s, scope);
  psplit_i_scope_attach(at, scope, psplit_i_dim_fresh(at->dims), false);
  for (uint32_t o = 0; o < at->node->n_outputs; o++) {
    const psplit_i_vtype *inside = output_of(scope, o);
    psplit_dim dims[PSPLIT_MAX_RANK];
    for (int32_t i = 0; i < inside->rank; i++)
      dims[i] = psplit_i_dim_has_anonymous(at->dims, inside->dims[i]) ? psplit_i_dim_fresh(at->dims)
                                                                      : inside->dims[i];
    psplit_i_out_sequence(at, o, inside->elem, inside->rank, dims);
  }
}
