/* Devices and links: reading a devices file. */
#include <psplit/devices.h>

#include <jansson.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "devices_inside.h"

enum { PATH_BYTES = 256 };

static const char *const link_names[PSPLIT_I_N_PLACES] = {"same_host", "same_rack", "anywhere"};

/* Where the reader is. Each function reports the first problem with the path of the item. */
typedef struct reader {
  psplit_devices *devices;
  psplit_diag *diag;
} reader;

static psplit_code wrong(reader *r, const char *path, const char *what) {
  return psplit_i_fail(r->diag, PSPLIT_INVALID, "%s: %s", path, what);
}

/* "a.b" or "b" in `out`; just "a" where that is too long for a message. */
static const char *join(char *out, const char *path, const char *key) {
  const int n = snprintf(out, PATH_BYTES, "%s%s%s", path, *path ? "." : "", key);
  return n < PATH_BYTES ? out : path;
}

/* Every key of `object` is one of the NULL-terminated list. */
static psplit_code check_keys(reader *r, const char *path, json_t *object,
                              const char *const *known) {
  char here[PATH_BYTES];
  const char *key;
  json_t *value;
  if (!json_is_object(object)) return wrong(r, *path ? path : "file", "must be an object");
  json_object_foreach(object, key, value) {
    size_t i = 0;
    while (known[i] && strcmp(known[i], key) != 0) i++;
    if (!known[i]) return wrong(r, join(here, path, key), "is not a key that is known here");
  }
  return PSPLIT_OK;
}

/* A number above `low` (or at it, if `or_equal`); *out is left alone where there is none. */
static psplit_code read_number(reader *r, const char *path, json_t *object, const char *key,
                               double low, bool or_equal, double high, double *out) {
  char here[PATH_BYTES];
  json_t *item = json_object_get(object, key);
  if (!item) return PSPLIT_OK;
  const double value = json_is_number(item) ? json_number_value(item) : NAN;
  if (!(or_equal ? value >= low : value > low) || !(value <= high) || isinf(value)) {
    char what[96];
    int n = snprintf(what, sizeof what, "must be a number %s %g", or_equal ? "from" : "above", low);
    if (high < HUGE_VAL && n > 0) snprintf(what + n, sizeof what - (size_t)n, " up to %g", high);
    return wrong(r, join(here, path, key), what);
  }
  *out = value;
  return PSPLIT_OK;
}

/* A non-negative integer. */
static psplit_code read_integer(reader *r, const char *path, json_t *object, const char *key,
                                int64_t *out) {
  char here[PATH_BYTES];
  json_t *item = json_object_get(object, key);
  if (!item) return PSPLIT_OK;
  if (!json_is_integer(item) || json_integer_value(item) < 0)
    return wrong(r, join(here, path, key), "must be an integer from 0");
  *out = json_integer_value(item);
  return PSPLIT_OK;
}

static psplit_code read_string(reader *r, const char *path, json_t *object, const char *key,
                               const char **out) {
  char here[PATH_BYTES];
  json_t *item = json_object_get(object, key);
  if (!item) return PSPLIT_OK;
  if (!json_is_string(item) || json_string_length(item) == 0)
    return wrong(r, join(here, path, key), "must be a string that is not empty");
  *out =
    psplit_i_arena_strndup(&r->devices->arena, json_string_value(item), json_string_length(item));
  return *out ? PSPLIT_OK : psplit_i_nomem(r->diag);
}

static const struct {
  const char *name;
  int data_type;
} rate_names[] = {
  {"float32", 1},       {"uint8", 2},           {"int8", 3},        {"int32", 6},
  {"int64", 7},         {"float16", 10},        {"float64", 11},    {"bfloat16", 16},
  {"float8e4m3fn", 17}, {"float8e4m3fnuz", 18}, {"float8e5m2", 19}, {"float8e5m2fnuz", 20},
  {"uint4", 21},        {"int4", 22},           {"float4e2m1", 23},
};
enum { N_RATES = sizeof rate_names / sizeof *rate_names };

static psplit_code read_rates(reader *r, const char *path, json_t *object,
                              psplit_i_device_model *model) {
  psplit_code code = PSPLIT_OK;
  const char *known[N_RATES + 1] = {NULL};
  for (int i = 0; i < N_RATES; i++) known[i] = rate_names[i].name;
  PSPLIT_TRY(check_keys(r, path, object, known));
  for (int i = 0; i < N_RATES; i++)
    PSPLIT_TRY(read_number(r, path, object, rate_names[i].name, 0, false, HUGE_VAL,
                           &model->flops_per_second[rate_names[i].data_type]));
out:
  return code;
}

