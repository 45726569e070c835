/* The object "training" of pipeline.json. */

#include "rows.h"

static void read_names(item list, const char *key, const char *const **out, uint32_t *out_n) {
  const size_t n = length(&list);
  const char **names = NEW(&list, const char *, n);
  for (size_t i = 0; i < n && !failed(&list); i++) {
    const item element = psplit_i_json_element(&list, i);
    if (key)
      psplit_i_json_text(need_or_null(&element, key), &names[i]);
    else
      psplit_i_json_text(element, &names[i]);
  }
  *out = names;
  *out_n = (uint32_t)n;
}

static void read_input(item row, uint32_t n_stages, psplit_i_part_input *out) {
  static const char *const sources[] = {
    [PSPLIT_I_PART_STAGE] = "",          [PSPLIT_I_PART_MODEL] = "model",
    [PSPLIT_I_PART_WEIGHTS] = "weights", [PSPLIT_I_PART_STASH] = "stash",
    [PSPLIT_I_PART_AGAIN] = "again",     [PSPLIT_I_PART_LOSS] = "loss",
    [PSPLIT_I_PART_BEFORE] = "before"};
  const item from = psplit_i_json_need(&row, "from");
  uint32_t source = PSPLIT_I_PART_STAGE;
  need_text(&row, "name", &out->name);
  if (psplit_i_json_is_integer(from))
    psplit_i_json_u32(from, 0, n_stages - 1, &out->from);
  else
    psplit_i_json_choice(from, sources, sizeof sources / sizeof *sources, &source);
  out->source = (psplit_i_part_source)source;
}

static void read_output(item row, uint32_t n_stages, psplit_i_part_output *out) {
  static const char *const goals[] = {[PSPLIT_I_PART_NOWHERE] = "",
                                      [PSPLIT_I_PART_CALLER] = "model",
                                      [PSPLIT_I_PART_UPDATE] = "update",
                                      [PSPLIT_I_PART_BACKWARD] = "backward"};
  uint32_t goal = PSPLIT_I_PART_NOWHERE;
  const item to = psplit_i_json_need(&row, "to");
  const size_t n = length(&to);
  uint32_t *stages = NEW(&to, uint32_t, n);
  need_text(&row, "name", &out->name);
  for (size_t i = 0; i < n && !failed(&to); i++) {
    const item end = psplit_i_json_element(&to, i);
    if (psplit_i_json_is_integer(end))
      psplit_i_json_u32(end, 0, n_stages - 1, &stages[out->n_to++]);
    else if (goal == PSPLIT_I_PART_NOWHERE)
      psplit_i_json_choice(end, goals, sizeof goals / sizeof *goals, &goal);
    else
      psplit_i_json_must_be(&end, "a stage, after one word");
  }
  out->goal = (psplit_i_part_goal)goal;
  out->to = stages;
}

static void read_part(item part, uint32_t n_stages, psplit_i_part *out) {
  if (!psplit_i_json_given(part)) return;
  const item inputs = psplit_i_json_need(&part, "inputs");
  const item optional = psplit_i_json_find(&part, "optional_inputs");
  const item outputs = psplit_i_json_need(&part, "outputs");
  const uint32_t n_needed = (uint32_t)length(&inputs);
  out->n_inputs = n_needed + (uint32_t)length(&optional);
  out->n_outputs = (uint32_t)length(&outputs);
  psplit_i_part_input *in = NEW(&part, psplit_i_part_input, out->n_inputs);
  psplit_i_part_output *results = NEW(&part, psplit_i_part_output, out->n_outputs);
  psplit_i_read_file_name(&part, &out->file);
  need_index(&part, "nodes", UINT32_MAX, &out->n_nodes);
  for (uint32_t i = 0; i < out->n_inputs && !failed(&part); i++) {
    in[i].optional = i >= n_needed;
    read_input(in[i].optional ? psplit_i_json_element(&optional, i - n_needed)
                              : psplit_i_json_element(&inputs, i),
               n_stages, &in[i]);
  }
  for (uint32_t o = 0; o < out->n_outputs && !failed(&part); o++)
    read_output(psplit_i_json_element(&outputs, o), n_stages, &results[o]);
  out->inputs = in;
  out->outputs = results;
}

static void read_stash(item list, psplit_i_training_parts *out) {
  out->n_stash = (uint32_t)length(&list);
  psplit_i_stash_row *rows = NEW(&list, psplit_i_stash_row, out->n_stash);
  for (uint32_t i = 0; i < out->n_stash && !failed(&list); i++) {
    const item row = psplit_i_json_element(&list, i);
    need_text(&row, "name", &rows[i].name);
    need_text(&row, "tensor", &rows[i].tensor);
    need_text(&row, "dtype", &rows[i].dtype);
    psplit_i_read_shape(need_or_null(&row, "shape"), &rows[i].shape);
  }
  out->stash = rows;
}

