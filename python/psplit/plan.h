/* The type psplit._psplit.Plan: a planner that has run, with its model. */
#ifndef PSPLIT_PYTHON_PLAN_H
#define PSPLIT_PYTHON_PLAN_H

#include "support.h"

/* What psplit._psplit.Model holds. */
typedef struct model_object {
  PyObject_HEAD psplit_model *model;
} model_object;

/* NULL with an exception. */
PyObject *plan_type_make(void);
/* The method Model.plan(options, log). */
PyObject *model_plan(PyObject *model, PyObject *args);

#endif
