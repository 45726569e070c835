#include "ort_options.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

/* "2=X" is X for stage 2; anything else is for all stages. */
static uint32_t cut_stage(const char **text) {
  const size_t n = strspn(*text, "0123456789");
  if (n == 0 || n > 6 || (*text)[n] != '=') return PSPLIT_NONE;
  const uint32_t stage = (uint32_t)strtoul(*text, NULL, 10);
  *text += n + 1;
  return stage;
}

static bool read_number(const cli *program, ort_setting *setting) {
  uint64_t count;
  int level;
  if (setting->id == OPT_LEVEL) {
    if (!cli_level(program, setting->value, &level)) return false;
    setting->number = (uint32_t)level;
    return true;
  }
  if (!cli_count(program, "threads", setting->value, 1, 4096, &count)) return false;
  setting->number = (uint32_t)count;
  return true;
}

bool ort_option(const cli *program, ort_settings *s, int id, const char *argument) {
  ort_setting setting = {.id = id, .value = argument};
  switch (id) {
    case OPT_DEVICES: s->devices_file = argument; return true;
    case OPT_ASSERT_PLACEMENT: s->assert_placement = true; return true;
    case OPT_PROVIDER:
    case OPT_PROVIDER_OPTION:
    case OPT_CONFIG:
    case OPT_THREADS:
    case OPT_LEVEL: break;
    default: return false;
  }
  setting.stage = cut_stage(&setting.value);
  if (id == OPT_THREADS || id == OPT_LEVEL) {
    if (!read_number(program, &setting)) return false;
  } else if (id != OPT_PROVIDER) {
    const char *at = strchr(setting.value, '=');
    if (!at || at == setting.value) {
      cli_usage(program, "--%s takes [STAGE=]KEY=VALUE, not \"%s\"",
                id == OPT_CONFIG ? "session-config" : "provider-option", argument);
      return false;
    }
    setting.key = strndup(setting.value, (size_t)(at - setting.value));
    setting.value = at + 1;
    if (!setting.key) return false;
  }
  ort_setting *grown = cli_grow(s->list, s->n_list, sizeof *grown);
  if (!grown) {
    free(setting.key);
    return false;
  }
  s->list = grown;
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
  for (uint32_t i = 0; i < session->n_provider_options; i++)
    add_text(provider, session->provider_keys[i], session->provider_values[i]);
  for (uint32_t i = 0; i < session->n_config; i++)
    add_text(config, session->config_keys[i], session->config_values[i]);
}

static void take_option(const ort_setting *setting, psplit_session *out, texts *provider,
                        texts *config) {
  switch (setting->id) {
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

static bool is_cpu(const char *provider) {
  return strcasecmp(provider, "CPU") == 0 || strcasecmp(provider, "CPUExecutionProvider") == 0;
}

static psplit_code find_device(const ort_settings *s, const psplit_pipeline_info *pipeline,
                               uint32_t stage, psplit_diag *diag, const psplit_session **out) {
  const char *name = pipeline->stages[stage].device;
  for (uint32_t d = 0; d < psplit_devices_count(s->devices); d++) {
    if (strcmp(psplit_devices_name(s->devices, d), name) != 0) continue;
    *out = psplit_devices_session(s->devices, d);
    return PSPLIT_OK;
  }
  return psplit_diag_fail(diag, PSPLIT_USAGE,
                          "stage %" PRIu32 " was planned for device %s, which is not in %s", stage,
                          name, s->devices_file);
}

/* The stage's options, written to `room`, which has the size of all settings and more. */
static psplit_code apply_to_stage(ort_settings *s, const psplit_pipeline_info *pipeline,
                                  uint32_t stage, const char **room, size_t n_room,
                                  psplit_diag *diag, psplit_session *out) {
  texts provider = {room, room + n_room, 0}, config = {room + 2 * n_room, room + 3 * n_room, 0};
  *out = (psplit_session){.optimization = s->trains ? 1 : 99, .n_threads = 1};
  if (s->devices) {
    const psplit_session *session = NULL;
    const psplit_code code = find_device(s, pipeline, stage, diag, &session);
    if (code != PSPLIT_OK) return code;
    take_device(session, out, &provider, &config);
  }
  for (int own = 0; own < 2; own++)
    for (int later = 0; later < 2; later++) /* a provider first, then its options */
      for (size_t i = 0; i < s->n_list; i++) {
        const ort_setting *setting = &s->list[i];
        if ((setting->id != OPT_PROVIDER) == later && setting->stage == (own ? stage : PSPLIT_NONE))
          take_option(setting, out, &provider, &config);
      }
  if (s->assert_placement && out->provider && !is_cpu(out->provider))
    add_text(&config, "session.disable_cpu_ep_fallback", "1");
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

static psplit_code read_devices(ort_settings *s, uint32_t *io_n_devices, psplit_diag *diag) {
  char *text = NULL;
  size_t n = 0;
  psplit_code code = cli_devices_read(s->devices_file, s->max_text_bytes, false, diag, &text, &n);
  if (code == PSPLIT_OK)
    code = cli_devices(s->devices_file, text, n, io_n_devices, diag, &s->devices);
  free(text);
  return code;
}

psplit_code ort_settings_apply(ort_settings *s, const psplit_pipeline_info *pipeline,
                               psplit_diag *diag) {
  const uint32_t n = pipeline->n_stages;
  uint32_t n_devices = n;
  for (size_t i = 0; i < s->n_list; i++)
    if (s->list[i].stage != PSPLIT_NONE && s->list[i].stage >= n)
      return psplit_diag_fail(diag, PSPLIT_USAGE,
                              "an option is for stage %" PRIu32 "; there are stages 0 to %" PRIu32,
                              s->list[i].stage, n - 1);
  psplit_code code = read_devices(s, &n_devices, diag);
  if (code != PSPLIT_OK) return code;
  size_t n_room = s->n_list + 1 + s->assert_placement;
  for (uint32_t d = 0; s->devices && d < psplit_devices_count(s->devices); d++) {
    const psplit_session *session = psplit_devices_session(s->devices, d);
    n_room += session->n_provider_options + session->n_config;
  }
  s->stages = calloc(n, sizeof *s->stages);
  s->texts = calloc(4 * n_room * n, sizeof *s->texts);
  if (!s->stages || !s->texts) return cli_nomem(diag);
  for (uint32_t i = 0; i < n && code == PSPLIT_OK; i++)
    code = apply_to_stage(s, pipeline, i, s->texts + 4 * n_room * i, n_room, diag, &s->stages[i]);
  return code;
}

void ort_settings_drop(ort_settings *s) {
  psplit_devices_destroy(s->devices);
  free(s->stages);
  free(s->texts);
  s->devices = NULL;
  s->stages = NULL;
  s->texts = NULL;
}

void ort_settings_fini(ort_settings *s) {
  for (size_t i = 0; i < s->n_list; i++) free(s->list[i].key);
  free(s->list);
  ort_settings_drop(s);
}
