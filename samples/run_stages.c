/* Runs the stages of a split one after the other with ONNX Runtime's C API:
 *
 *   onnx-pipeline-split model.onnx -k 3 -o out --boundary io
 *   cc samples/run_stages.c -I ORT/include -L ORT/lib -lonnxruntime -o run_stages
 *   ./run_stages out/stage0.onnx out/stage1.onnx out/stage2.onnx
 *
 * With --boundary io a tensor has one name on both sides of a cut, so a table from names to tensors
 * is all that connects the stages. Inputs of the model are zeros here, with 1 for each symbolic
 * dimension. Reading what flows where from pipeline.json is the same with either boundary. */
#include <onnxruntime_c_api.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { MAX_TENSORS = 4096, MAX_PORTS = 256, MAX_DIMS = 16 };

static const OrtApi *ort;
static OrtAllocator *allocator;
static struct {
  char *name;
  OrtValue *tensor;
} table[MAX_TENSORS];
static size_t n_table;

static void check(OrtStatus *status) {
  if (!status) return;
  fprintf(stderr, "error: %s\n", ort->GetErrorMessage(status));
  exit(1);
}

static OrtValue **entry(const char *name) {
  for (size_t i = 0; i < n_table; i++) {
    if (strcmp(table[i].name, name) == 0) return &table[i].tensor;
  }
  if (n_table == MAX_TENSORS) exit(1);
  table[n_table].name = strdup(name);
  return &table[n_table++].tensor;
}

/* Zeros for an input of the model, which no earlier stage gave. */
static OrtValue *zeros(const OrtSession *session, size_t index) {
  OrtTypeInfo *info;
  const OrtTensorTypeAndShapeInfo *type;
  ONNXTensorElementDataType element;
  size_t n_dims;
  int64_t dims[MAX_DIMS];
  check(ort->SessionGetInputTypeInfo(session, index, &info));
  check(ort->CastTypeInfoToTensorInfo(info, &type));
  check(ort->GetTensorElementType(type, &element));
  check(ort->GetDimensionsCount(type, &n_dims));
  if (n_dims > MAX_DIMS) exit(1);
  check(ort->GetDimensions(type, dims, n_dims));
  int64_t count = 1;
  for (size_t i = 0; i < n_dims; i++) count *= dims[i] = dims[i] < 0 ? 1 : dims[i];
  ort->ReleaseTypeInfo(info);

  OrtValue *tensor;
  void *data;
  check(ort->CreateTensorAsOrtValue(allocator, dims, n_dims, element, &tensor));
  check(ort->GetTensorMutableData(tensor, &data));
  size_t element_bytes = element == ONNX_TENSOR_ELEMENT_DATA_TYPE_INT64 ? 8 : 4; /* or float32 */
  memset(data, 0, (size_t)count * element_bytes);
  return tensor;
}

static void run_stage(const OrtEnv *env, const OrtSessionOptions *options, const char *file) {
  OrtSession *session;
  size_t n_inputs, n_outputs;
  char *input_names[MAX_PORTS], *output_names[MAX_PORTS];
  const OrtValue *inputs[MAX_PORTS];
  OrtValue *outputs[MAX_PORTS] = {0};
  check(ort->CreateSession(env, file, options, &session));
  check(ort->SessionGetInputCount(session, &n_inputs));
  check(ort->SessionGetOutputCount(session, &n_outputs));
  if (n_inputs > MAX_PORTS || n_outputs > MAX_PORTS) exit(1);
  for (size_t i = 0; i < n_inputs; i++) {
    check(ort->SessionGetInputName(session, i, allocator, &input_names[i]));
    OrtValue **tensor = entry(input_names[i]);
    if (!*tensor) *tensor = zeros(session, i);
    inputs[i] = *tensor;
  }
  for (size_t i = 0; i < n_outputs; i++) {
    check(ort->SessionGetOutputName(session, i, allocator, &output_names[i]));
  }
  check(ort->Run(session, NULL, (const char *const *)input_names, inputs, n_inputs,
                 (const char *const *)output_names, n_outputs, outputs));
  for (size_t i = 0; i < n_outputs; i++) {
    printf("%s gives %s\n", file, output_names[i]);
    *entry(output_names[i]) = outputs[i];
    check(ort->AllocatorFree(allocator, output_names[i]));
  }
  for (size_t i = 0; i < n_inputs; i++) check(ort->AllocatorFree(allocator, input_names[i]));
  ort->ReleaseSession(session);
}

int main(int argc, char **argv) {
  OrtEnv *env;
  OrtSessionOptions *options;
  ort = OrtGetApiBase()->GetApi(ORT_API_VERSION);
  check(ort->CreateEnv(ORT_LOGGING_LEVEL_WARNING, "stages", &env));
  check(ort->CreateSessionOptions(&options));
  check(ort->GetAllocatorWithDefaultOptions(&allocator));
  for (int i = 1; i < argc; i++) run_stage(env, options, argv[i]);

  for (size_t i = 0; i < n_table; i++) {
    ort->ReleaseValue(table[i].tensor);
    free(table[i].name);
  }
  ort->ReleaseSessionOptions(options);
  ort->ReleaseEnv(env);
  return 0;
}
