/* Plans: made, written as stages, annotations and certificates. */
#include "plan.h"

#include <psplit/view.h>
#include <stdlib.h>
#include <string.h>

#include "plan_options.h"

typedef struct plan_object {
  PyObject_HEAD PyObject *model;
  psplit_planner *planner;
  plan_options options;
  PyObject *log;
  psplit_logger logger;
  bool log_failed;
} plan_object;

static PyObject *plan_type;

static psplit_model *model_of(const plan_object *self) {
  return ((model_object *)self->model)->model;
}

static void plan_dealloc(PyObject *object) {
  PyTypeObject *type = Py_TYPE(object);
  plan_object *self = (plan_object *)object;
  psplit_planner_destroy(self->planner);
  plan_options_free(&self->options);
  Py_XDECREF(self->log);
  Py_XDECREF(self->model);
  freefunc release = (freefunc)PyType_GetSlot(type, Py_tp_free);
  release(object);
  Py_DECREF(type);
}

/* A line of the library to the callable `log`; what that raises is reported, and it is asked no
 * more. */
static void log_line(void *user, psplit_severity severity, const char *line) {
  static const char *const NAMES[] = {"note", "warning", "progress"};
  plan_object *self = user;
  const PyGILState_STATE state = PyGILState_Ensure();
  if (!self->log_failed) {
    PyObject *result = PyObject_CallFunction(self->log, "ss", NAMES[severity], line);
    self->log_failed = !result;
    Py_XDECREF(result);
    if (self->log_failed) PyErr_WriteUnraisable(self->log);
  }
  PyGILState_Release(state);
}

/* Files that options of passes name. */
static psplit_code read_text(void *user, const char *path, psplit_diag *diag, char **out_text,
                             size_t *out_n) {
  (void)user;
  return psplit_file_read(path, NULL, diag, out_text, out_n);
}

PyObject *model_plan(PyObject *model, PyObject *args) {
  PyObject *dict, *log;
  if (!PyArg_ParseTuple(args, "O!O", &PyDict_Type, &dict, &log)) return NULL;
  plan_object *self = (plan_object *)PyType_GenericAlloc((PyTypeObject *)plan_type, 0);
  if (!self) return NULL;
  Py_INCREF(model);
  self->model = model;
  if (!plan_options_take(dict, &self->options)) {
    Py_DECREF(self);
    return NULL;
  }
  psplit_planner_options *options = &self->options.planner;
  options->read_text = read_text;
  if (log != Py_None) {
    Py_INCREF(log);
    self->log = log;
    self->logger = (psplit_logger){.emit = log_line, .user = self};
    options->logger = &self->logger;
  }
  psplit_diag diag = {.code = PSPLIT_OK};
  psplit_code code;
  const guard g = guard_begin();
  options->cancel = guard_cancel(&g);
  Py_BEGIN_ALLOW_THREADS;
  code = psplit_planner_create(model_of(self), options, &diag, &self->planner);
  if (code == PSPLIT_OK) code = psplit_planner_run(self->planner, self->options.passes, &diag);
  if (code == PSPLIT_OK && !psplit_planner_plan(self->planner))
    code = psplit_diag_fail(&diag, PSPLIT_USAGE, "the passes make no plan: they need partition");
  Py_END_ALLOW_THREADS;
  guard_end(&g);
  if (code != PSPLIT_OK) {
    raise_error(code, &diag);
    Py_CLEAR(self);
  }
  return (PyObject *)self;
}

/* A text that the library made, which it frees; or what the library says. */
static PyObject *text_or_error(psplit_code code, const psplit_diag *diag, char *text) {
  if (code != PSPLIT_OK) return raise_error(code, diag);
  PyObject *result = PyUnicode_FromString(text);
  free(text);
  return result;
}

static PyObject *plan_manifest(PyObject *object, PyObject *args) {
  plan_object *self = (plan_object *)object;
  int io, weights;
  if (!PyArg_ParseTuple(args, "pi", &io, &weights)) return NULL;
  psplit_emit_options options;
  psplit_emit_options_init(&options);
  options.boundary = io ? PSPLIT_BOUNDARY_IO : PSPLIT_BOUNDARY_SENDRECV;
  options.weights = (psplit_weights)weights;
  psplit_diag diag = {.code = PSPLIT_OK};
  psplit_code code;
  char *text = NULL;
  Py_BEGIN_ALLOW_THREADS;
  code =
    psplit_manifest(model_of(self), psplit_planner_plan(self->planner), &options, &diag, &text);
  Py_END_ALLOW_THREADS;
  return text_or_error(code, &diag, text);
}

static psplit_code prove(void *model, const char *directory, psplit_diag *diag) {
  return psplit_verify(directory, model, NULL, diag, NULL);
}

static PyObject *plan_emit(PyObject *object, PyObject *args) {
  plan_object *self = (plan_object *)object;
  const char *directory;
  int io, weights, replace, verify, no_sync;
  unsigned int n_threads;
  const char *name_template;
  if (!PyArg_ParseTuple(args, "spippIzp", &directory, &io, &weights, &replace, &verify, &n_threads,
                        &name_template, &no_sync))
    return NULL;
  psplit_model *model = model_of(self);
  psplit_emit_options options;
  psplit_emit_options_init(&options);
  options.boundary = io ? PSPLIT_BOUNDARY_IO : PSPLIT_BOUNDARY_SENDRECV;
  options.weights = (psplit_weights)weights;
  options.replace = replace;
  options.n_threads = n_threads;
  options.name_template = name_template;
  options.no_sync = no_sync;
  if (verify && !psplit_model_n_inlined(model)) {
    options.accept = prove;
    options.accept_user = model;
  }
  psplit_diag diag = {.code = PSPLIT_OK};
  psplit_code code;
  const guard g = guard_begin();
  options.cancel = guard_cancel(&g);
  Py_BEGIN_ALLOW_THREADS;
  code = psplit_emit(model, psplit_planner_plan(self->planner), directory, &options, &diag);
  Py_END_ALLOW_THREADS;
  guard_end(&g);
  if (code != PSPLIT_OK) return raise_error(code, &diag);
  Py_RETURN_NONE;
}

