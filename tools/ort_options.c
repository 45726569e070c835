#include "ort_options.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "places.h"
#include "probe_file.h"

/* "2=X" is X for stage 2, "2.1=X" for its replica 1; anything else is for all stages. */
static void cut_stage(ort_setting *setting) {
  static const char DIGITS[] = "0123456789";
  const char *text = setting->value;
  const size_t n = strspn(text, DIGITS);
  const size_t m = text[n] == '.' ? strspn(text + n + 1, DIGITS) : 0;
  const char *end = m ? text + n + 1 + m : text + n;
  setting->stage = setting->replica = PSPLIT_NONE;
  if (n == 0 || n > 6 || m > 6 || *end != '=') return;
  setting->stage = (uint32_t)strtoul(text, NULL, 10);
  if (m) setting->replica = (uint32_t)strtoul(text + n + 1, NULL, 10);
  setting->value = end + 1;
}

static bool read_number(const cli *program, ort_setting *setting) {
  uint64_t count;
  int level;
  if (setting->id == OPT_LEVEL) {
    if (!cli_level(program, setting->value, &level)) return false;
    setting->number = (uint32_t)level;
    return true;
  }
  const bool replicas = setting->id == OPT_STAGE_REPLICAS;
  if (!cli_count(program, replicas ? "replicas" : "threads", setting->value, 1,
                 replicas ? PSPLIT_MOST_REPLICAS : 4096, &count))
    return false;
  if (replicas && setting->replica != PSPLIT_NONE) {
    cli_usage(program, "--replicas takes [STAGE=]N");
    return false;
  }
  setting->number = (uint32_t)count;
  return true;
}

bool ort_option(const cli *program, ort_settings *s, int id, const char *argument) {
  ort_setting setting = {.id = id, .value = argument};
  switch (id) {
    case OPT_DEVICES: s->devices_file = argument; return true;
    case OPT_PROBE: s->probe = argument; return true;
    case OPT_ASSERT_PLACEMENT: s->assert_placement = true; return true;
    case OPT_PROVIDER:
    case OPT_PROVIDER_OPTION:
    case OPT_CONFIG:
    case OPT_THREADS:
    case OPT_STAGE_REPLICAS:
    case OPT_LEVEL: break;
    default: return false;
  }
  cut_stage(&setting);
  if (id == OPT_THREADS || id == OPT_LEVEL || id == OPT_STAGE_REPLICAS) {
    if (!read_number(program, &setting)) return false;
  } else if (id != OPT_PROVIDER) {
    const char *at = strchr(setting.value, '=');
    if (!at || at == setting.value) {
      cli_usage(program, "--%s takes [STAGE[.REPLICA]=]KEY=VALUE, not \"%s\"",
                id == OPT_CONFIG ? "session-config" : "provider-option", argument);
      return false;
    }
    setting.key = cli_need(strndup(setting.value, (size_t)(at - setting.value)));
    setting.value = at + 1;
  }
  s->list = cli_need(cli_grow(s->list, s->n_list, sizeof *s->list));
  s->list[s->n_list++] = setting;
  return true;
}

void ort_settings_all(const ort_settings *s, psplit_session *out) {
  for (size_t i = 0; i < s->n_list; i++) {
    const ort_setting *setting = &s->list[i];
    if (setting->stage != PSPLIT_NONE) continue;
    if (setting->id == OPT_THREADS) out->n_threads = setting->number;
    if (setting->id == OPT_LEVEL) out->optimization = (int)setting->number;
  }
}

/* A list of keys and values in the making. */
typedef struct texts {
  const char **keys, **values;
  size_t n;
} texts;

static void add_text(texts *to, const char *key, const char *value) {
  to->keys[to->n] = key;
  to->values[to->n++] = value;
}

static void take_device(const psplit_session *session, psplit_session *out, texts *provider,
                        texts *config) {
  if (session->n_threads) out->n_threads = session->n_threads;
  if (session->optimization >= 0) out->optimization = session->optimization;
  out->provider = session->provider;
  out->n_host_nodes = session->n_host_nodes;
  out->host_nodes = session->host_nodes;
  for (uint32_t i = 0; i < session->n_provider_options; i++)
    add_text(provider, session->provider_keys[i], session->provider_values[i]);
  for (uint32_t i = 0; i < session->n_config; i++)
    add_text(config, session->config_keys[i], session->config_values[i]);
}

