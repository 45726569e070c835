/* Requests from outside: submitted, waited for, cancelled, counted. */
#include "requests.h"

#include <stdlib.h>

#include "failures.h"
#include "queue.h"
#include "request_inputs.h"
#include "requests_inside.h"

void psplit_request_defaults(psplit_request *out, size_t struct_size) {
  psplit_request defaults = {.n_inputs = 0};
  psplit_i_options_defaults(out, struct_size, &defaults, sizeof defaults);
}

psplit_code psplit_i_requests_create(const psplit_i_requests_options *options, psplit_diag *diag,
                                     psplit_i_requests **out) {
  psplit_i_requests *rs = calloc(1, sizeof *rs);
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
  pthread_mutex_init(&rs->mutex, NULL);
  psplit_i_timed_cond_init(&rs->changed);
  *out = rs;
  return PSPLIT_OK;
}

static psplit_i_request **find(psplit_i_request_list *l, uint64_t id) {
  psplit_i_request **at = &l->first;
  while (*at && (*at)->id != id) at = &(*at)->next;
  return at;
}

void psplit_i_requests_destroy(psplit_i_requests *rs) {
  if (!rs) return;
  while (rs->answered.first)
    psplit_i_request_free(rs, psplit_i_requests_take(&rs->answered, &rs->answered.first));
  psplit_i_batching_fini(&rs->batching);
  pthread_cond_destroy(&rs->changed);
  pthread_mutex_destroy(&rs->mutex);
  free(rs);
}

static psplit_code make(const psplit_i_requests *rs, const psplit_request *given, psplit_diag *diag,
                        psplit_i_request **out) {
  const psplit_i_manifest *m = &rs->options.pipe->manifest;
  const double deadline_s = given->deadline_s > 0 ? given->deadline_s : rs->options.deadline_s;
  psplit_i_request *r = calloc(1, sizeof *r);
  psplit_code code;
  if (r) r->inputs = calloc((size_t)m->n_needed + 1, sizeof *r->inputs);
  if (!r || !r->inputs) {
    free(r);
    return psplit_i_nomem(diag);
  }
  r->submitted_ns = psplit_i_now_ns();
  if (deadline_s > 0) r->deadline_ns = psplit_i_after(r->submitted_ns, deadline_s);
  r->respond = given->respond;
  r->user = given->user;
  PSPLIT_TRY(psplit_i_request_inputs_take(rs->options.ort, m, given, diag, r->inputs));
  r->n_rows = rs->options.max_batch > 1 ? psplit_i_batching_rows(&rs->batching, r->inputs) : -1;
  *out = r;
  return code;
out:
  psplit_i_request_free(rs, r);
  return code;
}

/* With the mutex held: room in the queue. */
static psplit_code make_room(psplit_i_requests *rs, const psplit_i_request *r, bool wait,
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
    psplit_i_timed_cond_wait(&rs->changed, &rs->mutex, psplit_i_now_ns() + LOOK_NS);
  }
  return rs->closed ? psplit_i_fail(diag, PSPLIT_IO, "the service accepts no more requests")
                    : PSPLIT_OK;
}

psplit_code psplit_i_requests_submit(psplit_i_requests *rs, const psplit_request *request_given,
                                     psplit_diag *diag, uint64_t *out_id) {
  psplit_request given;
  psplit_i_request *r = NULL;
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
    psplit_i_requests_append(&rs->waiting, r);
    pthread_cond_broadcast(&rs->changed);
    r = NULL;
  }
  pthread_mutex_unlock(&rs->mutex);
  if (r) psplit_i_request_free(rs, r);
out:
  return code;
}

/* With the mutex held: whether a request that is waited for is on its way. */
static bool is_open(psplit_i_requests *rs, uint64_t id) {
  const psplit_i_request *r = *find(&rs->waiting, id);
  if (!r) r = *find(&rs->under_way, id);
  return (r && !r->respond && !r->answered) || *find(&rs->answered, id);
}

psplit_code psplit_i_requests_wait(psplit_i_requests *rs, uint64_t id, double most_s,
                                   psplit_diag *diag, const psplit_response **out) {
  const int64_t until_ns = psplit_i_after(psplit_i_now_ns(), most_s);
  psplit_i_request **at, *r = NULL;
  psplit_code code = PSPLIT_OK;
  pthread_mutex_lock(&rs->mutex);
  while (code == PSPLIT_OK && !r) {
    at = find(&rs->answered, id);
    if (*at && ((*at)->answer || (*at)->lost))
      r = psplit_i_requests_take(&rs->answered, at);
    else if (!is_open(rs, id))
      code =
        psplit_i_fail(diag, PSPLIT_USAGE, "no request %llu is waited for", (unsigned long long)id);
    else if (psplit_i_now_ns() >= until_ns)
      code = psplit_i_fail(diag, PSPLIT_LIMIT, "request %llu is not answered within %g s",
                           (unsigned long long)id, most_s);
    else
      psplit_i_timed_cond_wait(&rs->changed, &rs->mutex, until_ns);
  }
  pthread_mutex_unlock(&rs->mutex);
  if (!r) return code;
  if (r->lost)
    code = psplit_i_nomem(diag);
  else
    *out = r->answer;
  r->answer = NULL;
  psplit_i_request_free(rs, r);
  return code;
}

/* Answers one now, or where id is 0 any that has not been. False where there is none. */
static bool answer_now(psplit_i_requests *rs, uint64_t id, const psplit_diag *why) {
  psplit_i_request *r = NULL, *shadow = calloc(1, sizeof *shadow);
  pthread_mutex_lock(&rs->mutex);
  psplit_i_request **at = id ? find(&rs->waiting, id) : &rs->waiting.first;
  if (*at) {
    r = psplit_i_requests_take_to_answer(rs, &rs->waiting, at);
    pthread_cond_broadcast(&rs->changed);
  } else {
    psplit_i_request *away = shadow ? rs->under_way.first : NULL;
    while (away && (away->answered || (id && away->id != id))) away = away->next;
    if (away) { /* it keeps its place among those in the pipeline; a copy is answered */
      away->answered = true;
      *shadow = *away;
      r = shadow;
      r->inputs = NULL;
      if (!r->respond) psplit_i_requests_append(&rs->answered, r);
      shadow = NULL;
    }
  }
  pthread_mutex_unlock(&rs->mutex);
  free(shadow);
  if (r) psplit_i_request_answer(rs, r, NULL, why);
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
  psplit_i_request_list *const lists[] = {&rs->under_way, &rs->waiting};
  for (int i = 0; i < 2;) {
    pthread_mutex_lock(&rs->mutex);
    psplit_i_request *r = lists[i]->first;
    const bool answered = r && r->answered;
    if (answered)
      psplit_i_requests_take(lists[i], &lists[i]->first);
    else if (r)
      psplit_i_requests_take_to_answer(rs, lists[i], &lists[i]->first);
    pthread_mutex_unlock(&rs->mutex);
    if (!r)
      i++;
    else if (answered)
      psplit_i_request_free(rs, r);
    else
      psplit_i_request_answer(rs, r, NULL, why);
  }
}
