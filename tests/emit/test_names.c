/* Why: rules by names that ONNX Runtime reads run every node on the provider of its stage. They are
 * read here by what ONNX Runtime documents, which shares nothing with the writer. */
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

#include "failing.h"
#include "open.h"

enum { MOST_NODES = 600, MOST_STAGES = 4 };

typedef struct named {
  const char *name;
  uint32_t stage;
} named;

static psplit_model *chain_of(const named *nodes, uint32_t n) {
  psplit_i_text text = {0};
  psplit_i_text_puts(&text, "(float[4] x) => (float[4] y) {\n");
  for (uint32_t i = 0; i < n; i++) {
    const char *name = nodes[i].name;
    if (*name) psplit_i_text_addf(&text, "[\"%s\"] ", name);
    if (i)
      psplit_i_text_addf(&text, "v%u = Relu (v%u)\n", i, i - 1);
    else
      psplit_i_text_puts(&text, "v0 = Relu (x)\n");
  }
  psplit_i_text_addf(&text, "[\"%s\"] y = Constant <value_float = 1.0> ()\n}", "the (end)");
  psplit_model *model = opened_text(text.bytes);
  psplit_i_text_fini(&text);
  return model;
}

/* The plan of chain_of(nodes): the Constant, which no rule may speak of, is in stage 0. */
static psplit_code assign(const named *nodes, uint32_t n, const char *const *providers,
                          psplit_diag *diag, char **out) {
  static uint32_t stages[MOST_NODES];
  psplit_model *model = chain_of(nodes, n);
  assert_true(n < MOST_NODES);
  for (uint32_t i = 0; i < n; i++) stages[i] = nodes[i].stage;
  stages[n] = 0;
  const psplit_plan plan = {.n_nodes = n + 1, .node_stage = stages, .n_stages = MOST_STAGES};
  psplit_code code = PSPLIT_NOMEM;
  for (long nth = 0; code == PSPLIT_NOMEM; nth++) { /* whichever allocation fails */
    *diag = (psplit_diag){0};
    const long live_before = live_blocks();
    fail_allocation_after(nth);
    code = psplit_name_assignment(model, &plan, providers, diag, out);
    stop_failing();
    assert_int_equal(live_blocks(), live_before + (code == PSPLIT_OK));
  }
  psplit_model_close(model);
  return code;
}

/* Which device "device(text,text);device(text)" gives a name: of the texts that it holds the
 * longest counts, of equally long ones the first. "": none. */
static void device_of(const char *rules, const char *name, char out[64]) {
  size_t longest = 0;
  char device[64] = "";
  *out = '\0';
  for (const char *at = rules; *at;) {
    const size_t n_device = strcspn(at, "(");
    snprintf(device, sizeof device, "%.*s", (int)n_device, at);
    at += n_device + 1;
    while (true) {
      const size_t n = strcspn(at, ",)");
      if (n > longest && memmem(name, strlen(name), at, n)) {
        longest = n;
        snprintf(out, 64, "%s", device);
      }
      at += n;
      if (*at++ == ')') break;
    }
    at += *at == ';';
  }
}

/* With rules for one of two devices alone, the other one has what no rule speaks of. */
static void check_rules(const char *rules, const named *nodes, uint32_t n,
                        const char *const *devices, const char *otherwise) {
  for (uint32_t i = 0; i < n; i++) {
    char found[64];
    device_of(rules, nodes[i].name, found);
    if (strcmp(*found ? found : otherwise, devices[nodes[i].stage]) != 0)
      fail_msg("%s: %s runs on %s", rules, nodes[i].name, *found ? found : otherwise);
  }
}

#define MANY(...)            \
  (const named[]) {          \
    __VA_ARGS__, { NULL, 0 } \
  }

static uint32_t count(const named *nodes) {
  uint32_t n = 0;
  while (nodes[n].name) n++;
  return n;
}

static void rules_are_short(void **state) {
  (void)state;
  static const char *const cpu_cuda[] = {"CUDA", NULL, NULL, NULL};
  static const char *const dml_cpu[] = {"", "DmlExecutionProvider", "cpu", ""};
  static const char *const three[] = {"tensorrt", "My", "cuda", "CPUExecutionProvider"};
  const struct {
    const named *nodes;
    const char *const *providers;
    const char *rules;
  } cases[] = {
    {MANY({"/a/x", 0}, {"/a/y", 0}, {"/b/x", 1}), cpu_cuda, "cpu(/b/x)"},
    {MANY({"/a/x", 1}, {"/a/y", 1}, {"/b/x", 0}), cpu_cuda, "cpu(/a/)"},
    /* What begins alike and is not: the exception has a rule, too. */
    {MANY({"/a/x", 1}, {"/a/y", 1}, {"/a/z", 0}), cpu_cuda, "cpu(/a/x,/a/y)"},
    /* A rule that a longer name holds as well. */
    {MANY({"x", 1}, {"xx", 0}), cpu_cuda, "cuda(xx);cpu(x)"},
    {MANY({"x", 1}, {"xx", 0}, {"xxx", 1}), cpu_cuda, "cuda(xx);cpu(xxx,x)"},
    /* One name for two nodes, on one device. */
    {MANY({"x", 1}, {"x", 2}, {"y", 0}), cpu_cuda, "cpu(x)"},
    {MANY({"l.0.a", 0}, {"l.0.b", 0}, {"l.1.a", 1}), dml_cpu, "cpu(l.0.)"},
    {MANY({"a/b", 0}, {"a/c", 0}, {"d", 1}, {"e", 2}, {"f", 3}), three,
     "TensorrtExecutionProvider(a/);MyExecutionProvider(d);cuda(e);cpu(f)"},
  };
  for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
    psplit_diag diag = {0};
    char *rules = NULL;
    const uint32_t n = count(cases[i].nodes);
    if (assign(cases[i].nodes, n, cases[i].providers, &diag, &rules) != PSPLIT_OK)
      fail_msg("case %zu: %s", i, diag.message);
    if (strcmp(rules, cases[i].rules) != 0)
      fail_msg("case %zu: %s, not %s", i, rules, cases[i].rules);
    free(rules);
  }
}

