#include "requests.h"

#include <pthread.h>
#include <stdlib.h>
#include <time.h>

#include "answer.h"
#include "failures.h"
#include "queue.h"
#include "request_inputs.h"

typedef struct request {
  struct request *next;
  uint64_t id;
  int64_t submitted_ns, taken_ns, deadline_ns;
  psplit_i_tensor **inputs; /* [n_needed]; NULL once they are in the pipeline */
  psplit_respond respond;
  void *user;
  bool answered;                 /* by a cancellation, while it is under way */
  const psplit_response *answer; /* of one that is waited for */
  bool lost;                     /* there is no memory for that */
} request;

typedef struct list {
  request *first, **end; /* end: where the next one is hung */
  uint32_t n;
} list;

struct psplit_i_requests {
  psplit_i_requests_options options;
  pthread_mutex_t mutex;
  pthread_cond_t changed; /* one for all: who waits is few */
  uint64_t last_id;
  bool closed;
  list waiting, under_way;
  list answered; /* for who waits; also those that are being answered now */
  uint64_t n_accepted, n_refused, n_good, n_failed;
};

void psplit_request_defaults(psplit_request *request, size_t struct_size) {
  psplit_request defaults = {.n_inputs = 0};
  psplit_i_options_defaults(request, struct_size, &defaults, sizeof defaults);
}

static void append(list *l, request *r) {
  if (!l->first) l->end = &l->first;
  r->next = NULL;
  *l->end = r;
  l->end = &r->next;
  l->n++;
}

/* Takes the one at *at out. */
static request *take(list *l, request **at) {
  request *r = *at;
  *at = r->next;
  if (!r->next) l->end = at;
  l->n--;
  return r;
}

static request **find(list *l, uint64_t id) {
  request **at = &l->first;
  while (*at && (*at)->id != id) at = &(*at)->next;
  return at;
}

static void free_inputs(const psplit_i_requests *rs, request *r) {
  for (uint32_t i = 0; r->inputs && i < rs->options.pipe->manifest.n_needed; i++)
    psplit_i_tensor_release(r->inputs[i]);
  free(r->inputs);
  r->inputs = NULL;
}

static void free_request(const psplit_i_requests *rs, request *r) {
  free_inputs(rs, r);
  psplit_response_release(r->answer);
  free(r);
}

psplit_code psplit_i_requests_create(const psplit_i_requests_options *options, psplit_diag *diag,
                                     psplit_i_requests **out) {
  psplit_i_requests *rs = calloc(1, sizeof *rs);
  pthread_condattr_t clock;
  if (!rs) return psplit_i_nomem(diag);
  rs->options = *options;
  pthread_condattr_init(&clock);
  pthread_condattr_setclock(&clock, CLOCK_MONOTONIC);
  pthread_mutex_init(&rs->mutex, NULL);
  pthread_cond_init(&rs->changed, &clock);
  pthread_condattr_destroy(&clock);
  *out = rs;
  return PSPLIT_OK;
}

void psplit_i_requests_destroy(psplit_i_requests *rs) {
  if (!rs) return;
  while (rs->answered.first) free_request(rs, take(&rs->answered, &rs->answered.first));
  pthread_cond_destroy(&rs->changed);
  pthread_mutex_destroy(&rs->mutex);
  free(rs);
}

/* With the mutex held: until something changes, at most so long. */
static void wait_change(psplit_i_requests *rs, int64_t until_ns) {
  static const int64_t SECOND_NS = 1000000000;
  pthread_cond_timedwait(&rs->changed, &rs->mutex,
                         &(struct timespec){until_ns / SECOND_NS, until_ns % SECOND_NS});
}

/* With the mutex held: takes one out that is going to be answered. Who waits for it is to find it
 * at any time. */
static request *take_to_answer(psplit_i_requests *rs, list *l, request **at) {
  request *r = take(l, at);
  if (!r->respond) append(&rs->answered, r);
  return r;
}

/* Answers what take_to_answer gave; `outputs` is NULL where `failure` is one. With no lock held. */
static void answer(psplit_i_requests *rs, request *r, psplit_i_tensor *const *outputs,
                   const psplit_diag *failure) {
  psplit_response head = {.id = r->id}, spare;
  const int64_t now_ns = psplit_i_now_ns();
  head.total_ns = now_ns - r->submitted_ns;
  head.waited_ns = r->taken_ns ? r->taken_ns - r->submitted_ns : head.total_ns;
  const psplit_response *made =
    psplit_i_answer_make(&rs->options.pipe->manifest, &head, outputs, failure, &spare);
  const bool good = made->code == PSPLIT_OK;
  if (r->respond) r->respond(r->user, made);
  pthread_mutex_lock(&rs->mutex);
  rs->n_good += good;
  rs->n_failed += !good;
  const bool kept = !r->respond;
  if (kept) {
    r->lost = made == &spare;
    r->answer = r->lost ? NULL : made;
    pthread_cond_broadcast(&rs->changed);
  }
  pthread_mutex_unlock(&rs->mutex);
  if (kept) return;
  if (made != &spare) psplit_response_release(made);
  free_request(rs, r);
}

