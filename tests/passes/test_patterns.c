/* The pattern language and the built-in patterns: what a text means, which mistakes are named with
 * their line, and that each shape an exporter writes becomes one group. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
/* cmocka.h needs the four above first. */
#include <cmocka.h>
#include <stdlib.h>
#include <string.h>

#include "open.h"
#include "passes.h"
#include "pattern.h"

/* A model from text: "Op in in > out out; Op ...". Names in capitals are weights; what nobody makes
 * is an input, what nobody reads an output. "@" before a name lists it as an output too. */
typedef struct sketch {
  psplit_model *model;
  psplit_unit *unit;
  const psplit_graph *graph;
} sketch;

static const char *const *user_patterns; /* what read_text hands out */

static psplit_code read_text(void *user, const char *path, psplit_diag *diag, char **out_text,
                             size_t *out_n) {
  (void)user;
  (void)path;
  (void)diag;
  *out_n = strlen(*user_patterns);
  *out_text = malloc(*out_n + 1);
  assert_non_null(*out_text);
  memcpy(*out_text, *user_patterns, *out_n + 1);
  return PSPLIT_OK;
}

enum { MAX_WORDS = 512 };

static bool listed(char words[][32], unsigned n, const char *word) {
  for (unsigned i = 0; i < n; i++)
    if (strcmp(words[i], word) == 0) return true;
  return false;
}

static sketch draw(const char *text) {
  static char made[MAX_WORDS][32], read[MAX_WORDS][32], outputs[MAX_WORDS][32];
  unsigned n_made = 0, n_read = 0, n_outputs = 0;
  pb graph = {0};
  char copy[4096];
  assert_true(strlen(text) < sizeof copy);
  memcpy(copy, text, strlen(text) + 1);
  for (char *statement, *rest = copy; (statement = strsep(&rest, ";"));) {
    char *arrow = strchr(statement, '>'), *op;
    if (!arrow) continue;
    *arrow = '\0';
    char *inputs = statement + strspn(statement, " \n"), *results = arrow + 1;
    op = strsep(&inputs, " ");
    char in[512] = "", out[512] = "";
    for (char *word; (word = strsep(&inputs, " "));) {
      if (!*word) continue;
      strcat(strcat(in, *in ? " " : ""), word);
      if (!listed(read, n_read, word)) strcpy(read[n_read++], word);
    }
    for (char *word; (word = strsep(&results, " \n"));) {
      if (!*word) continue;
      if (*word == '@') strcpy(outputs[n_outputs++], ++word);
      strcat(strcat(out, *out ? " " : ""), word);
      strcpy(made[n_made++], word);
    }
    add_node(&graph, op, in, out);
  }
  for (unsigned i = 0; i < n_read; i++) {
    if (listed(made, n_made, read[i])) continue;
    if (strcmp(read[i], "TWO") == 0) {
      const float two = 2;
      pb tensor = make_tensor("TWO", 1, 0, NULL);
      pb_bytes(&tensor, 9, &two, sizeof two);
      pb_message(&graph, 5, &tensor);
    } else if (read[i][0] >= 'A' && read[i][0] <= 'Z') add_initializers(&graph, read[i]);
    else add_values(&graph, 11, read[i]);
  }
  for (unsigned i = 0; i < n_outputs; i++) add_values(&graph, 12, outputs[i]);
  for (unsigned i = 0; i < n_made; i++)
    if (!listed(read, n_read, made[i]) && !listed(outputs, n_outputs, made[i]))
      add_values(&graph, 12, made[i]);
  pb bytes = make_model(&graph);
  sketch s = {.model = opened(&bytes)};
  s.graph = psplit_i_model_graph(s.model);
  return s;
}

static psplit_code fuse(sketch *s, const char *patterns, psplit_diag *diag) {
  psplit_unit_options options;
  psplit_unit_options_init(&options);
  options.verify_each = true;
  options.read_text = read_text;
  user_patterns = &patterns;
  psplit_code code = psplit_unit_create(s->model, &options, diag, &s->unit);
  if (code == PSPLIT_OK)
    code = psplit_unit_run(s->unit, patterns ? "prune,fuse:patterns=mine" : "prune,fuse", diag);
  return code;
}

