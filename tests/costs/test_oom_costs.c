/* Reading costs files and finding their nodes when memory runs out. The i-th allocation fails, for
 * every i until none is reached: the calls say NOMEM and leave no memory behind. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cost_table.h"
#include "failing.h"
#include "open.h"

static psplit_model *model(void) {
  return opened_text("(float[4] x) => (float[4] c) { a = Relu (x) b = Exp (a) c = Neg (b) }");
}

static psplit_code read_and_match(const char *text, const psplit_i_graph *graph) {
  psplit_diag diag = {0};
  psplit_cost_table *table = NULL;
  psplit_i_cost_map map;
  psplit_i_arena arena;
  psplit_code code;
  psplit_i_arena_init(&arena, 0);
  PSPLIT_TRY(psplit_cost_table_parse("f", text, strlen(text), &diag, &table));
  PSPLIT_TRY(psplit_i_cost_match(table, graph, NULL, &arena, &diag, &map));
out:
  psplit_cost_table_destroy(table);
  psplit_i_arena_fini(&arena);
  return code;
}

/* Number of allocations that it takes; -1 where something went wrong. */
static long try_all(const char *text, const psplit_i_graph *graph) {
  for (long i = 0; i < 10000; i++) {
    const long live_before = live_blocks();
    fail_allocation_after(i);
    const psplit_code code = read_and_match(text, graph);
    const bool reached = stop_failing();
    if (code != (reached ? PSPLIT_NOMEM : PSPLIT_OK) || live_blocks() != live_before) {
      fprintf(stderr, "%.30s: allocation %ld: %s, %ld blocks stay\n", text, i,
              psplit_code_name(code), live_blocks() - live_before);
      return -1;
    }
    if (!reached) return i;
  }
  return -1;
}

#define KERNEL(name, op)                              \
  "{\"cat\": \"Node\", \"name\": \"" name             \
  "_kernel_time\", \"ts\": 1, \"dur\": 2, \"args\": " \
  "{\"op_name\": \"" op "\"}}"

int main(void) {
  static const char *const texts[] = {
    "{\"format\": \"onnx-pipeline-split-costs\", \"version\": 1, \"costs\": "
    "[{\"outputs\": [\"a\", \"b\"], \"ns\": 1}]}",
    "[" KERNEL("Relu_0", "Relu") "," KERNEL("Mystery_token_1", "Mystery") "," KERNEL("c_nchwc",
                                                                                     "Neg") "]",
    "#name,input_sizes,initializers_sizes,total_dynamic_sizes,total_temp_allocations\na_nchwc_1,1,"
    "2,3,4\n",
    "module,num_params,num_bytes\na,1,2\n"};
  psplit_model *opened_model = model();
  int failed = 0;
  for (size_t i = 0; i < sizeof texts / sizeof *texts; i++)
    failed |= try_all(texts[i], psplit_i_model_graph(opened_model)) < 4;
  psplit_model_close(opened_model);
  return failed;
}
