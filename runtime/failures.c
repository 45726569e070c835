#include "failures.h"

#include <stdlib.h>
#include <string.h>

#include "queue.h"

void psplit_i_failures_init(psplit_i_failures *failures) {
  *failures = (psplit_i_failures){0};
  pthread_mutex_init(&failures->mutex, NULL);
}

void psplit_i_failures_fini(psplit_i_failures *failures) {
  pthread_mutex_destroy(&failures->mutex);
  free(failures->kept);
  failures->kept = NULL;
}

psplit_code psplit_i_failures_add(psplit_i_failures *failures, uint64_t micro_batch,
                                  const psplit_diag *why, psplit_diag *diag) {
  psplit_code code = PSPLIT_OK;
  pthread_mutex_lock(&failures->mutex);
  failures->n++;
  if (failures->n_kept < PSPLIT_I_MOST_FAILURES) {
    psplit_i_failure *grown =
      realloc(failures->kept, (failures->n_kept + 1) * sizeof *failures->kept);
    if (grown) {
      psplit_i_failure *one = &grown[failures->n_kept++];
      failures->kept = grown;
      *one = (psplit_i_failure){.micro_batch = micro_batch, .code = (int32_t)why->code};
      memcpy(one->message, why->message, sizeof one->message);
    } else {
      code = psplit_i_nomem(diag);
    }
  }
  pthread_mutex_unlock(&failures->mutex);
  return code;
}

psplit_code psplit_i_deadline_check(int64_t deadline_ns, psplit_diag *diag) {
  if (!deadline_ns || psplit_i_now_ns() <= deadline_ns) return PSPLIT_OK;
  return psplit_i_fail(diag, PSPLIT_LIMIT, "its deadline has passed");
}
