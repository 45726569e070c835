/* The model with Ifs taken for one branch, as the manifest says, held against the model as it is.
 *
 * What is proved: the nodes of the one are those of the other, each If in question aside, and
 * instead of it the nodes of its branch and one Identity from each of the branch's outputs to the
 * If's of the same place, unless both have one name and so are one value; weights, sparse weights
 * and annotations are those of both graphs; all else of the model is untouched. The reader refuses
 * a graph that defines a name twice, so a name of the branch means what it meant. From that the two
 * compute the same wherever the conditions are what the manifest says they are assumed, or found
 * here, to be. Messages are compared as packed bytes: both models are read from one file, so equal
 * views are equal data. */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "proto_text.h"
#include "verify.h"

typedef struct digest {
  uint64_t hash[2];
} digest;

typedef PSPLIT_VEC(digest) digests;

/* An output of an inlined If. */
typedef struct join {
  const char *from, *to;
} join;

typedef struct expansion {
  psplit_i_proof *p;
  bool *used; /* [manifest.n_inlined] */
  digests nodes, weights, sparse, annotations, infos;
  PSPLIT_VEC(join) joins;
  psplit_i_text bytes;
} expansion;

static psplit_code pack(expansion *x, const ProtobufCMessage *message) {
  const size_t n = protobuf_c_message_get_packed_size(message);
  uint8_t *bytes = malloc(n + 1);
  x->bytes.n = 0;
  if (bytes) psplit_i_text_add(&x->bytes, bytes, protobuf_c_message_pack(message, bytes));
  free(bytes);
  return !bytes || x->bytes.failed ? psplit_i_nomem(x->p->diag) : PSPLIT_OK;
}

static psplit_code add(expansion *x, digests *to, const ProtobufCMessage *message) {
  psplit_code code;
  psplit_i_hasher hasher;
  digest d;
  PSPLIT_TRY(pack(x, message));
  psplit_i_hasher_init(&hasher);
  psplit_i_hasher_add(&hasher, x->bytes.bytes, x->bytes.n);
  psplit_i_hasher_done(&hasher, d.hash);
  if (!psplit_i_vec_push(to, d)) code = psplit_i_nomem(x->p->diag);
out:
  return code;
}

static int compare_digests(const void *a, const void *b) {
  const digest *x = a, *y = b;
  for (int i = 0; i < 2; i++)
    if (x->hash[i] != y->hash[i]) return x->hash[i] < y->hash[i] ? -1 : 1;
  return 0;
}

static void sort(digests *list) {
  if (list->n) qsort(list->items, list->n, sizeof *list->items, compare_digests);
}

static bool same(digests *a, digests *b) {
  sort(a);
  sort(b);
  return a->n == b->n && (!a->n || memcmp(a->items, b->items, a->n * sizeof *a->items) == 0);
}

static bool holds_all(digests *all, const digests *some) {
  sort(all);
  for (size_t i = 0; i < some->n; i++)
    if (!all->n ||
        !bsearch(&some->items[i], all->items, all->n, sizeof *all->items, compare_digests))
      return false;
  return true;
}

/* --- what is to be there --- */

static bool is_if(const Onnx__NodeProto *node) {
  return strcmp(psplit_i_text_or_empty(node->op_type), "If") == 0 &&
         !*psplit_i_domain_of(node->domain);
}

/* The row of the manifest that names the node; NONE: it stays. */
static uint32_t row_of(const expansion *x, const Onnx__NodeProto *node) {
  if (!is_if(node)) return PSPLIT_NONE;
  for (uint32_t r = 0; r < x->p->manifest.n_inlined; r++) {
    const char *name = x->p->manifest.inlined[r].node;
    if (x->used[r]) continue;
    if (strcmp(psplit_i_text_or_empty(node->name), name) == 0) return r;
    for (size_t o = 0; o < node->n_output; o++)
      if (strcmp(node->output[o], name) == 0) return r;
  }
  return PSPLIT_NONE;
}

static const Onnx__GraphProto *branch_of(const Onnx__NodeProto *node, bool then_branch) {
  for (size_t a = 0; a < node->n_attribute; a++)
    if (strcmp(psplit_i_text_or_empty(node->attribute[a]->name),
               then_branch ? "then_branch" : "else_branch") == 0)
      return node->attribute[a]->g;
  return NULL;
}

static psplit_code expand(expansion *x, const Onnx__GraphProto *graph);

