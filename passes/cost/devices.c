/* Devices and links: the roofline. */
#include <psplit/devices.h>

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "checked.h"
#include "devices_inside.h"
#include "support.h"

/* Shared memory, 10 GbE, 1 GbE. */
const psplit_device_link psplit_i_default_links[PSPLIT_I_N_PLACES] = {
  {8e9, 10000}, {1.1e9, 50000}, {1.1e8, 200000}};

psplit_devices *psplit_i_devices_create(uint32_t n) {
  psplit_devices *devices = calloc(1, sizeof *devices);
  if (!devices) return NULL;
  psplit_i_arena_init(&devices->arena, 0);
  devices->n = n;
  devices->devices = PSPLIT_NEW(&devices->arena, psplit_i_device, n);
  devices->links = PSPLIT_NEW(&devices->arena, psplit_device_link, (size_t)n * n);
  if (devices->devices && devices->links) return devices;
  psplit_devices_destroy(devices);
  return NULL;
}

static bool same_text(const char *a, const char *b) {
  return a == b || (a && b && strcmp(a, b) == 0);
}

void psplit_i_devices_connect(psplit_devices *devices, const psplit_device_link *links) {
  for (uint32_t from = 0; from < devices->n; from++)
    for (uint32_t to = 0; to < devices->n; to++) {
      const psplit_i_device *a = &devices->devices[from], *b = &devices->devices[to];
      devices->links[(size_t)from * devices->n + to] = from == to
                                                         ? (psplit_device_link){INFINITY, 0}
                                                       : same_text(a->host, b->host) ? links[0]
                                                       : same_text(a->rack, b->rack) ? links[1]
                                                                                     : links[2];
    }
}

bool psplit_i_devices_same(const psplit_devices *devices, uint32_t a, uint32_t b) {
  const psplit_i_device_model *x = &devices->devices[a].model, *y = &devices->devices[b].model;
  for (int i = 0; i < PSPLIT_N_CLASSES; i++)
    if (x->efficiency[i] != y->efficiency[i]) return false;
  for (int i = 0; i < PSPLIT_N_DTYPES; i++)
    if (x->flops_per_second[i] != y->flops_per_second[i] ||
        x->product_flops_per_second[i] != y->product_flops_per_second[i])
      return false;
  return x->memory_bandwidth == y->memory_bandwidth && x->memory_bytes == y->memory_bytes &&
         x->workspace_bytes == y->workspace_bytes && x->overhead_ns == y->overhead_ns &&
         x->keeps_copies == y->keeps_copies && psplit_i_support_same(x->support, y->support);
}

bool psplit_i_devices_all_same(const psplit_devices *devices) {
  for (uint32_t d = 1; d < devices->n; d++)
    if (!psplit_i_devices_same(devices, 0, d)) return false;
  return true;
}

static bool same_link(const psplit_device_link *a, const psplit_device_link *b) {
  return a->latency_ns == b->latency_ns && a->bytes_per_second == b->bytes_per_second;
}

bool psplit_i_devices_links_alike(const psplit_devices *devices, uint32_t n, bool either_way) {
  const psplit_device_link *first = &devices->links[n > 1];
  for (uint32_t from = 0; from < n; from++)
    for (uint32_t to = either_way ? 0 : from + 1; to < n; to++)
      if (from != to && !same_link(&devices->links[(size_t)from * devices->n + to], first))
        return false;
  return true;
}

bool psplit_i_devices_alike(const psplit_devices *devices) {
  return psplit_i_devices_all_same(devices) &&
         psplit_i_devices_links_alike(devices, devices->n, true);
}

bool psplit_i_devices_swappable(const psplit_devices *devices, uint32_t a, uint32_t b) {
  const psplit_device_link *links = devices->links;
  const size_t n = devices->n;
  if (!psplit_i_devices_same(devices, a, b) || !same_link(&links[a * n + b], &links[b * n + a]))
    return false;
  for (size_t d = 0; d < n; d++)
    if (d != a && d != b &&
        (!same_link(&links[a * n + d], &links[b * n + d]) ||
         !same_link(&links[d * n + a], &links[d * n + b])))
      return false;
  return true;
}

