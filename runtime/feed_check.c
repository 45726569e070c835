#include "feed_check.h"

#include <inttypes.h>
#include <string.h>

#include "options.h"
#include "run.h"

size_t psplit_i_feed_n_names(const psplit_feed_options *feed) {
  return feed->n_files + feed->n_shapes + feed->n_ranges;
}

const char *psplit_i_feed_name(const psplit_feed_options *feed, size_t i) {
  if (i < feed->n_files) return feed->files[i].input;
  i -= feed->n_files;
  return i < feed->n_shapes ? feed->shapes[i].input : feed->ranges[i - feed->n_shapes].input;
}

static bool add_symbols(const psplit_i_shape *shape, psplit_i_intern *names) {
  for (int32_t axis = 0; axis < shape->rank; axis++)
    if (shape->dims[axis].param &&
        psplit_i_intern_add(names, shape->dims[axis].param) == PSPLIT_NONE)
      return false;
  return true;
}

/* Against the symbols that pipeline.json has: of the model's inputs and outputs, and of what
 * crosses.
 */
static psplit_code check_dims(const psplit_feed_options *feed, const psplit_i_manifest *m,
                              psplit_diag *diag) {
  psplit_code code = PSPLIT_OK;
  psplit_i_intern names;
  bool ok = true;
  psplit_i_intern_init(&names);
  for (uint32_t i = 0; ok && i < m->n_inputs; i++)
    ok = add_symbols(&m->input_values[i].shape, &names);
  for (uint32_t i = 0; ok && i < m->n_outputs; i++)
    ok = add_symbols(&m->output_values[i].shape, &names);
  for (uint32_t i = 0; ok && i < m->n_transfers; i++)
    ok = add_symbols(&m->transfers[i].shape, &names);
  if (!ok) PSPLIT_FAIL(psplit_i_nomem(diag));
  for (size_t i = 0; i < feed->n_dims; i++)
    if (psplit_i_intern_find(&names, feed->dims[i].name) == PSPLIT_NONE)
      PSPLIT_FAIL(psplit_i_fail_unknown(diag, PSPLIT_SUBJECT_DIMS, "the split has no dimension",
                                        feed->dims[i].name, names.text, names.n));
out:
  psplit_i_intern_fini(&names);
  return code;
}

/* The symbol of the dimension that is told to be 0, if the output has one of that name. */
static const char *empty_by(const psplit_feed_options *feed, const psplit_i_manifest *m,
                            const char *symbol) {
  for (size_t i = 0; i < feed->n_dims; i++)
    if (feed->dims[i].value == 0 && strcmp(feed->dims[i].name, symbol) == 0) return symbol;
  for (size_t i = 0; i < feed->n_shapes; i++) {
    const psplit_feed_shape *given = &feed->shapes[i];
    for (uint32_t p = 0; p < m->n_inputs; p++) {
      const psplit_i_shape *shape = &m->input_values[p].shape;
      if (strcmp(given->input, m->inputs[p]) != 0) continue;
      for (uint32_t axis = 0; axis < given->n_dims && (int64_t)axis < shape->rank; axis++)
        if (given->dims[axis] == 0 && shape->dims[axis].param &&
            strcmp(shape->dims[axis].param, symbol) == 0)
          return symbol;
    }
  }
  return NULL;
}

/* A size of 0 is one that a dimension may have, such as that of an empty cache; but a run whose
 * outputs are empty says nothing. */
static psplit_code check_zeros(const psplit_feed_options *feed, const psplit_i_manifest *m,
                               psplit_diag *diag) {
  for (uint32_t o = 0; o < m->n_outputs; o++) {
    const psplit_i_shape *shape = &m->output_values[o].shape;
    for (int32_t axis = 0; axis < shape->rank; axis++) {
      const char *symbol = shape->dims[axis].param;
      if (symbol && empty_by(feed, m, symbol))
        return psplit_i_fail(diag, PSPLIT_USAGE,
                             "with dimension %s of 0 the output \"%s\" is empty: there is nothing "
                             "to run; use the sizes of a run",
                             symbol, m->outputs[o]);
    }
  }
  return PSPLIT_OK;
}

static int32_t data_type_of(const char *name) {
  for (int32_t type = 1; name && psplit_i_element_name(type); type++)
    if (strcmp(psplit_i_element_name(type), name) == 0) return type;
  return 0;
}

void psplit_i_declared_port(const psplit_i_manifest_value *value, psplit_i_session_port *out) {
  const psplit_i_shape *shape = &value->shape;
  *out = (psplit_i_session_port){.data_type = data_type_of(value->dtype)};
  out->is_tensor = out->data_type != 0;
  if (shape->rank < 0 || shape->rank > PSPLIT_I_MAX_RANK) {
    out->n_dims = 1; /* of a size that is not known */
    out->any_rank = true;
    out->dims[0] = -1;
    out->symbols[0] = "";
    return;
  }
  out->n_dims = (size_t)shape->rank;
  for (size_t d = 0; d < out->n_dims; d++) {
    out->dims[d] = shape->dims[d].value;
    out->symbols[d] = shape->dims[d].param ? shape->dims[d].param : "";
  }
}

