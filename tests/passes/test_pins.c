/* What is the name of a node pins it as it stands; else nodes are pinned as fnmatch(3) says,
 * whether a pattern is looked up as a name or tried on all nodes. A node without a name goes by its
 * first output. A text pins what the same pins one by one do. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
/* cmocka.h needs the four above first. */
#include <cmocka.h>
#include <fnmatch.h>
#include <stdio.h>
#include <string.h>

#include "graph.h"
#include "open.h"
#include "planner.h"

enum { N_NODES = 14, N_STAGES = 3 };

/* Names in which all that is special to patterns stands, two of them twice; in the text form a
 * backslash is two. */
static psplit_model *chain(void) {
  return opened_text(
    "(float[8] v0) => (float[8] v14) {"
    " [\"a\"] v1 = Relu (v0) [\"ab\"] v2 = Relu (v1) [\"a*\"] v3 = Relu (v2)"
    " [\"a?b\"] v4 = Relu (v3) [\"[ab]\"] v5 = Relu (v4) [\"a\\\\b\"] v6 = Relu (v5)"
    " [\"/x/a\"] v7 = Relu (v6) [\"/x/b=1\"] v8 = Relu (v7) [\"#a\"] v9 = Relu (v8)"
    " [\"ab\"] v10 = Relu (v9) \"b#a\" = Relu (v10) [\"a*\"] v12 = Relu (\"b#a\")"
    " [\"\\\\#a\"] v13 = Relu (v12) [\"\\\\*\"] v14 = Relu (v13) }");
}

static psplit_planner *made(const psplit_model *model, const char *const *pins, size_t n,
                            const char *text, psplit_diag *diag) {
  psplit_planner_options options;
  psplit_planner_options_init(&options);
  options.n_stages = N_STAGES;
  options.pins = pins;
  options.n_pins = n;
  options.pins_text = text;
  options.n_pins_text = text ? strlen(text) : 0;
  options.pins_name = "pins.txt";
  psplit_planner *planner = NULL;
  return psplit_planner_create(model, &options, diag, &planner) == PSPLIT_OK ? planner : NULL;
}

/* A pattern of up to five of these; the same for the same number. */
static void pattern_of(uint32_t number, char *out) {
  static const char *const parts[] = {"a",   "b",   "*", "?",   "[ab]", "\\",
                                      "\\*", "\\[", "#", "/x/", "="};
  *out = '\0';
  do {
    strcat(out, parts[number % 11]);
    number /= 11;
  } while (number);
}

/* All nodes here have one output. */
static const char *known_as(const psplit_i_graph *graph, uint32_t n) {
  const psplit_i_node *node = &graph->nodes[n];
  return *node->name ? node->name : graph->values[node->outputs[0]].name;
}

static bool is_a_name(const psplit_i_graph *graph, const char *pattern) {
  for (uint32_t n = 0; n < graph->n_nodes; n++)
    if (strcmp(known_as(graph, n), pattern) == 0) return true;
  return false;
}

static bool means(const psplit_i_graph *graph, const char *pattern, uint32_t node) {
  const char *name = known_as(graph, node);
  if (is_a_name(graph, pattern)) return strcmp(name, pattern) == 0;
  return fnmatch(pattern, name, 0) == 0;
}

static void all_patterns(void **state) {
  (void)state;
  psplit_model *model = chain();
  const psplit_i_graph *graph = psplit_i_model_graph(model);
  assert_int_equal(graph->n_nodes, N_NODES);
  uint32_t n_matched = 0, n_not = 0;
  for (uint32_t number = 0; number < 11 * 11 * 11 * 11; number += 1 + number / 900) {
    char pattern[32], pin[40], text[128];
    bool any = false;
    psplit_diag diag = {0};
    pattern_of(number, pattern);
    snprintf(pin, sizeof pin, "%s=1", pattern);
    const bool like_comment = pin[strspn(pin, "\\")] == '#';
    snprintf(text, sizeof text, "\n# %s\n%s%s\r\n", pin, like_comment ? "\\" : "", pin);
    const char *const list = pin;
    psplit_planner *planner = made(model, &list, 1, NULL, &diag);
    for (uint32_t n = 0; n < N_NODES; n++) {
      const bool wanted = means(graph, pattern, n);
      any |= wanted;
      if (planner && (planner->pin[n] == 1) != wanted) fail_msg("%s, node %u", pattern, n);
    }
    if (any != (planner != NULL)) fail_msg("%s: %s", pattern, diag.message);
    n_matched += any;
    n_not += !any;
    psplit_planner *same = made(model, NULL, 0, text, &diag);
    if (any != (same != NULL)) fail_msg("%s in a text: %s", pattern, diag.message);
    for (uint32_t n = 0; same && n < N_NODES; n++) assert_int_equal(same->pin[n], planner->pin[n]);
    psplit_planner_destroy(same);
    psplit_planner_destroy(planner);
  }
  assert_true(n_matched > 100 && n_not > 100);
  psplit_model_close(model);
}

static void refuses(const psplit_model *model, const char *text, const char *says) {
  const char *const first = "a=0";
  psplit_diag diag = {0};
  assert_null(made(model, &first, 1, text, &diag));
  assert_int_equal(diag.code, PSPLIT_USAGE);
  assert_string_equal(diag.message, says);
  assert_int_equal(diag.subject, PSPLIT_SUBJECT_NONE);
}

static void a_text_is_refused_by_line(void **state) {
  (void)state;
  psplit_model *model = chain();
  refuses(model, "ab=1\n\na", "pins.txt:3: \"a\": it takes PATTERN=STAGE");
  refuses(model, "ab=3\n", "pins.txt:1: ab=3: stages are 0 to 2");
  refuses(model, "#a=1\n \n", "pins.txt:2: \" \": it takes PATTERN=STAGE");
  refuses(model, "a=1\n", "pins.txt:1: a=1: node a is pinned to stage 0 already");
  refuses(model, "a?=1\r\na\\*=2", "pins.txt:2: a\\*=2: node a* is pinned to stage 1 already");
  refuses(model, "\xff\xfe", "pins.txt: not a file of pins: it is UTF-16 text; save it as UTF-8");
  psplit_diag diag = {0};
  psplit_planner *planner = made(model, NULL, 0, "", &diag);
  assert_non_null(planner);
  psplit_planner_destroy(planner);
  psplit_model_close(model);
}

static void a_name_keeps_its_own_together(void **state) {
  (void)state;
  static const char *const names[] = {"[ab]", "a\\b", "a[!x]"};
  psplit_model *model = chain();
  psplit_planner_options options;
  psplit_diag diag = {0};
  psplit_planner *planner = NULL;
  psplit_planner_options_init(&options);
  options.n_stages = N_STAGES;
  options.keep_together = names;
  options.n_keep_together = 3;
  assert_int_equal(psplit_planner_create(model, &options, &diag, &planner), PSPLIT_OK);
  const uint32_t none = PSPLIT_NONE;
  const uint32_t wanted[N_NODES] = {none, 2,    2, none, 0, 1,    none,
                                    none, none, 2, none, 2, none, none};
  for (uint32_t n = 0; n < N_NODES; n++) assert_int_equal(planner->together[n], wanted[n]);
  psplit_planner_destroy(planner);
  psplit_model_close(model);
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(all_patterns),
                                     cmocka_unit_test(a_text_is_refused_by_line),
                                     cmocka_unit_test(a_name_keeps_its_own_together)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
