/* _psplit: libpsplit for Python, by the limited API of CPython 3.10. Thin: options in, JSON and
 * numbers out; __init__.py makes them pleasant. Calls run without the interpreter's lock, and
 * Ctrl-C ends those of the main thread early. */
#define PY_SSIZE_T_CLEAN
#define Py_LIMITED_API 0x030A0000
#include <Python.h>
/* Python.h comes first, as it asks. */
#include <psplit/merge.h>
#include <psplit/psplit.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>

static PyObject *error_type;

/* --- Ctrl-C --- */

/* What runs in the main thread is told by this flag, and Python's own handler hears the signal,
 * too. */
static volatile int interrupted;
static struct sigaction python_handler;

static void on_interrupt(int number) {
  interrupted = 1;
  if (python_handler.sa_handler != SIG_DFL && python_handler.sa_handler != SIG_IGN)
    python_handler.sa_handler(number);
}

typedef struct guard {
  bool main_thread;
} guard;

/* Whether this is the thread that Python handles signals in: PyErr_CheckSignals looks at them there
 * alone, and so does threading.main_thread(). */
static bool in_main_thread(void) {
  bool is_main = false;
  PyObject *threading = PyImport_ImportModule("threading");
  PyObject *main = threading ? PyObject_CallMethod(threading, "main_thread", NULL) : NULL;
  PyObject *current = main ? PyObject_CallMethod(threading, "current_thread", NULL) : NULL;
  is_main = current && current == main;
  Py_XDECREF(current);
  Py_XDECREF(main);
  Py_XDECREF(threading);
  PyErr_Clear();
  return is_main;
}

static guard begin(void) {
  guard g = {in_main_thread()};
  if (!g.main_thread) return g;
  struct sigaction action = {.sa_handler = on_interrupt};
  interrupted = 0;
  sigaction(SIGINT, &action, &python_handler);
  /* SIG_IGN stays, as whoever set it wants. */
  if (python_handler.sa_handler == SIG_IGN) sigaction(SIGINT, &python_handler, NULL);
  return g;
}

static void end(const guard *g) {
  if (g->main_thread) sigaction(SIGINT, &python_handler, NULL);
}

static const volatile int *cancel_of(const guard *g) {
  return g->main_thread ? &interrupted : NULL;
}

/* --- errors --- */

/* [hint] The names of those that __init__.py has words for. */
static const char *const HINTS[PSPLIT_N_HINTS] = {
  [PSPLIT_HINT_REPLACE] = "REPLACE",
  [PSPLIT_HINT_FOLLOW_SYMLINKS] = "FOLLOW_SYMLINKS",
  [PSPLIT_HINT_MAX_GRAPH_BYTES] = "MAX_GRAPH_BYTES",
  [PSPLIT_HINT_DATA_DIRECTORY] = "DATA_DIRECTORY",
  [PSPLIT_HINT_INLINE_KNOWN] = "INLINE_KNOWN",
  [PSPLIT_HINT_INLINE_ASSUMED] = "INLINE_ASSUMED",
  [PSPLIT_HINT_CONFIGURATION] = "CONFIGURATION",
  [PSPLIT_HINT_IGNORE_ANNOTATIONS] = "IGNORE_ANNOTATIONS",
  [PSPLIT_HINT_MORE_STAGES] = "MORE_STAGES",
  [PSPLIT_HINT_TIED_DUPLICATE] = "TIED_DUPLICATE",
  [PSPLIT_HINT_DIMS] = "DIMS",
  [PSPLIT_HINT_MEASURED_DIMS] = "MEASURED_DIMS",
  [PSPLIT_HINT_ALLOW_INVALID] = "ALLOW_INVALID",
  [PSPLIT_HINT_BOUNDARY_IO] = "BOUNDARY_IO",
  [PSPLIT_HINT_WEIGHTS_EXTERNAL] = "WEIGHTS_EXTERNAL",
  [PSPLIT_HINT_REFERENCE_DIRECTORY] = "REFERENCE_DIRECTORY",
};

