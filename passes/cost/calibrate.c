/* Measuring this machine. */
#include <psplit/devices.h>

#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base.h"
#include "device_presets.h"
#include "json_put.h"

/* Of this thread's own time: a busy machine takes longer, but is no slower. */
static double now(void) {
  struct timespec time;
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time);
  return (double)time.tv_sec + (double)time.tv_nsec * 1e-9;
}

/* Best seconds of some short runs of a loop, so that one of them is not disturbed. */
static double best_of(double (*run)(float *data, size_t n), float *data, size_t n, int runs,
                      volatile double *logger) {
  double best = 1e9;
  for (int i = 0; i < runs; i++) {
    const double start = now();
    *logger += run(data, n);
    const double took = now() - start;
    if (took < best) best = took;
  }
  return best;
}

/* A chain of integer multiplies and adds that wait for each other: its time is latency, which
 * depends on the clock and neither on the compiler nor on vectors. */
static double chain(float *data, size_t n) {
  uint64_t x = (uint64_t)data[1];
  const uint64_t a = (uint64_t)data[2] | 5, b = (uint64_t)data[3] | 1;
  for (size_t i = 0; i < n; i++) x = x * a + b;
  return (double)(x >> 32);
}

static double streaming(float *data, size_t n) {
  memcpy(data, data + n / 2, n / 2 * sizeof *data);
  return (double)data[0];
}

/* The preset of one core that has this machine's vector unit. */
static const char *preset_of_this_machine(void) {
#if defined __x86_64__ || defined __i386__
  if (__builtin_cpu_supports("avx512f")) return "cpu-avx512";
  if (!__builtin_cpu_supports("avx2")) return "cpu-sse";
#endif
  return "cpu";
}

psplit_code psplit_devices_calibrate(psplit_diag *diag, char **out_text) {
  /* A product takes 3 cycles and a sum 1 on the usual x86 and Arm cores of the last ten years. */
  enum { LINKS = 1 << 19, CYCLES_PER_LINK = 4, N_CHAINS = 40, STREAMED = 16 << 20, N_STREAMS = 10 };
  static const struct {
    const char *name;
    int data_type;
  } rates[] = {{"float32", 1}, {"uint8", 2}, {"int8", 3}};
  const char *preset = preset_of_this_machine();
  const double preset_hz = strcmp(preset, "cpu-avx512") == 0 ? 2.5e9 : 3e9;
  psplit_i_device_model model;
  psplit_i_device_preset(preset, &model);
  float *data = malloc((size_t)STREAMED * sizeof *data);
  if (!data) return psplit_i_nomem(diag);
  for (size_t i = 0; i < STREAMED; i++) data[i] = (float)(i % 7) * 0.25f;
  volatile double logger = 0;
  const double hz =
    (double)LINKS * CYCLES_PER_LINK / best_of(chain, data, LINKS, N_CHAINS, &logger);
  const double stream = best_of(streaming, data, STREAMED, N_STREAMS, &logger);
  free(data);
  psplit_i_text text = {0};
  psplit_i_json json;
  psplit_i_json_init(&json, &text);
  psplit_i_json_open(&json, '{');
  psplit_i_json_put_string(&json, "format", "onnx-pipeline-split-devices");
  psplit_i_json_put_int(&json, "version", 1);
  psplit_i_json_put_open(&json, "devices", '[');
  psplit_i_json_open(&json, '{');
  psplit_i_json_put_string(&json, "name", "cpu");
  psplit_i_json_put_string(&json, "preset", preset);
  psplit_i_json_put_open(&json, "flops_per_second", '{');
  for (size_t t = 0; t < sizeof rates / sizeof *rates; t++) {
    if (!(model.flops_per_second[rates[t].data_type] > 0)) continue;
    psplit_i_json_put_double(&json, rates[t].name,
                             model.flops_per_second[rates[t].data_type] * hz / preset_hz);
  }
  psplit_i_json_close(&json, '}');
  psplit_i_json_put_double(&json, "memory_bandwidth", (double)STREAMED * sizeof(float) / stream);
  psplit_i_json_close(&json, '}');
  psplit_i_json_close(&json, ']');
  psplit_i_json_close(&json, '}');
  if (text.failed) {
    psplit_i_text_fini(&text);
    return psplit_i_nomem(diag);
  }
  *out_text = text.bytes;
  return PSPLIT_OK;
}
