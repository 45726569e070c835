/* Why: of a decoder that ONNX Runtime GenAI cannot run the line says why, and what it runs is
 * described to the letter of what it reads; groups of nodes become functions whatever they are
 * called. Each allocation fails once. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
/* cmocka.h needs the four above first. */
#include <cmocka.h>
#include <psplit/emit.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "../support/hand_plan.h"
#include "failing.h"
#include "graph.h"
#include "scratch.h"
#include "text.h"
#include "text_model.h"

/* --- decoders --- */

static const char DECODER[] =
  "<ir_version: 8, opset_import: [\"\": 17]>\n"
  "main (int64[1,s] input_ids, float[1,2,t,4] past0, float[1,2,t,4] past1) =>"
  " (float[1,s,16] logits, float[1,2,u,4] now0, float[1,2,u,4] now1) <float[16,16] w = random(1)> {"
  "  [a] a = Gather (w, input_ids)"
  "  [b] now0 = Neg (past0)"
  "  [c] now1 = Neg (past1)"
  "  [d] logits = MatMul (a, w)"
  "}";

enum { MOST_EDITS = 5, MOST_STATES = 3, N_NODES = 4 };

typedef struct state_row {
  const char *input, *output;
  uint32_t reader, writer;
} state_row;

typedef struct decoder {
  psplit_code code;
  const char *says;                 /* a part of the message, or of what is written */
  const char *edits[MOST_EDITS][2]; /* from, to: all of them */
  state_row states[MOST_STATES];    /* none: those of DECODER */
  uint32_t n_states;                /* 9: none at all */
  const psplit_session *sessions[2];
  bool io;          /* in place of Send and Recv */
  uint32_t context; /* 0: 64; UINT32_MAX: 0 */
} decoder;

static const char *const KEYS[] = {"device_id"}, *const VALUES[] = {"3"};
static const char *const CONFIG[] = {"session.x"}, *const SET[] = {"1"};
static const psplit_session PLAIN = {.optimization = -1}, LEVEL0 = {.optimization = 0},
                            LEVEL1 = {.optimization = 1, .n_threads = 3},
                            LEVEL2 = {.optimization = 2, .provider = "CPUExecutionProvider"},
                            ALL = {.optimization = 99, .provider = "cpu"},
                            GPU = {.optimization = -1,
                                   .provider = "CUDA",
                                   .n_provider_options = 1,
                                   .provider_keys = KEYS,
                                   .provider_values = VALUES,
                                   .n_config = 1,
                                   .config_keys = CONFIG,
                                   .config_values = SET};

#define NUMBERED "keeps one or two state tensors per layer, numbered from 0; \""
#define LOG_OF_1                         \
  "            \"session_options\": {\n" \
  "              \"log_id\": \"stage1\""
