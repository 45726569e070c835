/* The nodes that a device can run at all, by operator, type and size, as a devices file describes
 * them. A node that it cannot run is *refused*. */
#ifndef PSPLIT_PASSES_SUPPORT_H
#define PSPLIT_PASSES_SUPPORT_H

#include "json_read.h"
#include "shape.h"
#include "work.h"

/* Limits on all tensors that a node reads and produces. */
typedef struct psplit_i_support_limits {
  uint32_t types;       /* one bit per TensorProto.DataType; 0: all */
  int64_t since, until; /* opset of the node's domain, inclusive; 0: any */
  bool static_shapes;   /* every size must be known */
  int64_t max_rank;     /* -1: any */
  uint64_t max_bytes;   /* of one tensor; UINT64_MAX: any */
} psplit_i_support_limits;

typedef struct psplit_i_support_rule {
  const char *domain, *op_type;   /* "" for the standard operators */
  psplit_i_support_limits limits; /* in addition to those of all operators */
} psplit_i_support_rule;

typedef struct psplit_i_support_rules {
  uint32_t n;
  const psplit_i_support_rule *items;
} psplit_i_support_rules;

typedef struct psplit_i_support {
  bool listed; /* only operators of `runs` are supported */
  psplit_i_support_rules runs;
  psplit_i_support_limits limits; /* of all operators */
  psplit_i_support_rules refuses; /* with limits: only nodes that use one of their types */
  uint32_t refused_types;
  uint32_t n_nodes;
  const char *const *nodes; /* [n_nodes] patterns of names that are refused */
} psplit_i_support;

/* Reads "supports" and "unsupported" of a device or preset. *io is the support of its preset, which
 * either of the two replaces; NULL: all nodes are supported. */
void psplit_i_support_read(const psplit_i_json_item *object, const psplit_i_support **io);

/* Reads a list of node names or patterns of these; empty if there is none. */
void psplit_i_support_read_nodes(psplit_i_json_item list, uint32_t *out_n,
                                 const char *const **out_names);

/* Whether two devices support the same nodes. NULL: all nodes. */
bool psplit_i_support_same(const psplit_i_support *a, const psplit_i_support *b);

/* Whether `support` (NULL: all) permits a node of the graph of `shapes`. Otherwise *out_why (may be
 * NULL) is the reason, as in "type int64". Constants of int64 are always permitted as inputs, since
 * they are sizes and axes. O(inputs of the node + nodes of its bodies). */
bool psplit_i_support_runs(const psplit_i_support *support, const psplit_i_shapes *shapes,
                           const psplit_i_costs *costs, uint32_t node, psplit_i_text *out_why);

#endif