static PyObject *hint_arguments(const psplit_diag *diag) {
  PyObject *list = PyList_New(0);
  for (uint32_t i = 0; list && i < diag->n_hint_arguments; i++) {
    PyObject *text = PyUnicode_FromString(psplit_hint_argument(diag, i));
    if (!text || PyList_Append(list, text) != 0) Py_CLEAR(list);
    Py_XDECREF(text);
  }
  return list;
}

/* Error(code, message, subject, hint, hint_arguments); always NULL. */
static PyObject *raise_error(psplit_code code, const psplit_diag *diag) {
  if (PyErr_CheckSignals() != 0) return NULL;
  PyObject *arguments = hint_arguments(diag);
  PyObject *value =
    arguments ? Py_BuildValue("(szzzO)", psplit_code_name(code), diag->message,
                              psplit_subject_name(diag->subject), HINTS[diag->hint], arguments)
              : NULL;
  if (value) PyErr_SetObject(error_type, value);
  Py_XDECREF(value);
  Py_XDECREF(arguments);
  return NULL;
}

/* --- lists of strings that outlive a call --- */

typedef struct strings {
  char **items;
  size_t n;
} strings;

static void strings_free(strings *list) {
  for (size_t i = 0; i < list->n; i++) free(list->items[i]);
  free(list->items);
  *list = (strings){0};
}

/* False with an exception. */
static bool strings_take(PyObject *from, strings *out) {
  *out = (strings){0};
  const Py_ssize_t n = PySequence_Size(from);
  if (n < 0) return false;
  out->items = calloc((size_t)n + 1, sizeof *out->items);
  if (!out->items) return PyErr_NoMemory(), false;
  for (Py_ssize_t i = 0; i < n; i++) {
    PyObject *item = PySequence_GetItem(from, i);
    const char *text = item ? PyUnicode_AsUTF8AndSize(item, NULL) : NULL;
    if (text) out->items[out->n] = strdup(text);
    Py_XDECREF(item);
    if (!text) return false;
    if (!out->items[out->n++]) return PyErr_NoMemory(), false;
  }
  return true;
}

/* "NAME=VALUE" cut in two at the last '='. */
static bool dims_take(strings *list, psplit_dim_value **out) {
  *out = calloc(list->n + 1, sizeof **out);
  if (!*out) return PyErr_NoMemory(), false;
  for (size_t i = 0; i < list->n; i++) {
    char *equals = strrchr(list->items[i], '=');
    if (!equals) return PyErr_SetString(PyExc_ValueError, "a dimension is NAME=VALUE"), false;
    *equals = 0;
    (*out)[i] = (psplit_dim_value){.name = list->items[i], .value = strtoll(equals + 1, NULL, 10)};
  }
  return true;
}

/* --- Model --- */

typedef struct model_object {
  PyObject_HEAD psplit_model *model;
} model_object;

static PyObject *model_type, *plan_type;

static void model_dealloc(PyObject *self) {
  PyTypeObject *type = Py_TYPE(self);
  psplit_model_close(((model_object *)self)->model);
  freefunc release = (freefunc)PyType_GetSlot(type, Py_tp_free);
  release(self);
  Py_DECREF(type);
}

