/* Spans: what lies from one separator, a cluster comparable with all others, to a later one. */
#ifndef PSPLIT_PARTITION_SPAN_H
#define PSPLIT_PARTITION_SPAN_H

#include "exact.h"

/* No load may be above `limit`. The stage of the last cluster takes `load` besides, for what is
 * behind. So many stages, with that one, may end before the stage of the first cluster does; of the
 * first span they are all that there are. */
typedef struct psplit_i_span_question {
  int64_t limit, load;
  uint32_t most;
} psplit_i_span_question;

/* What the stage of the first cluster takes, without that cluster. */
typedef struct psplit_i_span_answer {
  psplit_i_span_question question;
  int64_t least; /* it takes no less, if anything within the limit */
  int64_t found; /* in the split that was found; INF: none was */
  uint32_t n_ended;
  uint32_t *stage; /* [clusters of the span] of that split, from 0, the last, to n_ended */
  int64_t width;   /* so much more than `least` is asked for next */
  bool narrows;    /* more than that was not decided soon */
  bool hard;       /* nor whether it takes as little as any */
  uint64_t cost;   /* steps that the last time took */
  bool climbed;    /* smaller limits have been tried for that */
  bool undecided;  /* no more is asked */
} psplit_i_span_answer;

typedef PSPLIT_VEC(psplit_i_span_answer *) psplit_i_span_answers;

typedef struct psplit_i_span {
  uint32_t first, end;       /* clusters */
  bool has_front, is_behind; /* it begins with a separator; others come behind it */
  int64_t work;              /* of all but that separator */
  int64_t least;             /* what any answer is at least */
  uint32_t alike;            /* the first span that is the same but for where it lies */
  psplit_problem problem;    /* its nodes are the clusters, in their order */
  int64_t *time;             /* that problem's */
} psplit_i_span;

typedef struct psplit_i_spans {
  const psplit_i_instance *instance;
  const psplit_partition_options *options;
  psplit_i_budget *budget;
  uint32_t n;
  psplit_i_span *span;
  psplit_i_span_answers *answers; /* [n] by `alike` */
  bool climbed;                   /* smaller limits have been tried for that */
  bool undecided;                 /* no more is asked */
  psplit_i_arena arena;
} psplit_i_spans;

/* Spans of about three stages of `limit` at least, where separators allow. Tensors that jump over
 * one count where their producer is, for its readers there. For one type of device. Errors:
 * NOMEM. */
PSPLIT_MUST_USE psplit_code psplit_i_spans_make(const psplit_i_instance *instance,
                                                const psplit_partition_options *options,
                                                int64_t limit, psplit_i_budget *budget,
                                                psplit_i_spans *out);
void psplit_i_spans_fini(psplit_i_spans *spans);

/* What answers to harder questions say, by a larger limit, less load or more stages: no less than
 * this. */
int64_t psplit_i_span_least(const psplit_i_spans *spans, uint32_t k,
                            psplit_i_span_question question);
/* The least that answers to easier questions have found; NULL: nothing. */
const psplit_i_span_answer *psplit_i_span_found(const psplit_i_spans *spans, uint32_t k,
                                                psplit_i_span_question question);
/* What asking is likely to take: as many steps as the last time; UINT64_MAX: it says no more.
 * `cap`, no more than what the same question with a stage less is known to leave, nor than limit +
 * 1: what is no less is not asked for. */
uint64_t psplit_i_span_cost(const psplit_i_spans *spans, uint32_t k,
                            psplit_i_span_question question, int64_t cap);
/* Asks the exact program: least and found may say more then. Errors: NOMEM. */
PSPLIT_MUST_USE psplit_code psplit_i_span_ask(psplit_i_spans *spans, uint32_t k,
                                              psplit_i_span_question question, int64_t cap);

#endif
