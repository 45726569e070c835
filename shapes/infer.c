/* Shape inference: scopes, and the pass over nodes in topological order. */
#include "infer.h"

#include <stdlib.h>
#include <string.h>

#include "operator.h"

enum { MAX_DEPTH = 200, MEMO_SLOTS = 4096 };

/* Contents kept, over all values; 4 bytes each, and at worst an expression for each. */
static const uint64_t MAX_TOTAL_ELEMENTS = UINT64_C(4) << 20;

struct psplit_i_memo {
  psplit_i_memo *next;
  uint64_t hash;
  uint32_t function;
  uint32_t n_inputs;
  psplit_i_vtype *inputs;
  psplit_i_scope *scope;
};

static psplit_i_scope *new_scope(psplit_i_shapes *s, const psplit_i_graph *graph, uint32_t depth) {
  const uint64_t price = (uint64_t)graph->n_nodes + graph->n_values;
  if (depth > MAX_DEPTH || price > s->budget_nodes) {
    if (!s->told_budget)
      psplit_i_say(s->logger, PSPLIT_WARNING,
                   "functions and bodies are called too often or too deeply to follow all calls; "
                   "some shapes and costs stay unknown");
    s->told_budget = true;
    return NULL;
  }
  s->budget_nodes -= price;
  psplit_i_scope *scope = psplit_i_shapes_alloc(s, 1, sizeof *scope);
  if (!scope) return NULL;
  scope->graph = graph;
  scope->depth = depth;
  scope->index = s->n_scopes++;
  scope->types = psplit_i_shapes_alloc(s, graph->n_values, sizeof *scope->types);
  if (!scope->types) return NULL;
  for (uint32_t v = 0; v < graph->n_values; v++) scope->types[v].rank = -1;
  for (uint32_t i = 0; i < graph->n_initializers; i++) {
    const psplit_i_tensor tensor = psplit_i_graph_initializer(graph, i);
    psplit_i_vtype *type = &scope->types[graph->initializers[i]];
    type->kind = PSPLIT_TYPE_TENSOR;
    type->elem = tensor.data_type;
    type->is_weight = true;
    /* A default that a caller may replace, by a tensor of any size that the input declares. */
    const psplit_i_value *value = &graph->values[graph->initializers[i]];
    const bool replaceable = value->input != PSPLIT_NONE && value->declared_type &&
                             psplit_i_model_ir_version(graph->model) >= 4;
    if (replaceable || tensor.n_dims > PSPLIT_MAX_RANK) continue;
    psplit_dim *dims = psplit_i_shapes_alloc(s, tensor.n_dims, sizeof *dims);
    if (!dims) return NULL;
    for (uint32_t axis = 0; axis < tensor.n_dims; axis++)
      dims[axis] = psplit_i_dim_const(s->dims, tensor.dims[axis]);
    type->dims = dims;
    type->rank = (int32_t)tensor.n_dims;
  }
  return scope;
}

/* Declared types complete the inputs, except where the caller's type is known already. */
static void declare_inputs(psplit_i_shapes *s, psplit_i_scope *scope) {
  const psplit_i_graph *graph = scope->graph;
  for (uint32_t i = 0; i < graph->n_inputs; i++)
    psplit_i_type_declare(s, &scope->types[graph->inputs[i]],
                          graph->values[graph->inputs[i]].declared_type);
  if (graph->n_sparse_initializers == 0) return;
  for (uint32_t v = 0; v < graph->n_values; v++) {
    if (graph->values[v].sparse_initializer == PSPLIT_NONE) continue;
    const Onnx__SparseTensorProto *sparse =
      graph->proto->sparse_initializer[graph->values[v].sparse_initializer];
    psplit_i_vtype *type = &scope->types[v];
    type->kind = PSPLIT_TYPE_TENSOR; /* what reads it sees a dense tensor */
    type->elem = sparse->values ? sparse->values->data_type : 0;
    type->is_weight = true;
    if (sparse->n_dims > PSPLIT_MAX_RANK) continue;
    psplit_dim *dims = psplit_i_shapes_alloc(s, sparse->n_dims, sizeof *dims);
    if (!dims) return;
    for (size_t axis = 0; axis < sparse->n_dims; axis++)
      dims[axis] = sparse->dims[axis] < 0 ? psplit_i_dim_fresh(s->dims)
                                          : psplit_i_dim_const(s->dims, sparse->dims[axis]);
    type->dims = dims;
    type->rank = (int32_t)sparse->n_dims;
  }
}