static psplit_code read_efficiency(reader *r, const char *path, json_t *object,
                                   psplit_i_device_model *model) {
  psplit_code code = PSPLIT_OK;
  const char *known[PSPLIT_N_CLASSES + 1] = {NULL};
  for (int i = 0; i < PSPLIT_N_CLASSES; i++) known[i] = psplit_op_class_name((psplit_op_class)i);
  PSPLIT_TRY(check_keys(r, path, object, known));
  for (int i = 0; i < PSPLIT_N_CLASSES; i++)
    PSPLIT_TRY(read_number(r, path, object, psplit_op_class_name((psplit_op_class)i), 0, false, 1,
                           &model->efficiency[i]));
out:
  return code;
}

/* An object of strings and integers, as text. */
static psplit_code read_texts(reader *r, const char *path, json_t *object, const char *name,
                              uint32_t *out_n, const char *const **out_keys,
                              const char *const **out_values) {
  char here[PATH_BYTES], there[PATH_BYTES], number[32];
  json_t *texts = json_object_get(object, name), *value;
  const char *key;
  if (!texts) return PSPLIT_OK;
  join(here, path, name);
  if (!json_is_object(texts)) return wrong(r, here, "must be an object");
  const char **keys = PSPLIT_NEW(&r->devices->arena, const char *, json_object_size(texts));
  const char **values = PSPLIT_NEW(&r->devices->arena, const char *, json_object_size(texts));
  if (!keys || !values) return psplit_i_nomem(r->diag);
  json_object_foreach(texts, key, value) {
    const char *text = json_string_value(value);
    if (json_is_integer(value)) {
      snprintf(number, sizeof number, "%lld", (long long)json_integer_value(value));
      text = number;
    }
    if (!text) return wrong(r, join(there, here, key), "must be a string or an integer");
    keys[*out_n] = psplit_i_arena_strndup(&r->devices->arena, key, strlen(key));
    values[*out_n] = psplit_i_arena_strndup(&r->devices->arena, text, strlen(text));
    if (!keys[*out_n] || !values[*out_n]) return psplit_i_nomem(r->diag);
    ++*out_n;
  }
  *out_keys = keys;
  *out_values = values;
  return PSPLIT_OK;
}

static psplit_code read_session(reader *r, const char *path, json_t *object, psplit_session *out) {
  static const char *const known[] = {"provider",     "provider_options", "threads",
                                      "optimization", "config",           NULL};
  enum { MAX_THREADS = 4096 };
  psplit_code code = PSPLIT_OK;
  char here[PATH_BYTES];
  int64_t threads = 0, level = -1;
  PSPLIT_TRY(check_keys(r, path, object, known));
  PSPLIT_TRY(read_string(r, path, object, "provider", &out->provider));
  PSPLIT_TRY(read_texts(r, path, object, "provider_options", &out->n_provider_options,
                        &out->provider_keys, &out->provider_values));
  PSPLIT_TRY(
    read_texts(r, path, object, "config", &out->n_config, &out->config_keys, &out->config_values));
  if (out->n_provider_options && !out->provider)
    return wrong(r, join(here, path, "provider"), "is missing, and provider_options are given");
  PSPLIT_TRY(read_integer(r, path, object, "threads", &threads));
  if (json_object_get(object, "threads") && (threads < 1 || threads > MAX_THREADS))
    return wrong(r, join(here, path, "threads"), "must be from 1 to 4096");
  PSPLIT_TRY(read_integer(r, path, object, "optimization", &level));
  if (level > 2 && level != 99)
    return wrong(r, join(here, path, "optimization"), "must be 0, 1, 2 or 99");
  out->n_threads = (uint32_t)threads;
  out->optimization = (int32_t)level;
out:
  return code;
}

