/* Blocks that repeat, over made-up supernodes: a letter a supernode, equal letters are alike. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
/* cmocka.h needs the four above first. */
#include <cmocka.h>
#include <string.h>

#include "repeat.h"

enum { MAX_GROUPS = 64 };

/* Finds the repeats of a chain of supernodes with the given letters and scopes (NULL: none), which
 * an extra edge may skip, and prints them: "first blocks*supernodes title;". */
static void expect(const char *letters, const char *const *scopes,
                   const psplit_snapshot_edge *extra, const char *expected) {
  uint64_t shape[MAX_GROUPS];
  const char *scope[MAX_GROUPS];
  psplit_snapshot_edge edges[MAX_GROUPS + 1];
  const uint32_t n = (uint32_t)strlen(letters);
  uint32_t n_edges = 0, n_repeats;
  for (uint32_t g = 0; g < n; g++) {
    shape[g] = (uint64_t)letters[g];
    scope[g] = scopes ? scopes[g] : "";
    if (g + 1 < n) edges[n_edges++] = (psplit_snapshot_edge){g, g + 1, g};
    if (extra && extra->from == g) edges[n_edges++] = *extra;
  }
  psplit_i_arena arena;
  psplit_i_arena_init(&arena, 0);
  psplit_diag diag = {0};
  psplit_snapshot_repeat *repeats;
  const psplit_i_repeat_input input = {n, shape, scope, n_edges, edges};
  assert_int_equal(psplit_i_repeats_find(&input, &arena, &diag, &repeats, &n_repeats), PSPLIT_OK);
  psplit_i_text got = {0};
  psplit_i_text_puts(&got, "");
  for (uint32_t r = 0; r < n_repeats; r++)
    psplit_i_text_addf(&got, "%u %u*%u %s;", (unsigned)repeats[r].first,
                       (unsigned)repeats[r].n_blocks, (unsigned)repeats[r].n_groups,
                       repeats[r].title);
  assert_string_equal(got.bytes ? got.bytes : "", expected);
  psplit_i_text_fini(&got);
  psplit_i_arena_fini(&arena);
}

static void layers_are_found_without_names(void **state) {
  (void)state;
  expect("xabcabcabcy", NULL, NULL, "1 3*3 ;");
  expect("aaaaaa", NULL, NULL, "0 6*1 ;");
  expect("xaay", NULL, NULL, ""); /* too little to fold */
  expect("", NULL, NULL, "");
  expect("abcdef", NULL, NULL, "");
}

static void scopes_say_where_blocks_begin(void **state) {
  (void)state;
  /* A run "ababa": the blocks are "ab" from 0 or "ba" from 1. */
  expect("ababax", (const char *const[]){"n", "l.0", "l.0", "l.1", "l.1", "n"}, NULL,
         "1 2*2 l.[0-1];");
  expect("ababax", (const char *const[]){"l.0", "l.0", "l.1", "l.1", "n", "n"}, NULL,
         "0 2*2 l.[0-1];");
}

static void numbers_count_blocks_up(void **state) {
  (void)state;
  expect("abababx",
         (const char *const[]){"m.l.0.a", "m.l.0", "m.l.1.a", "m.l.1", "m.l.2.a", "m.l.2", "m"},
         NULL, "0 3*2 m.l.[0-2];");
  /* Numbers may leave some out, and stand at the end of a component. */
  expect("abababx", (const char *const[]){"b1.x", "b1.y", "b2.x", "b2.y", "b7.x", "b7.y", ""}, NULL,
         "0 3*2 b[1-2,7];");
  /* One scope in two blocks: no blocks of that model. */
  expect("abababx", (const char *const[]){"l.0", "l.0", "l.0", "l.1", "l.1", "l.1", ""}, NULL, "");
  /* The same where the scope goes on beside the last one. */
  expect("xababac", (const char *const[]){"", "l.0", "l.0", "l.1", "l.1", "l.2", "l.2"}, NULL,
         "1 2*2 l.[0-1];");
  expect("xababac", (const char *const[]){"", "l.0", "l.0", "l.1", "l.1", "l.1", "l.2"}, NULL, "");
  /* Two scopes a block, where no smaller block is one. */
  expect("abcabcx", (const char *const[]){"l.0", "l.0", "l.1", "l.2", "l.2", "l.3", ""}, NULL,
         "0 2*3 l.[0-3];");
}

static void inner_blocks_come_first(void **state) {
  (void)state;
  /* Two stages of two blocks and a step down: the blocks of each are what is shown. */
  expect("ababcababcx",
         (const char *const[]){"f.1.0", "f.1.0", "f.1.1", "f.1.1", "f.2", "f.3.0", "f.3.0", "f.3.1",
                               "f.3.1", "f.4", ""},
         NULL, "0 2*2 f.1.[0-1];5 2*2 f.3.[0-1];");
}

static void edges_tell_blocks_apart(void **state) {
  (void)state;
  /* The second of five blocks has an edge that the others lack. */
  const psplit_snapshot_edge extra = {3, 5, 9};
  expect("abcabcabcabcabcx", NULL, &extra, "6 3*3 ;");
}

int main(void) {
  const struct CMUnitTest tests[] = {
    cmocka_unit_test(layers_are_found_without_names),
    cmocka_unit_test(scopes_say_where_blocks_begin),
    cmocka_unit_test(numbers_count_blocks_up),
    cmocka_unit_test(inner_blocks_come_first),
    cmocka_unit_test(edges_tell_blocks_apart),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
