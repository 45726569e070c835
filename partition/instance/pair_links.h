/* Links between pairs of devices: groups of devices that links do not distinguish, and the least
 * time of a transfer. */
#ifndef PSPLIT_PARTITION_PAIR_LINKS_H
#define PSPLIT_PARTITION_PAIR_LINKS_H

#include "problem.h"

/* Flag in the device_link of a merged problem: no split sends from the one entry to the other. */
#define PSPLIT_I_LINK_UNUSED (UINT32_C(1) << 31)

/* The stages of a problem with link classes as types of devices: runs of stages whose entries are
 * alike and whose links are. Where that makes few types, those are told apart as well that can send
 * to, or receive from, other classes of links: the last device of a host has but slow links ahead.
 * Errors: NOMEM. O(n_devices * (n_stages + n_devices)), with missing links n_stages^2. */
PSPLIT_MUST_USE psplit_code psplit_i_pairs_merge(const psplit_problem *problem,
                                                 const psplit_partition_options *options,
                                                 psplit_i_arena *arena,
                                                 psplit_problem *out_problem);

/* Classes of links that a type may send over (first) or receive over (second), each
 * [n_types * n_link_classes] at most. */
typedef struct psplit_i_used_links {
  uint32_t *off;  /* [2 * n_types + 1] */
  uint32_t *link; /* classes, by type, sending before receiving */
} psplit_i_used_links;

/* Errors: NOMEM. */
PSPLIT_MUST_USE psplit_code psplit_i_pairs_used(const psplit_problem *problem,
                                                psplit_i_arena *arena, psplit_i_used_links *out);

/* Whether some type may send, or receive, over links of several classes; if not, the least of each
 * type is what it takes in truth. Errors: NOMEM. */
PSPLIT_MUST_USE psplit_code psplit_i_pairs_matter(const psplit_problem *problem,
                                                  psplit_i_arena *arena, bool *out_matter);

/* The same problem as its file says, for those who read no flags. Errors: NOMEM. O(n_devices^2). */
PSPLIT_MUST_USE psplit_code psplit_i_pairs_plain(const psplit_problem *problem,
                                                 psplit_i_arena *arena,
                                                 psplit_problem *out_problem);

/* The same problem with the least of each entry's links for all of them (relaxation: no split of
 * the one takes more there). Every entry is a class of devices. Errors: NOMEM. */
PSPLIT_MUST_USE psplit_code psplit_i_pairs_relax(const psplit_problem *problem,
                                                 psplit_i_arena *arena,
                                                 psplit_problem *out_problem);

#endif
