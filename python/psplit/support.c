/* Ctrl-C, errors and texts: support.h. */
#include "support.h"

#include <signal.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

static PyObject *error_type; /* NULL: RuntimeError */

void support_set_error(PyObject *type) {
  Py_INCREF(type);
  Py_XDECREF(error_type);
  error_type = type;
}

/* --- Ctrl-C --- */

/* What runs in the main thread is told by this flag, and Python's own handler hears the signal,
 * too. */
static atomic_int interrupted; /* of an int's form: threads look at it while the handler sets it */
static struct sigaction python_handler;

static void on_interrupt(int number) {
  interrupted = 1;
  if (python_handler.sa_handler != SIG_DFL && python_handler.sa_handler != SIG_IGN)
    python_handler.sa_handler(number);
}

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

guard guard_begin(void) {
  guard g = {in_main_thread()};
  if (!g.main_thread) return g;
  struct sigaction action = {.sa_handler = on_interrupt};
  interrupted = 0;
  sigaction(SIGINT, &action, &python_handler);
  /* SIG_IGN stays, as whoever set it wants. */
  if (python_handler.sa_handler == SIG_IGN) sigaction(SIGINT, &python_handler, NULL);
  return g;
}

void guard_end(const guard *g) {
  if (g->main_thread) sigaction(SIGINT, &python_handler, NULL);
}

const volatile int *guard_cancel(const guard *g) {
  return g->main_thread ? (const volatile int *)&interrupted : NULL;
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
  [PSPLIT_HINT_TIME_LIMIT] = "TIME_LIMIT",
  [PSPLIT_HINT_FEWER_STAGES] = "FEWER_STAGES",
  [PSPLIT_HINT_PASSES] = "PASSES",
  [PSPLIT_HINT_COSTS_FILE] = "COSTS_FILE",
  [PSPLIT_HINT_EXPORT] = "EXPORT",
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

PyObject *raise_error(psplit_code code, const psplit_diag *diag) {
  if (PyErr_CheckSignals() != 0) return NULL;
  PyObject *arguments = hint_arguments(diag);
  PyObject *value =
    arguments ? Py_BuildValue("(szzzO)", psplit_code_name(code), diag->message,
                              psplit_subject_name(diag->subject), HINTS[diag->hint], arguments)
              : NULL;
  if (value) PyErr_SetObject(error_type ? error_type : PyExc_RuntimeError, value);
  Py_XDECREF(value);
  Py_XDECREF(arguments);
  return NULL;
}

/* --- texts --- */

const char *text_of(PyObject *item) {
  Py_ssize_t n;
  const char *text = PyUnicode_AsUTF8AndSize(item, &n);
  if (!text || strlen(text) == (size_t)n) return text;
  PyErr_SetString(PyExc_ValueError, "a text with a NUL in it");
  return NULL;
}

bool texts_of(PyObject *list, const char ***out, size_t *out_n) {
  const Py_ssize_t n = PyList_Size(list);
  if (n < 0) return false;
  const char **texts = calloc((size_t)n + 1, sizeof *texts);
  if (!texts) return PyErr_NoMemory(), false;
  for (Py_ssize_t i = 0; i < n; i++) {
    texts[i] = text_of(PyList_GetItem(list, i));
    if (!texts[i]) return free(texts), false;
  }
  *out = texts;
  *out_n = (size_t)n;
  return true;
}
