#include "answer.h"

#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

typedef struct answer {
  psplit_response shown; /* first: callers know only this */
  psplit_named_tensor *outputs;
  psplit_i_tensor_view *views;
  psplit_i_tensor **held;
  void **packed; /* strings as bytes */
  uint32_t n;
  atomic_uint n_holders;
  char message[PSPLIT_DIAG_BYTES];
} answer;

static psplit_code show(answer *a, uint32_t i, const char *name, psplit_i_tensor *tensor,
                        psplit_diag *diag) {
  psplit_i_tensor_view *view = &a->views[i];
  psplit_code code = PSPLIT_OK;
  bool is_dense = false;
  if (tensor) PSPLIT_TRY(psplit_i_tensor_is_dense(tensor, diag, &is_dense));
  if (!is_dense) {
    a->outputs[i] = (psplit_named_tensor){.name = name};
    return PSPLIT_OK;
  }
  PSPLIT_TRY(psplit_i_tensor_look(tensor, diag, view));
  a->held[i] = psplit_i_tensor_hold(tensor);
  if (!view->data && view->n_bytes) {
    a->packed[i] = malloc((size_t)view->n_bytes);
    if (!a->packed[i]) return psplit_i_nomem(diag);
    PSPLIT_TRY(psplit_i_tensor_pack(tensor, view, diag, a->packed[i]));
  }
  a->outputs[i] = (psplit_named_tensor){name,
                                        {view->data_type, (uint32_t)view->n_dims, view->dims,
                                         view->data ? view->data : a->packed[i], view->n_bytes}};
out:
  return code;
}

static psplit_code fill(answer *a, const psplit_i_manifest *manifest,
                        psplit_i_tensor *const *outputs, psplit_diag *diag) {
  const size_t n = manifest->n_outputs;
  psplit_code code = PSPLIT_OK;
  a->outputs = calloc(n + 1, sizeof *a->outputs);
  a->views = calloc(n + 1, sizeof *a->views);
  a->held = calloc(n + 1, sizeof *a->held);
  a->packed = calloc(n + 1, sizeof *a->packed);
  if (!a->outputs || !a->views || !a->held || !a->packed) return psplit_i_nomem(diag);
  a->n = manifest->n_outputs;
  for (uint32_t i = 0; i < a->n; i++)
    PSPLIT_TRY(show(a, i, manifest->outputs[i], outputs[i], diag));
  a->shown.outputs = a->outputs;
  a->shown.n_outputs = a->n;
out:
  return code;
}

const psplit_response *psplit_i_answer_make(const psplit_i_manifest *manifest,
                                            const psplit_response *head,
                                            psplit_i_tensor *const *outputs,
                                            const psplit_diag *failure, psplit_response *spare) {
  psplit_diag diag = {0};
  answer *a = calloc(1, sizeof *a);
  if (!a) {
    *spare = *head;
    spare->code = PSPLIT_NOMEM;
    spare->message = "out of memory";
    return spare;
  }
  a->shown = *head;
  atomic_init(&a->n_holders, 1);
  a->shown.message = a->message;
  if (outputs && fill(a, manifest, outputs, &diag) != PSPLIT_OK) failure = &diag;
  if (!failure || failure->code == PSPLIT_OK) return &a->shown;
  a->shown.code = failure->code;
  memcpy(a->message, failure->message, sizeof a->message);
  return &a->shown;
}

void psplit_response_keep(const psplit_response *response) {
  atomic_fetch_add(&((answer *)(uintptr_t)response)->n_holders, 1);
}

void psplit_response_release(const psplit_response *response) {
  answer *a = (answer *)(uintptr_t)response;
  if (!a || atomic_fetch_sub(&a->n_holders, 1) != 1) return;
  for (uint32_t i = 0; i < a->n; i++) {
    psplit_i_tensor_release(a->held[i]);
    free(a->packed[i]);
  }
  free(a->outputs);
  free(a->views);
  free(a->held);
  free(a->packed);
  free(a);
}
