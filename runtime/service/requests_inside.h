/* Internals shared by the submission of requests and their passage through the pipeline: the
 * requests, in processing order. */
#ifndef PSPLIT_RUNTIME_REQUESTS_INSIDE_H
#define PSPLIT_RUNTIME_REQUESTS_INSIDE_H

#include <pthread.h>

#include "batching.h"
#include "requests.h"

typedef struct psplit_i_request {
  struct psplit_i_request *next;
  uint64_t id;
  int64_t submitted_ns, taken_ns, deadline_ns;
  psplit_i_tensor **inputs;      /* [n_needed]; NULL once they are in the pipeline, unless joined */
  int64_t n_rows;                /* that it adds to a batch; -1: it is alone */
  uint32_t n_joined;             /* of the first in a batch: how many it has */
  struct psplit_i_request *mate; /* the next of a batch that is done */
  psplit_respond respond;
  void *user;
  bool answered;                 /* by a cancellation, while it is under way */
  const psplit_response *answer; /* of one that is waited for */
  bool lost;                     /* there is no memory for that */
} psplit_i_request;

typedef struct psplit_i_request_list {
  psplit_i_request *first, **end; /* end: where the next one is hung */
  uint32_t n;
} psplit_i_request_list;

struct psplit_i_requests {
  psplit_i_requests_options options;
  pthread_mutex_t mutex;
  pthread_cond_t changed; /* one for all: who waits is few */
  uint64_t last_id;
  bool closed;
  psplit_i_request_list waiting, under_way;
  psplit_i_request_list answered; /* for who waits; also those that are being answered now */
  uint64_t n_accepted, n_refused, n_good, n_failed;
  psplit_i_batching batching;
  uint32_t n_batches; /* of several requests, under way: these may have to run again */
};

/* With the mutex held, or once nobody else is left: at the end of a list; out of it the one at *at,
 * which is there. */
void psplit_i_requests_append(psplit_i_request_list *l, psplit_i_request *r);
psplit_i_request *psplit_i_requests_take(psplit_i_request_list *l, psplit_i_request **at);

/* With the mutex held: takes one out that is going to be answered. Who waits for it is to find it
 * at any time. */
psplit_i_request *psplit_i_requests_take_to_answer(psplit_i_requests *rs, psplit_i_request_list *l,
                                                   psplit_i_request **at);
/* Answers what that gave; `outputs` is NULL where `failure` is one. With no lock held. */
void psplit_i_request_answer(psplit_i_requests *rs, psplit_i_request *r,
                             psplit_i_tensor *const *outputs, const psplit_diag *failure);

/* One that is in no list. */
void psplit_i_request_free(const psplit_i_requests *rs, psplit_i_request *r);

#endif
