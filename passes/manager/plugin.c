/* Loading pass plugins: what they say of themselves is checked here, before any of it is used. */
#include "plugin.h"

#include <ctype.h>
#include <dlfcn.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "passes.h"
#include "pipeline.h"

/* How much of each struct its first version had; a shorter one lacks what the pass manager
 * needs. */
static const size_t LEAST_PLUGIN = offsetof(psplit_plugin, n_passes) + sizeof(size_t);
static const size_t LEAST_PASS = offsetof(psplit_plugin_pass, run) + sizeof(void (*)(void));
enum { MAX_PASSES = 256 };

struct psplit_plugins {
  psplit_i_arena arena; /* wrapped passes and their options */
  PSPLIT_VEC(void *) handles;
  PSPLIT_VEC(psplit_i_pass *) passes;
};

psplit_plugins *psplit_plugins_create(void) {
  psplit_plugins *plugins = calloc(1, sizeof *plugins);
  if (plugins) psplit_i_arena_init(&plugins->arena, 0);
  return plugins;
}

void psplit_plugins_destroy(psplit_plugins *plugins) {
  if (!plugins) return;
  for (size_t i = plugins->handles.n; i-- > 0;) dlclose(plugins->handles.items[i]);
  psplit_i_vec_fini(&plugins->handles);
  psplit_i_vec_fini(&plugins->passes);
  psplit_i_arena_fini(&plugins->arena);
  free(plugins);
}

const psplit_i_pass *psplit_i_plugins_pass(const psplit_plugins *plugins, size_t index) {
  return plugins && index < plugins->passes.n ? plugins->passes.items[index] : NULL;
}

static const psplit_i_pass *find_loaded(const psplit_plugins *plugins, const char *name, size_t n) {
  const psplit_i_pass *pass;
  for (size_t i = 0; (pass = psplit_i_plugins_pass(plugins, i)); i++)
    if (strlen(pass->name) == n && memcmp(pass->name, name, n) == 0) return pass;
  return NULL;
}

static psplit_code refuse(const char *path, psplit_diag *diag, const char *why) {
  return psplit_i_fail(diag, PSPLIT_PLUGIN, "%s: %s", path, why);
}

/* A struct larger than ours comes from a newer header: fine, as long as it uses nothing of what we
 * do not know. */
static bool tail_is_zero(const void *data, size_t known, size_t size) {
  const unsigned char *bytes = data;
  for (size_t i = known; i < size; i++)
    if (bytes[i]) return false;
  return true;
}

static bool is_pass_name(const char *name) {
  if (!name || !islower((unsigned char)*name)) return false;
  for (; *name; name++)
    if (!islower((unsigned char)*name) && !isdigit((unsigned char)*name) && *name != '-')
      return false;
  return true;
}

static psplit_code wrap_options(const char *path, const psplit_plugin_pass *from,
                                psplit_i_arena *arena, psplit_i_pass *pass, psplit_diag *diag) {
  if (from->n_options > PSPLIT_I_MAX_OPTIONS || (from->n_options && !from->options))
    return psplit_i_fail(diag, PSPLIT_PLUGIN, "%s: pass %s: it has %zu options; at most %d", path,
                         from->name, from->n_options, PSPLIT_I_MAX_OPTIONS);
  psplit_i_option *options = PSPLIT_NEW(arena, psplit_i_option, from->n_options);
  if (!options) return psplit_i_nomem(diag);
  for (size_t o = 0; o < from->n_options; o++) {
    static const psplit_i_option_type types[] = {PSPLIT_I_OPTION_INT, PSPLIT_I_OPTION_REAL,
                                                 PSPLIT_I_OPTION_TEXT, PSPLIT_I_OPTION_BOOL};
    const psplit_plugin_option *option = &from->options[o];
    if (!option->name || !option->fallback || option->type < 0 || option->type > 3)
      return psplit_i_fail(diag, PSPLIT_PLUGIN,
                           "%s: pass %s: option %zu lacks a name, a default or a type", path,
                           from->name, o);
    options[o] = (psplit_i_option){.name = option->name,
                                   .type = types[option->type],
                                   .fallback = option->fallback,
                                   .low = option->low,
                                   .high = option->high,
                                   .help = option->help ? option->help : ""};
    psplit_i_option_value value;
    if (!psplit_i_option_parse(&options[o], option->fallback, &value))
      return psplit_i_fail(diag, PSPLIT_PLUGIN,
                           "%s: pass %s: \"%s\" is not a value of its option %s", path, from->name,
                           option->fallback, option->name);
  }
  pass->options = options;
  pass->n_options = from->n_options;
  return PSPLIT_OK;
}

