/* Training as ONNX describes it: one file with a TrainingInfoProto.
 *
 * Its `algorithm` continues the model's graph: the loss, the backward pass and the update, in the
 * model's operator set. The optimizer's state and the number of the step are initializers of the
 * algorithm; update_binding says which output takes the place of which initializer,
 * `initialization` gives them their first values again. */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "fields.h"
#include "gradient.h"
#include "model.h"
#include "model_pieces.h"
#include "onnx.pb-c.h"
#include "opsets.h"
#include "write.h"

enum {
  INFO_INITIALIZATION = 1,
  INFO_ALGORITHM = 2,
  INFO_INITIALIZATION_BINDING = 3,
  INFO_UPDATE_BINDING = 4,
  FIRST_IR = 7,
  ZEROS = 1 << 16
};

static const uint8_t zeros[ZEROS];

/* What is written; pieces borrow the texts. */
typedef struct info {
  const psplit_gradient *gradient;
  psplit_i_arena arena;
  psplit_i_text masks;                 /* inputs of the model's graph */
  psplit_i_text nodes, ports, outputs; /* of the algorithm */
  psplit_i_text initialization, bindings;
  psplit_i_pieces algorithm;
  psplit_i_update_ports update;
  uint32_t n_firsts; /* that the initialization gives */
  psplit_diag *diag;
} info;

static void fini(info *f) {
  psplit_i_text *const texts[] = {&f->masks,   &f->nodes,          &f->ports,
                                  &f->outputs, &f->initialization, &f->bindings};
  for (size_t i = 0; i < sizeof texts / sizeof *texts; i++) psplit_i_text_fini(texts[i]);
  psplit_i_pieces_fini(&f->algorithm);
  psplit_i_update_ports_fini(&f->update);
  psplit_i_arena_fini(&f->arena);
}

static psplit_code check_model(const psplit_gradient *gradient, psplit_diag *diag) {
  const psplit_model *model = gradient->model;
  if (model->proto->n_training_info)
    return psplit_i_fail(diag, PSPLIT_UNSUPPORTED, "the model has training_info already");
  if (psplit_i_model_ir_version(model) < FIRST_IR)
    return psplit_i_fail(diag, PSPLIT_UNSUPPORTED,
                         "training_info came with IR version %d, and the model has %" PRId64,
                         (int)FIRST_IR, psplit_i_model_ir_version(model));
  return PSPLIT_OK;
}

/* ---- tensors ---- */

/* An initializer but for its data, which follow. */
static void put_tensor_head(psplit_i_text *out, const char *name, int32_t elem, uint32_t rank,
                            const int64_t *dims, uint64_t bytes) {
  psplit_i_text tensor = {0}, length = {0};
  for (uint32_t a = 0; a < rank; a++) psplit_i_put_int(&tensor, PSPLIT_I_TENSOR_DIMS, dims[a]);
  psplit_i_put_int(&tensor, PSPLIT_I_TENSOR_DATA_TYPE, elem);
  psplit_i_put_string(&tensor, PSPLIT_I_TENSOR_NAME, name);
  psplit_i_wire_tag(&length, PSPLIT_I_TENSOR_RAW_DATA, PSPLIT_I_WIRE_BYTES);
  psplit_i_wire_varint(&length, bytes);
  psplit_i_wire_tag(out, PSPLIT_I_GRAPH_INITIALIZER, PSPLIT_I_WIRE_BYTES);
  psplit_i_wire_varint(out, tensor.n + length.n + bytes);
  psplit_i_text_add(out, tensor.bytes, tensor.n);
  psplit_i_text_add(out, length.bytes, length.n);
  if (tensor.failed || length.failed) out->failed = true;
  psplit_i_text_fini(&tensor);
  psplit_i_text_fini(&length);
}

static void put_scalar(psplit_i_text *out, const char *name, int32_t elem, uint32_t rank,
                       const void *bytes, size_t n) {
  int64_t ones[PSPLIT_MAX_RANK] = {0};
  for (uint32_t a = 0; a < rank; a++) ones[a] = 1;
  put_tensor_head(out, name, elem, rank, ones, n);
  psplit_i_add_numbers(out, elem, bytes, n);
}

/* ---- the algorithm ---- */

