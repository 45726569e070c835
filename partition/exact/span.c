/* A span as a problem of its own, for the exact program: its first cluster takes what the limit
 * leaves beside t, so that its stage may take t besides, and its last one what its stage takes for
 * what is behind. The exact program decides that quickly where t is little more than the least that
 * there is, and hardly where it is much more. So t grows from below, by steps that double while few
 * operations say no, then by small ones; the first split that is found leaves the least that any
 * leaves.
 *
 * Where fewer stages end, the stage of the first cluster takes more. t is less than what is known
 * of those; so dominance never unites that stage with the one behind it, which would be a larger
 * load by one stage less, and its load can be compared. Else whatever dominates leaves no stage a
 * larger load. */
#include "span.h"

#include <string.h>

#include "problem.h"
#include "separators.h"

enum {
  STAGES_A_SPAN = 3,
  STEPS = 24,           /* small ones, in a limit */
  MOST_STEPS = 1 << 22, /* of the exact program */
  FEW_STEPS = 1 << 13,  /* the same with a larger t, or a smaller limit */
  SOME_STEPS = 1 << 19, /* with as little as any */
  LIMITS = 8,           /* smaller than what is asked for, at most */
  OVERCHARGED = 2       /* steps on spans, which fit a cache, by the exact program */
};

/* --- spans as problems --- */

/* The nets of the instance within a span, of producers there; then what comes before what. */
static bool write_lists(psplit_i_spans *s, const psplit_i_span *span, psplit_problem *p) {
  const psplit_i_instance *in = s->instance;
  const uint32_t first = span->first, end = span->end;
  uint32_t n_pins = 0, n_order = 0;
  for (uint32_t i = first; i < end; i++) {
    n_order += in->succ_off[i + 1] - in->succ_off[i];
    for (uint32_t k = in->inc_off[i]; k < in->inc_off[i + 1]; k++) {
      const uint32_t e = in->inc[k] >> 1;
      if (!(in->inc[k] & 1)) continue;
      n_pins += in->net_off[e + 1] - in->net_off[e];
      p->n_nets++;
    }
  }
  uint32_t *producer = PSPLIT_NEW(&s->arena, uint32_t, p->n_nets);
  uint32_t *off = PSPLIT_NEW(&s->arena, uint32_t, (size_t)p->n_nets + 1);
  uint32_t *consumer = PSPLIT_NEW(&s->arena, uint32_t, n_pins);
  int64_t *send = PSPLIT_NEW(&s->arena, int64_t, p->n_nets);
  int64_t *recv = PSPLIT_NEW(&s->arena, int64_t, p->n_nets);
  uint32_t *from = PSPLIT_NEW(&s->arena, uint32_t, n_order);
  uint32_t *to = PSPLIT_NEW(&s->arena, uint32_t, n_order);
  if (s->arena.failed) return false;
  p->n_nets = n_pins = 0;
  for (uint32_t i = first; i < end; i++) {
    for (uint32_t k = in->succ_off[i]; k < in->succ_off[i + 1]; k++) {
      if (in->succ[k] >= end) continue;
      from[p->n_order] = i - first;
      to[p->n_order++] = in->succ[k] - first;
    }
    for (uint32_t k = in->inc_off[i]; k < in->inc_off[i + 1]; k++) {
      const uint32_t e = in->inc[k] >> 1, before = n_pins;
      if (!(in->inc[k] & 1)) continue;
      for (uint32_t l = in->net_off[e] + 1; l < in->net_off[e + 1]; l++)
        if (in->net_pin[l] < end) consumer[n_pins++] = in->net_pin[l] - first;
      if (n_pins == before) continue;
      send[p->n_nets] = in->send[e];
      recv[p->n_nets] = in->recv[e];
      producer[p->n_nets++] = i - first;
      off[p->n_nets] = n_pins;
    }
  }
  p->net_producer = producer;
  p->net_off = off;
  p->net_consumer = consumer;
  p->net_send_ns = send;
  p->net_recv_ns = recv;
  p->order_from = from;
  p->order_to = to;
  return true;
}

/* What the first cluster's stage takes at least: it sends its nets, or holds one that comes right
 * behind it. */