static void take_option(const ort_setting *setting, psplit_session *out, texts *provider,
                        texts *config) {
  switch (setting->id) {
    case OPT_STAGE_REPLICAS: break;
    case OPT_THREADS: out->n_threads = setting->number; break;
    case OPT_LEVEL: out->optimization = (int32_t)setting->number; break;
    case OPT_PROVIDER:
      out->provider = setting->value;
      provider->n = 0; /* options are those of another provider */
      break;
    case OPT_PROVIDER_OPTION: add_text(provider, setting->key, setting->value); break;
    default: add_text(config, setting->key, setting->value); break;
  }
}

/* Of the device that a replica was planned for; of those that nobody planned the stage's. */
static psplit_code find_device(const ort_settings *s, const psplit_pipeline_info *pipeline,
                               uint32_t stage, uint32_t replica, psplit_diag *diag,
                               const psplit_session **out) {
  const psplit_pipeline_stage *planned = &pipeline->stages[stage];
  const char *name = planned->replica_devices && replica < planned->n_replicas
                       ? planned->replica_devices[replica]
                       : planned->device;
  for (uint32_t d = 0; d < psplit_devices_count(s->devices); d++) {
    if (strcmp(psplit_devices_name(s->devices, d), name) != 0) continue;
    *out = psplit_devices_session(s->devices, d);
    return PSPLIT_OK;
  }
  return psplit_diag_fail(diag, PSPLIT_USAGE,
                          "stage %" PRIu32 " was planned for device %s, which is not in %s", stage,
                          name, s->devices_file);
}

/* How near a setting is to a replica of a stage: 0 for all, 1 for the stage, 2 for the replica, -1
 * for others. */
static int nearness(const ort_setting *setting, uint32_t stage, uint32_t replica) {
  if (setting->stage == PSPLIT_NONE) return 0;
  if (setting->stage != stage) return -1;
  if (setting->replica == PSPLIT_NONE) return 1;
  return setting->replica == replica ? 2 : -1;
}

/* Room for the texts of one session: four lists of n, keys and values of provider options and of
 * configuration entries. */
typedef struct text_room {
  const char **first;
  size_t n; /* number of settings of all sessions, and more */
} text_room;

/* The options of a replica, whose texts are written to `room`. */
static psplit_code apply_to_replica(ort_settings *s, const psplit_pipeline_info *pipeline,
                                    uint32_t stage, uint32_t replica, text_room room,
                                    psplit_diag *diag, psplit_session *out) {
  texts provider = {room.first, room.first + room.n, 0};
  texts config = {room.first + 2 * room.n, room.first + 3 * room.n, 0};
  *out = (psplit_session){.optimization = s->trains ? 1 : 99, .n_threads = 1};
  if (s->devices) {
    const psplit_session *session = NULL;
    const psplit_code code = find_device(s, pipeline, stage, replica, diag, &session);
    if (code != PSPLIT_OK) return code;
    take_device(session, out, &provider, &config);
  }
  for (int near = 0; near <= 2; near++)
    for (int later = 0; later < 2; later++) /* a provider first, then its options */
      for (size_t i = 0; i < s->n_list; i++) {
        const ort_setting *setting = &s->list[i];
        if ((setting->id != OPT_PROVIDER) == later && nearness(setting, stage, replica) == near)
          take_option(setting, out, &provider, &config);
      }
  out->assert_placement = s->assert_placement;
  if (provider.n && !out->provider)
    return psplit_diag_fail(diag, PSPLIT_USAGE,
                            "--provider-option for stage %" PRIu32 ", which has no --provider",
                            stage);
  out->n_provider_options = (uint32_t)provider.n;
  out->provider_keys = provider.keys;
  out->provider_values = provider.values;
  out->n_config = (uint32_t)config.n;
  out->config_keys = config.keys;
  out->config_values = config.values;
  return PSPLIT_OK;
}

