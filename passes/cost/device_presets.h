/* Inside of psplit_devices: the record of a device, and the built-in ones. */
#ifndef PSPLIT_PASSES_DEVICE_PRESETS_H
#define PSPLIT_PASSES_DEVICE_PRESETS_H

#include <psplit/devices.h>

enum { PSPLIT_N_DTYPES = 32 };

/* What a device can do. Rates of 0 are not given; see psplit_i_device_rate. */
typedef struct psplit_i_device_model {
  double flops_per_second[PSPLIT_N_DTYPES]; /* by TensorProto.DataType */
  /* Of convolutions, products, attention and recurrent layers, where units of their own do them
   * (tensor cores); TF32 is float32 here. */
  double product_flops_per_second[PSPLIT_N_DTYPES];
  double memory_bandwidth;  /* bytes per second */
  uint64_t memory_bytes;    /* UINT64_MAX: no limit */
  uint64_t workspace_bytes; /* of them, what the runtime keeps for itself */
  int64_t overhead_ns;      /* per kernel started */
  /* ONNX Runtime on a CPU: it holds weights in other layouts besides, and memory for activations in
   * an arena; see psplit_i_stage_workspace. */
  bool keeps_copies;
  const struct psplit_i_support *support; /* what it runs (support.h); NULL: everything */
  double efficiency[PSPLIT_N_CLASSES];    /* share of the peak that a class reaches, (0, 1] */
} psplit_i_device_model;

/* Fills *out from a preset; false if there is none of that name. */
bool psplit_i_device_preset(const char *name, psplit_i_device_model *out);

/* Rate of a class of nodes for a data type: its own, else that of the nearest type that stands in
 * for it. */
double psplit_i_device_rate(const psplit_i_device_model *model, psplit_op_class op_class,
                            int32_t data_type);

#endif