static int64_t least_of(const psplit_i_span *span) {
  const psplit_problem *p = &span->problem;
  int64_t sent = 0, least = PSPLIT_I_INF;
  for (uint32_t e = 0; e < p->n_nets && p->net_producer[e] == 0; e++) sent += p->net_send_ns[e];
  for (uint32_t k = 0; k < p->n_order && p->order_from[k] == 0; k++)
    if (span->time[p->order_to[k]] < least) least = span->time[p->order_to[k]];
  return sent < least ? sent : least;
}

static bool is_same(const psplit_i_span *a, const psplit_i_span *b) {
  const psplit_problem *p = &a->problem, *q = &b->problem;
  if (a->has_front != b->has_front || p->n_nodes != q->n_nodes || p->n_nets != q->n_nets ||
      p->n_order != q->n_order || a->is_behind != b->is_behind)
    return false;
  const uint32_t n_nets = p->n_nets, n_order = p->n_order;
  return memcmp(a->time, b->time, p->n_nodes * sizeof *a->time) == 0 &&
         memcmp(p->net_producer, q->net_producer, n_nets * sizeof *p->net_producer) == 0 &&
         memcmp(p->net_off, q->net_off, (n_nets + 1) * sizeof *p->net_off) == 0 &&
         memcmp(p->net_consumer, q->net_consumer, p->net_off[n_nets] * sizeof *p->net_consumer) ==
           0 &&
         memcmp(p->net_send_ns, q->net_send_ns, n_nets * sizeof *p->net_send_ns) == 0 &&
         memcmp(p->net_recv_ns, q->net_recv_ns, n_nets * sizeof *p->net_recv_ns) == 0 &&
         memcmp(p->order_from, q->order_from, n_order * sizeof *p->order_from) == 0 &&
         memcmp(p->order_to, q->order_to, n_order * sizeof *p->order_to) == 0;
}

static bool add_span(psplit_i_spans *s, uint32_t first, uint32_t end) {
  const psplit_i_instance *in = s->instance;
  psplit_i_span *span = &s->span[s->n];
  *span = (psplit_i_span){.first = first, .end = end, .has_front = first > 0, .alike = s->n};
  span->is_behind = end < in->n;
  span->time = PSPLIT_NEW(&s->arena, int64_t, end - first);
  span->problem = (psplit_problem){.n_nodes = end - first,
                                   .n_classes = 1,
                                   .time_ns = span->time,
                                   .n_devices = 1,
                                   .comm = in->problem->comm,
                                   .ticks_per_unit = in->problem->ticks_per_unit};
  if (!span->time || !write_lists(s, span, &span->problem)) return false;
  for (uint32_t i = first + span->has_front; i < end; i++)
    span->work += span->time[i - first] = in->w[i];
  if (span->has_front) span->least = least_of(span);
  for (uint32_t k = 0; k < s->n; k++)
    if (is_same(&s->span[k], span)) {
      span->alike = k;
      break;
    }
  s->n++;
  return true;
}

/* Of separators one behind the other, from that of block k on, the one that sends least: it is the
 * cheapest place to be cut at. */
static uint32_t cheapest(const psplit_i_instance *in, const uint32_t *ends, uint32_t n_blocks,
                         uint32_t k) {
  uint32_t best = k;
  int64_t least = PSPLIT_I_INF;
  for (uint32_t l = k; l + 1 < n_blocks && ends[l] - ends[k] == l - k; l++) {
    const uint32_t i = ends[l] - 1;
    int64_t sent = 0;
    for (uint32_t p = in->inc_off[i]; p < in->inc_off[i + 1]; p++)
      if (in->inc[p] & 1) sent += in->send[in->inc[p] >> 1];
    if (sent < least) best = l, least = sent;
  }
  return best;
}

/* Spans of enough work, if that leaves enough behind them. */
static bool divide(psplit_i_spans *s, const uint32_t *ends, uint32_t n_blocks, int64_t enough) {
  const psplit_i_instance *in = s->instance;
  int64_t left = 0, inside = 0;
  uint32_t first = 0, i = 0;
  for (uint32_t k = 0; k < in->n; k++) left += in->w[k];
  for (uint32_t k = 0; k < n_blocks; k++) {
    for (; i < ends[k]; i++) inside += in->w[i];
    if (k + 1 < n_blocks && inside >= enough && left - inside >= enough) {
      k = cheapest(in, ends, n_blocks, k);
      for (; i < ends[k]; i++) inside += in->w[i];
    } else if (k + 1 < n_blocks) {
      continue;
    }
    if (!add_span(s, first, ends[k])) return false;
    first = ends[k] - 1;
    left -= inside;
    inside = 0;
  }
  return true;
}