static PyObject *plan_annotate(PyObject *object, PyObject *args) {
  plan_object *self = (plan_object *)object;
  const char *path;
  int form, replace;
  if (!PyArg_ParseTuple(args, "sip", &path, &form, &replace)) return NULL;
  psplit_emit_options options;
  psplit_emit_options_init(&options);
  options.replace = replace != 0;
  psplit_diag diag = {.code = PSPLIT_OK};
  psplit_code code;
  const guard g = guard_begin();
  options.cancel = guard_cancel(&g);
  Py_BEGIN_ALLOW_THREADS;
  code = psplit_emit_annotated(model_of(self), psplit_planner_plan(self->planner),
                               (psplit_annotation)form, path, &options, &diag);
  Py_END_ALLOW_THREADS;
  guard_end(&g);
  if (code != PSPLIT_OK) return raise_error(code, &diag);
  Py_RETURN_NONE;
}

/* The provider of the device of that name; NULL: the CPU's. */
static const char *provider_of(const psplit_devices *devices, const char *name) {
  for (uint32_t d = 0; devices && d < psplit_devices_count(devices); d++)
    if (strcmp(psplit_devices_name(devices, d), name) == 0)
      return psplit_devices_session(devices, d)->provider;
  return NULL;
}

static PyObject *plan_name_assignment(PyObject *object, PyObject *unused) {
  (void)unused;
  const plan_object *self = (plan_object *)object;
  const psplit_plan *plan = psplit_planner_plan(self->planner);
  const char **providers = calloc((size_t)plan->n_stages + 1, sizeof *providers);
  if (!providers) return PyErr_NoMemory();
  for (uint32_t s = 0; s < plan->n_stages; s++)
    providers[s] = provider_of(self->options.devices, plan->stages[s].device);
  psplit_diag diag = {.code = PSPLIT_OK};
  char *text = NULL;
  const psplit_code code = psplit_name_assignment(model_of(self), plan, providers, &diag, &text);
  free(providers);
  return text_or_error(code, &diag, text);
}

/* (problem, certificate, bound_ns) */
static PyObject *plan_certificate(PyObject *object, PyObject *unused) {
  (void)unused;
  const plan_object *self = (plan_object *)object;
  psplit_diag diag = {.code = PSPLIT_OK};
  psplit_certified made;
  psplit_code code;
  Py_BEGIN_ALLOW_THREADS;
  code = psplit_planner_certificate(self->planner, &diag, &made);
  Py_END_ALLOW_THREADS;
  if (code != PSPLIT_OK) return raise_error(code, &diag);
  PyObject *result =
    Py_BuildValue("(s#s#L)", made.problem, (Py_ssize_t)made.n_problem, made.certificate,
                  (Py_ssize_t)made.n_certificate, (long long)made.bound_ns);
  psplit_certified_fini(&made);
  return result;
}

/* What onnx-pipeline-inspect --format html shows of it. */
static PyObject *plan_page(PyObject *object, PyObject *args) {
  const plan_object *self = (plan_object *)object;
  psplit_view_options options;
  psplit_view_options_init(&options);
  options.format = PSPLIT_VIEW_HTML;
  if (!PyArg_ParseTuple(args, "z", &options.title)) return NULL;
  psplit_diag diag = {.code = PSPLIT_OK};
  psplit_snapshot *snapshot = NULL;
  char *text = NULL;
  psplit_code code;
  Py_BEGIN_ALLOW_THREADS;
  code = psplit_snapshot_take(self->planner, &diag, &snapshot);
  if (code == PSPLIT_OK) code = psplit_snapshot_count(self->planner, snapshot, &diag);
  if (code == PSPLIT_OK)
    code = psplit_view((const psplit_snapshot *const *)&snapshot, 1, &options, &diag, &text, NULL);
  psplit_snapshot_destroy(snapshot);
  Py_END_ALLOW_THREADS;
  return text_or_error(code, &diag, text);
}

static PyMethodDef plan_methods[] = {{"manifest", plan_manifest, METH_VARARGS, NULL},
                                     {"emit", plan_emit, METH_VARARGS, NULL},
                                     {"annotate", plan_annotate, METH_VARARGS, NULL},
                                     {"name_assignment", plan_name_assignment, METH_NOARGS, NULL},
                                     {"certificate", plan_certificate, METH_NOARGS, NULL},
                                     {"page", plan_page, METH_VARARGS, NULL},
                                     {NULL, NULL, 0, NULL}};
static PyType_Slot plan_slots[] = {
  {Py_tp_dealloc, (void *)plan_dealloc}, {Py_tp_methods, plan_methods}, {0, NULL}};
static PyType_Spec plan_spec = {"psplit._psplit.Plan", sizeof(plan_object), 0,
                                Py_TPFLAGS_DEFAULT | Py_TPFLAGS_DISALLOW_INSTANTIATION, plan_slots};

PyObject *plan_type_make(void) {
  plan_type = PyType_FromSpec(&plan_spec);
  return plan_type;
}
