#include "check_merged.h"

#include "pair_links.h"

psplit_code psplit_i_check_merged(const psplit_i_solver_request *request, const uint32_t *stage,
                                  const uint32_t *device, const uint32_t *replicas,
                                  psplit_diag *diag, psplit_solution **out_solution) {
  psplit_problem plain;
  psplit_i_arena arena;
  psplit_i_arena_init(&arena, 0);
  const psplit_code code = psplit_i_pairs_plain(request->problem, &arena, &plain) == PSPLIT_OK
                             ? psplit_partition_check(&plain, request->options, stage, NULL, device,
                                                      replicas, diag, out_solution)
                             : psplit_i_nomem(diag);
  psplit_i_arena_fini(&arena);
  return code;
}
