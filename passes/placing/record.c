/* Records the solved problem as text, in the form in which users get it, since the problem itself
 * lives only in a pass's scratch. A certificate is made for the problem that is parsed from that
 * text. */
#include "record.h"

#include "certificate.h"
#include "least_links.h"

#include <stdlib.h>
#include <string.h>

static void *copy(const void *items, size_t bytes) {
  void *to = malloc(bytes ? bytes : 1);
  if (!to) return NULL;
  if (bytes) memcpy(to, items, bytes);
  return to;
}

static psplit_solution *copy_solution(const psplit_solution *from) {
  psplit_solution *to = copy(from, sizeof *from);
  if (!to) return NULL;
  to->stage = copy(from->stage, from->n_nodes * sizeof *from->stage);
  to->chunk = copy(from->chunk, from->n_nodes * sizeof *from->chunk);
  to->stages = copy(from->stages, from->n_stages * sizeof *from->stages);
  if (to->stage && to->chunk && to->stages) return to;
  psplit_solution_destroy(to);
  return NULL;
}

/* Evaluates the split in the relaxed problem with the least links, and keeps the bound, which is
 * for that problem. */
static psplit_code value_of(const psplit_problem *relaxed, const psplit_partition_options *options,
                            const psplit_solution *solution, psplit_i_arena *scratch,
                            psplit_diag *diag, psplit_solution **out) {
  uint32_t *device = psplit_i_arena_array(scratch, solution->n_stages, sizeof *device);
  if (!device) return psplit_i_nomem(diag);
  for (uint32_t s = 0; s < solution->n_stages; s++) device[s] = solution->stages[s].device;
  const psplit_code code = psplit_partition_check(relaxed, options, solution->stage,
                                                  solution->chunk, device, NULL, diag, out);
  if (code == PSPLIT_OK) (*out)->lower_bound_ns = solution->lower_bound_ns;
  return code;
}

psplit_code psplit_i_record(psplit_planner *planner, const psplit_problem *problem,
                            const psplit_partition_options *options,
                            const psplit_solution *solution, psplit_diag *diag) {
  if (!planner->options.certify) return PSPLIT_OK;
  psplit_i_solved solved = {.options = *options, .next_hop = problem->next_hop != NULL};
  psplit_problem relaxed = *problem;
  psplit_code code = PSPLIT_OK;
  solved.options.logger = NULL;
  solved.options.cancel = NULL;
  solved.options.activity = NULL;
  solved.options.solver = "auto";
  if (problem->n_link_classes) {
    PSPLIT_TRY(psplit_i_least_links(problem, &planner->scratch, diag, &relaxed));
    PSPLIT_TRY(value_of(&relaxed, options, solution, &planner->scratch, diag, &solved.solution));
  } else if (!(solved.solution = copy_solution(solution))) {
    PSPLIT_FAIL(psplit_i_nomem(diag));
  }
  PSPLIT_TRY(psplit_problem_format_json(&relaxed, diag, &solved.problem, &solved.n));
  PSPLIT_TRY(psplit_i_vec_push(&planner->solved, solved) ? PSPLIT_OK : psplit_i_nomem(diag));
  return PSPLIT_OK;
out:
  free(solved.problem);
  psplit_solution_destroy(solved.solution);
  return code;
}

void psplit_i_record_forget(psplit_planner *planner, size_t n) {
  while (planner->solved.n > n) {
    psplit_i_solved *last = &planner->solved.items[--planner->solved.n];
    free(last->problem);
    psplit_solution_destroy(last->solution);
  }
}

void psplit_i_record_any_route(psplit_planner *planner, const psplit_partition_options *options,
                               int64_t bound_ns, const uint32_t *stage, const uint32_t *ways) {
  if (!planner->solved.n) return;
  psplit_i_solved *last = &planner->solved.items[planner->solved.n - 1];
  last->ways = ways;
  memcpy(last->solution->stage, stage, last->solution->n_nodes * sizeof *stage);
  last->options.time_limit_s = options->time_limit_s;
  last->solution->lower_bound_ns = bound_ns;
}

/* The record whose bound is that of the plan: the first with that bound, else the last. */
static const psplit_i_solved *find(const psplit_planner *planner) {
  for (size_t i = 0; i < planner->solved.n; i++)
    if (planner->plan &&
        planner->solved.items[i].solution->lower_bound_ns == planner->plan->lower_bound_ns)
      return &planner->solved.items[i];
  return &planner->solved.items[planner->solved.n - 1];
}

psplit_code psplit_planner_certificate(const psplit_planner *planner, psplit_diag *diag,
                                       psplit_certified *out) {
  if (!planner->solved.n)
    return psplit_i_fail(diag, PSPLIT_USAGE,
                         "there is no bound to certify: no pass has partitioned"
                         ", or psplit_planner_options.certify is not set");
  const psplit_i_solved *solved = find(planner);
  psplit_problem *problem;
  psplit_certified made = {0};
  psplit_i_text certificate;
  psplit_code code =
    psplit_problem_parse_json(solved->problem, solved->n, "the bare problem", diag, &problem);
  if (code != PSPLIT_OK) return code;
  /* Any routes will do, since the certificate only uses that relays add costs. */
  const uint32_t n = solved->next_hop ? psplit_problem_n_stages(problem) : 0;
  uint32_t *next_hop = malloc(((size_t)n * n + 1) * sizeof *next_hop);
  if (!next_hop) {
    psplit_problem_destroy(problem);
    return psplit_i_nomem(diag);
  }
  for (uint32_t i = 0; i < n; i++)
    for (uint32_t j = 0; j < n; j++) next_hop[(size_t)i * n + j] = j;
  psplit_problem relayed = *problem;
  if (n) relayed.next_hop = next_hop;
  code = psplit_i_certificate_make(&relayed, &solved->options, solved->solution, solved->ways, diag,
                                   &certificate, &made.bound_ns);
  free(next_hop);
  psplit_problem_destroy(problem);
  if (code != PSPLIT_OK) return code;
  made.certificate = certificate.bytes;
  made.n_certificate = certificate.n;
  made.problem = copy(solved->problem, solved->n + 1);
  made.n_problem = solved->n;
  if (!made.problem) {
    psplit_certified_fini(&made);
    return psplit_i_nomem(diag);
  }
  *out = made;
  return PSPLIT_OK;
}

void psplit_certified_fini(psplit_certified *certified) {
  free(certified->problem);
  free(certified->certificate);
  *certified = (psplit_certified){0};
}
