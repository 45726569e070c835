/* Writes blocks of nodes as model-local functions. A function cannot refer to names of the graph:
 * everything that its nodes read, weights included, becomes an input with the same name, so that
 * the bytes of the nodes remain unchanged. */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "emit.h"
#include "fields.h"
#include "wire.h"

typedef struct maker {
  const psplit_model *model;
  const psplit_i_graph *graph;
  const psplit_blocks *blocks;
  psplit_i_arena arena;
  psplit_diag *diag;
  uint32_t *home;  /* [n_nodes] block whose function holds the node; PSPLIT_NONE: the graph does */
  uint32_t *off;   /* [n_blocks + 2] */
  uint32_t *nodes; /* [n_nodes] by home, then in topological order */
  uint32_t *met;   /* [n_values] 1 + the last block that read the value */
  bool *inside;    /* [n_values] made in a function and used nowhere else */
  char domain[48];
  psplit_i_intern names; /* of functions */
  psplit_i_rope graph_rope, functions;
} maker;

/* Where a reader's function is; the graph for what is read as an output. */
static uint32_t only_home(const maker *m, uint32_t node) {
  const psplit_i_node *n = &m->graph->nodes[node];
  uint32_t home = PSPLIT_NONE;
  for (uint32_t o = 0; o < n->n_outputs; o++) {
    const uint32_t v = n->outputs[o];
    if (v == PSPLIT_NONE) continue;
    if (m->graph->values[v].is_output) return PSPLIT_NONE;
    for (uint32_t c = m->graph->consumer_off[v]; c < m->graph->consumer_off[v + 1]; c++) {
      const uint32_t other = m->home[m->graph->consumers[c]];
      if (other == PSPLIT_NONE || (home != PSPLIT_NONE && home != other)) return PSPLIT_NONE;
      home = other;
    }
  }
  return home;
}

static bool leaves(const maker *m, uint32_t value, uint32_t block) {
  if (m->graph->values[value].is_output) return true;
  for (uint32_t c = m->graph->consumer_off[value]; c < m->graph->consumer_off[value + 1]; c++)
    if (m->home[m->graph->consumers[c]] != block) return true;
  return false;
}

/* Blocks of one node stay a node, and so do blocks that nothing reads: a call needs an output. */
static psplit_code settle(maker *m) {
  const uint32_t n_nodes = m->graph->n_nodes, n_blocks = m->blocks->n_blocks;
  m->home = psplit_i_arena_array(&m->arena, n_nodes, sizeof *m->home);
  m->nodes = psplit_i_arena_array(&m->arena, n_nodes, sizeof *m->nodes);
  m->off = PSPLIT_NEW(&m->arena, uint32_t, (size_t)n_blocks + 2);
  m->met = PSPLIT_NEW(&m->arena, uint32_t, m->graph->n_values);
  m->inside = PSPLIT_NEW(&m->arena, bool, m->graph->n_values);
  uint32_t *count = PSPLIT_NEW(&m->arena, uint32_t, n_blocks);
  bool *read = PSPLIT_NEW(&m->arena, bool, n_blocks);
  if (m->arena.failed) return psplit_i_nomem(m->diag);
  for (uint32_t n = 0; n < n_nodes; n++) {
    m->home[n] = m->blocks->node_block[n];
    if (m->home[n] == PSPLIT_NONE) continue;
    if (m->home[n] >= n_blocks)
      return psplit_i_fail(m->diag, PSPLIT_INVALID, "a node is in a block that does not exist");
    count[m->home[n]]++;
  }
  for (uint32_t n = 0; n < n_nodes; n++)
    for (uint32_t o = 0; m->home[n] != PSPLIT_NONE && o < m->graph->nodes[n].n_outputs; o++)
      if (m->graph->nodes[n].outputs[o] != PSPLIT_NONE &&
          leaves(m, m->graph->nodes[n].outputs[o], m->home[n]))
        read[m->home[n]] = true;
  for (uint32_t n = 0; n < n_nodes; n++)
    if (m->home[n] != PSPLIT_NONE && (count[m->home[n]] < 2 || !read[m->home[n]]))
      m->home[n] = PSPLIT_NONE;
  for (uint32_t i = n_nodes; i-- > 0;) {
    const uint32_t n = m->graph->topo[i];
    if (m->blocks->node_block[n] == PSPLIT_NONE) m->home[n] = only_home(m, n);
  }
  for (uint32_t n = 0; n < n_nodes; n++)
    if (m->home[n] != PSPLIT_NONE) m->off[m->home[n] + 2]++;
  for (uint32_t b = 0; b < n_blocks; b++) m->off[b + 2] += m->off[b + 1];
  for (uint32_t i = 0; i < n_nodes; i++) {
    const uint32_t n = m->graph->topo[i];
    if (m->home[n] != PSPLIT_NONE) m->nodes[m->off[m->home[n] + 1]++] = n;
  }
  return PSPLIT_OK;
}

