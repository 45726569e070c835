#include "handshake.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "all_reduce.h"
#include "resuming.h"

/* Of each set how many rows, and which input has them; then the digest, then sizes of symbols. */
enum {
  ROWS,
  FED = ROWS + PSPLIT_I_N_SETS,
  DIGEST = FED + PSPLIT_I_N_SETS,
  N_DIGEST = 4,
  N_HANDSHAKE = DIGEST + N_DIGEST
};

/* What decides on messages and on what is computed, in numbers that float64 holds. */
static void digest_options(const psplit_train_options *o, double out[N_DIGEST]) {
  uint64_t gamma; /* its bits */
  memcpy(&gamma, &o->smooth_gamma, sizeof gamma);
  const uint64_t said[] = {
    (uint64_t)o->schedule, o->n_chunks,   o->n_replicas,         o->batch,
    o->n_micro_batches,    o->n_steps,    o->n_epochs,           o->seed,
    (uint64_t)o->in_order, o->eval_every, o->checkpoint != NULL, o->checkpoint_every,
    o->resume != NULL,     gamma,         o->smooth_samples};
  const uint64_t digest = psplit_i_hash_bytes(said, sizeof said, 1);
  for (int i = 0; i < N_DIGEST; i++) out[i] = (double)(digest >> 16 * i & 0xffff);
}

/* That a device's rows are as many as those of the first device that has any. */
static psplit_code check_rows(const psplit_i_work *w, psplit_i_feed_set set, const double *first,
                              const double *row, psplit_diag *diag) {
  const psplit_train_options *o = psplit_i_given(w);
  const char *const *names = w->device->pipe->manifest.inputs;
  return psplit_i_rows_agree(psplit_i_feeding_file(o, set, names[(size_t)row[FED + set]]),
                             (uint64_t)row[ROWS + set],
                             psplit_i_feeding_file(o, set, names[(size_t)first[FED + set]]),
                             (uint64_t)first[ROWS + set], diag);
}

/* A psplit_i_decide. */
static psplit_code decide_handshake(void *user, const double *reports, size_t n, double *answer,
                                    psplit_diag *diag) {
  const psplit_i_work *w = user;
  const size_t n_sizes = n - N_HANDSHAKE;              /* of symbols, in both sets */
  const double *first[PSPLIT_I_N_SETS] = {NULL, NULL}; /* reports that have rows */
  answer[PSPLIT_I_SET_TRAIN] = answer[PSPLIT_I_SET_EVAL] = 0;
  for (size_t i = 0; i < n_sizes; i++) answer[PSPLIT_I_N_SETS + i] = -1;
  for (uint32_t d = 0; d < w->setup->wiring.n_devices; d++) {
    const double *row = reports + n * d;
    for (int i = DIGEST; i < DIGEST + N_DIGEST; i++)
      if (row[i] != reports[i])
        return psplit_i_fail(diag, PSPLIT_INVALID,
                             "devices 0 and %" PRIu32 " were started with different options", d);
    for (int set = 0; set < PSPLIT_I_N_SETS; set++) {
      if (row[ROWS + set] == 0) continue;
      if (!first[set]) first[set] = row;
      const psplit_code code = check_rows(w, (psplit_i_feed_set)set, first[set], row, diag);
      if (code != PSPLIT_OK) return code;
      answer[set] = row[ROWS + set];
    }
    for (size_t i = 0; i < n_sizes; i++)
      if (row[N_HANDSHAKE + i] >= 0) answer[PSPLIT_I_N_SETS + i] = row[N_HANDSHAKE + i];
  }
  return PSPLIT_OK;
}

psplit_code psplit_i_handshake(psplit_i_work *w, psplit_diag *diag) {
  const psplit_train_options *o = psplit_i_given(w);
  const size_t n_each = w->feeding.symbols.n, n_sizes = PSPLIT_I_N_SETS * n_each;
  double *report = calloc(N_HANDSHAKE + n_sizes, sizeof *report);
  double *answer = calloc(PSPLIT_I_N_SETS + n_sizes, sizeof *answer);
  uint64_t n_rows[PSPLIT_I_N_SETS];
  psplit_code code;
  if (!report || !answer) PSPLIT_FAIL(psplit_i_nomem(diag));
  for (int set = 0; set < PSPLIT_I_N_SETS; set++) {
    report[ROWS + set] = (double)w->feeding.order[set].n_rows;
    report[FED + set] = w->feeding.first_fed[set];
  }
  digest_options(o, report + DIGEST);
  for (size_t set = 0; set < PSPLIT_I_N_SETS; set++)
    memcpy(report + N_HANDSHAKE + set * n_each, w->feeding.sizes[set], n_each * sizeof *report);
  PSPLIT_TRY(psplit_i_all_reduce(
    w->device, report, N_HANDSHAKE + n_sizes,
    (psplit_i_reduction){decide_handshake, w, PSPLIT_I_N_SETS + n_sizes}, diag, answer));
  for (size_t set = 0; set < PSPLIT_I_N_SETS; set++) {
    n_rows[set] = (uint64_t)answer[set];
    memcpy(w->feeding.sizes[set], answer + PSPLIT_I_N_SETS + set * n_each, n_each * sizeof *answer);
  }
  PSPLIT_TRY(psplit_i_feeding_settle(&w->feeding, o, n_rows, diag));
  const uint64_t each = psplit_i_order_n_batches(&w->feeding.order[PSPLIT_I_SET_TRAIN]);
  w->n_steps = o->n_steps ? o->n_steps : psplit_i_sat_mul_u64(o->n_epochs, each);
  code = psplit_i_find_place(w, diag);
out:
  free(report);
  free(answer);
  return code;
}
