/* A chain that is tuned on times that are made up, and what comes of it; for cmocka, in scratch. */
#ifndef PSPLIT_TESTS_TUNINGS_H
#define PSPLIT_TESTS_TUNINGS_H

#include <psplit/profile.h>
#include <stdbool.h>

#include "fake_runs.h"

enum { N_NODES = 6, MOST_TOLD = 8 };

/* Six nodes, n0 to n5. */
extern const char CHAIN[];
/* The same in a branch of node "choice". */
extern const char BRANCH[];

/* What rounds told, in their order. */
typedef struct told {
  uint32_t n;
  psplit_autotune_round rounds[MOST_TOLD];
  int64_t measured_ns[MOST_TOLD][MOST_STAGES];
} told;

/* For psplit_autotune_options.after_round; `user` is a told. */
void note_round(void *user, const psplit_autotune_round *round);
/* inlined: with the branch in the place of its node. */
psplit_model *open_tuned(const char *path, bool inlined);
/* Each node takes so many us. */
psplit_cost_table *even_costs(int us);
/* The stage of each node as a digit, by the costs given and those that came out; returns what the
 * slowest stage takes, in ns. */
int64_t cut_with(const psplit_model *model, const psplit_planner_options *given,
                 const psplit_cost_table *costs, char *out);
/* How many files and directories are here besides models. */
int n_left(void);
/* Two stages, one thread; `rounds` is told of each round, and stays the caller's. */
void set_up_tuning(psplit_planner_options *planner, psplit_autotune_options *options, told *rounds);

#endif
