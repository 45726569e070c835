#include "measured.h"

#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>

#include "all_reduce.h"

void psplit_i_train_result_fini(psplit_i_train_result *result) {
  free(result->losses);
  free(result->devices);
  free(result->forward_ns);
  free(result->backward_ns);
  free(result->weights_ns);
  *result = (psplit_i_train_result){0};
}

enum { UPDATE_NS, STASHES, STASH_BYTES, WEIGHT_BYTES, RESIDENT_BYTES, N_END };
enum { FORWARD_NS, BACKWARD_NS, WEIGHTS_NS, N_TIMES };

/* Behind the head: the times of each chunk, then two halves of the digest of each weight. */
static size_t write_end(const psplit_i_work *w, double *report) {
  const uint32_t n_chunks = w->setup->wiring.n_chunks;
  struct rusage usage;
  double *row = report + N_END;
  memset(report, 0, N_END * sizeof *report);
  getrusage(RUSAGE_SELF, &usage);
  report[UPDATE_NS] = (double)w->update_ns;
  report[STASHES] = w->peak_stashes;
  report[STASH_BYTES] = (double)w->peak_bytes;
  report[RESIDENT_BYTES] = 1024.0 * (double)usage.ru_maxrss;
  for (uint32_t c = 0; c < n_chunks; c++) {
    const psplit_i_learner *l = &w->learners[c];
    report[WEIGHT_BYTES] += (double)psplit_i_learner_bytes(l);
    row[FORWARD_NS] = (double)w->forward_ns[c];
    row[BACKWARD_NS] = (double)w->backward_ns[c];
    row[WEIGHTS_NS] = (double)w->weights_ns[c];
    row += N_TIMES;
  }
  for (uint32_t k = 0; k < w->n_weights; k++, row += 2) {
    row[0] = row[1] = 0;
    for (uint32_t c = 0; c < n_chunks; c++) {
      if (!psplit_i_learner_owns(&w->learners[c], k)) continue;
      const uint64_t digest = psplit_i_learner_digest(&w->learners[c], k);
      row[0] = (double)(digest >> 32);
      row[1] = (double)(digest & UINT32_MAX);
    }
  }
  return (size_t)(row - report);
}

static void take_digests(const psplit_i_work *w, const double *reports, size_t n,
                         uint64_t *io_digest) {
  const psplit_i_training_table *t = w->device->pipe->manifest.training;
  const uint32_t n_line = w->setup->wiring.n_line;
  const size_t skip = N_END + N_TIMES * (size_t)w->setup->wiring.n_chunks;
  for (uint32_t k = 0; k < w->n_weights; k++) {
    if (t->weights[k].owner == PSPLIT_NONE) continue;
    const double *row = reports + n * (t->weights[k].owner % n_line) + skip + 2 * (size_t)k;
    const uint64_t both[] = {*io_digest, (uint64_t)row[0] << 32 | (uint64_t)row[1]};
    *io_digest = psplit_i_hash_bytes(both, sizeof both, k);
  }
}

/* A psplit_i_decide. */
static psplit_code decide_end(void *user, const double *reports, size_t n, double *answer,
                              psplit_diag *diag) {
  const psplit_i_work *w = user;
  const psplit_i_wiring *wiring = &w->setup->wiring;
  const uint32_t n_devices = wiring->n_devices, n_line = wiring->n_line;
  const uint32_t n_stages = n_line * wiring->n_chunks;
  psplit_i_train_result *r = w->device->result;
  const uint64_t steps = r->n_steps ? r->n_steps : 1;
  const double pieces = (double)steps * w->setup->n_micro_batches;
  answer[0] = 0;
  r->devices = calloc(n_devices, sizeof *r->devices);
  r->forward_ns = calloc(n_stages, sizeof *r->forward_ns);
  r->backward_ns = calloc(n_stages, sizeof *r->backward_ns);
  r->weights_ns = calloc(n_stages, sizeof *r->weights_ns);
  if (!r->devices || !r->forward_ns || !r->backward_ns || !r->weights_ns)
    return psplit_i_nomem(diag);
  for (uint32_t d = 0; d < n_devices; d++) {
    const double *row = reports + n * d;
    psplit_train_device *out = &r->devices[d];
    *out =
      (psplit_train_device){.peak_stashes = (uint32_t)row[STASHES],
                            .scheduled_stashes = w->setup->schedule->peak_in_flight[d % n_line],
                            .stash_bytes = (uint64_t)row[STASH_BYTES],
                            .weight_bytes = (uint64_t)row[WEIGHT_BYTES],
                            .peak_resident_bytes = (uint64_t)row[RESIDENT_BYTES],
                            .update_ns = (int64_t)(row[UPDATE_NS] / (double)steps)};
    for (uint32_t c = 0; c < wiring->n_chunks; c++) {
      const uint32_t stage = d % n_line + c * n_line;
      const double *ns = row + N_END + N_TIMES * c;
      int64_t *const means[N_TIMES] = {&r->forward_ns[stage], &r->backward_ns[stage],
                                       &r->weights_ns[stage]};
      int64_t *const own[N_TIMES] = {&out->forward_ns, &out->backward_ns,
                                     &out->weight_gradients_ns};
      for (int k = 0; k < N_TIMES; k++) {
        *means[k] += (int64_t)(ns[k] / pieces / wiring->n_replicas);
        *own[k] += (int64_t)(ns[k] / pieces / wiring->n_chunks);
      }
    }
  }
  take_digests(w, reports, n, &r->digest);
  return PSPLIT_OK;
}

psplit_code psplit_i_tell_measured(psplit_i_work *w, psplit_diag *diag) {
  double ignored;
  const size_t n = write_end(w, w->report);
  return psplit_i_all_reduce(w->device, w->report, n, (psplit_i_reduction){decide_end, w, 1}, diag,
                             &ignored);
}
