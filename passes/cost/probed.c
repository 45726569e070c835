/* What a provider can run of a model, as a probe found it, for the devices that use the
 * provider. */
#include <string.h>
#include <strings.h>

#include "devices_inside.h"
#include "graph.h"
#include "support.h"

/* "WebGPU" and "WebGpuExecutionProvider" are one. */
static size_t length_without_suffix(const char *provider) {
  static const char suffix[] = "ExecutionProvider";
  const size_t n = strlen(provider), m = strlen(suffix);
  return n > m && strcasecmp(provider + n - m, suffix) == 0 ? n - m : n;
}

static bool same_provider(const char *a, const char *b) {
  const size_t n = length_without_suffix(a);
  return n == length_without_suffix(b) && strncasecmp(a, b, n) == 0;
}

bool psplit_devices_run(const psplit_devices *devices, uint32_t device, const char *provider) {
  const char *own = devices->devices[device].session.provider;
  return own && same_provider(own, provider);
}

static void check_model(const psplit_i_json_item *root, const psplit_model *model) {
  uint32_t n_nodes = 0;
  const psplit_i_json_item item = psplit_i_json_need(root, "nodes");
  psplit_i_json_u32(item, 0, UINT32_MAX, &n_nodes);
  if (!model || root->reader->code != PSPLIT_OK) return;
  const uint32_t own = psplit_i_model_graph(model)->n_nodes;
  if (n_nodes != own)
    psplit_i_json_wrong(&item, "is %u, and this model has %u nodes: another one was asked about",
                        n_nodes, own);
}

static psplit_code restrict_devices(const psplit_i_json_item *root, psplit_devices *devices,
                                    const char *provider, const psplit_model *model) {
  static const char *const known[] = {"format",       "version",    "provider", "onnxruntime",
                                      "optimization", "model",      "nodes",    "supports",
                                      "unsupported",  "host_nodes", "others"};
  static const char *const formats[] = {"onnx-pipeline-split-support"};
  psplit_i_json_reader *r = root->reader;
  const psplit_i_json_item said = psplit_i_json_need(root, "provider");
  const char *of = NULL;
  uint32_t number = 0;
  PSPLIT_I_JSON_KEYS(root, known);
  psplit_i_json_choice(psplit_i_json_need(root, "format"), formats, 1, &number);
  psplit_i_json_u32(psplit_i_json_need(root, "version"), 1, 1, &number);
  r->arena = &devices->arena;
  psplit_i_json_name(said, &of);
  if (r->code == PSPLIT_OK && !same_provider(of, provider))
    psplit_i_json_wrong(&said, "is not %s", provider);
  check_model(root, model);
  for (uint32_t d = 0; d < devices->n && r->code == PSPLIT_OK; d++) {
    psplit_i_device *device = &devices->devices[d];
    if (!psplit_devices_run(devices, d, provider)) continue;
    psplit_i_support_read(root, &device->model.support);
    psplit_i_support_read_nodes(psplit_i_json_find(root, "host_nodes"),
                                &device->session.n_host_nodes, &device->session.host_nodes);
  }
  return r->code;
}

psplit_code psplit_devices_restrict(psplit_devices *devices, const char *provider,
                                    const psplit_model *model, const char *text, size_t n_bytes,
                                    psplit_diag *diag) {
  psplit_i_json_reader reader = {.diag = diag};
  psplit_i_json_item root = psplit_i_json_load(&reader, text, n_bytes);
  const psplit_code code =
    root.value ? restrict_devices(&root, devices, provider, model) : reader.code;
  psplit_i_json_release(&root);
  return code;
}
