#include "evaluation.h"

#include "all_reduce.h"
#include "exchange.h"
#include "pieces.h"

enum { SUM, GIVEN_UP, N_EVAL };

/* A psplit_i_decide. */
static psplit_code decide_eval(void *user, const double *reports, size_t n, double *answer,
                               psplit_diag *diag) {
  psplit_i_work *w = user;
  (void)diag;
  answer[SUM] = answer[GIVEN_UP] = 0;
  for (uint32_t d = 0; d < w->setup->wiring.n_devices; d++) {
    answer[SUM] += reports[n * d + SUM];
    answer[GIVEN_UP] += reports[n * d + GIVEN_UP];
  }
  answer[SUM] /= (double)w->feeding.order[PSPLIT_I_SET_EVAL].n_rows;
  return PSPLIT_OK;
}

static psplit_code evaluate_one(psplit_i_work *w, psplit_i_learner *l, uint64_t m,
                                psplit_diag *diag, double *io_sum) {
  psplit_i_event ignored = {0};
  double loss = 0;
  psplit_code code;
  PSPLIT_TRY(psplit_i_take_all(w, l, PSPLIT_I_WIRE_FORWARD, &ignored));
  w->given_up |= psplit_i_watch_gives_up(&w->device->watch);
  if (!w->given_up) {
    PSPLIT_TRY(psplit_i_learner_feed(l, PSPLIT_I_SET_EVAL, m, 0, diag));
    code = psplit_i_learner_forward(l, PSPLIT_I_SET_EVAL, 0, diag, &loss);
    PSPLIT_TRY(psplit_i_heed(w, code, diag));
  }
  *io_sum += loss * (double)psplit_i_feeding_eval_rows(&w->feeding, m);
  PSPLIT_TRY(psplit_i_give_all(w, l, PSPLIT_I_WIRE_FORWARD, diag));
  psplit_i_learner_drop_results(l);
out:
  return code;
}

/* The mean loss over the samples of the evaluation data, each once. */
psplit_code psplit_i_evaluate(psplit_i_work *w, psplit_diag *diag, double *out) {
  double report[N_EVAL] = {0}, answer[N_EVAL];
  psplit_code code;
  psplit_i_watch_pieces(&w->device->watch, true);
  /* One replica is enough for it. */
  const uint64_t n = w->replica ? 0 : psplit_i_feeding_n_eval(&w->feeding);
  for (uint64_t m = 0; m < n; m++)
    for (uint32_t c = 0; c < w->setup->wiring.n_chunks; c++)
      PSPLIT_TRY(evaluate_one(w, &w->learners[c], m, diag, &report[SUM]));
  w->given_up |= psplit_i_watch_pieces(&w->device->watch, false);
  report[GIVEN_UP] = w->given_up;
  PSPLIT_TRY(psplit_i_all_reduce(w->device, report, N_EVAL,
                                 (psplit_i_reduction){decide_eval, w, N_EVAL}, diag, answer));
  w->given_up = answer[GIVEN_UP] != 0;
  if (!w->given_up) *out = answer[SUM];
out:
  return code;
}