/* A domain that the model does not use. */
static void choose_domain(maker *m) {
  for (uint32_t number = 1;; number++) {
    bool taken = false;
    if (number == 1)
      snprintf(m->domain, sizeof m->domain, "psplit.supernodes");
    else
      snprintf(m->domain, sizeof m->domain, "psplit.supernodes%" PRIu32, number);
    for (size_t i = 0; i < m->model->proto->n_opset_import; i++) {
      const char *domain = m->model->proto->opset_import[i]->domain;
      if (domain && strcmp(domain, m->domain) == 0) taken = true;
    }
    if (!taken) return;
  }
}

/* Letters and digits, with one '_' for all that stands between them. */
static size_t add_words(char *name, size_t n, const char *text) {
  bool apart = n > 0;
  for (; *text; text++) {
    const char c = *text;
    if (!((c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9'))) {
      apart = n > 0;
      continue;
    }
    if (apart) name[n++] = '_';
    apart = false;
    name[n++] = c;
  }
  return n;
}

/* Runtimes join names of functions with other words, and viewers show what follows a dot or a slash
 * apart: neither is left of the kind and the title. Distinct, in the arena; NULL: out of memory. */
static const char *function_name(maker *m, uint32_t block) {
  const char *title = m->blocks->titles[block];
  const char *kind = m->blocks->kinds ? m->blocks->kinds[block] : "";
  char *name = psplit_i_arena_alloc(&m->arena, strlen(kind) + strlen(title) + 24);
  if (!name) return NULL;
  size_t n = add_words(name, add_words(name, 0, kind), title);
  if (!n) name[n++] = '_';
  name[n] = '\0';
  for (uint32_t number = 2; psplit_i_intern_find(&m->names, name) != PSPLIT_NONE; number++)
    snprintf(name + n, 16, "_%" PRIu32, number);
  return psplit_i_intern_add(&m->names, name) == PSPLIT_NONE ? NULL : name;
}

static void add_string(psplit_i_text *out, uint32_t field, const char *text) {
  psplit_i_wire_bytes(out, field, text, strlen(text));
}

static psplit_code add_node(maker *m, uint32_t node, uint32_t field, psplit_i_rope *out) {
  psplit_code code = PSPLIT_OK;
  const psplit_i_span *span = &m->model->skeleton.graph_fields.items[m->model->node_spans[node]];
  psplit_i_rope content = {0};
  uint64_t offset, bytes;
  if (field == PSPLIT_I_GRAPH_NODE) {
    psplit_i_rope_span(out, m->model, span);
    return PSPLIT_OK;
  }
  PSPLIT_TRY(psplit_i_span_content(m->model, span, m->diag, &offset, &bytes));
  psplit_i_rope_range(&content, 0, offset, bytes);
  psplit_i_rope_message(out, &m->arena, field, &content);
  psplit_i_rope_fini(&content);
out:
  return code;
}

/* What a block reads from elsewhere, as inputs of its function and of the call. */
static void add_inputs(maker *m, uint32_t block, psplit_i_text *head, psplit_i_text *call) {
  for (uint32_t i = m->off[block]; i < m->off[block + 1]; i++) {
    const psplit_i_node *node = &m->graph->nodes[m->nodes[i]];
    for (uint32_t r = 0; r < node->n_inputs + node->n_captures; r++) {
      const uint32_t v = r < node->n_inputs ? node->inputs[r] : node->captures[r - node->n_inputs];
      if (v == PSPLIT_NONE || m->met[v] == block + 1) continue;
      m->met[v] = block + 1;
      const uint32_t producer = m->graph->values[v].producer;
      if (producer != PSPLIT_NONE && m->home[producer] == block) continue;
      add_string(head, PSPLIT_I_FUNCTION_INPUT, m->graph->values[v].name);
      add_string(call, PSPLIT_I_NODE_INPUT, m->graph->values[v].name);
    }
  }
}

/* What leaves a block, as outputs of both. */
static void add_outputs(maker *m, uint32_t block, psplit_i_text *head, psplit_i_text *call) {
  for (uint32_t i = m->off[block]; i < m->off[block + 1]; i++) {
    const psplit_i_node *node = &m->graph->nodes[m->nodes[i]];
    for (uint32_t o = 0; o < node->n_outputs; o++) {
      const uint32_t v = node->outputs[o];
      if (v == PSPLIT_NONE) continue;
      m->inside[v] = !leaves(m, v, block);
      if (m->inside[v]) continue;
      add_string(head, PSPLIT_I_FUNCTION_OUTPUT, m->graph->values[v].name);
      add_string(call, PSPLIT_I_NODE_OUTPUT, m->graph->values[v].name);
    }
  }
}

/* The model's imports hold inside of functions as well. */
static void add_imports(const maker *m, psplit_i_text *out) {
  for (size_t i = 0; i < m->model->proto->n_opset_import; i++) {
    const Onnx__OperatorSetIdProto *import = m->model->proto->opset_import[i];
    psplit_i_text entry = {0};
    if (import->domain) add_string(&entry, 1, import->domain);
    psplit_i_wire_tag(&entry, 2, PSPLIT_I_WIRE_VARINT);
    psplit_i_wire_varint(&entry, (uint64_t)import->version);
    psplit_i_wire_bytes(out, PSPLIT_I_FUNCTION_OPSETS, entry.bytes, entry.n);
    if (entry.failed) out->failed = true;
    psplit_i_text_fini(&entry);
  }
}

/* The function of a block, and its call in the graph. */
static psplit_code add_block(maker *m, uint32_t block) {
  psplit_code code = PSPLIT_OK;
  const char *name = function_name(m, block);
  psplit_i_text head = {0}, call = {0};
  psplit_i_rope function = {0};
  if (!name) PSPLIT_FAIL(psplit_i_nomem(m->diag));
  add_string(&head, PSPLIT_I_FUNCTION_NAME, name);
  add_inputs(m, block, &head, &call);
  add_outputs(m, block, &head, &call);
  add_string(&call, PSPLIT_I_NODE_NAME, m->blocks->titles[block]);
  add_string(&call, PSPLIT_I_NODE_OP_TYPE, name);
  add_string(&call, PSPLIT_I_NODE_DOMAIN, m->domain);
  psplit_i_rope_copy(&function, &m->arena, head.bytes, head.n);
  for (uint32_t i = m->off[block]; i < m->off[block + 1]; i++)
    PSPLIT_TRY(add_node(m, m->nodes[i], PSPLIT_I_FUNCTION_NODE, &function));
  head.n = 0;
  add_imports(m, &head);
  add_string(&head, PSPLIT_I_FUNCTION_DOMAIN, m->domain);
  if (head.failed || call.failed) PSPLIT_FAIL(psplit_i_nomem(m->diag));
  psplit_i_rope_copy(&function, &m->arena, head.bytes, head.n);
  psplit_i_rope_message(&m->functions, &m->arena, PSPLIT_I_MODEL_FUNCTIONS, &function);
  head.n = 0;
  psplit_i_wire_bytes(&head, PSPLIT_I_GRAPH_NODE, call.bytes, call.n);
  if (head.failed) PSPLIT_FAIL(psplit_i_nomem(m->diag));
  psplit_i_rope_copy(&m->graph_rope, &m->arena, head.bytes, head.n);
out:
  psplit_i_rope_fini(&function);
  psplit_i_text_fini(&call);
  psplit_i_text_fini(&head);
  return code;
}

/* Constants first, then blocks, whose order is topological. */
static psplit_code add_nodes(maker *m) {
  psplit_code code = PSPLIT_OK;
  const uint32_t n_blocks = m->blocks->n_blocks;
  /* members of blocks that stay in the graph, by block: lists linked through `next` */
  uint32_t *first = psplit_i_arena_array(&m->arena, n_blocks, sizeof *first);
  uint32_t *next = psplit_i_arena_array(&m->arena, m->graph->n_nodes, sizeof *next);
  if (!first || !next) return psplit_i_nomem(m->diag);
  for (uint32_t b = 0; b < n_blocks; b++) first[b] = PSPLIT_NONE;
  for (uint32_t i = m->graph->n_nodes; i-- > 0;) {
    const uint32_t n = m->graph->topo[i], b = m->blocks->node_block[n];
    if (b == PSPLIT_NONE || m->home[n] != PSPLIT_NONE) continue;
    next[n] = first[b];
    first[b] = n;
  }
  for (uint32_t i = 0; i < m->graph->n_nodes; i++) {
    const uint32_t n = m->graph->topo[i];
    if (m->blocks->node_block[n] == PSPLIT_NONE && m->home[n] == PSPLIT_NONE)
      PSPLIT_TRY(add_node(m, n, PSPLIT_I_GRAPH_NODE, &m->graph_rope));
  }
  for (uint32_t b = 0; b < n_blocks; b++) {
    if (m->off[b + 1] > m->off[b]) PSPLIT_TRY(add_block(m, b));
    for (uint32_t n = first[b]; n != PSPLIT_NONE; n = next[n])
      PSPLIT_TRY(add_node(m, n, PSPLIT_I_GRAPH_NODE, &m->graph_rope));
  }
out:
  return code;
}

/* Types of values that the graph no longer has go. */
static void add_other_fields(maker *m) {
  uint32_t n_infos = 0;
  for (size_t i = 0; i < m->model->skeleton.graph_fields.n; i++) {
    const psplit_i_span *span = &m->model->skeleton.graph_fields.items[i];
    if (span->field == PSPLIT_I_GRAPH_NODE) continue;
    if (span->field == PSPLIT_I_GRAPH_VALUE_INFO) {
      const char *name = m->model->proto->graph->value_info[n_infos++]->name;
      const uint32_t v = name ? psplit_i_graph_find_value(m->graph, name) : PSPLIT_NONE;
      if (v != PSPLIT_NONE && m->inside[v]) continue;
    }
    psplit_i_rope_span(&m->graph_rope, m->model, span);
  }
}

static void add_import(maker *m, psplit_i_rope *out) {
  psplit_i_text entry = {0}, field = {0};
  add_string(&entry, 1, m->domain);
  psplit_i_wire_tag(&entry, 2, PSPLIT_I_WIRE_VARINT);
  psplit_i_wire_varint(&entry, 1);
  psplit_i_wire_bytes(&field, PSPLIT_I_MODEL_OPSETS, entry.bytes, entry.n);
  if (entry.failed || field.failed)
    out->failed = true;
  else
    psplit_i_rope_copy(out, &m->arena, field.bytes, field.n);
  psplit_i_text_fini(&field);
  psplit_i_text_fini(&entry);
}

psplit_code psplit_emit_blocks(const psplit_model *model, const psplit_blocks *blocks,
                               const char *path, const psplit_emit_options *options,
                               psplit_diag *diag) {
  psplit_code code = PSPLIT_OK;
  psplit_i_rope out = {0};
  maker m = {.model = model, .graph = model->graph, .blocks = blocks, .diag = diag};
  psplit_i_arena_init(&m.arena, 0);
  psplit_i_intern_init(&m.names);
  if (blocks->n_nodes != model->graph->n_nodes)
    PSPLIT_FAIL(psplit_i_fail(diag, PSPLIT_INVALID,
                              "the blocks were found in another model than %s", model->path));
  PSPLIT_TRY(settle(&m));
  choose_domain(&m);
  PSPLIT_TRY(add_nodes(&m));
  add_other_fields(&m);
  for (size_t i = 0; i < model->skeleton.model_fields.n; i++) {
    const psplit_i_span *span = &model->skeleton.model_fields.items[i];
    if (span->field == PSPLIT_I_MODEL_GRAPH)
      psplit_i_rope_message(&out, &m.arena, PSPLIT_I_MODEL_GRAPH, &m.graph_rope);
    else
      psplit_i_rope_span(&out, model, span);
  }
  add_import(&m, &out);
  for (size_t i = 0; i < m.functions.pieces.n; i++) {
    const psplit_i_piece *piece = &m.functions.pieces.items[i];
    if (piece->memory)
      psplit_i_rope_view(&out, piece->memory, (size_t)piece->bytes);
    else
      psplit_i_rope_range(&out, piece->file, piece->offset, piece->bytes);
  }
  if (out.failed || m.graph_rope.failed || m.functions.failed) PSPLIT_FAIL(psplit_i_nomem(diag));
  PSPLIT_TRY(psplit_i_model_file_write(model, &out, path, options, diag));
out:
  psplit_i_rope_fini(&out);
  psplit_i_rope_fini(&m.functions);
  psplit_i_rope_fini(&m.graph_rope);
  psplit_i_intern_fini(&m.names);
  psplit_i_arena_fini(&m.arena);
  return code;
}