static PyObject *open_model(PyObject *module, PyObject *args) {
  (void)module;
  const char *path, *bytes, *name, *data_directory;
  Py_ssize_t n_bytes;
  int follow, is_stage;
  unsigned long long max_graph_bytes;
  PyObject *nodes, *branches;
  if (!PyArg_ParseTuple(args, "zz#zzppKOO", &path, &bytes, &n_bytes, &name, &data_directory,
                        &follow, &is_stage, &max_graph_bytes, &nodes, &branches))
    return NULL;
  strings ifs = {0};
  psplit_inline_if *choices = NULL;
  model_object *self = NULL;
  if (!strings_take(nodes, &ifs)) goto out;
  choices = calloc(ifs.n + 1, sizeof *choices);
  if (!choices) {
    PyErr_NoMemory();
    goto out;
  }
  for (size_t i = 0; i < ifs.n; i++) {
    PyObject *branch = PySequence_GetItem(branches, (Py_ssize_t)i);
    choices[i] = (psplit_inline_if){ifs.items[i], branch && PyObject_IsTrue(branch) == 1};
    Py_XDECREF(branch);
    if (!branch) goto out;
  }
  self = (model_object *)PyType_GenericAlloc((PyTypeObject *)model_type, 0);
  if (!self) goto out;
  psplit_read_options options;
  psplit_read_options_init(&options);
  options.follow_symlinks = follow;
  options.is_stage = is_stage;
  options.max_graph_bytes = max_graph_bytes;
  options.data_directory = data_directory;
  options.inline_ifs = choices;
  options.n_inline_ifs = ifs.n;
  psplit_diag diag = {.code = PSPLIT_OK};
  psplit_code code;
  const guard g = begin();
  options.cancel = cancel_of(&g);
  Py_BEGIN_ALLOW_THREADS;
  code = bytes
           ? psplit_model_open_memory(bytes, (size_t)n_bytes, name, &options, &diag, &self->model)
           : psplit_model_open(path, &options, &diag, &self->model);
  Py_END_ALLOW_THREADS;
  end(&g);
  if (code != PSPLIT_OK) {
    raise_error(code, &diag);
    Py_CLEAR(self);
  }
out:
  free(choices);
  strings_free(&ifs);
  return (PyObject *)self;
}

static PyObject *model_inlined(PyObject *self, PyObject *unused) {
  (void)unused;
  const psplit_model *model = ((model_object *)self)->model;
  PyObject *list = PyList_New(0);
  for (uint32_t i = 0; list && i < psplit_model_n_inlined(model); i++) {
    const psplit_inlined *row = psplit_model_inlined(model, i);
    PyObject *item = Py_BuildValue("(sszO)", row->node, row->then_branch ? "then" : "else",
                                   row->condition, row->assumed ? Py_True : Py_False);
    if (!item || PyList_Append(list, item) != 0) Py_CLEAR(list);
    Py_XDECREF(item);
  }
  return list;
}

/* --- Plan --- */

typedef struct plan_object {
  PyObject_HEAD PyObject *model;
  psplit_planner *planner;
  psplit_devices *devices;
  psplit_cost_table **tables;
  size_t n_tables;
  strings names, dims, pins, together; /* that the planner's options point to */
  psplit_dim_value *sizes;
  PyObject *log;
  psplit_logger logger;
  bool log_failed;
  char *solver, *configuration;
} plan_object;

static void plan_dealloc(PyObject *object) {
  PyTypeObject *type = Py_TYPE(object);
  plan_object *self = (plan_object *)object;
  psplit_planner_destroy(self->planner);
  psplit_devices_destroy(self->devices);
  for (size_t i = 0; i < self->n_tables; i++) psplit_cost_table_destroy(self->tables[i]);
  free(self->tables);
  strings_free(&self->names);
  strings_free(&self->dims);
  strings_free(&self->pins);
  strings_free(&self->together);
  free(self->sizes);
  free(self->solver);
  free(self->configuration);
  Py_XDECREF(self->log);
  Py_XDECREF(self->model);
  freefunc release = (freefunc)PyType_GetSlot(type, Py_tp_free);
  release(object);
  Py_DECREF(type);
}

/* A line of the library to the callable `log`; what that raises ends the call later. */
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

static bool costs_take(plan_object *self, const strings *texts, psplit_diag *diag) {
  self->tables = calloc(texts->n + 1, sizeof *self->tables);
  if (!self->tables) return PyErr_NoMemory(), false;
  for (size_t i = 0; i < texts->n; i++, self->n_tables++) {
    const psplit_code code = psplit_cost_table_parse(
      self->names.items[i], texts->items[i], strlen(texts->items[i]), diag, &self->tables[i]);
    if (code != PSPLIT_OK) return raise_error(code, diag), false;
  }
  return true;
}

