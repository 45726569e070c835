/* --weights reference: stages that refer to the model's own files. Runtimes read external data only
 * at or below a model's directory, so the stages must be in a directory that contains the model,
 * among its files: inside.c puts them there. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "emit.h"

static psplit_code not_below(const char *directory, const char *file, psplit_diag *diag) {
  return psplit_i_fail_about(
    diag, PSPLIT_UNSUPPORTED,
    (psplit_i_advice){.subject = PSPLIT_SUBJECT_WEIGHTS, .hint = PSPLIT_HINT_REFERENCE_DIRECTORY},
    "reference: runtimes read weights only at or below the directory "
    "of a stage, and %s is not in %s",
    file, directory);
}

/* Path of `file`, both real, from below `directory`; NULL where it is not there. */
static const char *path_below(const char *directory, const char *file) {
  const size_t n = strcmp(directory, "/") == 0 ? 0 : strlen(directory);
  return strncmp(file, directory, n) == 0 && file[n] == '/' ? file + n + 1 : NULL;
}

psplit_code psplit_i_reference_locations(const psplit_model *model, const char *directory,
                                         psplit_i_arena *arena, psplit_diag *diag,
                                         const char *const **out) {
  psplit_code code = PSPLIT_OK;
  const char **locations = PSPLIT_NEW(arena, const char *, model->files.n);
  if (!locations) return psplit_i_nomem(diag);
  char *real = realpath(directory, NULL);
  if (!real && errno == ENOMEM) return psplit_i_nomem(diag);
  if (!real && errno != ENOENT)
    return psplit_i_fail(diag, PSPLIT_IO, "%s: %s", directory, strerror(errno));
  if (!real) return not_below(directory, model->path, diag);
  for (uint32_t f = 0; f < model->files.n && code == PSPLIT_OK; f++) {
    char buffer[PSPLIT_I_FD_PATH];
    char *file = realpath(psplit_i_model_place(model, f, buffer), NULL);
    const char *below = file ? path_below(real, file) : NULL;
    const int reason = file ? 0 : errno;
    if (below) locations[f] = psplit_i_arena_strndup(arena, below, strlen(below));
    if (reason == ENOMEM || (below && !locations[f]))
      code = psplit_i_nomem(diag);
    else if (reason)
      code = psplit_i_fail(diag, PSPLIT_IO, "%s: %s", buffer, strerror(reason));
    else if (!below)
      code = not_below(directory, f ? model->files.items[f].location : model->path, diag);
    free(file);
  }
  free(real);
  *out = locations;
  return code;
}
