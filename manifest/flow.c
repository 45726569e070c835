/* Whether stages, transfers, inputs and outputs of a manifest speak of the same tensors, of types
 * that there are. */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "manifest.h"

/* A tensor on its way between two stages. */
typedef struct crossing {
  uint32_t from, to, tensor; /* id of its name */
  uint32_t row;              /* of the table that lists it */
} crossing;

typedef struct crossings {
  crossing *rows;
  size_t n;
} crossings;

typedef struct checking {
  const psplit_i_manifest *m;
  psplit_diag *diag;
  psplit_i_arena arena;
  psplit_i_intern tensors, inputs, outputs;
  bool *is_given; /* outputs of the model, by id */
  crossings sent, received, listed;
} checking;

static int by_stages_and_tensor(const crossing *x, const crossing *y) {
  if (x->from != y->from) return x->from < y->from ? -1 : 1;
  if (x->to != y->to) return x->to < y->to ? -1 : 1;
  return x->tensor < y->tensor ? -1 : x->tensor > y->tensor;
}

static int compare(const void *a, const void *b) {
  const crossing *x = a, *y = b;
  const int order = by_stages_and_tensor(x, y);
  return order ? order : x->row < y->row ? -1 : x->row > y->row;
}

static psplit_code add_names(psplit_i_intern *table, const char *const *names, uint32_t n,
                             psplit_diag *diag) {
  for (uint32_t i = 0; i < n; i++)
    if (psplit_i_intern_add(table, names[i]) == PSPLIT_NONE) return psplit_i_nomem(diag);
  return PSPLIT_OK;
}

static psplit_code make_room(checking *c) {
  size_t n_sent = 0, n_received = 0;
  for (uint32_t s = 0; s < c->m->n_stages; s++) {
    const psplit_i_manifest_stage *stage = &c->m->stages[s];
    n_received += stage->n_inputs;
    for (uint32_t o = 0; o < stage->n_outputs; o++) n_sent += stage->outputs[o].n_to;
  }
  c->sent.rows = PSPLIT_NEW(&c->arena, crossing, n_sent);
  c->received.rows = PSPLIT_NEW(&c->arena, crossing, n_received);
  c->listed.rows = PSPLIT_NEW(&c->arena, crossing, c->m->n_transfers);
  c->is_given = PSPLIT_NEW(&c->arena, bool, c->m->n_outputs);
  return c->arena.failed ? psplit_i_nomem(c->diag) : PSPLIT_OK;
}

static psplit_code add_crossing(checking *c, crossings *to, uint32_t from, uint32_t target,
                                const char *tensor, uint32_t row) {
  const uint32_t id = psplit_i_intern_add(&c->tensors, tensor);
  if (id == PSPLIT_NONE) return psplit_i_nomem(c->diag);
  to->rows[to->n++] = (crossing){from, target, id, row};
  return PSPLIT_OK;
}

static psplit_code add_inputs(checking *c, uint32_t s) {
  const psplit_i_manifest_stage *stage = &c->m->stages[s];
  for (uint32_t i = 0; i < stage->n_inputs; i++) {
    const psplit_i_row *row = &stage->inputs[i];
    psplit_code code = PSPLIT_OK;
    if (row->from == PSPLIT_I_FROM_MODEL) {
      if (psplit_i_intern_find(&c->inputs, row->tensor) == PSPLIT_NONE)
        code = psplit_i_fail(
          c->diag, PSPLIT_INVALID,
          "stage %" PRIu32 " takes \"%s\" from the model, which has no such input", s, row->tensor);
    } else if (row->from >= s) {
      code = psplit_i_fail(c->diag, PSPLIT_INVALID,
                           "stage %" PRIu32 " receives \"%s\" from stage %" PRIu32
                           ", which is not before it",
                           s, row->tensor, row->from);
    } else {
      code = add_crossing(c, &c->received, row->from, s, row->tensor, i);
    }
    if (code != PSPLIT_OK) return code;
  }
  return PSPLIT_OK;
}

