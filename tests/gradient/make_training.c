/* Writes the forward and backward model of each model that standard input names, for the tests.
 *   make_training < LIST
 * One line a model: MODEL DIR LOSS [OPTION=VALUE...], separated by tabs; LOSS is "=NAME" for an
 * output that is the loss already. Options: train, freeze, gradient_of, batch_norm, dropout, update
 * (an optimizer).
 * Writes DIR/forward.onnx, DIR/backward.onnx, DIR/weights.onnx and DIR/update.onnx; prints one line
 * of JSON for each model, {"error": ...} for one that is refused. */
#include <psplit/gradient.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#include "base.h"
#include "json_put.h"

enum { MAX_PATTERNS = 64 };

typedef struct job {
  const char *model, *dir, *update;
  psplit_training_options options;
  const char *train[MAX_PATTERNS], *freeze[MAX_PATTERNS], *gradient_of[MAX_PATTERNS];
} job;

static void read_option(job *j, char *text) {
  char *value = strchr(text, '=');
  if (!value) return;
  *value++ = '\0';
  if (strcmp(text, "train") == 0 && j->options.n_train < MAX_PATTERNS)
    j->train[j->options.n_train++] = value;
  else if (strcmp(text, "freeze") == 0 && j->options.n_freeze < MAX_PATTERNS)
    j->freeze[j->options.n_freeze++] = value;
  else if (strcmp(text, "gradient_of") == 0 && j->options.n_gradient_of < MAX_PATTERNS)
    j->gradient_of[j->options.n_gradient_of++] = value;
  else if (strcmp(text, "update") == 0)
    j->update = value;
  else if (strcmp(text, "dropout") == 0)
    j->options.dropout = strcmp(value, "train") == 0 ? PSPLIT_DROPOUT_TRAIN : PSPLIT_DROPOUT_FROZEN;
  else if (strcmp(text, "batch_norm") == 0)
    j->options.batch_norm =
      strcmp(value, "train") == 0 ? PSPLIT_BATCH_NORM_TRAIN : PSPLIT_BATCH_NORM_FROZEN;
}

static bool read_job(char *line, job *j) {
  char *save = NULL;
  line[strcspn(line, "\n")] = '\0';
  j->model = strtok_r(line, "\t", &save);
  j->dir = strtok_r(NULL, "\t", &save);
  const char *loss = strtok_r(NULL, "\t", &save);
  if (!j->model || !j->dir || !loss) return false;
  if (*loss == '=')
    j->options.loss_output = loss + 1;
  else
    j->options.loss = loss;
  for (char *text; (text = strtok_r(NULL, "\t", &save));) read_option(j, text);
  j->options.train = j->train;
  j->options.freeze = j->freeze;
  j->options.gradient_of = j->gradient_of;
  return true;
}

static double now(void) {
  struct timespec time;
  clock_gettime(CLOCK_MONOTONIC, &time);
  return (double)time.tv_sec + (double)time.tv_nsec * 1e-9;
}

static void report(const psplit_gradient *gradient, double seconds, psplit_i_json *json) {
  psplit_i_json_put_string(json, "loss", psplit_gradient_loss(gradient));
  psplit_i_json_put_string(json, "loss_gradient", psplit_gradient_loss_gradient(gradient));
  psplit_i_json_put_open(json, "nodes", '[');
  psplit_i_json_uint(json, psplit_gradient_n_forward_nodes(gradient));
  psplit_i_json_uint(json, psplit_gradient_n_backward_nodes(gradient));
  psplit_i_json_close(json, ']');
  psplit_i_json_put_double(json, "seconds", seconds);
  psplit_i_json_put_open(json, "stash", '[');
  for (uint32_t i = 0; i < psplit_gradient_n_stashed(gradient); i++)
    psplit_i_json_string(json, psplit_gradient_stashed(gradient, i));
  psplit_i_json_close(json, ']');
  psplit_i_json_put_open(json, "masks", '{');
  for (uint32_t i = 0; i < psplit_gradient_n_masks(gradient); i++) {
    const psplit_mask mask = psplit_gradient_mask(gradient, i);
    psplit_i_json_put_open(json, mask.name, '[');
    psplit_i_json_string(json, mask.node);
    psplit_i_json_uint(json, (uint64_t)mask.kind);
    psplit_i_json_double(json, mask.ratio);
    psplit_i_json_close(json, ']');
  }
  psplit_i_json_close(json, '}');
  psplit_i_json_put_open(json, "weights", '{');
  for (uint32_t i = 0; i < psplit_gradient_n_trainables(gradient); i++) {
    const psplit_trainable t = psplit_gradient_trainable(gradient, i);
    if (t.next) continue;
    psplit_i_json_key(json, t.name);
    if (t.gradient)
      psplit_i_json_string(json, t.gradient);
    else
      psplit_i_json_null(json);
  }
  psplit_i_json_close(json, '}');
}

static psplit_code path_in(const char *dir, const char *name, char *out, size_t n) {
  return (size_t)snprintf(out, n, "%s/%s", dir, name) < n ? PSPLIT_OK : PSPLIT_USAGE;
}

static psplit_code run(const job *j, psplit_diag *diag, psplit_i_json *json) {
  psplit_code code;
  psplit_model *model = NULL;
  psplit_gradient *gradient = NULL;
  char path[4096];
  const double start = now();
  PSPLIT_TRY(psplit_model_open(j->model, NULL, diag, &model));
  PSPLIT_TRY(psplit_gradient_create(model, &j->options, NULL, diag, &gradient));
  PSPLIT_TRY(path_in(j->dir, "forward.onnx", path, sizeof path));
  PSPLIT_TRY(psplit_gradient_write_forward(gradient, PSPLIT_WEIGHTS_INPUT, path, diag));
  PSPLIT_TRY(path_in(j->dir, "backward.onnx", path, sizeof path));
  PSPLIT_TRY(psplit_gradient_write_backward(gradient, path, diag));
  PSPLIT_TRY(path_in(j->dir, "weights.onnx", path, sizeof path));
  PSPLIT_TRY(psplit_gradient_write_weights(gradient, path, diag));
  if (j->update) {
    PSPLIT_TRY(path_in(j->dir, "update.onnx", path, sizeof path));
    PSPLIT_TRY(psplit_gradient_write_update(gradient, j->update, path, diag));
  }
  report(gradient, now() - start, json);
out:
  psplit_gradient_destroy(gradient);
  psplit_model_close(model);
  return code;
}

int main(void) {
  static char line[65536];
  while (fgets(line, sizeof line, stdin)) {
    job j = {0};
    psplit_diag diag = {0};
    psplit_i_text text = {0};
    psplit_i_json json;
    psplit_i_json_init(&json, &text);
    json.compact = true;
    psplit_i_json_open(&json, '{');
    if (!read_job(line, &j)) return 2;
    if (run(&j, &diag, &json) != PSPLIT_OK) {
      psplit_i_json_put_string(&json, "error", diag.message);
      psplit_i_json_put_string(&json, "code", psplit_code_name(diag.code));
    }
    psplit_i_json_close(&json, '}');
    fputs(text.bytes ? text.bytes : "\n", stdout);
    psplit_i_text_fini(&text);
  }
  return 0;
}
