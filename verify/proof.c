/* The proof. A name in a stage's scope must stand for the model's value of that name: because a
 * node with the model's own bytes makes it there, or an initializer with the model's content holds
 * it, or the model's input gives it, or it is received from an earlier stage in whose scope it
 * stands for the same value. Ports of the boundary have names that the model does not use. From
 * that, equal nodes read equal values, so the stages compute what the model does. What is left is
 * coverage: every node, output and weight that something reads is somewhere, and nothing else is.
 */
#include "fields.h"
#include "verify.h"

#include <inttypes.h>
#include <psplit/gradient.h>
#include <stdlib.h>
#include <string.h>

/* --- nodes --- */

static int compare_silent(const void *a, const void *b) {
  const psplit_i_silent *x = a, *y = b;
  for (int i = 0; i < 2; i++)
    if (x->hash[i] != y->hash[i]) return x->hash[i] < y->hash[i] ? -1 : 1;
  return x->node < y->node ? -1 : x->node > y->node;
}

static bool is_silent(const psplit_i_node *node) {
  for (uint32_t o = 0; o < node->n_outputs; o++)
    if (node->outputs[o] != PSPLIT_NONE) return false;
  return true;
}

static psplit_code index_silent(psplit_i_proof *p) {
  psplit_code code = PSPLIT_OK;
  for (uint32_t n = 0; n < p->graph->n_nodes; n++) p->n_silent += is_silent(&p->graph->nodes[n]);
  p->silent = PSPLIT_NEW(&p->arena, psplit_i_silent, p->n_silent);
  if (!p->silent) return psplit_i_nomem(p->diag);
  for (uint32_t n = 0, i = 0; n < p->graph->n_nodes; n++) {
    if (!is_silent(&p->graph->nodes[n])) continue;
    p->silent[i].node = n;
    PSPLIT_TRY(psplit_i_node_hash(p, p->model, n, p->silent[i++].hash));
  }
  if (p->n_silent) qsort(p->silent, p->n_silent, sizeof *p->silent, compare_silent);
out:
  return code;
}

/* The model's first node without outputs that equals the stage's and was not met yet. */
static psplit_code find_silent(psplit_i_proof *p, uint32_t part, uint32_t *out_node) {
  psplit_code code;
  psplit_i_silent key = {.node = 0};
  *out_node = PSPLIT_NONE;
  PSPLIT_TRY(psplit_i_node_hash(p, p->stage, part, key.hash));
  uint32_t low = 0;
  for (uint32_t high = p->n_silent; low < high;) {
    const uint32_t middle = low + (high - low) / 2;
    if (compare_silent(&p->silent[middle], &key) < 0)
      low = middle + 1;
    else
      high = middle;
  }
  if (low == p->n_silent || memcmp(p->silent[low].hash, key.hash, sizeof key.hash) != 0)
    return PSPLIT_OK;
  const uint32_t at = low + p->silent[low].n_taken;
  if (at == p->n_silent || memcmp(p->silent[at].hash, key.hash, sizeof key.hash) != 0)
    return PSPLIT_OK;
  p->silent[low].n_taken++;
  *out_node = p->silent[at].node;
out:
  return code;
}

/* The model's node that makes the first named output of a stage's node. PSPLIT_NONE if none does.
 */
static psplit_code find_node(psplit_i_proof *p, uint32_t part, uint32_t *out_node) {
  const psplit_i_node *node = &p->part->nodes[part];
  for (uint32_t o = 0; o < node->n_outputs; o++) {
    if (node->outputs[o] == PSPLIT_NONE) continue;
    const uint32_t value =
      psplit_i_graph_find_value(p->graph, p->part->values[node->outputs[o]].name);
    *out_node = value == PSPLIT_NONE ? PSPLIT_NONE : p->graph->values[value].producer;
    return PSPLIT_OK;
  }
  return find_silent(p, part, out_node);
}