static void read_update(item part, psplit_i_update_part *out) {
  if (!psplit_i_json_given(part)) return;
  const item kept = psplit_i_json_need(&part, "kept");
  psplit_i_read_file_name(&part, &out->file);
  need_text(&part, "lr", &out->lr);
  need_text(&part, "scale", &out->scale);
  psplit_i_json_text(psplit_i_json_find(&part, "step"), &out->step);
  out->n_kept = (uint32_t)length(&kept);
  psplit_i_kept_row *rows = NEW(&part, psplit_i_kept_row, out->n_kept);
  for (uint32_t i = 0; i < out->n_kept && !failed(&part); i++) {
    const item row = psplit_i_json_element(&kept, i);
    need_text(&row, "name", &rows[i].name);
    need_text(&row, "new", &rows[i].new_name);
    need_text(&row, "weight", &rows[i].weight);
    psplit_i_json_flag(psplit_i_json_need(&row, "state"), &rows[i].is_state);
  }
  out->kept = rows;
}

static void read_file(item part, const char **out) {
  if (psplit_i_json_given(part)) psplit_i_read_file_name(&part, out);
}

static void read_stage(item stage, uint32_t n_stages, psplit_i_training_parts *out) {
  int64_t index = (int64_t)stage.index;
  psplit_i_json_i64(psplit_i_json_need(&stage, "index"), index, index, &index);
  read_names(psplit_i_json_need(&stage, "weights"), NULL, &out->weights, &out->n_weights);
  read_stash(psplit_i_json_need(&stage, "stash"), out);
  read_file(need_or_null(&stage, "first_weights"), &out->first_weights);
  read_update(need_or_null(&stage, "update"), &out->update);
  read_part(need_or_null(&stage, "again"), n_stages, &out->again);
  read_part(need_or_null(&stage, "backward"), n_stages, &out->backward);
  read_part(psplit_i_json_unless_null(psplit_i_json_find(&stage, "weight_gradients")), n_stages,
            &out->weight_gradients);
}

static void read_more(item list, psplit_i_trained_weight *out) {
  out->n_more = (uint32_t)length(&list);
  psplit_i_gradient_row *rows = NEW(&list, psplit_i_gradient_row, out->n_more);
  for (uint32_t i = 0; i < out->n_more && !failed(&list); i++) {
    const item row = psplit_i_json_element(&list, i);
    need_text(&row, "gradient", &rows[i].gradient);
    need_text(&row, "before", &rows[i].before);
  }
  out->more = rows;
}

/* Stage k of a list that has each once. */
static void read_once(item at, uint32_t n_stages, uint32_t *list, uint32_t k) {
  bool again = false;
  psplit_i_json_u32(at, 0, n_stages - 1, &list[k]);
  for (uint32_t i = 0; i < k; i++) again |= list[i] == list[k];
  if (!failed(&at) && again) psplit_i_json_wrong(&at, "each stage must occur exactly once");
}

static void read_weights(item list, uint32_t n_stages, psplit_i_training_table *out) {
  out->n_weights = (uint32_t)length(&list);
  psplit_i_trained_weight *weights = NEW(&list, psplit_i_trained_weight, out->n_weights);
  for (uint32_t i = 0; i < out->n_weights && !failed(&list); i++) {
    const item row = psplit_i_json_element(&list, i);
    weights[i].owner = PSPLIT_NONE;
    need_text(&row, "name", &weights[i].name);
    need_text(&row, "dtype", &weights[i].dtype);
    psplit_i_read_shape(need_or_null(&row, "shape"), &weights[i].shape);
    psplit_i_json_text(need_or_null(&row, "gradient"), &weights[i].gradient);
    psplit_i_json_text(need_or_null(&row, "before"), &weights[i].before);
    const item stages = psplit_i_json_need(&row, "stages");
    weights[i].n_stages = (uint32_t)length(&stages);
    uint32_t *list_of = NEW(&row, uint32_t, weights[i].n_stages);
    for (uint32_t k = 0; k < weights[i].n_stages && !failed(&row); k++)
      read_once(psplit_i_json_element(&stages, k), n_stages, list_of, k);
    weights[i].stages = list_of;
    psplit_i_json_u32(need_or_null(&row, "owner"), 0, n_stages - 1, &weights[i].owner);
    read_more(psplit_i_json_find(&row, "more"), &weights[i]);
    psplit_i_json_text(psplit_i_json_find(&row, "next"), &weights[i].next);
  }
  out->weights = weights;
}

static void read_options(item options, psplit_i_training_table *out) {
  static const char *const norms[] = {"as-is", "train", "frozen"};
  psplit_i_json_text(need_or_null(&options, "loss"), &out->loss);
  psplit_i_json_text(need_or_null(&options, "loss_output"), &out->loss_output);
  psplit_i_json_choice(psplit_i_json_need(&options, "batch_norm"), norms, 3, &out->batch_norm);
  psplit_i_json_choice(psplit_i_json_need(&options, "dropout"), norms, 3, &out->dropout);
}

