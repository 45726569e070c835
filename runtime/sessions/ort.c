#include "ort.h"

#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "in_file.h"
#include "scratch_directory.h"

/* Opens the library that a caller names: a file, as all other options take, or else a library on
 * the loader's search path, which is all that dlopen looks at for a name without a slash. */
static void *open_named(const char *path) {
  char file[300]; /* names are shorter: NAME_MAX is 255 */
  const int n = strchr(path, '/') ? -1 : snprintf(file, sizeof file, "./%s", path);
  if (n > 0 && (size_t)n < sizeof file && access(file, F_OK) == 0) path = file;
  return dlopen(path, RTLD_NOW | RTLD_LOCAL);
}

/* A handle to the library, and the name it was found under. */
static void *open_library(const char *path, const char **out_name) {
  static const char *const NAMES[] = {"libonnxruntime.so.1", "libonnxruntime.so"};
  if (!path) path = getenv("PSPLIT_ONNXRUNTIME");
  if (path && *path) {
    *out_name = path;
    return open_named(path);
  }
  void *library = NULL;
  for (size_t i = 0; !library && i < sizeof NAMES / sizeof *NAMES; i++) {
    *out_name = NAMES[i];
    library = dlopen(NAMES[i], RTLD_NOW | RTLD_LOCAL);
  }
  return library;
}

/* An older library, asked for a newer table, says so on standard error: its version tells before.
 */
static void find_placement(const OrtApiBase *base, psplit_i_ort *ort) {
  char *dot, *end;
  const unsigned long major = strtoul(ort->version, &dot, 10);
  if (dot == ort->version || *dot != '.') return;
  const unsigned long minor = strtoul(dot + 1, &end, 10);
  if (end == dot + 1 || (major == 1 && minor < ORT_VERSION_PLACEMENT)) return;
  void (*const *table)(void) = NULL;
  const void *found = base->GetApi(ORT_VERSION_PLACEMENT);
  memcpy(&table, &found, sizeof table);
  if (!table) return;
#define X(position, result, member, parameters) \
  memcpy(&ort->placement.member, &table[position], sizeof ort->placement.member);
  ORT_PLACEMENT_ENTRIES(X)
#undef X
  ort->has_placement = true;
#define X(position, result, member, parameters) ort->has_placement &= table[position] != NULL;
  ORT_PLACEMENT_ENTRIES(X)
#undef X
}

static psplit_code is_not(const char *name, psplit_diag *diag) {
  return psplit_i_fail_about(diag, PSPLIT_UNSUPPORTED, PSPLIT_I_HELPS(ONNXRUNTIME),
                             "%s is not ONNX Runtime", name);
}

static psplit_code find_api(psplit_i_ort *ort, const char *name, psplit_diag *diag) {
  union {
    void *object;
    const OrtApiBase *(*function)(void);
  } get_base = {dlsym(ort->library, "OrtGetApiBase")};
  const OrtApiBase *base = get_base.object ? get_base.function() : NULL;
  if (!base || !base->GetApi || !base->GetVersionString) return is_not(name, diag);
  ort->version = base->GetVersionString();
  if (!ort->version) return is_not(name, diag);
  /* A function pointer has the size of a pointer wherever dlsym is; the table is read as such. */
  void (*const *table)(void) = NULL;
  const void *found = base->GetApi(ORT_VERSION_NEEDED);
  memcpy(&table, &found, sizeof table);
  if (!table)
    return psplit_i_fail_about(diag, PSPLIT_UNSUPPORTED, PSPLIT_I_HELPS(ONNXRUNTIME),
                               "%s is ONNX Runtime %s, which is too old: 1.%d or newer is needed",
                               name, ort->version, ORT_VERSION_NEEDED);
#define X(position, result, member, parameters) \
  memcpy(&ort->api.member, &table[position], sizeof ort->api.member);
  ORT_ENTRIES(X)
#undef X
  const char *missing = NULL;
#define X(position, result, member, parameters) \
  if (!table[position]) missing = #member;
  ORT_ENTRIES(X)
#undef X
  if (missing)
    return psplit_i_fail_about(diag, PSPLIT_UNSUPPORTED, PSPLIT_I_HELPS(ONNXRUNTIME),
                               "%s is not ONNX Runtime: it has no function %s", name, missing);
  find_placement(base, ort);
  return PSPLIT_OK;
}

