#include "latency_block_lists.h"

#include <stdlib.h>

enum {
  INSIDE = PSPLIT_I_BLOCK_INSIDE,
  GRID = 64, /* memory is quantised to so many parts of a device's memory */
  OPTION_OPS = 1
};

static uint64_t rounded(uint64_t bytes, uint64_t memory, uint32_t *out_cell) {
  const uint64_t unit = memory / GRID + 1;
  *out_cell = (uint32_t)(bytes / unit);
  return bytes / unit * unit;
}

/* Resets the cells of all list entries to zero. */
static void forget_cells(psplit_i_block_lists *x) {
  const uint32_t n = x->n_types;
  for (size_t list = 0; list < psplit_i_block_n_lists(n); list++) {
    const uint32_t b = (uint32_t)(list / (psplit_i_block_several(n) + 1) % (n + 1));
    const uint32_t a = (uint32_t)(list / (psplit_i_block_several(n) + 1) / (n + 1));
    for (size_t o = 0; o < x->block->list[list].n; o++) {
      const psplit_i_block_option *option = &x->block->list[list].items[o];
      uint32_t row = 0, column = 0;
      if (a < n) (void)rounded(option->left_bytes, x->memory[a], &row);
      if (b < n) (void)rounded(option->right_bytes, x->memory[b], &column);
      x->cell[(list * (GRID + 1) + row) * (GRID + 1) + column] = 0;
    }
  }
}

/* Keeps the options that no other dominates. O(list). */
static void keep_exact(psplit_i_block_lists *x, psplit_i_block_options *list,
                       const psplit_i_block_option *option) {
  size_t n = 0;
  x->n_ops += list->n / 4;
  for (size_t k = 0; k < list->n; k++) {
    const psplit_i_block_option *o = &list->items[k];
    if (o->cost <= option->cost && o->left_bytes <= option->left_bytes &&
        o->right_bytes <= option->right_bytes)
      return;
  }
  for (size_t k = 0; k < list->n; k++) {
    const psplit_i_block_option *o = &list->items[k];
    if (o->cost < option->cost || o->left_bytes < option->left_bytes ||
        o->right_bytes < option->right_bytes)
      list->items[n++] = *o;
  }
  list->n = n;
  x->failed |= !psplit_i_vec_push(list, *option);
}

/* Keeps the cheapest option for each amount of memory, in parts of the device's memory. */
static void keep_rounded(psplit_i_block_lists *x, size_t list, uint32_t a, uint32_t b,
                         psplit_i_block_option option) {
  psplit_i_block_options *options = &x->block->list[list];
  uint32_t row = 0, column = 0;
  if (a < x->n_types) option.least_left = rounded(option.left_bytes, x->memory[a], &row);
  if (b < x->n_types) option.least_right = rounded(option.right_bytes, x->memory[b], &column);
  uint32_t *cell = &x->cell[(list * (GRID + 1) + row) * (GRID + 1) + column];
  if (*cell == 0) {
    x->failed |= !psplit_i_vec_push(options, option);
    *cell = (uint32_t)options->n;
  } else if (option.cost < options->items[*cell - 1].cost) {
    options->items[*cell - 1] = option;
  }
}

void psplit_i_block_lists_add(psplit_i_block_lists *x, uint32_t a, uint32_t b, uint32_t inside,
                              psplit_i_block_option option) {
  const size_t list = psplit_i_block_list(x->n_types, a, b, inside);
  x->n_ops += OPTION_OPS;
  if (a == x->n_types || x->memory[a] == UINT64_MAX) option.left_bytes = 0;
  if (b == x->n_types || x->memory[b] == UINT64_MAX) option.right_bytes = 0;
  option.least_left = option.left_bytes;
  option.least_right = option.right_bytes;
  if (x->exact)
    keep_exact(x, &x->block->list[list], &option);
  else
    keep_rounded(x, list, a, b, option);
}

void psplit_i_block_lists_clear(psplit_i_block_lists *x) {
  forget_cells(x);
  for (size_t k = 0; k < psplit_i_block_n_lists(x->n_types); k++) x->block->list[k].n = 0;
}

static int compare_bytes(const void *a, const void *b) {
  const psplit_i_block_option *x = a, *y = b;
  if (x->least_left != y->least_left) return x->least_left < y->least_left ? -1 : 1;
  return (x->least_right > y->least_right) - (x->least_right < y->least_right);
}

static int compare_costs(const void *a, const void *b) {
  const psplit_i_block_option *x = a, *y = b;
  if (x->cost != y->cost) return x->cost < y->cost ? -1 : 1;
  return compare_bytes(a, b);
}

static void sort(psplit_i_block_options *list) {
  if (list->n > 1) qsort(list->items, list->n, sizeof *list->items, compare_costs);
}

/* Removes dominated options, and sorts the rest. */
static void sift(psplit_i_block_options *list, uint64_t unit, uint64_t *n_ops) {
  int64_t least[GRID + 1]; /* least cost so far with at most this many bytes on the right */
  size_t n = 0;
  if (list->n < 2) return;
  qsort(list->items, list->n, sizeof *list->items, compare_bytes);
  for (uint32_t k = 0; k <= GRID; k++) least[k] = PSPLIT_I_INF;
  for (size_t o = 0; o < list->n; o++) {
    const psplit_i_block_option option = list->items[o];
    const size_t column = unit ? (size_t)(option.least_right / unit) : 0;
    if (least[column] <= option.cost) continue;
    for (size_t k = column; k <= GRID && least[k] > option.cost; k++) least[k] = option.cost;
    list->items[n++] = option;
  }
  *n_ops += list->n * 16;
  list->n = n;
  qsort(list->items, n, sizeof *list->items, compare_costs);
}

void psplit_i_block_lists_finish(psplit_i_block_lists *x) {
  const uint32_t n = x->n_types;
  forget_cells(x);
  for (size_t k = 0; k < psplit_i_block_n_lists(n); k++) {
    const uint32_t b = (uint32_t)(k / (psplit_i_block_several(n) + 1) % (n + 1));
    const uint64_t memory = b < n ? x->memory[b] : UINT64_MAX;
    if (x->exact)
      sort(&x->block->list[k]);
    else
      sift(&x->block->list[k], memory == UINT64_MAX ? 0 : memory / GRID + 1, &x->n_ops);
  }
}

psplit_code psplit_i_block_tables_init(psplit_i_block_tables *tables,
                                       const psplit_i_instance *instance) {
  const size_t n_cells = psplit_i_block_n_lists(instance->n_types) * (GRID + 1) * (GRID + 1);
  tables->count = calloc((size_t)instance->n_nets * (INSIDE + 2) + 1, sizeof *tables->count);
  tables->cell = calloc(n_cells, sizeof *tables->cell);
  return tables->count && tables->cell ? PSPLIT_OK : PSPLIT_NOMEM;
}

void psplit_i_block_tables_fini(psplit_i_block_tables *tables) {
  free(tables->count);
  free(tables->cell);
}
