/* "supports" and "unsupported" of devices files. */
#include <string.h>

#include "operator.h"
#include "proto_text.h"
#include "support.h"

static const psplit_i_support_limits NO_LIMITS = {.max_rank = -1, .max_bytes = UINT64_MAX};

/* Names of element types, as a bit set. */
static void read_types(psplit_i_json_item list, uint32_t *io) {
  enum { N_TYPES = 32 };
  const char *names[N_TYPES];
  uint32_t number[N_TYPES], n_names = 0, types = 0;
  for (uint32_t t = 1; t < N_TYPES; t++)
    if ((names[n_names] = psplit_i_dtype_name((int32_t)t)) != NULL) number[n_names++] = t;
  if (!psplit_i_json_given(list)) return;
  const size_t n = psplit_i_json_length(&list, 1, N_TYPES);
  for (size_t i = 0; i < n; i++) {
    uint32_t which = 0;
    psplit_i_json_choice(psplit_i_json_element(&list, i), names, n_names, &which);
    types |= UINT32_C(1) << number[which];
  }
  *io = types;
}

/* [first, last] */
static void read_opsets(psplit_i_json_item range, psplit_i_support_limits *io) {
  if (!psplit_i_json_given(range) || psplit_i_json_length(&range, 2, 2) != 2) return;
  psplit_i_json_i64(psplit_i_json_element(&range, 0), 1, INT64_MAX, &io->since);
  psplit_i_json_i64(psplit_i_json_element(&range, 1), 1, INT64_MAX, &io->until);
  if (io->since > io->until) psplit_i_json_must_be(&range, "[FIRST, LAST] in that order");
}

static void read_limits(const psplit_i_json_item *object, psplit_i_support_limits *io) {
  const psplit_i_json_item bytes = psplit_i_json_find(object, "max_tensor_bytes");
  read_types(psplit_i_json_find(object, "types"), &io->types);
  read_opsets(psplit_i_json_find(object, "opsets"), io);
  psplit_i_json_flag(psplit_i_json_find(object, "static_shapes"), &io->static_shapes);
  psplit_i_json_i64(psplit_i_json_find(object, "max_rank"), 0, PSPLIT_MAX_RANK, &io->max_rank);
  psplit_i_json_u64(bytes, &io->max_bytes);
}

static bool is_known_domain(const char *domain) {
  static const char *const known[] = {"", "ai.onnx.ml", "com.microsoft"};
  for (size_t i = 0; i < sizeof known / sizeof *known; i++)
    if (strcmp(domain, known[i]) == 0) return true;
  return false;
}

/* "Conv", "com.microsoft.FusedConv". In domains of others there are operators that nobody knows. */
static void read_operator(const psplit_i_json_item *item, psplit_i_support_rule *out) {
  const char *name = NULL;
  psplit_i_json_name(*item, &name);
  if (!name) return;
  const char *dot = strrchr(name, '.');
  const char *domain =
    dot ? psplit_i_arena_strndup(item->reader->arena, name, (size_t)(dot - name)) : "";
  out->op_type = dot ? dot + 1 : name;
  out->domain = psplit_i_domain_of(domain);
  if (!*out->op_type) psplit_i_json_must_be(item, "an operator");
  if (is_known_domain(out->domain) &&
      psplit_i_operator_row(out->domain, out->op_type) == PSPLIT_NONE)
    psplit_i_json_wrong(item, "names an unknown operator, \"%.80s\"", name);
}

/* A name, or an object with limits of its own. */
static void read_rule(psplit_i_json_item item, bool refuses, psplit_i_support_rule *out) {
  static const char *const all[] = {"operator",      "types",    "opsets",
                                    "static_shapes", "max_rank", "max_tensor_bytes"};
  out->limits = NO_LIMITS;
  if (psplit_i_json_is_string(item)) {
    read_operator(&item, out);
    return;
  }
  psplit_i_json_keys(&item, all, refuses ? 2 : (uint32_t)(sizeof all / sizeof *all));
  const psplit_i_json_item name = psplit_i_json_need(&item, "operator");
  read_operator(&name, out);
  read_limits(&item, &out->limits);
}

static void read_rules(psplit_i_json_item list, bool refuses, psplit_i_support_rules *out) {
  enum { MOST = 4096 };
  const size_t n = psplit_i_json_given(list) ? psplit_i_json_length(&list, 0, MOST) : 0;
  *out = (psplit_i_support_rules){0};
  if (!n) return;
  psplit_i_support_rule *items = PSPLIT_I_JSON_NEW(list.reader, psplit_i_support_rule, n);
  out->items = items;
  for (size_t i = 0; items && i < n && list.reader->code == PSPLIT_OK; i++) {
    read_rule(psplit_i_json_element(&list, i), refuses, &items[i]);
    out->n++;
  }
}

void psplit_i_support_read_nodes(psplit_i_json_item list, uint32_t *out_n,
                                 const char *const **out_names) {
  enum { MOST = 1 << 20 };
  const size_t n = psplit_i_json_given(list) ? psplit_i_json_length(&list, 0, MOST) : 0;
  const char **names = n ? PSPLIT_I_JSON_NEW(list.reader, const char *, n) : NULL;
  for (size_t i = 0; names && i < n && list.reader->code == PSPLIT_OK; i++)
    psplit_i_json_name(psplit_i_json_element(&list, i), &names[i]);
  *out_names = names;
  *out_n = names ? (uint32_t)n : 0;
}

void psplit_i_support_read(const psplit_i_json_item *object, const psplit_i_support **io) {
  static const char *const known[] = {"operators",     "types",    "opsets",
                                      "static_shapes", "max_rank", "max_tensor_bytes"};
  static const char *const refusable[] = {"operators", "types", "nodes"};
  const psplit_i_json_item supports = psplit_i_json_find(object, "supports"),
                           unsupported = psplit_i_json_find(object, "unsupported");
  if (!psplit_i_json_given(supports) && !psplit_i_json_given(unsupported)) return;
  psplit_i_support *made = PSPLIT_I_JSON_NEW(object->reader, psplit_i_support, 1);
  if (!made) return;
  *made = *io ? **io : (psplit_i_support){.limits = NO_LIMITS};
  if (psplit_i_json_given(supports)) {
    const psplit_i_json_item operators = psplit_i_json_find(&supports, "operators");
    PSPLIT_I_JSON_KEYS(&supports, known);
    made->limits = NO_LIMITS;
    made->listed = psplit_i_json_given(operators);
    read_limits(&supports, &made->limits);
    read_rules(operators, false, &made->runs);
    if (made->listed && !made->runs.n && object->reader->code == PSPLIT_OK)
      psplit_i_json_wrong(&operators, "is empty: the device would support nothing");
  }
  if (psplit_i_json_given(unsupported)) {
    PSPLIT_I_JSON_KEYS(&unsupported, refusable);
    made->refused_types = 0;
    read_rules(psplit_i_json_find(&unsupported, "operators"), true, &made->refuses);
    read_types(psplit_i_json_find(&unsupported, "types"), &made->refused_types);
    psplit_i_support_read_nodes(psplit_i_json_find(&unsupported, "nodes"), &made->n_nodes,
                                &made->nodes);
  }
  *io = made;
}
