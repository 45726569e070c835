/* Branch and bound over labels: exact for small problems of every variant. Items are placed in
 * topological order; a partial placement's value only grows, and
 * what other stages pass on comes on top at the end. */
#include <string.h>

#include "branch_and_bound.h"
#include "budget.h"
#include "instance.h"
#include "placement.h"
#include "problem.h"
#include "result.h"

typedef struct brute {
  psplit_board board;
  const psplit_job *job;
  uint64_t n_steps, max_steps;
  bool stopped, same_devices;
  int64_t best;
  uint32_t *label, *types; /* the best found */
  uint32_t *next;          /* [n] label to try */
  uint32_t *last;          /* [n] */
} brute;

static bool allowed(const brute *b, uint32_t item, uint32_t label) {
  const psplit_core *core = b->board.core;
  const uint32_t k = label % b->board.n_devices;
  if (core->pin[item] != PSPLIT_NONE && core->pin[item] != k) return false;
  return core->w[(size_t)b->board.type[k] * core->n + item] < PSPLIT_I_INF;
}

/* Equal devices without an order are interchangeable: open a new one only after all before it. */
static uint32_t last_label(const brute *b, uint32_t high) {
  if (b->board.ordered || !b->same_devices) return high;
  uint32_t k = 0;
  while (k < high && b->board.n_items[k] > 0) k++;
  return k;
}

static void keep(brute *b) {
  psplit_board *board = &b->board;
  if (board->nonempty)
    for (uint32_t k = 0; k < board->n_devices; k++)
      if (board->n_counted[k] == 0) return;
  const int64_t value = psplit_i_board_settle(board, NULL);
  if (value >= b->best) return;
  b->best = value;
  memcpy(b->label, board->label, board->core->n * sizeof *b->label);
  memcpy(b->types, board->type, board->n_devices * sizeof *b->types);
}

static void search(brute *b) {
  psplit_board *board = &b->board;
  const uint32_t n = board->core->n;
  uint32_t depth = 0;
  bool enter = true;
  for (;;) {
    if (depth == n) {
      keep(b);
      enter = false;
    } else if (enter) {
      uint32_t low, high;
      const bool any = psplit_i_board_range(board, depth, &low, &high);
      b->next[depth] = low;
      b->last[depth] = any ? last_label(b, high) : 0;
      if (!any) b->next[depth] = 1;
      enter = false;
    }
    if (depth == n || b->next[depth] > b->last[depth]) {
      if (depth == 0) return;
      psplit_i_board_remove(board, --depth);
      continue;
    }
    const uint32_t label = b->next[depth]++;
    if (!allowed(b, depth, label)) continue;
    if (++b->n_steps > b->max_steps ||
        ((b->n_steps & 4095) == 0 && psplit_i_expired(&b->job->deadline))) {
      b->stopped = true;
      while (depth > 0) psplit_i_board_remove(board, --depth);
      return;
    }
    psplit_i_board_add(board, depth, label);
    if (!psplit_i_board_fits(board, label % board->n_devices) ||
        psplit_i_board_value(board) >= b->best) {
      psplit_i_board_remove(board, depth);
      continue;
    }
    depth++;
    enter = true;
  }
}

/* Every order of the device types, once. */
static void search_orders(brute *b, uint32_t at, uint32_t *left) {
  psplit_board *board = &b->board;
  if (at == board->n_devices) {
    if (!b->stopped) search(b);
    return;
  }
  for (uint32_t t = 0; t < board->core->n_types && !b->stopped; t++) {
    if (left[t] == 0) continue;
    left[t]--;
    board->type[at] = t;
    search_orders(b, at + 1, left);
    left[t]++;
  }
}

psplit_code psplit_i_brute(const psplit_core *core, uint32_t chunks, const psplit_job *job,
                           uint32_t *types, uint64_t max_steps, uint32_t *label,
                           int64_t *inout_value, bool *out_done) {
  *out_done = false;
  brute b = {
    .job = job, .max_steps = max_steps, .best = *inout_value, .label = label, .types = types};
  psplit_arena arena;
  psplit_i_arena_init(&arena, 0);
  psplit_code code;
  uint32_t *left = PSPLIT_NEW(&arena, uint32_t, core->n_types);
  b.next = PSPLIT_NEW(&arena, uint32_t, core->n);
  b.last = PSPLIT_NEW(&arena, uint32_t, core->n);
  PSPLIT_TRY(left && b.next && b.last ? PSPLIT_OK : PSPLIT_NOMEM);
  PSPLIT_TRY(psplit_i_board_init(&b.board, core, chunks, job->options, &arena));
  uint32_t n_kinds = 0;
  for (uint32_t t = 0; t < core->n_types; t++) {
    left[t] = core->problem->devices[t].count;
    n_kinds += left[t] > 0;
  }
  b.same_devices = n_kinds == 1 && !core->has_pins && !core->stash;
  /* The order of devices matters where stages have one, or a number means something. */
  const bool any_order = core->problem->any_device_order && n_kinds > 1 &&
                         (b.board.ordered || core->has_pins || core->stash);
  if (any_order && core->n_stages <= 16)
    search_orders(&b, 0, left);
  else
    search(&b);
  *out_done = !b.stopped && !(any_order && core->n_stages > 16);
  *inout_value = b.best;
out:
  psplit_i_arena_fini(&arena);
  return code;
}
