/* Devices and links: reading a devices file. */
#include <psplit/devices.h>

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "devices_inside.h"
#include "support.h"

static const char *const PLACE_NAMES[PSPLIT_I_N_PLACES] = {"same_host", "same_rack", "anywhere"};

static const struct {
  const char *name;
  int data_type;
} RATE_NAMES[] = {
  {"float32", 1},       {"uint8", 2},           {"int8", 3},        {"int32", 6},
  {"int64", 7},         {"float16", 10},        {"float64", 11},    {"bfloat16", 16},
  {"float8e4m3fn", 17}, {"float8e4m3fnuz", 18}, {"float8e5m2", 19}, {"float8e5m2fnuz", 20},
  {"uint4", 21},        {"int4", 22},           {"float4e2m1", 23},
};
enum { N_RATES = sizeof RATE_NAMES / sizeof *RATE_NAMES };

/* Peaks by data type: for all units, or for those of products alone. */
static void read_peaks(psplit_i_json_item rates, bool products_alone,
                       psplit_i_device_model *model) {
  const char *known[N_RATES];
  for (int i = 0; i < N_RATES; i++) known[i] = RATE_NAMES[i].name;
  if (psplit_i_json_is_number(rates)) {
    psplit_i_json_must_be(&rates, "an object of rates by data type, such as {\"float32\": 1e12}");
    return;
  }
  PSPLIT_I_JSON_KEYS(&rates, known);
  for (int i = 0; i < N_RATES; i++) {
    double rate = 0;
    psplit_i_json_positive(psplit_i_json_find(&rates, known[i]), HUGE_VAL, &rate);
    if (!(rate > 0)) continue;
    model->product_flops_per_second[RATE_NAMES[i].data_type] = rate;
    if (!products_alone) model->flops_per_second[RATE_NAMES[i].data_type] = rate;
  }
}

static void read_efficiency(psplit_i_json_item shares, psplit_i_device_model *model) {
  const char *known[PSPLIT_N_CLASSES];
  for (int i = 0; i < PSPLIT_N_CLASSES; i++) known[i] = psplit_op_class_name((psplit_op_class)i);
  PSPLIT_I_JSON_KEYS(&shares, known);
  for (int i = 0; i < PSPLIT_N_CLASSES; i++)
    psplit_i_json_positive(psplit_i_json_find(&shares, known[i]), 1, &model->efficiency[i]);
}

/* An object of strings and integers, as text. */
static void read_texts(psplit_i_json_item texts, uint32_t *out_n, const char *const **out_keys,
                       const char *const **out_values) {
  psplit_i_json_reader *r = texts.reader;
  psplit_i_json_item text;
  size_t n = 0, i = 0;
  for (void *at = NULL; psplit_i_json_next(&texts, &at, &text);) n++;
  if (!n) return;
  const char **keys = PSPLIT_I_JSON_NEW(r, const char *, n);
  const char **values = PSPLIT_I_JSON_NEW(r, const char *, n);
  for (void *at = NULL; psplit_i_json_next(&texts, &at, &text); i++) {
    keys[i] = psplit_i_json_copy(r, text.key);
    if (psplit_i_json_is_integer(text)) {
      char number[32];
      int64_t value = 0;
      psplit_i_json_i64(text, INT64_MIN, INT64_MAX, &value);
      snprintf(number, sizeof number, "%" PRId64, value);
      values[i] = psplit_i_json_copy(r, number);
    } else if (psplit_i_json_is_string(text)) {
      psplit_i_json_text(text, &values[i]);
    } else {
      psplit_i_json_must_be(&text, "a string or an integer");
    }
  }
  *out_n = (uint32_t)n;
  *out_keys = keys;
  *out_values = values;
}

