/* Central differences with steps that halve. Where f is smooth, what is between them and the
 * derivative falls to a quarter with each, and extrapolation tells the rest (Ridders, "Accurate
 * computation of F'(x) and F'(x) F''(x)", Advances in Engineering Software 4, 1982). Where f has
 * kinks, as Relu and pools make them, it falls in an irregular way, and only steps can be believed
 * that are so small that few kinks are left. Rounding grows as steps shrink; it is measured, not
 * presumed (More and Wild, "Estimating computational noise", SIAM J. Sci. Comput. 33, 2011). */
#include "differences.h"

#include <math.h>

enum { N_STEPS = 12, N_NOISE = 4 };

typedef struct search {
  psplit_i_move move;
  void *user;
  const psplit_i_question *question;
  psplit_i_differences *out;
  int n;                                 /* steps so far */
  double gaps[N_STEPS], noises[N_STEPS]; /* of each: what it says, and what rounding does to it */
  double agreed;                         /* two steps in a row say that the gap is at most this */
  double smooth, uncertainty;            /* the gap by extrapolation; INFINITY: it is not smooth */
  int smooth_at;                         /* the last step that went into it */
} search;

static psplit_code take(search *s, double h, psplit_diag *diag, double *out_value,
                        double *out_change) {
  s->out->n_values++;
  return s->move(s->user, h, diag, out_value, out_change);
}

/* How far f is from a straight line over moves that hardly change it: its rounding. At least what
 * storing f itself does to it. */
static psplit_code measure_noise(search *s, psplit_diag *diag, double *out) {
  psplit_code code = PSPLIT_OK;
  const psplit_i_question *q = s->question;
  const double h = 64 * q->epsilon * q->largest_h;
  enum { N = 2 * N_NOISE + 1 };
  double values[N], sum = 0, moment = 0, squares = 0, weights = 0;
  for (int i = -N_NOISE; i <= N_NOISE; i++) {
    double change = 0, *value = &values[i + N_NOISE];
    *value = q->value;
    if (i) PSPLIT_TRY(take(s, i * h, diag, value, &change));
    *value -= q->value;
    sum += *value;
    moment += i * *value;
    weights += i * i;
  }
  for (int i = -N_NOISE; i <= N_NOISE; i++) {
    const double rest = values[i + N_NOISE] - sum / N - i * moment / weights;
    squares += rest * rest;
  }
  *out = fmax(sqrt(squares / (N - 2)), q->least_noise);
out:
  return code;
}

/* By how much step j says other than the one before. */
static double change_at(const search *s, int j) { return s->gaps[j] - s->gaps[j - 1]; }

/* Changes that rounding does not explain fall to a quarter, give or take. */
static bool falls(const search *s, int j) {
  const double ratio = change_at(s, j - 1) / change_at(s, j);
  return fabs(change_at(s, j)) > 3 * s->noises[j] && ratio > 3 && ratio < 5.5;
}

/* Two steps in a row, as one alone may happen to meet the derivative where curvature and an error
 * cancel. */
static void look_at_pair(search *s, int j) {
  const double agreed = fmax(fabs(s->gaps[j]), fabs(s->gaps[j - 1])) + 4 * s->noises[j];
  if (!(agreed < s->agreed)) return; /* nor where something is NaN */
  s->agreed = agreed;
  if (!isfinite(s->uncertainty)) s->out->gap = s->gaps[j];
}

static void extrapolate(search *s, int j) {
  const double change = change_at(s, j), uncertainty = 0.3 * fabs(change) + 6 * s->noises[j];
  if (!(uncertainty < s->uncertainty)) return;
  s->uncertainty = uncertainty;
  s->smooth_at = j;
  s->out->gap = s->smooth = s->gaps[j] + change / 3;
}

/* Smaller steps say the same as the extrapolation. */
static bool stays(const search *s) {
  bool same = isfinite(s->uncertainty);
  for (int j = s->smooth_at + 1; same && j < s->n; j++)
    same = fabs(s->gaps[j] - s->smooth) <= s->uncertainty + 4 * s->noises[j];
  return same;
}

/* A tenth of what the derivative is, in question or by step j. */
static double tenth_at(const search *s, int j) {
  return fmax(s->question->scale, fabs(s->gaps[j])) / 10;
}

/* At the smallest steps that rounding leaves, all say about the same, and not what it should be. */
static bool is_far(const search *s) {
  int j = s->n - 1;
  while (j >= 2 && !(8 * s->noises[j] <= tenth_at(s, j))) j--;
  if (j < 2) return false;
  const double gap = fabs(s->gaps[j]), tenth = tenth_at(s, j);
  return gap > tenth && fabs(s->gaps[j - 1]) > tenth && fabs(change_at(s, j)) <= 0.3 * gap &&
         fabs(change_at(s, j - 1)) <= 0.5 * gap;
}

static double bound_of(const search *s) {
  return stays(s) ? fmin(s->agreed, fabs(s->smooth) + s->uncertainty) : s->agreed;
}

static psplit_i_answer answer(const search *s) {
  const psplit_i_question *q = s->question;
  if (!isfinite(q->scale)) return PSPLIT_I_ANSWER_DIFFERS;
  if (stays(s) && fabs(s->smooth) - s->uncertainty > q->enough) return PSPLIT_I_ANSWER_DIFFERS;
  if (bound_of(s) <= q->scale / 10) return PSPLIT_I_ANSWER_HOLDS;
  if (is_far(s)) return PSPLIT_I_ANSWER_DIFFERS;
  /* Said to be 0: a move as long as x changes f by less than a thousandth, as far as it is told. */
  return q->scale == 0 && bound_of(s) * 8 * q->largest_h <= 1e-3 * fabs(q->value)
           ? PSPLIT_I_ANSWER_HOLDS
           : PSPLIT_I_ANSWER_NONE;
}

psplit_code psplit_i_differences_find(psplit_i_move move, void *user,
                                      const psplit_i_question *question, psplit_diag *diag,
                                      psplit_i_differences *out) {
  psplit_code code;
  search s = {.move = move,
              .user = user,
              .question = question,
              .out = out,
              .agreed = INFINITY,
              .uncertainty = INFINITY};
  double noise, h = question->largest_h;
  *out = (psplit_i_differences){0};
  PSPLIT_TRY(measure_noise(&s, diag, &noise));
  for (int j = 0; j < N_STEPS && !(bound_of(&s) <= question->enough); j++) {
    double ahead, behind, change_ahead, change_behind;
    PSPLIT_TRY(take(&s, h, diag, &ahead, &change_ahead));
    PSPLIT_TRY(take(&s, -h, diag, &behind, &change_behind));
    s.gaps[j] = (ahead - behind - (change_ahead - change_behind)) / (2 * h);
    s.noises[j] = noise / (sqrt(2) * h);
    s.n = j + 1;
    if (j >= 1) look_at_pair(&s, j);
    if (j >= 4 && falls(&s, j) && falls(&s, j - 1) && falls(&s, j - 2)) extrapolate(&s, j);
    h /= 2;
  }
  out->bound = bound_of(&s);
  out->answer = answer(&s);
out:
  return code;
}
