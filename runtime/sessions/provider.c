/* Execution providers of a session. */
#include <ctype.h>
#include <dlfcn.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>

#include "ort.h"

static const char SUFFIX[] = "ExecutionProvider", CANNOT_START[] = "it cannot be started";

/* "CUDA" and "cudaexecutionprovider" both name CUDAExecutionProvider. */
static bool is_named(const char *provider, const char *name) {
  const size_t n = strlen(provider) - strlen(SUFFIX);
  return strcasecmp(provider, name) == 0 ||
         (strlen(name) == n && strncasecmp(provider, name, n) == 0);
}

static bool ends_in_suffix(const char *text) {
  const size_t n = strlen(text);
  return n > strlen(SUFFIX) && strcmp(text + n - strlen(SUFFIX), SUFFIX) == 0;
}

/* Finds the provider's full name among those of the library, which own it. */
static const char *find(char **available, int n, const char *name) {
  for (int i = 0; i < n; i++)
    if (ends_in_suffix(available[i]) && is_named(available[i], name)) return available[i];
  return NULL;
}

bool psplit_i_provider_is(const char *given, const char *name) {
  return given && is_named(name, given);
}

bool psplit_i_provider_is_alone(const char *provider) {
  /* One device, and one encoder of commands for it, that all sessions of a process share. */
  static const char *const ALONE[] = {"WebGpuExecutionProvider", "WebNNExecutionProvider",
                                      "JsExecutionProvider"};
  for (size_t i = 0; i < sizeof ALONE / sizeof *ALONE; i++)
    if (psplit_i_provider_is(provider, ALONE[i])) return true;
  return false;
}

static psplit_code not_there(char **available, int n, const char *name, psplit_diag *diag) {
  psplit_i_text list = {0};
  for (int i = 0; i < n; i++) {
    if (!ends_in_suffix(available[i])) continue;
    psplit_i_text_addf(&list, "%s%.*s", list.n ? ", " : "",
                       (int)(strlen(available[i]) - strlen(SUFFIX)), available[i]);
  }
  const psplit_code code = psplit_i_fail(
    diag, PSPLIT_UNSUPPORTED, "execution provider %s is not in this ONNX Runtime, which has %s",
    name, list.failed || !list.n ? "none" : list.bytes);
  psplit_i_text_fini(&list);
  return code;
}

/* Providers that are libraries of their own, beside that of ONNX Runtime: what the loader says of
 * one that ONNX Runtime did not get, of which it returns no more than that. */
static void say_unloaded(const psplit_i_ort *ort, const char *provider, psplit_diag *diag) {
  static const char SHARED[] = "shared";
  const char *const libraries[] = {SHARED, provider};
  const void *inside = dlsym(ort->library, "OrtGetApiBase");
  Dl_info at = {0};
  if (!diag || !strstr(diag->message, "Failed to load") || !inside || !dladdr(inside, &at) ||
      !at.dli_fname)
    return;
  const char *slash = strrchr(at.dli_fname, '/');
  for (size_t i = 0; i < sizeof libraries / sizeof *libraries; i++) {
    char path[PATH_MAX], *c;
    snprintf(path, sizeof path, "%.*s", slash ? (int)(slash + 1 - at.dli_fname) : 0, at.dli_fname);
    c = path + strlen(path);
    snprintf(c, sizeof path - (size_t)(c - path), "libonnxruntime_providers_%.*s.so",
             (int)strcspn(libraries[i], "E"), libraries[i]);
    for (; *c; c++) *c = (char)tolower((unsigned char)*c);
    void *library = dlopen(path, RTLD_LAZY | RTLD_LOCAL);
    if (library) {
      dlclose(library);
      continue;
    }
    const char *why = dlerror();
    psplit_i_diag_add(diag, "%s", why ? why : path);
    return;
  }
}

/* Of a provider with options in an object of their own. */
typedef struct own_options {
  OrtStatus *(*create)(void **);
  OrtStatus *(*update)(void *, const char *const *keys, const char *const *values, size_t n);
  OrtStatus *(*append)(OrtSessionOptions *, const void *);
  void (*release)(void *);
} own_options;

