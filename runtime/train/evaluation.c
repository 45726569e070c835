#include "evaluation.h"

#include "exchange.h"
#include "talk.h"

/* A psplit_i_decide. */
static psplit_code decide_eval(void *user, const double *reports, size_t n, double *answer,
                               psplit_diag *diag) {
  psplit_i_work *w = user;
  (void)diag;
  answer[0] = 0;
  for (uint32_t d = 0; d < w->setup->wiring.n_devices; d++) answer[0] += reports[n * d];
  answer[0] /= (double)w->feeding.order[PSPLIT_I_SET_EVAL].n_rows;
  return PSPLIT_OK;
}

static psplit_code evaluate_one(psplit_i_work *w, psplit_i_learner *l, uint64_t m,
                                psplit_diag *diag, double *io_sum) {
  psplit_i_event ignored = {0};
  double loss;
  psplit_code code;
  PSPLIT_TRY(psplit_i_take_all(w, l, PSPLIT_I_WIRE_FORWARD, &ignored));
  PSPLIT_TRY(psplit_i_learner_feed(l, PSPLIT_I_SET_EVAL, m, 0, diag));
  PSPLIT_TRY(psplit_i_learner_forward(l, PSPLIT_I_SET_EVAL, 0, diag, &loss));
  *io_sum += loss * (double)psplit_i_feeding_eval_rows(&w->feeding, m);
  PSPLIT_TRY(psplit_i_give_all(w, l, PSPLIT_I_WIRE_FORWARD, diag));
  psplit_i_learner_drop_results(l);
out:
  return code;
}

/* The mean loss over the samples of the evaluation data, each once. */
psplit_code psplit_i_evaluate(psplit_i_work *w, psplit_diag *diag, double *out) {
  double sum = 0;
  /* One replica is enough for it. */
  const uint64_t n = w->replica ? 0 : psplit_i_feeding_n_eval(&w->feeding);
  for (uint64_t m = 0; m < n; m++)
    for (uint32_t c = 0; c < w->setup->wiring.n_chunks; c++) {
      const psplit_code code = evaluate_one(w, &w->learners[c], m, diag, &sum);
      if (code != PSPLIT_OK) return code;
    }
  return psplit_i_talk(w->device, &sum, 1, decide_eval, w, 1, out, diag);
}