static psplit_code make(const psplit_i_requests *rs, const psplit_request *given, psplit_diag *diag,
                        request **out) {
  const psplit_i_manifest *m = &rs->options.pipe->manifest;
  const double deadline_s = given->deadline_s > 0 ? given->deadline_s : rs->options.deadline_s;
  request *r = calloc(1, sizeof *r);
  psplit_code code;
  if (r) r->inputs = calloc((size_t)m->n_needed + 1, sizeof *r->inputs);
  if (!r || !r->inputs) {
    free(r);
    return psplit_i_nomem(diag);
  }
  r->submitted_ns = psplit_i_now_ns();
  if (deadline_s > 0) r->deadline_ns = r->submitted_ns + (int64_t)(1e9 * deadline_s);
  r->respond = given->respond;
  r->user = given->user;
  PSPLIT_TRY(psplit_i_request_inputs_take(rs->options.ort, m, given, diag, r->inputs));
  *out = r;
  return code;
out:
  free_request(rs, r);
  return code;
}

/* With the mutex held: room in the queue. */
static psplit_code make_room(psplit_i_requests *rs, const request *r, bool wait,
                             psplit_diag *diag) {
  static const int64_t LOOK_NS = 50000000;
  const uint32_t most = rs->options.max_waiting;
  while (!rs->closed && rs->waiting.n >= most) {
    if (!wait) {
      rs->n_refused++;
      return psplit_i_fail(diag, PSPLIT_LIMIT, "%u requests wait already", most);
    }
    const psplit_code code = psplit_i_deadline_check(r->deadline_ns, diag);
    if (code != PSPLIT_OK) return code;
    wait_change(rs, psplit_i_now_ns() + LOOK_NS);
  }
  return rs->closed ? psplit_i_fail(diag, PSPLIT_IO, "the service takes no more requests")
                    : PSPLIT_OK;
}

psplit_code psplit_i_requests_submit(psplit_i_requests *rs, const psplit_request *request_given,
                                     psplit_diag *diag, uint64_t *out_id) {
  psplit_request given;
  request *r = NULL;
  psplit_code code;
  psplit_request_init(&given);
  PSPLIT_TRY(PSPLIT_I_TAKE_OPTIONS(psplit_request, request_given, &given, diag));
  PSPLIT_TRY(make(rs, &given, diag, &r));
  pthread_mutex_lock(&rs->mutex);
  code = make_room(rs, r, given.wait, diag);
  if (code == PSPLIT_OK) {
    r->id = ++rs->last_id;
    if (out_id) *out_id = r->id;
    rs->n_accepted++;
    append(&rs->waiting, r);
    pthread_cond_broadcast(&rs->changed);
    r = NULL;
  }
  pthread_mutex_unlock(&rs->mutex);
  if (r) free_request(rs, r);
out:
  return code;
}

/* With the mutex held: whether a request that is waited for is on its way. */
static bool is_open(psplit_i_requests *rs, uint64_t id) {
  const request *r = *find(&rs->waiting, id);
  if (!r) r = *find(&rs->under_way, id);
  return (r && !r->respond && !r->answered) || *find(&rs->answered, id);
}

psplit_code psplit_i_requests_wait(psplit_i_requests *rs, uint64_t id, double most_s,
                                   psplit_diag *diag, const psplit_response **out) {
  static const double LONGEST_S = 1e9;
  const double wait_s = most_s < LONGEST_S ? most_s : LONGEST_S;
  const int64_t until_ns = psplit_i_now_ns() + (int64_t)(1e9 * wait_s);
  request **at, *r = NULL;
  psplit_code code = PSPLIT_OK;
  pthread_mutex_lock(&rs->mutex);
  while (code == PSPLIT_OK && !r) {
    at = find(&rs->answered, id);
    if (*at && ((*at)->answer || (*at)->lost))
      r = take(&rs->answered, at);
    else if (!is_open(rs, id))
      code =
        psplit_i_fail(diag, PSPLIT_USAGE, "no request %llu is waited for", (unsigned long long)id);
    else if (psplit_i_now_ns() >= until_ns)
      code = psplit_i_fail(diag, PSPLIT_LIMIT, "request %llu is not answered within %g s",
                           (unsigned long long)id, most_s);
    else
      wait_change(rs, until_ns);
  }
  pthread_mutex_unlock(&rs->mutex);
  if (!r) return code;
  if (r->lost)
    code = psplit_i_nomem(diag);
  else
    *out = r->answer;
  r->answer = NULL;
  free_request(rs, r);
  return code;
}

/* Answers one now, or where id is 0 any that has not been. False where there is none. */
static bool answer_now(psplit_i_requests *rs, uint64_t id, const psplit_diag *why) {
  request *r = NULL, *shadow = calloc(1, sizeof *shadow);
  pthread_mutex_lock(&rs->mutex);
  request **at = id ? find(&rs->waiting, id) : &rs->waiting.first;
  if (*at) {
    r = take_to_answer(rs, &rs->waiting, at);
    pthread_cond_broadcast(&rs->changed);
  } else {
    request *away = rs->under_way.first;
    while (away && (away->answered || (id && away->id != id))) away = away->next;
    if (away && shadow) { /* it keeps its place among those in the pipeline; a copy is answered */
      away->answered = true;
      r = shadow;
      *r = *away;
      if (!r->respond) append(&rs->answered, r);
      shadow = NULL;
    }
  }
  pthread_mutex_unlock(&rs->mutex);
  free(shadow);
  if (r) answer(rs, r, NULL, why);
  return r != NULL;
}