static const decoder DECODERS[] = {
  {.says = "\"past_names\": \"past%d\""},
  {.says = "\"present_names\": \"now%d\""},
  {.says = "\"vocab_size\": 16"},
  {.says = "\"num_hidden_layers\": 2"},
  {.says = "\"head_size\": 4"},
  {.says = "\"input_ids\": \"input_ids\""},
  {.says = "\"a.send1\": \"a.recv0\""},
  /* who computes the logits of a prompt's last token alone: a stage without state */
  {.says = "\"is_lm_head\": false,\n" LOG_OF_1},
  {.says = "\"is_lm_head\": true,\n" LOG_OF_1,
   .states = {{"past0", "now0", 0, 0}, {"past1", "now1", 0, 0}},
   .n_states = 2},
  /* keys and values */
  {.says = "\"past_key_names\": \"k%dp\"",
   .edits = {{"past0", "k0p"}, {"past1", "v0p"}, {"now0", "n0k"}, {"now1", "n0v"}},
   .states = {{"k0p", "n0k", 0, 0}, {"v0p", "n0v", 1, 1}},
   .n_states = 2},
  {.says = "\"present_value_names\": \"n%dv\"",
   .edits = {{"past0", "k0p"}, {"past1", "v0p"}, {"now0", "n0k"}, {"now1", "n0v"}},
   .states = {{"k0p", "n0k", 0, 0}, {"v0p", "n0v", 1, 1}},
   .n_states = 2},
  /* names of the state */
  {PSPLIT_UNSUPPORTED, NUMBERED "past", .edits = {{"past0", "past"}},
   .states = {{"past", "now0", 0, 0}, {"past1", "now1", 1, 1}}, .n_states = 2},
  {PSPLIT_UNSUPPORTED, NUMBERED "past0", .edits = {{"now0", "now"}},
   .states = {{"past0", "now", 0, 0}, {"past1", "now1", 1, 1}}, .n_states = 2},
  {PSPLIT_UNSUPPORTED, NUMBERED "past0", .states = {{"past0", "now1", 0, 0}}, .n_states = 1},
  {PSPLIT_UNSUPPORTED, NUMBERED "past0000000000", .edits = {{"past0", "past0000000000"}},
   .states = {{"past0000000000", "now0", 0, 0}}, .n_states = 1},
  {PSPLIT_UNSUPPORTED, NUMBERED "past1",
   .states = {{"past1", "now1", 1, 1}, {"past0", "now0", 0, 0}}, .n_states = 2},
  {PSPLIT_UNSUPPORTED, NUMBERED "past1", .edits = {{"now1", "then1"}},
   .states = {{"past0", "now0", 0, 0}, {"past1", "then1", 1, 1}}, .n_states = 2},
  {PSPLIT_UNSUPPORTED, NUMBERED "z0", .edits = {{"past1", "y0"}, {"now1", "w0"}},
   .states = {{"past0", "now0", 0, 0}, {"y0", "w0", 1, 1}, {"z0", "z0", 1, 1}}, .n_states = 3},
  {PSPLIT_UNSUPPORTED, NUMBERED "past0", .edits = {{"past1", "k0"}, {"now1", "n0"}},
   .states = {{"past0", "now0", 0, 0}, {"k0", "n0", 1, 1}, {"past1", "now1", 1, 1}}, .n_states = 3},
  {PSPLIT_UNSUPPORTED, "the model has no state from step to step", .n_states = 9},
  /* who reads and makes it */
  {PSPLIT_UNSUPPORTED, "nothing reads \"past0\"", .states = {{"past0", "now0", PSPLIT_NONE, 0}},
   .n_states = 1},
  {PSPLIT_UNSUPPORTED, "nothing makes \"now0\"", .states = {{"past0", "now0", 0, PSPLIT_NONE}},
   .n_states = 1},
  {PSPLIT_UNSUPPORTED, "\"now0\" is made by another stage than reads \"past0\"",
   .states = {{"past0", "now0", 0, 1}}, .n_states = 1},
  /* inputs and outputs */
  {PSPLIT_UNSUPPORTED, "does not provide the decoder input \"more\"",
   .edits = {{"main (", "main (bool more, "}}},
  {.says = "\"attention_mask\": \"attention_mask\"",
   .edits = {{"main (", "main (int64[1,t] attention_mask, "}}},
  {.says = "\"logits\": \"logits\"", .edits = {{"main (", "main (float[16,16] w, "}}},
  {.says = "\"logits\": \"scores\"", .edits = {{"logits", "scores"}}},
  {PSPLIT_UNSUPPORTED, "cannot determine the output with the logits",
   .edits = {{"logits", "scores"},
             {"=> (", "=> (float[2] other, "},
             {"[d]", "[d] other = Neg (o) [d]"},
             {"<float[16,16] w", "<float[2] o = {1, 2}, float[16,16] w"}}},
  {.says = "\"vocab_size\": 16", /* the others are no matter */
   .edits = {{"=> (", "=> (float[2] other, "},
             {"[d] logits", "[d] other = Neg (o) [e] logits"},
             {"<float[16,16] w", "<float[2] o = {1, 2}, float[16,16] w"}}},
  {PSPLIT_UNSUPPORTED, "leaves the last dimension of its logits open",
   .edits = {{"float[1,s,16] logits", "float[1,s,v] logits"}}},
  {PSPLIT_UNSUPPORTED, "leaves the last dimension of its logits open",
   .edits = {{"float[1,s,16] logits", "float logits"}}},
  {PSPLIT_UNSUPPORTED, "how many heads \"past0\" has",
   .edits = {{"float[1,2,t,4] past0", "float[1,h,t,4] past0"}}},
  {PSPLIT_UNSUPPORTED, "how many heads \"past0\" has",
   .edits = {{"float[1,2,t,4] past0", "float[1,2,t,d] past0"}}},
  {PSPLIT_UNSUPPORTED, "how many heads \"past0\" has",
   .edits = {{"float[1,2,t,4] past0", "float[1,2] past0"}}},
  {PSPLIT_UNSUPPORTED, "cannot forward \"a\" from stage 0",
   .edits = {{"=> (", "=> (float[?,?,16] a, "}}, .io = true},
  {.says = "\"outputs\": [\n", .io = true},
  {PSPLIT_USAGE, "maximum sequence length", .context = UINT32_MAX},
  /* sessions */
  {.says = "\"graph_optimization_level\": \"ORT_DISABLE_ALL\"", .sessions = {&LEVEL0, NULL}},
  {.says = "\"graph_optimization_level\": \"ORT_ENABLE_BASIC\"", .sessions = {NULL, &LEVEL1}},
  {.says = "\"intra_op_num_threads\": 3", .sessions = {&PLAIN, &LEVEL1}},
  {.says = "\"graph_optimization_level\": \"ORT_ENABLE_EXTENDED\"", .sessions = {&LEVEL2, &PLAIN}},
  {.says = "\"graph_optimization_level\": \"ORT_ENABLE_ALL\"", .sessions = {&ALL, &PLAIN}},
  {.says = "\"provider_options\": []\n", .sessions = {&ALL, &LEVEL2}},
  {.says = "\"CUDA\": {", .sessions = {&GPU, &PLAIN}},
  {.says = "\"device_id\": \"3\"", .sessions = {&GPU, &PLAIN}},
  {.says = "\"session.x\": \"1\"", .sessions = {&GPU, &PLAIN}},
};

