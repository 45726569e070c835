#include "build.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "wire.h"

static void check(const pb *out) {
  if (!out->failed) return;
  fputs("tests: out of memory\n", stderr);
  abort();
}

void pb_int(pb *out, uint32_t field, int64_t value) {
  psplit_i_wire_tag(out, field, PSPLIT_I_WIRE_VARINT);
  psplit_i_wire_varint(out, (uint64_t)value);
  check(out);
}

void pb_string(pb *out, uint32_t field, const char *value) {
  pb_bytes(out, field, value, strlen(value));
}

void pb_bytes(pb *out, uint32_t field, const void *bytes, size_t n) {
  psplit_i_wire_bytes(out, field, bytes, n);
  check(out);
}

void pb_message(pb *out, uint32_t field, pb *message) {
  pb_bytes(out, field, message->bytes, message->n);
  psplit_i_text_fini(message);
}

void pb_message_padded(pb *out, uint32_t field, pb *message, unsigned width) {
  uint8_t length[PSPLIT_I_VARINT_MAX];
  psplit_i_varint_write(length, width, message->n);
  psplit_i_wire_tag(out, field, PSPLIT_I_WIRE_BYTES);
  psplit_i_text_add(out, length, width);
  psplit_i_text_add(out, message->bytes, message->n);
  psplit_i_text_fini(message);
  check(out);
}

/* Takes the next space-separated name off *io_names into `name`; false at the end. */
static bool next_name(const char **io_names, char name[256]) {
  const char *names = *io_names + strspn(*io_names, " ");
  const size_t n = strcspn(names, " ");
  *io_names = names + n;
  if (n == 0) return false;
  snprintf(name, 256, "%.*s", (int)n, names);
  if (strcmp(name, "-") == 0) name[0] = '\0';
  return true;
}

static void add_names(pb *out, uint32_t field, const char *names) {
  for (char name[256]; next_name(&names, name);) pb_string(out, field, name);
}

pb make_node(const char *op_type, const char *inputs, const char *outputs, pb *attributes) {
  pb node = {0};
  add_names(&node, 1, inputs);
  add_names(&node, 2, outputs);
  pb_string(&node, 4, op_type);
  if (attributes) {
    psplit_i_text_add(&node, attributes->bytes, attributes->n);
    psplit_i_text_fini(attributes);
    check(&node);
  }
  return node;
}

void add_node_with(pb *graph, const char *op_type, const char *inputs, const char *outputs,
                   pb *attributes) {
  pb node = make_node(op_type, inputs, outputs, attributes);
  pb_message(graph, 1, &node);
}

void add_node(pb *graph, const char *op_type, const char *inputs, const char *outputs) {
  add_node_with(graph, op_type, inputs, outputs, NULL);
}

static void add_attribute(pb *attributes, const char *name, pb *attribute, int64_t type) {
  pb_string(attribute, 1, name);
  pb_int(attribute, 20, type);
  pb_message(attributes, 5, attribute);
}

void add_body(pb *attributes, const char *name, pb *graph) {
  pb attribute = {0};
  pb_message(&attribute, 6, graph);
  add_attribute(attributes, name, &attribute, 5);
}

void add_tensor_attribute(pb *attributes, const char *name, pb *tensor) {
  pb attribute = {0};
  pb_message(&attribute, 5, tensor);
  add_attribute(attributes, name, &attribute, 4);
}

void add_int_attribute(pb *attributes, const char *name, int64_t value) {
  pb attribute = {0};
  pb_int(&attribute, 3, value);
  add_attribute(attributes, name, &attribute, 2);
}

void add_values(pb *graph, uint32_t field, const char *names) {
  for (char name[256]; next_name(&names, name);) {
    pb dim = {0}, shape = {0}, tensor = {0}, type = {0}, info = {0};
    pb_int(&dim, 1, 4);
    pb_message(&shape, 1, &dim);
    pb_int(&tensor, 1, 1);
    pb_message(&tensor, 2, &shape);
    pb_message(&type, 1, &tensor);
    pb_string(&info, 1, name);
    pb_message(&info, 2, &type);
    pb_message(graph, field, &info);
  }
}

pb make_tensor(const char *name, int32_t data_type, unsigned n_dims, const int64_t *dims) {
  pb tensor = {0};
  for (unsigned i = 0; i < n_dims; i++) pb_int(&tensor, 1, dims[i]);
  pb_int(&tensor, 2, data_type);
  pb_string(&tensor, 8, name);
  return tensor;
}

pb make_raw_tensor(const char *name, int64_t n, unsigned char fill) {
  pb tensor = make_tensor(name, 1, 1, &n);
  unsigned char *bytes = malloc((size_t)n * 4 + 1);
  if (!bytes) abort();
  memset(bytes, fill, (size_t)n * 4);
  pb_bytes(&tensor, 9, bytes, (size_t)n * 4);
  free(bytes);
  return tensor;
}

void add_initializers(pb *graph, const char *names) {
  for (char name[256]; next_name(&names, name);) {
    pb tensor = make_raw_tensor(name, 1, 1);
    pb_message(graph, 5, &tensor);
  }
}

void add_external(pb *tensor, const char *key, const char *value) {
  pb entry = {0};
  pb_string(&entry, 1, key);
  pb_string(&entry, 2, value);
  pb_message(tensor, 13, &entry);
}

static void add_opset(pb *out, uint32_t field, const char *domain, int64_t version) {
  pb opset = {0};
  pb_string(&opset, 1, domain);
  pb_int(&opset, 2, version);
  pb_message(out, field, &opset);
}

pb make_function(const char *name, const char *inputs, const char *outputs) {
  pb function = {0};
  pb_string(&function, 1, name);
  add_names(&function, 4, inputs);
  add_names(&function, 5, outputs);
  add_opset(&function, 9, "", 18);
  add_opset(&function, 9, "local", 1);
  pb_string(&function, 10, "local");
  return function;
}

pb make_model(pb *graph) {
  pb model = {0};
  pb_int(&model, 1, 10);
  add_opset(&model, 8, "", 18);
  add_opset(&model, 8, "local", 1);
  pb_message(&model, 7, graph);
  return model;
}

void write_file(const char *path, const void *bytes, size_t n) {
  FILE *file = fopen(path, "wb");
  const bool written = file && (n == 0 || fwrite(bytes, 1, n, file) == n);
  if (!file || fclose(file) != 0 || !written) {
    perror(path);
    abort();
  }
}
