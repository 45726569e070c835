/* Passage of requests through the pipeline: forming batches, and distributing results. Runs in the
 * feeder and the collector. */
#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "failures.h"
#include "queue.h"
#include "requests_inside.h"

/* With the mutex held: the first that waits and is too late. */
static psplit_i_request *take_late(psplit_i_requests *rs, psplit_diag *why) {
  for (psplit_i_request **at = &rs->waiting.first; *at; at = &(*at)->next)
    if (psplit_i_deadline_check((*at)->deadline_ns, why) != PSPLIT_OK)
      return psplit_i_requests_take_to_answer(rs, &rs->waiting, at);
  return NULL;
}

/* With the mutex held: the first that waits goes into the pipeline, as the last of those there. */
static psplit_i_request *take_off(psplit_i_requests *rs) {
  psplit_i_request *r = psplit_i_requests_take(&rs->waiting, &rs->waiting.first);
  r->taken_ns = psplit_i_now_ns();
  psplit_i_requests_append(&rs->under_way, r);
  pthread_cond_broadcast(&rs->changed);
  return r;
}

/* With the mutex held, which it leaves while it waits: takes off those behind `first` that can be
 * joined with it, as far as they come in time. */
static void take_mates(psplit_i_requests *rs, psplit_i_request *first, const atomic_bool *stopped) {
  const int64_t until_ns = psplit_i_after(first->submitted_ns, rs->options.batch_delay_s);
  int64_t n_rows = first->n_rows;
  const int64_t most = rs->options.max_batch;
  first->n_joined = 1;
  while (first->n_rows >= 0 && n_rows < most && !atomic_load(stopped)) {
    psplit_i_request *r = rs->waiting.first;
    if (!r) {
      if (rs->closed || psplit_i_now_ns() >= until_ns) return;
      psplit_i_timed_cond_wait(&rs->changed, &rs->mutex, until_ns);
      continue;
    }
    if (r->n_rows < 0 || r->n_rows > most - n_rows ||
        !psplit_i_batching_fits(&rs->batching, first->inputs, r->inputs))
      return;
    n_rows += r->n_rows;
    first->n_joined++;
    take_off(rs);
  }
}

/* The inputs of those from `first` on, which are under way. */
static void give_inputs(psplit_i_requests *rs, psplit_i_request *first, psplit_i_tensor **inputs,
                        int64_t *out_deadline_ns, psplit_diag *failure) {
  const uint32_t n_needed = rs->options.pipe->manifest.n_needed, n = first->n_joined;
  *out_deadline_ns = first->deadline_ns;
  if (n == 1) {
    memcpy(inputs, first->inputs, n_needed * sizeof *inputs);
    free(first->inputs);
    first->inputs = NULL;
    return;
  }
  psplit_i_tensor *const **all = calloc(n, sizeof *all);
  psplit_code code = all ? PSPLIT_OK : psplit_i_nomem(failure);
  psplit_i_request *r = first;
  for (uint32_t i = 0; all && i < n; i++, r = r->next) {
    all[i] = r->inputs;
    /* Each has its own; the last one that matters is that of all. */
    if (!r->deadline_ns || !*out_deadline_ns)
      *out_deadline_ns = 0;
    else if (r->deadline_ns > *out_deadline_ns)
      *out_deadline_ns = r->deadline_ns;
  }
  if (code == PSPLIT_OK) code = psplit_i_batching_join(&rs->batching, all, n, failure, inputs);
  for (uint32_t i = 0; code != PSPLIT_OK && i < n_needed; i++) {
    psplit_i_tensor_release(inputs[i]);
    inputs[i] = NULL;
  }
  free(all);
}