bool psplit_i_requests_cancel(psplit_i_requests *rs, uint64_t id) {
  static const psplit_diag WHY = {.code = PSPLIT_IO, .message = "cancelled"};
  return id && answer_now(rs, id, &WHY);
}

void psplit_i_requests_cancel_all(psplit_i_requests *rs, const psplit_diag *why) {
  while (answer_now(rs, 0, why)) continue;
}

void psplit_i_requests_get_stats(psplit_i_requests *rs, psplit_service_stats *out) {
  pthread_mutex_lock(&rs->mutex);
  psplit_service_stats now = {.struct_size = out->struct_size,
                              .n_accepted = rs->n_accepted,
                              .n_refused = rs->n_refused,
                              .n_good = rs->n_good,
                              .n_failed = rs->n_failed,
                              .n_waiting = rs->waiting.n,
                              .n_under_way = rs->under_way.n};
  pthread_mutex_unlock(&rs->mutex);
  psplit_i_options_defaults(out, out->struct_size, &now, sizeof now);
}

void psplit_i_requests_close(psplit_i_requests *rs) {
  pthread_mutex_lock(&rs->mutex);
  rs->closed = true;
  pthread_cond_broadcast(&rs->changed);
  pthread_mutex_unlock(&rs->mutex);
}

bool psplit_i_requests_are_open(psplit_i_requests *rs) {
  pthread_mutex_lock(&rs->mutex);
  const bool open = !rs->closed;
  pthread_mutex_unlock(&rs->mutex);
  return open;
}

void psplit_i_requests_fail_all(psplit_i_requests *rs, const psplit_diag *why) {
  list *const lists[] = {&rs->under_way, &rs->waiting};
  for (int i = 0; i < 2;) {
    pthread_mutex_lock(&rs->mutex);
    request *r = lists[i]->first;
    const bool answered = r && r->answered;
    if (answered)
      take(lists[i], &lists[i]->first);
    else if (r)
      take_to_answer(rs, lists[i], &lists[i]->first);
    pthread_mutex_unlock(&rs->mutex);
    if (!r)
      i++;
    else if (answered)
      free_request(rs, r);
    else
      answer(rs, r, NULL, why);
  }
}

/* With the mutex held: the first that waits and is too late. */
static request *take_late(psplit_i_requests *rs, psplit_diag *why) {
  for (request **at = &rs->waiting.first; *at; at = &(*at)->next)
    if (psplit_i_deadline_check((*at)->deadline_ns, why) != PSPLIT_OK)
      return take_to_answer(rs, &rs->waiting, at);
  return NULL;
}

static bool next(void *user, const atomic_bool *stopped, psplit_i_tensor **inputs,
                 int64_t *out_deadline_ns, psplit_diag *failure) {
  static const int64_t LOOK_NS = 50000000;
  psplit_i_requests *rs = user;
  (void)failure;
  for (;;) {
    psplit_diag why = {0};
    pthread_mutex_lock(&rs->mutex);
    request *r = take_late(rs, &why);
    const bool late = r;
    if (!late && rs->waiting.first) {
      r = take(&rs->waiting, &rs->waiting.first);
      r->taken_ns = psplit_i_now_ns();
      *out_deadline_ns = r->deadline_ns;
      for (uint32_t i = 0; i < rs->options.pipe->manifest.n_needed; i++) inputs[i] = r->inputs[i];
      free(r->inputs);
      r->inputs = NULL;
      append(&rs->under_way, r);
    }
    const bool over = !r && (rs->closed || atomic_load(stopped));
    if (r)
      pthread_cond_broadcast(&rs->changed);
    else if (!over)
      wait_change(rs, psplit_i_now_ns() + LOOK_NS);
    pthread_mutex_unlock(&rs->mutex);
    if (late)
      answer(rs, r, NULL, &why);
    else if (r || over)
      return r;
  }
}

static void done(void *user, psplit_i_tensor *const *outputs, const psplit_diag *failure) {
  psplit_i_requests *rs = user;
  pthread_mutex_lock(&rs->mutex);
  const bool answered = rs->under_way.first->answered;
  request *r = answered ? take(&rs->under_way, &rs->under_way.first)
                        : take_to_answer(rs, &rs->under_way, &rs->under_way.first);
  pthread_mutex_unlock(&rs->mutex);
  if (answered)
    free_request(rs, r);
  else
    answer(rs, r, failure->code == PSPLIT_OK ? outputs : NULL, failure);
}

void psplit_i_requests_connect(psplit_i_requests *rs, psplit_i_source *source) {
  source->user = rs;
  source->next = next;
  source->done = done;
}
