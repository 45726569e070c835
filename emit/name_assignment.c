/* A plan as one option of ONNX Runtime: which provider runs the nodes whose names hold which text.
 * Source: ONNX Runtime, docs/annotated_partitioning and core/framework/layering_annotations.cc:
 * "device(text, text); device(text)"; of texts that a name holds the longest one counts, of equally
 * long ones the first. */
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "emit.h"

enum { MOST_BYTES = 8192 }; /* of a value in ONNX Runtime's options */

/* A name, or what names have in common: bytes of a name in the model. */
typedef struct part {
  const char *text;
  size_t n;
  uint32_t provider;
} part;

typedef struct assigner {
  const psplit_model *model;
  psplit_i_arena arena;
  const char **providers; /* [n_providers] as ONNX Runtime names them here */
  uint32_t n_providers;
  uint32_t left_out; /* its nodes need no rule, as it is asked first; or PSPLIT_NONE */
  part *names;       /* [n_names] each once, in order */
  uint32_t n_names;
  PSPLIT_VEC(part) rules; /* in the order in which they are tried */
} assigner;

/* What ONNX Runtime takes for a device: a word of its own, or the provider's full name. */
static const char *device_of(const char *provider, psplit_i_arena *arena) {
  static const char suffix[] = "ExecutionProvider";
  static const char *const words[] = {"cpu", "cuda", "dml"};
  static const char *const known[] = {"Tensorrt", "NvTensorRTRTX", "ROCM",    "MIGraphX", "CANN",
                                      "WebGpu",   "WebNN",         "Xnnpack", "CoreML",   "QNN",
                                      "OpenVINO", "VitisAI",       "Js",      "Nnapi",    "Dnnl"};
  const size_t m = sizeof suffix - 1, all = provider ? strlen(provider) : 0;
  if (!all) return words[0];
  const bool full = all > m && strcasecmp(provider + all - m, suffix) == 0;
  const size_t n = full ? all - m : all;
  for (size_t i = 0; i < sizeof words / sizeof *words; i++)
    if (strlen(words[i]) == n && strncasecmp(words[i], provider, n) == 0) return words[i];
  const char *stem = provider;
  for (size_t i = 0; i < sizeof known / sizeof *known; i++)
    if (strlen(known[i]) == n && strncasecmp(known[i], provider, n) == 0) stem = known[i];
  char *name = psplit_i_arena_array(arena, n + m + 1, 1);
  if (!name) return NULL;
  memcpy(name, stem, n);
  memcpy(name + n, suffix, m + 1);
  return name;
}

static psplit_code find_providers(assigner *a, const psplit_plan *plan,
                                  const char *const *stage_provider, uint32_t *of_stage,
                                  psplit_diag *diag) {
  a->providers = psplit_i_arena_array(&a->arena, plan->n_stages, sizeof *a->providers);
  if (!a->providers) return psplit_i_nomem(diag);
  for (uint32_t s = 0; s < plan->n_stages; s++) {
    const char *device = device_of(stage_provider ? stage_provider[s] : NULL, &a->arena);
    if (!device) return psplit_i_nomem(diag);
    uint32_t p = 0;
    while (p < a->n_providers && strcmp(a->providers[p], device) != 0) p++;
    if (p == a->n_providers) a->providers[a->n_providers++] = device;
    of_stage[s] = p;
  }
  if (a->n_providers == 1)
    return psplit_i_fail(diag, PSPLIT_USAGE,
                         "all stages run on one provider, %s, so there is nothing to assign by "
                         "name: \"session\" in the devices file sets a device's provider",
                         a->providers[0]);
  a->left_out = PSPLIT_NONE;
  for (uint32_t p = 0; p < a->n_providers && a->n_providers == 2; p++)
    if (strcmp(a->providers[p], "cpu") == 0) a->left_out = 1 - p;
  return PSPLIT_OK;
}

static int by_text(const void *x, const void *y) {
  const part *a = x, *b = y;
  const int order = strcmp(a->text, b->text);
  return order ? order : a->provider < b->provider ? -1 : a->provider > b->provider;
}

static bool can_be_written(const char *name) {
  const size_t n = strlen(name);
  return n && !strpbrk(name, ",;()") && *name != '=' && (unsigned char)*name > ' ' &&
         (unsigned char)name[n - 1] > ' ';
}

static psplit_code take_names(assigner *a, const psplit_plan *plan, const uint32_t *of_stage,
                              psplit_diag *diag) {
  a->names = psplit_i_arena_array(&a->arena, plan->n_nodes, sizeof *a->names);
  if (!a->names) return psplit_i_nomem(diag);
  for (uint32_t n = 0; n < plan->n_nodes; n++) {
    const psplit_i_node *node = &a->model->graph->nodes[n];
    if (psplit_i_node_is(node, "Constant")) continue; /* these become weights */
    if (!can_be_written(node->name))
      return psplit_i_fail(diag, PSPLIT_UNSUPPORTED,
                           "node %u, \"%s\": ONNX Runtime's assignment by names has no way to tell "
                           "a node without a name, or whose name has one of \",;()\" or begins "
                           "with \"=\" or a blank",
                           n, node->name);
    a->names[a->n_names++] = (part){node->name, strlen(node->name), of_stage[plan->node_stage[n]]};
  }
  qsort(a->names, a->n_names, sizeof *a->names, by_text);
  uint32_t n = 0;
  for (uint32_t i = 0; i < a->n_names; i++) {
    if (n && strcmp(a->names[n - 1].text, a->names[i].text) == 0) {
      if (a->names[n - 1].provider == a->names[i].provider) continue;
      return psplit_i_fail(diag, PSPLIT_UNSUPPORTED,
                           "several nodes are called %s, and run on %s and %s", a->names[i].text,
                           a->providers[a->names[n - 1].provider],
                           a->providers[a->names[i].provider]);
    }
    a->names[n++] = a->names[i];
  }
  a->n_names = n;
  return PSPLIT_OK;
}

