/* Spans in a row, from the last to the first. A stage holds all that lies between any two of its
 * clusters; so of a split only this matters at a separator: how many stages have ended behind its
 * own, and what its own takes for what is behind. The less of both, the better for all in front
 * (dominance), and the least of the latter for each number of the former is what a span is asked
 * for (span.h). Where no way leads to the front within the stages that there are, the limit is out
 * of reach: tensors that jump over a separator are left out (relaxation). Where one does by splits
 * of spans that were found, they make up one of the whole.
 *
 * Nothing is asked that does not matter: at first as little is known of spans as follows from their
 * work, and then one on the way by which the front may be reached is asked, until there is no such
 * way, or each span on it has its split. */
#include "span_row.h"

#include "problem.h"
#include "span.h"

enum {
  FEWEST_SPANS = 3,
  MOST_STAGES = 12, /* of a span: more are not decided */
  MOST_CLUSTERS = 512,
  WIDE_GAP = 50,  /* spans are asked where more than one of so many parts of the value is open, */
  FINE_GAP = 400, /* and go on until it is one of so many */
  /* The next limit is larger by one of so many parts of what is open: */
  LARGE_PART = 6,  /* behind a limit that was cheap */
  SMALL_PART = 12, /* behind a dear one */
  NEAR_PART = 3,   /* at most, where the value has been improved */
  CHEAP = 8,       /* a cheap limit took less than one of so many parts of what was left */
  /* One of so many parts of what is left of the budget: */
  SHARE = 3,        /* for all limits */
  FIRST_SHARE = 10, /* of SHARE, for the first one, without which there is no other */
  LAST_SHARE = 2    /* behind recombination */
};

/* A way from the back to the separator of a span. */
typedef struct label {
  uint32_t used; /* stages that have ended */
  int64_t load;  /* of the one that has not, but for the separator */
  uint32_t from; /* label of the separator behind */
  uint32_t most; /* stages that have ended in the span between; 0: one holds all of that */
  int64_t cap;   /* with one less `load` may be as little as that */
  const psplit_i_span_answer *found; /* the span's split; NULL: none, or all in one stage */
} label;

typedef struct row {
  psplit_i_spans spans;
  uint32_t n_stages;
  int64_t limit;
  bool sure; /* by splits that were found; else by what no split is below */
  PSPLIT_VEC(label) labels;
  label end; /* in front of the first span, where that was reached */
  bool failed;
} row;

/* Between which limits the next one is. */
typedef struct limits {
  int64_t high; /* value, or a limit that was not ruled out */
  int64_t part;
  uint64_t most; /* of the budget */
  bool decided;  /* the last one */
  bool dear;     /* it took much of what is left */
} limits;

/* Keeps what is no worse than others of the separator, which begin at `first`. */
static bool add(row *r, uint32_t first, label fresh) {
  size_t kept = first;
  for (size_t k = first; k < r->labels.n; k++)
    if (r->labels.items[k].used <= fresh.used && r->labels.items[k].load <= fresh.load) return true;
  for (size_t k = first; k < r->labels.n; k++) {
    const label old = r->labels.items[k];
    if (old.used < fresh.used || old.load < fresh.load) r->labels.items[kept++] = old;
  }
  r->labels.n = kept;
  return psplit_i_vec_push(&r->labels, fresh);
}

/* All that one label leads to over span k; `front`: the work in front of that. */
static bool cross(row *r, uint32_t k, uint32_t from, uint32_t first, int64_t front) {
  const psplit_i_span *span = &r->spans.span[k];
  const label behind = r->labels.items[from];
  int64_t cap = r->limit + 1;
  if (behind.load + span->work <= r->limit) {
    const label same = {.used = behind.used, .load = behind.load + span->work, .from = from};
    if (!add(r, first, same)) return false;
    cap = same.load;
  }
  for (uint32_t most = 1; behind.used + most < r->n_stages && cap > span->least; most++) {
    const psplit_i_span_question question = {r->limit, behind.load, most};
    const int64_t room = (int64_t)(r->n_stages - behind.used - most) * r->limit - front;
    const psplit_i_span_answer *found =
      r->sure ? psplit_i_span_found(&r->spans, k, question) : NULL;
    const int64_t least = psplit_i_span_least(&r->spans, k, question);
    const int64_t load = !r->sure ? least : found ? found->found : PSPLIT_I_INF;
    if (room < 0) break; /* nor have those in front time for the rest where more end here */
    if (load < cap && load <= room &&
        !add(r, first, (label){behind.used + most, load, from, most, cap, found}))
      return false;
    if (least < cap) cap = least;
  }
  return true;
}

/* Whether the first span ends within the stages that a label leaves. Of few stages the exact
 * program decides sooner. */
static bool ends(row *r, uint32_t from) {
  const label behind = r->labels.items[from];
  for (uint32_t most = 1; behind.used + most <= r->n_stages; most++) {
    const psplit_i_span_question question = {r->limit, behind.load, most};
    const psplit_i_span_answer *found =
      r->sure ? psplit_i_span_found(&r->spans, 0, question) : NULL;
    if (r->sure ? !found : psplit_i_span_least(&r->spans, 0, question) > 0) continue;
    r->end = (label){behind.used + most, 0, from, most, 1, found};
    return true;
  }
  return false;
}