/* Depth is bounded by the scan: each row opens one graph inside another. */
static psplit_code expand_if(expansion *x, const Onnx__NodeProto *node, uint32_t r) {
  psplit_code code;
  psplit_i_proof *p = x->p;
  const psplit_i_inlined_row *row = &p->manifest.inlined[r];
  const Onnx__GraphProto *branch = branch_of(node, row->then_branch);
  x->used[r] = true;
  if (!branch || branch->n_input || branch->n_output < node->n_output)
    return PSPLIT_I_DIFFERS(p, "If \"%s\" has no such branch as the manifest inlines", row->node);
  if (node->n_input != 1 || strcmp(node->input[0], row->condition) != 0)
    return PSPLIT_I_DIFFERS(p, "the condition of If \"%s\" is not \"%s\"", row->node,
                            row->condition);
  PSPLIT_TRY(expand(x, branch));
  for (size_t o = 0; o < node->n_output; o++) {
    if (!*node->output[o]) continue;
    const join one = {psplit_i_text_or_empty(branch->output[o]->name), node->output[o]};
    if (strcmp(one.from, one.to) == 0) continue; /* one value: no other has this name */
    if (!psplit_i_vec_push(&x->joins, one)) PSPLIT_FAIL(psplit_i_nomem(p->diag));
  }
  for (size_t o = 0; o < branch->n_output; o++)
    PSPLIT_TRY(add(x, &x->infos, &branch->output[o]->base));
out:
  return code;
}

static psplit_code expand(expansion *x, const Onnx__GraphProto *graph) {
  psplit_code code = PSPLIT_OK;
  for (size_t n = 0; n < graph->n_node; n++) {
    const uint32_t r = row_of(x, graph->node[n]);
    PSPLIT_TRY(r == PSPLIT_NONE ? add(x, &x->nodes, &graph->node[n]->base)
                                : expand_if(x, graph->node[n], r));
  }
  for (size_t i = 0; i < graph->n_initializer; i++)
    PSPLIT_TRY(add(x, &x->weights, &graph->initializer[i]->base));
  for (size_t i = 0; i < graph->n_sparse_initializer; i++)
    PSPLIT_TRY(add(x, &x->sparse, &graph->sparse_initializer[i]->base));
  for (size_t i = 0; i < graph->n_quantization_annotation; i++)
    PSPLIT_TRY(add(x, &x->annotations, &graph->quantization_annotation[i]->base));
  for (size_t i = 0; i < graph->n_value_info; i++)
    PSPLIT_TRY(add(x, &x->infos, &graph->value_info[i]->base));
out:
  return code;
}

/* --- what is there --- */

/* Of a node whose one output is the join's. */
static bool is_join(const Onnx__NodeProto *node, const join *one) {
  return strcmp(psplit_i_text_or_empty(node->op_type), "Identity") == 0 &&
         !*psplit_i_text_or_empty(node->domain) && !*psplit_i_text_or_empty(node->overload) &&
         node->n_input == 1 && node->n_attribute == 0 && strcmp(node->input[0], one->from) == 0;
}

/* The nodes between branches and the outputs of their Ifs leave `joins`; the others join `out`. */
static psplit_code collect(expansion *x, const Onnx__GraphProto *graph, expansion *out) {
  psplit_code code = PSPLIT_OK;
  psplit_i_intern outputs; /* of the Ifs, by position in joins */
  psplit_i_intern_init(&outputs);
  size_t n_met = 0;
  for (size_t k = 0; k < x->joins.n; k++) {
    const uint32_t id = psplit_i_intern_add(&outputs, x->joins.items[k].to);
    if (id == PSPLIT_NONE) PSPLIT_FAIL(psplit_i_nomem(x->p->diag));
    if (id != k)
      PSPLIT_FAIL(psplit_i_fail(x->p->diag, PSPLIT_MISMATCH, "\"%s\" comes out of two Ifs",
                                x->joins.items[k].to));
  }
  for (size_t n = 0; n < graph->n_node; n++) {
    const Onnx__NodeProto *node = graph->node[n];
    const uint32_t k =
      node->n_output == 1 ? psplit_i_intern_find(&outputs, node->output[0]) : PSPLIT_NONE;
    if (k < x->joins.n && is_join(node, &x->joins.items[k]))
      n_met++;
    else
      PSPLIT_TRY(add(out, &out->nodes, &node->base));
  }
  if (n_met != x->joins.n)
    PSPLIT_FAIL(psplit_i_fail(x->p->diag, PSPLIT_MISMATCH,
                              "the outputs of an inlined If do not come out of its branch"));
  for (size_t i = 0; i < graph->n_initializer; i++)
    PSPLIT_TRY(add(out, &out->weights, &graph->initializer[i]->base));
  for (size_t i = 0; i < graph->n_sparse_initializer; i++)
    PSPLIT_TRY(add(out, &out->sparse, &graph->sparse_initializer[i]->base));
  for (size_t i = 0; i < graph->n_quantization_annotation; i++)
    PSPLIT_TRY(add(out, &out->annotations, &graph->quantization_annotation[i]->base));
  for (size_t i = 0; i < graph->n_value_info; i++)
    PSPLIT_TRY(add(out, &out->infos, &graph->value_info[i]->base));
out:
  psplit_i_intern_fini(&outputs);
  return code;
}

/* Everything else: the model without what was collected of its graph. */
static psplit_code pack_rest(expansion *x, const Onnx__ModelProto *of) {
  Onnx__ModelProto model = *of;
  Onnx__GraphProto graph = *of->graph;
  graph.n_node = graph.n_initializer = graph.n_sparse_initializer = 0;
  graph.n_quantization_annotation = graph.n_value_info = 0;
  model.graph = &graph;
  return pack(x, &model.base);
}