/* Names from few letters, so that many hold others. */
static void names_at_random_are_told_apart(void **state) {
  (void)state;
  static const char *const providers[] = {"CUDA", "cpu", "WebGPUExecutionProvider", "qnn"};
  static const char *const devices[] = {"cuda", "cpu", "WebGpuExecutionProvider",
                                        "QNNExecutionProvider"};
  uint64_t random = 1;
  for (unsigned round = 0; round < 60; round++) {
    enum { N = 24 };
    char names[N][8];
    named nodes[N];
    const uint32_t n_stages = 2 + round % 3;
    for (uint32_t i = 0; i < N; i++) {
      random = random * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
      const uint32_t n = 1 + (uint32_t)(random >> 33) % 6;
      for (uint32_t k = 0; k < n; k++) names[i][k] = "ab/."[random >> (35 + 3 * k) & 3];
      names[i][n] = '\0';
      if (i == N - 1) snprintf(names[i], sizeof names[i], "last"); /* at least two devices */
      nodes[i] = (named){names[i], i == 0       ? 0
                                   : i == N - 1 ? 1
                                                : (uint32_t)(random >> 58) % n_stages};
      for (uint32_t k = 0; k < i; k++)
        if (strcmp(names[k], names[i]) == 0) nodes[i].stage = nodes[k].stage;
    }
    psplit_diag diag = {0};
    char *rules = NULL;
    const psplit_code code = assign(nodes, N, providers, &diag, &rules);
    if (code != PSPLIT_OK) fail_msg("round %u: %s", round, diag.message);
    check_rules(rules, nodes, N, devices, "cuda");
    free(rules);
  }
}

static void what_cannot_be_told_is_refused(void **state) {
  (void)state;
  static const char *const two[] = {"CUDA", NULL, NULL, NULL};
  static const char *const one[] = {"cpu", NULL, "", "CPUExecutionProvider"};
  static named many[500];
  static char names[500][64];
  for (uint32_t i = 0; i < 500; i++) {
    snprintf(names[i], sizeof names[i], "a_name_longer_than_names_of_nodes_should_be_%u_",
             i * 7919 % 1000);
    many[i] = (named){names[i], i % 2};
  }
  const struct {
    const named *nodes;
    uint32_t n;
    const char *const *providers;
    psplit_code code;
    const char *says;
  } cases[] = {
    {MANY({"a", 0}, {"", 1}), 2, two, PSPLIT_UNSUPPORTED, "node 1, \"\": ONNX Runtime's"},
    {MANY({"a,b", 0}, {"b", 1}), 2, two, PSPLIT_UNSUPPORTED, "node 0, \"a,b\""},
    {MANY({"a;b", 0}, {"b", 1}), 2, two, PSPLIT_UNSUPPORTED, "\"a;b\""},
    {MANY({"a(b", 0}, {"b", 1}), 2, two, PSPLIT_UNSUPPORTED, "\"a(b\""},
    {MANY({"=a", 0}, {"b", 1}), 2, two, PSPLIT_UNSUPPORTED, "\"=a\""},
    {MANY({" a", 0}, {"b", 1}), 2, two, PSPLIT_UNSUPPORTED, "\" a\""},
    {MANY({"a ", 0}, {"b", 1}), 2, two, PSPLIT_UNSUPPORTED, "\"a \""},
    {MANY({"a", 0}, {"a", 1}), 2, two, PSPLIT_UNSUPPORTED, "called a, and run on cuda and cpu"},
    {MANY({"a", 0}, {"b", 1}), 2, one, PSPLIT_USAGE, "one provider, cpu, so"},
    {MANY({"a", 0}, {"b", 1}), 2, NULL, PSPLIT_USAGE, "one provider, cpu, so"},
    {many, 500, two, PSPLIT_UNSUPPORTED, "8192 at most"},
  };
  for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
    psplit_diag diag = {0};
    char *rules = NULL;
    const psplit_code code = assign(cases[i].nodes, cases[i].n, cases[i].providers, &diag, &rules);
    if (code != cases[i].code || !strstr(diag.message, cases[i].says))
      fail_msg("case %zu: %s: %s", i, psplit_code_name(code), diag.message);
  }
  psplit_model *model = chain_of(many, 2);
  const psplit_plan other = {.n_nodes = 2, .n_stages = 1};
  psplit_diag diag = {0};
  char *rules = NULL;
  assert_int_equal(psplit_name_assignment(model, &other, two, &diag, &rules), PSPLIT_INVALID);
  assert_non_null(strstr(diag.message, "another model"));
  psplit_model_close(model);
}

int main(void) {
  const struct CMUnitTest tests[] = {
    cmocka_unit_test(rules_are_short),
    cmocka_unit_test(names_at_random_are_told_apart),
    cmocka_unit_test(what_cannot_be_told_is_refused),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