static psplit_code add_outputs(checking *c, uint32_t s) {
  psplit_code code = PSPLIT_OK;
  const psplit_i_manifest_stage *stage = &c->m->stages[s];
  for (uint32_t o = 0; o < stage->n_outputs; o++) {
    const psplit_i_row *row = &stage->outputs[o];
    if (row->to_model) {
      const uint32_t id = psplit_i_intern_find(&c->outputs, row->tensor);
      if (id == PSPLIT_NONE)
        return psplit_i_fail(
          c->diag, PSPLIT_INVALID,
          "stage %" PRIu32 " gives \"%s\" to the model, which has no such output", s, row->tensor);
      c->is_given[id] = true;
    }
    for (uint32_t k = 0; k < row->n_to; k++)
      PSPLIT_TRY(add_crossing(c, &c->sent, s, row->to[k], row->tensor, o));
  }
out:
  return code;
}

/* The first row of `a`, in order of stages, that `b` does not have; NULL: none. Both are sorted. */
static const crossing *find_missing(const crossings *a, const crossings *b) {
  size_t k = 0;
  for (size_t i = 0; i < a->n; i++) {
    while (k < b->n && by_stages_and_tensor(&b->rows[k], &a->rows[i]) < 0) k++;
    if (k == b->n || by_stages_and_tensor(&b->rows[k], &a->rows[i]) != 0) return &a->rows[i];
    k++;
  }
  return NULL;
}

static const crossing *find_repeated(const crossings *a) {
  for (size_t i = 1; i < a->n; i++)
    if (by_stages_and_tensor(&a->rows[i - 1], &a->rows[i]) == 0) return &a->rows[i];
  return NULL;
}

static psplit_code compare_crossings(checking *c) {
  crossings *const lists[] = {&c->sent, &c->received, &c->listed};
  for (size_t l = 0; l < sizeof lists / sizeof *lists; l++)
    if (lists[l]->n) qsort(lists[l]->rows, lists[l]->n, sizeof *lists[l]->rows, compare);
  const char *const *names = c->tensors.text;
  const crossing *one;
  if ((one = find_missing(&c->received, &c->sent)))
    return psplit_i_fail(c->diag, PSPLIT_INVALID,
                         "stage %" PRIu32 " waits for \"%s\", which stage %" PRIu32
                         " does not send",
                         one->to, names[one->tensor], one->from);
  if ((one = find_missing(&c->sent, &c->received)))
    return psplit_i_fail(c->diag, PSPLIT_INVALID,
                         "stage %" PRIu32 " sends \"%s\" to stage %" PRIu32
                         ", which does not take it",
                         one->from, names[one->tensor], one->to);
  if ((one = find_missing(&c->listed, &c->sent)))
    return psplit_i_fail(c->diag, PSPLIT_INVALID,
                         "transfers list \"%s\" from stage %" PRIu32 " to stage %" PRIu32
                         ", which the stages do not",
                         names[one->tensor], one->from, one->to);
  if ((one = find_missing(&c->sent, &c->listed)))
    return psplit_i_fail(c->diag, PSPLIT_INVALID,
                         "\"%s\" from stage %" PRIu32 " to stage %" PRIu32
                         " is missing among the transfers",
                         names[one->tensor], one->from, one->to);
  if ((one = find_repeated(&c->listed)))
    return psplit_i_fail(c->diag, PSPLIT_INVALID,
                         "transfers list \"%s\" from stage %" PRIu32 " to stage %" PRIu32
                         " more than once",
                         names[one->tensor], one->from, one->to);
  return PSPLIT_OK;
}

/* The three lists are the same, row by row. */
static psplit_code connect(const checking *c, psplit_i_arena *arena,
                           const psplit_i_ports **out_ports) {
  psplit_i_ports *ports = PSPLIT_NEW(arena, psplit_i_ports, c->listed.n);
  if (!ports) return psplit_i_nomem(c->diag);
  for (size_t i = 0; i < c->listed.n; i++)
    ports[c->listed.rows[i].row] = (psplit_i_ports){c->sent.rows[i].row, c->received.rows[i].row};
  *out_ports = ports;
  return PSPLIT_OK;
}

