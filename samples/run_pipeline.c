/* Runs a split in a program of one's own: inputs from memory, outputs to a function.
 *
 *   onnx-pipeline-split model.onnx -k 3 -o out --dim batch=1
 *   cc samples/run_pipeline.c -o run_pipeline $(pkg-config --cflags --libs psplit-run)
 *   ./run_pipeline out 8 1 3 224 224
 *
 * takes 8 micro-batches through it; each input is a float tensor of the shape given, filled with
 * the number of its micro-batch. PSPLIT_ONNXRUNTIME or the loader says where ONNX Runtime is. */
#include <psplit/run.h>
#include <stdio.h>
#include <stdlib.h>

typedef struct shape {
  int64_t dims[8], n_elements;
  uint32_t n_dims;
  const char *const *outputs; /* names */
} shape;

static psplit_code give(void *user, uint32_t micro_batch, const char *input, psplit_diag *diag,
                        psplit_tensor_view *out) {
  static _Thread_local float *data; /* stages ask from a thread each */
  const shape *s = user;
  const size_t n_bytes = (size_t)s->n_elements * sizeof *data;
  float *grown = realloc(data, n_bytes);
  if (!grown) return psplit_diag_fail(diag, PSPLIT_NOMEM, "no memory for input %s", input);
  data = grown;
  for (int64_t i = 0; i < s->n_elements; i++) data[i] = (float)micro_batch;
  *out = (psplit_tensor_view){1, s->n_dims, s->dims, data, n_bytes};
  return PSPLIT_OK;
}

static psplit_code take(void *user, uint32_t micro_batch, uint32_t output,
                        const psplit_tensor_view *tensor, psplit_diag *diag) {
  const shape *s = user;
  if (tensor->data_type != 1 || !tensor->n_bytes)
    return psplit_diag_fail(diag, PSPLIT_UNSUPPORTED, "%s is no float", s->outputs[output]);
  printf("%u %s %.9g\n", micro_batch, s->outputs[output], (double)*(const float *)tensor->data);
  return PSPLIT_OK;
}

int main(int argc, char **argv) {
  psplit_diag diag = {0};
  psplit_onnxruntime *ort = NULL;
  psplit_pipeline *pipeline = NULL;
  psplit_run *run = NULL;
  psplit_feed_options feed;
  psplit_run_options options;
  shape s = {.n_elements = 1};
  if (argc < 4 || argc > 11) return 2;
  for (int i = 3; i < argc; i++) s.n_elements *= s.dims[s.n_dims++] = strtol(argv[i], NULL, 10);
  psplit_feed_options_init(&feed);
  feed.give = give;
  feed.give_user = &s;
  psplit_run_options_init(&options);
  options.feed = &feed;
  options.n_micro_batches = (uint32_t)strtoul(argv[2], NULL, 10);
  options.take_output = take;
  options.take_output_user = &s;
  psplit_code code = psplit_onnxruntime_open(NULL, &diag, &ort);
  if (!code) code = psplit_pipeline_open(argv[1], NULL, &diag, &pipeline);
  if (!code) s.outputs = psplit_pipeline_get_info(pipeline)->outputs;
  if (!code) code = psplit_pipeline_run(ort, pipeline, &options, &diag, &run);
  if (code) fprintf(stderr, "error: %s (%s)\n", diag.message, psplit_code_name(code));
  if (run) fprintf(stderr, "%.4g micro-batches/s\n", psplit_run_get_report(run)->throughput);
  psplit_run_destroy(run);
  psplit_pipeline_close(pipeline);
  psplit_onnxruntime_close(ort);
  return code ? 1 : 0;
}
