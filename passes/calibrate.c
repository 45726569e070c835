/* Measuring this machine. */
#include <psplit/devices.h>

#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base.h"
#include "device_presets.h"

static double now(void) {
  struct timespec time;
  clock_gettime(CLOCK_MONOTONIC, &time);
  return (double)time.tv_sec + (double)time.tv_nsec * 1e-9;
}

/* Best seconds of a few runs of a loop. */
static double best_of(double (*run)(float *data, size_t n), float *data, size_t n, int runs,
                      volatile double *sink) {
  double best = 1e9;
  for (int i = 0; i < runs; i++) {
    const double start = now();
    *sink += run(data, n);
    const double took = now() - start;
    if (took < best) best = took;
  }
  return best;
}

/* Multiply-adds on 64 running sums over a block that stays in the first cache. */
static double arithmetic(float *data, size_t n) {
  float sums[64] = {0};
  for (int repeat = 0; repeat < 4096; repeat++)
    for (size_t i = 0; i + 64 <= n; i += 64)
      for (size_t k = 0; k < 64; k++) sums[k] = sums[k] * 0.999f + data[i + k];
  double total = 0;
  for (size_t k = 0; k < 64; k++) total += (double)sums[k];
  return total;
}

static double streaming(float *data, size_t n) {
  memcpy(data, data + n / 2, n / 2 * sizeof *data);
  return (double)data[0];
}

psplit_code psplit_devices_calibrate(uint32_t n_devices, psplit_diag *diag, char **out_text) {
  enum { CACHED = 2048, STREAMED = 16 << 20 };
  if (n_devices == 0 || n_devices > 1024)
    return psplit_i_fail(diag, PSPLIT_USAGE, "between 1 and 1024 devices can be calibrated");
  float *data = malloc((size_t)STREAMED * sizeof *data);
  if (!data) return psplit_i_nomem(diag);
  for (size_t i = 0; i < STREAMED; i++) data[i] = (float)(i % 7) * 0.25f;
  volatile double sink = 0;
  const double compute = best_of(arithmetic, data, CACHED, 5, &sink);
  const double stream = best_of(streaming, data, STREAMED, 5, &sink);
  free(data);
  psplit_text text = {0};
  psplit_json json;
  psplit_i_json_init(&json, &text);
  psplit_i_json_open(&json, '{');
  psplit_i_json_key(&json, "format");
  psplit_i_json_string(&json, "onnx-pipeline-split-devices");
  psplit_i_json_key(&json, "version");
  psplit_i_json_int(&json, 1);
  psplit_i_json_key(&json, "devices");
  psplit_i_json_open(&json, '[');
  for (uint32_t d = 0; d < n_devices; d++) {
    psplit_text name = {0};
    psplit_i_text_addf(&name, "cpu%u", d);
    psplit_i_json_open(&json, '{');
    psplit_i_json_key(&json, "name");
    psplit_i_json_string(&json, name.failed ? "cpu" : name.bytes);
    text.failed |= name.failed;
    psplit_i_text_fini(&name);
    psplit_i_json_key(&json, "preset");
    psplit_i_json_string(&json, "cpu");
    psplit_i_json_key(&json, "flops_per_second");
    psplit_i_json_open(&json, '{');
    psplit_i_json_key(&json, "float32");
    psplit_i_json_double(&json, 2.0 * CACHED * 4096 / compute);
    psplit_i_json_close(&json, '}');
    psplit_i_json_key(&json, "memory_bandwidth");
    psplit_i_json_double(&json, (double)STREAMED * sizeof(float) / stream);
    psplit_i_json_close(&json, '}');
  }
  psplit_i_json_close(&json, ']');
  psplit_i_json_close(&json, '}');
  if (text.failed) {
    psplit_i_text_fini(&text);
    return psplit_i_nomem(diag);
  }
  *out_text = text.bytes;
  return PSPLIT_OK;
}
