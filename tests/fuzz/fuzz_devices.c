/* Fuzz target: devices files. What is taken says times that are no less than nothing, whatever is
 * asked, copies alike, and a small model is planned for it: a valid plan or a reason. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "splits.h"

static const char MODEL[] =
  "<ir_version: 10, opset_import: [\"\": 18]>"
  "g (float[1, 8, 16, 16] x) => (float[1, 8, 16, 16] y) <float[8, 8, 3, 3] w = {...}> {"
  " a = Conv <pads = [1, 1, 1, 1]> (x, w) b = Relu (a) c = Conv <pads = [1, 1, 1, 1]> (b, w)"
  " d = Add (c, x) e = Sigmoid (d) y = Mul (d, e) }";

static unsigned touch(const char *text) { return text ? (unsigned)strlen(text) : 0; }

static void check_session(const psplit_session *session) {
  static volatile unsigned seen;
  unsigned sum = touch(session->provider);
  for (uint32_t i = 0; i < session->n_provider_options; i++)
    sum += touch(session->provider_keys[i]) + touch(session->provider_values[i]);
  for (uint32_t i = 0; i < session->n_config; i++)
    sum += touch(session->config_keys[i]) + touch(session->config_values[i]);
  seen = sum;
  (void)seen;
}

static void check_times(const psplit_devices *devices) {
  const uint32_t n = psplit_devices_count(devices), few = n < 4 ? n : 4;
  FUZZ_HOLDS(n >= 1);
  for (uint32_t d = 0; d < few; d++) {
    FUZZ_HOLDS(*psplit_devices_name(devices, d));
    check_session(psplit_devices_session(devices, d));
    for (int c = 0; c < PSPLIT_N_CLASSES; c++) {
      const psplit_work little = {.launches = 1, .data_type = 1, .op_class = (psplit_op_class)c},
                        much = {.flops = UINT64_MAX,
                                .bytes_read = UINT64_MAX,
                                .bytes_written = UINT64_MAX,
                                .launches = UINT32_MAX,
                                .data_type = c,
                                .op_class = (psplit_op_class)c};
      FUZZ_HOLDS(psplit_devices_work_ns(devices, d, &little) >= 0);
      FUZZ_HOLDS(psplit_devices_work_ns(devices, d, &much) >= 0);
    }
    for (uint32_t to = 0; to < few; to++) {
      const psplit_device_link link = psplit_devices_link(devices, d, to);
      FUZZ_HOLDS(link.bytes_per_second >= 0 && link.latency_ns >= 0);
      const int64_t none = psplit_devices_transfer_ns(devices, d, to, 0),
                    all = psplit_devices_transfer_ns(devices, d, to, UINT64_MAX);
      FUZZ_HOLDS(none >= 0 && all >= none);
      FUZZ_HOLDS(d != to || all == 0);
    }
  }
}

static void check_derived(const psplit_devices *devices) {
  psplit_diag diag = {0};
  psplit_devices *copies = NULL, *back = NULL;
  fuzz_must(psplit_devices_repeat(devices, 3, &diag, &copies) == PSPLIT_OK, "repeat", &diag);
  FUZZ_HOLDS(psplit_devices_count(copies) == 3);
  check_times(copies);
  fuzz_must(psplit_devices_round_trip(devices, &diag, &back) == PSPLIT_OK, "round trip", &diag);
  check_times(back);
  psplit_devices_destroy(back);
  psplit_devices_destroy(copies);
}

static void check_plan(const psplit_devices *devices, uint32_t choice) {
  static psplit_model *model;
  if (!model) model = fuzz_model_of(MODEL);
  const uint32_t n = psplit_devices_count(devices);
  psplit_planner_options options;
  psplit_planner *planner = NULL;
  psplit_diag diag = {0};
  fuzz_planner_options(&options, 1 + choice % (n < 3 ? n : 3));
  options.devices = devices;
  options.device_order = choice / 8 % 2 ? PSPLIT_DEVICE_ORDER_GIVEN : PSPLIT_DEVICE_ORDER_CHOSEN;
  options.max_segments = choice / 16 % 4 == 0 ? 2 : 0;
  if (psplit_planner_create(model, &options, &diag, &planner) == PSPLIT_OK && fuzz_plan(planner)) {
    const psplit_plan *plan = psplit_planner_plan(planner);
    FUZZ_HOLDS(plan->bottleneck_ns >= 0 && plan->lower_bound_ns >= 0);
    FUZZ_HOLDS(plan->lower_bound_ns <= plan->bottleneck_ns ||
               strcmp(plan->objective, "latency") == 0);
    for (uint32_t s = 0; s < plan->n_stages; s++)
      FUZZ_HOLDS(plan->stages[s].device_id < n && plan->stages[s].load_ns >= 0);
  }
  psplit_planner_destroy(planner);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n) {
  psplit_diag diag = {0};
  psplit_devices *devices = NULL;
  char *text = malloc(n + 1); /* of its own, for sanitizers to see its ends */
  if (!text) abort();
  memcpy(text, data, n);
  const psplit_code code = psplit_devices_parse(text, n, &diag, &devices);
  free(text);
  FUZZ_HOLDS((code == PSPLIT_OK) == (devices != NULL) && (code == PSPLIT_OK) == !*diag.message);
  if (devices) {
    check_times(devices);
    check_derived(devices);
    check_plan(devices, fuzz_hash(data, n));
  }
  psplit_devices_destroy(devices);
  return 0;
}
