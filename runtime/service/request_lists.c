/* Lists of requests, and delivery of responses, by waiting or by callback. */
#include <assert.h>
#include <stdlib.h>

#include "answer.h"
#include "queue.h"
#include "requests_inside.h"

void psplit_i_requests_append(psplit_i_request_list *l, psplit_i_request *r) {
  if (!l->first) l->end = &l->first;
  r->next = NULL;
  *l->end = r;
  l->end = &r->next;
  l->n++;
}

psplit_i_request *psplit_i_requests_take(psplit_i_request_list *l, psplit_i_request **at) {
  psplit_i_request *r = *at;
  assert(r);
  *at = r->next;
  if (!r->next) l->end = at;
  l->n--;
  return r;
}

static void free_inputs(const psplit_i_requests *rs, psplit_i_request *r) {
  for (uint32_t i = 0; r->inputs && i < rs->options.pipe->manifest.n_needed; i++)
    psplit_i_tensor_release(r->inputs[i]);
  free(r->inputs);
  r->inputs = NULL;
}

void psplit_i_request_free(const psplit_i_requests *rs, psplit_i_request *r) {
  free_inputs(rs, r);
  psplit_response_release(r->answer);
  free(r);
}

psplit_i_request *psplit_i_requests_take_to_answer(psplit_i_requests *rs, psplit_i_request_list *l,
                                                   psplit_i_request **at) {
  psplit_i_request *r = psplit_i_requests_take(l, at);
  if (!r->respond) psplit_i_requests_append(&rs->answered, r);
  return r;
}

void psplit_i_request_answer(psplit_i_requests *rs, psplit_i_request *r,
                             psplit_i_tensor *const *outputs, const psplit_diag *failure) {
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
  psplit_i_request_free(rs, r);
}
