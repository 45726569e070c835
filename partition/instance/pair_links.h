/* Links between pairs of devices: groups of devices that links do not distinguish, and the least
 * time of a transfer. */
#ifndef PSPLIT_PARTITION_PAIR_LINKS_H
#define PSPLIT_PARTITION_PAIR_LINKS_H

#include "problem.h"

/* Flag in device_link of a merged problem: no split sends from the one entry to the other. */
#define PSPLIT_I_LINK_UNUSED (UINT32_C(1) << 31)

/* Groups the stages of a problem with link classes into device types: runs of stages whose entries
 * and links are alike. If that makes few types, they are divided further by the classes of links
 * that they can send to or receive from, since for instance the last device of a host only has slow
 * links to later ones. Errors: NOMEM. O(n_devices * (n_stages + n_devices)), with missing links
 * n_stages^2. */
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

/* Whether some type may send or receive over links of several classes. If not, the least time of
 * each type is exact. Errors: NOMEM. */
PSPLIT_MUST_USE psplit_code psplit_i_pairs_matter(const psplit_problem *problem,
                                                  psplit_i_arena *arena, bool *out_matter);

/* The problem as in its file, for readers that do not know the flags. Errors: NOMEM.
 * O(n_devices^2). */
PSPLIT_MUST_USE psplit_code psplit_i_pairs_plain(const psplit_problem *problem,
                                                 psplit_i_arena *arena,
                                                 psplit_problem *out_problem);

/* The problem with the least of each entry's links for all of its links: a relaxation, since no
 * split takes more time in it. Every entry is a class of devices. Errors: NOMEM. */
PSPLIT_MUST_USE psplit_code psplit_i_pairs_relax(const psplit_problem *problem,
                                                 psplit_i_arena *arena,
                                                 psplit_problem *out_problem);

#endif
