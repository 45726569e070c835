/* Built-in devices. Peaks are the vendors' figures for dense arithmetic; what of them a model
 * reaches is in the efficiencies, which are ours. docs/costs.md lists the sources. */
#include "device_presets.h"

#include <string.h>

enum {
  FLOAT = 1,
  UINT8 = 2,
  INT8 = 3,
  FLOAT16 = 10,
  DOUBLE = 11,
  BFLOAT16 = 16,
  FLOAT8 = 17,
  UINT4 = 21,
  INT4 = 22
};

#define T 1e12
#define G 1e9
#define GB UINT64_C(1000000000)

typedef enum family { CPU, GPU, NPU } family;

typedef struct preset {
  const char *name, *about;
  double float32, float16, int8; /* FLOP/s; float16 stands for bfloat16 too */
  double bandwidth;
  uint64_t memory_bytes;
  int64_t overhead_ns;
  family family;
} preset;

static const preset presets[] = {
  {"cpu",
   "one core with AVX2 at 3 GHz: 2 x 8 fused multiply-adds a cycle; copies through the "
   "last cache",
   96 * G, 0, 0, 16 * G, UINT64_MAX, 3000, CPU},
  {"cpu-avx512", "one server core with AVX-512 VNNI at 2.5 GHz: 2 x 16 fused multiply-adds a cycle",
   160 * G, 0, 640 * G, 16 * G, UINT64_MAX, 3000, CPU},
  {"cpu-sse", "one core with SSE2 only at 3 GHz: 4 multiplies and 4 adds a cycle", 24 * G, 0, 0,
   12 * G, UINT64_MAX, 3000, CPU},
  {"raspberry-pi-5", "one Cortex-A76 at 2.4 GHz (2 x 4 multiply-adds a cycle), LPDDR4X-4267 x 32",
   38.4 * G, 76.8 * G, 153.6 * G, 9 * G, 8 * GB, 4000, CPU},
  {"nvidia-t4", "NVIDIA T4 data sheet", 8.1 * T, 65 * T, 130 * T, 320 * G, 16 * GB, 6000, GPU},
  {"nvidia-l4", "NVIDIA L4 data sheet, without sparsity", 30.3 * T, 121 * T, 242 * T, 300 * G,
   24 * GB, 5000, GPU},
  {"nvidia-rtx-4090", "NVIDIA Ada architecture white paper, without sparsity", 82.6 * T, 165.2 * T,
   660.6 * T, 1008 * G, 24 * GB, 5000, GPU},
  {"nvidia-a100-40gb", "NVIDIA A100 data sheet (PCIe 40 GB), without sparsity", 19.5 * T, 312 * T,
   624 * T, 1555 * G, 40 * GB, 5000, GPU},
  {"nvidia-a100-80gb", "NVIDIA A100 data sheet (SXM 80 GB), without sparsity", 19.5 * T, 312 * T,
   624 * T, 2039 * G, 80 * GB, 5000, GPU},
  {"nvidia-h100", "NVIDIA H100 data sheet (SXM), without sparsity", 67 * T, 989 * T, 1979 * T,
   3350 * G, 80 * GB, 5000, GPU},
  {"nvidia-jetson-orin-nano", "NVIDIA Jetson Orin Nano 8 GB data sheet, without sparsity", 1.28 * T,
   10 * T, 20 * T, 68 * G, 8 * GB, 10000, GPU},
  {"amd-mi300x", "AMD Instinct MI300X data sheet, without sparsity", 163.4 * T, 1307.4 * T,
   2614.9 * T, 5300 * G, 192 * GB, 8000, GPU},
  {"google-tpu-v5e", "Google Cloud TPU v5e documentation; float32 by bfloat16 passes", 33 * T,
   197 * T, 394 * T, 819 * G, 16 * GB, 5000, NPU},
  {"intel-npu-meteor-lake", "Intel Core Ultra 7 155H: 11 TOPS int8, LPDDR5-7467 shared", 1.4 * T,
   5.5 * T, 11 * T, 60 * G, 16 * GB, 20000, NPU},
  {"qualcomm-hexagon-x-elite", "Qualcomm Snapdragon X Elite product brief: 45 TOPS int8, 135 GB/s",
   2.8 * T, 22.5 * T, 45 * T, 135 * G, 16 * GB, 20000, NPU},
};
enum { N_PRESETS = sizeof presets / sizeof *presets };

