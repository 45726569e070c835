/* Fuzz target: differentiating whatever opens, with a loss over each of its outputs and everything
 * trained; the models that come out have to open. */
#include <psplit/gradient.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "open.h"
#include "splits.h"

#define REQUIRE(condition)                               \
  do {                                                   \
    if (!(condition)) {                                  \
      fprintf(stderr, "%d: %s\n", __LINE__, #condition); \
      abort();                                           \
    }                                                    \
  } while (0)

enum { MAX_LOSSES = 3 };

static void check_file(const char *path, psplit_code written) {
  /* External data is referred to by its location, which is beside the input. */
  const psplit_read_options options = {
    .struct_size = sizeof options, .data_directory = "/proc/self/fd", .follow_symlinks = true};
  psplit_model *model = NULL;
  psplit_diag diag = {0};
  if (written != PSPLIT_OK) return;
  const psplit_code code = psplit_model_open(path, &options, &diag, &model);
  if (code != PSPLIT_OK) fprintf(stderr, "%s\n", diag.message);
  REQUIRE(code == PSPLIT_OK);
  psplit_model_close(model);
  unlink(path);
}

static void differentiate(const psplit_model *model, const psplit_training_options *options) {
  psplit_gradient *gradient = NULL;
  psplit_diag diag = {0};
  char path[FUZZ_PATH_BYTES];
  if (psplit_gradient_create(model, options, NULL, &diag, &gradient) != PSPLIT_OK) {
    REQUIRE(diag.code != PSPLIT_INTERNAL && diag.message[0]);
    return;
  }
  for (uint32_t i = 0; i < psplit_gradient_n_backward_nodes(gradient); i++)
    REQUIRE(psplit_gradient_twin(gradient, i) < psplit_gradient_n_forward_nodes(gradient));
  fuzz_path("gradient.onnx", path);
  check_file(path, psplit_gradient_write_backward(gradient, path, NULL));
  check_file(path, psplit_gradient_write_update(gradient, "adamw", path, NULL));
  const psplit_code code = psplit_gradient_write_training_info(gradient, "adamw", path, &diag);
  REQUIRE(code == PSPLIT_OK || (diag.code != PSPLIT_INTERNAL && diag.message[0]));
  check_file(path, code);
  psplit_gradient_destroy(gradient);
}

static void lower(const psplit_model *model) {
  psplit_diag diag = {0};
  char path[FUZZ_PATH_BYTES];
  uint32_t n;
  fuzz_path("lowered.onnx", path);
  const psplit_code code = psplit_lower_gradients(model, path, &diag, &n);
  REQUIRE(code == PSPLIT_OK || (diag.code != PSPLIT_INTERNAL && diag.message[0]));
  if (code == PSPLIT_OK && n > 0) check_file(path, code);
  if (code == PSPLIT_OK) unlink(path);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n) {
  const int fd = fuzz_file(data, n);
  psplit_diag diag = {0};
  psplit_model *model = fuzz_open(fd, NULL, 0, &diag);
  if (model) {
    const psplit_i_graph *graph = psplit_i_model_graph(model);
    const char *const all[] = {"*"};
    const char *input = NULL;
    for (uint32_t i = 0; i < graph->n_inputs && !input; i++)
      if (graph->values[graph->inputs[i]].initializer == PSPLIT_NONE)
        input = graph->values[graph->inputs[i]].name;
    lower(model);
    for (uint32_t o = 0; o < graph->n_outputs && o < MAX_LOSSES; o++) {
      psplit_i_text loss = {0};
      psplit_i_text_addf(&loss, "mse:prediction=%s", graph->values[graph->outputs[o]].name);
      psplit_training_options training = {.loss = loss.bytes, .train = all, .n_train = 1};
      differentiate(model, &training);
      training.dropout = PSPLIT_DROPOUT_TRAIN;
      training.loss = NULL;
      training.loss_output = graph->values[graph->outputs[o]].name;
      training.n_train = 0;
      training.gradient_of = &input;
      training.n_gradient_of = input != NULL;
      differentiate(model, &training);
      psplit_i_text_fini(&loss);
    }
  }
  psplit_model_close(model);
  close(fd);
  return 0;
}
