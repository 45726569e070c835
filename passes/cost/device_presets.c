/* Built-in devices. Peaks are the vendors' figures for dense arithmetic, in presets.def; what of
 * them a model reaches is in the efficiencies, which are ours. */
#include "device_presets.h"

#include <string.h>

#include "operator.h"
#include "support.h"

enum {
  FLOAT = 1,
  UINT8 = 2,
  INT8 = 3,
  STRING = 8,
  FLOAT16 = 10,
  DOUBLE = 11,
  COMPLEX64 = 14,
  COMPLEX128 = 15,
  BFLOAT16 = 16,
  FLOAT8 = 17,
  UINT4 = 21,
  INT4 = 22
};

static const double TERA = 1e12, GIGA = 1e9;

typedef enum family { CPU, GPU, TPU, NPU } family;

/* Numbers as presets.def has them: TFLOP/s, GB/s, GB. */
typedef struct preset {
  const char *name, *about;
  double vector, float16, tensor, tensor16, int8, uint8;
  double bandwidth, memory;
  int64_t overhead_ns;
  family family;
} preset;

static const preset PRESETS[] = {
#define PSPLIT_PRESET(name, family, vector, float16, tensor, tensor16, int8, uint8, bandwidth, \
                      memory, overhead, about)                                                 \
  {name, about, vector,    float16, tensor,   tensor16,                                        \
   int8, uint8, bandwidth, memory,  overhead, family},
#include "presets.def"
#undef PSPLIT_PRESET
};
enum { N_PRESETS = sizeof PRESETS / sizeof *PRESETS };

/* Shares of the peak, per family and class; for a CPU as ONNX Runtime reaches them with its
 * optimisations on. */
static double efficiency(family kind, psplit_op_class op_class) {
  switch (op_class) {
    case PSPLIT_CLASS_CONV: return kind == CPU ? 1 : 0.5;
    case PSPLIT_CLASS_DEPTHWISE: return kind == CPU ? 0.42 : 0.05;
    case PSPLIT_CLASS_MATMUL: return kind == CPU ? 1 : 0.6;
    case PSPLIT_CLASS_ATTENTION: return kind == CPU ? 0.9 : 0.4;
    case PSPLIT_CLASS_RNN: return kind == CPU ? 0.4 : 0.1;
    case PSPLIT_CLASS_ELEMENTWISE: return kind == CPU ? 0.4 : 0.1;
    case PSPLIT_CLASS_NORM: return kind == CPU ? 0.12 : 0.1;
    case PSPLIT_CLASS_REDUCE: return kind == CPU ? 0.05 : 0.1;
    case PSPLIT_CLASS_POOL: return kind == CPU ? 0.1 : 0.1;
    case PSPLIT_CLASS_QUANT: return kind == CPU ? 0.15 : 0.1;
    case PSPLIT_CLASS_SEARCH: return kind == CPU ? 0.02 : 0.01;
    default: return 0.1;
  }
}

/* Compilers for NPUs take models all of whose sizes are known, and no type that their units lack:
 * OpenVINO's documentation of the NPU device, "only the models with static shapes"; ONNX Runtime's
 * of its QNN provider, "does not support models with dynamic shapes"; Coral's of the Edge TPU,
 * "tensor sizes are constant at compile-time". Which operators is a matter of versions, and said of
 * ONNX by the QNN provider alone. */
#define STATIC_SHAPES \
  { .static_shapes = true, .max_rank = -1, .max_bytes = UINT64_MAX }
#define NO_LIMITS \
  { .max_rank = -1, .max_bytes = UINT64_MAX }
enum {
  NOT_ON_NPUS = UINT32_C(1) << DOUBLE | UINT32_C(1) << STRING | UINT32_C(1) << COMPLEX64 |
                UINT32_C(1) << COMPLEX128
};
static const psplit_i_support NPU_SUPPORT = {.limits = STATIC_SHAPES, .refused_types = NOT_ON_NPUS};