/* A plan of a model, nodes in two stages "0011", with a tensor that goes from 0 to 1. */
typedef struct planned {
  psplit_model *model;
  psplit_plan plan;
  psplit_plan_stage stages[2];
  psplit_plan_transfer transfer;
  psplit_plan_state states[MOST_STATES];
  uint32_t node_stage[N_NODES + 1];
} planned;

static char *edited(const char *text, const char *const edits[MOST_EDITS][2]) {
  char *now = strdup(text);
  assert_non_null(now);
  for (int e = 0; e < MOST_EDITS && edits[e][0]; e++) {
    psplit_i_text next = {0};
    const char *at = now, *met;
    assert_non_null(strstr(now, edits[e][0]));
    for (; (met = strstr(at, edits[e][0])); at = met + strlen(edits[e][0])) {
      psplit_i_text_add(&next, at, (size_t)(met - at));
      psplit_i_text_puts(&next, edits[e][1]);
    }
    psplit_i_text_puts(&next, at);
    free(now);
    now = next.bytes;
    assert_non_null(now);
  }
  return now;
}

static void begin(planned *p, const decoder *d) {
  static const state_row OWN[] = {{"past0", "now0", 0, 0}, {"past1", "now1", 1, 1}};
  psplit_diag diag = {0};
  char *text = edited(DECODER, d->edits);
  *p = (planned){.stages = {{.device = "a"}, {.device = "b"}}};
  write_model_text("decoder.onnx", text);
  free(text);
  if (psplit_model_open("decoder.onnx", NULL, &diag, &p->model) != PSPLIT_OK)
    fail_msg("%s: %s", d->says, diag.message);
  const psplit_i_graph *graph = psplit_i_model_graph(p->model);
  for (uint32_t n = 0; n < graph->n_nodes; n++) {
    p->node_stage[n] = n > 1;
    p->stages[n > 1].n_nodes++;
  }
  const state_row *rows = d->n_states ? d->states : OWN;
  const uint32_t n_states = !d->n_states ? 2 : d->n_states == 9 ? 0 : d->n_states;
  for (uint32_t i = 0; i < n_states; i++)
    p->states[i] = (psplit_plan_state){.input = rows[i].input,
                                       .output = rows[i].output,
                                       .reader = rows[i].reader,
                                       .writer = rows[i].writer};
  p->transfer =
    (psplit_plan_transfer){.value = psplit_i_graph_find_value(graph, "a"), .tensor = "a", .to = 1};
  p->plan = hand_plan(graph->n_nodes, p->node_stage, 2, p->stages, 1, &p->transfer);
  p->plan.n_states = n_states;
  p->plan.states = p->states;
}