static psplit_code check_node(psplit_i_proof *p, uint32_t part) {
  psplit_code code;
  char label[128];
  const char *name = psplit_i_node_label(p->part, part, label, sizeof label);
  uint32_t n;
  PSPLIT_TRY(find_node(p, part, &n));
  if (n == PSPLIT_NONE)
    return PSPLIT_I_DIFFERS(p, "stage %" PRIu32 ": node %s is not in the model",
                            psplit_i_called(p, p->at), name);
  bool equal;
  PSPLIT_TRY(psplit_i_compare(p, PSPLIT_I_GRAPH_NODE, n, part, p->graph->nodes[n].name, &equal));
  if (!equal)
    return PSPLIT_I_DIFFERS(p, "stage %" PRIu32 ": node %s is not as in the model",
                            psplit_i_called(p, p->at), name);
  /* It stands there once: two would make one value, and of silent ones each is found once. */
  if (p->declared[n] ? psplit_i_table_find(&p->duplicates, n, p->at, 0) == PSPLIT_NONE
                     : p->n_seen[n] > 0)
    return PSPLIT_I_DIFFERS(p,
                            "stage %" PRIu32
                            ": node %s is in an earlier stage, and no duplicate "
                            "that the manifest declares",
                            psplit_i_called(p, p->at), name);
  p->n_seen[n]++;
out:
  return code;
}

static psplit_code check_nodes(psplit_i_proof *p) {
  psplit_code code = PSPLIT_OK;
  uint32_t n_nodes = 0;
  for (uint32_t i = 0; i < p->part->n_nodes; i++) {
    const bool training = psplit_i_is_training_port_node(p, &p->part->nodes[i]);
    const bool boundary = training || psplit_i_is_boundary_node(p, &p->part->nodes[i]);
    if (!training) PSPLIT_TRY(boundary ? psplit_i_check_boundary_node(p, i) : check_node(p, i));
    n_nodes += !boundary;
  }
  if (n_nodes != p->manifest.stages[p->at].n_nodes)
    return PSPLIT_I_DIFFERS(
      p, "stage %" PRIu32 ": the manifest says %" PRIu32 " nodes, the file has %" PRIu32,
      psplit_i_called(p, p->at), p->manifest.stages[p->at].n_nodes, n_nodes);
out:
  return code;
}

/* --- values --- */

/* Names that the stage's quantization annotations speak of. */
static psplit_code mentioned_names(psplit_i_proof *p, psplit_i_intern *out) {
  const Onnx__GraphProto *graph = p->stage->proto->graph;
  for (size_t i = 0; i < graph->n_quantization_annotation; i++) {
    const Onnx__TensorAnnotation *annotation = graph->quantization_annotation[i];
    for (size_t k = 0; k < annotation->n_quant_parameter_tensor_names; k++) {
      const char *name = annotation->quant_parameter_tensor_names[k]->value;
      if (name && psplit_i_intern_add(out, name) == PSPLIT_NONE) return psplit_i_nomem(p->diag);
    }
  }
  return PSPLIT_OK;
}

static bool is_used(const psplit_i_graph *graph, uint32_t value) {
  return graph->values[value].is_output ||
         graph->consumer_off[value] < graph->consumer_off[value + 1];
}

/* An initializer of the stage is the model's, stands there for a reason, and can be overridden by a
 * caller where the model's can. */
static psplit_code check_initializer(psplit_i_proof *p, uint32_t v,
                                     const psplit_i_intern *mentioned) {
  psplit_code code = PSPLIT_OK;
  const psplit_i_value *part = &p->part->values[v];
  const bool sparse = part->sparse_initializer != PSPLIT_NONE;
  const uint32_t value = psplit_i_graph_find_value(p->graph, part->name);
  const psplit_i_value *whole = value == PSPLIT_NONE ? NULL : &p->graph->values[value];
  const uint32_t index = !whole   ? PSPLIT_NONE
                         : sparse ? whole->sparse_initializer
                                  : whole->initializer;
  bool equal = index != PSPLIT_NONE;
  if (equal)
    PSPLIT_TRY(psplit_i_compare(p, sparse ? PSPLIT_I_GRAPH_SPARSE : PSPLIT_I_GRAPH_INITIALIZER,
                                index, sparse ? part->sparse_initializer : part->initializer,
                                whole->name, &equal));
  if (!equal)
    return PSPLIT_I_DIFFERS(p, "stage %" PRIu32 ": initializer \"%s\" is not the model's",
                            psplit_i_called(p, p->at), part->name);
  /* A weight that only a node read which training does without is data like any other. */
  if (psplit_i_is_trained(p, part->name) && is_used(p->graph, value))
    PSPLIT_TRY(psplit_i_check_first_value(p, part));
  else if ((part->input == PSPLIT_NONE) != (whole->input == PSPLIT_NONE))
    return PSPLIT_I_DIFFERS(p, "stage %" PRIu32 ": \"%s\" is %s a graph input",
                            psplit_i_called(p, p->at), part->name,
                            whole->input == PSPLIT_NONE ? "now" : "no longer");
  if (!is_used(p->part, v) && is_used(p->graph, value) &&
      psplit_i_intern_find(mentioned, part->name) == PSPLIT_NONE)
    return PSPLIT_I_DIFFERS(p, "stage %" PRIu32 ": nothing there reads initializer \"%s\"",
                            psplit_i_called(p, p->at), part->name);
  p->initializer_seen[value] = 1;
out:
  return code;
}

