/* Which of the splits that send least: the one whose stage numbers, node by node, come first.
 *
 * Every label holds the numbers of what is placed, one byte for an item, in the order of the items'
 * smallest nodes; then the device types of the stages. What is left and what is placed number
 * different items, so of two ways to a label the one whose bytes come first does for all splits
 * through it. Numbers count down from the last stage; where stages close ranks (first->closed),
 * those of ways to one label move up alike.
 *
 * A *weightless* item takes no time, its tensors neither, and so do all items before it. In the
 * first split it is on the first stage; it stays left until all others are placed. */
#include <string.h>

#include "assignment.h"
#include "automaton.h"
#include "exact.h"
#include "exact_inside.h"
#include "instance.h"

enum { NO_DEVICE = UINT8_MAX };

bool psplit_i_exact_numbers(const psplit_core *core) {
  return core->n_stages <= NO_DEVICE && core->n_types < NO_DEVICE;
}

/* Nothing in front of it has to be paid for, wherever it is. */
static bool is_weightless(const exact *x, uint32_t item) {
  const psplit_core *core = x->core;
  if (core->pin[item] != PSPLIT_NONE) return false;
  if (core->has_memory && (core->weight_bytes[item] || core->act_bytes[item] ||
                           core->own_off[item + 1] > core->own_off[item]))
    return false;
  for (uint32_t t = 0; t < core->n_types; t++) {
    if (core->w[(size_t)t * core->n + item] > 0) return false;
    for (uint32_t k = core->inc_off[item]; k < core->inc_off[item + 1]; k++) {
      const size_t cell = (size_t)t * core->n_nets + (core->inc[k] >> 1);
      if (core->send[cell] > 0 || core->recv[cell] > 0) return false;
    }
  }
  for (uint32_t k = core->pred_off[item]; k < core->pred_off[item + 1]; k++)
    if (!psplit_i_is_weightless(x, core->pred[k])) return false;
  return true;
}

psplit_code psplit_i_first_prepare(exact *x) {
  const bool numbered = x->options->first && !x->options->first->closed;
  if (numbered || x->machine->all_used) return PSPLIT_OK;
  x->weightless = PSPLIT_NEW(&x->arena, uint64_t, x->words);
  if (!x->weightless) return PSPLIT_NOMEM;
  for (uint32_t i = 0; i < x->core->n; i++)
    if (is_weightless(x, i)) x->weightless[i / 64] |= UINT64_C(1) << (i % 64);
  return PSPLIT_OK;
}

void psplit_i_first_start(digger *d) {
  const psplit_core *core = d->x->core;
  memset(d->numbers, 0, core->n);
  memset(d->numbers + core->n, NO_DEVICE, core->n_stages);
}

void psplit_i_first_number(digger *d, const psplit_move *move) {
  const exact *x = d->x;
  for (uint32_t i = 0; i < d->n_taken; i++)
    d->numbers[x->options->first->place[d->taken[i]]] = (uint8_t)move->stage;
  d->numbers[x->core->n + move->stage] = (uint8_t)move->type;
}

void psplit_i_first_forget(digger *d, const psplit_move *move) {
  d->numbers[d->x->core->n + move->stage] = NO_DEVICE;
}

/* How far the stages of a whole split move up. */
static uint32_t shift_of(const exact *x, const label *l) {
  return x->options->first->closed ? x->machine->n_stages - x->machine->used[l->state] : 0;
}

static const uint8_t *numbers_of(const exact *x, uint32_t id) {
  return x->shards[id % N_SHARDS].numbers.items + (size_t)(id / N_SHARDS) * x->n_numbers;
}

bool psplit_i_first_before(const exact *x, uint32_t a, const label *at_a, uint32_t b,
                           const label *at_b) {
  const uint8_t *left = numbers_of(x, a), *right = numbers_of(x, b);
  const uint32_t n = x->core->n, n_stages = x->core->n_stages;
  const uint32_t shift_left = shift_of(x, at_a), shift_right = shift_of(x, at_b);
  for (uint32_t i = 0; i < n; i++)
    if (left[i] - shift_left != right[i] - shift_right)
      return left[i] - shift_left < right[i] - shift_right;
  const uint32_t most = shift_left > shift_right ? shift_left : shift_right;
  return memcmp(left + n + shift_left, right + n + shift_right, n_stages - most) < 0;
}

void psplit_i_first_write(const exact *x, uint32_t id, const label *at, psplit_cut *cut) {
  const uint8_t *numbers = numbers_of(x, id);
  const uint32_t n = x->core->n, shift = shift_of(x, at);
  for (uint32_t i = 0; i < n; i++) cut->stage[i] = numbers[x->options->first->place[i]] - shift;
  for (uint32_t s = 0; s < x->core->n_stages; s++) {
    const uint32_t from = s + shift;
    const bool none = from >= x->core->n_stages || numbers[n + from] == NO_DEVICE;
    cut->device[s] = none ? PSPLIT_NONE : numbers[n + from];
    cut->replicas[s] = 1;
  }
}