psplit_i_scope *psplit_i_scope_body(psplit_i_site *at, const psplit_i_graph *body) {
  psplit_i_scope *scope = new_scope(at->s, body, at->scope->depth + 1);
  if (!scope) return NULL;
  scope->parent = at->scope;
  for (uint32_t v = 0; v < body->n_values; v++)
    if (body->values[v].outer != PSPLIT_NONE)
      scope->types[v] = at->scope->types[body->values[v].outer];
  return scope;
}

static int compare_children(const void *a, const void *b) {
  const psplit_i_child *x = a, *y = b;
  return x->node < y->node ? -1 : x->node > y->node;
}

static void attach(psplit_i_site *at, const psplit_i_child *child) {
  psplit_i_scope *scope = at->scope;
  if (scope->n_children == scope->capacity) {
    const uint32_t capacity = scope->capacity ? scope->capacity * 2 : 4;
    psplit_i_child *children = psplit_i_shapes_alloc(at->s, capacity, sizeof *children);
    if (!children) return;
    if (scope->n_children) memcpy(children, scope->children, scope->n_children * sizeof *children);
    scope->children = children;
    scope->capacity = capacity;
  }
  scope->children[scope->n_children++] = *child;
}

void psplit_i_scope_attach(psplit_i_site *at, psplit_i_scope *scope, psplit_dim trips,
                           bool alternative) {
  attach(at, &(psplit_i_child){
               .node = at->id, .trips = trips, .alternative = alternative, .scope = scope});
}

void psplit_i_scope_attach_again(psplit_i_site *at, psplit_i_scope *scope) {
  attach(
    at, &(psplit_i_child){
          .node = at->id, .trips = psplit_i_dim_const(at->dims, 1), .again = true, .scope = scope});
}

static void report_missing(psplit_i_shapes *s, const psplit_i_node *node) {
  s->n_uncovered++;
  const size_t domain_n = strlen(node->domain), op_n = strlen(node->op_type);
  char *key = psplit_i_arena_array(&s->arena, domain_n + op_n + 2, 1);
  if (!key) {
    s->failed = true;
    return;
  }
  memcpy(key, node->domain, domain_n);
  key[domain_n] = ':';
  memcpy(key + domain_n + 1, node->op_type, op_n + 1);
  if (psplit_i_intern_find(&s->missing, key) != PSPLIT_NONE) return;
  if (psplit_i_intern_add(&s->missing, key) == PSPLIT_NONE) s->failed = true;
  psplit_i_say(s->logger, PSPLIT_WARNING,
               "no shape rule for operator %s%s%s; its outputs keep their declared types",
               node->domain, domain_n ? "." : "", node->op_type);
}