static void erase(sketch *s) {
  psplit_unit_destroy(s->unit);
  psplit_model_close(s->model);
}

/* Groups as text, by the first result of each node: those of one group in the file's order joined by
 * '+', groups by their first node. */
static void groups_are(const char *model, const char *patterns, const char *wanted) {
  sketch s = draw(model);
  psplit_diag diag = {0};
  if (fuse(&s, patterns, &diag) != PSPLIT_OK) fail_msg("%s", diag.message);
  psplit_text got = {0};
  for (uint32_t n = 0; n < s.graph->n_nodes; n++) {
    const uint32_t group = psplit_i_group_of(&s.unit->grouping, n);
    bool is_first = true;
    for (uint32_t m = 0; m < n && is_first; m++)
      is_first = psplit_i_group_of(&s.unit->grouping, m) != group;
    for (uint32_t m = n; m < s.graph->n_nodes && is_first; m++)
      if (psplit_i_group_of(&s.unit->grouping, m) == group)
        psplit_i_text_addf(&got, "%s%s", m > n ? "+" : n ? " " : "",
                           s.graph->values[s.graph->nodes[m].outputs[0]].name);
  }
  if (strcmp(got.bytes, wanted) != 0) fail_msg("%s\n  is  %s\n  not %s", model, got.bytes, wanted);
  psplit_i_text_fini(&got);
  erase(&s);
}

/* Every node is in one group, but for functions of constants, which are in none. */
static void is_one_group(const char *model) {
  sketch s = draw(model);
  psplit_diag diag = {0};
  if (fuse(&s, NULL, &diag) != PSPLIT_OK) fail_msg("%s", diag.message);
  for (uint32_t n = 1; n < s.graph->n_nodes; n++)
    if (!(s.unit->node_flags[n] & PSPLIT_I_NODE_FREE) &&
        psplit_i_group_of(&s.unit->grouping, n) != psplit_i_group_of(&s.unit->grouping, 0))
      fail_msg("%s\n  %s stands apart", model, s.graph->values[s.graph->nodes[n].outputs[0]].name);
  erase(&s);
}

static void activations(void **state) {
  (void)state;
  is_one_group("Conv x W > c;Div c K > d;Erf d > e;Add e K > f;Mul c f > g;Mul g K > y");
  is_one_group("MatMul x W > c;Div c K > d;Erf d > e;Add e K > f;Mul c K > h;Mul h f > y");
  is_one_group("Gemm x W B > c;Mul c K > d;Erf d > e;Add K e > f;Mul f K > g;Mul g c > y");
  is_one_group("MatMul x W > c;Mul c c > w2;Mul c w2 > w;Mul w K > v;Add c v > u;Mul u K > s;"
               "Tanh s > t;Add t K > f;Mul c K > h;Mul h f > y");
  is_one_group("MatMul x W > c;Sigmoid c > s;Mul c s > y");
  is_one_group("Conv x W > c;HardSigmoid c > s;Mul s c > y");
  is_one_group("MatMul x W > c;Mul c K > z;Sigmoid z > s;Mul c s > y");
  is_one_group("Conv x W > c;Add c K > a;Clip a L M > l;Mul c l > m;Div m K > y");
  is_one_group("Conv x W > c;Add c K > a;Clip a L M > l;Div l K > d;Mul c d > y");
  is_one_group("Conv x W > c;Softplus c > p;Tanh p > t;Mul c t > y");
  is_one_group("Conv x W > c;Exp c > e;Add e K > o;Log o > p;Tanh p > t;Mul c t > y");
  is_one_group("ReduceMax x > m;Sub x m > s;Exp s > e;ReduceSum e > u;Div e u > y");
}

