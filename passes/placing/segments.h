/* Several stages per device, so that execution alternates between devices: the state of the search,
 * which segment_candidates.c fills with candidates and segment_plans.c evaluates.
 *
 * A candidate is an assignment of supernodes to devices. It is turned into segments, the longest
 * runs on one device that the order of execution permits, and is evaluated by the plan they make.
 * The plan counts everything, whatever heuristic the candidate came from. */
#ifndef PSPLIT_PASSES_SEGMENTS_H
#define PSPLIT_PASSES_SEGMENTS_H

#include "request.h"
#include "segment_bounds.h"

enum { PSPLIT_I_MOST_SEGMENTS = 1024 };

typedef struct psplit_i_segments {
  psplit_planner *planner;
  const psplit_i_request *request;
  psplit_diag *diag;
  psplit_i_arena arena;
  psplit_problem problem; /* supernodes on all devices, in any order */
  uint32_t *group;        /* [nodes] supernode, or PSPLIT_NONE */
  uint32_t n_groups, n_devices, max_segments;
  uint32_t *n_before;      /* [n_groups] number of reads of other groups' results */
  uint32_t *net_off, *net; /* [n_groups + 1] nets of a producer */
  uint32_t *device;        /* [n_groups] the candidate */
  uint32_t *segment;       /* [n_groups] */
  uint32_t list[PSPLIT_I_MOST_SEGMENTS], n_segments; /* devices of the segments */
  /* state of the simulation: [n_groups], [n_devices], [n_groups] */
  uint32_t *waits, *ready, *next_ready;
  uint32_t *trial, *joined; /* [n_groups] */
  int64_t best_ns, bound_ns;
  uint32_t *best_segment; /* [n_groups] */
  uint32_t best_list[PSPLIT_I_MOST_SEGMENTS], n_best;
  const char *best_by, *bound;
} psplit_i_segments;

/* Makes the plan of the segments `segment`, [n_groups], on the `n` devices of `list`; `segment` may
 * be NULL without groups. Errors: those of psplit_i_plan_make. */
PSPLIT_MUST_USE psplit_code psplit_i_segments_realise(psplit_i_segments *s, const uint32_t *segment,
                                                      const uint32_t *list, uint32_t n);

/* Evaluates the candidate s->device: makes its segments and, if no device has more than the
 * permitted number, their plan. Keeps it if it is the best so far, as the work of the method `by`.
 * *out_kept (may be NULL) tells whether the number of segments is permitted. Errors: NOMEM,
 * CANCELLED. */
PSPLIT_MUST_USE psplit_code psplit_i_segments_judge_devices(psplit_i_segments *s, const char *by,
                                                            bool *out_kept);
/* The same for segments that are made already: s->segment on the n_segments devices of s->list. */
PSPLIT_MUST_USE psplit_code psplit_i_segments_judge(psplit_i_segments *s, const char *by);

/* Sets the lower bound to `ns`, proved by the method `by`, if that is higher. */
void psplit_i_segments_raise_bound(psplit_i_segments *s, int64_t ns, const char *by);

/* Each of these evaluates its candidates. Errors: NOMEM, CANCELLED. */

/* Each device alone; each device with everything that it can run, and the rest where that is
 * fastest; and every supernode where it is fastest. */
PSPLIT_MUST_USE psplit_code psplit_i_segments_try_greedy(psplit_i_segments *s);
/* Minimum cuts between two devices. */
PSPLIT_MUST_USE psplit_code psplit_i_segments_try_cuts(psplit_i_segments *s);
/* The solver's solutions: free placement, with its bound, chunks, and one stage per device. */
PSPLIT_MUST_USE psplit_code psplit_i_segments_try_solver(psplit_i_segments *s);
/* The plan with one segment per device, where all memory counts and devices are chosen. */
PSPLIT_MUST_USE psplit_code psplit_i_segments_try_one_each(psplit_i_segments *s);

#endif
