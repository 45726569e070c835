/* Scopes of a model under construction: the main graph, bodies and functions. Definitions are
 * numbered (graph_define.c) before nodes are connected (graph_connect.c), so files whose nodes are
 * not in topological order need no special case. Partial results of failures are owned by the
 * model. */
#ifndef PSPLIT_ONNX_GRAPH_SCOPE_H
#define PSPLIT_ONNX_GRAPH_SCOPE_H

#include "model.h"
#include "proto_text.h"
#include "unpack.h"

/* Versions of the operator sets that a model or function imports, by domain. */
typedef struct psplit_i_opsets {
  psplit_i_intern domains;
  PSPLIT_VEC(int64_t) versions;
} psplit_i_opsets;

/* A graph under construction. `values` becomes the graph's when the scope is complete. */
typedef struct psplit_i_graph_scope {
  struct psplit_i_graph_scope *outer;
  psplit_i_graph *graph;
  PSPLIT_VEC(psplit_i_value) values;
  const psplit_i_opsets *opsets; /* of the model or function; shared by bodies */
} psplit_i_graph_scope;

typedef struct psplit_i_graph_builder {
  psplit_model *model;
  psplit_i_intern functions; /* function_key() -> index */
  psplit_i_text key;
  psplit_diag *diag;
} psplit_i_graph_builder;

/* Kind of the scope, for messages. */
static inline const char *psplit_i_graph_scope_kind(const psplit_i_graph_scope *s) {
  if (s->graph->function) return "function";
  return s->outer ? "body" : "graph";
}

/* A name in a node's list, and the destination of its id. */
typedef struct psplit_i_name_mention {
  const char *name;
  size_t bytes;
  uint32_t hash, node;
  uint32_t *place;
} psplit_i_name_mention;

/* Mentions are processed in batches: hashing them first lets their table slots be prefetched, since
 * the table for a million names exceeds the caches. */
enum { PSPLIT_I_MENTIONS = 32 };

typedef struct psplit_i_name_gathering {
  psplit_i_graph_builder *b;
  psplit_i_graph_scope *s;
  psplit_code (*take)(psplit_i_graph_builder *b, psplit_i_graph_scope *s,
                      const psplit_i_name_mention *one);
  psplit_i_name_mention items[PSPLIT_I_MENTIONS];
  unsigned n;
} psplit_i_name_gathering;

/* Processes the batch: calls `take` for each mention, in order. */
PSPLIT_MUST_USE psplit_code psplit_i_settle_names(psplit_i_name_gathering *g);
/* Adds the names of one node, whose ids are written to places[] when they are processed;
 * PSPLIT_NONE for omitted ones. */
PSPLIT_MUST_USE psplit_code psplit_i_gather_names(psplit_i_name_gathering *g, uint32_t node,
                                                  psplit_i_node_names names, uint32_t *places);

/* The value with this name in the scope, created if necessary. Errors: NOMEM. */
PSPLIT_MUST_USE psplit_code psplit_i_graph_scope_define(psplit_i_graph_builder *b,
                                                        psplit_i_graph_scope *s, const char *name,
                                                        psplit_i_value **out);
/* Reads the nodes of the scope, and numbers its inputs, its initializers and the outputs of its
 * nodes. Errors: NOMEM, INVALID (an empty or duplicate name), CANCELLED. */
PSPLIT_MUST_USE psplit_code psplit_i_graph_scope_define_all(psplit_i_graph_builder *b,
                                                            psplit_i_graph_scope *s);

/* Builds a scope, whose graph has its proto or its function, with all its bodies. Errors: those of
 * psplit_i_graph_scope_define_all, INVALID (an undefined input or output; a cycle). */
PSPLIT_MUST_USE psplit_code psplit_i_graph_scope_build(psplit_i_graph_builder *b,
                                                       psplit_i_graph_scope *s);

/* Imported operator sets, by domain. Errors: NOMEM, INVALID (two versions of one). */
PSPLIT_MUST_USE psplit_code psplit_i_index_opsets(psplit_i_graph_builder *b, size_t n,
                                                  Onnx__OperatorSetIdProto *const *imports,
                                                  psplit_i_opsets *out);
void psplit_i_opsets_fini(psplit_i_opsets *o);
/* 0: the domain is not imported. */
int64_t psplit_i_opset_of(const psplit_i_graph_scope *s, const char *domain);

/* Indexes the functions of the model by domain, name and overload; finds the one that a node calls.
 * Errors: NOMEM, INVALID (a duplicate definition). */
PSPLIT_MUST_USE psplit_code psplit_i_index_functions(psplit_i_graph_builder *b);
PSPLIT_MUST_USE psplit_code psplit_i_find_function(psplit_i_graph_builder *b, psplit_i_node *node);

#endif
