#include "side_by_side.h"

#include <math.h>
#include <stdio.h>
#include <time.h>

static const char *name_of(uint32_t way) { return way == 0 ? "solver" : kBaselines[way - 1]; }

void side_by_side_begin(side_by_side *table) {
  *table = (side_by_side){0};
  printf("value over the proved bound, and CPU ms; * behind the bound: it is the optimum\n");
  printf("%-34s %8s %5s %17s", "problem", "nodes", "K", "bound");
  for (uint32_t w = 0; w <= N_BASELINES; w++) printf(" %8s %8s", name_of(w), "ms");
  printf("\n");
}

static void add(side_by_side *table, uint32_t way, double ratio, double ms) {
  if (!(ratio > 0)) {
    printf(" %8s %8s", "-", "-");
    return;
  }
  printf(" %8.4f %8.1f", ratio, ms);
  table->n[way]++;
  table->log_sum[way] += log(ratio);
  table->ms[way] += ms;
  if (ratio > table->worst[way]) table->worst[way] = ratio;
}

void side_by_side_row(side_by_side *table, const char *name, const psplit_problem *problem,
                      const psplit_partition_options *options) {
  psplit_device device;
  const psplit_problem p = baselines_of_one_entry(problem, &device);
  double value[N_BASELINES], ms[N_BASELINES];
  psplit_diag diag = {0};
  psplit_solution *s = NULL;
  const clock_t start = clock();
  const psplit_code code = psplit_partition_solve(&p, options, &diag, &s);
  const double solve_ms = (double)(clock() - start) * 1e3 / CLOCKS_PER_SEC;
  if (code != PSPLIT_OK) {
    printf("%-34.34s %8u %5u %s: %s\n", name, p.n_nodes, psplit_problem_n_stages(&p),
           psplit_code_name(code), diag.message);
    return;
  }
  const double bound = (double)s->lower_bound_ns;
  baselines_run(&p, value, ms);
  printf("%-34.34s %8u %5u %16.6f%s", name, p.n_nodes, psplit_problem_n_stages(&p),
         bound / p.ticks_per_unit, s->proved_optimal ? "*" : " ");
  table->n_rows++;
  table->n_proved += s->proved_optimal;
  add(table, 0, bound > 0 ? (double)s->objective_ns / bound : 0, solve_ms);
  for (uint32_t b = 0; b < N_BASELINES; b++)
    add(table, b + 1, bound > 0 ? value[b] / bound : 0, ms[b]);
  printf("\n");
  fflush(stdout);
  psplit_solution_destroy(s);
}

void side_by_side_end(const side_by_side *table) {
  printf("\n%u problems, %u proved\n%-10s %8s %10s %8s %10s\n", table->n_rows, table->n_proved, "",
         "problems", "geo. mean", "worst", "mean ms");
  for (uint32_t w = 0; w <= N_BASELINES; w++)
    if (table->n[w])
      printf("%-10s %8u %10.4f %8.4f %10.2f\n", name_of(w), table->n[w],
             exp(table->log_sum[w] / table->n[w]), table->worst[w], table->ms[w] / table->n[w]);
}