static bool next(void *user, const atomic_bool *stopped, psplit_i_tensor **inputs,
                 int64_t *out_deadline_ns, psplit_i_step *out_step, psplit_diag *failure) {
  (void)out_step; /* requests know nothing of each other */
  static const int64_t LOOK_NS = 50000000;
  psplit_i_requests *rs = user;
  for (;;) {
    psplit_diag why = {0};
    pthread_mutex_lock(&rs->mutex);
    psplit_i_request *late = take_late(rs, &why), *r = NULL;
    if (late) {
      pthread_cond_broadcast(&rs->changed);
    } else if (rs->waiting.first) {
      r = take_off(rs);
      take_mates(rs, r, stopped);
      rs->n_batches += r->n_joined > 1;
      give_inputs(rs, r, inputs, out_deadline_ns, failure);
    }
    const bool over = !r && ((rs->closed && !rs->n_batches) || atomic_load(stopped));
    if (!late && !r && !over)
      psplit_i_timed_cond_wait(&rs->changed, &rs->mutex, psplit_i_now_ns() + LOOK_NS);
    pthread_mutex_unlock(&rs->mutex);
    if (late)
      psplit_i_request_answer(rs, late, NULL, &why);
    else if (r || over)
      return r;
  }
}

/* With the mutex held: takes a batch out of the pipeline, linked by `mate`. */
static psplit_i_request *take_batch(psplit_i_requests *rs) {
  psplit_i_request *first = NULL, **end = &first;
  for (uint32_t n = rs->under_way.first->n_joined; n; n--) {
    psplit_i_request *r = psplit_i_requests_take(&rs->under_way, &rs->under_way.first);
    *end = r;
    end = &r->mate;
    *end = NULL;
  }
  return first;
}

/* With the mutex held: a batch that failed waits again, before all others, each by itself. */
static void run_again(psplit_i_requests *rs, psplit_i_request *first) {
  if (!first) return;
  run_again(rs, first->mate); /* the last one first, so that they keep their order */
  if (first->answered) {
    psplit_i_request_free(rs, first);
    return;
  }
  first->n_rows = -1;
  if (!rs->waiting.first) rs->waiting.end = &first->next;
  first->next = rs->waiting.first;
  rs->waiting.first = first;
  rs->waiting.n++;
}

/* Answers one of a batch with its rows, which begin at `row`. */
static void answer_part(psplit_i_requests *rs, psplit_i_request *r, psplit_i_tensor *const *outputs,
                        int64_t n_rows, int64_t row) {
  const uint32_t n_outputs = rs->options.pipe->manifest.n_outputs;
  psplit_diag why = {0};
  psplit_i_tensor **own = calloc((size_t)n_outputs + 1, sizeof *own);
  psplit_code code = own ? psplit_i_deadline_check(r->deadline_ns, &why) : psplit_i_nomem(&why);
  if (code == PSPLIT_OK)
    code = psplit_i_batching_split(&rs->batching, outputs,
                                   (psplit_i_batch_rows){row, r->n_rows, n_rows}, &why, own);
  psplit_i_request_answer(rs, r, code == PSPLIT_OK ? own : NULL, &why);
  for (uint32_t o = 0; own && o < n_outputs; o++) psplit_i_tensor_release(own[o]);
  free(own);
}

static void done(void *user, psplit_i_tensor *const *outputs, const psplit_diag *failure) {
  psplit_i_requests *rs = user;
  int64_t n_rows = 0, row = 0;
  pthread_mutex_lock(&rs->mutex);
  psplit_i_request *first = take_batch(rs);
  assert(first); /* a batch has at least one */
  const bool joined = first->mate;
  if (joined) rs->n_batches--;
  if (joined && failure->code != PSPLIT_OK) {
    run_again(rs, first);
    first = NULL;
  }
  for (psplit_i_request *r = first; r; r = r->mate) {
    n_rows += r->n_rows;
    if (!r->answered && !r->respond) psplit_i_requests_append(&rs->answered, r);
  }
  pthread_cond_broadcast(&rs->changed);
  pthread_mutex_unlock(&rs->mutex);
  while (first) {
    psplit_i_request *r = first;
    first = r->mate;
    const int64_t n = r->n_rows;
    if (r->answered)
      psplit_i_request_free(rs, r);
    else if (joined && failure->code == PSPLIT_OK)
      answer_part(rs, r, outputs, n_rows, row);
    else
      psplit_i_request_answer(rs, r, failure->code == PSPLIT_OK ? outputs : NULL, failure);
    row += n;
  }
}

void psplit_i_requests_connect(psplit_i_requests *rs, psplit_i_source *source) {
  source->user = rs;
  source->next = next;
  source->done = done;
}
