#include "bed.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
/* cmocka.h needs the three above first. */
#include <cmocka.h>
#include <stdlib.h>
#include <string.h>

#include "../support/sample.h"

bool bed_take(bed *b) {
  psplit_partition_options_init(&b->options);
  b->options.n_threads = 1;
  if (psplit_i_instance_init(&b->instance, &b->r.problem, NULL, NULL) != PSPLIT_OK) return false;
  if (psplit_i_automaton_init(&b->automaton, &b->instance, &b->options, NULL) != PSPLIT_OK) {
    psplit_i_instance_fini(&b->instance);
    return false;
  }
  psplit_i_arena_init(&b->arena, 0);
  assert_int_equal(psplit_i_closure_make(&b->instance, NULL, &b->closure), PSPLIT_OK);
  assert_int_equal(psplit_i_assignment_init(&b->assignment, &b->instance, &b->arena), PSPLIT_OK);
  return true;
}

void bed_fini(bed *b) {
  psplit_i_closure_fini(&b->closure);
  psplit_i_automaton_fini(&b->automaton);
  psplit_i_instance_fini(&b->instance);
  psplit_i_arena_fini(&b->arena);
}

int64_t checked_value(const bed *b) {
  uint32_t stage[MAX_NODES];
  psplit_solution *solution;
  psplit_diag diag = {0};
  for (uint32_t v = 0; v < b->r.problem.n_nodes; v++)
    stage[v] = b->assignment.stage[b->instance.cluster_of_node[v]];
  if (psplit_partition_check(&b->r.problem, &b->options, stage, NULL, b->assignment.device,
                             b->assignment.replicas, &diag, &solution) != PSPLIT_OK)
    return INT64_MAX;
  const int64_t value = solution->objective_ns;
  psplit_solution_destroy(solution);
  return value;
}

psplit_problem *parsed_problem(const char *text) {
  psplit_diag diag = {0};
  psplit_problem *p = NULL;
  if (psplit_problem_parse_json(text, strlen(text), "test", &diag, &p) != PSPLIT_OK)
    fail_msg("%s", diag.message);
  return p;
}

uint32_t percent(uint32_t n) { return sample_of(n, 50); }
