/* Validation of problems, and the costs of their nets. */
#ifndef PSPLIT_PARTITION_PROBLEM_H
#define PSPLIT_PARTITION_PROBLEM_H

#include <psplit/partition.h>

#include "base.h"

/* Larger than every sum of a valid problem (these are below 2^60); two of them can be added. */
#define PSPLIT_I_INF (INT64_C(1) << 61)

/* The sum of two times; INF if one of them is. */
static inline int64_t psplit_i_sum_or_inf(int64_t a, int64_t b) {
  return a >= PSPLIT_I_INF || b >= PSPLIT_I_INF ? PSPLIT_I_INF : a + b;
}

/* Checks everything that psplit/partition.h requires of a problem, before other code reads it.
 * Errors: USAGE, INVALID (which field, and where), UNSUPPORTED, LIMIT. */
PSPLIT_MUST_USE psplit_code psplit_i_problem_validate(const psplit_problem *problem,
                                                      psplit_diag *diag);

/* Whether no solver needs to distinguish two entries of devices, apart from their links. */
bool psplit_i_entries_alike(const psplit_device *a, const psplit_device *b);

/* Time to move `bytes` over a link, in ticks. */
int64_t psplit_i_bytes_ns(const psplit_problem *problem, uint64_t bytes, const psplit_link *link);
/* Time to send (or receive) net e on class c, in ticks, if links are by class. */
int64_t psplit_i_net_ns(const psplit_problem *problem, uint32_t net, uint32_t class_id, bool send);

/* Name of a node for messages; in `buffer` if it has none. */
const char *psplit_i_node_name(const psplit_problem *problem, uint32_t node, char buffer[32]);

#endif
