#include "check.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "model.h"
#include "onnx.pb-c.h"

#define REQUIRE(what)                                                           \
  do {                                                                          \
    if (!(what)) {                                                              \
      fprintf(stderr, "%s:%d: does not hold: %s\n", __FILE__, __LINE__, #what); \
      abort();                                                                  \
    }                                                                           \
  } while (0)

static void check_values(const psplit_i_graph *graph) {
  REQUIRE(graph->names.n == graph->n_values);
  uint64_t n_produced = 0, n_outputs = 0;
  for (uint32_t v = 0; v < graph->n_values; v++) {
    const psplit_i_value *value = &graph->values[v];
    REQUIRE(*value->name && psplit_i_graph_find_value(graph, value->name) == v);
    const bool has_initializer =
      value->initializer != PSPLIT_NONE || value->sparse_initializer != PSPLIT_NONE;
    const bool captured = value->outer != PSPLIT_NONE;
    REQUIRE(!(value->initializer != PSPLIT_NONE && value->sparse_initializer != PSPLIT_NONE));
    REQUIRE(value->producer == PSPLIT_NONE ||
            (value->input == PSPLIT_NONE && !has_initializer && !captured));
    REQUIRE(!captured || (value->input == PSPLIT_NONE && !has_initializer));
    REQUIRE(captured || value->producer != PSPLIT_NONE || value->input != PSPLIT_NONE ||
            has_initializer);
    n_produced += value->producer != PSPLIT_NONE;
    if (value->input != PSPLIT_NONE) REQUIRE(graph->inputs[value->input] == v);
    if (value->initializer != PSPLIT_NONE) {
      REQUIRE(graph->initializers[value->initializer] == v);
      REQUIRE(strcmp(graph->proto->initializer[value->initializer]->name, value->name) == 0);
    }
    if (captured) {
      REQUIRE(graph->parent && value->outer < graph->parent->n_values);
      REQUIRE(strcmp(graph->parent->values[value->outer].name, value->name) == 0);
      const psplit_i_graph *home = graph;
      const uint32_t resolved = psplit_i_value_resolve(&home, v);
      REQUIRE(home->values[resolved].outer == PSPLIT_NONE);
    }
  }
  for (uint32_t n = 0; n < graph->n_nodes; n++)
    for (uint32_t o = 0; o < graph->nodes[n].n_outputs; o++)
      n_outputs += graph->nodes[n].outputs[o] != PSPLIT_NONE;
  REQUIRE(n_produced == n_outputs); /* check_node_io compares each */
  for (uint32_t i = 0; i < graph->n_inputs; i++)
    REQUIRE(graph->values[graph->inputs[i]].input == i);
  for (uint32_t i = 0; i < graph->n_outputs; i++)
    REQUIRE(graph->values[graph->outputs[i]].is_output);
}

static void check_node_io(const psplit_i_graph *graph, uint32_t id) {
  const psplit_i_node *node = &graph->nodes[id];
  const Onnx__NodeProto *proto;
  psplit_i_arena arena;
  psplit_i_arena_init(&arena, 0);
  REQUIRE(psplit_i_node_unpack(graph, id, &arena, NULL, &proto) == PSPLIT_OK);
  REQUIRE(node->n_inputs == proto->n_input && node->n_outputs == proto->n_output);
  REQUIRE(node->n_attributes == proto->n_attribute);
  REQUIRE(strcmp(node->name, proto->name ? proto->name : "") == 0);
  REQUIRE(strcmp(node->op_type, proto->op_type ? proto->op_type : "") == 0);
  for (uint32_t i = 0; i < node->n_inputs; i++) {
    const uint32_t v = node->inputs[i];
    REQUIRE((v == PSPLIT_NONE) == !*proto->input[i]);
    REQUIRE(v == PSPLIT_NONE || strcmp(graph->values[v].name, proto->input[i]) == 0);
  }
  for (uint32_t o = 0; o < node->n_outputs; o++) {
    const uint32_t v = node->outputs[o];
    REQUIRE((v == PSPLIT_NONE) == !*proto->output[o]);
    REQUIRE(v == PSPLIT_NONE || (strcmp(graph->values[v].name, proto->output[o]) == 0 &&
                                 graph->values[v].producer == id));
  }
  psplit_i_arena_fini(&arena);
}

/* Captures are what the bodies take from this graph, without repeats and without the inputs. */
static void check_captures(const psplit_i_graph *graph, uint32_t id) {
  const psplit_i_node *node = &graph->nodes[id];
  if (!node->n_bodies) {
    REQUIRE(!node->n_captures);
    return;
  }
  unsigned char *mark = calloc(graph->n_values + 1, 1); /* 1: an input, 2: listed, 4: needed */
  REQUIRE(mark);
  for (uint32_t i = 0; i < node->n_inputs; i++)
    if (node->inputs[i] != PSPLIT_NONE) mark[node->inputs[i]] = 1;
  for (uint32_t c = 0; c < node->n_captures; c++) {
    REQUIRE(node->captures[c] < graph->n_values);
    REQUIRE(c == 0 || node->captures[c - 1] < node->captures[c]);
    REQUIRE(mark[node->captures[c]] == 0);
    mark[node->captures[c]] = 2;
  }
  for (uint32_t b = 0; b < node->n_bodies; b++)
    for (uint32_t v = 0; v < node->bodies[b]->n_values; v++)
      if (node->bodies[b]->values[v].outer != PSPLIT_NONE)
        mark[node->bodies[b]->values[v].outer] |= 4;
  for (uint32_t v = 0; v < graph->n_values; v++) REQUIRE(mark[v] != 2 && mark[v] != 4);
  free(mark);
}

static int compare_ids(const void *a, const void *b) {
  const uint32_t x = *(const uint32_t *)a, y = *(const uint32_t *)b;
  return x < y ? -1 : x > y;
}

/* Every read is in the list of its value; the lists hold no more than the reads and no repeats. */
static void check_consumers(const psplit_i_graph *graph) {
  const uint32_t *off = graph->consumer_off;
  REQUIRE(off[0] == 0);
  for (uint32_t v = 0; v < graph->n_values; v++) {
    REQUIRE(off[v] <= off[v + 1]);
    for (uint32_t c = off[v]; c < off[v + 1]; c++)
      REQUIRE(c == off[v] || graph->consumers[c - 1] < graph->consumers[c]);
  }
  uint32_t *last = calloc(graph->n_values + 1, sizeof *last), n_reads = 0;
  REQUIRE(last);
  for (uint32_t n = 0; n < graph->n_nodes; n++) {
    const psplit_i_node *node = &graph->nodes[n];
    for (uint32_t i = 0; i < node->n_inputs + node->n_captures; i++) {
      const uint32_t v = i < node->n_inputs ? node->inputs[i] : node->captures[i - node->n_inputs];
      if (v == PSPLIT_NONE || last[v] == n + 1) continue;
      last[v] = n + 1;
      n_reads++;
      REQUIRE(bsearch(&n, graph->consumers + off[v], off[v + 1] - off[v], sizeof n, compare_ids));
    }
  }
  free(last);
  REQUIRE(n_reads == off[graph->n_values]);
}

/* A permutation that respects every edge and is the smallest such: a sorted file keeps its order.
 */
static void check_order(const psplit_i_graph *graph) {
  uint32_t *position = malloc((graph->n_nodes + 1) * sizeof *position);
  REQUIRE(position);
  for (uint32_t n = 0; n < graph->n_nodes; n++) position[n] = PSPLIT_NONE;
  for (uint32_t i = 0; i < graph->n_nodes; i++) {
    REQUIRE(graph->topo[i] < graph->n_nodes && position[graph->topo[i]] == PSPLIT_NONE);
    position[graph->topo[i]] = i;
  }
  bool sorted_file = true;
  for (uint32_t v = 0; v < graph->n_values; v++) {
    const uint32_t producer = graph->values[v].producer;
    if (producer == PSPLIT_NONE) continue;
    for (uint32_t c = graph->consumer_off[v]; c < graph->consumer_off[v + 1]; c++) {
      REQUIRE(position[producer] < position[graph->consumers[c]]);
      if (producer > graph->consumers[c]) sorted_file = false;
    }
  }
  for (uint32_t i = 0; sorted_file && i < graph->n_nodes; i++) REQUIRE(graph->topo[i] == i);
  free(position);
}

static void check_type(const struct Onnx__TypeProto *type) {
  for (; type; type = psplit_i_type_inner(type)) {
    (void)psplit_i_type_elem(type);
    const int64_t rank = psplit_i_type_rank(type);
    for (int64_t axis = 0; axis < rank; axis++) {
      const psplit_i_declared_dim dim = psplit_i_type_dim(type, (uint32_t)axis);
      REQUIRE(dim.value >= -1 && (dim.value == -1 || !dim.param));
    }
  }
}

static void check_tensor(const psplit_i_graph *graph, const struct Onnx__TensorProto *proto) {
  psplit_i_arena arena;
  psplit_i_arena_init(&arena, 1 << 20);
  const psplit_i_tensor tensor = psplit_i_tensor_of(proto);
  const int64_t *ints;
  const double *doubles;
  size_t n = 0;
  REQUIRE(tensor.n_elements >= 0);
  if (psplit_i_tensor_int64s(graph->model, &tensor, 1000, &arena, NULL, &ints, &n) == PSPLIT_OK &&
      ints)
    REQUIRE(n == (size_t)tensor.n_elements && n <= 1000);
  if (psplit_i_tensor_doubles(graph->model, &tensor, 1000, &arena, NULL, &doubles, &n) ==
        PSPLIT_OK &&
      doubles)
    REQUIRE(n == (size_t)tensor.n_elements && n <= 1000);
  psplit_i_arena_fini(&arena);
}

static void check_graph(const psplit_i_graph *graph) {
  check_values(graph);
  for (uint32_t n = 0; n < graph->n_nodes; n++) {
    check_node_io(graph, n);
    check_captures(graph, n);
  }
  check_consumers(graph);
  check_order(graph);
  for (uint32_t v = 0; v < graph->n_values; v++) check_type(graph->values[v].declared_type);
  for (uint32_t i = 0; i < graph->n_initializers; i++)
    check_tensor(graph, graph->proto->initializer[i]);
  for (uint32_t n = 0; n < graph->n_nodes; n++) {
    const psplit_i_node *node = &graph->nodes[n];
    const struct Onnx__TensorProto *constant = psplit_i_attr_tensor(node, "value");
    if (constant) check_tensor(graph, constant);
    REQUIRE(node->function == PSPLIT_NONE ||
            node->function < psplit_i_model_n_functions(graph->model));
    for (uint32_t b = 0; b < node->n_bodies; b++) {
      REQUIRE(node->bodies[b]->parent == graph && node->bodies[b]->parent_node == n);
      check_graph(node->bodies[b]);
    }
  }
}

void check_model(const psplit_model *model) {
  check_graph(psplit_i_model_graph(model));
  for (uint32_t f = 0; f < psplit_i_model_n_functions(model); f++)
    check_graph(psplit_i_model_function(model, f));
}

/* The spans lie one after the other, in the file and in the skeleton. */
static void check_spans(const psplit_i_skeleton *skeleton, const psplit_i_spans *spans,
                        const uint8_t *file, uint64_t file_bytes) {
  for (size_t i = 0; i < spans->n; i++) {
    const psplit_i_span *span = &spans->items[i];
    REQUIRE(span->file_bytes > 0 && span->skeleton_bytes > 0);
    REQUIRE(span->file_offset + span->file_bytes <= file_bytes);
    REQUIRE((uint64_t)span->skeleton_offset + span->skeleton_bytes <= skeleton->n_bytes);
    if (i) {
      const psplit_i_span *before = span - 1;
      REQUIRE(before->file_offset + before->file_bytes == span->file_offset);
      REQUIRE(before->skeleton_offset + before->skeleton_bytes == span->skeleton_offset);
    }
    if (!span->has_view)
      REQUIRE(span->file_bytes == span->skeleton_bytes &&
              memcmp(file + span->file_offset, skeleton->bytes + span->skeleton_offset,
                     span->skeleton_bytes) == 0);
  }
}

void check_skeleton(const psplit_i_skeleton *skeleton, const uint8_t *file, size_t n) {
  const psplit_i_spans *fields = &skeleton->model_fields;
  check_spans(skeleton, fields, file, n);
  check_spans(skeleton, &skeleton->graph_fields, file, n);
  if (fields->n) {
    const psplit_i_span *last = &fields->items[fields->n - 1];
    REQUIRE(fields->items[0].file_offset == 0 && fields->items[0].skeleton_offset == 0);
    REQUIRE(last->file_offset + last->file_bytes == n);
    REQUIRE((size_t)last->skeleton_offset + last->skeleton_bytes == skeleton->n_bytes);
  }
  REQUIRE(skeleton->n_bytes <= n);
}