psplit_code psplit_i_spans_make(const psplit_i_instance *instance,
                                const psplit_partition_options *options, int64_t limit,
                                psplit_i_budget *budget, psplit_i_spans *out) {
  const uint32_t n = instance->n;
  *out = (psplit_i_spans){.instance = instance, .options = options, .budget = budget};
  psplit_i_arena_init(&out->arena, 0);
  uint32_t *scratch = PSPLIT_NEW(&out->arena, uint32_t, n);
  uint32_t *ends = PSPLIT_NEW(&out->arena, uint32_t, n);
  if (!scratch || !ends) return PSPLIT_NOMEM;
  const uint32_t n_blocks = psplit_i_separators(instance, scratch, ends);
  out->span = PSPLIT_NEW(&out->arena, psplit_i_span, n_blocks);
  out->answers = PSPLIT_NEW(&out->arena, psplit_i_span_answers, n_blocks);
  if (!out->span || !out->answers) return PSPLIT_NOMEM;
  psplit_i_spend(budget, (uint64_t)n + instance->net_off[instance->n_nets]);
  return divide(out, ends, n_blocks, STAGES_A_SPAN * limit) ? PSPLIT_OK : PSPLIT_NOMEM;
}

void psplit_i_spans_fini(psplit_i_spans *spans) {
  for (uint32_t k = 0; k < spans->n; k++) psplit_i_vec_fini(&spans->answers[k]);
  psplit_i_arena_fini(&spans->arena);
}

/* --- one run of the exact program --- */

typedef struct run {
  psplit_i_instance instance;
  psplit_i_automaton automaton;
  psplit_i_assignment assignment;
  psplit_i_arena arena;
  psplit_i_verdict verdict;
  uint64_t n_steps;
} run;

static void run_fini(run *r) {
  psplit_i_automaton_fini(&r->automaton);
  psplit_i_instance_fini(&r->instance);
  psplit_i_arena_fini(&r->arena);
}

/* Of the stage of node 0, without that node: what it computes and sends. */
static int64_t load_of_first(const run *r) {
  const psplit_i_instance *in = &r->instance;
  const uint32_t *stage = r->assignment.stage, first = stage[in->cluster_of_node[0]];
  int64_t load = -in->w[in->cluster_of_node[0]];
  for (uint32_t i = 0; i < in->n; i++)
    if (stage[i] == first) load += in->w[i];
  for (uint32_t e = 0; e < in->n_nets; e++) {
    const uint32_t from = in->net_off[e], to = in->net_off[e + 1];
    uint32_t n = 0;
    if (stage[in->net_pin[from]] != first) continue;
    for (uint32_t k = from + 1; k < to; k++) {
      bool is_new = stage[in->net_pin[k]] != first;
      for (uint32_t l = from + 1; l < k && is_new; l++)
        is_new = stage[in->net_pin[l]] != stage[in->net_pin[k]];
      n += is_new;
    }
    load += in->send[e] * (in->p2p || n == 0 ? n : 1);
  }
  return load;
}

static psplit_code ask_exact(const psplit_i_spans *s, int64_t limit, uint64_t max_steps, run *r) {
  psplit_i_budget budget = psplit_i_budget_share(s->budget, 1);
  if (budget.most < UINT64_MAX / OVERCHARGED) budget.most *= OVERCHARGED;
  const psplit_i_exact_options options = {.limit = limit,
                                          .least_front = true,
                                          .follow_always = true,
                                          .max_steps = max_steps,
                                          .memory_bytes = UINT64_C(1) << 29,
                                          .n_threads = s->options->n_threads,
                                          .budget = &budget,
                                          .out_steps = &r->n_steps};
  const psplit_code code = psplit_i_exact(&r->instance, &r->automaton, &(psplit_i_weight_axis){0},
                                          &options, &r->assignment, &r->verdict);
  psplit_i_spend(s->budget, budget.spent / OVERCHARGED);
  if (r->verdict == PSPLIT_I_YES && r->assignment.value > limit) r->verdict = PSPLIT_I_UNKNOWN;
  return code;
}