static void read_session(psplit_i_json_item session, psplit_session *out) {
  static const char *const known[] = {"provider", "provider_options", "threads", "optimization",
                                      "config"};
  enum { MAX_THREADS = 4096 };
  int64_t level = -1;
  PSPLIT_I_JSON_KEYS(&session, known);
  psplit_i_json_name(psplit_i_json_find(&session, "provider"), &out->provider);
  read_texts(psplit_i_json_find(&session, "provider_options"), &out->n_provider_options,
             &out->provider_keys, &out->provider_values);
  read_texts(psplit_i_json_find(&session, "config"), &out->n_config, &out->config_keys,
             &out->config_values);
  const psplit_i_json_item provider = psplit_i_json_find(&session, "provider"),
                           optimization = psplit_i_json_find(&session, "optimization");
  if (out->n_provider_options && !out->provider)
    psplit_i_json_wrong(&provider, "is missing, and provider_options are given");
  psplit_i_json_u32(psplit_i_json_find(&session, "threads"), 1, MAX_THREADS, &out->n_threads);
  psplit_i_json_i64(optimization, 0, INT64_MAX, &level);
  if (level > 2 && level != 99) psplit_i_json_must_be(&optimization, "0, 1, 2 or 99");
  out->optimization = (int32_t)level;
}

#define MODEL_KEYS                                                                              \
  "preset", "flops_per_second", "product_flops_per_second", "memory_bandwidth", "memory_bytes", \
    "overhead_ns", "efficiency", "workspace_bytes", "keeps_copies", "supports", "unsupported"

/* A preset of the file. */
typedef struct own_preset {
  const char *name;
  psplit_i_device_model model;
} own_preset;

typedef struct own_presets {
  own_preset *items;
  size_t n;
} own_presets;

/* One of the file, else one that is built in. */
static bool find_preset(const own_presets *own, const char *name, psplit_i_device_model *out) {
  for (size_t p = 0; p < own->n; p++)
    if (strcmp(own->items[p].name, name) == 0) {
      *out = own->items[p].model;
      return true;
    }
  return psplit_i_device_preset(name, out);
}

static void refuse_preset(const psplit_i_json_item *preset, const char *name) {
  enum { MOST = 64 };
  const char *names[MOST];
  uint32_t n = 0;
  while (n < MOST && (names[n] = psplit_device_preset_name(n)) != NULL) n++;
  const uint32_t near = psplit_i_nearest(name, names, n);
  if (near < n)
    psplit_i_json_wrong(preset, "is not a known preset; did you mean \"%s\"?", names[near]);
  else
    psplit_i_json_wrong(preset, "is not a known preset, such as \"%s\"", names[0]);
}

/* What a device or a preset of the file can do. */
static void read_model(const psplit_i_json_item *object, const own_presets *own,
                       psplit_i_device_model *model) {
  const psplit_i_json_item preset = psplit_i_json_find(object, "preset"),
                           rates = psplit_i_json_find(object, "flops_per_second"),
                           bandwidth = psplit_i_json_find(object, "memory_bandwidth");
  const char *name = NULL;
  psplit_i_json_name(preset, &name);
  /* Without a preset, efficiencies are those of a CPU, and nothing else has a default. */
  psplit_i_device_preset("cpu", model);
  if (name) {
    if (!find_preset(own, name, model)) refuse_preset(&preset, name);
  } else {
    memset(model->flops_per_second, 0, sizeof model->flops_per_second);
    memset(model->product_flops_per_second, 0, sizeof model->product_flops_per_second);
    model->memory_bandwidth = 0;
    model->overhead_ns = 0;
    model->keeps_copies = false;
  }
  psplit_i_support_read(object, &model->support);
  psplit_i_json_flag(psplit_i_json_find(object, "keeps_copies"), &model->keeps_copies);
  read_peaks(rates, false, model);
  read_peaks(psplit_i_json_find(object, "product_flops_per_second"), true, model);
  read_efficiency(psplit_i_json_find(object, "efficiency"), model);
  psplit_i_json_positive(bandwidth, HUGE_VAL, &model->memory_bandwidth);
  psplit_i_json_u64(psplit_i_json_find(object, "memory_bytes"), &model->memory_bytes);
  psplit_i_json_u64(psplit_i_json_find(object, "workspace_bytes"), &model->workspace_bytes);
  psplit_i_json_i64(psplit_i_json_find(object, "overhead_ns"), 0, INT64_MAX, &model->overhead_ns);
  const psplit_i_json_item rate = {.reader = object->reader, .parent = &rates, .key = "float32"};
  if (!(psplit_i_device_rate(model, PSPLIT_CLASS_OTHER, 1) > 0))
    psplit_i_json_wrong(&rate, "is missing, and no preset gives it");
  if (!(model->memory_bandwidth > 0))
    psplit_i_json_wrong(&bandwidth, "is missing, and no preset gives it");
}

