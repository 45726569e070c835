/* A table of the solver beside what others do (baselines.h), a row for each problem. */
#ifndef PSPLIT_BENCH_SIDE_BY_SIDE_H
#define PSPLIT_BENCH_SIDE_BY_SIDE_H

#include "baselines.h"

typedef struct side_by_side {
  uint32_t n_rows, n_proved;
  uint32_t n[N_BASELINES + 1]; /* the solver, then the baselines: rows with a value */
  double log_sum[N_BASELINES + 1], worst[N_BASELINES + 1], ms[N_BASELINES + 1];
} side_by_side;

void side_by_side_begin(side_by_side *table);
/* Of a problem with several entries of devices the first alone is used. */
void side_by_side_row(side_by_side *table, const char *name, const psplit_problem *problem,
                      const psplit_partition_options *options);
/* Geometric means, the worst, and times. */
void side_by_side_end(const side_by_side *table);

#endif
