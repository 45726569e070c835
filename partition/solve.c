/* The portfolio: which solver runs when, and what is reported. */
#include <stdlib.h>
#include <stdio.h>

#include "partition.h"

psplit_code psplit_partition_solve(const psplit_problem *problem,
                                   const psplit_partition_options *options, psplit_diag *diag,
                                   psplit_solution **out_solution) {
  psplit_code code = psplit_i_problem_validate(problem, diag);
  if (code != PSPLIT_OK) return code;
  const double start = psplit_i_now();
  psplit_core core;
  psplit_machine machine = {0};
  psplit_arena arena;
  psplit_i_arena_init(&arena, 0);
  uint32_t *stage = NULL;
  PSPLIT_TRY(psplit_i_core_init(&core, problem, NULL, diag));
  PSPLIT_TRY(psplit_i_machine_init(&machine, &core, options, diag));
  psplit_cut cut;
  PSPLIT_TRY(psplit_i_cut_init(&cut, &core, &arena));
  const psplit_search_options search = {.seed = options->seed,
                                        .n_threads = options->n_threads,
                                        .n_rounds = 4,
                                        .n_steps = 40,
                                        .deadline = {options->time_limit_s < 0 ? -1 : start + options->time_limit_s}};
  double t0 = psplit_i_now();
  PSPLIT_TRY(psplit_i_search(&core, &machine, &search, &cut));
  double t1 = psplit_i_now();
  psplit_wamc wamc;
  int64_t simple = psplit_i_simple_bound(&core, &machine);
  PSPLIT_TRY(psplit_i_wamc(&core, &machine, cut.value, options->n_threads, &wamc));
  double t2 = psplit_i_now();
  psplit_verdict verdict;
  psplit_cut better;
  PSPLIT_TRY(psplit_i_cut_init(&better, &core, &arena));
  uint64_t steps = 0;
  PSPLIT_TRY(psplit_i_exact(&core, &machine, &wamc, &(psplit_exact_options){.limit = cut.value - 1, .max_steps = 1000000000, .memory_bytes = 1u << 30, .n_threads = options->n_threads, .deadline = {-1}, .out_steps = &steps}, &better, &verdict));
  double t3 = psplit_i_now();
  fprintf(stderr, "n %u nets %u ub %.6f simple %.6f wamc %.6f buckets %u verdict %d steps %.2fM  search %.3f wamc %.3f exact %.3f\n", core.n, core.n_nets, (double)cut.value / 1e9, (double)simple / 1e9, (double)wamc.bound / 1e9, wamc.n_buckets, verdict, (double)steps / 1e6, t1 - t0, t2 - t1, t3 - t2);
  stage = calloc(problem->n_nodes, sizeof *stage);
  if (!stage) {
    code = psplit_i_nomem(diag);
    goto out;
  }
  for (uint32_t v = 0; v < problem->n_nodes; v++)
    stage[v] = cut.stage[core.item_of_node[v]];
  PSPLIT_TRY(psplit_partition_check(problem, options, stage, NULL, cut.device, cut.replicas, diag, out_solution));
  (*out_solution)->seconds = psplit_i_now() - start;
out:
  free(stage);
  psplit_i_machine_fini(&machine);
  psplit_i_core_fini(&core);
  psplit_i_arena_fini(&arena);
  return code;
}
