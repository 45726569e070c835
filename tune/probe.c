/* Determines the nodes that a provider runs, by creating a session without running it. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <psplit/snapshot.h>

#include "arena.h"
#include "intern.h"
#include "json.h"
#include "json_put.h"
#include "scratch_directory.h"
#include "tune.h"

enum { TAKEN, LEFT, HOST };

typedef struct prober {
  const psplit_snapshot *nodes;
  const psplit_session *session;
  psplit_i_session_options options;
  psplit_i_intern names; /* of nodes; an id is the number of the node */
  bool numbered;         /* the session's file has "#0#" for names */
  uint8_t *where;        /* [n_nodes] */
  psplit_i_arena arena;
  psplit_i_intern others; /* names of what ONNX Runtime made itself, and put on the CPU */
} prober;

/* Whether each node can be told by its name; fills p->names. */
static psplit_code read_names(prober *p, bool *out_distinct, psplit_diag *diag) {
  *out_distinct = true;
  for (uint32_t n = 0; n < p->nodes->n_nodes && *out_distinct; n++) {
    const char *name = p->nodes->nodes[n].name;
    const uint32_t id = *name ? psplit_i_intern_add(&p->names, name) : n;
    if (id == PSPLIT_NONE) return psplit_i_nomem(diag);
    *out_distinct = *name && id == n;
  }
  return PSPLIT_OK;
}

/* The node that `name` is of, or is made from; PSPLIT_NONE: none. What the optimiser makes has a
 * name that begins with that of a node, "NAME/MatMulAddFusion" or "NAME_token_3"; so has what was
 * in a branch that it inlined. */
static uint32_t find_node(const prober *p, const char *name) {
  if (p->numbered) { /* #NUMBER#... */
    char *end;
    if (*name != '#') return PSPLIT_NONE;
    const unsigned long number = strtoul(name + 1, &end, 10);
    return number < p->nodes->n_nodes && *end == '#' ? (uint32_t)number : PSPLIT_NONE;
  }
  char prefix[1024];
  size_t n = strlen(name);
  if (n >= sizeof prefix) return psplit_i_intern_find(&p->names, name);
  memcpy(prefix, name, n + 1);
  uint32_t id = psplit_i_intern_find(&p->names, prefix);
  while (id == PSPLIT_NONE && n > 1) {
    while (n > 1 && prefix[n - 1] != '/' && prefix[n - 1] != '_') n--;
    if (n > 1) prefix[--n] = '\0';
    id = psplit_i_intern_find(&p->names, prefix);
  }
  return id;
}

static bool counts(const psplit_snapshot_node *node) {
  return !(node->flags & (PSPLIT_SNAPSHOT_NODE_DEAD | PSPLIT_SNAPSHOT_NODE_FREE));
}

/* Computing with sizes is the host's business on any device: nothing large is read. */
static bool is_of_sizes(const psplit_snapshot_node *node) {
  return node->work.op_class == PSPLIT_CLASS_SHAPE;
}

static void note(prober *p, uint32_t n) {
  p->where[n] = is_of_sizes(&p->nodes->nodes[n]) ? HOST : LEFT;
}

/* What is on the CPU and of no node of the main graph is in a body or a function: then the nodes
 * that have some are left. */
static void note_bodies(prober *p) {
  for (uint32_t n = 0; n < p->nodes->n_nodes; n++)
    if (p->nodes->nodes[n].work.op_class == PSPLIT_CLASS_CONTROL) note(p, n);
}

/* Where ONNX Runtime changes the layout of a tensor whose Shape is taken, it puts the sizes in
 * order by a Gather, whose name nothing in the model has. */
static bool is_made_name(const char *name) {
  return !*name || strcmp(name, "Gather") == 0 || strncmp(name, "Gather_token_", 13) == 0;
}

static bool is_made_gather(const psplit_i_placed *node) {
  return strcmp(node->op_type, "Gather") == 0 && is_made_name(node->name);
}

/* Of no node of the main graph: of a body, or made by ONNX Runtime. */
static bool note_other(prober *p, const psplit_i_placed *node) {
  note_bodies(p);
  if (!*node->name || psplit_i_intern_find(&p->others, node->name) != PSPLIT_NONE) return true;
  const char *name = psplit_i_arena_strndup(&p->arena, node->name, strlen(node->name));
  return name && psplit_i_intern_add(&p->others, name) != PSPLIT_NONE;
}