static psplit_code check_initializers(psplit_i_proof *p) {
  psplit_code code;
  psplit_i_intern mentioned;
  psplit_i_intern_init(&mentioned);
  PSPLIT_TRY(mentioned_names(p, &mentioned));
  for (uint32_t v = 0; v < p->part->n_values; v++)
    if (p->part->values[v].initializer != PSPLIT_NONE ||
        p->part->values[v].sparse_initializer != PSPLIT_NONE)
      PSPLIT_TRY(check_initializer(p, v, &mentioned));
out:
  psplit_i_intern_fini(&mentioned);
  return code;
}

/* A value_info of the stage is the model's, and none is missing where the value is made. */
static psplit_code check_value_infos(psplit_i_proof *p) {
  psplit_code code = PSPLIT_OK;
  for (uint32_t v = 0; v < p->part->n_values; v++) {
    const psplit_i_value *here = &p->part->values[v];
    const uint32_t value = psplit_i_graph_find_value(p->graph, here->name);
    const uint32_t part = here->value_info;
    const uint32_t whole = value == PSPLIT_NONE ? PSPLIT_NONE : p->graph->values[value].value_info;
    if (part != PSPLIT_NONE) {
      bool equal = whole != PSPLIT_NONE;
      if (equal)
        PSPLIT_TRY(psplit_i_compare(p, PSPLIT_I_GRAPH_VALUE_INFO, whole, part, here->name, &equal));
      if (!equal)
        return PSPLIT_I_DIFFERS(p, "stage %" PRIu32 ": value_info of \"%s\" is not the model's",
                                psplit_i_called(p, p->at), here->name);
    } else if (whole != PSPLIT_NONE && here->producer != PSPLIT_NONE && !here->is_output &&
               !psplit_i_is_boundary_node(p, &p->part->nodes[here->producer])) {
      return PSPLIT_I_DIFFERS(p, "stage %" PRIu32 ": value_info of \"%s\" is missing",
                              psplit_i_called(p, p->at), here->name);
    }
  }
out:
  return code;
}

/* Positions of the annotations by the tensor they speak of. */
static psplit_code index_annotations(psplit_i_proof *p) {
  const Onnx__GraphProto *graph = p->model->proto->graph;
  p->annotation = PSPLIT_NEW(&p->arena, uint32_t, graph->n_quantization_annotation);
  if (!p->annotation) return psplit_i_nomem(p->diag);
  for (uint32_t k = 0; k < graph->n_quantization_annotation; k++) {
    const char *name = graph->quantization_annotation[k]->tensor_name;
    const uint32_t before = p->annotated.n;
    const uint32_t id = psplit_i_intern_add(&p->annotated, name ? name : "");
    if (id == PSPLIT_NONE) return psplit_i_nomem(p->diag);
    if (id == before) p->annotation[id] = k;
  }
  return PSPLIT_OK;
}

