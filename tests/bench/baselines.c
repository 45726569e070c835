#include "baselines.h"

#include <string.h>
#include <time.h>

const char *const kBaselines[N_BASELINES] = {"even", "pipedream", "islands", "copies"};

static double value_of(const psplit_problem *p, const char *solver) {
  psplit_partition_options options;
  psplit_diag diag = {0};
  psplit_solution *s = NULL;
  psplit_partition_options_init(&options);
  options.solver = solver;
  options.gap_frac = 1; /* no bound is asked for */
  if (psplit_partition_solve(p, &options, &diag, &s) != PSPLIT_OK) return 0;
  const double value = (double)s->objective_ns;
  psplit_solution_destroy(s);
  return value;
}

/* Each device computes every so manyth sample, if the model fits. Unlike solver "copies" this
 * counts no time in which weights are kept alike: the least that copies could take. */
static double copies(const psplit_problem *p) {
  double bytes = 0, total = 0;
  for (uint32_t v = 0; v < p->n_nodes; v++) {
    const int64_t ns = p->time_ns[(size_t)v * p->n_classes + p->devices[0].class_id];
    total += ns > 0 ? (double)ns : 0;
    bytes += (p->weight_bytes ? (double)p->weight_bytes[v] : 0) +
             (p->activation_bytes ? (double)p->activation_bytes[v] : 0);
  }
  for (uint32_t g = 0; g < p->n_weights; g++) bytes += (double)p->weight_group_bytes[g];
  const uint64_t limit = p->devices[0].memory_bytes;
  return limit && bytes > (double)limit ? 0 : total / psplit_problem_n_stages(p);
}

void baselines_run(const psplit_problem *p, double *out_value, double *out_ms) {
  memset(out_value, 0, N_BASELINES * sizeof *out_value);
  memset(out_ms, 0, N_BASELINES * sizeof *out_ms);
  for (int b = 0; b < N_BASELINES && p->n_devices == 1 && psplit_problem_n_stages(p) > 0; b++) {
    const clock_t start = clock();
    out_value[b] = b == BASELINE_COPIES ? copies(p) : value_of(p, kBaselines[b]);
    out_ms[b] = (double)(clock() - start) * 1e3 / CLOCKS_PER_SEC;
  }
}

psplit_problem baselines_of_one_entry(const psplit_problem *problem, psplit_device *io_device) {
  psplit_problem one = *problem;
  *io_device = problem->devices[0];
  one.devices = io_device;
  one.n_devices = 1;
  return one;
}
