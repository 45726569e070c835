/* Comparing weights: ranges of the model's files against ranges of the stages' files, in pieces
 * that threads take as they come. The verdict is the first difference in the order of the list,
 * whatever the number of threads. */
#include <inttypes.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "activity.h"
#include "team.h"
#include "verify.h"

enum { BUFFER_BYTES = 256 << 10, PIECE_BYTES = 8 << 20 };

/* The same bytes of the same file need no reading. */
static bool same_place(const psplit_model *whole, const psplit_model *part,
                       const psplit_i_pair *pair) {
  if (pair->whole.memory || pair->part.memory) return false;
  const psplit_i_data_file *a = &whole->files.items[pair->whole.file];
  const psplit_i_data_file *b = &part->files.items[pair->part.file];
  return a->device == b->device && a->inode == b->inode && pair->whole.offset == pair->part.offset;
}

psplit_code psplit_i_payload_fetch(const psplit_model *model, const psplit_i_payload *payload,
                                   uint64_t at, size_t n, uint8_t *buffer, const uint8_t **out,
                                   psplit_diag *diag) {
  *out = buffer;
  if (!payload->memory)
    return psplit_i_model_read(model, payload->file, payload->offset + at, buffer, n, diag);
  *out = payload->memory + at;
  return PSPLIT_OK;
}

/* Bytes [start, start + n) of a pair. */
typedef struct piece {
  size_t pair;
  uint64_t start, n;
} piece;

typedef struct comparison {
  const psplit_model *whole, *part;
  uint32_t stage;
  const psplit_i_pairs *pairs;
  const piece *pieces;
  const volatile int *cancel;
  psplit_activity *activity;
  uint8_t **buffers; /* of each thread, once it needs one */
  pthread_mutex_t lock;
  size_t first_bad;
  psplit_diag first_diag;
} comparison;

/* buffers[2 * BUFFER_BYTES]: scratch. */
static psplit_code compare_piece(const comparison *all, const piece *each, uint8_t *buffers,
                                 psplit_diag *diag) {
  const psplit_i_pair *pair = &all->pairs->items[each->pair];
  const uint64_t end = each->start + each->n;
  psplit_code code = PSPLIT_OK;
  for (uint64_t at = each->start; at < end;) {
    const uint64_t left = end - at;
    const size_t step = left < BUFFER_BYTES ? (size_t)left : BUFFER_BYTES;
    const uint8_t *a, *b;
    PSPLIT_TRY(psplit_i_go_on(all->cancel, diag));
    PSPLIT_TRY(psplit_i_payload_fetch(all->whole, &pair->whole, at, step, buffers, &a, diag));
    PSPLIT_TRY(
      psplit_i_payload_fetch(all->part, &pair->part, at, step, buffers + BUFFER_BYTES, &b, diag));
    if (memcmp(a, b, step) != 0) {
      size_t byte = 0;
      while (a[byte] == b[byte]) byte++;
      return psplit_i_fail(diag, PSPLIT_MISMATCH,
                           "stage %" PRIu32 ": the data of \"%s\" differs at byte %" PRIu64,
                           all->stage, pair->name, at + byte);
    }
    at += step;
  }
out:
  return code;
}

static void compare_one(void *with, size_t i, int thread) {
  comparison *all = with;
  psplit_diag here = {0};
  pthread_mutex_lock(&all->lock);
  const bool skip = i >= all->first_bad; /* an earlier difference is known already */
  pthread_mutex_unlock(&all->lock);
  if (skip) return;
  uint8_t **buffers = &all->buffers[thread];
  if (!*buffers) *buffers = malloc((size_t)2 * BUFFER_BYTES);
  const piece *each = &all->pieces[i];
  const psplit_code code =
    *buffers ? compare_piece(all, each, *buffers, &here) : psplit_i_nomem(&here);
  psplit_i_activity_add(all->activity, each->n);
  if (code == PSPLIT_OK) return;
  pthread_mutex_lock(&all->lock);
  if (i < all->first_bad) {
    all->first_bad = i;
    all->first_diag = here;
  }
  pthread_mutex_unlock(&all->lock);
}

psplit_code psplit_i_pairs_compare(const psplit_i_proof *proof, uint32_t stage,
                                   uint32_t n_threads) {
  psplit_code code = PSPLIT_OK;
  const psplit_i_pairs *pairs = &proof->pairs;
  psplit_diag *diag = proof->diag;
  PSPLIT_VEC(piece) pieces = {0};
  for (size_t p = 0; p < pairs->n; p++) {
    const psplit_i_pair *pair = &pairs->items[p];
    if (same_place(proof->model, proof->stage, pair)) continue;
    for (uint64_t at = 0; at < pair->whole.bytes; at += PIECE_BYTES) {
      const uint64_t left = pair->whole.bytes - at;
      const piece next = {p, at, left < PIECE_BYTES ? left : PIECE_BYTES};
      if (!psplit_i_vec_push(&pieces, next)) PSPLIT_FAIL(psplit_i_nomem(diag));
    }
  }
  comparison all = {.whole = proof->model,
                    .part = proof->stage,
                    .stage = stage,
                    .pairs = pairs,
                    .pieces = pieces.items,
                    .cancel = proof->cancel,
                    .activity = proof->activity,
                    .lock = PTHREAD_MUTEX_INITIALIZER,
                    .first_bad = SIZE_MAX};
  const int team = pieces.n > 1 ? psplit_i_team_size(n_threads) : 1;
  all.buffers = calloc((size_t)team, sizeof *all.buffers);
  if (!all.buffers) PSPLIT_FAIL(psplit_i_nomem(diag));
  psplit_i_team_for(team, 0, pieces.n, compare_one, &all);
  for (int t = 0; t < team; t++) free(all.buffers[t]);
  free(all.buffers);
  pthread_mutex_destroy(&all.lock);
  if (all.first_bad != SIZE_MAX) code = psplit_i_fail_as(diag, &all.first_diag);
out:
  psplit_i_vec_fini(&pieces);
  return code;
}