static psplit_code place(prober *p, const psplit_onnxruntime *ort, const char *path,
                         psplit_diag *diag) {
  psplit_i_session session = {0};
  psplit_i_placed *list = NULL;
  size_t n_list = 0;
  psplit_code code;
  PSPLIT_TRY(psplit_i_session_open(&ort->ort, path, &p->options, diag, &session));
  PSPLIT_TRY(psplit_i_session_placed(&session, diag, &list, &n_list));
  for (size_t i = 0; i < n_list; i++) {
    if (psplit_i_provider_is(p->session->provider, list[i].provider) ||
        strcmp(list[i].provider, "CPUExecutionProvider") != 0)
      continue;
    const uint32_t node = find_node(p, list[i].name);
    if (node != PSPLIT_NONE)
      note(p, node);
    else if (!is_made_gather(&list[i]) && !note_other(p, &list[i]))
      PSPLIT_FAIL(psplit_i_nomem(diag));
  }
out:
  free(list);
  psplit_i_session_close(&session);
  return code;
}

static psplit_code place_copy(prober *p, const psplit_onnxruntime *ort, const psplit_model *model,
                              psplit_diag *diag) {
  psplit_i_text directory = {0}, file = {0};
  psplit_code code = PSPLIT_OK;
  psplit_emit_options how;
  psplit_emit_options_init(&how);
  how.replace = true;
  PSPLIT_TRY(psplit_i_scratch_directory("probe", diag, &directory));
  psplit_i_text_addf(&file, "%s/model.onnx", directory.bytes);
  if (file.failed) PSPLIT_FAIL(psplit_i_nomem(diag));
  PSPLIT_TRY(psplit_emit_numbered(model, file.bytes, &how, diag));
  PSPLIT_TRY(place(p, ort, file.bytes, diag));
out:
  if (file.bytes) unlink(file.bytes);
  if (directory.bytes) rmdir(directory.bytes);
  psplit_i_text_fini(&file);
  psplit_i_text_fini(&directory);
  return code;
}

/* As devices files name it: by its first output where it has no name. */
static const char *name_of(const prober *p, const psplit_snapshot_node *node) {
  for (uint32_t o = 0; !*node->name && o < node->n_outputs; o++)
    if (node->outputs[o] != PSPLIT_NONE) return p->nodes->values[node->outputs[o]].name;
  return node->name;
}

static void put_left(const prober *p, psplit_i_json *json) {
  psplit_i_json_open(json, '[');
  for (uint32_t n = 0; n < p->nodes->n_nodes; n++)
    if (p->where[n] == LEFT && counts(&p->nodes->nodes[n]))
      psplit_i_json_string(json, name_of(p, &p->nodes->nodes[n]));
  psplit_i_json_close(json, ']');
}

/* All that compute sizes: in a stage, where less is constant, more of them are there than in the
 * whole model. */
static void put_host(const prober *p, psplit_i_json *json) {
  bool takes_shapes = false, own_gather = false; /* that has such a name, or might be given one */
  psplit_i_json_open(json, '[');
  for (uint32_t n = 0; n < p->nodes->n_nodes; n++) {
    const psplit_snapshot_node *node = &p->nodes->nodes[n];
    takes_shapes |= strcmp(node->op_type, "Shape") == 0;
    own_gather |= strcmp(node->op_type, "Gather") == 0 && is_made_name(node->name);
    if (is_of_sizes(node) && counts(node)) psplit_i_json_string(json, name_of(p, node));
  }
  if (takes_shapes && !own_gather) {
    psplit_i_json_string(json, "Gather");
    psplit_i_json_string(json, "Gather_token_*");
  }
  psplit_i_json_close(json, ']');
}

static void put(const prober *p, const char *model, const char *version, psplit_i_text *out) {
  psplit_i_json json;
  const char *slash = strrchr(model, '/');
  psplit_i_json_init(&json, out);
  psplit_i_json_open(&json, '{');
  psplit_i_json_put_string(&json, "format", "onnx-pipeline-split-support");
  psplit_i_json_put_uint(&json, "version", 1);
  psplit_i_json_put_string(&json, "provider", p->session->provider);
  psplit_i_json_put_string(&json, "onnxruntime", version);
  psplit_i_json_put_uint(&json, "optimization", (uint64_t)p->options.optimization);
  psplit_i_json_put_string(&json, "model", slash ? slash + 1 : model);
  psplit_i_json_put_uint(&json, "nodes", p->nodes->n_nodes);
  psplit_i_json_put_open(&json, "unsupported", '{');
  psplit_i_json_key(&json, "nodes");
  put_left(p, &json);
  psplit_i_json_close(&json, '}');
  psplit_i_json_key(&json, "host_nodes");
  put_host(p, &json);
  psplit_i_json_put_open(&json, "others", '[');
  for (uint32_t i = 0; i < p->others.n; i++) psplit_i_json_string(&json, p->others.text[i]);
  psplit_i_json_close(&json, ']');
  psplit_i_json_close(&json, '}');
  psplit_i_text_puts(out, "\n");
}