void psplit_i_scope_run(psplit_i_shapes *s, psplit_i_scope *scope) {
  const psplit_i_graph *graph = scope->graph;
  declare_inputs(s, scope);
  for (uint32_t i = 0; scope == s->root && i < graph->n_inputs; i++)
    psplit_i_type_see(s, &scope->types[graph->inputs[i]], graph->inputs[i]);
  for (uint32_t i = 0; i < graph->n_nodes; i++) {
    s->failed |= psplit_i_dims_failed(s->dims);
    if (!s->failed) s->failed = (s->code = psplit_i_go_on(s->cancel, s->diag)) != PSPLIT_OK;
    if (s->failed) break;
    psplit_i_site at = {.s = s, .dims = s->dims, .scope = scope, .id = graph->topo[i]};
    at.node = &graph->nodes[at.id];
    psplit_i_fault_node(&at);
    if (at.node->function != PSPLIT_NONE) {
      psplit_i_infer_call(&at);
    } else {
      const psplit_i_rule *rule = psplit_i_rule_of(s, at.node);
      if (rule)
        rule->infer(&at);
      else
        report_missing(s, at.node);
    }
    for (uint32_t o = 0; o < at.node->n_outputs; o++)
      if (at.node->outputs[o] != PSPLIT_NONE) {
        psplit_i_fault_declared(&at, o);
        psplit_i_type_declare(s, &scope->types[at.node->outputs[o]],
                              graph->values[at.node->outputs[o]].declared_type);
        if (scope == s->root)
          psplit_i_type_see(s, &scope->types[at.node->outputs[o]], at.node->outputs[o]);
      }
  }
  if (scope->n_children > 1) {
    bool sorted = true;
    for (uint32_t i = 1; i < scope->n_children; i++)
      sorted = sorted && scope->children[i - 1].node <= scope->children[i].node;
    if (!sorted)
      qsort(scope->children, scope->n_children, sizeof *scope->children, compare_children);
  }
}

static uint64_t hash_type(uint64_t hash, const psplit_i_vtype *type) {
  hash = psplit_i_mix64(hash ^ (uint64_t)(uint32_t)type->elem ^ ((uint64_t)type->kind << 32) ^
                        ((uint64_t)type->inner << 40) ^ ((uint64_t)type->is_weight << 48));
  hash = psplit_i_mix64(hash ^ (uint64_t)(uint32_t)type->rank);
  for (int32_t i = 0; i < type->rank; i++) hash = psplit_i_mix64(hash ^ type->dims[i]);
  for (uint32_t i = 0; i < type->n_elements; i++) hash = psplit_i_mix64(hash ^ type->elements[i]);
  return hash;
}

static bool same_type(const psplit_i_vtype *a, const psplit_i_vtype *b) {
  if (a->kind != b->kind || a->inner != b->inner || a->elem != b->elem || a->rank != b->rank ||
      a->n_elements != b->n_elements || a->is_weight != b->is_weight)
    return false;
  for (int32_t i = 0; i < a->rank; i++)
    if (a->dims[i] != b->dims[i]) return false;
  for (uint32_t i = 0; i < a->n_elements; i++)
    if (a->elements[i] != b->elements[i]) return false;
  return true;
}

/* A call of the same function with the same types, of a function that takes no attributes. */
static psplit_i_memo *find_call(psplit_i_shapes *s, uint32_t function, const psplit_i_vtype *inputs,
                                uint32_t n_inputs, uint64_t hash) {
  if (!s->memo) s->memo = psplit_i_shapes_alloc(s, MEMO_SLOTS, sizeof(psplit_i_memo *));
  if (!s->memo) return NULL;
  for (psplit_i_memo *memo = s->memo[hash % MEMO_SLOTS]; memo; memo = memo->next) {
    if (memo->hash != hash || memo->function != function || memo->n_inputs != n_inputs) continue;
    uint32_t i = 0;
    while (i < n_inputs && same_type(&memo->inputs[i], &inputs[i])) i++;
    if (i == n_inputs) return memo;
  }
  return NULL;
}

static psplit_i_scope *run_function(psplit_i_site *at, const psplit_i_graph *function,
                                    const psplit_i_vtype *inputs) {
  psplit_i_scope *scope = new_scope(at->s, function, at->scope->depth + 1);
  if (!scope) return NULL;
  scope->call = at->node;
  scope->caller = at->scope;
  for (uint32_t i = 0; i < function->n_inputs; i++) scope->types[function->inputs[i]] = inputs[i];
  psplit_i_scope_run(at->s, scope);
  return scope;
}

