/* What the files of _psplit share: Ctrl-C, errors, texts. They use the limited API of
 * CPython 3.10, and include this first, as Python.h asks. */
#ifndef PSPLIT_PYTHON_SUPPORT_H
#define PSPLIT_PYTHON_SUPPORT_H

#define PY_SSIZE_T_CLEAN
#define Py_LIMITED_API 0x030A0000
#include <Python.h>
/* Python.h comes first, as it asks. */
#include <psplit/file.h>
#include <psplit/psplit.h>

/* --- Ctrl-C: a call of the main thread hears it, and Python's own handler, too --- */

typedef struct guard {
  bool main_thread;
} guard;

guard guard_begin(void);
void guard_end(const guard *g);
const volatile int *guard_cancel(const guard *g);

/* --- errors --- */

/* Errors are raised as this class. */
void support_set_error(PyObject *type);
/* Error(code, message, subject, hint, hint_arguments), or what a signal raises; always NULL. */
PyObject *raise_error(psplit_code code, const psplit_diag *diag);

/* --- texts, which live as long as the objects that they are of --- */

/* Of a str; NULL with an exception. */
const char *text_of(PyObject *item);
/* Of a list of them: *out (malloc'd) and how many; false with an exception. */
bool texts_of(PyObject *list, const char ***out, size_t *out_n);

#endif
