/* Lists of sequences, and callbacks at their end. */
#include <stdlib.h>

#include "sequences_inside.h"

void psplit_i_sequences_append(psplit_i_sequence_list *l, psplit_i_sequence *s) {
  s->next = NULL;
  *l->end = s;
  l->end = &s->next;
  l->n++;
}

psplit_i_sequence *psplit_i_sequences_take(psplit_i_sequence_list *l) {
  psplit_i_sequence *s = l->first;
  if (!s) return NULL;
  l->first = s->next;
  if (!l->first) l->end = &l->first;
  l->n--;
  return s;
}

void psplit_i_sequence_free_files(char **files, uint32_t n) {
  for (uint32_t i = 0; files && i < n; i++) free(files[i]);
  free(files);
}

void psplit_i_sequence_destroy(psplit_i_sequence *s, uint32_t n_needed) {
  if (!s) return;
  for (uint32_t i = 0; s->same && i < n_needed; i++) psplit_i_tensor_release(s->same[i]);
  psplit_i_sequence_free_files(s->files, n_needed);
  free(s->same);
  free(s->tokens);
  free(s);
}

void psplit_i_sequence_tell_end(psplit_i_sequences *ss, psplit_i_sequence *s,
                                psplit_generation_end end, const psplit_diag *failure) {
  const psplit_generation told = {.id = s->id,
                                  .end = end,
                                  .code = failure ? failure->code : PSPLIT_OK,
                                  .message = failure ? failure->message : "",
                                  .n_prompt = s->n_prompt,
                                  .n_tokens = s->n_tokens - s->n_prompt,
                                  .tokens = s->tokens + s->n_prompt,
                                  .waited_ns = s->admitted_ns ? s->admitted_ns - s->asked_ns : 0,
                                  .first_ns = s->first_ns ? s->first_ns - s->admitted_ns : 0,
                                  .total_ns = s->last_ns ? s->last_ns - s->admitted_ns : 0};
  pthread_mutex_lock(&ss->mutex);
  ss->stats.n_ended++;
  ss->stats.n_failed += failure != NULL;
  pthread_mutex_unlock(&ss->mutex);
  if (s->end) s->end(s->user, &told);
}