static bool is_element(const char *dtype) {
  static const char *const NAMES[] = {
#define PSPLIT_I_ELEMENT(number, ort_number, name, bits) name,
#include "elements.def"
  };
  for (size_t i = 0; i < sizeof NAMES / sizeof *NAMES; i++)
    if (strcmp(NAMES[i], dtype) == 0) return true;
  return false;
}

/* What a value is whose elements are not those of a dense tensor. */
static bool is_other_kind(const char *dtype) {
  static const char *const STARTS[] = {"sequence(", "optional(", "map(", "sparse_tensor(",
                                       "opaque"};
  for (size_t i = 0; i < sizeof STARTS / sizeof *STARTS; i++)
    if (strncmp(STARTS[i], dtype, strlen(STARTS[i])) == 0) return true;
  return false;
}

static psplit_code check_values(checking *c, const psplit_i_manifest_value *values, uint32_t n) {
  for (uint32_t i = 0; i < n; i++)
    if (values[i].dtype && !is_element(values[i].dtype) && !is_other_kind(values[i].dtype))
      return psplit_i_fail(c->diag, PSPLIT_INVALID, "\"%s\" has the unknown type \"%s\"",
                           values[i].name, values[i].dtype);
  return PSPLIT_OK;
}

static psplit_code check_types(checking *c) {
  psplit_code code;
  const psplit_i_manifest *m = c->m;
  PSPLIT_TRY(check_values(c, m->input_values, m->n_inputs));
  PSPLIT_TRY(check_values(c, m->output_values, m->n_outputs));
  for (uint32_t t = 0; t < m->n_transfers; t++)
    if (!is_element(m->transfers[t].dtype))
      PSPLIT_FAIL(psplit_i_fail(c->diag, PSPLIT_INVALID,
                                "the transfer of \"%s\" has the unknown type \"%s\"",
                                m->transfers[t].tensor, m->transfers[t].dtype));
out:
  return code;
}

static psplit_code check_all(checking *c) {
  psplit_code code;
  const psplit_i_manifest *m = c->m;
  PSPLIT_TRY(make_room(c));
  PSPLIT_TRY(add_names(&c->inputs, m->inputs, m->n_inputs, c->diag));
  PSPLIT_TRY(add_names(&c->outputs, m->outputs, m->n_outputs, c->diag));
  for (uint32_t s = 0; s < m->n_stages; s++) {
    PSPLIT_TRY(add_inputs(c, s));
    PSPLIT_TRY(add_outputs(c, s));
  }
  for (uint32_t t = 0; t < m->n_transfers; t++)
    PSPLIT_TRY(add_crossing(c, &c->listed, m->transfers[t].from, m->transfers[t].to,
                            m->transfers[t].tensor, t));
  PSPLIT_TRY(compare_crossings(c));
  PSPLIT_TRY(check_types(c));
  for (uint32_t i = 0; i < c->outputs.n; i++)
    if (!c->is_given[i])
      PSPLIT_FAIL(psplit_i_fail(c->diag, PSPLIT_INVALID, "no stage gives the model's output \"%s\"",
                                c->outputs.text[i]));
out:
  return code;
}

psplit_code psplit_i_manifest_check(const char *directory, const psplit_i_manifest *manifest,
                                    psplit_i_arena *arena, psplit_diag *diag,
                                    const psplit_i_ports **out_ports) {
  checking c = {.m = manifest, .diag = diag};
  psplit_i_arena_init(&c.arena, 0);
  psplit_i_intern_init(&c.tensors);
  psplit_i_intern_init(&c.inputs);
  psplit_i_intern_init(&c.outputs);
  psplit_code code = check_all(&c);
  if (code == PSPLIT_OK) code = connect(&c, arena, out_ports);
  if (code == PSPLIT_INVALID) psplit_i_diag_context(diag, "%s/pipeline.json", directory);
  psplit_i_intern_fini(&c.outputs);
  psplit_i_intern_fini(&c.inputs);
  psplit_i_intern_fini(&c.tensors);
  psplit_i_arena_fini(&c.arena);
  return code;
}
