/* What searches for a placement are given. */
#ifndef PSPLIT_PARTITION_PLACEMENT_TASK_H
#define PSPLIT_PARTITION_PLACEMENT_TASK_H

#include "result.h"

/* A problem of placing clusters on stages, with any objective. */
typedef struct psplit_i_placement_task {
  const psplit_i_instance *instance;
  uint32_t chunks; /* virtual stages per device */
  const psplit_i_solver_request *request;
  uint32_t *types; /* [stages] device types; only branch and bound changes them */
} psplit_i_placement_task;

#endif
