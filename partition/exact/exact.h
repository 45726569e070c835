/* The exact program decides whether there is a split with every load within a limit. */
#ifndef PSPLIT_PARTITION_EXACT_H
#define PSPLIT_PARTITION_EXACT_H

#include "assignment.h"
#include "budget.h"
#include "weight_axis.h"

typedef enum psplit_i_verdict {
  PSPLIT_I_YES,    /* a split with every load <= limit was found */
  PSPLIT_I_NO,     /* there is none */
  PSPLIT_I_UNKNOWN /* steps, memory or time ran out */
} psplit_i_verdict;

/* Which of the splits that send least: the one whose stage numbers, read in this order, are
 * lexicographically least. */
typedef struct psplit_i_lexicographic {
  const uint32_t *position; /* [n] of a cluster in the order */
  bool closed;              /* stages close ranks: those without clusters come last */
  int64_t most_comm;        /* what some split within the limit sends */
} psplit_i_lexicographic;

typedef struct psplit_i_exact_options {
  int64_t limit;   /* largest load allowed */
  bool least_comm; /* among them, one with the least sum of communication */
  /* With least_comm, up to 255 stages and no replicas: which of these; NULL: any. */
  const psplit_i_lexicographic *lexicographic;
  /* Of the splits within the limit, with as many stages or fewer, one whose first stage has the
   * least load, where no split is within it whose first stage would have been two. Forward nets. */
  bool least_front;
  /* [n] Prices, none below 0, by which no stage of a split within the limit is worth more than
   * PSPLIT_I_PRICING_ONE: labels of which more is left than their stages are worth are dropped. Not
   * with send_once, unless prices know no more than that of what stages send. NULL: none. */
  const int32_t *price;
  bool send_once; /* charge a tensor's producer once: NO holds, YES may be above the limit */
  /* By shared memory, where psplit_i_exact_counts_bypasses(): what a stage passes on counts, so
   * that NO holds for splits whose tensors go by any way; YES may be above the limit. */
  bool bypasses;
  bool keep_dominated; /* labels that another one of their round dominates stay: the same verdict */
  bool follow_always;  /* see passed_over.c: from the first round on; the same verdict */
  /* Clusters moved, and 8 for each label, over all threads: the same for any number of threads. */
  uint64_t max_steps;
  uint64_t max_steps_behind; /* the same once rounds have become narrow, if that is more */
  uint64_t memory_bytes;
  uint32_t n_threads;
  psplit_i_budget *budget; /* charged with what steps do not count as well; NULL: no limit */
  uint64_t *out_steps;     /* may be NULL */
  bool *out_full;          /* set where memory_bytes were too few; may be NULL */
  uint32_t *out_rounds;    /* stages, from the last, whose every choice was tried; may be NULL */
} psplit_i_exact_options;

/* Is there a contiguous split with every load <= limit? Dynamic programming over downsets, from the
 * last stage backwards: a label is (what is left, devices used, receivers counted so far and, of
 * backward nodes' tensors, those to come), kept only inside the windows of `axis`. With YES,
 * *out_assignment is one, evaluated. Exact but for relays (next_hop), links between pairs of
 * devices and messages that are not counted: with them YES may be above the limit. Source: downset
 * programs of Tarnawski et al. (NeurIPS 2020, section 5); the decision form, the windows and
 * receiver counts are this project's. Errors: NOMEM. */
PSPLIT_MUST_USE psplit_code psplit_i_exact(const psplit_i_instance *instance,
                                           const psplit_i_automaton *automaton,
                                           const psplit_i_weight_axis *axis,
                                           const psplit_i_exact_options *options,
                                           psplit_i_assignment *out_assignment,
                                           psplit_i_verdict *out_verdict);

/* Whether a run that sends to each counts messages for each pair of stages, so that its YES holds:
 * devices are linked alike and directly, and all nets run ahead. False as well where there are
 * none. */
bool psplit_i_exact_counts_messages(const psplit_i_instance *instance,
                                    const psplit_i_automaton *automaton);

/* Whether a run may count what stages pass on: by shared memory with messages, where all nets run
 * ahead and no stage may be empty. */
bool psplit_i_exact_counts_bypasses(const psplit_i_instance *instance,
                                    const psplit_i_automaton *automaton);

/* Whether options->lexicographic may be asked for: stages and types must fit the bytes of a key. */
bool psplit_i_exact_has_keys(const psplit_i_instance *instance);

#endif