/* Whether a way leads to the front; false where r->failed: out of memory. */
static bool pass(row *r, bool sure) {
  const uint32_t n = r->spans.n;
  int64_t front = 0;
  uint32_t begin = 0;
  r->sure = sure;
  for (uint32_t k = 0; k < n; k++) front += r->spans.span[k].work;
  r->labels.n = 0;
  r->failed = !psplit_i_vec_push(&r->labels, (label){.from = PSPLIT_NONE});
  for (uint32_t k = n - 1; k > 0 && !r->failed; k--) {
    const uint32_t first = (uint32_t)r->labels.n;
    front -= r->spans.span[k].work;
    for (uint32_t from = begin; from < first && !r->failed; from++)
      r->failed = !cross(r, k, from, first, front);
    begin = first;
  }
  for (uint32_t from = begin; from < r->labels.n && !r->failed; from++)
    if (ends(r, from)) return true;
  return false;
}

/* Asks about a span of the way by which the front may be reached: of those of which more is to be
 * known the one that costs least. *out_more: there was one. */
static psplit_code ask_of_way(row *r, bool *out_more) {
  uint64_t least = UINT64_MAX;
  psplit_i_span_question asked = {0};
  int64_t cap = 0;
  uint32_t at = 0;
  label to = r->end;
  for (uint32_t k = 0; k < r->spans.n; k++) {
    const label from = r->labels.items[to.from];
    const psplit_i_span_question question = {r->limit, from.load, to.most};
    const psplit_i_span_answer *found = psplit_i_span_found(&r->spans, k, question);
    const uint64_t cost = psplit_i_span_cost(&r->spans, k, question, to.cap);
    if (to.most > 0 && (!found || found->found > to.load) && cost < least) {
      least = cost;
      asked = question;
      cap = to.cap;
      at = k;
    }
    to = from;
  }
  *out_more = least < UINT64_MAX;
  return *out_more ? psplit_i_span_ask(&r->spans, at, asked, cap) : PSPLIT_OK;
}

/* The split of the way that was found. */
static void trace(const row *r, psplit_i_assignment *out) {
  label to = r->end;
  for (uint32_t s = 0; s < r->n_stages; s++) {
    out->device[s] = 0;
    out->replicas[s] = 1;
  }
  for (uint32_t k = 0; k < r->spans.n; k++) {
    const psplit_i_span *span = &r->spans.span[k];
    const label from = r->labels.items[to.from];
    for (uint32_t i = span->first + span->has_front; i < span->end; i++)
      out->stage[i] =
        r->n_stages - 1 - from.used - (to.found ? to.found->stage[i - span->first] : 0);
    to = from;
  }
}

static void take(psplit_i_solver_state *a, const row *r) {
  trace(r, &a->trial);
  psplit_i_assignment_evaluate(&a->trial, &a->instance, &a->automaton, a->scratch);
  if (a->trial.value < a->best.value) psplit_i_state_take(a, &a->trial, PSPLIT_I_SOLVER_SPANS);
}

/* One limit: ways that may lead to the front, until there is none, or one that does. *out_no: no
 * split is within it; *out_yes: one was found. */
static psplit_code ask(psplit_i_solver_state *a, row *r, int64_t limit, bool *out_no,
                       bool *out_yes) {
  bool more = true;
  psplit_code code = PSPLIT_OK;
  r->limit = limit;
  *out_no = *out_yes = false;
  while (more && !psplit_i_expired(r->spans.budget)) {
    *out_yes = pass(r, true);
    if (*out_yes || r->failed) break;
    *out_no = !pass(r, false) && !r->failed;
    if (*out_no || r->failed) break;
    PSPLIT_TRY(ask_of_way(r, &more));
  }
  if (r->failed) PSPLIT_FAIL(PSPLIT_NOMEM);
  if (*out_no) psplit_i_result_raise(a->result, limit + 1, PSPLIT_I_SOLVER_SPANS);
  if (*out_yes) take(a, r);
out:
  return code;
}

/* One limit more, and how much of what is open the next one is above the bound. */
static psplit_code ask_next(psplit_i_solver_state *a, row *r, int64_t limit, limits *l) {
  const uint64_t spent = r->spans.budget->spent;
  bool no, yes;
  const psplit_code code = ask(a, r, limit, &no, &yes);
  if (code != PSPLIT_OK) return code;
  r->spans.budget->most = l->most;
  l->decided = no || yes;
  l->dear = r->spans.budget->spent - spent >= psplit_i_budget_left(r->spans.budget) / CHEAP;
  l->part = no ? (l->dear ? SMALL_PART : LARGE_PART) : 2;
  if (!no) l->high = yes && a->best.value < limit ? a->best.value : limit;
  return PSPLIT_OK;
}