/* A preset's name or the text of a devices file; NULL: none. */
static bool devices_take(plan_object *self, const char *preset, const char *text,
                         uint32_t *io_stages, psplit_diag *diag) {
  psplit_code code = PSPLIT_OK;
  if (preset)
    code = psplit_devices_preset(preset, *io_stages ? *io_stages : 1, diag, &self->devices);
  if (text) code = psplit_devices_parse(text, strlen(text), diag, &self->devices);
  if (code != PSPLIT_OK) return raise_error(code, diag), false;
  if (!*io_stages) *io_stages = self->devices ? psplit_devices_count(self->devices) : 1;
  return true;
}

static PyObject *model_plan(PyObject *model, PyObject *args) {
  unsigned int n_stages, depth, n_threads;
  const char *preset, *devices_text, *solver, *passes, *configuration;
  PyObject *dims, *cost_names, *cost_texts, *pins, *together, *log;
  int tied, latency, ignore_annotations, allow_invalid, given_order, overlap, per_pair;
  double time_limit;
  unsigned long long seed;
  if (!PyArg_ParseTuple(args, "IzzOOOOOiIpzdKIzpzppppO", &n_stages, &preset, &devices_text, &dims,
                        &cost_names, &cost_texts, &pins, &together, &tied, &depth, &latency,
                        &solver, &time_limit, &seed, &n_threads, &passes, &ignore_annotations,
                        &configuration, &allow_invalid, &given_order, &overlap, &per_pair, &log))
    return NULL;
  plan_object *self = (plan_object *)PyType_GenericAlloc((PyTypeObject *)plan_type, 0);
  if (!self) return NULL;
  Py_INCREF(model);
  self->model = model;
  strings texts = {0};
  psplit_diag diag = {.code = PSPLIT_OK};
  psplit_code code = PSPLIT_OK;
  psplit_planner_options options;
  psplit_planner_options_init(&options);
  bool ok = strings_take(cost_names, &self->names) && strings_take(cost_texts, &texts) &&
            strings_take(dims, &self->dims) && strings_take(pins, &self->pins) &&
            strings_take(together, &self->together) && dims_take(&self->dims, &self->sizes) &&
            costs_take(self, &texts, &diag) &&
            devices_take(self, preset, devices_text, &n_stages, &diag);
  self->solver = solver ? strdup(solver) : NULL;
  self->configuration = configuration ? strdup(configuration) : NULL;
  strings_free(&texts);
  if (!ok) {
    Py_DECREF(self);
    return NULL;
  }
  options.n_stages = n_stages;
  options.devices = self->devices;
  options.dims = self->sizes;
  options.n_dims = self->dims.n;
  options.costs = (const psplit_cost_table *const *)self->tables;
  options.n_costs = self->n_tables;
  options.pins = (const char *const *)self->pins.items;
  options.n_pins = self->pins.n;
  options.keep_together = (const char *const *)self->together.items;
  options.n_keep_together = self->together.n;
  options.tied_weights = (psplit_tied_weights)tied;
  options.queue_depth = depth;
  options.objective = latency ? PSPLIT_LATENCY : PSPLIT_THROUGHPUT;
  options.solver = self->solver;
  if (time_limit > 0) {
    options.time_limit_s = time_limit;
    options.limit_by_work = false;
  }
  options.seed = seed;
  options.n_threads = n_threads;
  options.ignore_annotations = ignore_annotations;
  options.configuration = self->configuration;
  options.allow_invalid = allow_invalid;
  options.device_order = given_order ? PSPLIT_DEVICE_ORDER_GIVEN : PSPLIT_DEVICE_ORDER_CHOSEN;
  options.overlap = overlap;
  options.message_latency = per_pair ? PSPLIT_LATENCY_PER_PAIR : PSPLIT_LATENCY_PER_TENSOR;
  if (log != Py_None) {
    Py_INCREF(log);
    self->log = log;
    self->logger = (psplit_logger){.emit = log_line, .user = self};
    options.logger = &self->logger;
  }
  const guard g = begin();
  options.cancel = cancel_of(&g);
  Py_BEGIN_ALLOW_THREADS;
  code = psplit_planner_create(((model_object *)model)->model, &options, &diag, &self->planner);
  if (code == PSPLIT_OK) code = psplit_planner_run(self->planner, passes, &diag);
  if (code == PSPLIT_OK && !psplit_planner_plan(self->planner))
    code = psplit_diag_fail(&diag, PSPLIT_USAGE, "the passes make no plan: they need partition");
  Py_END_ALLOW_THREADS;
  end(&g);
  if (code != PSPLIT_OK) {
    raise_error(code, &diag);
    Py_CLEAR(self);
  }
  return (PyObject *)self;
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
  code = psplit_manifest(((model_object *)self->model)->model, psplit_planner_plan(self->planner),
                         &options, &diag, &text);
  Py_END_ALLOW_THREADS;
  if (code != PSPLIT_OK) return raise_error(code, &diag);
  PyObject *result = PyUnicode_FromString(text);
  free(text);
  return result;
}

