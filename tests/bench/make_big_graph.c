/* Writes a large ONNX graph to measure the reader with: make_big_graph N_NODES chain|layered FILE
 *   chain    each node reads the one before it
 *   layered  each node reads two nodes of the layer of 1000 before its own, as wide models do
 * Names look like an exporter's ("/model/layers.12/Add_345_output_0"). */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "build.h"

static void value_name(char name[64], long node) {
  if (node < 0)
    strcpy(name, "x");
  else
    snprintf(name, 64, "/model/layers.%ld/Add_%ld_output_0", node / 1000, node);
}

int main(int argc, char **argv) {
  const long n = argc > 3 ? strtol(argv[1], NULL, 10) : 0;
  if (n < 1) return 2;
  const bool layered = strcmp(argv[2], "layered") == 0;
  pb graph = {0}, node = {0};
  char name[64];
  for (long i = 0; i < n; i++) {
    node.n = 0;
    for (long k = 0; k < (layered ? 2 : 1); k++) {
      const uint64_t random = psplit_i_splitmix64(1, (uint64_t)(2 * i + k));
      const long above = (i / 1000 - 1) * 1000 + (long)(random % 1000);
      value_name(name, !layered ? i - 1 : i < 1000 ? -1 : above);
      pb_string(&node, 1, name);
    }
    value_name(name, i);
    pb_string(&node, 2, name);
    *strstr(name, "_output_0") = '\0';
    pb_string(&node, 3, name);
    pb_string(&node, 4, "Add");
    pb_bytes(&graph, 1, node.bytes, node.n);
  }
  psplit_i_text_fini(&node);
  value_name(name, n - 1);
  add_values(&graph, 11, "x");
  add_values(&graph, 12, name);
  pb model = make_model(&graph);
  write_file(argv[3], model.bytes, model.n);
  psplit_i_text_fini(&model);
  return 0;
}