/* False when out of memory. */
static bool add_rule(assigner *a, part rule) {
  return rule.provider == a->left_out || psplit_i_vec_push(&a->rules, rule);
}

/* How long the component is that begins at name + at, with the separator that ends it; 0: the name
 * has no more separators. */
static size_t component(const char *name, size_t at) {
  const size_t n = strcspn(name + at, "/.");
  return name[at + n] ? n + 1 : 0;
}

/* Rules for names [first, end), which have their first `at` bytes in common: one for all where one
 * provider runs them, else for each run of names with the next component in common. False when out
 * of memory. */
static bool cover(assigner *a, uint32_t first, uint32_t end, size_t at) {
  bool same = true;
  for (uint32_t i = first + 1; i < end; i++)
    same &= a->names[i].provider == a->names[first].provider;
  if (same && at && end - first > 1)
    return add_rule(a, (part){a->names[first].text, at, a->names[first].provider});
  for (uint32_t i = first, next; i < end; i = next) {
    const char *name = a->names[i].text;
    const size_t n = component(name, at);
    for (next = i + 1; n && next < end && strncmp(name + at, a->names[next].text + at, n) == 0;)
      next++;
    if (!n || next == i + 1) {
      if (!add_rule(a, a->names[i])) return false;
      next = i + 1;
    } else if (!cover(a, i, next, at + n)) {
      return false;
    }
  }
  return true;
}

static int by_rank(const void *x, const void *y) {
  const part *a = x, *b = y;
  if (a->n != b->n) return a->n > b->n ? -1 : 1;
  if (a->provider != b->provider) return a->provider < b->provider ? -1 : 1;
  return strncmp(a->text, b->text, a->n);
}

/* What ONNX Runtime makes of a name: a provider, or left_out where no rule speaks of it. */
static uint32_t matched(const assigner *a, const part *name) {
  for (uint32_t r = 0; r < a->rules.n; r++)
    if (memmem(name->text, name->n, a->rules.items[r].text, a->rules.items[r].n))
      return a->rules.items[r].provider;
  return a->left_out;
}

/* A name that a rule for others gives to the wrong provider gets a rule of its own, which no name
 * of another length comes before; that may in turn be in a longer name. Where the provider needs no
 * rules it has one then. */
static psplit_code mend(assigner *a, psplit_diag *diag) {
  for (bool changed = true; changed;) {
    const size_t n = a->rules.n;
    if (n) qsort(a->rules.items, n, sizeof *a->rules.items, by_rank);
    for (uint32_t i = 0; i < a->n_names; i++) {
      if (matched(a, &a->names[i]) == a->names[i].provider) continue;
      /* behind those that are in order */
      if (!psplit_i_vec_push(&a->rules, a->names[i])) return psplit_i_nomem(diag);
    }
    changed = a->rules.n > n;
  }
  return PSPLIT_OK;
}

static psplit_code write_rules(const assigner *a, psplit_diag *diag, char **out) {
  psplit_i_text text = {0};
  for (uint32_t p = 0; p < a->n_providers; p++) {
    bool any = false;
    for (uint32_t r = 0; r < a->rules.n; r++) {
      if (a->rules.items[r].provider != p) continue;
      psplit_i_text_addf(&text, "%s%s%s",
                         any      ? ","
                         : text.n ? ";"
                                  : "",
                         any ? "" : a->providers[p], any ? "" : "(");
      psplit_i_text_add(&text, a->rules.items[r].text, a->rules.items[r].n);
      any = true;
    }
    if (any) psplit_i_text_puts(&text, ")");
  }
  psplit_code code = text.failed ? psplit_i_nomem(diag) : PSPLIT_OK;
  if (code == PSPLIT_OK && text.n > MOST_BYTES)
    code = psplit_i_fail(diag, PSPLIT_UNSUPPORTED,
                         "an assignment by names takes %zu bytes for this plan, and ONNX Runtime "
                         "takes %d at most: layer_ann has no such limit",
                         text.n, MOST_BYTES);
  if (code == PSPLIT_OK)
    *out = text.bytes;
  else
    psplit_i_text_fini(&text);
  return code;
}

psplit_code psplit_name_assignment(const psplit_model *model, const psplit_plan *plan,
                                   const char *const *stage_provider, psplit_diag *diag,
                                   char **out_text) {
  psplit_code code;
  assigner a = {.model = model};
  psplit_i_arena_init(&a.arena, 0);
  if (plan->n_nodes != model->graph->n_nodes)
    PSPLIT_FAIL(psplit_i_fail(diag, PSPLIT_INVALID, "the plan was made for another model than %s",
                              model->path));
  uint32_t *of_stage = psplit_i_arena_array(&a.arena, plan->n_stages, sizeof *of_stage);
  if (!of_stage) PSPLIT_FAIL(psplit_i_nomem(diag));
  PSPLIT_TRY(find_providers(&a, plan, stage_provider, of_stage, diag));
  PSPLIT_TRY(take_names(&a, plan, of_stage, diag));
  if (!cover(&a, 0, a.n_names, 0)) PSPLIT_FAIL(psplit_i_nomem(diag));
  PSPLIT_TRY(mend(&a, diag));
  PSPLIT_TRY(write_rules(&a, diag, out_text));
out:
  psplit_i_vec_fini(&a.rules);
  psplit_i_arena_fini(&a.arena);
  return code;
}