void psplit_i_infer_call(psplit_i_site *at) {
  psplit_i_shapes *s = at->s;
  const psplit_i_graph *function = psplit_i_model_function(s->graph->model, at->node->function);
  psplit_i_vtype *inputs = psplit_i_shapes_alloc(s, function->n_inputs, sizeof *inputs);
  if (!inputs) return;
  uint64_t hash = psplit_i_mix64(at->node->function);
  for (uint32_t i = 0; i < function->n_inputs; i++) {
    /* Contents are looked up here, because the callee cannot reach what its inputs stand for. */
    uint32_t n;
    int64_t count_of;
    if (psplit_i_is_int_type(psplit_i_elem(at, i)) ||
        (psplit_i_count(at->dims, psplit_i_in(at, i), &count_of) && count_of <= 8))
      psplit_i_elements(at, i, &n);
    inputs[i] = *psplit_i_in(at, i);
    inputs[i].declared_wrong = false;
    hash = hash_type(hash, &inputs[i]);
  }
  const bool plain =
    function->function->n_attribute == 0 && function->function->n_attribute_proto == 0;
  const psplit_i_memo *seen =
    plain ? find_call(s, at->node->function, inputs, function->n_inputs, hash) : NULL;
  psplit_i_scope *scope = seen ? seen->scope : run_function(at, function, inputs);
  if (!scope) return;
  if (plain && !seen && s->memo) {
    psplit_i_memo *memo = psplit_i_shapes_alloc(s, 1, sizeof *memo);
    if (!memo) return;
    *memo = (psplit_i_memo){s->memo[hash % MEMO_SLOTS], hash,   at->node->function,
                            function->n_inputs,         inputs, scope};
    s->memo[hash % MEMO_SLOTS] = memo;
  }
  for (uint32_t o = 0; o < function->n_outputs; o++)
    psplit_i_out_type(at, o, &scope->types[function->outputs[o]]);
  psplit_i_scope_attach(at, scope, 1, false);
}

/* Nodes and values of a graph and its bodies. */
static uint64_t count(const psplit_i_graph *graph) {
  uint64_t n = (uint64_t)graph->n_nodes + graph->n_values;
  for (uint32_t i = 0; i < graph->n_nodes; i++)
    for (uint32_t b = 0; b < graph->nodes[i].n_bodies; b++) n += count(graph->nodes[i].bodies[b]);
  return n;
}

/* A misspelt name is an error (psplit_model_check_dims); here it is one that only nodes which never
 * run declare. */
static void say_unmet(const psplit_i_shapes *s) {
  for (size_t i = 0; i < s->n_told; i++)
    if (!s->met[i])
      psplit_i_say(s->logger, PSPLIT_WARNING,
                   "dimension %s changes nothing: nothing that runs has it", s->bindings[i].name);
}

static void say_defaults(const psplit_i_shapes *s) {
  if (s->default_of)
    psplit_i_say(s->logger, PSPLIT_NOTE,
                 "sizes depend on inputs that have defaults, such as \"%s\": counted as with these",
                 s->default_of);
}

const psplit_i_rule *psplit_i_rule_of(const psplit_i_shapes *s, const psplit_i_node *node) {
  const uint32_t first = psplit_i_operator_row(node->domain, node->op_type);
  if (first == PSPLIT_NONE) return NULL;
  for (uint32_t i = first; i < s->n_rules; i++) {
    const psplit_i_rule *rule = &s->rules[i];
    if (strcmp(rule->op_type, node->op_type) != 0 || strcmp(rule->domain, node->domain) != 0) break;
    if (node->opset > 0 && node->opset < rule->since) continue;
    if (rule->until > 0 && (node->opset == 0 || node->opset > rule->until)) continue;
    return rule->infer ? rule : NULL;
  }
  return NULL;
}