static psplit_code wrap_pass(psplit_plugins *plugins, const char *path,
                             const psplit_plugin_pass *from, psplit_diag *diag) {
  psplit_code code;
  if (!from) return refuse(path, diag, "one of its passes is NULL");
  if (from->struct_size < LEAST_PASS)
    return psplit_i_fail(diag, PSPLIT_PLUGIN,
                         "%s: a pass of %zu bytes is too short for ABI %u, which needs %zu; set "
                         "struct_size to sizeof(psplit_plugin_pass)",
                         path, from->struct_size, PSPLIT_PLUGIN_ABI, LEAST_PASS);
  if (!is_pass_name(from->name))
    return refuse(path, diag, "a pass's name is missing or not of a-z, 0-9 and '-'");
  if (!tail_is_zero(from, sizeof *from, from->struct_size))
    return psplit_i_fail(diag, PSPLIT_PLUGIN,
                         "%s: pass %s uses what this version does not have; build it with the "
                         "psplit/plugin.h of %s, or use a newer psplit",
                         path, from->name, psplit_version());
  if (!from->run) return refuse(path, diag, "a pass has nothing to run");
  if (psplit_i_pass_find(plugins, from->name, strlen(from->name)))
    return psplit_i_fail(diag, PSPLIT_PLUGIN, "%s: there is a pass %s already", path, from->name);
  psplit_i_pass *pass = PSPLIT_NEW(&plugins->arena, psplit_i_pass, 1);
  if (!pass) return psplit_i_nomem(diag);
  *pass = (psplit_i_pass){
    .name = from->name,
    .help = from->help ? from->help : "",
    .needs = PSPLIT_I_FACT_SHAPES | PSPLIT_I_FACT_COSTS | PSPLIT_I_FACT_LIVE | PSPLIT_I_FACT_GROUPS,
    .keeps = ~(unsigned)PSPLIT_I_FACT_STAGES,
    .plugin = from};
  PSPLIT_TRY(wrap_options(path, from, &plugins->arena, pass, diag));
  if (!psplit_i_vec_push(&plugins->passes, pass)) return psplit_i_nomem(diag);
out:
  return code;
}

static psplit_code check_plugin(const char *path, const psplit_plugin *plugin, psplit_diag *diag) {
  if (!plugin) return refuse(path, diag, "its psplit_plugin_query returns NULL");
  if (plugin->abi != PSPLIT_PLUGIN_ABI)
    return psplit_i_fail(diag, PSPLIT_PLUGIN,
                         "%s: it speaks plugin ABI %" PRIu32 ", psplit %s speaks %u; rebuild it",
                         path, plugin->abi, psplit_version(), PSPLIT_PLUGIN_ABI);
  if (plugin->struct_size < LEAST_PLUGIN)
    return psplit_i_fail(diag, PSPLIT_PLUGIN,
                         "%s: a description of %zu bytes is too short for ABI %u, which needs %zu; "
                         "set struct_size to sizeof(psplit_plugin)",
                         path, plugin->struct_size, PSPLIT_PLUGIN_ABI, LEAST_PLUGIN);
  if (!tail_is_zero(plugin, sizeof *plugin, plugin->struct_size))
    return refuse(path, diag,
                  "its description uses what this version does not have; use a newer psplit");
  const char *sanitizer = plugin->sanitizer ? plugin->sanitizer : "none";
  if (strcmp(sanitizer, "none") != 0 && strcmp(sanitizer, PSPLIT_PLUGIN_SANITIZER) != 0)
    return psplit_i_fail(diag, PSPLIT_PLUGIN,
                         "%s: it was built with the %s sanitizer, psplit with %s; build both alike",
                         path, sanitizer, PSPLIT_PLUGIN_SANITIZER);
  if (!plugin->passes || plugin->n_passes < 1 || plugin->n_passes > MAX_PASSES)
    return refuse(path, diag, "it has no passes, or more than 256");
  return PSPLIT_OK;
}

psplit_code psplit_plugins_load(psplit_plugins *plugins, const char *path, psplit_diag *diag) {
  psplit_code code;
  const size_t n_before = plugins->passes.n;
  char *own_path = NULL;
  void *handle = NULL;
  /* Without a slash the loader would look everywhere but here. */
  const size_t n_bytes = strlen(path) + 3;
  if (!(own_path = malloc(n_bytes))) PSPLIT_FAIL(psplit_i_nomem(diag));
  own_path[0] = '\0';
  if (!strchr(path, '/')) memcpy(own_path, "./", 3);
  memcpy(own_path + strlen(own_path), path, strlen(path) + 1);
  handle = dlopen(own_path, RTLD_NOW | RTLD_LOCAL);
  if (!handle) {
    const char *why = dlerror();
    PSPLIT_FAIL(psplit_i_fail(diag, PSPLIT_PLUGIN, "%s: it cannot be loaded: %s", path,
                              why ? why : "unknown reason"));
  }
  const psplit_plugin *(*query)(void) = NULL;
  void *symbol = dlsym(handle, "psplit_plugin_query");
  if (!symbol)
    PSPLIT_FAIL(refuse(path, diag, "not a pass plugin: it exports no psplit_plugin_query"));
  memcpy(&query, &symbol, sizeof query); /* ISO C has no cast from void * to a function */
  const psplit_plugin *plugin = query();
  PSPLIT_TRY(check_plugin(path, plugin, diag));
  for (size_t p = 0; p < plugin->n_passes; p++)
    PSPLIT_TRY(wrap_pass(plugins, path, plugin->passes[p], diag));
  if (!psplit_i_vec_push(&plugins->handles, handle)) PSPLIT_FAIL(psplit_i_nomem(diag));
  handle = NULL;
out:
  if (code != PSPLIT_OK) plugins->passes.n = n_before;
  if (handle) dlclose(handle);
  free(own_path);
  return code;
}

const psplit_i_pass *psplit_i_pass_find(const psplit_plugins *plugins, const char *name, size_t n) {
  for (size_t p = 0; p < psplit_i_n_passes; p++)
    if (strlen(psplit_i_passes[p]->name) == n && memcmp(psplit_i_passes[p]->name, name, n) == 0)
      return psplit_i_passes[p];
  return find_loaded(plugins, name, n);
}
