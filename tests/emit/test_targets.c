/* Why: what is written for other programs says odd names, types and sessions as these read them, or
 * is refused by a line that says why. */
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

#include "../support/hand_plan.h"
#include "graph.h"
#include "scratch.h"
#include "text_model.h"

static const psplit_emit_options REPLACING = {.struct_size = sizeof REPLACING, .replace = true};

enum { MOST_NODES = 8 };

/* A plan of a model whose nodes have these stages, "0011"; `crossing` goes from 0 to 1. */
typedef struct planned {
  psplit_model *model;
  psplit_plan plan;
  psplit_plan_stage stages[2];
  psplit_plan_transfer transfer;
  uint32_t node_stage[MOST_NODES];
} planned;

static void begin(planned *p, const char *path, const char *text, const char *stages,
                  const char *crossing) {
  psplit_diag diag = {0};
  *p = (planned){.stages = {{.device = "a"}, {.device = "b"}}};
  write_model_text(path, text);
  if (psplit_model_open(path, NULL, &diag, &p->model) != PSPLIT_OK) fail_msg("%s", diag.message);
  const psplit_i_graph *graph = psplit_i_model_graph(p->model);
  uint32_t n_stages = 1;
  for (uint32_t n = 0; n < graph->n_nodes; n++) {
    p->node_stage[n] = (uint32_t)(stages[n] - '0');
    p->stages[p->node_stage[n]].n_nodes++;
    if (p->node_stage[n]) n_stages = 2;
  }
  if (crossing)
    p->transfer = (psplit_plan_transfer){
      .value = psplit_i_graph_find_value(graph, crossing), .tensor = crossing, .to = 1};
  p->plan =
    hand_plan(graph->n_nodes, p->node_stage, n_stages, p->stages, crossing ? 1 : 0, &p->transfer);
}

static void says(const char *text, const char *part) {
  if (!strstr(text, part)) fail_msg("no \"%s\" in:\n%s", part, text);
}

/* --- Triton --- */

static const char *const KEYS[] = {"other", "device_id"};

static void triton_reads_odd_names_and_sessions(void **state) {
  (void)state;
  static const char *const values[] = {"7", "3"}, *const large[] = {"7", "12"};
  static const struct {
    const char *provider;
    const char *const *values;
    const char *group;
  } cases[] = {
    {"CUDAExecutionProvider", values, "kind: KIND_GPU gpus: [ 3 ]"},
    {"TensorrtExecutionProvider", values, "gpus: [ 3 ]"},
    {"NvTensorRTRTXExecutionProvider", values, "gpus: [ 3 ]"},
    {"CUDA", large, "gpus: [ 12 ]"},
    {"cuda", NULL, "gpus: [ 0 ]"},
    {"Other", values, "KIND_CPU"},
    {NULL, values, "KIND_CPU"},
  };
  planned p;
  begin(&p, "m.onnx",
        "(float[2,0,n] \"a\\\"b\", bool flag) => (float \"c\\\\d\", float[2,0,n] u) {"
        " t = Relu (\"a\\\"b\") u = Not (flag) \"c\\\\d\" = ReduceSum <keepdims = 0> (t) }",
        "001", "t");
  for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
    psplit_diag diag = {0};
    char *text = NULL;
    const psplit_session session = {.provider = cases[i].provider,
                                    .n_provider_options = cases[i].values ? 2 : 0,
                                    .provider_keys = KEYS,
                                    .provider_values = cases[i].values};
    const psplit_session *const sessions[] = {&session, NULL};
    const psplit_triton_options options = {.struct_size = sizeof options, .sessions = sessions};
    if (psplit_triton_script(p.model, &p.plan, NULL, &options, &diag, &text) != PSPLIT_OK)
      fail_msg("%s", diag.message);
    says(text, cases[i].group);
    says(text, "name: \"a\\\"b\"");
    says(text, "name: \"c\\\\d\"");
    says(text, "dims: [ 2, -1, -1 ]");
    says(text, "reshape: { shape: [ ] }");
    free(text);
  }
  static const char *const wrong[] = {"x", "", "-1", "1x", "99999999999"};
  for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
    psplit_diag diag = {0};
    char *text = NULL;
    const psplit_session session = {.provider = "CUDA",
                                    .n_provider_options = 1,
                                    .provider_keys = KEYS + 1,
                                    .provider_values = wrong + i};
    const psplit_session *const sessions[] = {NULL, &session};
    const psplit_triton_options options = {.struct_size = sizeof options, .sessions = sessions};
    assert_int_equal(psplit_triton_script(p.model, &p.plan, NULL, &options, &diag, &text),
                     PSPLIT_USAGE);
    says(diag.message, "device_id is");
    says(diag.message, "not the number of a device");
  }
  psplit_model_close(p.model);
}