/* "presets": {"name": {...}, ...}; one may start from those before it. */
static void read_presets(psplit_i_json_item presets, own_presets *out) {
  static const char *const known[] = {MODEL_KEYS};
  psplit_i_json_item preset;
  size_t n = 0;
  for (void *at = NULL; psplit_i_json_next(&presets, &at, &preset);) n++;
  if (!n) return;
  out->items = PSPLIT_I_JSON_NEW(presets.reader, own_preset, n);
  for (void *at = NULL; out->items && psplit_i_json_next(&presets, &at, &preset);) {
    own_preset *made = &out->items[out->n];
    PSPLIT_I_JSON_KEYS(&preset, known);
    read_model(&preset, out, &made->model);
    made->name = psplit_i_json_copy(presets.reader, preset.key);
    if (made->name) out->n++;
  }
}

static void read_device(psplit_i_json_item device, const own_presets *own, psplit_i_device *out) {
  static const char *const known[] = {"name", "host", "rack", "session", "host_nodes", MODEL_KEYS};
  PSPLIT_I_JSON_KEYS(&device, known);
  psplit_i_json_name(psplit_i_json_need(&device, "name"), &out->name);
  psplit_i_json_name(psplit_i_json_find(&device, "host"), &out->host);
  psplit_i_json_name(psplit_i_json_find(&device, "rack"), &out->rack);
  read_session(psplit_i_json_find(&device, "session"), &out->session);
  psplit_i_support_read_nodes(psplit_i_json_find(&device, "host_nodes"), &out->session.n_host_nodes,
                              &out->session.host_nodes);
  read_model(&device, own, &out->model);
}

static void read_link(const psplit_i_json_item *link, psplit_device_link *out) {
  psplit_i_json_real(psplit_i_json_find(link, "bytes_per_second"), 0, HUGE_VAL,
                     &out->bytes_per_second);
  psplit_i_json_i64(psplit_i_json_find(link, "latency_ns"), 0, INT64_MAX, &out->latency_ns);
}

static void read_topology(psplit_i_json_item topology, psplit_device_link *links) {
  static const char *const known[] = {"bytes_per_second", "latency_ns"};
  PSPLIT_I_JSON_KEYS(&topology, PLACE_NAMES);
  for (int i = 0; i < PSPLIT_I_N_PLACES; i++) {
    const psplit_i_json_item link = psplit_i_json_find(&topology, PLACE_NAMES[i]);
    PSPLIT_I_JSON_KEYS(&link, known);
    read_link(&link, &links[i]);
  }
}

static uint32_t read_end(const psplit_devices *devices, psplit_i_json_item end) {
  const char *name = NULL;
  psplit_i_json_name(end, &name);
  for (uint32_t d = 0; name && d < devices->n; d++)
    if (strcmp(devices->devices[d].name, name) == 0) return d;
  psplit_i_json_must_be(&end, "the name of one of the devices");
  return 0;
}