/* May the stage of the first cluster take t besides? *r is to be freed in any case. */
static psplit_code decide(const psplit_i_spans *s, const psplit_i_span *span,
                          psplit_i_span_question question, int64_t t, uint64_t max_steps, run *r) {
  const psplit_device device = {.count = question.most + span->has_front, .name = "device"};
  psplit_partition_options options = *s->options;
  psplit_problem problem = span->problem;
  psplit_diag ignored = {0};
  psplit_code code;
  *r = (run){.verdict = PSPLIT_I_UNKNOWN};
  psplit_i_arena_init(&r->arena, 0);
  const uint32_t last = problem.n_nodes - 1;
  const int64_t last_time = span->time[last];
  problem.devices = &device;
  if (span->has_front) span->time[0] = question.limit - t;
  span->time[last] += question.load;
  options.require_nonempty = false;
  psplit_i_spend_pass(s->budget, &problem);
  PSPLIT_TRY(psplit_i_instance_init(&r->instance, &problem, NULL, &ignored));
  PSPLIT_TRY(psplit_i_automaton_init(&r->automaton, &r->instance, &options, &ignored));
  PSPLIT_TRY(psplit_i_assignment_init(&r->assignment, &r->instance, &r->arena));
  if (!psplit_i_expired(s->budget)) code = ask_exact(s, question.limit, max_steps, r);
out:
  if (span->has_front) span->time[0] = 0;
  span->time[last] = last_time;
  return code;
}

/* A split that was found; `least`: there is none that leaves less. */
static psplit_code take(psplit_i_spans *s, const psplit_i_span *span, const run *r, bool least,
                        psplit_i_span_answer *answer) {
  const uint32_t n = span->problem.n_nodes;
  const uint32_t *stage = r->assignment.stage, *at = r->instance.cluster_of_node;
  answer->stage = PSPLIT_NEW(&s->arena, uint32_t, n);
  if (!answer->stage) return PSPLIT_NOMEM;
  answer->found = span->has_front ? load_of_first(r) : 0;
  if (least) answer->least = answer->found;
  answer->n_ended = stage[at[n - 1]] - stage[at[0]];
  for (uint32_t i = 0; i < n; i++) answer->stage[i] = stage[at[n - 1]] - stage[at[i]];
  return PSPLIT_OK;
}

/* --- the least t --- */

/* A split that leaves as little as any, by a smaller limit: far more than one of them is within a
 * larger one, and the exact program looks at all. */
static psplit_code climb(psplit_i_spans *s, const psplit_i_span *span,
                         psplit_i_span_answer *answer) {
  const psplit_i_span_question asked = answer->question;
  int64_t low = (span->work + asked.load + span->least) / (asked.most + 1), high = asked.limit;
  psplit_i_verdict verdict = PSPLIT_I_NO;
  psplit_code code = PSPLIT_OK;
  answer->hard = false;
  answer->climbed = true;
  answer->cost = MOST_STEPS;
  if (low < span->least) low = span->least;
  for (int i = 0; i < LIMITS && verdict != PSPLIT_I_YES && code == PSPLIT_OK; i++) {
    psplit_i_span_question tighter = asked;
    run r;
    tighter.limit = low + (high - low) / 2;
    if (tighter.limit <= low) break;
    code = decide(s, span, tighter, span->least, SOME_STEPS, &r);
    verdict = r.verdict;
    if (code == PSPLIT_OK && verdict == PSPLIT_I_YES) code = take(s, span, &r, false, answer);
    run_fini(&r);
    *(verdict == PSPLIT_I_NO ? &low : &high) = tighter.limit;
  }
  return code;
}

