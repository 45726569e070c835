/* The exact program on a bed, on one thread: its verdict, and in b->assignment what it finds. */
#ifndef PSPLIT_TESTS_EXACT_RUNS_H
#define PSPLIT_TESTS_EXACT_RUNS_H

#include "bed.h"
#include "exact.h"

/* options: but memory and threads, which are set here. */
psplit_i_verdict run_exact(bed *b, psplit_i_exact_options options);
/* With an axis for windows. */
psplit_i_verdict run_exact_on(bed *b, const psplit_i_weight_axis *axis,
                              psplit_i_exact_options options);
/* In at most 400,000 steps; out_steps (how many it took) may be NULL. */
psplit_i_verdict decide(bed *b, int64_t limit, bool send_once, bool keep_dominated,
                        uint64_t *out_steps);

#endif