static void kernels(void **state) {
  (void)state;
  is_one_group("ConvTranspose x W > c;BatchNormalization c S T M V > n;LeakyRelu n > y");
  is_one_group("Pad x P > p;Conv p W > c;Add c r > s;Relu s > y");
  is_one_group("DynamicQuantizeLinear x > q s z;MatMulInteger q W z Z > m;Cast m > c;Mul s K > f;"
               "Mul c f > g;Add g B > y");
  is_one_group("DequantizeLinear x S Z > d;DequantizeLinear W S Z > w;Conv d w > c;Relu c > r;"
               "QuantizeLinear r S Z > y");
  /* Three products share the quantised input: it stands alone, each product is whole. */
  groups_are("DynamicQuantizeLinear x > q s z;MatMulInteger q W z Z > m;Cast m > c;Mul s K > f;"
             "Mul c f > g;MatMulInteger q V z Z > m2;Cast m2 > c2;Mul s L > f2;Mul c2 f2 > g2",
             NULL, "q m+c+f+g m2+c2+f2+g2");
  /* The sum's second operand comes from elsewhere; its reader is nobody's. */
  groups_are("Conv x W > a;MaxPool a > p;Conv p V > b;Add b p > s;Relu s > y;Softmax y > z", NULL,
             "a p b+s+y z");
}

static void normalisations(void **state) {
  (void)state;
  is_one_group("ReduceMean x > m;Sub x m > d;Pow d TWO > q;ReduceMean q > v;Add v E > e;Sqrt e > r;"
               "Div d r > n;Mul n W > s;Add s B > y");
  is_one_group("Add a b > x;ReduceMean x > m;Sub x m > d;Mul d d > q;ReduceMean q > v;Add v E > e;"
               "Sqrt e > r;Div d r > n;Mul n W > y");
  /* A residual stream passes by: it can be cut behind its sum. */
  groups_are("Add a b > x;ReduceMean x > m;Sub x m > d;Mul d d > q;ReduceMean q > v;Add v E > e;"
             "Sqrt e > r;Div d r > n;Mul n W > y;Softmax x > keep", NULL,
             "x m+d+q+v+e+r+n+y keep");
  groups_are("MatMul a W > p;Add r p > x;LayerNormalization x W B > y;MatMul y V > q;Add x q > z",
             NULL, "p+x y q+z");
  is_one_group("ReduceMean x > m;Sub x m > d;Sub x m > d2;Pow d TWO > q;ReduceMean q > v;"
               "Add v E > e;Sqrt e > r;Div d2 r > n;Mul n W > s;Add s B > y");
  is_one_group("Pow x TWO > q;ReduceMean q > v;Add v E > e;Sqrt e > r;Div ONE r > i;Mul x i > n;"
               "Mul n W > y");
  is_one_group("Mul x x > q;ReduceMean q > v;Add v E > e;Sqrt e > r;Reciprocal r > i;Mul x i > n;"
               "Cast n > c;Mul W c > y");
  is_one_group("Reshape x S > r;InstanceNormalization r G B > i;Reshape i t > b;Mul b W > s;"
               "Add s C > y");
  is_one_group("Add a b > x;LayerNormalization x W B > y");
}

static void attention(void **state) {
  (void)state;
  /* torch */
  is_one_group("Transpose q > q0;Mul q0 K > qs;Transpose k > k0;Mul k0 K > ks;MatMul qs ks > t;"
               "Add t mask > s;Softmax s > p;Transpose v > v0;MatMul p v0 > y;Transpose y > o");
  /* tf2onnx */
  is_one_group("MatMul q k > t;Mul t K > u;Add u mask > s;Softmax s > p;MatMul p v > y");
  /* optimum: a causal mask, then one for padding */
  is_one_group("MatMul q k > t;Div t K > u;Where causal u M > w;Add w mask > s;Softmax s > p;"
               "Cast p > p2;MatMul p2 v > y;Transpose y > o");
  is_one_group("Slice x A B C > h1;Slice x D E F > h2;Neg h2 > n;Concat n h1 > r;Mul r sin > b;"
               "Mul x cos > a;Add a b > y");
  is_one_group("Split x > h1 h2;Neg h2 > n;Concat n h1 > r;Mul x cos > a;Mul r sin > b;Add a b > y");
  is_one_group("Transpose x > i;LSTM i W R B > y h c;Squeeze y AXES > z");
  is_one_group("GRU x W R B > y;Transpose y > t;Reshape t S > z");
  is_one_group("Transpose x > i;Resize i R S > r;Resize r R S > r2;Transpose r2 > y");
}

