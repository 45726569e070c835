/* Inside of psplit_devices: the record of a device, and the built-in ones. */
#ifndef PSPLIT_PASSES_DEVICE_PRESETS_H
#define PSPLIT_PASSES_DEVICE_PRESETS_H

#include <psplit/devices.h>

enum { PSPLIT_N_DTYPES = 32 };

/* The performance of a device. A rate of 0 is not given; see psplit_i_device_rate. */
typedef struct psplit_i_device_model {
  double flops_per_second[PSPLIT_N_DTYPES]; /* by TensorProto.DataType */
  /* Rates of convolutions, products, attention and recurrent layers, if special units compute them
   * (tensor cores). TF32 counts as float32 here. */
  double product_flops_per_second[PSPLIT_N_DTYPES];
  double memory_bandwidth;  /* bytes per second */
  uint64_t memory_bytes;    /* UINT64_MAX: no limit */
  uint64_t workspace_bytes; /* part of memory_bytes that the runtime reserves */
  int64_t overhead_ns;      /* per kernel launch */
  /* ONNX Runtime on a CPU: it also keeps weights in other layouts, and activations in an arena; see
   * psplit_i_stage_workspace. */
  bool keeps_copies;
  /* nodes that the device supports (support.h); NULL: all */
  const struct psplit_i_support *support;
  /* fraction of the peak rate that a class reaches, (0, 1] */
  double efficiency[PSPLIT_N_CLASSES];
} psplit_i_device_model;

/* Fills *out from a preset. Returns false if there is no preset of that name. */
bool psplit_i_device_preset(const char *name, psplit_i_device_model *out);

/* Rate of a class of nodes for a data type: its own, or that of the nearest type that can replace
 * it. */
double psplit_i_device_rate(const psplit_i_device_model *model, psplit_op_class op_class,
                            int32_t data_type);

#endif