/* The annotations of a tensor are the model's, all and in order, wherever the tensor is. */
static psplit_code check_annotations(psplit_i_proof *p) {
  psplit_code code = PSPLIT_OK;
  const Onnx__GraphProto *part = p->stage->proto->graph, *whole = p->model->proto->graph;
  uint32_t *next = PSPLIT_NEW(&p->scratch, uint32_t, p->annotated.n); /* 0: none yet */
  if (!next) return psplit_i_nomem(p->diag);
  for (uint32_t i = 0; i < part->n_quantization_annotation; i++) {
    const char *name = part->quantization_annotation[i]->tensor_name;
    const uint32_t id = psplit_i_intern_find(&p->annotated, name ? name : "");
    bool equal = false;
    uint32_t k = id == PSPLIT_NONE ? 0 : next[id] ? next[id] : p->annotation[id];
    if (id != PSPLIT_NONE && k < whole->n_quantization_annotation)
      PSPLIT_TRY(psplit_i_compare(p, PSPLIT_I_GRAPH_ANNOTATION, k, i, "annotation", &equal));
    if (!equal)
      return PSPLIT_I_DIFFERS(p,
                              "stage %" PRIu32
                              ": a quantization annotation of \"%s\" is not the "
                              "model's",
                              psplit_i_called(p, p->at), name ? name : "");
    /* A tensor annotated twice is not worth an index of its own: the next one is near. */
    for (k++; k < whole->n_quantization_annotation; k++) {
      const char *other = whole->quantization_annotation[k]->tensor_name;
      if (p->annotated.n == whole->n_quantization_annotation ||
          strcmp(other ? other : "", name ? name : "") == 0)
        break;
    }
    if (p->annotated.n == whole->n_quantization_annotation)
      k = (uint32_t)whole->n_quantization_annotation;
    next[id] = k;
  }
  for (uint32_t id = 0; id < p->annotated.n; id++)
    if (psplit_i_graph_find_value(p->part, p->annotated.text[id]) != PSPLIT_NONE &&
        next[id] != whole->n_quantization_annotation)
      return PSPLIT_I_DIFFERS(p,
                              "stage %" PRIu32 ": the quantization annotation of \"%s\" is missing",
                              psplit_i_called(p, p->at), p->annotated.text[id]);
out:
  return code;
}

/* --- the whole --- */

static psplit_code index_outputs(psplit_i_proof *p) {
  p->first_output = psplit_i_arena_array(&p->arena, p->graph->n_values, sizeof *p->first_output);
  p->next_output = psplit_i_arena_array(&p->arena, p->graph->n_outputs, sizeof *p->next_output);
  if (!p->first_output || !p->next_output) return psplit_i_nomem(p->diag);
  for (uint32_t v = 0; v < p->graph->n_values; v++) p->first_output[v] = PSPLIT_NONE;
  for (uint32_t o = p->graph->n_outputs; o-- > 0;) {
    p->next_output[o] = p->first_output[p->graph->outputs[o]];
    p->first_output[p->graph->outputs[o]] = o;
  }
  return PSPLIT_OK;
}

static psplit_code begin(psplit_i_proof *p) {
  psplit_code code;
  const psplit_i_graph *graph = p->graph;
  const psplit_i_known_sizes sizes = {.cancel = p->cancel};
  p->n_seen = PSPLIT_NEW(&p->arena, uint32_t, graph->n_nodes);
  p->declared = PSPLIT_NEW(&p->arena, uint32_t, graph->n_nodes);
  p->initializer_seen = PSPLIT_NEW(&p->arena, uint8_t, graph->n_values);
  p->output_seen = PSPLIT_NEW(&p->arena, uint8_t, graph->n_outputs);
  p->function_tame = PSPLIT_NEW(&p->arena, uint8_t, psplit_i_model_n_functions(p->model));
  p->sent = PSPLIT_NEW(&p->arena, uint32_t, p->manifest.n_transfers);
  p->received = PSPLIT_NEW(&p->arena, uint32_t, p->manifest.n_transfers);
  p->types = PSPLIT_NEW(&p->arena, psplit_i_port_type, p->manifest.n_transfers);
  p->has_changed = PSPLIT_NEW(&p->arena, uint8_t, p->manifest.n_stages);
  if (p->arena.failed) PSPLIT_FAIL(psplit_i_nomem(p->diag));
  PSPLIT_TRY(psplit_i_field_spans_init(p->model, &p->arena, p->diag, &p->spans));
  PSPLIT_TRY(index_outputs(p));
  PSPLIT_TRY(index_annotations(p));
  PSPLIT_TRY(index_silent(p));
  if (p->manifest.n_transfers || p->manifest.n_outputs)
    PSPLIT_TRY(psplit_i_shapes_create_seen(graph, &sizes, NULL, p->diag, &p->shapes));
  PSPLIT_TRY(psplit_i_tables_init(p));
  if (!p->no_manifest) PSPLIT_TRY(psplit_i_check_manifest(p));
out:
  return code;
}

