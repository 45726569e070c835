/* Writes a large ONNX graph to measure the reader with: make_big_graph N_NODES chain|layered FILE
 *   chain    each node reads the one before it
 *   layered  each node reads two nodes of the layer of 1000 before its own, as wide models do
 * Names look like an exporter's ("/model/layers.12/Add_345_output_0"). */
#include <stdlib.h>
#include <string.h>

#include "base.h"
#include "open.h"

static void add_value(psplit_i_text *text, long node) {
  if (node < 0)
    psplit_i_text_puts(text, "x");
  else
    psplit_i_text_addf(text, "\"/model/layers.%ld/Add_%ld_output_0\"", node / 1000, node);
}

static void add_sum(psplit_i_text *text, long i, bool layered) {
  psplit_i_text_addf(text, "[\"/model/layers.%ld/Add_%ld\"] ", i / 1000, i);
  add_value(text, i);
  psplit_i_text_puts(text, layered ? " = Add (" : " = Neg (");
  for (long k = 0; k < (layered ? 2 : 1); k++) {
    const uint64_t random = psplit_i_splitmix64(1, (uint64_t)(2 * i + k));
    const long above = (i / 1000 - 1) * 1000 + (long)(random % 1000);
    if (k) psplit_i_text_puts(text, ", ");
    add_value(text, !layered ? i - 1 : i < 1000 ? -1 : above);
  }
  psplit_i_text_puts(text, ")\n");
}

int main(int argc, char **argv) {
  const long n = argc > 3 ? strtol(argv[1], NULL, 10) : 0;
  if (n < 1) return 2;
  psplit_i_text text = {0};
  psplit_i_text_puts(&text, "(float[4] x) => (float[4] ");
  add_value(&text, n - 1);
  psplit_i_text_puts(&text, ") {\n");
  for (long i = 0; i < n; i++) add_sum(&text, i, strcmp(argv[2], "layered") == 0);
  psplit_i_text_puts(&text, "}\n");
  pb model = bytes_of_text(text.bytes);
  psplit_i_text_fini(&text);
  write_file(argv[3], model.bytes, model.n);
  psplit_i_text_fini(&model);
  return 0;
}
