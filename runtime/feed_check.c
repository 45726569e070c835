#include "feed_check.h"

#include <string.h>

#include "options.h"
#include "run.h"

const char *psplit_i_feed_name(const psplit_feed_options *feed, size_t i) {
  return i < feed->n_files ? feed->files[i].input : feed->shapes[i - feed->n_files].input;
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
  if (!ok) PSPLIT_TRY(psplit_i_nomem(diag));
  for (size_t i = 0; i < feed->n_dims; i++)
    if (psplit_i_intern_find(&names, feed->dims[i].name) == PSPLIT_NONE)
      PSPLIT_TRY(psplit_i_fail_unknown(diag, "the split has no dimension", feed->dims[i].name,
                                       names.text, names.n));
out:
  psplit_i_intern_fini(&names);
  return code;
}

psplit_code psplit_i_feed_check_inputs(const psplit_feed_options *feed, const psplit_i_pipe *pipe,
                                       psplit_diag *diag) {
  const psplit_i_manifest *m = &pipe->manifest;
  for (size_t i = 0; i < feed->n_files + feed->n_shapes; i++) {
    const char *name = psplit_i_feed_name(feed, i);
    bool found = !name;
    for (uint32_t p = 0; p < m->n_inputs; p++) found |= name && strcmp(name, m->inputs[p]) == 0;
    if (!found)
      return psplit_i_fail_unknown(diag, "the model has no input", name, m->inputs, m->n_inputs);
  }
  return PSPLIT_OK;
}

psplit_code psplit_i_feed_check(const psplit_feed_options *feed, const psplit_i_pipe *pipe,
                                psplit_diag *diag) {
  const psplit_code code = psplit_i_feed_check_inputs(feed, pipe, diag);
  return code == PSPLIT_OK && feed->n_dims ? check_dims(feed, &pipe->manifest, diag) : code;
}

psplit_code psplit_feed_check(const psplit_feed_options *feed, const psplit_pipeline *pipeline,
                              psplit_diag *diag) {
  psplit_feed_options taken;
  const psplit_code code = psplit_i_take_feed(feed, diag, &taken);
  return code == PSPLIT_OK ? psplit_i_feed_check(&taken, &pipeline->pipe, diag) : code;
}

psplit_code psplit_feed_check_model(const psplit_feed_options *feed, const psplit_model *model,
                                    psplit_diag *diag) {
  psplit_feed_options taken;
  psplit_code code;
  PSPLIT_TRY(psplit_i_take_feed(feed, diag, &taken));
  for (size_t i = 0; i < taken.n_files + taken.n_shapes; i++) {
    const char *name = psplit_i_feed_name(&taken, i);
    if (name) PSPLIT_TRY(psplit_model_check_inputs(model, &name, 1, diag));
  }
  for (size_t i = 0; i < taken.n_dims; i++)
    PSPLIT_TRY(psplit_model_check_dims(model, &taken.dims[i], 1, diag));
out:
  return code;
}
