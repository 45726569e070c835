/* Work of a node: the class of its operator, arithmetic operations and bytes of one run. */
#ifndef PSPLIT_WORK_H
#define PSPLIT_WORK_H

#include <psplit/base.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Kind of work; efficiencies are given per class. */
typedef enum psplit_op_class {
  PSPLIT_CLASS_OTHER = 0,
  PSPLIT_CLASS_CONSTANT, /* a literal: weight bytes, no time */
  PSPLIT_CLASS_VIEW,     /* same bytes under another shape (Reshape, Squeeze, Identity): no time */
  PSPLIT_CLASS_SHAPE,    /* arithmetic on sizes: Shape, and integer nodes of a few elements */
  PSPLIT_CLASS_ELEMENTWISE,
  PSPLIT_CLASS_CONV,
  PSPLIT_CLASS_DEPTHWISE, /* convolutions with few input channels per group */
  PSPLIT_CLASS_MATMUL,
  PSPLIT_CLASS_ATTENTION,
  PSPLIT_CLASS_RNN,
  PSPLIT_CLASS_NORM, /* normalisations and softmax */
  PSPLIT_CLASS_POOL,
  PSPLIT_CLASS_REDUCE,
  PSPLIT_CLASS_MOVE,    /* rearranges bytes: Transpose, Concat, Slice, Gather, Pad, Expand */
  PSPLIT_CLASS_RESIZE,  /* interpolation and sampling */
  PSPLIT_CLASS_QUANT,   /* to and from quantised numbers */
  PSPLIT_CLASS_SEARCH,  /* TopK, NonMaxSuppression, NonZero, Unique */
  PSPLIT_CLASS_CONTROL, /* If, Loop, Scan, function calls: the sum of their contents */
  PSPLIT_N_CLASSES
} psplit_op_class;

/* Lower-case name of a class, as in a devices file ("conv"); NULL if out of range. */
PSPLIT_API const char *psplit_op_class_name(psplit_op_class op_class);

/* Work of one run of a node. Sums saturate at UINT64_MAX. */
typedef struct psplit_work {
  uint64_t flops;         /* arithmetic operations; a multiply-add is 2 */
  uint64_t bytes_read;    /* inputs, weights included */
  uint64_t bytes_written; /* outputs */
  uint64_t weight_bytes;  /* of the weights the node reads, each counted once */
  uint32_t launches;      /* kernels started: 0 for views and constants, more for control nodes */
  int32_t data_type;      /* TensorProto.DataType the arithmetic is done in; 0 where unknown */
  psplit_op_class op_class;
  bool known; /* false: a size was unknown, and is missing from the numbers */
} psplit_work;

#ifdef __cplusplus
}
#endif

#endif
