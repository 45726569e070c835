/* Libraries of custom operators: each exports RegisterCustomOps, which adds its domains to the
 * options of a session. */
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "in_file.h"
#include "ort.h"

static psplit_code add_to(const psplit_i_ort *ort, OrtSessionOptions *settings, const char *path,
                          psplit_diag *diag) {
  const psplit_code code = psplit_i_ort_check(
    ort, ort->api.RegisterCustomOpsLibrary_V2(settings, path), "custom operators", diag);
  return code == PSPLIT_INVALID ? diag->code = PSPLIT_UNSUPPORTED : code; /* the stage is well */
}

psplit_code psplit_i_custom_ops_register(const psplit_i_ort *ort, OrtSessionOptions *settings,
                                         psplit_diag *diag) {
  psplit_code code = PSPLIT_OK;
  for (size_t i = 0; i < ort->n_custom_ops && code == PSPLIT_OK; i++)
    code = add_to(ort, settings, ort->custom_ops[i], diag);
  return code;
}

psplit_code psplit_i_ort_add_custom_ops(psplit_i_ort *ort, const char *path, psplit_diag *diag) {
  OrtSessionOptions *settings = NULL;
  char **grown = NULL;
  char *absolute = NULL;
  int fd;
  uint64_t n_bytes;
  psplit_code code;
  PSPLIT_TRY(psplit_i_in_open(path, diag, &fd, &n_bytes));
  close(fd);
  /* A name without a slash would be looked for where the loader looks. */
  absolute = realpath(path, NULL);
  grown = realloc(ort->custom_ops, (ort->n_custom_ops + 1) * sizeof *grown);
  if (grown) ort->custom_ops = grown;
  if (!absolute || !grown) PSPLIT_FAIL(psplit_i_nomem(diag));
  /* It is tried at once: a session that fails later would name its model. */
  PSPLIT_TRY(psplit_i_ort_check(ort, ort->api.CreateSessionOptions(&settings), path, diag));
  PSPLIT_TRY(add_to(ort, settings, absolute, diag));
  ort->custom_ops[ort->n_custom_ops++] = absolute;
  absolute = NULL;
out:
  if (settings) ort->api.ReleaseSessionOptions(settings);
  free(absolute);
  return code;
}

/* Domains of operators are in a table of the process, which ONNX Runtime (1.30) looks into and then
 * adds to: of two threads that create their first sessions with a domain, one fails. */
OrtStatus *psplit_i_custom_ops_create(const psplit_i_ort *ort, const char *path,
                                      const OrtSessionOptions *settings, OrtSession **out) {
  static pthread_mutex_t alone = PTHREAD_MUTEX_INITIALIZER;
  if (!ort->n_custom_ops) return ort->api.CreateSession(ort->env, path, settings, out);
  pthread_mutex_lock(&alone);
  OrtStatus *status = ort->api.CreateSession(ort->env, path, settings, out);
  pthread_mutex_unlock(&alone);
  return status;
}

void psplit_i_custom_ops_advise(const psplit_i_ort *ort, psplit_diag *diag) {
  static const char *const UNKNOWN[] = {"is not a registered function/op", "No Op registered for"};
  if (ort->n_custom_ops) return;
  for (size_t i = 0; i < sizeof UNKNOWN / sizeof *UNKNOWN; i++)
    if (strstr(diag->message, UNKNOWN[i])) diag->hint = PSPLIT_HINT_CUSTOM_OPS;
}