/* A name may not make others read what it is not; Triton reads the bytes. */
static void triton_escapes_what_turns_a_line_around(void **state) {
  (void)state;
  planned p;
  psplit_diag diag = {0};
  char *text = NULL;
  begin(&p, "m.onnx",
        "(float[2] e\"a\\xe2\\x80\\xae\") => (float[2] y) {"
        " t = Relu (e\"a\\xe2\\x80\\xae\") y = Tanh (t) }",
        "01", "t");
  assert_int_equal(psplit_triton_script(p.model, &p.plan, NULL, NULL, &diag, &text), PSPLIT_OK);
  says(text, "name: \"a\\342\\200\\256\"");
  assert_null(strstr(text, "\xe2\x80\xae"));
  free(text);
  psplit_model_close(p.model);
}

static void triton_is_not_told_what_it_has_not(void **state) {
  (void)state;
  static const struct {
    const char *text, *stages, *says;
    psplit_weights weights;
    psplit_code code;
  } cases[] = {
    {"(float x) => (seq(float) y) { y = SequenceConstruct (x) }", "0", "\"y\"", 0,
     PSPLIT_UNSUPPORTED},
    {"(seq(float[2]) x) => (float y) { y = SequenceLength (x) }", "0", "\"x\"", 0,
     PSPLIT_UNSUPPORTED},
    {"(float[] x) => (float[] y) { y = Relu (x) }", "0", "\"x\"", 0, PSPLIT_UNSUPPORTED},
    {"(complex64[2] x) => (complex64[2] y) { y = Identity (x) }", "0", "\"x\"", 0,
     PSPLIT_UNSUPPORTED},
    {"() => (float[2] y) { y = Constant <value_floats = [1.0, 2.0]> () }", "0", "input", 0,
     PSPLIT_UNSUPPORTED},
    {"(float[2] x) => (float[2] y) <float[2] x = {1, 2}> { y = Relu (x) }", "0", "input", 0,
     PSPLIT_UNSUPPORTED},
    {"(float[2] x) => () { y = Relu (x) }", "0", "output", 0, PSPLIT_UNSUPPORTED},
    {"(float[2] x) => (float[2] y) @{sparse_initializer: [{values: float[1] x {5}, indices: "
     "int64[1]"
     " {1}, dims: [2]}]} { y = Relu (x) }",
     "0", "input", 0, PSPLIT_UNSUPPORTED},
    {"(float[2] x) => (float[2] y) { y = Relu (x) }", "0", "eight", PSPLIT_WEIGHTS_REFERENCE,
     PSPLIT_USAGE},
  };
  for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
    planned p;
    psplit_diag diag = {0};
    char *text = NULL;
    const psplit_emit_options emitting = {.struct_size = sizeof emitting,
                                          .weights = cases[i].weights};
    begin(&p, "m.onnx", cases[i].text, cases[i].stages, NULL);
    const psplit_code code = psplit_triton_script(p.model, &p.plan, &emitting, NULL, &diag, &text);
    if (code != cases[i].code || !strstr(diag.message, cases[i].says))
      fail_msg("case %zu: %s: %s", i, psplit_code_name(code), diag.message);
    psplit_model_close(p.model);
  }
}

/* --- Kubernetes --- */