static psplit_code prove(void *model, const char *directory, psplit_diag *diag) {
  return psplit_verify(directory, model, NULL, diag, NULL);
}

static PyObject *plan_emit(PyObject *object, PyObject *args) {
  plan_object *self = (plan_object *)object;
  const char *directory;
  int io, weights, replace, verify;
  unsigned int n_threads;
  const char *name_template;
  if (!PyArg_ParseTuple(args, "spippIz", &directory, &io, &weights, &replace, &verify, &n_threads,
                        &name_template))
    return NULL;
  psplit_model *model = ((model_object *)self->model)->model;
  psplit_emit_options options;
  psplit_emit_options_init(&options);
  options.boundary = io ? PSPLIT_BOUNDARY_IO : PSPLIT_BOUNDARY_SENDRECV;
  options.weights = (psplit_weights)weights;
  options.replace = replace;
  options.n_threads = n_threads;
  options.name_template = name_template;
  if (verify && !psplit_model_n_inlined(model)) {
    options.accept = prove;
    options.accept_user = model;
  }
  psplit_diag diag = {.code = PSPLIT_OK};
  psplit_code code;
  const guard g = begin();
  options.cancel = cancel_of(&g);
  Py_BEGIN_ALLOW_THREADS;
  code = psplit_emit(model, psplit_planner_plan(self->planner), directory, &options, &diag);
  Py_END_ALLOW_THREADS;
  end(&g);
  if (code != PSPLIT_OK) return raise_error(code, &diag);
  Py_RETURN_NONE;
}

/* --- functions --- */

static PyObject *verify(PyObject *module, PyObject *args) {
  (void)module;
  const char *path;
  PyObject *model;
  int one_file;
  unsigned int n_threads;
  if (!PyArg_ParseTuple(args, "sO!pI", &path, model_type, &model, &one_file, &n_threads))
    return NULL;
  psplit_verify_options options;
  psplit_verify_options_init(&options);
  options.n_threads = n_threads;
  psplit_verify_report report;
  psplit_diag diag = {.code = PSPLIT_OK};
  psplit_code code;
  const psplit_model *whole = ((model_object *)model)->model;
  const guard g = begin();
  options.cancel = cancel_of(&g);
  Py_BEGIN_ALLOW_THREADS;
  code = one_file ? psplit_verify_file(path, NULL, whole, &options, &diag, &report)
                  : psplit_verify(path, whole, &options, &diag, &report);
  Py_END_ALLOW_THREADS;
  end(&g);
  if (code != PSPLIT_OK) return raise_error(code, &diag);
  return Py_BuildValue("(IIIIIKO)", report.n_stages, report.n_nodes, report.n_duplicates,
                       report.n_transfers, report.n_assumed,
                       (unsigned long long)report.weight_bytes, report.trains ? Py_True : Py_False);
}

