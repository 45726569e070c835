/* _psplit: libpsplit for Python, by the limited API of CPython 3.10. Thin: options in, JSON and
 * numbers out; __init__.py makes them pleasant. Calls run without the interpreter's lock, and
 * Ctrl-C ends those of the main thread early. */
#include "plan.h"

#include <psplit/merge.h>
#include <stdlib.h>

/* --- Model --- */

static PyObject *model_type;

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
  const char **ifs = NULL;
  size_t n_ifs = 0;
  psplit_inline_if *choices = NULL;
  model_object *self = NULL;
  if (!texts_of(nodes, &ifs, &n_ifs)) goto out;
  choices = calloc(n_ifs + 1, sizeof *choices);
  if (!choices) {
    PyErr_NoMemory();
    goto out;
  }
  for (size_t i = 0; i < n_ifs; i++) {
    PyObject *branch = PySequence_GetItem(branches, (Py_ssize_t)i);
    choices[i] = (psplit_inline_if){ifs[i], branch && PyObject_IsTrue(branch) == 1};
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
  options.n_inline_ifs = n_ifs;
  psplit_diag diag = {.code = PSPLIT_OK};
  psplit_code code;
  const guard g = guard_begin();
  options.cancel = guard_cancel(&g);
  Py_BEGIN_ALLOW_THREADS;
  code = bytes
           ? psplit_model_open_memory(bytes, (size_t)n_bytes, name, &options, &diag, &self->model)
           : psplit_model_open(path, &options, &diag, &self->model);
  Py_END_ALLOW_THREADS;
  guard_end(&g);
  if (code != PSPLIT_OK) {
    raise_error(code, &diag);
    Py_CLEAR(self);
  }
out:
  free(choices);
  free(ifs);
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
  const guard g = guard_begin();
  options.cancel = guard_cancel(&g);
  Py_BEGIN_ALLOW_THREADS;
  code = one_file ? psplit_verify_file(path, NULL, whole, &options, &diag, &report)
                  : psplit_verify(path, whole, &options, &diag, &report);
  Py_END_ALLOW_THREADS;
  guard_end(&g);
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
  const guard g = guard_begin();
  options.cancel = guard_cancel(&g);
  Py_BEGIN_ALLOW_THREADS;
  code = psplit_merge(directory, path, &options, &diag, &report);
  Py_END_ALLOW_THREADS;
  guard_end(&g);
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

/* A file that appears complete or not at all. */
static PyObject *write_file(PyObject *module, PyObject *args) {
  (void)module;
  const char *path, *text;
  Py_ssize_t n;
  if (!PyArg_ParseTuple(args, "ss#", &path, &text, &n)) return NULL;
  psplit_diag diag = {.code = PSPLIT_OK};
  psplit_code code;
  const guard g = guard_begin();
  const volatile int *cancel = guard_cancel(&g);
  Py_BEGIN_ALLOW_THREADS;
  code = psplit_file_write(path, text, (size_t)n, cancel, &diag);
  Py_END_ALLOW_THREADS;
  guard_end(&g);
  if (code != PSPLIT_OK) return raise_error(code, &diag);
  Py_RETURN_NONE;
}

/* The text of the default passes. */
static PyObject *default_passes(PyObject *module, PyObject *unused) {
  (void)module;
  (void)unused;
  return PyUnicode_FromString(psplit_default_pipeline());
}

static PyObject *version(PyObject *module, PyObject *unused) {
  (void)module;
  (void)unused;
  return PyUnicode_FromString(psplit_version());
}

/* Errors are raised as the class that is handed in. */
static PyObject *set_error(PyObject *module, PyObject *type) {
  (void)module;
  support_set_error(type);
  Py_RETURN_NONE;
}

static PyMethodDef model_methods[] = {{"plan", model_plan, METH_VARARGS, NULL},
                                      {"inlined", model_inlined, METH_NOARGS, NULL},
                                      {NULL, NULL, 0, NULL}};
static PyMethodDef functions[] = {{"open", open_model, METH_VARARGS, NULL},
                                  {"verify", verify, METH_VARARGS, NULL},
                                  {"merge", merge, METH_VARARGS, NULL},
                                  {"presets", presets, METH_NOARGS, NULL},
                                  {"write", write_file, METH_VARARGS, NULL},
                                  {"default_passes", default_passes, METH_NOARGS, NULL},
                                  {"version", version, METH_NOARGS, NULL},
                                  {"set_error", set_error, METH_O, NULL},
                                  {NULL, NULL, 0, NULL}};

static PyType_Slot model_slots[] = {
  {Py_tp_dealloc, (void *)model_dealloc}, {Py_tp_methods, model_methods}, {0, NULL}};
static PyType_Spec model_spec = {"psplit._psplit.Model", sizeof(model_object), 0,
                                 Py_TPFLAGS_DEFAULT | Py_TPFLAGS_DISALLOW_INSTANTIATION,
                                 model_slots};
static struct PyModuleDef module_definition = {PyModuleDef_HEAD_INIT, .m_name = "_psplit",
                                               .m_size = -1, .m_methods = functions};

PyMODINIT_FUNC PyInit__psplit(void);
PyMODINIT_FUNC PyInit__psplit(void) {
  PyObject *module = PyModule_Create(&module_definition);
  if (!module) return NULL;
  model_type = PyType_FromSpec(&model_spec);
  PyObject *plan_type = plan_type_make();
  if (!model_type || !plan_type || PyModule_AddObjectRef(module, "Model", model_type) != 0 ||
      PyModule_AddObjectRef(module, "Plan", plan_type) != 0)
    Py_CLEAR(module);
  return module;
}
