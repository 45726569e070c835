/* Checks the bindings of training_info. */
#include <string.h>

#include "model.h"

static bool has_output(const Onnx__GraphProto *graph, const char *name) {
  for (size_t o = 0; graph && o < graph->n_output; o++)
    if (graph->output[o]->name && strcmp(graph->output[o]->name, name) == 0) return true;
  return false;
}

static bool has_initializer(const Onnx__GraphProto *graph, const char *name) {
  for (size_t i = 0; graph && i < graph->n_initializer; i++)
    if (graph->initializer[i]->name && strcmp(graph->initializer[i]->name, name) == 0) return true;
  return false;
}

/* Each binding gives an initializer, of the model's graph or of the algorithm's, once, an output of
 * `source`. */
static psplit_code check_bindings(const psplit_model *model,
                                  const Onnx__TrainingInfoProto *training,
                                  Onnx__StringStringEntryProto *const *bindings, size_t n,
                                  const Onnx__GraphProto *source, const char *what,
                                  psplit_diag *diag) {
  psplit_code code = PSPLIT_OK;
  psplit_i_intern keys;
  psplit_i_intern_init(&keys);
  for (size_t b = 0; b < n; b++) {
    const char *key = bindings[b]->key ? bindings[b]->key : "";
    const char *value = bindings[b]->value ? bindings[b]->value : "";
    const uint32_t v = psplit_i_graph_find_value(model->graph, key);
    const bool known =
      (v != PSPLIT_NONE && (model->graph->values[v].initializer != PSPLIT_NONE ||
                            model->graph->values[v].sparse_initializer != PSPLIT_NONE)) ||
      has_initializer(training->algorithm, key);
    if (!known && !model->options.is_stage)
      PSPLIT_FAIL(psplit_i_fail(diag, PSPLIT_INVALID,
                                "training_info: %s binds \"%s\", which is not an initializer", what,
                                key));
    if (!has_output(source, value))
      PSPLIT_FAIL(
        psplit_i_fail(diag, PSPLIT_INVALID,
                      "training_info: %s binds \"%s\" to \"%s\", which its graph does not "
                      "give",
                      what, key, value));
    const uint32_t before = keys.n, id = psplit_i_intern_add(&keys, key);
    if (id == PSPLIT_NONE) PSPLIT_FAIL(psplit_i_nomem(diag));
    if (id != before)
      PSPLIT_FAIL(
        psplit_i_fail(diag, PSPLIT_INVALID, "training_info: %s binds \"%s\" twice", what, key));
  }
out:
  psplit_i_intern_fini(&keys);
  return code;
}

psplit_code psplit_i_training_check(const psplit_model *model, psplit_diag *diag) {
  psplit_code code = PSPLIT_OK;
  for (size_t t = 0; t < model->proto->n_training_info; t++) {
    const Onnx__TrainingInfoProto *training = model->proto->training_info[t];
    PSPLIT_TRY(check_bindings(model, training, training->initialization_binding,
                              training->n_initialization_binding, training->initialization,
                              "initialization_binding", diag));
    PSPLIT_TRY(check_bindings(model, training, training->update_binding, training->n_update_binding,
                              training->algorithm, "update_binding", diag));
  }
out:
  return code;
}
