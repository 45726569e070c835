#include "parts.h"

#include <inttypes.h>
#include <stdlib.h>

/* Each takes as much memory as its weight. */
enum { MOST_PARTS = 4 };

psplit_code psplit_i_parts_begin(psplit_gradient *gradient, psplit_diag *diag) {
  bool *apart = PSPLIT_NEW(&gradient->arena, bool, gradient->b.forward->n_values);
  if (!apart) return psplit_i_nomem(diag);
  for (uint32_t i = 0; i < gradient->n_trainables; i++)
    apart[gradient->trainables[i].value] =
      !gradient->trainables[i].is_input && !gradient->trainables[i].is_state;
  gradient->b.apart = apart;
  return PSPLIT_OK;
}

/* "<tensor>.grad", with the number of the part behind it unless that is 0, and `suffix`. */
static void write_name(const psplit_i_backward *b, uint32_t value, uint32_t part,
                       const char *suffix, psplit_i_text *out) {
  psplit_i_text_addf(out, "%s.grad", b->forward->values[value].name);
  if (part) psplit_i_text_addf(out, ".%" PRIu32, part);
  psplit_i_text_puts(out, suffix);
}

/* The part added to what it was before. */
static void add_before(psplit_gradient *gradient, const psplit_i_trainable *t, uint32_t part) {
  psplit_i_backward *b = &gradient->b;
  const int32_t elem = psplit_i_shapes_type(gradient->shapes, t->value)->elem;
  psplit_i_text text = {0};
  write_name(b, t->value, part, ".before", &text);
  const psplit_i_ref before = psplit_i_backward_received(b, psplit_i_backward_text(b, &text), elem);
  psplit_i_text_fini(&text);
  if (before == PSPLIT_NONE) return;
  b->values.items[before].index = t->value;
  psplit_i_trainable_part *out = &t->parts[part];
  out->names.before = b->values.items[before].name;
  out->gradient = psplit_i_backward_node(b, "Add", 2, (psplit_i_ref[]){before, out->gradient}, 1);
}

/* A part gets its name; one that is no node's result, or that of two tensors, passes through an
 * Identity. */
static void name_part(psplit_gradient *gradient, const psplit_i_trainable *t, uint32_t part,
                      bool accumulate) {
  psplit_i_backward *b = &gradient->b;
  psplit_i_trainable_part *out = &t->parts[part];
  if (b->failed) return;
  const psplit_i_bvalue *value = &b->values.items[out->gradient];
  if (accumulate && !t->is_input)
    add_before(gradient, t, part);
  else if (value->origin != PSPLIT_ORIGIN_NODE || value->name)
    out->gradient = psplit_i_backward_node(b, "Identity", 1, &out->gradient, 1);
  psplit_i_text text = {0};
  write_name(b, t->value, part, "", &text);
  out->names.gradient = psplit_i_backward_name(b, psplit_i_backward_text(b, &text));
  psplit_i_text_fini(&text);
  if (!b->failed) b->values.items[out->gradient].name = out->names.gradient;
}

/* Room for n parts of a trainable. */
static bool make_room(psplit_gradient *gradient, psplit_i_trainable *t, uint32_t n) {
  t->parts = PSPLIT_NEW(&gradient->arena, psplit_i_trainable_part, n);
  t->more = PSPLIT_NEW(&gradient->arena, psplit_gradient_part, n);
  t->n_parts = t->parts && t->more ? n : 0;
  if (!t->n_parts) gradient->b.failed = true;
  return t->n_parts > 0;
}

/* The whole gradient of a trainable, made by the node that made the sum. */
static void take_sum(psplit_gradient *gradient, psplit_i_trainable *t, psplit_i_ref sum,
                     bool accumulate) {
  psplit_i_backward *b = &gradient->b;
  if (sum == PSPLIT_NONE || !make_room(gradient, t, 1)) return;
  const psplit_i_bvalue *value = &b->values.items[sum];
  b->twin = value->origin == PSPLIT_ORIGIN_NODE ? b->nodes.items[value->index].twin
                                                : b->forward->values[gradient->loss].producer;
  t->parts[0].gradient = sum;
  name_part(gradient, t, 0, accumulate);
}

/* list[n] are of one weight, from its last reader to its first. Readers of one use share a part,
 * and neighbours do where there are more uses than parts. */
static void take_list(psplit_gradient *gradient, psplit_i_trainable *t, const uint32_t *uses,
                      const psplit_i_contribution *list, size_t n) {
  psplit_i_backward *b = &gradient->b;
  uint32_t n_readers = 0;
  for (size_t i = 0; i < n; i++)
    n_readers += i == 0 || uses[list[i].node] != uses[list[i - 1].node];
  if (!make_room(gradient, t, n_readers < MOST_PARTS ? n_readers : MOST_PARTS)) return;
  for (uint32_t p = 0; p < t->n_parts; p++) t->parts[p].gradient = PSPLIT_NONE;
  uint32_t reader = 0, part = 0;
  for (size_t i = 0; i < n && !b->failed; i++) {
    reader += i > 0 && uses[list[i].node] != uses[list[i - 1].node];
    const uint32_t at = (uint32_t)((uint64_t)reader * t->n_parts / n_readers);
    if (at != part) name_part(gradient, t, part, true);
    part = at;
    psplit_i_ref *sum = &t->parts[part].gradient;
    b->twin = list[i].node;
    *sum = *sum == PSPLIT_NONE
             ? list[i].gradient
             : psplit_i_backward_node(b, "Add", 2, (psplit_i_ref[]){*sum, list[i].gradient}, 1);
  }
  if (!b->failed) name_part(gradient, t, part, true);
  for (uint32_t p = 1; p < t->n_parts; p++) t->more[p - 1] = t->parts[p].names;
}

