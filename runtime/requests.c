#include "requests.h"

#include <assert.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "answer.h"
#include "batching.h"
#include "failures.h"
#include "queue.h"
#include "request_inputs.h"

typedef struct request {
  struct request *next;
  uint64_t id;
  int64_t submitted_ns, taken_ns, deadline_ns;
  psplit_i_tensor **inputs; /* [n_needed]; NULL once they are in the pipeline, unless joined */
  int64_t n_rows;           /* that it adds to a batch; -1: it is alone */
  uint32_t n_joined;        /* of the first in a batch: how many it has */
  struct request *mate;     /* the next of a batch that is done */
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
  psplit_i_batching batching;
  uint32_t n_batches; /* of several requests, under way: these may have to run again */
};

void psplit_request_defaults(psplit_request *out, size_t struct_size) {
  psplit_request defaults = {.n_inputs = 0};
  psplit_i_options_defaults(out, struct_size, &defaults, sizeof defaults);
}

static void append(list *l, request *r) {
  if (!l->first) l->end = &l->first;
  r->next = NULL;
  *l->end = r;
  l->end = &r->next;
  l->n++;
}

/* Takes the one at *at out, which is there. */
static request *take(list *l, request **at) {
  request *r = *at;
  assert(r);
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
  if (options->max_batch > 1) {
    const char *dim = options->batch_dim ? options->batch_dim : "batch";
    const psplit_code code =
      psplit_i_batching_init(options->ort, &options->pipe->manifest, dim, diag, &rs->batching);
    if (code != PSPLIT_OK) {
      free(rs);
      return code;
    }
  }
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
  psplit_i_batching_fini(&rs->batching);
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
  r->n_rows = rs->options.max_batch > 1 ? psplit_i_batching_rows(&rs->batching, r->inputs) : -1;
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
      r->inputs = NULL;
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

/* With the mutex held: the first that waits goes into the pipeline, as the last of those there. */
static request *take_off(psplit_i_requests *rs) {
  request *r = take(&rs->waiting, &rs->waiting.first);
  r->taken_ns = psplit_i_now_ns();
  append(&rs->under_way, r);
  pthread_cond_broadcast(&rs->changed);
  return r;
}

/* With the mutex held, which it leaves while it waits: takes off those behind `first` that can be
 * joined with it, as far as they come in time. */
static void take_mates(psplit_i_requests *rs, request *first, const atomic_bool *stopped) {
  const int64_t until_ns = first->submitted_ns + (int64_t)(1e9 * rs->options.batch_delay_s);
  int64_t n_rows = first->n_rows;
  const int64_t most = rs->options.max_batch;
  first->n_joined = 1;
  while (first->n_rows >= 0 && n_rows < most && !atomic_load(stopped)) {
    request *r = rs->waiting.first;
    if (!r) {
      if (rs->closed || psplit_i_now_ns() >= until_ns) return;
      wait_change(rs, until_ns);
      continue;
    }
    if (r->n_rows < 0 || r->n_rows > most - n_rows ||
        !psplit_i_batching_fits(&rs->batching, first->inputs, r->inputs))
      return;
    n_rows += r->n_rows;
    first->n_joined++;
    take_off(rs);
  }
}

/* The inputs of those from `first` on, which are under way. */
static void give_inputs(psplit_i_requests *rs, request *first, psplit_i_tensor **inputs,
                        int64_t *out_deadline_ns, psplit_diag *failure) {
  const uint32_t n_needed = rs->options.pipe->manifest.n_needed, n = first->n_joined;
  *out_deadline_ns = first->deadline_ns;
  if (n == 1) {
    memcpy(inputs, first->inputs, n_needed * sizeof *inputs);
    free(first->inputs);
    first->inputs = NULL;
    return;
  }
  psplit_i_tensor *const **all = calloc(n, sizeof *all);
  psplit_code code = all ? PSPLIT_OK : psplit_i_nomem(failure);
  request *r = first;
  for (uint32_t i = 0; all && i < n; i++, r = r->next) {
    all[i] = r->inputs;
    /* Each has its own; the last one that matters is that of all. */
    if (!r->deadline_ns || !*out_deadline_ns)
      *out_deadline_ns = 0;
    else if (r->deadline_ns > *out_deadline_ns)
      *out_deadline_ns = r->deadline_ns;
  }
  if (code == PSPLIT_OK) code = psplit_i_batching_join(&rs->batching, all, n, failure, inputs);
  for (uint32_t i = 0; code != PSPLIT_OK && i < n_needed; i++) {
    psplit_i_tensor_release(inputs[i]);
    inputs[i] = NULL;
  }
  free(all);
}

static bool next(void *user, const atomic_bool *stopped, psplit_i_tensor **inputs,
                 int64_t *out_deadline_ns, psplit_i_step *out_step, psplit_diag *failure) {
  (void)out_step; /* requests know nothing of each other */
  static const int64_t LOOK_NS = 50000000;
  psplit_i_requests *rs = user;
  for (;;) {
    psplit_diag why = {0};
    pthread_mutex_lock(&rs->mutex);
    request *late = take_late(rs, &why), *r = NULL;
    if (late) {
      pthread_cond_broadcast(&rs->changed);
    } else if (rs->waiting.first) {
      r = take_off(rs);
      take_mates(rs, r, stopped);
      rs->n_batches += r->n_joined > 1;
      give_inputs(rs, r, inputs, out_deadline_ns, failure);
    }
    const bool over = !r && ((rs->closed && !rs->n_batches) || atomic_load(stopped));
    if (!late && !r && !over) wait_change(rs, psplit_i_now_ns() + LOOK_NS);
    pthread_mutex_unlock(&rs->mutex);
    if (late)
      answer(rs, late, NULL, &why);
    else if (r || over)
      return r;
  }
}

/* With the mutex held: takes a batch out of the pipeline, linked by `mate`. */
static request *take_batch(psplit_i_requests *rs) {
  request *first = NULL, **end = &first;
  for (uint32_t n = rs->under_way.first->n_joined; n; n--) {
    request *r = take(&rs->under_way, &rs->under_way.first);
    *end = r;
    end = &r->mate;
    *end = NULL;
  }
  return first;
}

/* With the mutex held: a batch that failed waits again, before all others, each by itself. */
static void run_again(psplit_i_requests *rs, request *first) {
  if (!first) return;
  run_again(rs, first->mate); /* the last one first, so that they keep their order */
  if (first->answered) {
    free_request(rs, first);
    return;
  }
  first->n_rows = -1;
  if (!rs->waiting.first) rs->waiting.end = &first->next;
  first->next = rs->waiting.first;
  rs->waiting.first = first;
  rs->waiting.n++;
}

/* Answers one of a batch with its rows, which begin at `row`. */
static void answer_part(psplit_i_requests *rs, request *r, psplit_i_tensor *const *outputs,
                        int64_t n_rows, int64_t row) {
  const uint32_t n_outputs = rs->options.pipe->manifest.n_outputs;
  psplit_diag why = {0};
  psplit_i_tensor **own = calloc((size_t)n_outputs + 1, sizeof *own);
  psplit_code code = own ? psplit_i_deadline_check(r->deadline_ns, &why) : psplit_i_nomem(&why);
  if (code == PSPLIT_OK)
    code = psplit_i_batching_split(&rs->batching, outputs, n_rows, row, r->n_rows, &why, own);
  answer(rs, r, code == PSPLIT_OK ? own : NULL, &why);
  for (uint32_t o = 0; own && o < n_outputs; o++) psplit_i_tensor_release(own[o]);
  free(own);
}

static void done(void *user, psplit_i_tensor *const *outputs, const psplit_diag *failure) {
  psplit_i_requests *rs = user;
  int64_t n_rows = 0, row = 0;
  pthread_mutex_lock(&rs->mutex);
  request *first = take_batch(rs);
  assert(first); /* a batch has at least one */
  const bool joined = first->mate;
  if (joined) rs->n_batches--;
  if (joined && failure->code != PSPLIT_OK) {
    run_again(rs, first);
    first = NULL;
  }
  for (request *r = first; r; r = r->mate) {
    n_rows += r->n_rows;
    if (!r->answered && !r->respond) append(&rs->answered, r);
  }
  pthread_cond_broadcast(&rs->changed);
  pthread_mutex_unlock(&rs->mutex);
  while (first) {
    request *r = first;
    first = r->mate;
    const int64_t n = r->n_rows;
    if (r->answered)
      free_request(rs, r);
    else if (joined && failure->code == PSPLIT_OK)
      answer_part(rs, r, outputs, n_rows, row);
    else
      answer(rs, r, failure->code == PSPLIT_OK ? outputs : NULL, failure);
    row += n;
  }
}

void psplit_i_requests_connect(psplit_i_requests *rs, psplit_i_source *source) {
  source->user = rs;
  source->next = next;
  source->done = done;
}
