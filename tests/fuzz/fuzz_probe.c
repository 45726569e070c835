/* Fuzz target: what a probe of a provider found, as a file that users may edit. A small model is
 * planned for devices that run the provider: a valid plan or a reason. */
#include <stdlib.h>
#include <string.h>

#include "splits.h"

static const char MODEL[] =
  "<ir_version: 10, opset_import: [\"\": 18]>"
  "g (float[1, 8] x) => (float[1, 8] y) <float[8, 8] w = {...}> {"
  " [a] a = MatMul (x, w) [b] b = Relu (a) [c] c = MatMul (b, w) [d] d = Sigmoid (c)"
  " [e] e = MatMul (d, w) [f] y = Relu (e) }";
static const char DEVICES[] =
  "{\"devices\": [{\"name\": \"a\", \"preset\": \"cpu\", \"session\": {\"provider\": \"WebGPU\"}}, "
  "{\"name\": \"b\", \"preset\": \"cpu\"}]}";

static void plan(const psplit_model *model, const psplit_devices *devices) {
  psplit_planner_options options;
  psplit_planner *planner = NULL;
  psplit_diag diag = {0};
  fuzz_planner_options(&options, 2);
  options.devices = devices;
  const psplit_code code = psplit_planner_create(model, &options, &diag, &planner);
  FUZZ_HOLDS((code == PSPLIT_OK) == !*diag.message);
  if (code == PSPLIT_OK && fuzz_plan(planner))
    FUZZ_HOLDS(psplit_planner_plan(planner)->bottleneck_ns >= 0);
  psplit_planner_destroy(planner);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n) {
  static psplit_model *model;
  if (!model) model = fuzz_model_of(MODEL);
  psplit_devices *devices = NULL;
  psplit_diag diag = {0};
  char *text = malloc(n + 1); /* of its own, for sanitizers to see its ends */
  if (!text) abort();
  if (n) memcpy(text, data, n);
  fuzz_must(psplit_devices_parse(DEVICES, sizeof DEVICES - 1, &diag, &devices) == PSPLIT_OK,
            "devices", &diag);
  const psplit_code code = psplit_devices_restrict(
    devices, "WebGpuExecutionProvider", fuzz_hash(data, n) % 4 ? model : NULL, text, n, &diag);
  FUZZ_HOLDS((code == PSPLIT_OK) == !*diag.message);
  free(text);
  if (code == PSPLIT_OK) plan(model, devices);
  psplit_devices_destroy(devices);
  return 0;
}