/* The loss's nodes, inputs and output go to the algorithm, inputs of masks to the model's graph. */
static void put_added(info *f) {
  const psplit_i_skeleton *skeleton = &f->gradient->model->skeleton;
  const size_t n = skeleton->graph_fields.n, first = n - f->gradient->n_added;
  for (size_t i = first; i < n; i++) {
    const psplit_i_span *span = &skeleton->graph_fields.items[i];
    psplit_i_text *out = i >= n - f->gradient->draws.n          ? &f->masks
                         : span->field == PSPLIT_I_GRAPH_NODE   ? &f->nodes
                         : span->field == PSPLIT_I_GRAPH_OUTPUT ? &f->outputs
                                                                : &f->ports;
    psplit_i_text_add(out, skeleton->bytes + span->skeleton_offset, span->skeleton_bytes);
  }
}

/* The backward pass in the model's operator set: its nodes are changed in a copy. */
static psplit_code put_backward(info *f, int64_t opset) {
  psplit_code code;
  const psplit_i_backward *b = &f->gradient->b;
  psplit_i_backward own = *b;
  psplit_i_arena_init(&own.arena, 0);
  own.nodes.items = NULL;
  own.nodes.n = own.nodes.capacity = 0;
  own.attributes = (psplit_i_text){0};
  for (size_t i = 0; i < b->nodes.n; i++)
    if (!psplit_i_vec_push(&own.nodes, b->nodes.items[i])) PSPLIT_FAIL(psplit_i_nomem(f->diag));
  PSPLIT_TRY(psplit_i_fit_opset(&own, opset, "the model", f->diag));
  for (size_t r = 0; r < b->values.n; r++) {
    const psplit_i_bvalue *value = &b->values.items[r];
    if (!value->alive || value->origin != PSPLIT_ORIGIN_SHAPE) continue;
    const char *const inputs[] = {b->forward->values[value->index].name, NULL};
    const char *const outputs[] = {value->name, NULL};
    psplit_i_put_node(&f->nodes, "Shape", value->name, inputs, outputs, NULL);
  }
  psplit_i_put_nodes(&own, &f->nodes);
  psplit_i_put_constants(&own, &f->nodes);
out:
  psplit_i_vec_fini(&own.nodes);
  psplit_i_text_fini(&own.attributes);
  psplit_i_arena_fini(&own.arena);
  return code;
}

/* loss.grad, 1; the scale, 1; the step, which counts itself; the rate is an input. */
static psplit_code put_scalars(info *f) {
  const psplit_gradient *gradient = f->gradient;
  const psplit_i_vtype *loss = psplit_i_shapes_type(gradient->shapes, gradient->loss);
  const psplit_i_emit_dim none = {0};
  const double one = 1;
  const int64_t first = 1;
  uint8_t bytes[8];
  if (loss->rank < 0)
    return psplit_i_fail(f->diag, PSPLIT_UNSUPPORTED, "the rank of the loss \"%s\" is not known",
                         gradient->b.forward->values[gradient->loss].name);
  put_scalar(&f->ports, psplit_gradient_loss_gradient(gradient), loss->elem, (uint32_t)loss->rank,
             bytes, psplit_i_number_bytes(loss->elem, 1, bytes));
  psplit_i_put_value(&f->ports, PSPLIT_I_GRAPH_INPUT, f->update.lr, PSPLIT_ELEM_DOUBLE, 0, &none);
  put_scalar(&f->ports, f->update.scale, PSPLIT_ELEM_DOUBLE, 0, &one, sizeof one);
  if (f->update.step)
    put_scalar(&f->ports, f->update.step, PSPLIT_ELEM_INT64, 0, &first, sizeof first);
  return PSPLIT_OK;
}

/* ---- bindings ---- */

static void bind(info *f, uint32_t field, const char *key, const char *value) {
  psplit_i_text entry = {0};
  psplit_i_put_string(&entry, 1, key);
  psplit_i_put_string(&entry, 2, value);
  psplit_i_wire_bytes(&f->bindings, field, entry.bytes, entry.n);
  if (entry.failed) f->bindings.failed = true;
  psplit_i_text_fini(&entry);
}

/* A constant of the initialization as the first value of an initializer. Its graph is another one,
 * so that it may have the same name. */
