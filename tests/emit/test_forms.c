/* Why: wherever in a model data of weights stands, and wherever it goes, the stages are the
 * model's, proved; a plan that does not fit the model is refused by the line that says what does
 * not. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
/* cmocka.h needs the four above first. */
#include <cmocka.h>
#include <psplit/emit.h>
#include <psplit/verify.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "graph.h"
#include "scratch.h"
#include "text.h"
#include "text_model.h"

enum { N_ELEMENTS = 300, N_NODES = 7 };

/* --- data everywhere --- */

/* @I: indices of a sparse tensor, of 0 to 299; @F n: data in the file "w", the n-th 1200 bytes. */
static const char MODEL[] =
  "<ir_version: 11, opset_import: [\"\": 21, \"other\": 1], metadata_props: [\"k\": \"v\"]>\n"
  "main (float[300] x, bool flag) => (float[300] y) @{sparse_initializer: [\n"
  "  {values: float[300] s = random(1), indices: int64[300] s_at = raw {@I}, dims: [300]},\n"
  "  {values: float[300] t @F0, indices: int64[300] t_at = {@I}, dims: [300]}]}\n"
  "<float[300] w = random(2), float[300] e @F1, float[300] e2 @F1, float[2] small @F2,\n"
  " float[0] none = {}> {\n"
  "  [c] c = Constant <value = float[300] = random(3)> ()\n"
  "  [d] d = Constant <sparse_value: sparse_tensor = {values: float[300] \"\" @F3, indices: "
  "int64[300] = raw {@I},"
  " dims: [300]}> ()\n"
  "  [o] o = other.Op <ts = [float[1] {1}, float[300] = random(4)], sps: sparse_tensors = [{values:"
  " float[300] = random(5), indices: int64[300] = raw {@I}, dims: [300]}], gs = [one () => (b) "
  "<float[300] b = random(6)> {}]> (x, c, d, small)\n"
  "  [f] f = If (flag) <then_branch = then () => (float[300] p) @{sparse_initializer: [{values: "
  "float[300] z = random(7), indices: int64[300] = raw {@I}, dims: [300]}]} <float[300] v @F0> {\n"
  "    q = Constant <value = float[300] \"\" @F1> () r = Add (q, v) p = Sum (o, r, z) }, "
  "else_branch"
  " = e () => (float[300] m) { m = other.Op <t = float[300] = random(8)> (o) }>\n"
  "  [a] a = Sum (f, w, e, e2, s)\n"
  "  [g] g = Mul (a, t)\n"
  "  [y] y = Sub (g, w)\n"
  "}\n";

static const char BY_HAND[] = "hand";

/* A model with stages for its nodes, in the order of MODEL. */
typedef struct planned {
  psplit_model *model;
  psplit_plan plan;
  psplit_plan_stage stages[2];
  psplit_plan_transfer transfers[2];
  psplit_plan_copy copies[2];
  uint32_t node_stage[N_NODES];
} planned;

static char *spelled(bool has_file) {
  psplit_i_text text = {0};
  for (const char *at = MODEL; *at; at++) {
    if (*at != '@' || (at[1] != 'I' && at[1] != 'F')) {
      psplit_i_text_add(&text, at, 1);
    } else if (at[1] == 'I') {
      for (int i = 0; i < N_ELEMENTS; i++) psplit_i_text_addf(&text, i ? ", %d" : "%d", i);
      at++;
    } else {
      const int place = at[2] - '0';
      if (has_file)
        psplit_i_text_addf(&text, "= [\"location\": \"w\", \"offset\": \"%d\", \"length\": \"%d\"]",
                           place * 1200, place == 2 ? 8 : 1200);
      else
        psplit_i_text_addf(&text, place == 2 ? "= {1, 2}" : "= random(%d)", 20 + place);
      at += 2;
    }
  }
  assert_false(text.failed);
  return text.bytes;
}