psplit_devices *psplit_i_devices_pick(const psplit_devices *devices, const uint32_t *pick,
                                      uint32_t n) {
  const size_t n_given = devices->n;
  psplit_devices *out = psplit_i_devices_create(n);
  if (!out) return NULL;
  for (size_t i = 0; i < n; i++) {
    out->devices[i] = devices->devices[pick[i]];
    for (size_t j = 0; j < n; j++)
      out->links[i * n + j] = devices->links[pick[i] * n_given + pick[j]];
  }
  return out;
}

/* n_devices times `model`, named `name` with a number behind, on one host. */
static psplit_code make_alike(const psplit_i_device_model *model, const char *name,
                              uint32_t n_devices, psplit_diag *diag, psplit_devices **out_devices) {
  if (n_devices == 0 || n_devices > PSPLIT_I_MAX_DEVICES)
    return psplit_i_fail(diag, PSPLIT_USAGE, "%u devices; between 1 and %d can be used", n_devices,
                         PSPLIT_I_MAX_DEVICES);
  psplit_devices *devices = psplit_i_devices_create(n_devices);
  if (!devices) return psplit_i_nomem(diag);
  for (uint32_t d = 0; d < n_devices; d++) {
    char numbered[96];
    const int n = snprintf(numbered, sizeof numbered, "%.64s%u", name, d);
    devices->devices[d].model = *model;
    devices->devices[d].session.optimization = -1;
    devices->devices[d].name = psplit_i_arena_strndup(&devices->arena, numbered, (size_t)n);
    if (!devices->devices[d].name) {
      psplit_devices_destroy(devices);
      return psplit_i_nomem(diag);
    }
  }
  psplit_i_devices_connect(devices, psplit_i_default_links);
  *out_devices = devices;
  return PSPLIT_OK;
}

psplit_code psplit_devices_preset(const char *preset, uint32_t n_devices, psplit_diag *diag,
                                  psplit_devices **out_devices) {
  psplit_i_device_model model;
  char name[65];
  if (!preset) preset = "cpu";
  if (!psplit_i_device_preset(preset, &model))
    return psplit_i_fail(diag, PSPLIT_USAGE, "unknown device preset \"%s\"", preset);
  snprintf(name, sizeof name, "%s%s", preset, strcmp(preset, "cpu") == 0 ? "" : "-");
  return make_alike(&model, name, n_devices, diag, out_devices);
}

psplit_code psplit_devices_repeat(const psplit_devices *devices, uint32_t n_devices,
                                  psplit_diag *diag, psplit_devices **out_devices) {
  const psplit_i_device *first = &devices->devices[0];
  return make_alike(&first->model, first->name, n_devices, diag, out_devices);
}

/* Both ways together. */
static psplit_device_link round_trip(const psplit_device_link *there,
                                     const psplit_device_link *back) {
  const double a = there->bytes_per_second, b = back->bytes_per_second;
  if (a <= 0 || b <= 0) return (psplit_device_link){0};
  return (psplit_device_link){
    .bytes_per_second = isinf(a)   ? b
                        : isinf(b) ? a
                                   : a * (b / (a + b)),
    .latency_ns = psplit_i_sat_add_i64(there->latency_ns, back->latency_ns)};
}

psplit_code psplit_devices_round_trip(const psplit_devices *devices, psplit_diag *diag,
                                      psplit_devices **out_devices) {
  const size_t n = devices->n;
  psplit_devices *both = psplit_i_devices_create(devices->n);
  if (!both) return psplit_i_nomem(diag);
  for (size_t d = 0; d < n; d++) both->devices[d] = devices->devices[d];
  for (size_t i = 0; i < n; i++)
    for (size_t j = 0; j < n; j++)
      both->links[i * n + j] =
        i == j ? devices->links[i * n + j]
               : round_trip(&devices->links[i * n + j], &devices->links[j * n + i]);
  *out_devices = both;
  return PSPLIT_OK;
}

void psplit_devices_destroy(psplit_devices *devices) {
  if (!devices) return;
  psplit_i_arena_fini(&devices->arena);
  free(devices);
}

