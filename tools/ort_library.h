/* Which ONNX Runtime a command runs models in: the library, and custom operators for it. */
#ifndef PSPLIT_TOOLS_ORT_LIBRARY_H
#define PSPLIT_TOOLS_ORT_LIBRARY_H

#include <psplit/run.h>

#include "cli.h"

enum { OPT_ONNXRUNTIME = 5000, OPT_CUSTOM_OPS };

/* Rows of an option table; `when` begins what help says of both. */
#define ORT_LIBRARY_OPTIONS_WHEN(when, or_else)                                             \
  {OPT_ONNXRUNTIME, "onnxruntime", "FILE", when "libonnxruntime.so" or_else}, {             \
    OPT_CUSTOM_OPS, "custom-ops", "FILE", when "a library of custom operators (repeatable)" \
  }
#define ORT_LIBRARY_OPTIONS \
  ORT_LIBRARY_OPTIONS_WHEN("", "; default: PSPLIT_ONNXRUNTIME, the loader's")

enum { ORT_MOST_CUSTOM_OPS = 16 };

typedef struct ort_library {
  const char *path; /* NULL: PSPLIT_ONNXRUNTIME, else where the loader looks */
  const char *custom_ops[ORT_MOST_CUSTOM_OPS];
  size_t n_custom_ops;
} ort_library;

/* Takes one of these options; false after an error line, or where `id` is none of them. */
bool ort_library_option(const cli *program, ort_library *library, int id, const char *argument);

/* The caller closes *out. Errors: those of psplit_onnxruntime_open and _add_custom_ops. */
PSPLIT_MUST_USE psplit_code ort_library_open(const ort_library *library, psplit_diag *diag,
                                             psplit_onnxruntime **out); /* with the runtime */

#endif