static psplit_code append_own(const psplit_i_ort *ort, OrtSessionOptions *settings,
                              const psplit_i_session_options *options, const own_options *with,
                              psplit_diag *diag) {
  void *own = NULL;
  psplit_code code;
  PSPLIT_TRY(psplit_i_ort_check(ort, with->create(&own), CANNOT_START, diag));
  if (options->n_provider_options)
    PSPLIT_TRY(
      psplit_i_ort_check(ort,
                         with->update(own, options->provider_keys, options->provider_values,
                                      options->n_provider_options),
                         CANNOT_START, diag));
  PSPLIT_TRY(psplit_i_ort_check(ort, with->append(settings, own), CANNOT_START, diag));
out:
  if (own) with->release(own);
  return code;
}

/* The generic function has short names of its own for some. */
static const char *generic_name(const char *provider, char *buffer, size_t n) {
  static const char *const ODD[][2] = {
    {"XnnpackExecutionProvider", "XNNPACK"}, {"WebGpuExecutionProvider", "WebGPU"},
    {"WebNNExecutionProvider", "WEBNN"},     {"AzureExecutionProvider", "AZURE"},
    {"DmlExecutionProvider", "DML"},         {"JsExecutionProvider", "JS"}};
  for (size_t i = 0; i < sizeof ODD / sizeof *ODD; i++)
    if (strcmp(provider, ODD[i][0]) == 0) return ODD[i][1];
  snprintf(buffer, n, "%.*s", (int)(strlen(provider) - strlen(SUFFIX)), provider);
  return buffer;
}

static psplit_code append(const psplit_i_ort *ort, OrtSessionOptions *settings,
                          const psplit_i_session_options *options, const char *provider,
                          psplit_diag *diag) {
  const OrtApi *api = &ort->api;
  char buffer[64];
  if (strcmp(provider, "CPUExecutionProvider") == 0) {
    if (!options->n_provider_options) return PSPLIT_OK;
    return psplit_i_fail(diag, PSPLIT_USAGE, "there are no options");
  }
#define OWN(name, KIND)                                                                         \
  if (strcmp(provider, name "ExecutionProvider") == 0)                                          \
    return append_own(                                                                          \
      ort, settings, options,                                                                   \
      &(own_options){api->Create##KIND##ProviderOptions, api->Update##KIND##ProviderOptions,    \
                     api->AppendExecutionProvider_##KIND, api->Release##KIND##ProviderOptions}, \
      diag);
  OWN("CUDA", CUDA)
  OWN("Tensorrt", TensorRT)
  OWN("Dnnl", Dnnl)
  OWN("CANN", CANN)
#undef OWN
  return psplit_i_ort_check(
    ort,
    api->SessionOptionsAppendExecutionProvider(
      settings, generic_name(provider, buffer, sizeof buffer), options->provider_keys,
      options->provider_values, options->n_provider_options),
    CANNOT_START, diag);
}

psplit_code psplit_i_provider_append(const psplit_i_ort *ort, OrtSessionOptions *settings,
                                     const psplit_i_session_options *options, psplit_diag *diag) {
  char **available = NULL;
  int n = 0;
  psplit_code code;
  PSPLIT_TRY(psplit_i_ort_check(ort, ort->api.GetAvailableProviders(&available, &n),
                                "execution providers", diag));
  const char *provider = find(available, n, options->provider);
  if (!provider) {
    code = not_there(available, n, options->provider, diag);
  } else {
    code = append(ort, settings, options, provider, diag);
    if (code == PSPLIT_INVALID) say_unloaded(ort, provider, diag);
    if (code == PSPLIT_INVALID) code = diag->code = PSPLIT_UNSUPPORTED; /* the stage is well */
    if (code != PSPLIT_OK) psplit_i_diag_context(diag, "execution provider %s", options->provider);
  }
out:
  if (available) {
    OrtStatus *status = ort->api.ReleaseAvailableProviders(available, n);
    if (status) ort->api.ReleaseStatus(status);
  }
  return code;
}
