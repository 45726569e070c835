/* The parts of the object "training" of pipeline.json: what is trained and drawn
 * (manifest_trained.c), the stages (manifest_stages.c), and the whole (manifest.c).
 * docs/training.md says what it means, docs/manifest.schema.json its form. Where memory is short,
 * json->out->failed is set. */
#ifndef PSPLIT_TRAINING_MANIFEST_INSIDE_H
#define PSPLIT_TRAINING_MANIFEST_INSIDE_H

#include "json_put.h"
#include "training.h"

/* One row on one line. */
void psplit_i_open_row(psplit_i_json *json);
void psplit_i_close_row(psplit_i_json *json);
/* "file": the name of a stage's file of that kind. */
void psplit_i_key_file(psplit_i_json *json, const psplit_i_layout *layout, uint32_t stage,
                       const char *what);
/* "dtype" and "shape" by inference. */
void psplit_i_write_type(psplit_i_json *json, const psplit_i_shapes *shapes,
                         const psplit_i_vtype *type);
const char *psplit_i_trainable_name(const psplit_i_layout *layout, uint32_t trainable);

/* What the model was differentiated by, its loss, "weights", "masks" and "input_gradients". */
void psplit_i_write_options(const psplit_training *training, psplit_i_json *json);
void psplit_i_write_loss(const psplit_i_layout *layout, psplit_i_json *json);
void psplit_i_write_weights(const psplit_i_layout *layout, psplit_i_json *json);
void psplit_i_write_masks(const psplit_i_layout *layout, psplit_i_json *json);
void psplit_i_write_input_gradients(const psplit_i_layout *layout, psplit_i_json *json);

/* "stages": what each computes again, its backward pass, its update. */
void psplit_i_write_training_stages(const psplit_i_layout *layout, psplit_i_json *json);

/* Whether transfer t of the plan goes where the one before it does: to both halves of a stage. */
bool psplit_i_goes_along(const psplit_i_layout *layout, uint32_t t);

#endif
