/* Which node a kernel's name speaks of.
 *
 * ONNX Runtime keeps the names of nodes that it leaves alone. What it makes itself it names after
 * what it replaces (observed with 1.17 to 1.30):
 *   VALUE_nchwc, VALUE_bn_nchwc     a blocked layout; VALUE is its output before that, so the node
 *                                   that makes VALUE is in the kernel, perhaps
 *                                   with a sum or an activation behind it
 *   NODE_nchwc                      the same, older
 *   fused NODE                      NODE with the activation behind it
 *   NODE/SomethingFusion/           a fusion found at NODE; there may be several behind each other
 *   NAME_token_7, NAME_7            one of these again, made different from the others
 *   Conv_12                         an unnamed node, by its operator and its number in the file,
 *                                   Constant nodes not counted
 * In memory statistics, a hash of the node's tensors stands behind another '_'. */
#include <string.h>

#include "cost_table.h"

psplit_code psplit_i_cost_names_init(psplit_i_cost_names *names, const psplit_i_graph *graph,
                                     psplit_i_arena *arena, psplit_diag *diag) {
  *names = (psplit_i_cost_names){.graph = graph, .arena = arena};
  psplit_i_intern_init(&names->names);
  names->first = psplit_i_arena_array(arena, graph->n_nodes, sizeof *names->first);
  names->next = psplit_i_arena_array(arena, graph->n_nodes, sizeof *names->next);
  names->counted = psplit_i_arena_array(arena, graph->n_nodes, sizeof *names->counted);
  if (!names->first || !names->next || !names->counted ||
      !psplit_i_intern_reserve(&names->names, graph->n_nodes))
    return psplit_i_nomem(diag);
  for (uint32_t n = 0; n < graph->n_nodes; n++) {
    names->next[n] = PSPLIT_NONE;
    if (!psplit_i_node_is(&graph->nodes[n], "Constant")) names->counted[names->n_counted++] = n;
    if (!*graph->nodes[n].name) continue;
    const uint32_t known = names->names.n;
    const uint32_t id = psplit_i_intern_add(&names->names, graph->nodes[n].name);
    if (id == PSPLIT_NONE) return psplit_i_nomem(diag);
    names->next[n] = id < known ? names->first[id] : PSPLIT_NONE;
    names->first[id] = n;
  }
  return PSPLIT_OK;
}

void psplit_i_cost_names_fini(psplit_i_cost_names *names) { psplit_i_intern_fini(&names->names); }

uint32_t psplit_i_cost_names_node(const psplit_i_cost_names *names, const char *name) {
  const uint32_t id = psplit_i_intern_find(&names->names, name);
  return id == PSPLIT_NONE ? PSPLIT_NONE : names->first[id];
}

static uint32_t maker_of(const psplit_i_cost_names *names, const char *value) {
  const uint32_t v = psplit_i_graph_find_value(names->graph, value);
  return v == PSPLIT_NONE ? PSPLIT_NONE : names->graph->values[v].producer;
}

/* Cuts `suffix` off `text`, of n bytes; false where it does not end so. */
static bool cut(char *text, size_t *io_n, const char *suffix) {
  const size_t n = strlen(suffix);
  if (*io_n <= n || memcmp(text + *io_n - n, suffix, n) != 0) return false;
  text[ *io_n -= n] = '\0';
  return true;
}

/* Cuts "_12" off. */
static bool cut_number(char *text, size_t *io_n) {
  size_t n = *io_n;
  while (n > 1 && text[n - 1] >= '0' && text[n - 1] <= '9') n--;
  if (n == *io_n || n < 2 || text[n - 1] != '_') return false;
  text[ *io_n = n - 1] = '\0';
  return true;
}

/* Cuts "/SomethingFusion" or "/" off. */
static bool cut_fusion(char *text, size_t *io_n) {
  static const char FUSION[] = "Fusion";
  const char *slash = strrchr(text, '/');
  const size_t n = slash ? (size_t)(slash - text) : 0, n_word = sizeof FUSION - 1;
  if (!n) return false;
  const size_t n_last = *io_n - n - 1;
  if (n_last && (n_last < n_word || memcmp(text + *io_n - n_word, FUSION, n_word) != 0))
    return false;
  text[ *io_n = n] = '\0';
  return true;
}

/* "Conv_12": an unnamed node by its number. */
static uint32_t numbered(const psplit_i_cost_names *names, const char *label, const char *op) {
  const size_t n = strlen(op);
  uint64_t number;
  if (!n || strncmp(label, op, n) != 0 || label[n] != '_' ||
      !psplit_i_parse_u64(label + n + 1, &number) || number >= names->n_counted)
    return PSPLIT_NONE;
  const psplit_i_node *node = &names->graph->nodes[names->counted[number]];
  return !*node->name && strcmp(node->op_type, op) == 0 ? names->counted[number] : PSPLIT_NONE;
}

static psplit_i_kernel_name read_layout(const psplit_i_cost_names *names, char *text, size_t n) {
  psplit_i_kernel_name found = {.node = maker_of(names, text), .goes_on = true};
  if (found.node == PSPLIT_NONE && cut(text, &n, "_bn")) found.node = maker_of(names, text);
  if (found.node == PSPLIT_NONE) found.node = psplit_i_cost_names_node(names, text);
  return found;
}

/* The node of a name that ONNX Runtime made, in `text` of n bytes, which is cut. */
static psplit_i_kernel_name read_made(const psplit_i_cost_names *names, char *text, size_t n) {
  static const char FUSED[] = "fused ";
  const bool fused = strncmp(text, FUSED, sizeof FUSED - 1) == 0;
  psplit_i_kernel_name found = {.node = PSPLIT_NONE, .goes_on = fused};
  if (fused) memmove(text, text + sizeof FUSED - 1, (n -= sizeof FUSED - 1) + 1);
  /* Twice: a hash may stand behind the number that tells names apart. */
  for (int round = 0; found.node == PSPLIT_NONE && round < 3; round++) {
    if (round && !cut_number(text, &n)) break;
    if (round) (void)cut(text, &n, "_token");
    found.node = psplit_i_cost_names_node(names, text);
    if (found.node != PSPLIT_NONE) break;
    if (cut(text, &n, "_nchwc")) return read_layout(names, text, n);
    while (found.node == PSPLIT_NONE && cut_fusion(text, &n))
      found.node = psplit_i_cost_names_node(names, text);
  }
  return found;
}

psplit_code psplit_i_kernel_name_read(const psplit_i_cost_names *names, const char *label,
                                      const char *op, psplit_diag *diag,
                                      psplit_i_kernel_name *out) {
  *out = (psplit_i_kernel_name){.node = psplit_i_cost_names_node(names, label)};
  if (out->node == PSPLIT_NONE && op) out->node = numbered(names, label, op);
  if (out->node != PSPLIT_NONE) return PSPLIT_OK;
  const size_t n = strlen(label);
  char *text = psplit_i_arena_strndup(names->arena, label, n);
  if (!text) return psplit_i_nomem(diag);
  *out = read_made(names, text, n);
  return PSPLIT_OK;
}