static psplit_code read_device(reader *r, const char *path, json_t *object, psplit_i_device *out) {
  static const char *const known[] = {
    "name",         "preset",      "flops_per_second", "memory_bandwidth",
    "memory_bytes", "overhead_ns", "efficiency",       "workspace_bytes",
    "host",         "rack",        "session",          NULL};
  psplit_code code = PSPLIT_OK;
  char here[PATH_BYTES];
  const char *preset = NULL;
  int64_t memory = -1, workspace = -1;
  PSPLIT_TRY(check_keys(r, path, object, known));
  PSPLIT_TRY(read_string(r, path, object, "name", &out->name));
  if (!out->name) return wrong(r, join(here, path, "name"), "is missing");
  PSPLIT_TRY(read_string(r, path, object, "host", &out->host));
  PSPLIT_TRY(read_string(r, path, object, "rack", &out->rack));
  out->session.optimization = -1;
  json_t *session = json_object_get(object, "session");
  if (session) PSPLIT_TRY(read_session(r, join(here, path, "session"), session, &out->session));
  PSPLIT_TRY(read_string(r, path, object, "preset", &preset));
  /* Without a preset, efficiencies are those of a CPU, and nothing else has a default. */
  psplit_i_device_preset("cpu", &out->model);
  if (preset) {
    if (!psplit_i_device_preset(preset, &out->model))
      return wrong(r, join(here, path, "preset"), "names no preset that is known");
  } else {
    memset(out->model.flops_per_second, 0, sizeof out->model.flops_per_second);
    out->model.memory_bandwidth = 0;
    out->model.overhead_ns = 0;
  }
  json_t *rates = json_object_get(object, "flops_per_second");
  if (rates) PSPLIT_TRY(read_rates(r, join(here, path, "flops_per_second"), rates, &out->model));
  json_t *shares = json_object_get(object, "efficiency");
  if (shares) PSPLIT_TRY(read_efficiency(r, join(here, path, "efficiency"), shares, &out->model));
  PSPLIT_TRY(read_number(r, path, object, "memory_bandwidth", 0, false, HUGE_VAL,
                         &out->model.memory_bandwidth));
  PSPLIT_TRY(read_integer(r, path, object, "memory_bytes", &memory));
  if (memory >= 0) out->model.memory_bytes = (uint64_t)memory;
  PSPLIT_TRY(read_integer(r, path, object, "workspace_bytes", &workspace));
  if (workspace >= 0) out->model.workspace_bytes = (uint64_t)workspace;
  PSPLIT_TRY(read_integer(r, path, object, "overhead_ns", &out->model.overhead_ns));
  if (!(psplit_i_device_rate(&out->model, 1) > 0))
    return wrong(r, join(here, path, "flops_per_second.float32"),
                 "is missing, and no preset gives it");
  if (!(out->model.memory_bandwidth > 0))
    return wrong(r, join(here, path, "memory_bandwidth"), "is missing, and no preset gives it");
out:
  return code;
}

static psplit_code read_link(reader *r, const char *path, json_t *object, psplit_device_link *out) {
  psplit_code code = PSPLIT_OK;
  PSPLIT_TRY(
    read_number(r, path, object, "bytes_per_second", 0, true, HUGE_VAL, &out->bytes_per_second));
  PSPLIT_TRY(read_integer(r, path, object, "latency_ns", &out->latency_ns));
out:
  return code;
}

static psplit_code read_topology(reader *r, json_t *object, psplit_device_link *links) {
  static const char *const known[] = {"same_host", "same_rack", "anywhere", NULL};
  static const char *const known_link[] = {"bytes_per_second", "latency_ns", NULL};
  psplit_code code = PSPLIT_OK;
  char path[PATH_BYTES];
  if (!object) return PSPLIT_OK;
  PSPLIT_TRY(check_keys(r, "topology", object, known));
  for (int i = 0; i < PSPLIT_I_N_PLACES; i++) {
    json_t *link = json_object_get(object, link_names[i]);
    if (!link) continue;
    join(path, "topology", link_names[i]);
    PSPLIT_TRY(check_keys(r, path, link, known_link));
    PSPLIT_TRY(read_link(r, path, link, &links[i]));
  }
out:
  return code;
}

static psplit_code find_end(reader *r, const char *path, json_t *object, const char *key,
                            uint32_t *out) {
  char here[PATH_BYTES];
  json_t *item = json_object_get(object, key);
  for (uint32_t d = 0; json_is_string(item) && d < r->devices->n; d++)
    if (strcmp(r->devices->devices[d].name, json_string_value(item)) == 0) {
      *out = d;
      return PSPLIT_OK;
    }
  return wrong(r, join(here, path, key), "must name one of the devices");
}

