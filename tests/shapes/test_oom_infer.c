/* Inferring shapes and counting work when memory runs out:  test_oom_infer MODEL...
 * The i-th allocation fails, for every i until none is reached: the calls say NOMEM, or do without
 * (contents that cannot be read are merely unknown), and leave no memory behind. The linker wraps
 * the allocator (meson.build). */
#include <stdio.h>
#include <stdlib.h>

#include "shape.h"
#include "work.h"

void *__real_malloc(size_t bytes);
void *__real_calloc(size_t n, size_t bytes);
void *__real_realloc(void *memory, size_t bytes);
void __real_free(void *memory);
void *__wrap_malloc(size_t bytes);
void *__wrap_calloc(size_t n, size_t bytes);
void *__wrap_realloc(void *memory, size_t bytes);
void __wrap_free(void *memory);

static long n_live, n_until_failure = -1;

static bool fails(void) { return n_until_failure >= 0 && n_until_failure-- == 0; }

static void *counted(void *memory) {
  n_live += memory != NULL;
  return memory;
}

void *__wrap_malloc(size_t bytes) { return fails() ? NULL : counted(__real_malloc(bytes)); }

void *__wrap_calloc(size_t n, size_t bytes) {
  return fails() ? NULL : counted(__real_calloc(n, bytes));
}

void *__wrap_realloc(void *memory, size_t bytes) {
  if (fails()) return NULL;
  return memory ? __real_realloc(memory, bytes) : counted(__real_realloc(NULL, bytes));
}

void __wrap_free(void *memory) {
  n_live -= memory != NULL;
  __real_free(memory);
}

static psplit_code infer_and_cost(const psplit_graph *graph) {
  psplit_diag diag = {0};
  psplit_i_shapes *shapes = NULL;
  psplit_i_costs *costs = NULL;
  psplit_code code;
  PSPLIT_TRY(psplit_i_shapes_create(graph, NULL, 0, NULL, &diag, &shapes));
  const psplit_cost_options options = {.assume_named = 2, .assume_anonymous = -1};
  PSPLIT_TRY(psplit_i_costs_create(shapes, &options, &diag, &costs));
out:
  psplit_i_costs_destroy(costs);
  psplit_i_shapes_destroy(shapes);
  return code;
}

/* Number of allocations that it takes; -1 where something went wrong. */
static long try_all(const psplit_graph *graph) {
  for (long i = 0; i < 100000; i++) {
    const long live_before = n_live;
    n_until_failure = i;
    const psplit_code code = infer_and_cost(graph);
    const bool reached = n_until_failure < 0;
    n_until_failure = -1;
    if ((code != PSPLIT_OK && code != PSPLIT_NOMEM) || (code != PSPLIT_OK && !reached) ||
        n_live != live_before) {
      fprintf(stderr, "allocation %ld: %s, %ld blocks stay\n", i, psplit_code_name(code),
              n_live - live_before);
      return -1;
    }
    if (!reached) return i;
  }
  return -1;
}

int main(int argc, char **argv) {
  for (int i = 1; i < argc; i++) {
    psplit_diag diag = {0};
    psplit_model *model;
    if (psplit_model_open(argv[i], NULL, &diag, &model) != PSPLIT_OK) {
      fprintf(stderr, "%s\n", diag.message);
      return 1;
    }
    const long n = try_all(psplit_i_model_graph(model));
    psplit_model_close(model);
    if (n < 5) return 1; /* the wrapping does not work, or try_all said why */
    printf("%s: %ld allocations\n", argv[i], n);
  }
  return argc < 2;
}
