/* Options of a plan, from a dict: plan_options.h. */
#include "plan_options.h"

#include <stddef.h>
#include <stdlib.h>
#include <string.h>

/* --- numbers and texts: the planner's members by their names --- */

typedef enum kind { FLAG, CHOICE, COUNT, BIG, REAL, TEXT } kind;

typedef struct field {
  const char *name, *said; /* to the user: the argument of Model.plan() */
  kind kind;
  size_t offset;
} field;

#define FIELD(name, said, kind) \
  { #name, said, kind, offsetof(psplit_planner_options, name) }

static const field FIELDS[] = {
  FIELD(n_stages, "stages", COUNT),
  FIELD(tied_weights, "tied_weights", CHOICE),
  FIELD(ignore_annotations, "ignore_annotations", FLAG),
  FIELD(configuration, "configuration", TEXT),
  FIELD(queue_depth, "depth", COUNT),
  FIELD(objective, "objective", CHOICE),
  FIELD(solver, "solver", TEXT),
  FIELD(time_limit_s, "time_limit", REAL),
  FIELD(limit_by_work, "limit_by_work", FLAG),
  FIELD(n_threads, "threads", COUNT),
  FIELD(seed, "seed", BIG),
  FIELD(allow_invalid, "allow_invalid", FLAG),
  FIELD(certify, "certify", FLAG),
  FIELD(inline_weights, "inline_weights", FLAG),
  FIELD(device_order, "device_order", CHOICE),
  FIELD(no_states, "no_state", FLAG),
  FIELD(slack_frac, "slack", REAL),
  FIELD(message_latency, "message_latency", CHOICE),
  FIELD(prefill_frac, "prefill", REAL),
  FIELD(n_sequences, "sequences", COUNT),
  FIELD(max_segments, "segments", COUNT),
  FIELD(max_replicas, "replicas", COUNT),
  FIELD(overlap, "overlap", FLAG),
};

/* A whole number from 0 to `most`; false with an exception. */
static bool whole(const char *name, PyObject *item, unsigned long long most,
                  unsigned long long *out) {
  *out = PyLong_AsUnsignedLongLong(item);
  if (PyErr_Occurred() && !PyErr_ExceptionMatches(PyExc_OverflowError)) return false;
  if (!PyErr_Occurred() && *out <= most) return true;
  PyErr_Clear();
  PyErr_Format(PyExc_ValueError, "%s is a number from 0 to %llu, not %S", name, most, item);
  return false;
}

static bool set(const field *to, PyObject *item, psplit_planner_options *out) {
  void *at = (char *)out + to->offset;
  unsigned long long number;
  switch (to->kind) {
    case FLAG: {
      const int truth = PyObject_IsTrue(item);
      *(bool *)at = truth == 1;
      return truth >= 0;
    }
    case CHOICE: /* enums, which are as wide as int */
      if (!whole(to->said, item, INT32_MAX, &number)) return false;
      *(int *)at = (int)number;
      return true;
    case COUNT:
      if (!whole(to->said, item, UINT32_MAX, &number)) return false;
      *(uint32_t *)at = (uint32_t)number;
      return true;
    case BIG:
      if (!whole(to->said, item, UINT64_MAX, &number)) return false;
      *(uint64_t *)at = number;
      return true;
    case REAL: *(double *)at = PyFloat_AsDouble(item); return !PyErr_Occurred();
    case TEXT: break;
  }
  *(const char **)at = text_of(item);
  return *(const char **)at != NULL;
}

static bool take_fields(PyObject *dict, psplit_planner_options *out) {
  for (size_t i = 0; i < sizeof FIELDS / sizeof *FIELDS; i++) {
    PyObject *item = PyDict_GetItemString(dict, FIELDS[i].name);
    if (item && !set(&FIELDS[i], item, out)) return false;
  }
  return true;
}

/* --- lists --- */

/* The list of that name, or NULL: borrowed. */
static PyObject *list_of(PyObject *dict, const char *name, size_t *out_n) {
  PyObject *list = PyDict_GetItemString(dict, name);
  *out_n = list ? (size_t)PyList_Size(list) : 0;
  return list;
}

static bool take_pairs(PyObject *dict, const char *name, size_t width, void **out, size_t *out_n,
                       bool (*put)(PyObject *pair, void *at)) {
  PyObject *list = list_of(dict, name, out_n);
  char *all = calloc(*out_n + 1, width);
  if (!all) return PyErr_NoMemory(), false;
  *out = all;
  for (size_t i = 0; i < *out_n; i++)
    if (!put(PyList_GetItem(list, (Py_ssize_t)i), all + i * width)) return false;
  return true;
}

static bool put_dim(PyObject *pair, void *at) {
  psplit_dim_value *dim = at;
  long long value;
  if (!PyArg_ParseTuple(pair, "sL", &dim->name, &value)) return false;
  dim->value = value;
  return true;
}

static bool put_state(PyObject *pair, void *at) {
  psplit_planner_state *state = at;
  return PyArg_ParseTuple(pair, "ss", &state->output, &state->input);
}

static bool put_costs(PyObject *pair, void *at) {
  const char *name, *text;
  if (!PyArg_ParseTuple(pair, "ss", &name, &text)) return false;
  psplit_diag diag = {.code = PSPLIT_OK};
  const psplit_code code = psplit_cost_table_parse(name, text, strlen(text), &diag, at);
  return code == PSPLIT_OK || (raise_error(code, &diag), false);
}

/* The shapes' names and sizes; these stand in one array, one shape behind the other. */
static bool take_shapes(PyObject *dict, plan_options *out) {
  size_t n, n_sizes = 0;
  PyObject *list = list_of(dict, "shapes", &n);
  for (size_t i = 0; i < n; i++) {
    const char *name;
    PyObject *dims;
    if (!PyArg_ParseTuple(PyList_GetItem(list, (Py_ssize_t)i), "sO!", &name, &PyTuple_Type, &dims))
      return false;
    n_sizes += (size_t)PyTuple_Size(dims);
  }
  out->shapes = calloc(n + 1, sizeof *out->shapes);
  out->sizes = calloc(n_sizes + 1, sizeof *out->sizes);
  if (!out->shapes || !out->sizes) return PyErr_NoMemory(), false;
  int64_t *next = out->sizes;
  for (size_t i = 0; i < n; i++) {
    PyObject *dims = NULL;
    psplit_input_size *shape = &out->shapes[i];
    if (!PyArg_ParseTuple(PyList_GetItem(list, (Py_ssize_t)i), "sO", &shape->input, &dims))
      return false;
    *shape = (psplit_input_size){shape->input, (uint32_t)PyTuple_Size(dims), next};
    for (uint32_t d = 0; d < shape->n_dims; d++) {
      *next = PyLong_AsLongLong(PyTuple_GetItem(dims, d));
      if (PyErr_Occurred()) return false;
      next++;
    }
  }
  out->planner.shapes = out->shapes;
  out->planner.n_shapes = n;
  return true;
}

static bool take_texts(PyObject *dict, const char *name, const char ***out, size_t *out_n) {
  PyObject *list = PyDict_GetItemString(dict, name);
  return !list || texts_of(list, out, out_n);
}

static bool take_lists(PyObject *dict, plan_options *out) {
  psplit_planner_options *planner = &out->planner;
  if (!take_pairs(dict, "dims", sizeof *out->dims, (void **)&out->dims, &planner->n_dims,
                  put_dim) ||
      !take_pairs(dict, "states", sizeof *out->states, (void **)&out->states, &planner->n_states,
                  put_state) ||
      !take_pairs(dict, "costs", sizeof *out->costs, (void **)&out->costs, &out->n_costs,
                  put_costs) ||
      !take_shapes(dict, out) || !take_texts(dict, "pins", &out->pins, &planner->n_pins) ||
      !take_texts(dict, "keep_together", &out->together, &planner->n_keep_together))
    return false;
  planner->dims = out->dims;
  planner->states = out->states;
  planner->costs = (const psplit_cost_table *const *)out->costs;
  planner->n_costs = out->n_costs;
  planner->pins = out->pins;
  planner->keep_together = out->together;
  return true;
}

/* --- working points, devices, the policy --- */

static bool take_point(PyObject *dict, const char *name, psplit_working_point *at,
                       const psplit_working_point **out) {
  PyObject *item = PyDict_GetItemString(dict, name);
  if (!item) return true;
  long long past, tokens, batch;
  if (!PyArg_ParseTuple(item, "LLL", &past, &tokens, &batch)) return false;
  *at = (psplit_working_point){past, tokens, batch};
  *out = at;
  return true;
}

/* A preset's name or the text of a devices file; neither: the default, where memory is limited. */
static bool take_devices(PyObject *dict, plan_options *out) {
  PyObject *preset = PyDict_GetItemString(dict, "preset");
  PyObject *text = PyDict_GetItemString(dict, "devices");
  PyObject *most = PyDict_GetItemString(dict, "max_stage_bytes");
  const uint32_t n_stages = out->planner.n_stages;
  const char *name = preset ? text_of(preset) : NULL, *file = text ? text_of(text) : NULL;
  unsigned long long max_bytes = 0;
  if ((preset && !name) || (text && !file) ||
      (most && !whole("max_bytes_per_stage", most, UINT64_MAX, &max_bytes)))
    return false;
  psplit_diag diag = {.code = PSPLIT_OK};
  psplit_code code = PSPLIT_OK;
  if (file)
    code = psplit_devices_parse(file, strlen(file), &diag, &out->devices);
  else if (name || most)
    code = psplit_devices_preset(name, n_stages ? n_stages : 1, &diag, &out->devices);
  if (code != PSPLIT_OK) return raise_error(code, &diag), false;
  if (most) psplit_devices_limit_memory(out->devices, max_bytes);
  if (!n_stages) out->planner.n_stages = out->devices ? psplit_devices_count(out->devices) : 1;
  out->planner.devices = out->devices;
  return true;
}

static bool take_policy(PyObject *dict, plan_options *out) {
  const char *path;
  unsigned int n;
  PyObject *item = PyDict_GetItemString(dict, "policy");
  if (!item) return true;
  if (!PyArg_ParseTuple(item, "sI", &path, &n)) return false;
  psplit_diag diag = {.code = PSPLIT_OK};
  psplit_code code = psplit_policy_read(path, &diag, &out->policy);
  if (code == PSPLIT_OK)
    code = psplit_policy_proposer_create(out->policy, n, &diag, &out->proposer);
  if (code != PSPLIT_OK) return raise_error(code, &diag), false;
  out->planner.proposer = out->proposer;
  return true;
}

bool plan_options_take(PyObject *dict, plan_options *out) {
  psplit_planner_options_init(&out->planner);
  Py_INCREF(dict);
  out->given = dict;
  PyObject *passes = PyDict_GetItemString(dict, "passes");
  if (passes && !(out->passes = text_of(passes))) return false;
  return take_fields(dict, &out->planner) && take_lists(dict, out) && take_devices(dict, out) &&
         take_point(dict, "decode", &out->decode, &out->planner.decode) &&
         take_point(dict, "prefill", &out->prefill, &out->planner.prefill) &&
         take_policy(dict, out);
}

void plan_options_free(plan_options *options) {
  psplit_policy_proposer_destroy(options->proposer);
  psplit_policy_destroy(options->policy);
  psplit_devices_destroy(options->devices);
  for (size_t i = 0; options->costs && i < options->n_costs; i++)
    psplit_cost_table_destroy(options->costs[i]);
  free(options->costs);
  free(options->dims);
  free(options->shapes);
  free(options->sizes);
  free(options->states);
  free(options->pins);
  free(options->together);
  Py_XDECREF(options->given);
  *options = (plan_options){0};
}
