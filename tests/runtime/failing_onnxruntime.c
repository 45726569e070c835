/* ONNX Runtime of which one call fails: opens the library that REAL_LIBRARY names and hands it on,
 * but for each function of the runner's that returns a status: the call that
 * failing_onnxruntime_after() chose, or of which the program says so that
 * failing_onnxruntime_asks() was given, returns one, "it fails, as it was told". */
#include <dlfcn.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "ort_api.h"

#define EXPORT __attribute__((visibility("default")))

enum { CREATE_STATUS = 0, N_ENTRIES = 413 };
typedef void entry(void);

static entry *real[N_ENTRIES], *table[N_ENTRIES];
static atomic_long n_until_failure = -1; /* of all threads */
static bool (*asked)(void);

EXPORT void failing_onnxruntime_after(long nth);
EXPORT void failing_onnxruntime_asks(bool (*whether)(void));
EXPORT int failing_onnxruntime_stop(void);
EXPORT const OrtApiBase *OrtGetApiBase(void);

void failing_onnxruntime_after(long nth) { n_until_failure = nth; }

void failing_onnxruntime_asks(bool (*whether)(void)) { asked = whether; }

/* Whether a call has failed. */
int failing_onnxruntime_stop(void) {
  const int failed = n_until_failure < 0;
  n_until_failure = -1;
  return failed;
}

static bool fails(void) {
  if (asked && asked()) return true;
  return n_until_failure >= 0 && atomic_fetch_sub(&n_until_failure, 1) == 0;
}

/* No function takes more arguments, or other ones than integers and pointers: what is not there is
 * handed on as it happens to be. */
#define PARAMETERS long a, long b, long c, long d, long e, long f, long g, long h
#define ARGUMENTS a, b, c, d, e, f, g, h

#define X(position, result, name, parameters)                                                    \
  static void *call_##position(PARAMETERS) {                                                     \
    if (fails())                                                                                 \
      return ((void *(*)(int, const char *))real[CREATE_STATUS])(1, "it fails, as it was told"); \
    return ((void *(*)(PARAMETERS))real[position])(ARGUMENTS);                                   \
  }
ORT_ENTRIES(X)
ORT_PLACEMENT_ENTRIES(X)
#undef X

#define X(position, result, name, parameters)                               \
  if (_Generic((result(*)(void))0, OrtStatus * (*)(void) : 1, default : 0)) \
    table[position] = (entry *)call_##position;

static const void *get_api(uint32_t version) {
  const OrtApiBase *(*get_base)(void) = NULL;
  void *library = dlopen(getenv("REAL_LIBRARY"), RTLD_NOW | RTLD_LOCAL);
  void *found = library ? dlsym(library, "OrtGetApiBase") : NULL;
  if (!found) abort();
  memcpy(&get_base, &found, sizeof found);
  const void *theirs = get_base()->GetApi(version);
  if (!theirs) return NULL;
  memcpy(real, theirs, sizeof real);
  memcpy(table, theirs, sizeof table);
  ORT_ENTRIES(X)
  ORT_PLACEMENT_ENTRIES(X)
  return table;
}
#undef X

static const char *get_version(void) {
  const OrtApiBase *(*get_base)(void) = NULL;
  void *found = dlsym(dlopen(getenv("REAL_LIBRARY"), RTLD_NOW | RTLD_LOCAL), "OrtGetApiBase");
  memcpy(&get_base, &found, sizeof found);
  return get_base()->GetVersionString();
}

const OrtApiBase *OrtGetApiBase(void) {
  static const OrtApiBase base = {get_api, get_version};
  return &base;
}