static void begin(planned *p, bool has_file) {
  psplit_diag diag = {0};
  char bytes[4 * 1200], *text = spelled(has_file);
  for (size_t i = 0; i < sizeof bytes; i++) bytes[i] = (char)(i % 64);
  FILE *file = fopen("w", "wb");
  assert_non_null(file);
  assert_int_equal(fwrite(bytes, sizeof bytes, 1, file), 1);
  assert_int_equal(fclose(file), 0);
  write_model_text("model.onnx", text);
  free(text);
  *p = (planned){.stages = {{.device = "a", .n_nodes = 5}, {.device = "b", .n_nodes = 2}},
                 .node_stage = {0, 0, 0, 0, 0, 1, 1}};
  if (psplit_model_open("model.onnx", NULL, &diag, &p->model) != PSPLIT_OK)
    fail_msg("%s", diag.message);
  p->transfers[0] =
    (psplit_plan_transfer){.value = psplit_i_graph_find_value(psplit_i_model_graph(p->model), "a"),
                           .tensor = "a",
                           .to = 1};
  p->plan = (psplit_plan){.n_nodes = N_NODES,
                          .node_stage = p->node_stage,
                          .n_stages = 2,
                          .stages = p->stages,
                          .n_transfers = 1,
                          .transfers = p->transfers,
                          .copies = p->copies,
                          .objective = "throughput",
                          .solver = BY_HAND,
                          .bound = "none",
                          .cost_source = "given"};
}

static void data_goes_wherever_it_is_asked(void **state) {
  (void)state;
  static const psplit_weights ways[] = {PSPLIT_WEIGHTS_AUTO, PSPLIT_WEIGHTS_INLINE,
                                        PSPLIT_WEIGHTS_EXTERNAL, PSPLIT_WEIGHTS_REFERENCE};
  for (int i = 0; i < 16; i++) {
    planned p;
    psplit_diag diag = {0};
    const psplit_weights weights = ways[i % 4];
    const psplit_emit_options options = {
      .struct_size = sizeof options,
      .boundary = i / 4 % 2 ? PSPLIT_BOUNDARY_IO : PSPLIT_BOUNDARY_SENDRECV,
      .weights = weights,
      .replace = true,
      .no_sync = true};
    const char *directory = weights == PSPLIT_WEIGHTS_REFERENCE ? "." : "out";
    begin(&p, i / 8);
    if (psplit_emit(p.model, &p.plan, directory, &options, &diag) != PSPLIT_OK)
      fail_msg("way %d: %s", i, diag.message);
    if (psplit_verify(directory, p.model, NULL, &diag, NULL) != PSPLIT_OK)
      fail_msg("way %d: proof: %s", i, diag.message);
    psplit_model_close(p.model);
  }
}

/* --- plans that do not fit --- */

