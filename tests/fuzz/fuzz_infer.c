/* Fuzz target: inferring shapes and counting work, with nothing fixed, with symbols fixed, and with
 * sizes assumed; results are held against what shape.h and work.h promise. */
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "fuzz.h"
#include "work.h"

#define REQUIRE(condition)                               \
  do {                                                   \
    if (!(condition)) {                                  \
      fprintf(stderr, "%d: %s\n", __LINE__, #condition); \
      abort();                                           \
    }                                                    \
  } while (0)

static void check_type(const psplit_i_shapes *shapes, const psplit_i_vtype *type) {
  const psplit_i_dims *dims = psplit_i_shapes_dims(shapes);
  REQUIRE(type->rank >= -1 && type->rank <= PSPLIT_MAX_RANK);
  int64_t count = 1, size;
  for (int32_t axis = 0; axis < type->rank; axis++) {
    REQUIRE(type->dims[axis] < psplit_i_dims_count(dims));
    if (psplit_i_dim_is_const(dims, type->dims[axis], &size)) REQUIRE(size >= 0);
    if (!type->elements) continue;
    REQUIRE(psplit_i_dim_is_const(dims, type->dims[axis], &size));
    count *= size;
  }
  REQUIRE(!type->elements || (type->rank >= 0 && count == type->n_elements));
  for (uint32_t i = 0; i < type->n_elements; i++)
    REQUIRE(type->elements[i] < psplit_i_dims_count(dims));
  psplit_i_text text = {0};
  psplit_i_shapes_print(shapes, type, &text);
  psplit_i_text_fini(&text);
}

static void check_costs(const psplit_i_shapes *shapes, const psplit_i_cost_options *options) {
  const psplit_i_graph *graph = psplit_i_shapes_graph(shapes);
  psplit_i_costs *costs;
  REQUIRE(psplit_i_costs_create(shapes, options, NULL, &costs) == PSPLIT_OK);
  uint32_t n_unknown = 0, n_assumed = 0, n_data = 0;
  for (uint32_t n = 0; n < graph->n_nodes; n++) {
    const psplit_work work = psplit_i_costs_node(costs, n);
    REQUIRE((unsigned)work.op_class < PSPLIT_N_CLASSES);
    n_unknown += !work.known;
    n_assumed += psplit_i_costs_node_assumed(costs, n);
    n_data += psplit_i_costs_node_data(costs, n) != PSPLIT_I_DATA_NONE;
  }
  REQUIRE(n_unknown == psplit_i_costs_n_unknown(costs));
  REQUIRE(n_data == psplit_i_costs_n_data(costs) && n_data >= n_unknown);
  REQUIRE(n_assumed == psplit_i_costs_n_assumed(costs));
  REQUIRE(options || n_assumed == 0);
  for (uint32_t v = 0; v < graph->n_values; v++) {
    uint64_t bytes;
    bool assumed;
    psplit_i_costs_value_bytes(costs, v, &bytes, &assumed);
  }
  psplit_i_costs_destroy(costs);
}

static void check_shapes(const psplit_model *model, const psplit_i_binding *bindings, size_t n) {
  psplit_diag diag = {0};
  psplit_i_shapes *shapes;
  REQUIRE(psplit_i_shapes_create(psplit_i_model_graph(model), bindings, n, NULL, &diag, &shapes) ==
          PSPLIT_OK);
  for (uint32_t v = 0; v < psplit_i_model_graph(model)->n_values; v++)
    check_type(shapes, psplit_i_shapes_type(shapes, v));
  check_costs(shapes, NULL);
  check_costs(shapes, &(psplit_i_cost_options){.assume_input = 3, .assume_data = 2});
  psplit_i_shapes_destroy(shapes);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n) {
  const int fd = fuzz_file(data, n);
  char path[64];
  snprintf(path, sizeof path, "/proc/self/fd/%d", fd);
  const psplit_read_options options = {
    .struct_size = sizeof options, .max_graph_bytes = 64 << 20, .follow_symlinks = true};
  psplit_model *model = NULL;
  if (psplit_model_open(path, &options, NULL, &model) == PSPLIT_OK) {
    const psplit_i_binding bindings[] = {{"n", 4}, {"batch", 2}, {"N", 0}};
    check_shapes(model, NULL, 0);
    check_shapes(model, bindings, 3);
  }
  psplit_model_close(model);
  close(fd);
  return 0;
}