static void jobs_have_names_that_kubernetes_takes(void **state) {
  (void)state;
  static const struct {
    const char *path, *name;
  } cases[] = {
    {"./My Model.v2.onnx", "name: my-model-v2\n"},
    {"a--b__.onnx", "name: a-b\n"},
    {"__.onnx", "name: model\n"},
    {"\xc3\xa4x.onnx", "name: x\n"},
    {"0123456789012345678901234567890123456789012345678901234567890123.onnx",
     "name: 01234567890123456789012345678901234567890123456\n"},
  };
  static const char *const command[] = {"run\"it", "back\\slash",      "tab\there", "$(N)",
                                        "\x7f",    "turn\xe2\x80\xae", "\xc2\x85"};
  static const char *const providers[] = {"TensorrtExecutionProvider", "CUDA",
                                          "NvTensorRTRTXExecutionProvider"};
  psplit_session trt = {.n_threads = 3};
  const psplit_session cpu = {.provider = "cpu", .n_threads = 2};
  const psplit_session *const sessions[] = {&cpu, &trt};
  psplit_mpi_job_options options = {.struct_size = sizeof options,
                                    .command = command,
                                    .n_command = sizeof command / sizeof *command,
                                    .image = "registry/image:tag",
                                    .sessions = sessions};
  for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
    planned p;
    psplit_diag diag = {0};
    char *text = NULL;
    trt.provider = providers[i % 3];
    begin(&p, cases[i].path, "(float[2] x) => (float[2] y) { a = Relu (x) y = Tanh (a) }", "01",
          "a");
    if (psplit_mpi_job(p.model, &p.plan, &options, &diag, &text) != PSPLIT_OK)
      fail_msg("%s", diag.message);
    says(text, cases[i].name);
    says(text, "registry/image:tag");
    says(text, "cpu: \"3\"");
    says(text, "nvidia.com/gpu: 1");
    says(text, "\"run\\\"it\"");
    says(text, "\"back\\\\slash\"");
    says(text, "\"tab\\u0009here\"");
    says(text, "\"\\u007f\"");
    says(text, "\"turn\\u202e\"");
    says(text, "\"\\u0085\"");
    free(text);
    options.n_command = 0;
    assert_int_equal(psplit_mpi_job(p.model, &p.plan, &options, &diag, &text), PSPLIT_USAGE);
    says(diag.message, "needs a command");
    options.n_command = sizeof command / sizeof *command;
    psplit_model_close(p.model);
  }
}

/* --- options without a size, and plans of other models --- */

static void options_without_size_and_other_plans_are_refused(void **state) {
  (void)state;
  static const char *const command[] = {"run"};
  const psplit_emit_options good = {.struct_size = sizeof good}, sizeless = {0};
  const psplit_triton_options triton = {.struct_size = sizeof triton}, no_triton = {0};
  const psplit_genai_options genai = {.struct_size = sizeof genai, .context_length = 8},
                             no_genai = {0};
  const psplit_mpi_job_options no_job = {.command = command, .n_command = 1};
  for (int i = 0; i < 7; i++) {
    planned p;
    psplit_diag diag = {0};
    char *text = NULL;
    begin(&p, "m.onnx", "(float[2] x) => (float[2] y) { a = Relu (x) y = Tanh (a) }", "01", "a");
    if (i > 4) p.plan.n_nodes = 1;
    const psplit_emit_options *own = i == 0 || i == 2 ? &sizeless : &good;
    const bool is_genai = i == 2 || i == 3 || i == 6;
    const psplit_code code =
      i == 4 ? psplit_mpi_job(p.model, &p.plan, &no_job, &diag, &text)
      : is_genai
        ? psplit_genai_config(p.model, &p.plan, own, i == 3 ? &no_genai : &genai, &diag, &text)
        : psplit_triton_script(p.model, &p.plan, own, i == 1 ? &no_triton : &triton, &diag, &text);
    if (code != (i > 4 ? PSPLIT_INVALID : PSPLIT_USAGE) || text || !*diag.message)
      fail_msg("case %d: %s: %s", i, psplit_code_name(code), diag.message);
    psplit_model_close(p.model);
  }
}

/* --- the model with its stages --- */

