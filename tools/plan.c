#include <psplit/partition.h>
#include <stdio.h>
int main(int argc, char **argv) {
  psplit_problem *problem;
  psplit_partition_options options;
  psplit_partition_options_init(&options);
  for (int i = 1; i < argc; i++) {
    psplit_diag diag = {0};
    psplit_solution *solution;
    if (psplit_problem_read_json(argv[i], &diag, &problem) ||
        psplit_partition_solve(problem, &options, &diag, &solution)) {
      fprintf(stderr, "error: %s\n", diag.message);
      return 1;
    }
    printf("%-60s n %u obj %.6f lb %.6f proved %d %.3f s %s\n", argv[i], problem->n_nodes,
           (double)solution->objective_ns / problem->ticks_per_unit,
           (double)solution->lower_bound_ns / problem->ticks_per_unit, solution->proved_optimal,
           solution->seconds, solution->solver);
    psplit_solution_destroy(solution);
    psplit_problem_destroy(problem);
  }
  return 0;
}