/* Links named one by one; each holds for both directions unless "one_way" is true. */
static psplit_code read_links(reader *r, json_t *list) {
  static const char *const known[] = {"from",       "to",      "bytes_per_second",
                                      "latency_ns", "one_way", NULL};
  psplit_code code = PSPLIT_OK;
  char path[PATH_BYTES], here[PATH_BYTES];
  if (!list) return PSPLIT_OK;
  if (!json_is_array(list)) return wrong(r, "links", "must be an array");
  for (size_t i = 0; i < json_array_size(list); i++) {
    json_t *object = json_array_get(list, i);
    uint32_t from, to;
    snprintf(path, sizeof path, "links[%zu]", i);
    PSPLIT_TRY(check_keys(r, path, object, known));
    PSPLIT_TRY(find_end(r, path, object, "from", &from));
    PSPLIT_TRY(find_end(r, path, object, "to", &to));
    if (from == to) return wrong(r, path, "joins a device to itself");
    psplit_device_link *link = &r->devices->links[(size_t)from * r->devices->n + to];
    PSPLIT_TRY(read_link(r, path, object, link));
    json_t *one_way = json_object_get(object, "one_way");
    if (one_way && !json_is_boolean(one_way))
      return wrong(r, join(here, path, "one_way"), "must be true or false");
    if (!json_is_true(one_way)) r->devices->links[(size_t)to * r->devices->n + from] = *link;
  }
out:
  return code;
}

static psplit_code check_names(reader *r) {
  psplit_i_intern names;
  psplit_code code = PSPLIT_OK;
  psplit_i_intern_init(&names);
  for (uint32_t d = 0; d < r->devices->n && code == PSPLIT_OK; d++) {
    char path[PATH_BYTES];
    const uint32_t id = psplit_i_intern_add(&names, r->devices->devices[d].name);
    snprintf(path, sizeof path, "devices[%u].name", d);
    if (id == PSPLIT_NONE)
      code = psplit_i_nomem(r->diag);
    else if (id != d)
      code = wrong(r, path, "is the name of an earlier device");
  }
  psplit_i_intern_fini(&names);
  return code;
}

static psplit_code read_file(reader *r, json_t *root) {
  psplit_code code = PSPLIT_OK;
  static const char *const known[] = {"format", "version", "devices", "topology", "links", NULL};
  PSPLIT_TRY(check_keys(r, "", root, known));
  json_t *format = json_object_get(root, "format"), *version = json_object_get(root, "version");
  if (format && (!json_is_string(format) ||
                 strcmp(json_string_value(format), "onnx-pipeline-split-devices") != 0))
    return wrong(r, "format", "must be \"onnx-pipeline-split-devices\"");
  if (version && (!json_is_integer(version) || json_integer_value(version) != 1))
    return wrong(r, "version", "must be 1");
  json_t *list = json_object_get(root, "devices");
  if (!json_is_array(list) || json_array_size(list) == 0 ||
      json_array_size(list) > PSPLIT_I_MAX_DEVICES)
    return wrong(r, "devices", "must be an array of 1 to 1024 devices");
  r->devices = psplit_i_devices_create((uint32_t)json_array_size(list));
  if (!r->devices) return psplit_i_nomem(r->diag);
  for (uint32_t d = 0; d < r->devices->n; d++) {
    char path[PATH_BYTES];
    snprintf(path, sizeof path, "devices[%u]", d);
    PSPLIT_TRY(read_device(r, path, json_array_get(list, d), &r->devices->devices[d]));
  }
  PSPLIT_TRY(check_names(r));
  psplit_device_link links[PSPLIT_I_N_PLACES];
  memcpy(links, psplit_i_default_links, sizeof links);
  PSPLIT_TRY(read_topology(r, json_object_get(root, "topology"), links));
  psplit_i_devices_connect(r->devices, links);
  PSPLIT_TRY(read_links(r, json_object_get(root, "links")));
out:
  return code;
}

psplit_code psplit_devices_parse(const char *text, size_t n_bytes, psplit_diag *diag,
                                 psplit_devices **out_devices) {
  json_error_t error;
  json_t *root = json_loadb(text, n_bytes, JSON_REJECT_DUPLICATES, &error);
  if (!root) return psplit_i_fail(diag, PSPLIT_MALFORMED, "line %d: %s", error.line, error.text);
  reader r = {.diag = diag};
  const psplit_code code = read_file(&r, root);
  json_decref(root);
  if (code != PSPLIT_OK) {
    psplit_devices_destroy(r.devices);
    return code;
  }
  *out_devices = r.devices;
  return PSPLIT_OK;
}