static PyObject *merge(PyObject *module, PyObject *args) {
  (void)module;
  const char *directory, *path;
  int weights, replace;
  PyObject *model;
  if (!PyArg_ParseTuple(args, "ssipO", &directory, &path, &weights, &replace, &model)) return NULL;
  psplit_merge_options options;
  psplit_merge_options_init(&options);
  options.weights = (psplit_weights)weights;
  options.replace = replace;
  if (model != Py_None) options.model = ((model_object *)model)->model;
  psplit_merge_report report;
  psplit_diag diag = {.code = PSPLIT_OK};
  psplit_code code;
  const guard g = begin();
  options.cancel = cancel_of(&g);
  Py_BEGIN_ALLOW_THREADS;
  code = psplit_merge(directory, path, &options, &diag, &report);
  Py_END_ALLOW_THREADS;
  end(&g);
  if (code != PSPLIT_OK) return raise_error(code, &diag);
  return Py_BuildValue("(IIIIIKK)", report.n_stages, report.n_nodes, report.n_transfers,
                       report.n_copies, report.n_renamed, (unsigned long long)report.bytes,
                       (unsigned long long)report.data_bytes);
}

static PyObject *presets(PyObject *module, PyObject *unused) {
  (void)module;
  (void)unused;
  PyObject *all = PyDict_New();
  for (uint32_t i = 0; all && psplit_device_preset_name(i); i++) {
    PyObject *about = PyUnicode_FromString(psplit_device_preset_about(i));
    if (!about || PyDict_SetItemString(all, psplit_device_preset_name(i), about) != 0)
      Py_CLEAR(all);
    Py_XDECREF(about);
  }
  return all;
}

static PyObject *version(PyObject *module, PyObject *unused) {
  (void)module;
  (void)unused;
  return PyUnicode_FromString(psplit_version());
}

/* Errors are raised as the class that is handed in. */
static PyObject *set_error(PyObject *module, PyObject *type) {
  (void)module;
  Py_INCREF(type);
  Py_XDECREF(error_type);
  error_type = type;
  Py_RETURN_NONE;
}

static PyMethodDef model_methods[] = {{"plan", model_plan, METH_VARARGS, NULL},
                                      {"inlined", model_inlined, METH_NOARGS, NULL},
                                      {NULL, NULL, 0, NULL}};
static PyMethodDef plan_methods[] = {{"manifest", plan_manifest, METH_VARARGS, NULL},
                                     {"emit", plan_emit, METH_VARARGS, NULL},
                                     {NULL, NULL, 0, NULL}};
static PyMethodDef functions[] = {{"open", open_model, METH_VARARGS, NULL},
                                  {"verify", verify, METH_VARARGS, NULL},
                                  {"merge", merge, METH_VARARGS, NULL},
                                  {"presets", presets, METH_NOARGS, NULL},
                                  {"version", version, METH_NOARGS, NULL},
                                  {"set_error", set_error, METH_O, NULL},
                                  {NULL, NULL, 0, NULL}};

static PyType_Slot model_slots[] = {
  {Py_tp_dealloc, (void *)model_dealloc}, {Py_tp_methods, model_methods}, {0, NULL}};
static PyType_Slot plan_slots[] = {
  {Py_tp_dealloc, (void *)plan_dealloc}, {Py_tp_methods, plan_methods}, {0, NULL}};
static PyType_Spec model_spec = {"psplit._psplit.Model", sizeof(model_object), 0,
                                 Py_TPFLAGS_DEFAULT | Py_TPFLAGS_DISALLOW_INSTANTIATION,
                                 model_slots};
static PyType_Spec plan_spec = {"psplit._psplit.Plan", sizeof(plan_object), 0,
                                Py_TPFLAGS_DEFAULT | Py_TPFLAGS_DISALLOW_INSTANTIATION, plan_slots};

static struct PyModuleDef module_definition = {PyModuleDef_HEAD_INIT, .m_name = "_psplit",
                                               .m_size = -1, .m_methods = functions};

PyMODINIT_FUNC PyInit__psplit(void);
PyMODINIT_FUNC PyInit__psplit(void) {
  PyObject *module = PyModule_Create(&module_definition);
  if (!module) return NULL;
  model_type = PyType_FromSpec(&model_spec);
  plan_type = PyType_FromSpec(&plan_spec);
  error_type = PyExc_RuntimeError;
  Py_INCREF(error_type);
  if (!model_type || !plan_type || PyModule_AddObjectRef(module, "Model", model_type) != 0 ||
      PyModule_AddObjectRef(module, "Plan", plan_type) != 0)
    Py_CLEAR(module);
  return module;
}