static const psplit_i_support_rule QNN_RULES[] = {
#define PSPLIT_RUNS(domain, op_type) {domain, #op_type, NO_LIMITS},
#include "qnn_operators.def"
#undef PSPLIT_RUNS
};
static const psplit_i_support QNN_SUPPORT = {
  .listed = true,
  .runs = {sizeof QNN_RULES / sizeof *QNN_RULES, QNN_RULES},
  .limits = STATIC_SHAPES,
  .refused_types = NOT_ON_NPUS};

static const psplit_i_support *support_of(const preset *p) {
  if (p->family != NPU) return NULL;
  return strncmp(p->name, "qualcomm-", strlen("qualcomm-")) == 0 ? &QNN_SUPPORT : &NPU_SUPPORT;
}

/* A GPU runtime's context and its libraries' workspaces take about this much of a card; the others
 * share the machine's memory with everything else and set nothing aside. */
static uint64_t workspace_bytes(family kind) { return kind == GPU ? 512000000 : 0; }

bool psplit_i_device_preset(const char *name, psplit_i_device_model *out) {
  for (int i = 0; i < N_PRESETS; i++) {
    const preset *p = &PRESETS[i];
    if (strcmp(p->name, name) != 0) continue;
    memset(out, 0, sizeof *out);
    out->flops_per_second[FLOAT] = p->vector * TERA;
    out->flops_per_second[FLOAT16] = out->flops_per_second[BFLOAT16] = p->float16 * TERA;
    out->product_flops_per_second[FLOAT] = p->tensor * TERA;
    out->product_flops_per_second[FLOAT16] = p->tensor16 * TERA;
    out->product_flops_per_second[BFLOAT16] = p->tensor16 * TERA;
    const double uint8 = p->uint8 > 0 ? p->uint8 : p->int8;
    out->product_flops_per_second[INT8] = p->int8 * TERA;
    out->product_flops_per_second[UINT8] = uint8 * TERA;
    if (p->family != GPU) { /* the same units */
      out->flops_per_second[INT8] = p->int8 * TERA;
      out->flops_per_second[UINT8] = uint8 * TERA;
    }
    out->memory_bandwidth = p->bandwidth * GIGA;
    out->memory_bytes = p->memory > 0 ? (uint64_t)(p->memory * 1e9 + 0.5) : UINT64_MAX;
    out->workspace_bytes = workspace_bytes(p->family);
    out->overhead_ns = p->overhead_ns;
    out->keeps_copies = p->family == CPU;
    out->support = support_of(p);
    for (int c = 0; c < PSPLIT_N_CLASSES; c++)
      out->efficiency[c] = efficiency(p->family, (psplit_op_class)c);
    return true;
  }
  return false;
}

/* The type whose rate stands in for one without its own; 0: none does. */
static int32_t stand_in(int32_t data_type) {
  switch (data_type) {
    case UINT8: return INT8;
    case INT8: return UINT8;
    case UINT4:
    case INT4: return INT8;
    case BFLOAT16: return FLOAT16;
    case FLOAT16: return BFLOAT16;
    default: return data_type >= FLOAT8 && data_type < FLOAT8 + 4 ? INT8 : 0;
  }
}

static double given(const double *rate, int32_t data_type) {
  const bool known = data_type > 0 && data_type < PSPLIT_N_DTYPES;
  if (known && rate[data_type] > 0) return rate[data_type];
  const int32_t other = stand_in(data_type);
  return other ? rate[other] : 0;
}

double psplit_i_device_rate(const psplit_i_device_model *model, psplit_op_class op_class,
                            int32_t data_type) {
  const double *vector = model->flops_per_second, *product = model->product_flops_per_second;
  double rate = psplit_i_is_product(op_class) ? given(product, data_type) : 0;
  if (!(rate > 0)) rate = given(vector, data_type);
  if (rate > 0) return rate;
  if (data_type == DOUBLE) return vector[FLOAT] / 2;
  return psplit_i_is_product(op_class) && product[FLOAT] > 0 ? product[FLOAT] : vector[FLOAT];
}

const char *psplit_device_preset_name(uint32_t index) {
  return index < N_PRESETS ? PRESETS[index].name : NULL;
}
const char *psplit_device_preset_about(uint32_t index) {
  return index < N_PRESETS ? PRESETS[index].about : NULL;
}