static void the_language(void **state) {
  (void)state;
  /* Alternatives: the first that fits counts; a custom domain is named; an input anywhere. */
  groups_are("Foo x > a;Bar a > b;Baz b > c", "pattern p\nk = Foo|Qux(_)\ny = Bar(k)\n", "a+b c");
  groups_are("Foo x > a;Bar a > b;Baz b > c",
             "set ends = Baz | Qux\npattern p\nk = Foo(_)\nm = *(k)\ny = @ends(m)\n", "a+b+c");
  groups_are("Foo x > a;Bar a > b", "pattern p\nk = my.domain:Foo(_)\ny = Bar(k)\n", "a b");
  groups_are("Foo x > a;Bar x x a > b", "pattern p\nk = Foo(_)\ny = Bar(~k)\n", "a+b");
  /* Optional steps, forwards and backwards. */
  groups_are("Foo x > a;Baz a > c", "pattern p\nk = Foo(_)\nm ?= Bar(k)\ny = Baz(m)\n", "a+c");
  groups_are("Foo x > a;Bar a > b;Baz b > c", "pattern p\nk = Foo(_)\nm ?= Bar(k)\ny = Baz(m)\n",
             "a+b+c");
  groups_are("Foo x > a;Bar a > b;Baz b > c", "pattern p\ny = Baz(m)\nm ?= Bar(k)\nk = Foo(_)\n",
             "a+b+c");
  groups_are("Foo x > a;Baz a > c", "pattern p\ny = Baz(m)\nm ?= Bar(k)\nk = Foo(_)\n", "a+c");
  /* What is read outside is no part of the inside, unless it may leave. */
  groups_are("Foo x > a;Bar a > b;Qux a > c", "pattern p\nk = Foo(_)\ny = Bar(k)\n", "a b c");
  groups_are("Foo x > @a;Bar a > b", "pattern p\nk = Foo(_)\ny = Bar(k)\n", "a b");
  groups_are("Foo x > a;Bar a > b;Qux a > c", "pattern p\nk = Foo(_)\ny = Bar(k)\nout k y\n",
             "a+b c");
  /* Constants, numbers (the weights of this test hold zeros), equal names, order of inputs. */
  groups_are("Foo x K > a;Bar a > b", "pattern p\nk = Foo(_, const)\ny = Bar(k)\n", "a+b");
  groups_are("Foo x z > a;Bar a > b", "pattern p\nk = Foo(_, const)\ny = Bar(k)\n", "a b");
  groups_are("Foo x K > a;Bar a > b", "pattern p\nk = Foo(_, 0)\ny = Bar(k)\n", "a+b");
  groups_are("Foo x K > a;Bar a > b", "pattern p\nk = Foo(_, 2)\ny = Bar(k)\n", "a b");
  groups_are("Foo x x > a;Bar a > b", "pattern p\nk = Foo(v, v)\ny = Bar(k)\n", "a+b");
  groups_are("Foo x z > a;Bar a > b", "pattern p\nk = Foo(v, v)\ny = Bar(k)\n", "a b");
  groups_are("Mul K x > a;Bar a > b", "pattern p\nk = Mul(_, const)\ny = Bar(k)\n", "a+b");
  groups_are("Sub K x > a;Bar a > b", "pattern p\nk = Sub(_, const)\ny = Bar(k)\n", "a b");
  groups_are("Foo x z > a;Bar a > b", "pattern p\nk = Foo(_)\ny = Bar(k)\n", "a b");
  groups_are("Foo x z > a;Bar a > b", "pattern p\nk = Foo(_, *)\ny = Bar(k)\n", "a+b");
  groups_are("Foo x > a b;Bar b > c", "pattern p\nk, m = Foo(_)\ny = Bar(m)\n", "a+c");
}