/* What replaces a split has to know all its files. */
static void list_files(const item *training, const psplit_i_training_table *table,
                       psplit_i_manifest *m) {
  enum { MOST = 5 };
  const char **files = NEW(training, const char *, (size_t)m->n_stages *MOST);
  for (uint32_t s = 0; s < m->n_stages && !failed(training); s++) {
    const psplit_i_training_parts *stage = &table->stages[s];
    const char *const names[MOST] = {stage->first_weights, stage->again.file, stage->backward.file,
                                     stage->weight_gradients.file, stage->update.file};
    for (size_t i = 0; i < MOST; i++)
      if (names[i]) files[m->n_training_files++] = names[i];
  }
  m->training_files = files;
}

/* Nodes of the backward pass that stand in several of its files. */
static void read_duplicates(item list, uint32_t n_stages, psplit_i_training_table *out) {
  static const char *const halves[] = {"backward", "weight_gradients"};
  static const char *const keys[] = {"also", "also_weight_gradients"};
  const size_t n = length(&list);
  psplit_i_duplicate *duplicates = NEW(&list, psplit_i_duplicate, n);
  for (size_t i = 0; i < n && !failed(&list); i++) {
    psplit_i_duplicate *one = &duplicates[i];
    const item row = psplit_i_json_element(&list, i);
    const item own = psplit_i_json_find(&row, "file");
    const item also[] = {psplit_i_json_need(&row, keys[0]), psplit_i_json_find(&row, keys[1])};
    uint32_t half = 0, *stages = NEW(&list, uint32_t, length(&also[0]) + length(&also[1]));
    need_index(&row, "index", UINT32_MAX, &one->node);
    need_index(&row, "stage", n_stages, &one->stage);
    if (psplit_i_json_given(own)) psplit_i_json_choice(own, halves, 2, &half);
    one->stage = 2 * one->stage + half;
    for (uint32_t h = 0; h < PSPLIT_I_N_HALVES; h++)
      for (size_t k = 0; k < length(&also[h]) && !failed(&list); k++) {
        psplit_i_json_u32(psplit_i_json_element(&also[h], k), 0, n_stages - 1,
                          &stages[one->n_also]);
        stages[one->n_also] = 2 * stages[one->n_also] + h;
        one->n_also++;
      }
    one->also = stages;
  }
  out->duplicates = duplicates;
  out->n_duplicates = (uint32_t)n;
}

void psplit_i_read_training(item training, psplit_i_manifest *m) {
  static const char *const forms[] = {"default", "input"};
  static const char *const recomputes[] = {"none", "heavy", "all"};
  if (!psplit_i_json_given(training)) return;
  const item stages = psplit_i_json_need(&training, "stages");
  const item gradients = psplit_i_json_find(&training, "input_gradients");
  uint32_t form = 0;
  psplit_i_training_table *table = NEW(&training, psplit_i_training_table, 1);
  psplit_i_training_parts *list = NEW(&training, psplit_i_training_parts, m->n_stages);
  if (failed(&training)) return;
  psplit_i_json_choice(psplit_i_json_need(&training, "weight_form"), forms, 2, &form);
  table->plain_weights = form == 1;
  psplit_i_json_choice(psplit_i_json_need(&training, "recompute"), recomputes, 3,
                       &table->recompute);
  psplit_i_json_text(need_or_null(&training, "optimizer"), &table->optimizer);
  read_options(psplit_i_json_need(&training, "options"), table);
  const item loss = psplit_i_json_need(&training, "loss");
  need_text(&loss, "tensor", &table->loss_tensor);
  need_text(&loss, "gradient", &table->loss_gradient);
  need_index(&loss, "stage", m->n_stages, &table->loss_stage);
  read_weights(psplit_i_json_need(&training, "weights"), m->n_stages, table);
  read_names(gradients, "name", &table->input_gradients, &table->n_input_gradients);
  read_names(gradients, "gradient", &table->gradient_names, &table->n_input_gradients);
  if (psplit_i_json_length(&stages, m->n_stages, m->n_stages))
    for (uint32_t s = 0; s < m->n_stages && !failed(&training); s++)
      read_stage(psplit_i_json_element(&stages, s), m->n_stages, &list[s]);
  table->stages = list;
  psplit_i_read_masks(psplit_i_json_need(&training, "masks"), m->n_stages, &table->masks,
                      &table->n_masks);
  psplit_i_read_transfers(psplit_i_json_need(&training, "transfers"), m->n_stages, false,
                          &table->transfers, &table->n_transfers);
  read_duplicates(psplit_i_json_find(&training, "duplicates"), m->n_stages, table);
  list_files(&training, table, m);
  m->training = table;
}