psplit_code psplit_i_ort_open(const char *path, psplit_diag *diag, psplit_i_ort *out) {
  psplit_i_ort ort = {0};
  const char *name;
  /* Builds of ONNX Runtime that report home also leave a log in TMPDIR for each process. */
  setenv("ORT_DISABLE_TELEMETRY", "1", 0);
  if (!(ort.alone = malloc(sizeof(pthread_mutex_t)))) return psplit_i_nomem(diag);
  pthread_mutex_init(ort.alone, NULL);
  ort.library = open_library(path, &name);
  if (!ort.library) {
    const char *why = dlerror();
    psplit_i_ort_close(&ort);
    return psplit_i_fail_about(diag, PSPLIT_IO, PSPLIT_I_HELPS(ONNXRUNTIME),
                               "ONNX Runtime cannot be opened: %s", why ? why : name);
  }
  psplit_code code;
  PSPLIT_TRY(find_api(&ort, name, diag));
  /* It would also say on standard error, in colours, what it returns. */
  PSPLIT_TRY(
    psplit_i_ort_check(&ort, ort.api.CreateEnv(ORT_LOG_FATAL, "psplit", &ort.env), name, diag));
  PSPLIT_TRY(
    psplit_i_ort_check(&ort, ort.api.GetAllocatorWithDefaultOptions(&ort.allocator), name, diag));
  if (!ort.env || !ort.allocator) PSPLIT_TRY(is_not(name, diag));
  *out = ort;
out:
  if (code != PSPLIT_OK) psplit_i_ort_close(&ort);
  return code;
}

void psplit_i_ort_close(psplit_i_ort *ort) {
  if (ort->env) ort->api.ReleaseEnv(ort->env);
  if (ort->alone) pthread_mutex_destroy(ort->alone);
  free(ort->alone);
  for (size_t i = 0; i < ort->n_custom_ops; i++) free(ort->custom_ops[i]);
  free(ort->custom_ops);
  /* The library stays: its thread-local destructors may run later. */
  memset(ort, 0, sizeof *ort);
}

static psplit_code read_shape(const psplit_i_ort *ort, psplit_i_session_port *port,
                              const char *path, psplit_diag *diag) {
  psplit_code code;
  const OrtShapeInfo *info = NULL;
  PSPLIT_TRY(
    psplit_i_ort_check(ort, ort->api.CastTypeInfoToTensorInfo(port->type, &info), path, diag));
  port->is_tensor = info != NULL;
  int type = 0;
  if (!info) {
    code = psplit_i_ort_check(ort, ort->api.GetOnnxTypeFromTypeInfo(port->type, &type), path, diag);
    port->is_sequence = type == ORT_TYPE_SEQUENCE;
    return code;
  }
  PSPLIT_TRY(psplit_i_ort_check(ort, ort->api.GetTensorElementType(info, &type), path, diag));
  port->data_type = psplit_i_element_from_ort(type);
  PSPLIT_TRY(psplit_i_ort_check(ort, ort->api.GetDimensionsCount(info, &port->n_dims), path, diag));
  if (port->n_dims > PSPLIT_I_MAX_RANK)
    return psplit_i_fail(diag, PSPLIT_LIMIT, "%s: input %s has more than %d dimensions", path,
                         port->name, PSPLIT_I_MAX_RANK);
  PSPLIT_TRY(
    psplit_i_ort_check(ort, ort->api.GetDimensions(info, port->dims, port->n_dims), path, diag));
  PSPLIT_TRY(psplit_i_ort_check(
    ort, ort->api.GetSymbolicDimensions(info, port->symbols, port->n_dims), path, diag));
out:
  return code;
}

