/* What a device can run at all: which operators, on which types and sizes, as a devices file says.
 * A node that it cannot run is *refused*. */
#ifndef PSPLIT_PASSES_SUPPORT_H
#define PSPLIT_PASSES_SUPPORT_H

#include "json_read.h"
#include "shape.h"
#include "work.h"

/* Limits of all that a node reads and makes. */
typedef struct psplit_i_support_limits {
  uint32_t types;       /* a bit by TensorProto.DataType; 0: all */
  int64_t since, until; /* opset of the node's domain, inclusive; 0: any */
  bool static_shapes;   /* every size must be known */
  int64_t max_rank;     /* -1: any */
  uint64_t max_bytes;   /* of one tensor; UINT64_MAX: any */
} psplit_i_support_limits;

typedef struct psplit_i_support_rule {
  const char *domain, *op_type;   /* "" for the standard operators */
  psplit_i_support_limits limits; /* besides those of all operators */
} psplit_i_support_rule;

typedef struct psplit_i_support_rules {
  uint32_t n;
  const psplit_i_support_rule *items;
} psplit_i_support_rules;

typedef struct psplit_i_support {
  bool listed; /* only operators of `runs` run */
  psplit_i_support_rules runs;
  psplit_i_support_limits limits; /* of all operators */
  psplit_i_support_rules refuses; /* with limits: only what touches one of their types */
  uint32_t refused_types;
  uint32_t n_nodes;
  const char *const *nodes; /* [n_nodes] patterns of names that are refused */
} psplit_i_support;

/* Reads "supports" and "unsupported" of a device or preset; *io is what its own preset says, which
 * each of the two replaces, and NULL where all runs. */
void psplit_i_support_read(const psplit_i_json_item *object, const psplit_i_support **io);

/* A list of names of nodes, or patterns of them; empty where there is none. */
void psplit_i_support_read_nodes(psplit_i_json_item list, uint32_t *out_n,
                                 const char *const **out_names);

/* Whether two devices run the same. NULL: all. */
bool psplit_i_support_same(const psplit_i_support *a, const psplit_i_support *b);

/* Whether `support` (NULL: all) runs a node of the graph that `shapes` is of; else *out_why, which
 * may be NULL, is given the reason as in "type int64". Constants of int64, which say sizes and
 * axes, may always be read. O(what the node reads + nodes of its bodies). */
bool psplit_i_support_runs(const psplit_i_support *support, const psplit_i_shapes *shapes,
                           const psplit_i_costs *costs, uint32_t node, psplit_i_text *out_why);

#endif