/* [nodes] where what a node makes meets data first: itself, if it reads some, else the first node
 * that reads what is made of it. So slices of one weight, which a concatenation puts together in
 * another order, are one use of it. NULL when out of memory. O(edges). */
static uint32_t *find_uses(const psplit_i_graph *graph, psplit_i_arena *arena) {
  uint32_t *uses = psplit_i_arena_array(arena, graph->n_nodes, sizeof *uses);
  uint32_t *position = psplit_i_arena_array(arena, graph->n_nodes, sizeof *position);
  bool *data = PSPLIT_NEW(arena, bool, graph->n_values);
  if (!uses || !position || !data) return NULL;
  for (uint32_t i = 0; i < graph->n_inputs; i++)
    data[graph->inputs[i]] = graph->values[graph->inputs[i]].initializer == PSPLIT_NONE;
  for (uint32_t i = 0; i < graph->n_nodes; i++) {
    const uint32_t n = graph->topo[i];
    bool reads_data = false;
    position[n] = i;
    PSPLIT_FOR_EACH_READ(&graph->nodes[n], value) reads_data |= data[value];
    uses[n] = reads_data ? n : PSPLIT_NONE;
    for (uint32_t o = 0; o < graph->nodes[n].n_outputs; o++)
      if (graph->nodes[n].outputs[o] != PSPLIT_NONE) data[graph->nodes[n].outputs[o]] = reads_data;
  }
  for (uint32_t i = graph->n_nodes; i-- > 0;) {
    const uint32_t n = graph->topo[i];
    if (uses[n] != PSPLIT_NONE) continue;
    uses[n] = n;
    for (uint32_t o = 0; o < graph->nodes[n].n_outputs; o++) {
      const uint32_t value = graph->nodes[n].outputs[o];
      if (value == PSPLIT_NONE) continue;
      for (uint32_t c = graph->consumer_off[value]; c < graph->consumer_off[value + 1]; c++) {
        const uint32_t use = uses[graph->consumers[c]];
        if (uses[n] == n || position[use] < position[uses[n]]) uses[n] = use;
      }
    }
  }
  return uses;
}

/* Contributions by value, and of one value in the order in which they came. */
typedef struct keyed {
  psplit_i_contribution one;
  size_t position;
} keyed;

static int compare(const void *a, const void *b) {
  const keyed *x = a, *y = b;
  if (x->one.value != y->one.value) return x->one.value < y->one.value ? -1 : 1;
  return x->position < y->position ? -1 : x->position > y->position;
}

/* malloc'd; NULL when out of memory. */
static psplit_i_contribution *sort(const psplit_i_backward *b) {
  const size_t n = b->contributions.n;
  psplit_i_contribution *sorted = malloc((n + 1) * sizeof *sorted);
  keyed *keys = malloc((n + 1) * sizeof *keys);
  if (!sorted || !keys) {
    free(sorted);
    free(keys);
    return NULL;
  }
  for (size_t i = 0; i < n; i++) keys[i] = (keyed){b->contributions.items[i], i};
  if (n) qsort(keys, n, sizeof *keys, compare);
  for (size_t i = 0; i < n; i++) sorted[i] = keys[i].one;
  free(keys);
  return sorted;
}

static int compare_value(const void *a, const void *b) {
  const uint32_t *x = a;
  const psplit_i_contribution *y = b;
  return *x < y->value ? -1 : *x > y->value;
}

void psplit_i_parts_make(psplit_gradient *gradient, const psplit_i_ref *sums, bool accumulate) {
  psplit_i_backward *b = &gradient->b;
  const size_t n = b->contributions.n;
  psplit_i_contribution *sorted = sort(b);
  psplit_i_arena scratch;
  psplit_i_arena_init(&scratch, 0);
  const uint32_t *uses = n ? find_uses(b->forward, &scratch) : NULL;
  if (!sorted || (n && !uses)) b->failed = true;
  for (uint32_t i = 0; i < gradient->n_trainables && !b->failed; i++) {
    psplit_i_trainable *t = &gradient->trainables[i];
    const psplit_i_contribution *found =
      n ? bsearch(&t->value, sorted, n, sizeof *sorted, compare_value) : NULL;
    if (!found) {
      take_sum(gradient, t, sums[i], accumulate);
      continue;
    }
    while (found > sorted && found[-1].value == t->value) found--;
    size_t of = 0;
    while (found + of < sorted + n && found[of].value == t->value) of++;
    take_list(gradient, t, uses, found, of);
  }
  psplit_i_arena_fini(&scratch);
  free(sorted);
}

uint32_t psplit_i_parts_say_missing(const psplit_gradient *gradient, const psplit_logger *logger) {
  uint32_t n = 0, missing = 0, first = 0;
  for (uint32_t i = 0; i < gradient->n_trainables; i++) {
    if (gradient->trainables[i].is_state) continue;
    n++;
    if (!gradient->trainables[i].n_parts && missing++ == 0) first = gradient->trainables[i].value;
  }
  const char *name = gradient->b.forward->values[first].name;
  if (missing == 1)
    psplit_i_say(logger, PSPLIT_WARNING, "the loss does not depend on \"%.160s\"", name);
  else if (missing)
    psplit_i_say(logger, PSPLIT_WARNING,
                 "the loss does not depend on %" PRIu32 " of the %" PRIu32
                 " tensors to be trained, \"%.160s\" and others",
                 missing, n, name);
  return n - missing;
}
