#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <sys/stat.h>
/* cmocka.h needs the four above first. */
#include <cmocka.h>

#include "../support/hand_plan.h"
#include "model.h"
#include "rich.h"
#include "text_model.h"

bool exists(const char *path) {
  struct stat status;
  return lstat(path, &status) == 0;
}

static const char RICH[] =
  "<ir_version: 8, producer_name: \"fixture\", opset_import: [{version: 17}],"
  " metadata_props: [\"key\": \"a model's metadata\"], 1002: \"unknown to the model\">"
  "rich (float[n,4] x, bool c, int64[n] unused) => (float[n,4] b, float[n,4] y)"
  "@{doc_string: \"a graph's doc_string\","
  "  quantization_annotation: [{tensor_name: \"e\","
  "    quant_parameter_tensor_names: [\"SCALE_TENSOR\": \"big\"]}],"
  "  1001: \"unknown to the graph\"}"
  "<float[4] w = raw {1, 2, 3, 4}, float[4] v = raw {2, 3, 4, 5}, float[4] u = raw {3, 4, 5, 6},"
  " float[300] big = random(1), float[n,4] d @{doc_string: \"a value's doc_string\"}> {"
  "  [first] a = Mul (x, w) @{doc_string: \"a node's doc_string\", 1000: 7}"
  "  b = Relu (a)"
  "  d = If (c) <"
  "    then_branch = then_branch () => (float[n,4] then_out) { then_out = Add (b, v) },"
  "    else_branch = else_branch () => (float[n,4] else_out) { else_out = Identity (b) }>"
  "  e = Mul (d, u)"
  "  y = Add (e, b)"
  "}";

psplit_model *open_model(const char *path) {
  psplit_diag diag = {0};
  psplit_model *model = NULL;
  const psplit_code code = psplit_model_open(path, NULL, &diag, &model);
  if (code != PSPLIT_OK) fail_msg("%s", diag.message);
  return model;
}

psplit_model *open_rich(void) {
  write_model_text("model.onnx", RICH);
  return open_model("model.onnx");
}

uint32_t id_of(const psplit_model *model, const char *name) {
  return psplit_i_graph_find_value(psplit_i_model_graph(model), name);
}

void add_transfer(test_plan *p, const psplit_model *model, const char *name, uint32_t from,
                  uint32_t to) {
  p->transfers[p->plan.n_transfers++] =
    (psplit_plan_transfer){.value = id_of(model, name), .tensor = name, .from = from, .to = to};
}

void add_copy(test_plan *p, uint32_t node_id, uint32_t stage) {
  p->copies[p->plan.n_copies++] = (psplit_plan_copy){.node = node_id, .stage = stage};
}

void start_plan(test_plan *p, uint32_t n_stages, const char *where) {
  *p = (test_plan){.plan = hand_plan((uint32_t)strlen(where), NULL, n_stages, NULL, 0, NULL)};
  for (size_t n = 0; where[n]; n++) p->node_stage[n] = (uint32_t)(where[n] - '0');
}

void end_plan(test_plan *p) {
  for (uint32_t s = 0; s < p->plan.n_stages; s++) p->stages[s] = (psplit_plan_stage){.device = "d"};
  for (uint32_t n = 0; n < p->plan.n_nodes; n++)
    if (p->node_stage[n] < p->plan.n_stages) p->stages[p->node_stage[n]].n_nodes++;
  for (uint32_t c = 0; c < p->plan.n_copies; c++) {
    p->stages[p->copies[c].stage].n_nodes++;
    p->stages[p->copies[c].stage].n_duplicated++;
  }
  p->plan.node_stage = p->node_stage;
  p->plan.stages = p->stages;
  p->plan.copies = p->copies;
  p->plan.transfers = p->transfers;
}

void rich_plan(test_plan *p, const psplit_model *model) {
  start_plan(p, 3, "00122");
  add_transfer(p, model, "b", 0, 1);
  add_transfer(p, model, "b", 0, 2);
  add_transfer(p, model, "d", 1, 2);
  end_plan(p);
}

psplit_code emit(const psplit_model *model, const test_plan *p, const char *directory,
                 psplit_boundary boundary, psplit_weights weights, bool replace,
                 psplit_diag *diag) {
  const psplit_emit_options options = {
    .struct_size = sizeof options, .boundary = boundary, .weights = weights, .replace = replace};
  *diag = (psplit_diag){0};
  return psplit_emit(model, &p->plan, directory, &options, diag);
}

void emit_ok(const psplit_model *model, const test_plan *p, const char *directory,
             psplit_boundary boundary, psplit_weights weights) {
  psplit_diag diag;
  const psplit_code code = emit(model, p, directory, boundary, weights, false, &diag);
  if (code != PSPLIT_OK) fail_msg("%s", diag.message);
}