static psplit_code read_input(psplit_i_session *s, size_t i, size_t n_plain, const char *path,
                              psplit_diag *diag) {
  const OrtApi *api = &s->ort->api;
  OrtAllocator *allocator = s->ort->allocator;
  psplit_i_session_port *port = &s->inputs[i];
  const size_t k = i - n_plain;
  psplit_code code;
  PSPLIT_TRY(psplit_i_ort_check(
    s->ort,
    i < n_plain ? api->SessionGetInputName(s->session, i, allocator, &port->name)
                : api->SessionGetOverridableInitializerName(s->session, k, allocator, &port->name),
    path, diag));
  PSPLIT_TRY(psplit_i_ort_check(
    s->ort,
    i < n_plain ? api->SessionGetInputTypeInfo(s->session, i, &port->type)
                : api->SessionGetOverridableInitializerTypeInfo(s->session, k, &port->type),
    path, diag));
  PSPLIT_TRY(read_shape(s->ort, port, path, diag));
out:
  return code;
}

static psplit_code read_ports(psplit_i_session *s, const char *path, psplit_diag *diag) {
  psplit_code code;
  const OrtApi *api = &s->ort->api;
  size_t n_plain, n_default;
  PSPLIT_TRY(
    psplit_i_ort_check(s->ort, api->SessionGetInputCount(s->session, &n_plain), path, diag));
  PSPLIT_TRY(psplit_i_ort_check(
    s->ort, api->SessionGetOverridableInitializerCount(s->session, &n_default), path, diag));
  PSPLIT_TRY(
    psplit_i_ort_check(s->ort, api->SessionGetOutputCount(s->session, &s->n_outputs), path, diag));
  s->n_inputs = n_plain + n_default;
  s->inputs = calloc(s->n_inputs + 1, sizeof *s->inputs);
  s->outputs = calloc(s->n_outputs + 1, sizeof *s->outputs);
  if (!s->inputs || !s->outputs) return psplit_i_nomem(diag);
  for (size_t i = 0; i < s->n_inputs; i++) PSPLIT_TRY(read_input(s, i, n_plain, path, diag));
  for (size_t i = 0; i < s->n_outputs; i++)
    PSPLIT_TRY(psplit_i_ort_check(
      s->ort, api->SessionGetOutputName(s->session, i, s->ort->allocator, &s->outputs[i].name),
      path, diag));
out:
  return code;
}

/* The optimised model's weights go beside it: one file of all would end at 2 GiB. */
static psplit_code save_optimized(const psplit_i_ort *ort, OrtSessionOptions *settings,
                                  const char *path, psplit_diag *diag) {
  psplit_code code;
  PSPLIT_TRY(
    psplit_i_ort_check(ort, ort->api.SetOptimizedModelFilePath(settings, path), path, diag));
  PSPLIT_TRY(psplit_i_ort_check(
    ort,
    ort->api.AddSessionConfigEntry(
      settings, "session.optimized_model_external_initializers_file_name", "optimized.data"),
    path, diag));
  PSPLIT_TRY(psplit_i_ort_check(
    ort,
    ort->api.AddSessionConfigEntry(
      settings, "session.optimized_model_external_initializers_min_size_in_bytes", "1024"),
    path, diag));
out:
  return code;
}

static psplit_code apply(const psplit_i_ort *ort, OrtSessionOptions *settings,
                         const psplit_i_session_options *options, const char *path,
                         psplit_diag *diag) {
  psplit_code code;
  PSPLIT_TRY(psplit_i_ort_check(
    ort, ort->api.SetSessionGraphOptimizationLevel(settings, options->optimization), path, diag));
  PSPLIT_TRY(psplit_i_ort_check(
    ort, ort->api.SetIntraOpNumThreads(settings, (int)options->n_threads), path, diag));
  PSPLIT_TRY(psplit_i_ort_check(ort, ort->api.SetInterOpNumThreads(settings, 1), path, diag));
  if (options->profile_prefix)
    PSPLIT_TRY(psplit_i_ort_check(ort, ort->api.EnableProfiling(settings, options->profile_prefix),
                                  path, diag));
  if (options->optimized_path)
    PSPLIT_TRY(save_optimized(ort, settings, options->optimized_path, diag));
  for (size_t i = 0; i < options->n_config; i++)
    PSPLIT_TRY(psplit_i_ort_check(
      ort,
      ort->api.AddSessionConfigEntry(settings, options->config_keys[i], options->config_values[i]),
      options->config_keys[i], diag));
  PSPLIT_TRY(psplit_i_custom_ops_register(ort, settings, diag));
  if (options->provider) PSPLIT_TRY(psplit_i_provider_append(ort, settings, options, diag));
  PSPLIT_TRY(psplit_i_placement_prepare(ort, settings, options, diag));
out:
  return code;
}