psplit_code psplit_i_infer_by(const psplit_i_rule *rules, uint32_t n_rules,
                              const psplit_i_graph *graph, const psplit_i_known_sizes *sizes,
                              const psplit_logger *logger, psplit_diag *diag,
                              psplit_i_shapes **out_shapes) {
  for (size_t i = 0; i < sizes->n_bindings; i++)
    if (sizes->bindings[i].value < 0)
      return psplit_i_fail(diag, PSPLIT_INVALID, "dimension %s cannot be %lld: it is negative",
                           sizes->bindings[i].name, (long long)sizes->bindings[i].value);
  psplit_i_shapes *s = calloc(1, sizeof *s);
  if (!s) return psplit_i_nomem(diag);
  psplit_i_arena_init(&s->arena, 0);
  psplit_i_intern_init(&s->missing);
  s->rules = rules;
  s->n_rules = n_rules;
  s->graph = graph;
  s->bindings = sizes->bindings;
  s->n_bindings = sizes->n_bindings;
  s->n_told = sizes->n_told;
  s->logger = logger;
  s->cancel = sizes->cancel;
  s->defaults_hold = sizes->defaults_hold;
  s->diag = diag;
  s->met = psplit_i_shapes_alloc(s, s->n_bindings, sizeof *s->met);
  s->budget_elements = MAX_TOTAL_ELEMENTS;
  s->budget_nodes = count(graph);
  for (uint32_t f = 0; f < psplit_i_model_n_functions(graph->model); f++)
    s->budget_nodes += count(psplit_i_model_function(graph->model, f));
  s->budget_nodes = s->budget_nodes * 8 + 1000000;
  s->dims = psplit_i_dims_create();
  s->failed |= !s->dims;
  if (!s->failed) s->root = new_scope(s, graph, 0);
  if (s->root && !s->failed) psplit_i_fault_outputs(s);
  if (s->root && !s->failed) psplit_i_take_seen(s, sizes);
  if (s->root && !s->failed) psplit_i_scope_run(s, s->root);
  if (s->failed || !s->root || psplit_i_dims_failed(s->dims)) {
    const psplit_code code = s->code;
    psplit_i_shapes_destroy(s);
    return code == PSPLIT_OK ? psplit_i_nomem(diag) : code;
  }
  s->diag = NULL;
  s->cancel = NULL;
  say_unmet(s);
  say_defaults(s);
  s->bindings = NULL;
  s->n_bindings = s->n_told = 0;
  s->seen = NULL;
  s->logger = NULL;
  *out_shapes = s;
  return PSPLIT_OK;
}

void psplit_i_shapes_destroy(psplit_i_shapes *s) {
  if (!s) return;
  psplit_i_dims_destroy(s->dims);
  psplit_i_intern_fini(&s->missing);
  psplit_i_vec_fini(&s->learned);
  psplit_i_vec_fini(&s->equal);
  psplit_i_arena_fini(&s->arena);
  free(s);
}

const psplit_i_graph *psplit_i_shapes_graph(const psplit_i_shapes *s) { return s->graph; }
const psplit_i_dims *psplit_i_shapes_dims(const psplit_i_shapes *s) { return s->dims; }
uint32_t psplit_i_shapes_n_uncovered(const psplit_i_shapes *s) { return s->n_uncovered; }

const psplit_i_vtype *psplit_i_shapes_type(const psplit_i_shapes *s, uint32_t value) {
  return &s->root->types[value];
}

psplit_i_emit_dim psplit_i_shapes_emit_dim(const psplit_i_shapes *s, psplit_dim dim) {
  psplit_i_emit_dim emit = {.value = -1};
  if (!psplit_i_dim_is_const(s->dims, dim, &emit.value) || emit.value < 0) emit.value = -1;
  emit.symbol = psplit_i_dim_name(s->dims, dim);
  return emit;
}
