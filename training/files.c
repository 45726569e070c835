/* The files of a stage other than stageI.onnx. */
#include <inttypes.h>
#include <stdlib.h>

#include "onnx_fields.h"
#include "training.h"
#include "write.h"

/* A model without inputs whose outputs are the weights that the stage owns. */
static psplit_code write_weights(const psplit_i_layout *layout, uint32_t s, psplit_i_emission *e) {
  psplit_code code;
  const psplit_gradient *gradient = layout->training->gradient;
  const psplit_i_training_stage *stage = &layout->stages[s];
  psplit_i_text head = {0}, graph = {0};
  char name[PSPLIT_I_FILE_NAME];
  uint32_t *initializers = malloc((stage->n_owned + (size_t)1) * sizeof *initializers);
  if (!initializers) return psplit_i_nomem(e->diag);
  psplit_i_put_model_head(&head);
  psplit_i_put_string(&graph, PSPLIT_I_GRAPH_NAME, "weights");
  for (uint32_t i = 0; i < stage->n_owned; i++) {
    const uint32_t v = gradient->trainables[stage->owned[i]].value;
    initializers[i] = gradient->b.forward->values[v].initializer;
    psplit_i_put_typed_value(&graph, PSPLIT_I_GRAPH_OUTPUT, gradient->b.forward->values[v].name,
                             gradient->shapes, psplit_i_shapes_type(gradient->shapes, v));
  }
  if (head.failed || graph.failed) PSPLIT_FAIL(psplit_i_nomem(e->diag));
  psplit_i_stage_name_of(layout->forward, s, "weights", name);
  PSPLIT_TRY(psplit_i_emission_weights(e, gradient->model, initializers, stage->n_owned, &head,
                                       &graph, name));
out:
  free(initializers);
  psplit_i_text_fini(&head);
  psplit_i_text_fini(&graph);
  return code;
}

psplit_code psplit_i_training_files(const psplit_i_layout *layout, psplit_i_emission *e) {
  psplit_code code = PSPLIT_OK;
  char name[PSPLIT_I_FILE_NAME];
  for (uint32_t s = 0; s < layout->forward->plan->n_stages; s++) {
    const psplit_i_training_stage *stage = &layout->stages[s];
    for (int h = 0; h < PSPLIT_N_HALVES; h++) {
      if (stage->backward[h] == PSPLIT_NONE) continue;
      psplit_i_stage_name_of(layout->forward, s, psplit_i_half_names[h], name);
      PSPLIT_TRY(psplit_i_emission_stage(e, &layout->backward, stage->backward[h], name));
    }
    if (stage->n_again) {
      psplit_i_stage_name_of(layout->forward, s, "again", name);
      PSPLIT_TRY(psplit_i_emission_stage(e, &layout->again, s + 1, name));
    }
    if (stage->update.n) {
      psplit_i_stage_name_of(layout->forward, s, "update", name);
      PSPLIT_TRY(psplit_i_emission_bytes(e, stage->update.bytes, stage->update.n, name));
    }
    if (layout->training->weights == PSPLIT_WEIGHTS_INPUT && stage->n_owned)
      PSPLIT_TRY(write_weights(layout, s, e));
  }
out:
  return code;
}
