/* Names for supernodes, from the scope names that exporters leave in node names. */
#ifndef PSPLIT_PASSES_SCOPE_H
#define PSPLIT_PASSES_SCOPE_H

#include "base.h"

/* A group to name: the names of its members ("" for an unnamed one) and which of them stands for
 * the group where they share no scope. */
typedef struct psplit_i_scoped {
  const char *const *names; /* [n] */
  uint32_t n;
  uint32_t main;        /* index into names */
  const char *fallback; /* where the main member has no name */
} psplit_i_scoped;

/* A title for each group: the scope that all named members share, dotted
 * ("/encoder/layers/3/attn/MatMul" is in "encoder.layers.3.attn"); with the main member's last name
 * behind a colon where another group has the same scope; the main member's name where there is no
 * scope. Titles are distinct. out_scopes[n_groups] are the scopes alone, "" for none. Strings live
 * in `arena`. Errors: NOMEM. O(bytes of all names). */
PSPLIT_MUST_USE psplit_code psplit_i_scope_titles(const psplit_i_scoped *groups, uint32_t n_groups,
                                                  psplit_i_arena *arena, psplit_diag *diag,
                                                  const char **out_titles, const char **out_scopes);

/* "/layer1/layer1.0/conv1", the first n bytes of `scope`, as "layer1.0.conv1": dotted, and without
 * what a component repeats of the one before. NULL when out of memory. */
char *psplit_i_scope_dotted(const char *scope, size_t n, psplit_i_arena *arena);

#endif
