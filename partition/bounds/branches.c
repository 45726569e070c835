/* The open branches: what both searches for a boundary have in common. */
#include "branches.h"

#include <string.h>

#include "bits.h"

enum { MOST_BYTES = 1 << 25 };

void psplit_i_branches_init(psplit_i_branches *all, const psplit_i_closure *closure,
                            psplit_i_budget *budget) {
  *all = (psplit_i_branches){.closure = closure, .budget = budget};
  psplit_i_arena_init(&all->arena, 0);
}

void psplit_i_branches_fini(psplit_i_branches *all) {
  psplit_i_vec_fini(&all->open);
  psplit_i_arena_fini(&all->arena);
}

uint32_t psplit_i_branches_most(const psplit_i_branches *all) {
  return MOST_BYTES / 2 / (all->closure->n + 1);
}

bool psplit_i_branch_init(psplit_i_branches *all, psplit_i_branch *out) {
  *out = (psplit_i_branch){.where = PSPLIT_NEW(&all->arena, uint8_t, all->closure->n),
                           .ends = PSPLIT_NEW(&all->arena, uint8_t, all->closure->n)};
  return out->where && out->ends;
}

static bool push(psplit_i_branches *all, psplit_i_branch b) {
  if (!psplit_i_vec_push(&all->open, b)) return false;
  psplit_i_open_pushed(all->open.items, all->open.n, sizeof b);
  return true;
}

static psplit_i_branch pop(psplit_i_branches *all) {
  psplit_i_open_pop(all->open.items, all->open.n, sizeof *all->open.items);
  return all->open.items[--all->open.n];
}

bool psplit_i_branch_open(psplit_i_branches *all, psplit_i_branch *branch, const bool *light,
                          const bool *heavy, const int64_t *before, const int64_t *behind) {
  double most = -1;
  bool differs = false;
  branch->cluster = PSPLIT_NONE;
  for (uint32_t i = 0; i < all->closure->n; i++) {
    const bool apart = light[i] != heavy[i];
    const double forced = (double)before[i] * (double)behind[i];
    branch->ends[i] =
      (uint8_t)((light[i] ? PSPLIT_I_END_LIGHT : 0) | (heavy[i] ? PSPLIT_I_END_HEAVY : 0));
    if (branch->where[i] != PSPLIT_I_SIDE_FREE || (differs && !apart)) continue;
    if (differs == apart && forced <= most) continue;
    branch->cluster = i;
    most = forced;
    differs = apart;
  }
  branch->number = all->n_opened++;
  return push(all, *branch);
}

bool psplit_i_branch_divide(psplit_i_branches *all, psplit_i_branch out[2], bool out_possible[2]) {
  const uint32_t n = all->closure->n;
  psplit_i_branch b = pop(all), other;
  if (!psplit_i_branch_init(all, &other)) return false;
  other.least = b.least;
  other.price = b.price;
  memcpy(other.where, b.where, n);
  memcpy(other.ends, b.ends, n);
  out[0] = other;
  out[1] = b;
  out_possible[0] = psplit_i_branch_force(all, other.where, b.cluster, PSPLIT_I_SIDE_INSIDE);
  out_possible[1] = psplit_i_branch_force(all, b.where, b.cluster, PSPLIT_I_SIDE_OUTSIDE);
  return true;
}

void psplit_i_branch_recall(const psplit_i_branches *all, const psplit_i_branch *branch,
                            uint8_t which, bool *in) {
  for (uint32_t i = 0; i < all->closure->n; i++)
    in[i] = branch->where[i] == PSPLIT_I_SIDE_INSIDE ||
            (branch->where[i] == PSPLIT_I_SIDE_FREE && (branch->ends[i] & which) != 0);
}

void psplit_i_branch_extreme(const psplit_i_branches *all, const psplit_i_branch *branch,
                             uint8_t which, bool *in) {
  for (uint32_t i = 0; i < all->closure->n; i++)
    in[i] = which == PSPLIT_I_END_LIGHT ? branch->where[i] == PSPLIT_I_SIDE_INSIDE
                                        : branch->where[i] != PSPLIT_I_SIDE_OUTSIDE;
}

bool psplit_i_branch_force(const psplit_i_branches *all, uint8_t *where, uint32_t cluster,
                           psplit_i_side to) {
  const psplit_i_closure *closure = all->closure;
  const uint64_t *bits = (to == PSPLIT_I_SIDE_INSIDE ? closure->before : closure->behind) +
                         (size_t)cluster * closure->words;
  bool fits = true;
  for (uint32_t i = 0; i < closure->n; i++) {
    if (!psplit_i_holds(bits, i)) continue;
    if (where[i] != PSPLIT_I_SIDE_FREE && where[i] != to) fits = false;
    where[i] = (uint8_t)to;
  }
  psplit_i_spend(all->budget, closure->n);
  return fits;
}

int64_t psplit_i_branch_free_weight(const psplit_i_branches *all, const uint8_t *where,
                                    const uint64_t *bits, const int64_t *weight) {
  int64_t sum = 0;
  for (uint32_t j = 0; j < all->closure->words; j++)
    for (uint64_t rest = bits[j]; rest; rest &= rest - 1) {
      const uint32_t i = 64 * j + (uint32_t)__builtin_ctzll(rest);
      if (where[i] == PSPLIT_I_SIDE_FREE) sum += weight[i];
    }
  return sum;
}