/* Shares of the peak, per family and class; for a CPU as ONNX Runtime reaches them with its
 * optimisations on. */
static double efficiency(family kind, psplit_op_class op_class) {
  switch (op_class) {
    case PSPLIT_CLASS_CONV: return kind == CPU ? 0.7 : 0.5;
    case PSPLIT_CLASS_DEPTHWISE: return kind == CPU ? 0.2 : 0.05;
    case PSPLIT_CLASS_MATMUL: return kind == CPU ? 0.75 : 0.6;
    case PSPLIT_CLASS_ATTENTION: return kind == CPU ? 0.6 : 0.4;
    case PSPLIT_CLASS_RNN: return kind == CPU ? 0.4 : 0.1;
    case PSPLIT_CLASS_ELEMENTWISE:
    case PSPLIT_CLASS_NORM:
    case PSPLIT_CLASS_REDUCE:
    case PSPLIT_CLASS_POOL: return kind == CPU ? 0.15 : 0.1;
    case PSPLIT_CLASS_RESIZE:
    case PSPLIT_CLASS_QUANT: return kind == CPU ? 0.1 : 0.1;
    case PSPLIT_CLASS_SEARCH: return kind == CPU ? 0.02 : 0.01;
    default: return 0.1;
  }
}

/* A GPU runtime's context and its libraries' workspaces take about this much of a card; the others
 * share the machine's memory with everything else and set nothing aside. */
static uint64_t workspace_bytes(family kind) { return kind == GPU ? 512 * (GB / 1000) : 0; }

bool psplit_i_device_preset(const char *name, psplit_i_device_model *out) {
  for (int i = 0; i < N_PRESETS; i++) {
    if (strcmp(presets[i].name, name) != 0) continue;
    memset(out, 0, sizeof *out);
    out->flops_per_second[FLOAT] = presets[i].float32;
    out->flops_per_second[FLOAT16] = presets[i].float16;
    out->flops_per_second[BFLOAT16] = presets[i].float16;
    out->flops_per_second[INT8] = presets[i].int8;
    out->flops_per_second[UINT8] = presets[i].int8;
    out->memory_bandwidth = presets[i].bandwidth;
    out->memory_bytes = presets[i].memory_bytes;
    out->workspace_bytes = workspace_bytes(presets[i].family);
    out->overhead_ns = presets[i].overhead_ns;
    out->keeps_copies = presets[i].family == CPU;
    for (int c = 0; c < PSPLIT_N_CLASSES; c++)
      out->efficiency[c] = efficiency(presets[i].family, (psplit_op_class)c);
    return true;
  }
  return false;
}

double psplit_i_device_rate(const psplit_i_device_model *model, int32_t data_type) {
  const double *rate = model->flops_per_second;
  if (data_type > 0 && data_type < PSPLIT_N_DTYPES && rate[data_type] > 0) return rate[data_type];
  switch (data_type) {
    case UINT8:
    case INT8:
      if (rate[INT8] > 0) return rate[INT8];
      if (rate[UINT8] > 0) return rate[UINT8];
      break;
    case UINT4:
    case INT4:
      if (rate[INT8] > 0) return rate[INT8];
      break;
    case BFLOAT16:
      if (rate[FLOAT16] > 0) return rate[FLOAT16];
      break;
    case FLOAT16:
      if (rate[BFLOAT16] > 0) return rate[BFLOAT16];
      break;
    case DOUBLE: return rate[FLOAT] / 2;
    default:
      if (data_type >= FLOAT8 && data_type < FLOAT8 + 4 && rate[INT8] > 0) return rate[INT8];
      break;
  }
  return rate[FLOAT];
}

const char *psplit_device_preset_name(uint32_t index) {
  return index < N_PRESETS ? presets[index].name : NULL;
}
const char *psplit_device_preset_about(uint32_t index) {
  return index < N_PRESETS ? presets[index].about : NULL;
}