/* Against the sizes that the model fixes: ONNX Runtime would refuse them in the middle of a run. */
static psplit_code check_shape(const psplit_feed_shape *given, const psplit_i_shape *shape,
                               psplit_diag *diag) {
  if (shape->rank >= 0 && given->n_dims != (uint32_t)shape->rank)
    return psplit_i_fail(
      diag, PSPLIT_USAGE,
      "%" PRIu32 " size%s given for the input %s, which has %" PRId32 " dimension%s", given->n_dims,
      given->n_dims == 1 ? " is" : "s are", given->input, shape->rank, shape->rank == 1 ? "" : "s");
  for (uint32_t axis = 0; shape->rank >= 0 && axis < given->n_dims; axis++)
    if (shape->dims[axis].value >= 0 && given->dims[axis] != shape->dims[axis].value)
      return psplit_i_fail(diag, PSPLIT_USAGE,
                           "size %" PRId64 " is given for dimension %" PRIu32
                           " of the input %s, which is %" PRId64,
                           given->dims[axis], axis, given->input, shape->dims[axis].value);
  return PSPLIT_OK;
}

static psplit_code check_shapes(const psplit_feed_options *feed, const psplit_i_manifest *m,
                                psplit_diag *diag) {
  for (size_t i = 0; i < feed->n_shapes; i++)
    for (uint32_t p = 0; p < m->n_inputs; p++) {
      if (strcmp(feed->shapes[i].input, m->inputs[p]) != 0) continue;
      const psplit_code code = check_shape(&feed->shapes[i], &m->input_values[p].shape, diag);
      if (code != PSPLIT_OK) return code;
    }
  return PSPLIT_OK;
}

static psplit_code check_inputs(const psplit_feed_options *feed, const psplit_i_manifest *m,
                                psplit_diag *diag) {
  for (size_t i = 0; i < psplit_i_feed_n_names(feed); i++) {
    const char *name = psplit_i_feed_name(feed, i);
    bool found = !name;
    for (uint32_t p = 0; p < m->n_inputs; p++) found |= name && strcmp(name, m->inputs[p]) == 0;
    if (!found)
      return psplit_i_fail_unknown(diag, PSPLIT_SUBJECT_NONE, "the model has no input", name,
                                   m->inputs, m->n_inputs);
  }
  return PSPLIT_OK;
}

psplit_code psplit_i_feed_meet_inputs(psplit_i_feed_options *feed, const psplit_i_pipe *pipe,
                                      psplit_diag *diag) {
  const psplit_i_manifest *m = &pipe->manifest;
  const psplit_code code = check_inputs(&feed->given, m, diag);
  for (uint32_t i = 0; i < m->n_inputs && code == PSPLIT_OK; i++) {
    psplit_i_session_port port;
    psplit_i_declared_port(&m->input_values[i], &port);
    psplit_i_feed_look(feed, &(psplit_i_feed_input){
                               .port = &port, .name = m->inputs[i], .optional = i >= m->n_needed});
  }
  return code;
}

psplit_code psplit_i_feed_meet(psplit_i_feed_options *feed, const psplit_i_pipe *pipe,
                               psplit_diag *diag) {
  psplit_code code = psplit_i_feed_meet_inputs(feed, pipe, diag);
  if (code == PSPLIT_OK && feed->given.n_dims)
    code = check_dims(&feed->given, &pipe->manifest, diag);
  if (code == PSPLIT_OK) code = check_shapes(&feed->given, &pipe->manifest, diag);
  return code == PSPLIT_OK ? check_zeros(&feed->given, &pipe->manifest, diag) : code;
}

psplit_code psplit_feed_check(const psplit_feed_options *feed, const psplit_pipeline *pipeline,
                              psplit_diag *diag) {
  psplit_i_feed_options taken = {0};
  const psplit_code code = psplit_i_take_feed(feed, diag, &taken.given);
  return code == PSPLIT_OK ? psplit_i_feed_meet(&taken, &pipeline->pipe, diag) : code;
}

psplit_code psplit_feed_check_model(const psplit_feed_options *feed, const psplit_model *model,
                                    psplit_diag *diag) {
  psplit_feed_options taken;
  psplit_code code;
  PSPLIT_TRY(psplit_i_take_feed(feed, diag, &taken));
  for (size_t i = 0; i < psplit_i_feed_n_names(&taken); i++) {
    const char *name = psplit_i_feed_name(&taken, i);
    if (name) PSPLIT_TRY(psplit_model_check_inputs(model, &name, 1, diag));
  }
  for (size_t i = 0; i < taken.n_dims; i++)
    PSPLIT_TRY(psplit_model_check_dims(model, &taken.dims[i], 1, diag));
out:
  return code;
}