static void put_first(info *f, const char *name, int32_t elem, uint32_t rank, const int64_t *dims,
                      int64_t number) {
  psplit_i_text value = {0}, shape = {0};
  psplit_i_emit_dim sizes[PSPLIT_MAX_RANK];
  uint8_t bytes[8];
  size_t n = psplit_i_number_bytes(elem, (double)number, bytes);
  if (elem == PSPLIT_ELEM_INT64) memcpy(bytes, &number, n = sizeof number);
  const char *const none[] = {NULL}, *const output[] = {name, NULL};
  for (uint32_t a = 0; a < rank; a++) sizes[a] = (psplit_i_emit_dim){.value = dims[a]};
  if (rank == 0) {
    psplit_i_put_attr_tensor(&value, "value", elem, 0, NULL, bytes, n);
    psplit_i_put_node(&f->initialization, "Constant", name, none, output, &value);
  } else {
    const int64_t length = rank, single = 1;
    psplit_i_text own = {0};
    psplit_i_text_addf(&own, "%s.sizes", name);
    const char *const from[] = {own.failed ? "" : own.bytes, NULL};
    psplit_i_put_attr_tensor(&shape, "value", PSPLIT_ELEM_INT64, 1, &length, dims,
                             rank * sizeof *dims);
    psplit_i_put_node(&f->initialization, "Constant", from[0], none, from, &shape);
    psplit_i_put_attr_tensor(&value, "value", elem, 1, &single, bytes, n);
    psplit_i_put_node(&f->initialization, "ConstantOfShape", name, from, output, &value);
    if (own.failed) f->initialization.failed = true;
    psplit_i_text_fini(&own);
  }
  psplit_i_put_value(&f->initialization, PSPLIT_I_GRAPH_OUTPUT, name, elem, (int32_t)rank, sizes);
  if (value.failed || shape.failed) f->initialization.failed = true;
  psplit_i_text_fini(&value);
  psplit_i_text_fini(&shape);
  bind(f, INFO_INITIALIZATION_BINDING, name, name);
  f->n_firsts++;
}

static const char *name_of(info *f, const char *stem) {
  psplit_i_text text = {0};
  const char *name = NULL;
  for (uint32_t k = 0; !name && !text.failed; k++) {
    text.n = 0;
    psplit_i_text_addf(&text, k ? "%s~%" PRIu32 : "%s", stem, k);
    if (!text.failed &&
        psplit_i_graph_find_value(f->gradient->b.forward, text.bytes) == PSPLIT_NONE &&
        psplit_i_intern_find(&f->gradient->b.names, text.bytes) == PSPLIT_NONE)
      name = psplit_i_arena_strndup(&f->arena, text.bytes, text.n);
    if (f->arena.failed) break;
  }
  psplit_i_text_fini(&text);
  if (!name) f->nodes.failed = true;
  return name ? name : "";
}

static void count_steps(info *f) {
  static const int64_t one = 1;
  const psplit_i_emit_dim none = {0};
  if (!f->update.step) return;
  const char *next = name_of(f, "training.step.new"), *by = name_of(f, "training.one");
  put_scalar(&f->ports, by, PSPLIT_ELEM_INT64, 0, &one, sizeof one);
  psplit_i_put_node(&f->nodes, "Add", next, (const char *const[]){f->update.step, by, NULL},
                    (const char *const[]){next, NULL}, NULL);
  psplit_i_put_value(&f->outputs, PSPLIT_I_GRAPH_OUTPUT, next, PSPLIT_ELEM_INT64, 0, &none);
  put_first(f, f->update.step, PSPLIT_ELEM_INT64, 0, NULL, 1);
  bind(f, INFO_UPDATE_BINDING, f->update.step, next);
}

/* Weights are the model's; state is zero at first, in the file as in the initialization. */
static psplit_code put_kept(info *f, psplit_i_text *heads) {
  const psplit_i_graph *graph = f->gradient->b.forward;
  for (size_t i = 0; i < f->update.kept.n; i++) {
    const psplit_i_kept *kept = &f->update.kept.items[i];
    const uint32_t value = f->gradient->trainables[kept->trainable].value;
    const psplit_i_tensor tensor =
      psplit_i_graph_initializer(graph, graph->values[value].initializer);
    bind(f, INFO_UPDATE_BINDING, kept->name, kept->new_name);
    if (!kept->is_state) continue;
    uint8_t unused[8];
    uint64_t left =
      (uint64_t)tensor.n_elements * psplit_i_number_bytes(tensor.data_type, 0, unused);
    put_tensor_head(&heads[i], kept->name, tensor.data_type, (uint32_t)tensor.n_dims, tensor.dims,
                    left);
    psplit_i_pieces_text(&f->algorithm, &heads[i]);
    for (; left; left -= left < ZEROS ? left : ZEROS)
      psplit_i_pieces_memory(&f->algorithm, zeros, left < ZEROS ? (size_t)left : ZEROS);
    put_first(f, kept->name, tensor.data_type, (uint32_t)tensor.n_dims, tensor.dims, 0);
  }
  return PSPLIT_OK;
}

/* ---- the file ---- */