/* Asks for a little more than answer->least, below `cap`, in whole steps. */
static psplit_code grow(psplit_i_spans *s, const psplit_i_span *span, int64_t cap,
                        psplit_i_span_answer *answer) {
  const int64_t step = answer->question.limit / STEPS + 1, far = answer->least + answer->width;
  const int64_t t = (far - far % step < cap ? far - far % step : cap) - 1;
  const bool least = answer->least == span->least; /* that any takes */
  const bool soon = answer->width > step || (least && !answer->climbed);
  run r;
  psplit_code code = decide(s, span, answer->question, t, soon ? FEW_STEPS : MOST_STEPS, &r);
  const psplit_i_verdict verdict = r.verdict;
  if (code == PSPLIT_OK && verdict == PSPLIT_I_YES) code = take(s, span, &r, true, answer);
  run_fini(&r);
  answer->cost = r.n_steps;
  if (verdict == PSPLIT_I_NO) {
    answer->least = t + 1;
    if (!answer->narrows) answer->width *= 2;
  } else if (verdict == PSPLIT_I_UNKNOWN && least && !answer->climbed) {
    answer->hard = true;
    answer->cost = LIMITS * SOME_STEPS;
  } else if (verdict == PSPLIT_I_UNKNOWN && soon) {
    answer->narrows = true;
    answer->width = answer->width / 2 > step ? answer->width / 2 : step;
  } else {
    answer->undecided = true;
  }
  return code;
}

/* To steps, which makes for few different questions. */
static int64_t round_down(int64_t load, psplit_i_span_question question) {
  const int64_t step = question.limit / STEPS + 1;
  return load > 0 ? load - load % step : load;
}

/* Whether a is at least as hard to meet as b. */
static bool is_harder(psplit_i_span_question a, psplit_i_span_question b) {
  return a.limit <= b.limit && a.load >= b.load && a.most <= b.most;
}

int64_t psplit_i_span_least(const psplit_i_spans *spans, uint32_t k,
                            psplit_i_span_question question) {
  const psplit_i_span *span = &spans->span[k];
  const psplit_i_span_answers *answers = &spans->answers[span->alike];
  const int64_t rest =
    round_down(question.load + span->work - question.limit * (int64_t)question.most, question);
  int64_t least = span->least > rest ? span->least : rest;
  for (size_t i = 0; i < answers->n; i++)
    if (answers->items[i]->least > least && is_harder(question, answers->items[i]->question))
      least = answers->items[i]->least;
  psplit_i_spend(spans->budget, answers->n + 1);
  return least;
}

const psplit_i_span_answer *psplit_i_span_found(const psplit_i_spans *spans, uint32_t k,
                                                psplit_i_span_question question) {
  const psplit_i_span_answers *answers = &spans->answers[spans->span[k].alike];
  const psplit_i_span_answer *found = NULL;
  int64_t least = PSPLIT_I_INF;
  for (size_t i = 0; i < answers->n; i++)
    if (answers->items[i]->found < least && is_harder(answers->items[i]->question, question)) {
      found = answers->items[i];
      least = found->found;
    }
  psplit_i_spend(spans->budget, answers->n + 1);
  return found;
}

static psplit_i_span_answer *answer_to(const psplit_i_spans *s, const psplit_i_span *span,
                                       psplit_i_span_question question) {
  psplit_i_span_answers *answers = &s->answers[span->alike];
  for (size_t i = 0; i < answers->n; i++) {
    const psplit_i_span_question old = answers->items[i]->question;
    if (is_harder(old, question) && is_harder(question, old)) return answers->items[i];
  }
  return NULL;
}

uint64_t psplit_i_span_cost(const psplit_i_spans *spans, uint32_t k,
                            psplit_i_span_question question, int64_t cap) {
  const psplit_i_span_answer *answer = answer_to(spans, &spans->span[k], question);
  if (psplit_i_span_least(spans, k, question) >= cap || (answer && answer->undecided))
    return UINT64_MAX;
  return answer ? answer->cost : 0;
}

psplit_code psplit_i_span_ask(psplit_i_spans *spans, uint32_t k, psplit_i_span_question question,
                              int64_t cap) {
  const psplit_i_span *span = &spans->span[k];
  const int64_t least = psplit_i_span_least(spans, k, question);
  psplit_i_span_answer *answer = answer_to(spans, span, question);
  if (!answer) {
    answer = PSPLIT_NEW(&spans->arena, psplit_i_span_answer, 1);
    if (!answer || !psplit_i_vec_push(&spans->answers[span->alike], answer)) return PSPLIT_NOMEM;
    *answer = (psplit_i_span_answer){
      .question = question, .found = PSPLIT_I_INF, .width = question.limit / STEPS + 1};
  }
  if (answer->least < least) {
    answer->least = least;
    answer->hard = false;
  }
  return answer->hard ? climb(spans, span, answer) : grow(spans, span, cap, answer);
}
