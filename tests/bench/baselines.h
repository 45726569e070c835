/* What others do in place of solving, to stand beside the solver in benches: the library's solvers
 * to compare with, and copies of the whole that keep their weights alike for nothing. */
#ifndef PSPLIT_BENCH_BASELINES_H
#define PSPLIT_BENCH_BASELINES_H

#include <psplit/partition.h>

typedef enum baseline {
  BASELINE_EVEN,      /* an order of the nodes, cut where the work so far is an even share */
  BASELINE_PIPEDREAM, /* PipeDream's dynamic programme over that order, without copies */
  BASELINE_ISLANDS,   /* stages grown from node to node by what they already hold the tensors of */
  BASELINE_COPIES,    /* the whole model on every device, weights kept alike for nothing */
  N_BASELINES
} baseline;

extern const char *const kBaselines[N_BASELINES];

/* Value of each, ticks; 0: not for this problem (devices of several entries, a limit that it
 * breaks, for PipeDream's over 4,000 layers), and the processor time, ms. */
void baselines_run(const psplit_problem *problem, double *out_value, double *out_ms);

/* The problem on its accelerators alone: devices of the first entry. `io_device` is what the
 * returned problem points to. */
psplit_problem baselines_of_one_entry(const psplit_problem *problem, psplit_device *io_device);

#endif
