/* What rules of attention share. Probabilities are computed again: of a sequence there are as many
 * as its length squared. */
#ifndef PSPLIT_GRADIENT_ATTENTION_H
#define PSPLIT_GRADIENT_ATTENTION_H

#include "rule.h"

/* Tensors are [batch, heads, sequence, size] or, flat, [batch, sequence, heads * size]. */
typedef struct psplit_i_heads {
  psplit_i_at *at;
  int64_t n, size;
  bool flat;
} psplit_i_heads;

/* How input i is divided into heads, `attribute` says how many where it is flat; false, refused,
 * where that is not known. */
bool psplit_i_read_heads(psplit_i_at *at, uint32_t i, const char *attribute, psplit_i_heads *h);
/* To [batch, heads, sequence, size] and back. */
ref psplit_i_heads_apart(const psplit_i_heads *h, ref a);
ref psplit_i_heads_together(const psplit_i_heads *h, ref a);

enum { PSPLIT_I_QUERIES = 1, PSPLIT_I_KEYS = 2, PSPLIT_I_VALUES = 4, PSPLIT_I_ADDED = 8 };

/* softmax(factor * queries keys^T + added) values, all of four axes. */
typedef struct psplit_i_attention {
  ref gradient, queries, keys, values, factor;
  double cap;  /* scores are cap * tanh(scores / cap); 0: they are not */
  bool causal; /* no position looks at one behind it */
  ref mask;    /* bool: which scores count; PSPLIT_NONE: all */
  ref added;   /* PSPLIT_NONE: nothing */
  uint32_t want;
  ref to_queries, to_keys, to_values, to_added; /* out: as `want` says; of `added` before a sum */
} psplit_i_attention;

void psplit_i_through_attention(psplit_i_at *at, psplit_i_attention *a);
/* What scores are multiplied by: an attribute, else by the size of a head. */
ref psplit_i_attention_factor(psplit_i_at *at, int64_t size);

/* What is wanted of inputs 0 to 2, queries, keys and values, and of what input `added` adds. */
static inline uint32_t psplit_i_attention_want(const psplit_i_at *at, uint32_t added) {
  uint32_t want = wanted(at, added) ? PSPLIT_I_ADDED : 0;
  for (uint32_t i = 0; i < 3; i++) want |= wanted(at, i) ? 1U << i : 0;
  return want;
}

/* [begin, end) of the last axis, by steps. */
static inline ref columns(psplit_i_at *at, ref a, int64_t begin, int64_t end, int64_t step) {
  const ref inputs[] = {a, int1(at, begin), int1(at, end), int1(at, -1), int1(at, step)};
  return psplit_i_backward_node(at->b, "Slice", 5, inputs, 1);
}

/* How much of a head is turned; false, refused, where that cannot be. */
bool psplit_i_read_turned(psplit_i_at *at, const psplit_i_heads *h, int64_t *out_n);
/* Gives input 0 the gradient g, [batch, heads, sequence, size], turned back. */
void psplit_i_rotate_back(psplit_i_at *at, const psplit_i_heads *h, int64_t n, ref g, ref cosines,
                          ref sines);

#endif