/* --probe, once the devices are read. */
static psplit_code read_probe(ort_settings *s, psplit_diag *diag) {
  char *provider = NULL, *file = NULL, *text = NULL;
  size_t n = 0;
  bool known = false;
  psplit_code code = probe_cut(s->probe, diag, &provider, &file);
  for (uint32_t d = 0; s->devices && code == PSPLIT_OK && d < psplit_devices_count(s->devices); d++)
    known |= psplit_devices_run(s->devices, d, provider);
  if (code == PSPLIT_OK && (!file || !known))
    code = psplit_diag_fail(diag, PSPLIT_USAGE,
                            "--probe %s: it takes PROVIDER=FILE, with a device of that provider in "
                            "--devices FILE",
                            s->probe);
  if (code == PSPLIT_OK) code = cli_read_file(file, s->max_text_bytes, false, diag, &text, &n);
  if (code == PSPLIT_OK) code = probe_apply(s->devices, provider, file, NULL, text, n, diag);
  free(text);
  free(file);
  free(provider);
  return code;
}

static psplit_code read_devices(ort_settings *s, uint32_t *io_n_devices, psplit_diag *diag) {
  char *text = NULL;
  size_t n = 0;
  psplit_code code = cli_devices_read(s->devices_file, s->max_text_bytes, false, diag, &text, &n);
  if (code == PSPLIT_OK)
    code = cli_devices(s->devices_file, text, n, io_n_devices, diag, &s->devices);
  free(text);
  return code;
}

/* What was said for the stage goes before what was said for all. */
static uint32_t count_replicas(const ort_settings *s, const psplit_pipeline_info *pipeline,
                               uint32_t stage) {
  uint32_t of_all = s->no_replicas ? 1 : pipeline->stages[stage].n_replicas, own = 0;
  for (size_t i = 0; i < s->n_list; i++) {
    if (s->list[i].id != OPT_STAGE_REPLICAS) continue;
    if (s->list[i].stage == PSPLIT_NONE) of_all = s->list[i].number;
    if (s->list[i].stage == stage) own = s->list[i].number;
  }
  return own ? own : of_all;
}

static bool same_texts(const char *const *a, const char *const *b, uint32_t n) {
  for (uint32_t i = 0; i < n; i++)
    if (strcmp(a[i], b[i]) != 0) return false;
  return true;
}

static bool same_session(const psplit_session *a, const psplit_session *b) {
  return a->optimization == b->optimization && a->n_threads == b->n_threads &&
         !a->provider == !b->provider && (!a->provider || strcmp(a->provider, b->provider) == 0) &&
         a->n_provider_options == b->n_provider_options && a->n_config == b->n_config &&
         same_texts(a->provider_keys, b->provider_keys, a->n_provider_options) &&
         same_texts(a->provider_values, b->provider_values, a->n_provider_options) &&
         same_texts(a->config_keys, b->config_keys, a->n_config) &&
         same_texts(a->config_values, b->config_values, a->n_config);
}

/* Whether the devices file has different sessions for the replicas of a stage. */
static psplit_code find_apart(const ort_settings *s, const psplit_pipeline_info *pipeline,
                              psplit_diag *diag, bool *io_apart) {
  psplit_code code = PSPLIT_OK;
  for (uint32_t i = 0; i < pipeline->n_stages && s->devices; i++) {
    const psplit_session *first, *other;
    code = find_device(s, pipeline, i, 0, diag, &first);
    for (uint32_t r = 1; r < s->n_replicas[i] && code == PSPLIT_OK; r++) {
      code = find_device(s, pipeline, i, r, diag, &other);
      if (code == PSPLIT_OK) *io_apart |= !same_session(first, other);
    }
    if (code != PSPLIT_OK) break;
  }
  return code;
}