static void annotations_are_told_or_refused(void **state) {
  (void)state;
  static const struct {
    const char *text, *stages, *says;
    psplit_annotation form;
  } cases[] = {
    {"(float[2] x) => (float[2] y) { [\"a=b\"] a = Relu (x) [c] y = Tanh (a) }", "01", "a=b",
     PSPLIT_ANNOTATION_OLIVE},
    {"(float[2] x) => (float[2] y) { [\"a;b\"] a = Relu (x) [c] y = Tanh (a) }", "01", "a;b",
     PSPLIT_ANNOTATION_OLIVE},
    {"(float[2] x) => (float[2] y) { a = Relu (x) y = Tanh (a) }", "01", "do not distinguish",
     PSPLIT_ANNOTATION_OLIVE},
    {"(float[2] x) => (float[2] y) { [s] a = Relu (x) [s] y = Tanh (a) }", "01",
     "do not distinguish", PSPLIT_ANNOTATION_OLIVE},
    {"(float[2] x) => (float[2] y) { [\"l/a\"] a = Relu (x) y = Tanh (a) }", "01", NULL,
     PSPLIT_ANNOTATION_OLIVE},
    {"(float[2] x) => (float[2] y) { [q] a = Relu (x) [\"l/a\"] b = Tanh (a) [\"l/b\"] y = Sin (b) "
     "}",
     "001", NULL, PSPLIT_ANNOTATION_OLIVE},
  };
  for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
    planned p;
    psplit_diag diag = {0};
    begin(&p, "m.onnx", cases[i].text, cases[i].stages, NULL);
    const psplit_code code =
      psplit_emit_annotated(p.model, &p.plan, cases[i].form, "out.onnx", &REPLACING, &diag);
    if (code != (cases[i].says ? PSPLIT_UNSUPPORTED : PSPLIT_OK) ||
        (cases[i].says && !strstr(diag.message, cases[i].says)))
      fail_msg("case %zu: %s: %s", i, psplit_code_name(code), diag.message);
    diag = (psplit_diag){0};
    p.plan.n_nodes++;
    assert_int_equal(
      psplit_emit_annotated(p.model, &p.plan, cases[i].form, "out.onnx", &REPLACING, &diag),
      PSPLIT_INVALID);
    says(diag.message, "another model");
    psplit_model_close(p.model);
  }
}

/* Each time that it is written there is one configuration more. */
static void configurations_have_names_of_their_own(void **state) {
  (void)state;
  static const char *const paths[] = {"m.onnx", "m1.onnx", "m2.onnx", "m3.onnx"};
  planned p;
  begin(&p, paths[0],
        "<ir_version: 11, opset_import: [\"\": 18]>\nmain (float[2] x) => (float[2] y) { y = Relu "
        "(x) }",
        "0", NULL);
  for (int i = 1; i < 4; i++) {
    psplit_diag diag = {0};
    if (psplit_emit_annotated(p.model, &p.plan, PSPLIT_ANNOTATION_ONNX, paths[i], &REPLACING,
                              &diag) != PSPLIT_OK)
      fail_msg("%s", diag.message);
    psplit_model_close(p.model);
    if (psplit_model_open(paths[i], NULL, &diag, &p.model) != PSPLIT_OK)
      fail_msg("%s", diag.message);
  }
  char *text;
  size_t n;
  psplit_diag diag = {0};
  assert_int_equal(psplit_model_print_text(p.model, NULL, &diag, &text, &n), PSPLIT_OK);
  says(text, "{name: \"pipeline\", num_devices: 1, device: [\"a\"]}");
  says(text, "\"pipeline-2\"");
  says(text, "\"pipeline-3\"");
  free(text);
  /* Nodes by their numbers. */
  if (psplit_emit_numbered(p.model, "numbered.onnx", &REPLACING, &diag) != PSPLIT_OK)
    fail_msg("%s", diag.message);
  psplit_model_close(p.model);
  assert_int_equal(psplit_model_open("numbered.onnx", NULL, &diag, &p.model), PSPLIT_OK);
  assert_string_equal(psplit_i_model_graph(p.model)->nodes[0].name, "#0#");
  psplit_model_close(p.model);
}

int main(void) {
#define TEST(name) cmocka_unit_test_setup_teardown(name, enter_scratch, leave_scratch)
  const struct CMUnitTest tests[] = {
    TEST(triton_reads_odd_names_and_sessions),
    TEST(triton_escapes_what_turns_a_line_around),
    TEST(triton_is_not_told_what_it_has_not),
    TEST(jobs_have_names_that_kubernetes_takes),
    TEST(options_without_size_and_other_plans_are_refused),
    TEST(annotations_are_told_or_refused),
    TEST(configurations_have_names_of_their_own),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
