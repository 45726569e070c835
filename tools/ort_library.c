#include "ort_library.h"

#include <signal.h>

bool ort_library_option(const cli *program, ort_library *library, int id, const char *argument) {
  if (id == OPT_ONNXRUNTIME) {
    library->path = argument;
    return true;
  }
  if (id != OPT_CUSTOM_OPS) return false;
  if (library->n_custom_ops == ORT_MOST_CUSTOM_OPS) {
    cli_usage(program, "--custom-ops is given more than %d times", ORT_MOST_CUSTOM_OPS);
    return false;
  }
  library->custom_ops[library->n_custom_ops++] = argument;
  return true;
}

#if PSPLIT_HAS_RUNTIME
psplit_code ort_library_open(const ort_library *library, psplit_diag *diag,
                             psplit_onnxruntime **out) {
  psplit_onnxruntime *ort = NULL;
  /* ONNX Runtime writes its profiles itself: too large a file is an error, not the end. */
  signal(SIGXFSZ, SIG_IGN);
  psplit_code code = psplit_onnxruntime_open(library->path, diag, &ort);
  for (size_t i = 0; i < library->n_custom_ops && code == PSPLIT_OK; i++)
    code = psplit_onnxruntime_add_custom_ops(ort, library->custom_ops[i], diag);
  if (code == PSPLIT_OK)
    *out = ort;
  else
    psplit_onnxruntime_close(ort);
  return code;
}
#endif