static psplit_code describe(const planned *p, const decoder *d, psplit_diag *diag, char **out) {
  psplit_genai_options options;
  psplit_genai_options_init(&options);
  options.context_length = d->context == UINT32_MAX ? 0 : d->context ? d->context : 64;
  options.sessions = d->sessions[0] || d->sessions[1] ? d->sessions : NULL;
  const psplit_emit_options io = {.struct_size = sizeof io, .boundary = PSPLIT_BOUNDARY_IO};
  return psplit_genai_config(p->model, &p->plan, d->io ? &io : NULL, &options, diag, out);
}

static void decoders_are_described_or_refused(void **state) {
  (void)state;
  for (size_t i = 0; i < sizeof DECODERS / sizeof *DECODERS; i++) {
    const decoder *d = &DECODERS[i];
    planned p;
    psplit_diag diag = {0};
    char *text = NULL;
    begin(&p, d);
    const psplit_code code = describe(&p, d, &diag, &text);
    if (code != d->code || !strstr(code == PSPLIT_OK ? text : diag.message, d->says))
      fail_msg("decoder %zu, %s: %s: %s\n%s", i, d->says, psplit_code_name(code), diag.message,
               text ? text : "");
    free(text);
    psplit_model_close(p.model);
  }
}

/* Each allocation fails. */
static void fail_each(psplit_code (*call)(void *user, psplit_diag *diag), void *user) {
  long i = 0;
  for (bool reached = true; reached; i++) {
    psplit_diag diag = {0};
    const long live_before = live_blocks();
    fail_allocation_after(i);
    const psplit_code code = call(user, &diag);
    reached = stop_failing();
    if (code != diag.code || (code != PSPLIT_OK) != reached || (reached && code != PSPLIT_NOMEM) ||
        live_blocks() != live_before)
      fail_msg("allocation %ld: %s: %s", i, psplit_code_name(code), diag.message);
  }
  assert_true(i > 5);
}

static psplit_code describe_it(void *user, psplit_diag *diag) {
  char *text = NULL;
  const psplit_code code = describe(user, &DECODERS[9], diag, &text);
  free(text);
  return code;
}

static void every_allocation_of_decoders(void **state) {
  (void)state;
  planned p;
  begin(&p, &DECODERS[9]);
  fail_each(describe_it, &p);
  psplit_model_close(p.model);
}

/* --- groups of nodes as functions --- */

/* A constant of one group and one of two; a node that nothing reads; a body that reads a value. */
static const char GROUPED[] =
  "<ir_version: 8, opset_import: [\"\": 17, \"psplit.supernodes\": 1, \"psplit.supernodes2\": 1]>\n"
  "main (float[2] x, bool flag) => (float[2] y, float[2] c)"
  " <float[2] w = {1, 2}, float[2] a, float[2] b, float[2] c> {"
  "  [k] k = Constant <value = float[2] {1, 2}> ()"
  "  [j] j = Constant <value = float[2] {3, 4}> ()"
  "  [a] a = Add (x, k)"
  "  [b] b = Mul (a, j)"
  "  [p] p = Neg (b)"
  "  [f] f = If (flag) <then_branch = main () => (float[2] t) { t = Relu (b) },"
  "    else_branch = main () => (float[2] e) { e = Neg (j) }>"
  "  [c] c, \"\" = Dropout (f)"
  "  [y] y = Sub (c, w)"
  "}";

enum { N_GROUPED = 8 };
#define NONE PSPLIT_NONE

static const struct {
  uint32_t block[N_GROUPED]; /* k j a b p f c y */
  const char *titles[3], *kinds[3];
  const char *holds[3], *lacks; /* of the text of what is written */
} GROUPS[] = {
  {{NONE, NONE, 0, 0, NONE, 1, 1, 1},
   {"first", "second"},
   {0},
   {"first (", "second (", "psplit.supernodes3"},
   NULL},
  {{NONE, NONE, 0, 0, NONE, 1, 1, 1}, {"one", "one"}, {0}, {"one (", "one_2 (", ""}, NULL},
  {{NONE, NONE, 0, 0, NONE, 1, 1, 1},
   {"a/b.c--D9", "..."},
   {"My kind", ""},
   {"My_kind_a_b_c_D9 (", "\n_ (", ""},
   NULL},
  /* one node stays one, and so do nodes that nothing reads */
  {{NONE, NONE, 0, 1, 2, NONE, NONE, NONE}, {"s0", "s1", "s2"}, {0}, {"Add", "Mul", "Neg"}, "s0 ("},
  {{NONE, NONE, NONE, NONE, NONE, NONE, NONE, NONE}, {"s"}, {0}, {"Add", "", ""}, "s ("},
  {{0, 0, 0, 0, 0, 0, 0, 0}, {"all"}, {0}, {"all (", "", ""}, NULL},
};

