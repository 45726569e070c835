/* Inferring shapes and counting work when memory runs out:  test_oom_infer MODEL...
 * The i-th allocation fails, for every i until none is reached: the calls say NOMEM and leave no
 * memory behind. None does without: shapes that are merely unknown make other costs. */
#include <stdio.h>
#include <stdlib.h>

#include "failing.h"
#include "shape.h"
#include "work.h"

static psplit_code infer_and_cost(const psplit_i_graph *graph) {
  psplit_diag diag = {0};
  psplit_i_shapes *shapes = NULL;
  psplit_i_costs *costs = NULL;
  psplit_code code;
  PSPLIT_TRY(psplit_i_shapes_create(graph, NULL, 0, NULL, &diag, &shapes));
  const psplit_i_cost_options options = {.assume_input = 2, .assume_data = -1};
  PSPLIT_TRY(psplit_i_costs_create(shapes, &options, &diag, &costs));
out:
  psplit_i_costs_destroy(costs);
  psplit_i_shapes_destroy(shapes);
  return code;
}

/* Number of allocations that it takes; -1 where something went wrong. */
static long try_all(const psplit_i_graph *graph) {
  for (long i = 0; i < 100000; i++) {
    const long live_before = live_blocks();
    fail_allocation_after(i);
    const psplit_code code = infer_and_cost(graph);
    const bool reached = stop_failing();
    if (code != (reached ? PSPLIT_NOMEM : PSPLIT_OK) || live_blocks() != live_before) {
      fprintf(stderr, "allocation %ld: %s, %ld blocks stay\n", i, psplit_code_name(code),
              live_blocks() - live_before);
      return -1;
    }
    if (!reached) return i;
  }
  return -1;
}

int main(int argc, char **argv) {
  for (int i = 1; i < argc; i++) {
    psplit_diag diag = {0};
    psplit_model *model;
    if (psplit_model_open(argv[i], NULL, &diag, &model) != PSPLIT_OK) {
      fprintf(stderr, "%s\n", diag.message);
      return 1;
    }
    const long n = try_all(psplit_i_model_graph(model));
    psplit_model_close(model);
    if (n < 5) return 1; /* the wrapping does not work, or try_all said why */
    printf("%s: %ld allocations\n", argv[i], n);
  }
  return argc < 2;
}