psplit_code psplit_i_open_part(psplit_i_proof *p, const char *directory, const char *file,
                               const psplit_verify_options *options) {
  psplit_i_text path = {0};
  psplit_read_options read = *options->read;
  read.is_stage = true;
  psplit_i_text_addf(&path, "%s/%s", directory, file);
  psplit_code code = path.failed ? psplit_i_nomem(p->diag)
                                 : psplit_model_open(path.bytes, &read, p->diag, &p->stage);
  psplit_i_text_fini(&path);
  if (code != PSPLIT_OK) return code;
  p->part = psplit_i_model_graph(p->stage);
  return psplit_i_field_spans_init(p->stage, &p->scratch, p->diag, &p->part_spans);
}

void psplit_i_close_part(psplit_i_proof *p) {
  p->pairs.n = 0;
  psplit_model_close(p->stage);
  p->stage = NULL;
  psplit_i_arena_reset(&p->scratch);
}

/* One stage after the other is open, so that memory does not grow with their number. */
static psplit_code check_stage(psplit_i_proof *p, const char *directory,
                               const psplit_verify_options *options) {
  psplit_code code;
  PSPLIT_TRY(psplit_i_open_part(p, directory, p->manifest.stages[p->at].file, options));
  PSPLIT_TRY(psplit_i_compare_rest(p));
  PSPLIT_TRY(check_nodes(p));
  PSPLIT_TRY(check_initializers(p));
  PSPLIT_TRY(psplit_i_check_inputs(p));
  PSPLIT_TRY(psplit_i_check_outputs(p));
  if (p->training) PSPLIT_TRY(psplit_i_check_stash(p));
  PSPLIT_TRY(check_value_infos(p));
  PSPLIT_TRY(check_annotations(p));
  PSPLIT_TRY(psplit_i_pairs_compare(p, psplit_i_called(p, p->at), options->n_threads));
out:
  psplit_i_close_part(p);
  return code;
}

psplit_code psplit_i_prove(psplit_i_proof *p, const char *directory,
                           const psplit_verify_options *options) {
  psplit_code code;
  bool any_changed = false;
  psplit_diag *const diag = p->diag;
  PSPLIT_TRY(begin(p));
  for (p->at = 0; p->at < p->manifest.n_stages; p->at++) {
    psplit_diag why = {0};
    if (p->changed) p->diag = &why;
    code = check_stage(p, directory, options);
    p->diag = diag;
    if (code == PSPLIT_MISMATCH && p->changed) {
      p->has_changed[p->at] = any_changed = true;
      p->changed->tell(p->changed->user, p->at, why.message);
      code = PSPLIT_OK;
    } else if (code != PSPLIT_OK) {
      return p->changed ? psplit_i_fail_as(diag, &why) : code;
    }
  }
  /* What a changed stage holds is not known: nothing is to be said of the whole. */
  if (!any_changed) PSPLIT_TRY(psplit_i_check_coverage(p));
out:
  return code;
}

void psplit_i_proof_init(psplit_i_proof *p, const psplit_model *model, psplit_diag *diag) {
  *p = (psplit_i_proof){.model = model, .graph = psplit_i_model_graph(model), .diag = diag};
  psplit_i_arena_init(&p->arena, 0);
  psplit_i_arena_init(&p->scratch, 0);
  psplit_i_intern_init(&p->annotated);
  psplit_i_intern_init(&p->names);
}

void psplit_i_proof_fini(psplit_i_proof *p) {
  psplit_i_shapes_destroy(p->shapes);
  psplit_gradient_destroy(p->gradient);
  psplit_model_close(p->inlined);
  psplit_i_vec_fini(&p->pairs);
  psplit_i_vec_fini(&p->payload_a);
  psplit_i_vec_fini(&p->payload_b);
  psplit_i_text_fini(&p->a);
  psplit_i_text_fini(&p->b);
  psplit_i_intern_fini(&p->annotated);
  psplit_i_intern_fini(&p->names);
  psplit_i_arena_fini(&p->arena);
  psplit_i_arena_fini(&p->scratch);
}