typedef struct grouping {
  const psplit_model *model;
  psplit_blocks blocks;
} grouping;

static psplit_code group_it(void *user, psplit_diag *diag) {
  const grouping *g = user;
  const psplit_emit_options replacing = {.struct_size = sizeof replacing, .replace = true};
  return psplit_emit_blocks(g->model, &g->blocks, "grouped.onnx", &replacing, diag);
}

static grouping group(const psplit_model *model, size_t i) {
  return (grouping){model,
                    {.n_nodes = N_GROUPED,
                     .node_block = GROUPS[i].block,
                     .n_blocks = 3,
                     .titles = GROUPS[i].titles,
                     .kinds = GROUPS[i].kinds[0] ? GROUPS[i].kinds : NULL}};
}

static char *text_of(const char *path) {
  psplit_diag diag = {0};
  psplit_model *model;
  char *text = NULL;
  size_t n;
  if (psplit_model_open(path, NULL, &diag, &model) != PSPLIT_OK ||
      psplit_model_print_text(model, NULL, &diag, &text, &n) != PSPLIT_OK)
    fail_msg("%s", diag.message);
  psplit_model_close(model);
  return text;
}

static psplit_model *grouped(void) {
  psplit_diag diag = {0};
  psplit_model *model = NULL;
  write_model_text("model.onnx", GROUPED);
  if (psplit_model_open("model.onnx", NULL, &diag, &model) != PSPLIT_OK)
    fail_msg("%s", diag.message);
  return model;
}

static void groups_become_functions(void **state) {
  (void)state;
  psplit_model *model = grouped();
  for (size_t i = 0; i < sizeof GROUPS / sizeof *GROUPS; i++) {
    psplit_diag diag = {0};
    grouping g = group(model, i);
    g.blocks.n_blocks = GROUPS[i].titles[2] ? 3 : GROUPS[i].titles[1] ? 2 : 1;
    if (group_it(&g, &diag) != PSPLIT_OK) fail_msg("groups %zu: %s", i, diag.message);
    char *text = text_of("grouped.onnx");
    for (int k = 0; k < 3; k++)
      if (!strstr(text, GROUPS[i].holds[k]))
        fail_msg("groups %zu: no \"%s\" in:\n%s", i, GROUPS[i].holds[k], text);
    if (GROUPS[i].lacks && strstr(text, GROUPS[i].lacks))
      fail_msg("groups %zu: \"%s\" in:\n%s", i, GROUPS[i].lacks, text);
    free(text);
  }
  psplit_model_close(model);
}

static void other_groups_are_refused(void **state) {
  (void)state;
  psplit_model *model = grouped();
  psplit_diag diag = {0};
  grouping g = group(model, 0);
  g.blocks.n_nodes--;
  assert_int_equal(group_it(&g, &diag), PSPLIT_INVALID);
  assert_non_null(strstr(diag.message, "in another model than model.onnx"));
  diag = (psplit_diag){0};
  g = group(model, 0);
  g.blocks.n_blocks = 1;
  assert_int_equal(group_it(&g, &diag), PSPLIT_INVALID);
  assert_non_null(strstr(diag.message, "in a block that does not exist"));
  assert_int_equal(access("grouped.onnx", F_OK), -1);
  psplit_model_close(model);
}

static void every_allocation_of_groups(void **state) {
  (void)state;
  psplit_model *model = grouped();
  grouping g = group(model, 2);
  g.blocks.n_blocks = 2;
  fail_each(group_it, &g);
  psplit_model_close(model);
}

int main(void) {
#define TEST(name) cmocka_unit_test_setup_teardown(name, enter_scratch, leave_scratch)
  const struct CMUnitTest tests[] = {
    TEST(decoders_are_described_or_refused), TEST(every_allocation_of_decoders),
    TEST(groups_become_functions),           TEST(other_groups_are_refused),
    TEST(every_allocation_of_groups),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
