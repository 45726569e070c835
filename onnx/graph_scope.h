/* Scopes of a model under construction: the main graph, bodies and functions. What they define is
 * numbered (graph_define.c) before their nodes are connected (graph_connect.c), so files whose
 * nodes are not in topological order need no special case. Failures leave what there is to the
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
  const psplit_i_opsets *opsets; /* those of the model or function; bodies share them */
} psplit_i_graph_scope;

typedef struct psplit_i_graph_builder {
  psplit_model *model;
  psplit_i_intern functions; /* function_key() -> index */
  psplit_i_text key;
  psplit_diag *diag;
} psplit_i_graph_builder;

/* What to call the scope in a message. */
static inline const char *psplit_i_graph_scope_kind(const psplit_i_graph_scope *s) {
  if (s->graph->function) return "function";
  return s->outer ? "body" : "graph";
}

/* A name that a node lists, and where its id goes. */
typedef struct psplit_i_name_mention {
  const char *name;
  size_t bytes;
  uint32_t hash, node;
  uint32_t *place;
} psplit_i_name_mention;

/* Mentions are gathered some at a time: hashing them first has their places in the table fetched
 * together, which a million names do not fit into a cache for. */
enum { PSPLIT_I_MENTIONS = 32 };

typedef struct psplit_i_name_gathering {
  psplit_i_graph_builder *b;
  psplit_i_graph_scope *s;
  psplit_code (*take)(psplit_i_graph_builder *b, psplit_i_graph_scope *s,
                      const psplit_i_name_mention *one);
  psplit_i_name_mention items[PSPLIT_I_MENTIONS];
  unsigned n;
} psplit_i_name_gathering;

/* Settles what is gathered: `take` is called for each, in order. */
PSPLIT_MUST_USE psplit_code psplit_i_settle_names(psplit_i_name_gathering *g);
/* The names of one node, whose ids go to places[] once they are settled; PSPLIT_NONE for one that
 * is omitted. */
PSPLIT_MUST_USE psplit_code psplit_i_gather_names(psplit_i_name_gathering *g, uint32_t node,
                                                  psplit_i_node_names names, uint32_t *places);

/* The value of that name in the scope, which is new where there was none. Errors: NOMEM. */
PSPLIT_MUST_USE psplit_code psplit_i_graph_scope_define(psplit_i_graph_builder *b,
                                                        psplit_i_graph_scope *s, const char *name,
                                                        psplit_i_value **out);
/* Takes the nodes of the scope, and numbers its inputs, its initializers and what its nodes make.
 * Errors: NOMEM, INVALID (no name, or defined twice), CANCELLED. */
PSPLIT_MUST_USE psplit_code psplit_i_graph_scope_define_all(psplit_i_graph_builder *b,
                                                            psplit_i_graph_scope *s);

/* All of a scope, whose graph has its proto or its function, and of the bodies in it.
 * Errors: those of psplit_i_graph_scope_define_all, INVALID (what is read, or an output, is not
 * defined; nodes in a circle). */
PSPLIT_MUST_USE psplit_code psplit_i_graph_scope_build(psplit_i_graph_builder *b,
                                                       psplit_i_graph_scope *s);

/* Operator sets that are imported, by domain. Errors: NOMEM, INVALID (in two versions). */
PSPLIT_MUST_USE psplit_code psplit_i_index_opsets(psplit_i_graph_builder *b, size_t n,
                                                  Onnx__OperatorSetIdProto *const *imports,
                                                  psplit_i_opsets *out);
void psplit_i_opsets_fini(psplit_i_opsets *o);
/* 0: the domain is not imported. */
int64_t psplit_i_opset_of(const psplit_i_graph_scope *s, const char *domain);

/* The functions of the model, by domain, name and overload; which of them a node calls.
 * Errors: NOMEM, INVALID (one is defined twice). */
PSPLIT_MUST_USE psplit_code psplit_i_index_functions(psplit_i_graph_builder *b);
PSPLIT_MUST_USE psplit_code psplit_i_find_function(psplit_i_graph_builder *b, psplit_i_node *node);

#endif