static psplit_code same_rest(expansion *x, const Onnx__ModelProto *a, const Onnx__ModelProto *b,
                             bool *out_same) {
  psplit_code code;
  psplit_i_text first = {0};
  PSPLIT_TRY(pack_rest(x, a));
  first = x->bytes;
  x->bytes = (psplit_i_text){0};
  PSPLIT_TRY(pack_rest(x, b));
  *out_same = first.n == x->bytes.n && memcmp(first.bytes, x->bytes.bytes, first.n) == 0;
out:
  psplit_i_text_fini(&first);
  return code;
}

/* A condition that is said to hold always is a constant that nobody overrides, and says so. */
static psplit_code check_certain(psplit_i_proof *p, const psplit_model *inlined,
                                 const psplit_i_inlined_row *row) {
  const psplit_i_graph *graph = psplit_i_model_graph(inlined);
  const uint32_t v = psplit_i_graph_find_value(graph, row->condition);
  const psplit_i_value *value = v == PSPLIT_NONE ? NULL : &graph->values[v];
  psplit_i_tensor tensor = {0};
  if (value && value->producer != PSPLIT_NONE) {
    const psplit_i_node *node = &graph->nodes[value->producer];
    const Onnx__TensorProto *proto = psplit_i_attr_tensor(node, "value");
    if (proto && psplit_i_node_is(node, "Constant")) tensor = psplit_i_tensor_of(proto);
  } else if (value && value->initializer != PSPLIT_NONE &&
             (value->input == PSPLIT_NONE || psplit_i_model_ir_version(inlined) < 4)) {
    tensor = psplit_i_graph_initializer(graph, value->initializer);
  }
  const int64_t *items = NULL;
  size_t n = 0;
  if (tensor.proto && tensor.data_type == ONNX__TENSOR_PROTO__DATA_TYPE__BOOL) {
    const psplit_code code =
      psplit_i_tensor_int64s(inlined, &tensor, 1, &p->arena, p->diag, &items, &n);
    if (code != PSPLIT_OK) return code;
  }
  if (n != 1 || (items[0] != 0) != row->then_branch)
    return PSPLIT_I_DIFFERS(p, "the condition \"%s\" is not always %s, as the manifest says",
                            row->condition, row->then_branch ? "true" : "false");
  return PSPLIT_OK;
}

static bool same_file(const psplit_i_data_file *a, const psplit_i_data_file *b) {
  return a->device == b->device && a->inode == b->inode && a->bytes == b->bytes &&
         a->modified_ns == b->modified_ns;
}

static void expansion_fini(expansion *x) {
  psplit_i_vec_fini(&x->nodes);
  psplit_i_vec_fini(&x->weights);
  psplit_i_vec_fini(&x->sparse);
  psplit_i_vec_fini(&x->annotations);
  psplit_i_vec_fini(&x->infos);
  psplit_i_vec_fini(&x->joins);
  psplit_i_text_fini(&x->bytes);
}

psplit_code psplit_i_check_inlined(psplit_i_proof *p, const psplit_model *inlined) {
  psplit_code code;
  expansion wanted = {.p = p}, found = {.p = p};
  Onnx__ModelProto *before, *after;
  bool rest = false;
  wanted.used = PSPLIT_NEW(&p->arena, bool, p->manifest.n_inlined);
  if (!wanted.used) return psplit_i_nomem(p->diag);
  if (!same_file(&p->model->files.items[0], &inlined->files.items[0]))
    return psplit_i_fail(p->diag, PSPLIT_IO, "%s changed while it was being read",
                         psplit_i_model_path(p->model));
  PSPLIT_TRY(psplit_i_model_unpack(p->model, &p->arena, p->diag, &before));
  PSPLIT_TRY(psplit_i_model_unpack(inlined, &p->arena, p->diag, &after));
  PSPLIT_TRY(expand(&wanted, before->graph));
  for (uint32_t r = 0; r < p->manifest.n_inlined; r++) {
    const psplit_i_inlined_row *row = &p->manifest.inlined[r];
    if (!wanted.used[r])
      PSPLIT_FAIL(PSPLIT_I_DIFFERS(
        p, "the manifest inlines If \"%s\", which the model does not have", row->node));
    if (!row->assumed) PSPLIT_TRY(check_certain(p, inlined, row));
  }
  PSPLIT_TRY(collect(&wanted, after->graph, &found));
  PSPLIT_TRY(same_rest(&wanted, before, after, &rest));
  if (!rest || !same(&wanted.nodes, &found.nodes) || !same(&wanted.weights, &found.weights) ||
      !same(&wanted.sparse, &found.sparse) || !same(&wanted.annotations, &found.annotations) ||
      !holds_all(&wanted.infos, &found.infos))
    PSPLIT_FAIL(PSPLIT_I_DIFFERS(p,
                                 "the model with its Ifs inlined is not the model: its %s differ",
                                 !rest ? "fields" : "nodes or weights"));
out:
  expansion_fini(&wanted);
  expansion_fini(&found);
  return code;
}