static void free_ports(const psplit_i_ort *ort, psplit_i_session_port *ports, size_t n) {
  for (size_t i = 0; ports && i < n; i++) {
    OrtStatus *status =
      ports[i].name ? ort->api.AllocatorFree(ort->allocator, ports[i].name) : NULL;
    if (status) ort->api.ReleaseStatus(status);
    if (ports[i].type) ort->api.ReleaseTypeInfo(ports[i].type);
  }
  free(ports);
}

/* What a session that is no other's, as far as it was opened, holds. */
static void release(const psplit_i_ort *ort, psplit_i_session *session) {
  free_ports(ort, session->inputs, session->n_inputs);
  free_ports(ort, session->outputs, session->n_outputs);
  psplit_i_binding_close(session);
  if (session->run_options) ort->api.ReleaseRunOptions(session->run_options);
  if (session->session) ort->api.ReleaseSession(session->session);
}

/* Whether the optimised model was begun. ONNX Runtime begins it when all else has been done, so a
 * session that is not opened then failed because the file could not be written. */
static bool is_unsaved(const psplit_i_session_options *options) {
  return options->optimized_path && access(options->optimized_path, F_OK) == 0;
}

static psplit_code blame_room(psplit_diag *diag) {
  psplit_i_diag_add(diag,
                    "ONNX Runtime could not write the optimised model in %s; TMPDIR can name a "
                    "directory with more room",
                    psplit_i_scratch_place());
  return diag->code = PSPLIT_IO;
}

/* Whether the configuration has this entry. */
static bool configures(const psplit_i_session_options *options, const char *key) {
  size_t i = 0;
  while (i < options->n_config && strcmp(options->config_keys[i], key) != 0) i++;
  return i < options->n_config;
}

/* Creates the session. ONNX Runtime (1.30) fuses a Pad with the pool behind it, and where what it
 * pads is sent, too, takes the Identity that sends it for the only reader that is left: the pool
 * then reads a name that nothing has. Such a model is opened with its Identities. */
static psplit_code create(const psplit_i_ort *ort, OrtSessionOptions *settings,
                          const psplit_i_session_options *options, const char *path,
                          psplit_diag *diag, OrtSession **out) {
  static const char disabled[] = "optimization.disable_specified_optimizers";
  psplit_diag first = {0};
  psplit_code code =
    psplit_i_ort_check(ort, psplit_i_custom_ops_create(ort, path, settings, out), path, &first);
  if (code == PSPLIT_OK) return code;
  if (!strstr(first.message, "is not a graph input, initializer, or output of a previous node") ||
      configures(options, disabled))
    return psplit_i_fail_as(diag, &first);
  PSPLIT_TRY(psplit_i_ort_check(
    ort, ort->api.AddSessionConfigEntry(settings, disabled, "EliminateIdentity"), path, diag));
  PSPLIT_TRY(
    psplit_i_ort_check(ort, psplit_i_custom_ops_create(ort, path, settings, out), path, diag));
out:
  return code;
}

