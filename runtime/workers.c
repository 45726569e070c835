#include "workers.h"

#include <stdio.h>
#include <stdlib.h>

psplit_code psplit_i_workers_init(psplit_i_workers *w, const psplit_i_ends *ends, uint32_t n_stages,
                                  psplit_diag *diag) {
  *w =
    (psplit_i_workers){.ends = ends, .each = calloc((size_t)n_stages + 2, sizeof(psplit_i_worker))};
  if (!w->each) return psplit_i_nomem(diag);
  pthread_mutex_init(&w->mutex, NULL);
  psplit_i_timed_cond_init(&w->changed);
  return PSPLIT_OK;
}

void psplit_i_workers_fini(psplit_i_workers *w) {
  if (!w->each) return;
  pthread_cond_destroy(&w->changed);
  pthread_mutex_destroy(&w->mutex);
  free(w->each);
  w->each = NULL;
}

static void *work(void *argument) {
  psplit_i_worker *one = argument;
  psplit_i_workers *w = one->all;
  if (one->stage)
    psplit_i_stage_main(one->stage);
  else
    one->body(w->ends);
  pthread_mutex_lock(&w->mutex);
  one->ended = true;
  w->n_ended++;
  pthread_cond_broadcast(&w->changed);
  pthread_mutex_unlock(&w->mutex);
  return NULL;
}

static psplit_code start(psplit_i_workers *w, const psplit_i_worker *what, psplit_diag *diag) {
  psplit_i_worker *one = &w->each[w->n];
  *one = *what;
  one->all = w;
  if (pthread_create(&one->thread, NULL, work, one))
    return psplit_i_fail(diag, PSPLIT_NOMEM, "cannot start a thread");
  w->n++;
  return PSPLIT_OK;
}

psplit_code psplit_i_workers_start(psplit_i_workers *w, psplit_i_stage *stage, psplit_diag *diag) {
  return start(w, &(psplit_i_worker){.stage = stage}, diag);
}

psplit_code psplit_i_workers_start_ends(psplit_i_workers *w, const psplit_i_stage *any,
                                        psplit_diag *diag) {
  static const psplit_i_worker FEEDER = {.body = psplit_i_feeder_main, .name = "reading inputs"},
                               COLLECTOR = {.body = psplit_i_collector_main,
                                            .name = "giving outputs"};
  psplit_code code = PSPLIT_OK;
  if (any->streams) PSPLIT_TRY(start(w, &FEEDER, diag));
  if (any->collected) PSPLIT_TRY(start(w, &COLLECTOR, diag));
out:
  return code;
}

bool psplit_i_workers_wait(psplit_i_workers *w, int64_t most_ns) {
  const int64_t until_ns = psplit_i_now_ns() + most_ns;
  bool in_time = true;
  pthread_mutex_lock(&w->mutex);
  while (w->n_ended < w->n && in_time)
    in_time = psplit_i_timed_cond_wait(&w->changed, &w->mutex, until_ns);
  const bool all = w->n_ended == w->n;
  pthread_mutex_unlock(&w->mutex);
  return all;
}

/* Who is still at work, as the end of a message. */
static void name_left(psplit_i_workers *w, psplit_i_text *out) {
  const char *before = "";
  pthread_mutex_lock(&w->mutex);
  for (uint32_t i = 0; i < w->n; i++) {
    const psplit_i_worker *one = &w->each[i];
    if (one->ended) continue;
    psplit_i_text_puts(out, before);
    before = ", ";
    if (one->stage)
      psplit_i_text_addf(out, "stage %u (%s)", one->stage->index,
                         w->ends->pipe->manifest.stages[one->stage->index].file);
    else
      psplit_i_text_puts(out, one->name);
  }
  pthread_mutex_unlock(&w->mutex);
}

void psplit_i_workers_join(psplit_i_workers *w, int64_t since_ns, const psplit_diag *diag) {
  const psplit_i_run_options *options = w->ends->options;
  const int64_t stop_ns = psplit_i_stop_ns(options);
  const int64_t left_ns = since_ns + stop_ns - psplit_i_now_ns();
  if (options->give_up && !psplit_i_workers_wait(w, left_ns)) {
    psplit_diag told = *diag;
    psplit_i_text left = {0};
    psplit_i_text_addf(&left, "not ended within %g s: ", 1e-9 * (double)stop_ns);
    name_left(w, &left);
    snprintf(told.message, sizeof told.message, "%.1000s; %.480s", diag->message,
             left.failed ? "not ended in time" : left.bytes);
    options->give_up(options->give_up_user, &told);
  }
  for (uint32_t i = 0; i < w->n; i++) pthread_join(w->each[i].thread, NULL);
}