psplit_code ort_settings_apply(ort_settings *s, const psplit_pipeline_info *pipeline,
                               psplit_diag *diag) {
  const uint32_t n = pipeline->n_stages;
  uint32_t n_devices = n;
  bool apart = false;
  size_t n_replicas = 0;
  for (size_t i = 0; i < s->n_list; i++)
    if (s->list[i].stage != PSPLIT_NONE && s->list[i].stage >= n)
      return psplit_diag_fail(diag, PSPLIT_USAGE,
                              "an option is for stage %" PRIu32 ", but stages are 0 to %" PRIu32,
                              s->list[i].stage, n - 1);
  s->n_replicas = calloc(n, sizeof *s->n_replicas);
  if (!s->n_replicas) return cli_nomem(diag);
  for (uint32_t i = 0; i < n; i++) n_replicas += s->n_replicas[i] = count_replicas(s, pipeline, i);
  for (size_t i = 0; i < s->n_list; i++) {
    const ort_setting *setting = &s->list[i];
    if (setting->replica == PSPLIT_NONE) continue;
    apart = true;
    if (setting->replica >= s->n_replicas[setting->stage])
      return psplit_diag_fail(diag, PSPLIT_USAGE,
                              "an option is for replica %" PRIu32 " of stage %" PRIu32
                              ", which has %" PRIu32 " (--replicas)",
                              setting->replica, setting->stage, s->n_replicas[setting->stage]);
  }
  psplit_code code = read_devices(s, &n_devices, diag);
  if (code == PSPLIT_OK && s->probe) code = read_probe(s, diag);
  if (code == PSPLIT_OK) code = find_apart(s, pipeline, diag, &apart);
  if (code != PSPLIT_OK) return code;
  size_t n_room = s->n_list + 1;
  for (uint32_t d = 0; s->devices && d < psplit_devices_count(s->devices); d++) {
    const psplit_session *session = psplit_devices_session(s->devices, d);
    n_room += session->n_provider_options + session->n_config;
  }
  s->n_sessions = apart ? n_replicas : n;
  s->stages = calloc(s->n_sessions, sizeof *s->stages);
  s->texts = calloc(4 * n_room * s->n_sessions, sizeof *s->texts);
  if (!s->stages || !s->texts) return cli_nomem(diag);
  size_t at = 0;
  for (uint32_t i = 0; i < n; i++)
    for (uint32_t r = 0; r < (apart ? s->n_replicas[i] : 1) && code == PSPLIT_OK; r++, at++) {
      const text_room room = {s->texts + 4 * n_room * at, n_room};
      code = apply_to_replica(s, pipeline, i, r, room, diag, &s->stages[at]);
    }
  return code;
}

psplit_code ort_fail_whole(const char *option, psplit_diag *diag) {
  return psplit_diag_fail(diag, PSPLIT_USAGE,
                          "%s is for the stages of a split, and a whole model has none", option);
}

psplit_code ort_settings_apply_whole(ort_settings *s, psplit_diag *diag) {
  static const psplit_pipeline_stage WHOLE = {.file = "", .device = "", .n_replicas = 1};
  const psplit_pipeline_info info = {.n_stages = 1, .stages = &WHOLE};
  const char *of_stages = s->devices_file ? "--devices" : s->probe ? "--probe" : NULL;
  bool provider = false, option = false;
  for (size_t i = 0; i < s->n_list; i++) {
    if (s->list[i].id == OPT_STAGE_REPLICAS) of_stages = "--replicas";
    if (s->list[i].stage != PSPLIT_NONE)
      return psplit_diag_fail(diag, PSPLIT_USAGE,
                              "an option is for stage %" PRIu32 ", and a whole model has no stages",
                              s->list[i].stage);
    provider |= s->list[i].id == OPT_PROVIDER;
    option |= s->list[i].id == OPT_PROVIDER_OPTION;
  }
  if (of_stages) return ort_fail_whole(of_stages, diag);
  if (option && !provider)
    return psplit_diag_fail(diag, PSPLIT_USAGE, "--provider-option, but no --provider");
  return ort_settings_apply(s, &info, diag);
}

psplit_code ort_check_unread(const char *path, const char *directory,
                             const psplit_pipeline_info *pipeline, psplit_diag *diag) {
  psplit_code code = PSPLIT_OK;
  for (uint32_t i = 0; i <= pipeline->n_stages && code == PSPLIT_OK; i++) {
    const char *file = i < pipeline->n_stages ? pipeline->stages[i].file : "pipeline.json";
    char *read;
    if (asprintf(&read, "%s/%s", directory, file) < 0) return cli_nomem(diag);
    code = place_check_unread(path, read, diag);
    free(read);
  }
  return code;
}

void ort_settings_drop(ort_settings *s) {
  psplit_devices_destroy(s->devices);
  free(s->n_replicas);
  free(s->stages);
  free(s->texts);
  s->n_replicas = NULL;
  s->devices = NULL;
  s->stages = NULL;
  s->texts = NULL;
}

void ort_settings_fini(ort_settings *s) {
  for (size_t i = 0; i < s->n_list; i++) free(s->list[i].key);
  free(s->list);
  ort_settings_drop(s);
}