static void is_refused(const char *text, const char *wanted) {
  sketch s = draw("Foo x > a");
  psplit_diag diag = {0};
  if (fuse(&s, text, &diag) != PSPLIT_USAGE || !strstr(diag.message, wanted))
    fail_msg("%s\n  says %s\n  not  %s", text, diag.message, wanted);
  erase(&s);
}

static void mistakes_are_named(void **state) {
  (void)state;
  is_refused("pattern\n", "mine:1: a pattern's name is missing");
  is_refused("# text\n\ny = Foo(x)\n", "mine:3: no pattern has begun before \"y\"");
  is_refused("pattern p\n\npattern q\ny = Foo(x)\n", "mine:3: no steps in pattern \"p\"");
  is_refused("pattern p\ny = Foo x\n", "mine:2: \"(\" is missing before \"x\"");
  is_refused("pattern p\ny = Foo(x\n", "mine:2: \")\" is missing");
  is_refused("pattern p\ny Foo(x)\n", "mine:2: \"=\" is missing before \"Foo(x)\"");
  is_refused("pattern p\ny = (x)\n", "mine:2: an operator is missing before \"(x)\"");
  is_refused("pattern p\ny = @none(x)\n", "mine:2: there is no set \"none\"");
  is_refused("pattern p\ny = Foo(*, x)\n", "mine:2: \"*\" stands last");
  is_refused("pattern p\ny ?= Foo(x)\n", "mine:2: the first step cannot be optional");
  is_refused("pattern p\ny = Foo(x)\nz = Bar(u)\n", "mine:3: no earlier step names a value");
  is_refused("pattern p\ny = Foo(x)\ny = Bar(y)\n", "mine:3: two steps make \"y\"");
  is_refused("pattern p\ny = Foo(x) z\n", "mine:2: this stands where the line should end: \"z\"");
  is_refused("pattern p\ny = Foo(x)\nout x\n", "\"out\" names a value that no step makes");
  is_refused("pattern p\ny = Foo(,)\n", "mine:2: an operand is missing");
  is_refused("set s Foo\n", "mine:1: it is: set NAME = OP | OP");
  is_refused("pattern p\ny = my:(x)\n", "mine:2: an operator is missing in \"my:\"");
}

/* Any bytes are taken or refused, never followed out of bounds; what parses can be run. */
static void any_text_is_safe(void **state) {
  (void)state;
  static const char *const words[] = {"pattern", "set",  "out", "p",   "y",     "x",   "=",   "?=",
                                      "Foo",     "(",    ")",   ",",   "|",     "*",   "@ops", "~x",
                                      "const",   "-1.5", "_",   "\n",  "\n",    "#",   "a:B", "Bar",
                                      "y = Foo(x)\n", "\npattern q\nk = Foo(_)\n", "z = Bar(~y)\n"};
  for (uint64_t seed = 0; seed < 2000; seed++) {
    psplit_text text = {0};
    psplit_i_text_puts(&text, seed % 2 ? "pattern p\n" : "");
    for (unsigned i = 0; i < 12; i++)
      psplit_i_text_addf(&text, "%s ",
                         words[psplit_i_splitmix64(seed, i) % (sizeof words / sizeof *words)]);
    sketch s = draw("Foo x > a;Bar a > b;Foo b > c;Bar c > d");
    psplit_diag diag = {0};
    const psplit_code code = fuse(&s, text.bytes, &diag);
    assert_true(code == PSPLIT_OK || code == PSPLIT_USAGE);
    erase(&s);
    psplit_i_text_fini(&text);
  }
}

int main(void) {
  const struct CMUnitTest tests[] = {
    cmocka_unit_test(activations),        cmocka_unit_test(kernels),
    cmocka_unit_test(normalisations),     cmocka_unit_test(attention),
    cmocka_unit_test(the_language),       cmocka_unit_test(mistakes_are_named),
    cmocka_unit_test(any_text_is_safe),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