static void other_nodes(planned *p) { p->plan.n_nodes = 6; }
static void no_stages(planned *p) { p->plan.n_stages = 0; }
static void far_stage(planned *p) { p->node_stage[3] = 2; }
static void far_value(planned *p) { p->transfers[0].value = 1000; }
static void backwards(planned *p) {
  p->transfers[0].from = 1;
  p->transfers[0].to = 0;
}
static void to_itself(planned *p) { p->transfers[0].to = 0; }
static void far_receiver(planned *p) { p->transfers[0].to = 2; }
static void twice(planned *p) {
  p->transfers[1] = p->transfers[0];
  p->plan.n_transfers = 2;
}
static void other_name(planned *p) { p->transfers[0].tensor = "b"; }
static void a_given_value(planned *p) {
  p->transfers[0].value = psplit_i_graph_find_value(psplit_i_model_graph(p->model), "w");
  p->transfers[0].tensor = "w";
}
static void an_input(planned *p) {
  p->transfers[0].value = psplit_i_graph_find_value(psplit_i_model_graph(p->model), "x");
  p->transfers[0].tensor = "x";
}
static void not_made(planned *p) {
  p->transfers[1] = p->transfers[0];
  p->transfers[1].value = psplit_i_graph_find_value(psplit_i_model_graph(p->model), "g");
  p->transfers[1].tensor = "g";
  p->plan.n_transfers = 2;
}
static void missing(planned *p) { p->plan.n_transfers = 0; }
static void copy(planned *p, uint32_t i, uint32_t node, uint32_t stage) {
  p->copies[i] = (psplit_plan_copy){.node = node, .stage = stage};
  p->plan.n_copies = i + 1;
}
static void copy_of_none(planned *p) { copy(p, 0, N_NODES, 1); }
static void copy_nowhere(planned *p) { copy(p, 0, 0, 2); }
static void copy_at_home(planned *p) { copy(p, 0, 0, 0); }
static void copies_turned(planned *p) {
  copy(p, 0, 1, 1);
  copy(p, 1, 0, 1);
}
static void copies_twice(planned *p) {
  copy(p, 0, 1, 1);
  copy(p, 1, 1, 1);
}
static void stages_turned(planned *p) {
  copy(p, 0, 0, 1);
  copy(p, 1, 6, 0);
}
static void an_empty_stage(planned *p) {
  for (int n = 0; n < N_NODES; n++) p->node_stage[n] = 0;
  p->stages[0].n_nodes = N_NODES;
  p->stages[1].n_nodes = 0;
  p->plan.n_transfers = 0;
}
static void other_count(planned *p) { p->stages[0].n_nodes = 4; }
static void other_copies(planned *p) { p->stages[1].n_duplicated = 1; }

static void plans_that_do_not_fit_are_told(void **state) {
  (void)state;
  static const struct {
    void (*spoil)(planned *p);
    const char *says;
  } cases[] = {
    {other_nodes, "of a model with 6 nodes, this one has 7"},
    {no_stages, "has no stages"},
    {far_stage, "puts node 3 in stage 2 of 2"},
    {far_value, "transfer 0 of the plan (value 1000"},
    {backwards, "stage 1 to 0) is out of range"},
    {to_itself, "stage 0 to 0) is out of range"},
    {far_receiver, "stage 0 to 2) is out of range"},
    {twice, "transfer 1 of the plan"},
    {other_name, "calls value \"a\" \"b\""},
    {a_given_value, "sends \"w\", which every stage has as an initializer"},
    {an_input, "sends \"x\", which every stage has as an input"},
    {not_made, "\"g\""},
    {missing, "\"a\""},
    {copy_of_none, "copy 0 of the plan (node 7, stage 1)"},
    {copy_nowhere, "copy 0 of the plan (node 0, stage 2)"},
    {copy_at_home, "copy 0 of the plan (node 0, stage 0)"},
    {copies_turned, "copy 1 of the plan (node 0, stage 1)"},
    {copies_twice, "copy 1 of the plan (node 1, stage 1)"},
    {stages_turned, "copy 1 of the plan (node 6, stage 0)"},
    {an_empty_stage, "stage 1"},
    {other_count, "stage 0"},
    {other_copies, "stage 1"},
  };
  for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
    planned p;
    psplit_diag diag = {0};
    char *text = NULL;
    begin(&p, false);
    cases[i].spoil(&p);
    const psplit_code code = psplit_manifest(p.model, &p.plan, NULL, &diag, &text);
    if ((code != PSPLIT_INVALID && code != PSPLIT_INTERNAL) || !strstr(diag.message, cases[i].says))
      fail_msg("plan %zu: %s: %s, not: %s", i, psplit_code_name(code), diag.message, cases[i].says);
    free(text);
    psplit_model_close(p.model);
  }
}

int main(void) {
#define TEST(name) cmocka_unit_test_setup_teardown(name, enter_scratch, leave_scratch)
  const struct CMUnitTest tests[] = {
    TEST(data_goes_wherever_it_is_asked),
    TEST(plans_that_do_not_fit_are_told),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
