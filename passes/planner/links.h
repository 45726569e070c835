/* The links of a planner's devices, as the partitioner is told of them.
 *
 * The partitioner knows one time to send a tensor and one to receive it per class of device. Where
 * the links to different devices differ, that cannot be the truth for every split. So there are two
 * tellings: the least links, whose bounds hold for every split, and the nearest, which good splits
 * mostly use. What a split takes in truth is said by pairs.h, and by the plan. */
#ifndef PSPLIT_PASSES_LINKS_H
#define PSPLIT_PASSES_LINKS_H

#include "planner.h"

typedef enum psplit_i_link_choice {
  PSPLIT_I_LINKS_LEAST,  /* whichever of the links that a split can use takes least */
  PSPLIT_I_LINKS_NEAREST /* the link to the nearest stage behind, or in front */
} psplit_i_link_choice;

/* Classes of devices: with the same times of nodes, and the same links as far as they are told. */
typedef struct psplit_i_links {
  uint32_t n;
  uint32_t *of_stage;   /* [n_stages] class of the stage's device */
  uint32_t *time_class; /* [n] the class of the planner that has its times */
  uint32_t *off;        /* [2 n + 1] class c sends over link[off[2 c] .. off[2 c + 1]), and receives
                           over the links from there up to off[2 c + 2] */
  psplit_device_link *link;
  bool exact; /* every transfer of every split takes what its class says */
} psplit_i_links;

/* Finds the classes; arrays live in `arena`. Stages send to later ones, over links that there are.
 * O(n_stages^2 log n_stages). Errors: NOMEM. */
PSPLIT_MUST_USE psplit_code psplit_i_links_find(const psplit_planner *planner,
                                                psplit_i_link_choice choice, psplit_i_arena *arena,
                                                psplit_diag *diag, psplit_i_links *out);

/* Time to send `bytes` from a device of the class, or to receive them there: over whichever of its
 * links takes least; 0 where it has none. */
int64_t psplit_i_links_ns(const psplit_i_links *links, uint32_t class_id, uint64_t bytes,
                          bool send);

#endif