static psplit_code build(info *f, const char *optimizer) {
  psplit_code code;
  const psplit_gradient *gradient = f->gradient;
  const int64_t opset = psplit_i_model_opset(gradient->b.forward->model, "");
  uint32_t n = 0;
  uint32_t *trainables =
    psplit_i_arena_array(&f->arena, gradient->n_trainables, sizeof *trainables);
  if (!trainables) return psplit_i_nomem(f->diag);
  for (uint32_t i = 0; i < gradient->n_trainables; i++)
    if (gradient->trainables[i].n_parts && !gradient->trainables[i].is_input) trainables[n++] = i;
  psplit_i_put_string(&f->initialization, PSPLIT_I_GRAPH_NAME, "initialization");
  psplit_i_put_string(&f->nodes, PSPLIT_I_GRAPH_NAME, "algorithm");
  put_added(f);
  PSPLIT_TRY(put_backward(f, opset));
  PSPLIT_TRY(
    psplit_i_gradient_update_nodes(&(psplit_i_update_request){gradient, optimizer, trainables, n},
                                   opset, &f->arena, f->diag, &f->nodes, &f->outputs, &f->update));
  PSPLIT_TRY(put_scalars(f));
  count_steps(f);
out:
  return code;
}

static psplit_code write_file(info *f, psplit_i_text *heads, const char *path) {
  psplit_code code;
  const psplit_model *model = f->gradient->model;
  const psplit_i_skeleton *skeleton = &model->skeleton;
  psplit_i_text first = {0}, second = {0}, head = {0};
  psplit_i_pieces whole = {0}, graph = {0}, training = {0};
  psplit_i_pieces_text(&f->algorithm, &f->nodes);
  PSPLIT_TRY(put_kept(f, heads));
  psplit_i_pieces_text(&f->algorithm, &f->ports);
  psplit_i_pieces_text(&f->algorithm, &f->outputs);
  for (size_t i = 0; i + f->gradient->n_added < skeleton->graph_fields.n; i++)
    psplit_i_pieces_span(&graph, model, &skeleton->graph_fields.items[i]);
  psplit_i_pieces_text(&graph, &f->masks);
  if (f->n_firsts)
    psplit_i_wire_bytes(&second, INFO_INITIALIZATION, f->initialization.bytes, f->initialization.n);
  psplit_i_wire_tag(&second, INFO_ALGORITHM, PSPLIT_I_WIRE_BYTES);
  psplit_i_wire_varint(&second, f->algorithm.bytes);
  psplit_i_pieces_text(&training, &second);
  psplit_i_pieces_all(&training, &f->algorithm);
  psplit_i_pieces_text(&training, &f->bindings);
  for (size_t i = 0; i < skeleton->model_fields.n; i++)
    if (skeleton->model_fields.items[i].field != PSPLIT_I_MODEL_GRAPH)
      psplit_i_pieces_span(&whole, model, &skeleton->model_fields.items[i]);
  psplit_i_wire_tag(&first, PSPLIT_I_MODEL_GRAPH, PSPLIT_I_WIRE_BYTES);
  psplit_i_wire_varint(&first, graph.bytes);
  psplit_i_pieces_text(&whole, &first);
  psplit_i_pieces_all(&whole, &graph);
  psplit_i_wire_tag(&head, PSPLIT_I_MODEL_TRAINING_INFO, PSPLIT_I_WIRE_BYTES);
  psplit_i_wire_varint(&head, training.bytes);
  psplit_i_pieces_text(&whole, &head);
  psplit_i_pieces_all(&whole, &training);
  if (f->initialization.failed) PSPLIT_FAIL(psplit_i_nomem(f->diag));
  PSPLIT_TRY(psplit_i_pieces_write(&whole, model, path, f->diag));
out:
  psplit_i_text_fini(&first);
  psplit_i_text_fini(&second);
  psplit_i_text_fini(&head);
  psplit_i_pieces_fini(&whole);
  psplit_i_pieces_fini(&graph);
  psplit_i_pieces_fini(&training);
  return code;
}

psplit_code psplit_gradient_write_training_info(const psplit_gradient *gradient,
                                                const char *optimizer, const char *path,
                                                psplit_diag *diag) {
  psplit_code code;
  info f = {.gradient = gradient, .diag = diag};
  psplit_i_text *heads = NULL;
  psplit_i_arena_init(&f.arena, 0);
  PSPLIT_TRY(check_model(gradient, diag));
  PSPLIT_TRY(build(&f, optimizer));
  heads = calloc(f.update.kept.n + 1, sizeof *heads);
  if (!heads) PSPLIT_FAIL(psplit_i_nomem(diag));
  PSPLIT_TRY(write_file(&f, heads, path));
out:
  for (size_t i = 0; heads && i < f.update.kept.n; i++) psplit_i_text_fini(&heads[i]);
  free(heads);
  fini(&f);
  return code;
}