/* Links named one by one; each holds for both directions unless "one_way" is true. */
static void read_links(psplit_devices *devices, psplit_i_json_item list) {
  static const char *const known[] = {"from", "to", "bytes_per_second", "latency_ns", "one_way"};
  const size_t n = psplit_i_json_length(&list, 0, SIZE_MAX);
  for (size_t i = 0; i < n && list.reader->code == PSPLIT_OK; i++) {
    const psplit_i_json_item object = psplit_i_json_element(&list, i);
    bool one_way = false;
    PSPLIT_I_JSON_KEYS(&object, known);
    const uint32_t from = read_end(devices, psplit_i_json_need(&object, "from")),
                   to = read_end(devices, psplit_i_json_need(&object, "to"));
    if (from == to) psplit_i_json_wrong(&object, "joins a device to itself");
    psplit_device_link *link = &devices->links[(size_t)from * devices->n + to];
    read_link(&object, link);
    psplit_i_json_flag(psplit_i_json_find(&object, "one_way"), &one_way);
    if (!one_way) devices->links[(size_t)to * devices->n + from] = *link;
  }
}

static void check_names(const psplit_devices *devices, const psplit_i_json_item *list) {
  psplit_i_json_reader *r = list->reader;
  psplit_i_intern names;
  psplit_i_intern_init(&names);
  for (uint32_t d = 0; d < devices->n && r->code == PSPLIT_OK; d++) {
    const psplit_i_json_item device = psplit_i_json_element(list, d),
                             name = psplit_i_json_find(&device, "name");
    const uint32_t id = psplit_i_intern_add(&names, devices->devices[d].name);
    if (id == PSPLIT_NONE)
      r->code = psplit_i_nomem(r->diag);
    else if (id != d)
      psplit_i_json_wrong(&name, "is the name of an earlier device");
  }
  psplit_i_intern_fini(&names);
}

/* *out may be set on failure too. */
static psplit_code read_file(const psplit_i_json_item *root, psplit_devices **out) {
  static const char *const known[] = {"format",   "version", "devices",
                                      "topology", "links",   "presets"};
  static const char *const formats[] = {"onnx-pipeline-split-devices"};
  psplit_i_json_reader *r = root->reader;
  uint32_t number = 0;
  PSPLIT_I_JSON_KEYS(root, known);
  psplit_i_json_choice(psplit_i_json_find(root, "format"), formats, 1, &number);
  psplit_i_json_u32(psplit_i_json_find(root, "version"), 1, 1, &number);
  const psplit_i_json_item list = psplit_i_json_need(root, "devices");
  const size_t n = psplit_i_json_length(&list, 1, PSPLIT_I_MAX_DEVICES);
  if (r->code != PSPLIT_OK) return r->code;
  psplit_devices *devices = psplit_i_devices_create((uint32_t)n);
  if (!devices) return psplit_i_nomem(r->diag);
  *out = devices;
  r->arena = &devices->arena;
  own_presets own = {0};
  read_presets(psplit_i_json_find(root, "presets"), &own);
  for (uint32_t d = 0; d < n && r->code == PSPLIT_OK; d++)
    read_device(psplit_i_json_element(&list, d), &own, &devices->devices[d]);
  check_names(devices, &list);
  psplit_device_link links[PSPLIT_I_N_PLACES];
  memcpy(links, psplit_i_default_links, sizeof links);
  read_topology(psplit_i_json_find(root, "topology"), links);
  psplit_i_devices_connect(devices, links);
  read_links(devices, psplit_i_json_find(root, "links"));
  return r->code;
}

psplit_code psplit_devices_parse(const char *text, size_t n_bytes, psplit_diag *diag,
                                 psplit_devices **out_devices) {
  psplit_i_json_reader reader = {.diag = diag};
  psplit_devices *devices = NULL;
  psplit_i_json_item root = psplit_i_json_load(&reader, text, n_bytes);
  const psplit_code code = root.value ? read_file(&root, &devices) : reader.code;
  psplit_i_json_release(&root);
  if (code == PSPLIT_OK)
    *out_devices = devices;
  else
    psplit_devices_destroy(devices);
  return code;
}
