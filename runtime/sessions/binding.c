/* Runs whose outputs stay in the memory of the device that computed them. */
#include "device_id.h"
#include "ort.h"

/* Where providers have their outputs, as CreateMemoryInfo calls it; what a library does not know it
 * refuses. WebGPU's had another name until ONNX Runtime 1.22. */
static const struct {
  const char *provider, *memory;
} MEMORIES[] = {
  {"CUDAExecutionProvider", "Cuda"},
  {"TensorrtExecutionProvider", "Cuda"},
  {"NvTensorRTRTXExecutionProvider", "Cuda"},
  {"ROCMExecutionProvider", "Hip"},
  {"MIGraphXExecutionProvider", "Hip"},
  {"CANNExecutionProvider", "Cann"},
  {"DmlExecutionProvider", "DML"},
  {"WebGpuExecutionProvider", "WebGPU_Buf"},
  {"WebGpuExecutionProvider", "WebGPU_Buffer"},
};

static bool succeeds(const psplit_i_ort *ort, OrtStatus *status) {
  if (status) ort->api.ReleaseStatus(status);
  return !status;
}

psplit_code psplit_i_binding_device(const psplit_i_session_options *options, psplit_diag *diag,
                                    int *out) {
  bool has_memory = false;
  for (size_t i = 0; i < sizeof MEMORIES / sizeof *MEMORIES && !has_memory; i++)
    has_memory = psplit_i_provider_is(options->provider, MEMORIES[i].provider);
  *out = 0;
  if (!has_memory) return PSPLIT_OK; /* others may call their devices by any name */
  const psplit_code code = psplit_i_device_id(options->provider_keys, options->provider_values,
                                              options->n_provider_options, diag, out);
  if (code != PSPLIT_OK) psplit_i_diag_context(diag, "execution provider %s", options->provider);
  return code;
}

void psplit_i_binding_open(psplit_i_session *session, const psplit_i_session_options *options,
                           int device) {
  const psplit_i_ort *ort = session->ort;
  const OrtApi *api = &ort->api;
  for (size_t i = 0; i < sizeof MEMORIES / sizeof *MEMORIES && !session->device; i++)
    if (psplit_i_provider_is(options->provider, MEMORIES[i].provider) &&
        !succeeds(ort, api->CreateMemoryInfo(MEMORIES[i].memory, ORT_DEVICE_ALLOCATOR, device,
                                             ORT_MEMORY_DEFAULT, &session->device)))
      session->device = NULL;
  if (!session->device) return;
  if (succeeds(
        ort, api->CreateCpuMemoryInfo(ORT_DEVICE_ALLOCATOR, ORT_MEMORY_DEFAULT, &session->host)) &&
      succeeds(ort, api->CreateIoBinding(session->session, &session->binding)))
    return;
  psplit_i_binding_close(session);
}

void psplit_i_binding_close(psplit_i_session *session) {
  const OrtApi *api = &session->ort->api;
  if (session->binding) api->ReleaseIoBinding(session->binding);
  if (session->host) api->ReleaseMemoryInfo(session->host);
  if (session->device) api->ReleaseMemoryInfo(session->device);
  session->binding = NULL;
  session->host = session->device = NULL;
}

/* The values that were bound as outputs, in their order. */
static psplit_code take_outputs(psplit_i_session *session, psplit_i_tensor **outputs, size_t m,
                                psplit_diag *diag) {
  const psplit_i_ort *ort = session->ort;
  OrtValue **values = NULL;
  size_t n = 0, done = 0;
  psplit_code code;
  PSPLIT_TRY(psplit_i_ort_check(
    ort, ort->api.GetBoundOutputValues(session->binding, ort->allocator, &values, &n),
    "ONNX Runtime", diag));
  if (n != m) code = psplit_i_fail(diag, PSPLIT_PLUGIN, "%zu outputs have come, not %zu", n, m);
  for (; code == PSPLIT_OK && done < m; done++) {
    outputs[done] = psplit_i_tensor_wrap(ort, values[done]);
    values[done] = NULL;
    if (!outputs[done]) code = psplit_i_nomem(diag);
  }
  if (code != PSPLIT_OK) psplit_i_tensors_release(outputs, done);
out:
  for (size_t i = 0; values && i < n; i++)
    if (values[i]) ort->api.ReleaseValue(values[i]);
  if (values && !succeeds(ort, ort->api.AllocatorFree(ort->allocator, values)) && !code)
    code = psplit_i_fail(diag, PSPLIT_PLUGIN, "ONNX Runtime does not take its memory back");
  return code;
}

psplit_code psplit_i_session_run_on_device(psplit_i_session *session, const psplit_i_session_io *io,
                                           const bool *stays, psplit_diag *diag) {
  static const char WHAT[] = "ONNX Runtime";
  const psplit_i_ort *ort = session->ort;
  const OrtApi *api = &ort->api;
  psplit_code code = PSPLIT_OK;
  for (size_t i = 0; i < io->n_inputs; i++)
    PSPLIT_TRY(psplit_i_ort_check(
      ort,
      api->BindInput(session->binding, io->input_names[i], psplit_i_tensor_value(io->inputs[i])),
      WHAT, diag));
  for (size_t o = 0; o < io->n_outputs; o++)
    PSPLIT_TRY(
      psplit_i_ort_check(ort,
                         api->BindOutputToDevice(session->binding, io->output_names[o],
                                                 stays[o] ? session->device : session->host),
                         WHAT, diag));
  PSPLIT_TRY(psplit_i_ort_check(
    ort, api->RunWithBinding(session->session, session->run_options, session->binding), WHAT,
    diag));
  PSPLIT_TRY(take_outputs(session, io->outputs, io->n_outputs, diag));
out:
  /* Not to hold what others may give back. */
  api->ClearBoundInputs(session->binding);
  api->ClearBoundOutputs(session->binding);
  return code;
}