static bool is_more_asked(const psplit_i_solver_state *a, const row *r, const limits *l) {
  return !psplit_i_state_done(a) && !psplit_i_expired(r->spans.budget) &&
         l->high - a->result->bound > l->high / FINE_GAP;
}

/* Limits between bound and value: from the bound on, where little is possible and the exact program
 * decides soon, until that takes long. *out_more: they tell enough for others to be asked. */
static psplit_code begin(psplit_i_solver_state *a, row *r, bool *out_more) {
  psplit_code code = PSPLIT_OK;
  const int64_t bound = a->result->bound, value = a->best.value;
  limits l = {.high = value, .part = LARGE_PART, .most = r->spans.budget->most, .decided = true};
  r->spans.budget->most /= FIRST_SHARE;
  while (l.decided && !l.dear && is_more_asked(a, r, &l))
    PSPLIT_TRY(ask_next(a, r, a->result->bound + (l.high - a->result->bound) / l.part, &l));
out:
  *out_more = a->result->bound > bound || a->best.value < value;
  return code;
}

/* At first the limit by which no more is open than is worth so much time, if that is near; above a
 * limit that is not decided none is asked. */
static psplit_code go_on(psplit_i_solver_state *a, row *r) {
  psplit_code code = PSPLIT_OK;
  limits l = {.high = a->best.value, .most = r->spans.budget->most};
  const int64_t bound = a->result->bound, near = bound + (l.high - bound) / NEAR_PART;
  int64_t limit = l.high - l.high / WIDE_GAP;
  if (limit > near) limit = near;
  while (limit >= a->result->bound && is_more_asked(a, r, &l)) {
    PSPLIT_TRY(ask_next(a, r, limit, &l));
    limit = a->result->bound + (l.high - a->result->bound) / l.part;
  }
out:
  return code;
}

static bool is_open(const psplit_i_solver_state *a) {
  return !psplit_i_state_done(a) && a->best.value - a->result->bound > a->best.value / WIDE_GAP;
}

static bool is_asked(const psplit_i_solver_state *a) {
  return !a->spans_asked && !a->request->relaxed && a->best.value < PSPLIT_I_INF &&
         a->instance.n_types == 1 && a->instance.all_forward && !a->automaton.all_used &&
         is_open(a) && psplit_i_takes(PSPLIT_I_SOLVER_SPANS, a->automaton.features);
}

/* Whether a tensor goes on behind the next span: much of what it costs would be left out. */
static bool is_passed_by(const psplit_i_spans *s) {
  const psplit_i_instance *in = s->instance;
  for (uint32_t k = 0; k + 2 < s->n; k++)
    for (uint32_t i = s->span[k].first; i + 1 < s->span[k].end; i++)
      for (uint32_t l = in->inc_off[i]; l < in->inc_off[i + 1]; l++)
        if (in->inc[l] & 1 &&
            in->net_pin[in->net_off[(in->inc[l] >> 1) + 1] - 1] >= s->span[k + 1].end)
          return true;
  return false;
}

static bool may_be_decided(const psplit_i_spans *s, int64_t limit) {
  bool may = s->n >= FEWEST_SPANS && !is_passed_by(s);
  for (uint32_t k = 0; k < s->n && may; k++)
    may = s->span[k].work <= MOST_STAGES * limit && s->span[k].problem.n_nodes <= MOST_CLUSTERS;
  return may;
}

/* Recombination in between: how near the bound must come depends on its split; both need time. */
static psplit_code ask_limits(psplit_i_solver_state *a, row *r, psplit_i_turn *turn) {
  psplit_i_budget *part = r->spans.budget;
  bool more;
  psplit_code code;
  PSPLIT_TRY(begin(a, r, &more));
  if (!more || !is_open(a)) goto out;
  psplit_i_spend(a->request->budget, part->spent);
  part->spent = 0;
  PSPLIT_TRY(psplit_i_state_recombine(a, turn));
  *part = psplit_i_budget_share(a->request->budget, 1);
  psplit_i_budget_hold_back(part, LAST_SHARE);
  if (is_open(a)) PSPLIT_TRY(go_on(a, r));
out:
  return code;
}

psplit_code psplit_i_spans_turn(psplit_i_solver_state *a, psplit_i_turn *turn) {
  if (!is_asked(a)) return PSPLIT_OK;
  a->spans_asked = true;
  row r = {.n_stages = a->automaton.n_stages};
  psplit_i_budget part = psplit_i_budget_share(a->request->budget, SHARE);
  psplit_code code =
    psplit_i_spans_make(&a->instance, a->request->options, a->best.value, &part, &r.spans);
  if (code == PSPLIT_OK && may_be_decided(&r.spans, a->best.value)) code = ask_limits(a, &r, turn);
  psplit_i_spend(a->request->budget, part.spent);
  psplit_i_vec_fini(&r.labels);
  psplit_i_spans_fini(&r.spans);
  return code == PSPLIT_OK ? code : psplit_i_nomem(a->request->diag);
}
