/* What the program of splits with copies is made of. */
#ifndef PSPLIT_PARTITION_COPYING_INSIDE_H
#define PSPLIT_PARTITION_COPYING_INSIDE_H

#include "checked.h"
#include "copying.h"

typedef struct psplit_i_copying_load {
  int64_t compute_ns, recv_ns, send_ns;
} psplit_i_copying_load;

static inline int64_t psplit_i_copying_load_ns(const psplit_i_copying *p,
                                               const psplit_i_copying_load *load) {
  if (!p->overlap)
    return psplit_i_sat_add_i64(load->compute_ns,
                                psplit_i_sat_add_i64(load->recv_ns, load->send_ns));
  const int64_t moved_ns = load->recv_ns > load->send_ns ? load->recv_ns : load->send_ns;
  return load->compute_ns > moved_ns ? load->compute_ns : moved_ns;
}

/* A stage that waits for tensors of stages in front: for which nets, and of how many stages it may
 * still receive a message. */
typedef struct psplit_i_copying_wait {
  uint64_t nets, n_messages;
} psplit_i_copying_wait;

/* What is left when some of the last stages are formed. */
typedef struct psplit_i_copying_state {
  uint64_t blocks; /* that have no stage yet, bits */
  uint32_t stage;  /* the next one, and all in front of it */
  uint32_t n_waits;
  psplit_i_copying_wait wait[PSPLIT_I_COPYING_STAGES]; /* in ascending order */
} psplit_i_copying_state;

/* States from which there is no split within the limit, nor within a lower one. */
typedef struct psplit_i_copying_states {
  uint64_t *word; /* of all states one after the other */
  uint32_t *slot; /* [n_slots] 1 + the first word of a state; 0: free */
  size_t n_words, n_slots, n;
} psplit_i_copying_states;

void psplit_i_copying_states_fini(psplit_i_copying_states *states);
bool psplit_i_copying_states_have(const psplit_i_copying_states *states,
                                  const psplit_i_copying_state *state);
/* Without effect where there are too many. Errors: NOMEM. */
PSPLIT_MUST_USE psplit_code psplit_i_copying_states_add(psplit_i_copying_states *states,
                                                        const psplit_i_copying_state *state);

#endif
