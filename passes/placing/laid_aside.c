#include "laid_aside.h"

#include <string.h>

bool psplit_i_lay_aside(psplit_planner *planner, psplit_i_laid_aside *out) {
  const size_t n_nodes = planner->graph->n_nodes;
  *out = (psplit_i_laid_aside){
    .solution = planner->solution, .n_copies = planner->copies.n, .plan = planner->plan};
  out->stage = psplit_i_arena_array(&planner->arena, n_nodes, sizeof *out->stage);
  out->copies = psplit_i_arena_array(&planner->arena, out->n_copies, sizeof *out->copies);
  if (!out->stage || !out->copies) return false;
  memcpy(out->stage, planner->stage, n_nodes * sizeof *out->stage);
  if (out->n_copies)
    memcpy(out->copies, planner->copies.items, out->n_copies * sizeof *out->copies);
  planner->solution = NULL;
  return true;
}

bool psplit_i_take_back(psplit_planner *planner, const psplit_i_laid_aside *from) {
  memcpy(planner->stage, from->stage, planner->graph->n_nodes * sizeof *planner->stage);
  psplit_solution_destroy(planner->solution);
  planner->solution = from->solution;
  planner->plan = from->plan;
  planner->copies.n = 0;
  if (!psplit_i_vec_reserve(&planner->copies, from->n_copies)) return false;
  if (from->n_copies)
    memcpy(planner->copies.items, from->copies, from->n_copies * sizeof *from->copies);
  planner->copies.n = from->n_copies;
  return true;
}