psplit_code psplit_i_session_open(const psplit_i_ort *ort, const char *path,
                                  const psplit_i_session_options *options, psplit_diag *diag,
                                  psplit_i_session *out) {
  const OrtApi *api = &ort->api;
  OrtSessionOptions *settings = NULL;
  psplit_i_session s = {.ort = ort};
  psplit_code code;
  int device = 0, fd;
  uint64_t n_bytes;
  PSPLIT_TRY(psplit_i_in_open(path, diag, &fd, &n_bytes)); /* a FIFO would be waited for */
  close(fd);
  PSPLIT_TRY(psplit_i_binding_device(options, diag, &device));
  PSPLIT_TRY(psplit_i_ort_check(ort, api->CreateSessionOptions(&settings), path, diag));
  PSPLIT_TRY(apply(ort, settings, options, path, diag));
  code = create(ort, settings, options, path, diag, &s.session);
  if (code != PSPLIT_OK) psplit_i_custom_ops_advise(ort, diag);
  if (code != PSPLIT_OK && is_unsaved(options)) code = blame_room(diag);
  PSPLIT_TRY(code);
  PSPLIT_TRY(psplit_i_placement_check(&s, options, diag));
  PSPLIT_TRY(psplit_i_ort_check(ort, api->CreateRunOptions(&s.run_options), path, diag));
  PSPLIT_TRY(read_ports(&s, path, diag));
  psplit_i_binding_open(&s, options, device);
  *out = s;
out:
  if (settings) api->ReleaseSessionOptions(settings);
  if (code != PSPLIT_OK) release(ort, &s);
  return code;
}

psplit_code psplit_i_session_share(const psplit_i_session *from, psplit_diag *diag,
                                   psplit_i_session *out) {
  psplit_i_session shared = *from;
  shared.shared = true;
  shared.run_options = NULL;
  const psplit_code code = psplit_i_ort_check(
    from->ort, from->ort->api.CreateRunOptions(&shared.run_options), "a replica", diag);
  if (code == PSPLIT_OK) *out = shared;
  return code;
}

void psplit_i_session_close(psplit_i_session *session) {
  if (!session->ort) return;
  if (session->shared)
    session->ort->api.ReleaseRunOptions(session->run_options);
  else
    release(session->ort, session);
  memset(session, 0, sizeof *session);
}

const psplit_i_session_port *psplit_i_session_input(const psplit_i_session *session,
                                                    const char *name) {
  for (size_t i = 0; i < session->n_inputs; i++)
    if (strcmp(session->inputs[i].name, name) == 0) return &session->inputs[i];
  return NULL;
}

psplit_code psplit_i_session_run(psplit_i_session *session, const psplit_i_session_io *io,
                                 psplit_diag *diag) {
  const psplit_i_ort *ort = session->ort;
  const size_t n = io->n_inputs, m = io->n_outputs;
  const OrtValue **given = calloc(n + 1, sizeof *given);
  OrtValue **got = calloc(m + 1, sizeof *got);
  size_t done = 0;
  psplit_code code = given && got ? PSPLIT_OK : psplit_i_nomem(diag);
  if (code != PSPLIT_OK) goto out;
  for (size_t i = 0; i < n; i++) given[i] = psplit_i_tensor_value(io->inputs[i]);
  PSPLIT_TRY(psplit_i_ort_check(ort,
                                ort->api.Run(session->session, session->run_options,
                                             io->input_names, given, n, io->output_names, m, got),
                                "ONNX Runtime", diag));
  for (; done < m; done++) {
    io->outputs[done] = psplit_i_tensor_wrap(ort, got[done]);
    got[done] = NULL;
    if (!io->outputs[done]) {
      code = psplit_i_nomem(diag);
      break;
    }
  }
  if (code != PSPLIT_OK) psplit_i_tensors_release(io->outputs, done); /* none of them stays there */
out:
  for (size_t i = 0; got && i < m; i++)
    if (got[i]) ort->api.ReleaseValue(got[i]);
  free(got);
  free(given);
  return code;
}

void psplit_i_session_stop(psplit_i_session *session) {
  if (!session->run_options) return;
  OrtStatus *status = session->ort->api.RunOptionsSetTerminate(session->run_options);
  if (status) session->ort->api.ReleaseStatus(status);
}

void psplit_i_session_go_on(psplit_i_session *session) {
  OrtStatus *status = session->ort->api.RunOptionsUnsetTerminate(session->run_options);
  if (status) session->ort->api.ReleaseStatus(status);
}