/* Operators of what is left, most first, of equals the one that comes first in the file. */
static psplit_code list_left(const prober *p, psplit_diag *diag, psplit_i_text *out) {
  psplit_i_intern operators;
  psplit_i_intern_init(&operators);
  uint32_t *n_of = calloc((size_t)p->nodes->n_nodes + 1, sizeof *n_of);
  psplit_code code = n_of ? PSPLIT_OK : psplit_i_nomem(diag);
  for (uint32_t n = 0; n < p->nodes->n_nodes && code == PSPLIT_OK; n++) {
    if (p->where[n] != LEFT || !counts(&p->nodes->nodes[n])) continue;
    const uint32_t id = psplit_i_intern_add(&operators, p->nodes->nodes[n].op_type);
    if (id == PSPLIT_NONE)
      code = psplit_i_nomem(diag);
    else
      n_of[id]++;
  }
  for (uint32_t i = 0; i < operators.n && code == PSPLIT_OK; i++) {
    uint32_t most = 0;
    for (uint32_t k = 1; k < operators.n; k++)
      if (n_of[k] > n_of[most]) most = k;
    psplit_i_text_addf(out, "%s%s %" PRIu32, i ? ", " : "", operators.text[most], n_of[most]);
    n_of[most] = 0;
  }
  free(n_of);
  psplit_i_intern_fini(&operators);
  return code;
}

static psplit_code tell(const prober *p, const char *path, const psplit_onnxruntime *ort,
                        psplit_diag *diag, psplit_probe *out) {
  psplit_i_text text = {0}, left = {0};
  psplit_probe probe = {0};
  psplit_code code = list_left(p, diag, &left);
  psplit_i_text_add(&left, "", 0);
  put(p, path, ort->ort.version, &text);
  if (code == PSPLIT_OK && (text.failed || left.failed)) code = psplit_i_nomem(diag);
  for (uint32_t n = 0; n < p->nodes->n_nodes; n++) {
    if (!counts(&p->nodes->nodes[n])) continue;
    probe.n_nodes++;
    probe.n_left += p->where[n] == LEFT;
    probe.n_host += p->where[n] == HOST;
  }
  if (code != PSPLIT_OK) {
    psplit_i_text_fini(&text);
    psplit_i_text_fini(&left);
    return code;
  }
  probe.text = text.bytes;
  probe.left = left.bytes;
  *out = probe;
  return PSPLIT_OK;
}

void psplit_probe_fini(psplit_probe *probe) {
  free(probe->text);
  free(probe->left);
  *probe = (psplit_probe){0};
}

/* The model's nodes with what they do. */
static psplit_code look(const psplit_model *model, const psplit_planner_options *given,
                        psplit_diag *diag, psplit_planner **out_planner,
                        psplit_snapshot **out_nodes) {
  psplit_planner_options options;
  psplit_code code;
  psplit_planner_options_init(&options);
  options.dims = given->dims;
  options.n_dims = given->n_dims;
  options.decode = given->decode;
  options.allow_invalid = given->allow_invalid;
  options.cancel = given->cancel;
  PSPLIT_TRY(psplit_planner_create(model, &options, diag, out_planner));
  PSPLIT_TRY(psplit_planner_run(*out_planner, "infer-shapes,cost,mark", diag));
  PSPLIT_TRY(psplit_snapshot_take(*out_planner, diag, out_nodes));
out:
  return code;
}

psplit_code psplit_probe_provider(const psplit_onnxruntime *ort, const char *path,
                                  const psplit_model *model, const psplit_session *session,
                                  const psplit_planner_options *options, psplit_diag *diag,
                                  psplit_probe *out) {
  psplit_code code;
  psplit_planner *planner = NULL;
  psplit_snapshot *nodes = NULL;
  bool distinct;
  prober p = {.session = session, .options = psplit_i_take_session(session)};
  psplit_i_intern_init(&p.names);
  psplit_i_intern_init(&p.others);
  psplit_i_arena_init(&p.arena, 0);
  if (!session->provider)
    PSPLIT_FAIL(psplit_i_fail(diag, PSPLIT_USAGE, "no execution provider is named to ask"));
  p.options.record_placement = true;
  p.options.assert_placement = false;
  PSPLIT_TRY(look(model, options, diag, &planner, &nodes));
  p.nodes = nodes;
  p.where = calloc((size_t)nodes->n_nodes + 1, sizeof *p.where);
  if (!p.where) PSPLIT_FAIL(psplit_i_nomem(diag));
  PSPLIT_TRY(read_names(&p, &distinct, diag));
  p.numbered = !distinct || psplit_model_n_inlined(model);
  PSPLIT_TRY(p.numbered ? place_copy(&p, ort, model, diag) : place(&p, ort, path, diag));
  PSPLIT_TRY(tell(&p, path, ort, diag, out));
out:
  free(p.where);
  psplit_i_intern_fini(&p.others);
  psplit_i_arena_fini(&p.arena);
  psplit_i_intern_fini(&p.names);
  psplit_snapshot_destroy(nodes);
  psplit_planner_destroy(planner);
  return code;
}