uint32_t psplit_devices_count(const psplit_devices *devices) { return devices->n; }
const char *psplit_devices_name(const psplit_devices *devices, uint32_t d) {
  return devices->devices[d].name;
}
uint64_t psplit_devices_memory_bytes(const psplit_devices *devices, uint32_t d) {
  return devices->devices[d].model.memory_bytes;
}
void psplit_devices_limit_memory(psplit_devices *devices, uint64_t memory_bytes) {
  for (uint32_t d = 0; d < devices->n; d++)
    if (devices->devices[d].model.memory_bytes > memory_bytes)
      devices->devices[d].model.memory_bytes = memory_bytes;
}
uint64_t psplit_devices_workspace_bytes(const psplit_devices *devices, uint32_t d) {
  return devices->devices[d].model.workspace_bytes;
}
const psplit_session *psplit_devices_session(const psplit_devices *devices, uint32_t d) {
  return &devices->devices[d].session;
}
psplit_device_link psplit_devices_link(const psplit_devices *devices, uint32_t from, uint32_t to) {
  return devices->links[(size_t)from * devices->n + to];
}

/* Seconds to ns, rounded up, not past INT64_MAX. */
static int64_t to_ns(double seconds) { return psplit_i_sat_i64(ceil(seconds * 1e9)); }

/* Seconds of arithmetic. */
static double compute(const psplit_i_device_model *model, const psplit_work *work, uint64_t flops) {
  const unsigned op_class = (unsigned)work->op_class < PSPLIT_N_CLASSES ? work->op_class : 0;
  return (double)flops / (psplit_i_device_rate(model, (psplit_op_class)op_class, work->data_type) *
                          model->efficiency[op_class]);
}

/* The kernels that are started, and what they take. */
static int64_t started(const psplit_i_device_model *model, const psplit_work *work,
                       double seconds) {
  int64_t overhead;
  if (model->overhead_ns > 0 && work->launches > INT64_MAX / model->overhead_ns)
    overhead = INT64_MAX;
  else
    overhead = model->overhead_ns * work->launches;
  return psplit_i_sat_add_i64(overhead, to_ns(seconds));
}

static int64_t roofline_ns(const psplit_i_device_model *model, const psplit_work *work) {
  if (work->launches == 0 && work->flops == 0) return 0;
  const double move =
    ((double)work->bytes_read + (double)work->bytes_written) / model->memory_bandwidth;
  const double count = compute(model, work, work->flops);
  return started(model, work, count > move ? count : move);
}

int64_t psplit_devices_work_ns(const psplit_devices *devices, uint32_t d, const psplit_work *work) {
  return roofline_ns(&devices->devices[d].model, work);
}

/* What a kernel of a CPU reads and writes was mostly just written, and is in a cache as far as that
 * holds it; weights were read a whole run ago. Nothing hides behind anything else. */
int64_t psplit_i_kernel_ns(const psplit_i_device_model *model, const psplit_work *work,
                           const psplit_i_kernel *kernel) {
  static const double CACHE_BYTES = 3e6, CACHED = 3, UNCACHED = 1.5, STEP_S = 0.4e-9;
  if (work->launches == 0 && work->flops == 0) return 0;
  if (kernel->inside) /* its arithmetic, in registers */
    return to_ns((double)work->flops /
                 psplit_i_device_rate(model, work->op_class, work->data_type));
  if (!model->keeps_copies) return roofline_ns(model, work);
  const double weights = (double)kernel->weight_bytes, launches = work->launches;
  const double values = (double)work->bytes_read + (double)work->bytes_written - weights;
  const double hold = CACHE_BYTES * (launches > 1 ? launches : 1);
  const double cached = values < hold ? values : hold;
  const double move =
    (weights + cached / CACHED + (values - cached) / UNCACHED) / model->memory_bandwidth;
  return started(model, work,
                 compute(model, work, kernel->issued) + (double)kernel->steps * STEP_S + move);
}

int64_t psplit_i_link_ns(const psplit_device_link *link, uint64_t bytes) {
  if (!(link->bytes_per_second > 0)) return INT64_MAX;
  return psplit_i_sat_add_i64(link->latency_ns, to_ns((double)bytes / link->bytes_per_second));
}

int64_t psplit_devices_transfer_ns(const psplit_devices *devices, uint32_t from, uint32_t to,
                                   uint64_t bytes) {
  if (from == to) return 0;
  const psplit_device_link link = psplit_devices_link(devices, from, to);
  return psplit_i_link_ns(&link, bytes);
}
