/* Writes the seed corpus:  make_seeds DIRECTORY.  Small models that between them use every field
 * the reader looks at. The files beside this program in seeds/ are what it wrote. */
#include <stdio.h>

#include "build.h"

static void save(const char *directory, const char *name, pb *model) {
  char path[4096];
  snprintf(path, sizeof path, "%s/%s", directory, name);
  write_file(path, model->bytes, model->n);
  psplit_i_text_fini(model);
}

static pb chain(void) {
  pb graph = {0};
  add_node(&graph, "Mul", "t w", "u");
  add_node(&graph, "Add", "x w", "t");
  add_node(&graph, "Clip", "u - m", "y -");
  add_initializers(&graph, "w m");
  pb_string(&graph, 2, "g");
  add_values(&graph, 11, "x w");
  add_values(&graph, 12, "y");
  add_values(&graph, 13, "t gone");
  return make_model(&graph);
}

static pb bodies(void) {
  pb then_graph = {0}, inner = {0}, loop = {0}, else_graph = {0}, attributes = {0}, graph = {0};
  add_node(&inner, "Add", "x k", "t");
  add_initializers(&inner, "k");
  add_values(&inner, 12, "t");
  add_body(&loop, "body", &inner);
  add_int_attribute(&loop, "n", 3);
  add_node_with(&then_graph, "Loop", "k", "r", &loop);
  add_values(&then_graph, 12, "r");
  add_node(&else_graph, "Call", "w", "r");
  add_values(&else_graph, 12, "r");
  add_body(&attributes, "then_branch", &then_graph);
  add_body(&attributes, "else_branch", &else_graph);
  add_node_with(&graph, "If", "c", "y", &attributes);
  add_node(&graph, "Neg", "x", "k");
  add_initializers(&graph, "w");
  add_values(&graph, 11, "c x");
  add_values(&graph, 12, "y");
  return make_model(&graph);
}

static pb functions(void) {
  pb graph = {0}, f = make_function("F", "a", "b"), g = make_function("G", "a", "b");
  pb call = make_node("G", "a", "t", NULL), neg = make_node("Neg", "t", "b", NULL);
  pb_string(&call, 7, "local");
  pb_message(&f, 7, &call);
  pb_message(&f, 7, &neg);
  neg = make_node("Neg", "a", "b", NULL);
  pb_message(&g, 7, &neg);
  pb_string(&g, 13, "v");
  call = make_node("F", "x", "y", NULL);
  pb_string(&call, 7, "local");
  pb_message(&graph, 1, &call);
  add_values(&graph, 11, "x");
  add_values(&graph, 12, "y");
  pb model = make_model(&graph);
  pb_message(&model, 25, &f);
  pb_message(&model, 25, &g);
  return model;
}

static pb tensors(void) {
  pb graph = {0}, attributes = {0};
  const int64_t n = 3, two = 2, rank2[] = {1, 3};
  pb tensor = make_tensor("ints", 7, 1, &n);
  pb_bytes(&tensor, 7, "\x01\x02\x03", 3);
  add_tensor_attribute(&attributes, "value", &tensor);
  add_node_with(&graph, "Constant", "", "shape", &attributes);
  tensor = make_tensor("half", 10, 2, rank2);
  pb_bytes(&tensor, 5, "\x01\x02\x03", 3);
  pb_message(&graph, 5, &tensor);
  tensor = make_tensor("text", 8, 1, &n);
  for (int i = 0; i < 3; i++) pb_bytes(&tensor, 6, "a\0b", 3);
  pb_message(&graph, 5, &tensor);
  tensor = make_tensor("outside", 1, 1, &n);
  add_external(&tensor, "location", "100"); /* FUZZ_FD */
  add_external(&tensor, "offset", "16");
  add_external(&tensor, "length", "12");
  pb_int(&tensor, 14, 1);
  attributes = (pb){0};
  add_tensor_attribute(&attributes, "other", &tensor);
  add_node_with(&graph, "Constant", "", "w", &attributes);
  pb sparse = {0}, values = make_raw_tensor("sparse", 2, 7), indices = make_tensor("i", 7, 1, &two);
  pb_bytes(&indices, 7, "\x01\x05", 2);
  pb_message(&sparse, 1, &values);
  pb_message(&sparse, 2, &indices);
  pb_int(&sparse, 3, 8);
  pb_message(&graph, 15, &sparse);
  add_values(&graph, 12, "shape half");
  return make_model(&graph);
}

static pb payload(void) {
  pb graph = {0}, attributes = {0}, tensor = make_raw_tensor("w", 300, 9);
  add_tensor_attribute(&attributes, "value", &tensor);
  add_node_with(&graph, "Constant", "", "y", &attributes);
  add_values(&graph, 12, "y");
  return make_model(&graph);
}

int main(int argc, char **argv) {
  if (argc != 2) return 2;
  const struct {
    const char *name;
    pb (*make)(void);
  } seeds[] = {{"chain", chain},
               {"bodies", bodies},
               {"functions", functions},
               {"tensors", tensors},
               {"payload", payload}};
  for (size_t i = 0; i < sizeof seeds / sizeof *seeds; i++) {
    pb model = seeds[i].make();
    save(argv[1], seeds[i].name, &model);
  }
  return 0;
}
