/* Keys: among the splits that send least, the one whose stage numbers are lexicographically
 * smallest.
 *
 * The key of a label contains the stage numbers of the placed clusters, one byte each, in the order
 * of the clusters' smallest nodes, followed by the device types of the stages. The left and the
 * placed clusters are disjoint, so of two partial splits with the same label the one with the
 * smaller key remains the smaller one in every completion: it dominates. Numbers count down from
 * the last stage. Where empty stages are removed (lexicographic->closed), the numbers are shifted
 * at the end, equally for equal labels.
 *
 * A *weightless* cluster takes no time, its tensors cost nothing and make no message, and the same
 * holds for all clusters before it. In the smallest split it is on the first stage (exchange
 * argument), so it stays left until all others are placed. */
#include <string.h>

#include "assignment.h"
#include "automaton.h"
#include "exact.h"
#include "exact_inside.h"
#include "instance.h"

enum { NO_DEVICE = UINT8_MAX };

bool psplit_i_exact_has_keys(const psplit_i_instance *instance) {
  return instance->n_stages <= NO_DEVICE && instance->n_types < NO_DEVICE;
}

/* Whether the cluster costs nothing wherever it is. Its predecessors have been checked before. */
static bool is_weightless(const psplit_i_program *x, uint32_t cluster) {
  const psplit_i_instance *instance = x->instance;
  if (instance->pin[cluster] != PSPLIT_NONE) return false;
  if (instance->has_memory && (instance->weight_bytes[cluster] || instance->act_bytes[cluster] ||
                               instance->own_off[cluster + 1] > instance->own_off[cluster]))
    return false;
  for (uint32_t t = 0; t < instance->n_types; t++) {
    if (instance->w[(size_t)t * instance->n + cluster] > 0) return false;
    for (uint32_t k = instance->inc_off[cluster]; k < instance->inc_off[cluster + 1]; k++) {
      const uint32_t e = instance->inc[k] >> 1;
      const size_t cell = (size_t)t * instance->n_nets + e;
      if (instance->send[cell] > 0 || instance->recv[cell] > 0) return false;
      if (instance->makes_message && instance->makes_message[e]) return false;
    }
  }
  for (uint32_t k = instance->pred_off[cluster]; k < instance->pred_off[cluster + 1]; k++)
    if (!psplit_i_is_weightless(x, instance->pred[k])) return false;
  return true;
}

psplit_code psplit_i_lexicographic_prepare(psplit_i_program *x) {
  const bool numbered = x->options->lexicographic && !x->options->lexicographic->closed;
  if (numbered || x->automaton->all_used) return PSPLIT_OK;
  x->weightless = PSPLIT_NEW(&x->arena, uint64_t, x->words);
  if (!x->weightless) return PSPLIT_NOMEM;
  for (uint32_t i = 0; i < x->instance->n; i++)
    if (is_weightless(x, i)) x->weightless[i / 64] |= UINT64_C(1) << (i % 64);
  return PSPLIT_OK;
}

void psplit_i_lexicographic_start(psplit_i_expander *d) {
  const psplit_i_instance *instance = d->x->instance;
  memset(d->keys, 0, instance->n);
  memset(d->keys + instance->n, NO_DEVICE, instance->n_stages);
}

void psplit_i_lexicographic_number(psplit_i_expander *d, const psplit_i_transition *move) {
  const psplit_i_program *x = d->x;
  for (uint32_t i = 0; i < d->n_taken; i++)
    d->keys[x->options->lexicographic->position[d->taken[i]]] = (uint8_t)move->stage;
  d->keys[x->instance->n + move->stage] = (uint8_t)move->type;
}

void psplit_i_lexicographic_forget(psplit_i_expander *d, const psplit_i_transition *move) {
  d->keys[d->x->instance->n + move->stage] = NO_DEVICE;
}

/* How far the stage numbers of a complete split are shifted when empty stages are removed. */
static uint32_t shift_of(const psplit_i_program *x, const psplit_i_label *l) {
  return x->options->lexicographic->closed ? x->automaton->n_stages - x->automaton->used[l->state]
                                           : 0;
}

static const uint8_t *key_of(const psplit_i_program *x, uint32_t id) {
  return x->shards[id % PSPLIT_I_N_SHARDS].keys.items +
         (size_t)(id / PSPLIT_I_N_SHARDS) * x->n_key_bytes;
}

bool psplit_i_lexicographic_before(const psplit_i_program *x, uint32_t a,
                                   const psplit_i_label *at_a, uint32_t b,
                                   const psplit_i_label *at_b) {
  const uint8_t *left = key_of(x, a), *right = key_of(x, b);
  const uint32_t n = x->instance->n, n_stages = x->instance->n_stages;
  const uint32_t shift_left = shift_of(x, at_a), shift_right = shift_of(x, at_b);
  for (uint32_t i = 0; i < n; i++)
    if (left[i] - shift_left != right[i] - shift_right)
      return left[i] - shift_left < right[i] - shift_right;
  const uint32_t most = shift_left > shift_right ? shift_left : shift_right;
  return memcmp(left + n + shift_left, right + n + shift_right, n_stages - most) < 0;
}

void psplit_i_lexicographic_write(const psplit_i_program *x, uint32_t id, const psplit_i_label *at,
                                  psplit_i_assignment *assignment) {
  const uint8_t *keys = key_of(x, id);
  const uint32_t n = x->instance->n, shift = shift_of(x, at);
  for (uint32_t i = 0; i < n; i++)
    assignment->stage[i] = keys[x->options->lexicographic->position[i]] - shift;
  for (uint32_t s = 0; s < x->instance->n_stages; s++) {
    const uint32_t from = s + shift;
    const bool none = from >= x->instance->n_stages || keys[n + from] == NO_DEVICE;
    assignment->device[s] = none ? PSPLIT_NONE : keys[n + from];
    assignment->replicas[s] = 1;
  }
}
