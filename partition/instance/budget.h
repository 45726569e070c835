/* How long a solver may take. */
#ifndef PSPLIT_PARTITION_BUDGET_H
#define PSPLIT_PARTITION_BUDGET_H

#include <psplit/partition.h>

typedef struct psplit_i_deadline {
  double end; /* wall clock, seconds; < 0: none */
} psplit_i_deadline;
double psplit_i_now(void);
bool psplit_i_expired(const psplit_i_deadline *deadline);
/* The moment options->time_limit_s from now; none where the limit counts work. */
psplit_i_deadline psplit_i_deadline_in(const psplit_partition_options *options);

#endif
