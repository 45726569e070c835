#include "kind.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "operator.h"

typedef enum word_role {
  WHOLE,
  TAIL,
  SOFTMAX,
  SUM,
  SIGMOID,
  PRODUCT,
  MEAN,
  ROOT,
  DIFFERENCE,
  LOOKUP
} word_role;

static const struct word {
  const char *op_type, *name;
  word_role role;
} WORDS[] = {
#define PSPLIT_WORD(op_type, role, word) {op_type, word, role},
#include "words.def"
#undef PSPLIT_WORD
};

enum { SHOWN = 96, EMBEDDING_BYTES = 1 << 16, N_WORDS = sizeof WORDS / sizeof *WORDS };

/* The operators of a supernode, and what they are known by. */
typedef struct members {
  const psplit_snapshot_node *nodes;
  const psplit_snapshot_group *group;
  unsigned roles;                        /* 1 << role of each word met */
  uint32_t whole, tail;                  /* first row of its role that was met, or N_WORDS */
  uint32_t n_convs, n_products, n_heads; /* of class: convolution, matrix product, attention */
  bool depthwise, small;                 /* all are views, sizes, literals */
} members;

static const psplit_snapshot_node *member(const members *m, uint32_t i) {
  return &m->nodes[m->group->nodes[i]];
}

static void meet(members *m, const psplit_snapshot_node *node) {
  const psplit_op_class named = psplit_i_op_class(node->domain, node->op_type);
  const psplit_op_class is = node->work.op_class;
  m->depthwise |= is == PSPLIT_CLASS_DEPTHWISE;
  m->n_convs += named == PSPLIT_CLASS_CONV || named == PSPLIT_CLASS_DEPTHWISE;
  m->n_products += named == PSPLIT_CLASS_MATMUL;
  m->n_heads += named == PSPLIT_CLASS_ATTENTION;
  m->small &= is == PSPLIT_CLASS_SHAPE || is == PSPLIT_CLASS_VIEW || is == PSPLIT_CLASS_CONSTANT;
  for (uint32_t w = 0; w < N_WORDS; w++) {
    if (strcmp(WORDS[w].op_type, node->op_type) != 0) continue;
    m->roles |= 1u << WORDS[w].role;
    if (WORDS[w].role == WHOLE && w < m->whole) m->whole = w;
    if (WORDS[w].role == TAIL && w < m->tail) m->tail = w;
  }
}

static bool has(const members *m, word_role role) { return m->roles >> role & 1; }

/* The activation behind it, or NULL. x * Sigmoid(x) is SiLU. */
static const char *tail_of(const members *m) {
  if (m->tail < N_WORDS) return WORDS[m->tail].name;
  if (!has(m, SIGMOID)) return NULL;
  return has(m, PRODUCT) ? "SiLU" : "sigmoid";
}

static const char *keep(psplit_i_arena *arena, const char *text) {
  return psplit_i_arena_strndup(arena, text, strlen(text));
}

/* "conv x2 + add + ReLU" */
static const char *with_tail(psplit_i_arena *arena, const char *name, uint32_t n, bool sum,
                             const char *tail) {
  char text[SHOWN], times[16] = "";
  if (n > 1) snprintf(times, sizeof times, " x%" PRIu32, n);
  snprintf(text, sizeof text, "%s%s%s%s%s", name, times, sum ? " + add" : "", tail ? " + " : "",
           tail ? tail : "");
  return keep(arena, text);
}

/* Time of all members of the type of one that is the first of its type; else -1. */
static int64_t time_of_type(const members *m, uint32_t first) {
  int64_t ns = 0;
  for (uint32_t i = 0; i < m->group->n_nodes; i++) {
    if (strcmp(member(m, i)->op_type, member(m, first)->op_type) != 0) continue;
    if (i < first) return -1;
    ns = psplit_i_sat_add_i64(ns, member(m, i)->cost_ns);
  }
  return ns;
}

/* The two types that take longest, of the first members: very large supernodes are rare. */
static const char *by_time(const members *m, psplit_i_arena *arena) {
  enum { LOOKED_AT = 64 };
  uint32_t best = 0, second = PSPLIT_NONE, n_types = 0;
  int64_t best_ns = -1, second_ns = -1;
  const uint32_t n = m->group->n_nodes < LOOKED_AT ? m->group->n_nodes : LOOKED_AT;
  for (uint32_t i = 0; i < n; i++) {
    const int64_t ns = time_of_type(m, i);
    if (ns < 0) continue;
    n_types++;
    if (ns > best_ns) {
      second = best_ns < 0 ? PSPLIT_NONE : best;
      second_ns = best_ns;
      best = i;
      best_ns = ns;
    } else if (ns > second_ns) {
      second = i;
      second_ns = ns;
    }
  }
  psplit_i_text text = {0};
  psplit_i_text_puts(&text, member(m, best)->op_type);
  if (second != PSPLIT_NONE) {
    psplit_i_text_puts(&text, " + ");
    psplit_i_text_puts(&text, member(m, second)->op_type);
  }
  if (n_types > 2) psplit_i_text_puts(&text, " ...");
  const char *kept = text.failed ? NULL : keep(arena, text.bytes);
  psplit_i_text_fini(&text);
  return kept;
}

const char *psplit_i_kind_of(const psplit_snapshot_node *nodes, const psplit_snapshot_group *group,
                             psplit_i_arena *arena) {
  members m = {.nodes = nodes, .group = group, .whole = N_WORDS, .tail = N_WORDS, .small = true};
  for (uint32_t i = 0; i < group->n_nodes; i++) meet(&m, member(&m, i));
  const char *tail = tail_of(&m);
  if (group->n_nodes == 0) return "nothing";
  if (m.n_heads || (m.n_products && has(&m, SOFTMAX))) return "attention";
  if (m.n_convs)
    return with_tail(arena, m.depthwise ? "depthwise conv" : "conv", m.n_convs,
                     has(&m, SUM) && tail, tail);
  if (m.n_products > 1 && tail) return "MLP";
  if (m.n_products) return with_tail(arena, "linear", m.n_products, false, tail);
  if (m.whole < N_WORDS) return WORDS[m.whole].name;
  if (has(&m, MEAN) && has(&m, ROOT)) return has(&m, DIFFERENCE) ? "LayerNorm" : "RMSNorm";
  if (m.small) return "shapes";
  if (has(&m, LOOKUP) && group->weight_bytes > EMBEDDING_BYTES) return "embedding";
  if (has(&m, SOFTMAX)) return "softmax";
  if (tail && group->n_nodes > 1) return tail;
  return by_time(&m, arena);
}
