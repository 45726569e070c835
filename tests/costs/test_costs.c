/* Costs files: each kind is read for what it says of a model, what it leaves open is scaled, and
 * what cannot be is refused with its place. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
/* cmocka.h needs the four above first. */
#include <cmocka.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "costing.h"
#include "open.h"

#define OWN(rest) "{\"format\": \"onnx-pipeline-split-costs\", \"version\": 1, " rest "}"

static void what_is_given_overrides_and_the_rest_is_scaled(void **state) {
  (void)state;
  psplit_model *model = residual_block();
  costing plain = costed(model, NULL, NULL);
  costing b =
    costed(model, OWN("\"costs\": [{\"nodes\": [\"/a/conv/Conv\"], \"ns\": 1000000}]"), NULL);
  assert_int_equal(b.ns[CONV1], 1000000);
  const double factor = 1e6 / (double)plain.ns[CONV1];
  for (uint32_t n = RELU1; n < N_NODES; n++)
    assert_true(llabs(b.ns[n] - (int64_t)(factor * (double)plain.ns[n])) <= 1);
  assert_string_equal(b.planner->cost_source, "given");
  double sum = 0;
  for (uint32_t n = 0; n < N_NODES; n++) sum += (double)b.ns[n];
  assert_true(b.planner->measured_frac > 0.99e6 / sum && b.planner->measured_frac < 1.01e6 / sum);
  assert_string_equal(plain.planner->cost_source, "analytic");
  costing_end(&plain);
  costing_end(&b);
  psplit_model_close(model);
}

static void a_complete_table_leaves_nothing_to_scale(void **state) {
  (void)state;
  psplit_model *model = residual_block();
  costing b = costed(model,
                     OWN("\"complete\": true, \"measured\": true, \"costs\": ["
                         "{\"nodes\": [\"/a/conv/Conv\", \"/a/act/Relu\"], \"ns\": 1000},"
                         "{\"outputs\": [\"y\"], \"ns\": 7.4, \"kernel\": \"Pool\"}]"),
                     NULL);
  assert_int_equal(b.ns[CONV1] + b.ns[RELU1], 1000);
  assert_true(b.ns[CONV1] > b.ns[RELU1] && b.ns[RELU1] > 0);
  assert_int_equal(b.ns[POOL], 7);
  assert_int_equal(b.ns[CONV2] + b.ns[ADD] + b.ns[RELU2], 0);
  assert_string_equal(b.planner->cost_source, "measured");
  assert_true(b.planner->measured_frac == 1);
  costing_end(&b);
  psplit_model_close(model);
}

static void a_later_table_overrides_an_earlier_one(void **state) {
  (void)state;
  psplit_model *model = residual_block();
  costing b = costed(
    model,
    OWN("\"complete\": true, \"costs\": [{\"nodes\": [\"/a/conv/Conv\"], \"ns\": 5},"
        "{\"nodes\": [\"/b/Add\"], \"ns\": 9}]"),
    OWN("\"costs\": [{\"nodes\": [\"/b/Add\"], \"ns\": 6}, {\"nodes\": [\"/b/Add\"], \"ns\": 4}]"));
  assert_int_equal(b.ns[CONV1], 5);
  assert_int_equal(b.ns[ADD], 10); /* rows of one table add up */
  assert_int_equal(b.ns[CONV2], 0);
  costing_end(&b);
  psplit_model_close(model);
}

#define STATISTICS \
  "#name,input_sizes,initializers_sizes,total_dynamic_sizes,total_temp_allocations\n"

/* Two runs at level 99: layouts, a sum and activations inside convolutions, a pool by its number.
 * The first run is cold. */
static void a_profile_is_mapped_back(void **state) {
  (void)state;
  static const char profile[] =
    "[{\"cat\": \"Session\", \"name\": \"model_run\", \"ts\": 0, \"dur\": 500}," KERNEL(
      "ReorderInput_token_3", "ReorderInput", 1, 2) "," KERNEL("r1_nchwc", "Conv", 10, 90) ","
    KERNEL("c2_nchwc", "Conv", 20, 60) ","
    KERNEL("ReorderOutput_token_4", "ReorderOutput", 25, 9) ","
    KERNEL("GlobalAveragePool_5", "GlobalAveragePool", 30, 4)
    ",{\"cat\": \"Session\", \"name\": \"model_run\", \"ts\": 600, \"dur\": 500}," KERNEL(
      "ReorderInput_token_3", "ReorderInput", 1, 2) "," KERNEL("r1_nchwc", "Conv", 10, 50) ","
    KERNEL("c2_nchwc", "Conv", 20, 30) ","
    KERNEL("ReorderOutput_token_4", "ReorderOutput", 25, 6) ","
    KERNEL("GlobalAveragePool_5", "GlobalAveragePool", 30, 3) "]";
  psplit_model *model = residual_block();
  costing b = costed(model, profile, NULL);
  assert_int_equal(b.ns[CONV1] + b.ns[RELU1], 50500 + 2500); /* with what reorders its input */
  assert_int_equal(b.ns[CONV2] + b.ns[ADD] + b.ns[RELU2], 30500 + 6500); /* its result */
  assert_int_equal(b.ns[POOL], 3500);
  assert_true(b.ns[RELU1] > 0 && b.ns[ADD] > 0 && b.ns[RELU2] > 0);
  assert_string_equal(b.planner->cost_source, "measured");
  costing_end(&b);
  psplit_model_close(model);
}

/* ONNX Runtime escapes nothing. What is no JSON for another reason stays an error. */
static void names_with_quotes_are_read(void **state) {
  (void)state;
  static const char profile[] =
    "[{\"cat\" : \"Session\",\"dur\" :9,\"ts\" :1,\"name\" :\"model_run\",\"args\" : {}},\n"
    "{\"cat\" : \"Node\",\"tid\" :1,\"dur\" :7,\"ts\" :2,\"name\" :\"a \"0\", "
    "b\\\n\xff{_kernel_time\","
    "\"args\" : {\"op_name\" : \"Relu\",\"node_index\" : \"0\"}}]";
  psplit_diag diag = {0};
  psplit_cost_table *table;
  assert_int_equal(psplit_cost_table_parse("p", profile, sizeof profile - 1, &diag, &table),
                   PSPLIT_OK);
  assert_int_equal(table->rows.n, 1);
  assert_string_equal(table->rows.items[0].label, "a \"0\", b\\\n\xef\xbf\xbd{");
  psplit_cost_table_destroy(table);
  for (size_t n = 1; n + 1 < sizeof profile - 1; n += 3) {
    diag = (psplit_diag){0};
    assert_int_equal(psplit_cost_table_parse("p", profile, n, &diag, &table), PSPLIT_MALFORMED);
  }
}

/* Kernels of a body are in the time of the node that runs it. */
static void kernels_of_bodies_do_not_count_twice(void **state) {
  (void)state;
  static const char profile[] = "[" KERNEL("/a/conv/Conv", "Conv", 10, 5) "," KERNEL(
    "/a/act/Relu", "Relu", 22, 3) "," KERNEL("/b/Add", "If", 20, 9) "]";
  psplit_model *model = residual_block();
  costing b = costed(model, profile, NULL);
  assert_int_equal(b.ns[CONV1], 5500);
  int64_t sum = 0;
  for (uint32_t n = 0; n < N_NODES; n++) sum += b.ns[n];
  assert_true(llabs(sum - 15000) <= 3);
  costing_end(&b);
  psplit_model_close(model);
}

/* A kernel whose name says nothing does the nodes whose turn it was. */
static void a_nameless_kernel_gets_what_is_left_between(void **state) {
  (void)state;
  static const char profile[] =
    "[" KERNEL("/a/conv/Conv", "Conv", 10, 5) "," KERNEL("/a/act/Relu", "Relu", 20, 1) "," KERNEL(
      "/b/b.0/conv/Conv", "Conv", 30, 5) "," KERNEL("AddRelu_token_8", "AddRelu", 40,
                                                    8) "," KERNEL("GlobalAveragePool_5",
                                                                  "GlobalAveragePool", 50, 1) "]";
  psplit_model *model = residual_block();
  costing b = costed(model, profile, NULL);
  assert_int_equal(b.ns[ADD] + b.ns[RELU2], 8500);
  assert_int_equal(b.ns[CONV2], 5500);
  costing_end(&b);
  psplit_model_close(model);
}

static void memory_statistics_give_workspaces_alone(void **state) {
  (void)state;
  psplit_model *model = residual_block();
  costing plain = costed(model, NULL, NULL);
  costing b = costed(
    model,
    "#name,input_sizes,initializers_sizes,total_dynamic_sizes,total_temp_allocations\n"
    "r1_nchwc_13458112695043213455,8192,0,0,4096\n/b/Add_77,1,0,256,512\nReorderOutput_1,5,0,0,0\n",
    NULL);
  assert_memory_equal(b.ns, plain.ns, sizeof b.ns);
  assert_string_equal(b.planner->cost_source, "analytic");
  assert_int_equal(b.planner->node_workspace_bytes[RELU1], 4096);
  assert_int_equal(b.planner->node_workspace_bytes[ADD], 512);
  assert_int_equal(b.planner->node_workspace_bytes[POOL], 0);
  costing_end(&plain);
  costing_end(&b);
  psplit_model_close(model);
}

static void olive_speaks_of_modules(void **state) {
  (void)state;
  psplit_model *model = residual_block();
  costing b = costed(model,
                     "module,num_params,num_bytes,num_flops\r\na.conv,64,256,960000000\r\n"
                     "b.0.conv,64,128.5,480000000\r\n",
                     NULL);
  assert_string_equal(b.planner->cost_source, "given");
  /* Twice the work, but for the launch; and work that is all flops at the rate of a convolution. */
  assert_true(b.ns[CONV1] > 1000000);
  assert_true(llabs(b.ns[CONV1] - 2 * b.ns[CONV2]) < 100000);
  assert_true(b.ns[POOL] > 0); /* scaled */
  costing_end(&b);
  psplit_model_close(model);
}

static void what_matches_nothing_is_an_error(void **state) {
  (void)state;
  psplit_model *model = residual_block();
  costing b;
  psplit_diag diag = {0};
  assert_int_equal(
    costing_start(&b, model, OWN("\"costs\": [{\"nodes\": [\"other\"], \"ns\": 1}]"), NULL, &diag),
    PSPLIT_INVALID);
  assert_non_null(strstr(diag.message, "none of its 1 rows"));
  assert_non_null(strstr(diag.message, "\"other\""));
  assert_non_null(strstr(diag.message, "/a/conv/Conv"));
  costing_end(&b);
  diag = (psplit_diag){0};
  assert_int_equal(costing_start(&b, model, OWN("\"costs\": []"), NULL, &diag), PSPLIT_INVALID);
  assert_non_null(strstr(diag.message, "has the times of no node"));
  costing_end(&b);
  psplit_model_close(model);
}

static void hostile_files_are_refused_with_the_place(void **state) {
  (void)state;
  static const struct {
    const char *text;
    psplit_code code;
    const char *part;
  } cases[] = {
    {"", PSPLIT_MALFORMED, "not a costs file"},
    {"name,ns\na,1\n", PSPLIT_MALFORMED, "not a costs file"},
    {"[{\"cat\": \"Node\", ", PSPLIT_MALFORMED, "line 1"},
    {"{\"x\": NaN}", PSPLIT_MALFORMED, "line 1"},
    {"{\"a\": 1}", PSPLIT_INVALID, "\"format\""},
    {"[]", PSPLIT_INVALID, "no events of kernels"},
    {"[1]", PSPLIT_INVALID, "[0]: must be an object, not 1"},
    {"[" KERNEL("a", "A", 1, -1) "]", PSPLIT_INVALID, "[0].dur: must be a number"},
    {"[" KERNEL("a", "A", 1, 1e300) "]", PSPLIT_INVALID, "[0].dur: must be a number"},
    {"[" KERNEL("a", "A", -1, 1) "]", PSPLIT_INVALID, "[0].ts: must be a number"},
    {OWN("\"costs\": {}"), PSPLIT_INVALID, "costs: must be an array"},
    {OWN("\"costs\": [], \"cost\": 1"), PSPLIT_INVALID, "cost: unknown key"},
    {OWN("\"dims\": [1], \"costs\": []"), PSPLIT_INVALID, "dims: must be an object"},
    {OWN("\"dims\": {\"n\": -1}, \"costs\": []"), PSPLIT_INVALID,
     "dims.n: must be an integer from 0"},
    {OWN("\"dims\": {\"n\": 1.5}, \"costs\": []"), PSPLIT_INVALID,
     "dims.n: must be an integer from 0"},
    {OWN("\"costs\": [3]"), PSPLIT_INVALID, "costs[0]: must be an object"},
    {OWN("\"costs\": [{\"ns\": 1}]"), PSPLIT_INVALID, "costs[0]: needs \"nodes\""},
    {OWN("\"costs\": [{\"nodes\": [\"a\"]}]"), PSPLIT_INVALID, "costs[0]: needs \"ns\""},
    {OWN("\"costs\": [{\"nodes\": [], \"ns\": 1}]"), PSPLIT_INVALID, "costs[0].nodes"},
    {OWN("\"costs\": [{\"nodes\": [1], \"ns\": 1}]"), PSPLIT_INVALID, "costs[0].nodes"},
    {OWN("\"costs\": [{\"nodes\": [\"a\"], \"ns\": -1}]"), PSPLIT_INVALID, "costs[0].ns"},
    {OWN("\"costs\": [{\"nodes\": [\"a\"], \"ns\": 1, \"blocked\": 1}]"), PSPLIT_INVALID,
     "costs[0].blocked: must be true or false"},
    {OWN("\"costs\": [{\"nodes\": [\"a\"], \"ns\": \"1\"}]"), PSPLIT_INVALID, "costs[0].ns"},
    {OWN("\"costs\": [{\"nodes\": [\"a\"], \"ns\": 1e19}]"), PSPLIT_INVALID, "costs[0].ns"},
    {OWN("\"costs\": [{\"nodes\": [\"a\"], \"workspace_bytes\": 1.5}]"), PSPLIT_INVALID,
     "costs[0].workspace_bytes"},
    {"{\"format\": \"onnx-pipeline-split-costs\", \"version\": 2, \"costs\": []}", PSPLIT_INVALID,
     "version: must be 1"},
    {OWN("\"complete\": 1, \"costs\": []"), PSPLIT_INVALID, "complete: must be true or false"},
    {"module,num_params,num_bytes\na,1\n", PSPLIT_INVALID, "line 2: it has fewer than 2"},
    {"module,num_params,num_bytes\na,1,x\n", PSPLIT_INVALID, "line 2: \"x\""},
    {"module,num_params,num_bytes\na,1,99999999999999999999999\n", PSPLIT_INVALID, "line 2"},
    {"module,num_params,num_bytes\na,1,-5\n", PSPLIT_INVALID, "line 2"},
  };
  for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
    psplit_diag diag = {0};
    psplit_cost_table *table = NULL;
    const psplit_code code =
      psplit_cost_table_parse("f", cases[i].text, strlen(cases[i].text), &diag, &table);
    if (code != cases[i].code || !strstr(diag.message, cases[i].part) || table)
      fail_msg("%s: %d, \"%s\"", cases[i].text, (int)code, diag.message);
  }
  /* A document that is nested deeper than the reader goes. */
  enum { DEEP = 100000 };
  char *deep = malloc(DEEP + 1);
  memset(deep, '[', DEEP);
  deep[DEEP] = '\0';
  psplit_diag diag = {0};
  psplit_cost_table *table = NULL;
  assert_int_equal(psplit_cost_table_parse("f", deep, DEEP, &diag, &table), PSPLIT_MALFORMED);
  free(deep);
}

/* Times are the first device's: on another kind a node takes as much longer as its roofline does.
 */
static void another_device_is_as_much_slower_as_its_roofline(void **state) {
  (void)state;
  static const char text[] =
    "{\"devices\": [{\"name\": \"a\", \"preset\": \"cpu\"}, {\"name\": \"b\", "
    "\"flops_per_second\": "
    "{\"float32\": 9.6e9}, \"memory_bandwidth\": 1.6e9, \"overhead_ns\": 15000}]}";
  psplit_model *model = residual_block();
  psplit_diag diag = {0};
  psplit_devices *devices;
  psplit_planner *planner;
  int64_t ns[2][2][N_NODES]; /* by the roofline, by the file; on a, on b */
  assert_int_equal(psplit_devices_parse(text, strlen(text), &diag, &devices), PSPLIT_OK);
  psplit_cost_table *table = parsed_costs(
    OWN("\"complete\": true, \"costs\": [{\"nodes\": [\"/a/conv/Conv\"], \"ns\": 1000000}]"));
  for (int with = 0; with < 2; with++) {
    psplit_planner_options options;
    psplit_planner_options_init(&options);
    options.n_stages = 2;
    options.devices = devices;
    options.costs = (const psplit_cost_table *const *)&table;
    options.n_costs = (size_t)with;
    assert_int_equal(psplit_planner_create(model, &options, &diag, &planner), PSPLIT_OK);
    assert_int_equal(psplit_planner_run(planner, "infer-shapes,cost", &diag), PSPLIT_OK);
    for (uint32_t d = 0; d < 2; d++) psplit_planner_node_ns(planner, d, ns[with][d]);
    psplit_planner_destroy(planner);
  }
  const double slower = (double)ns[0][1][CONV1] / (double)ns[0][0][CONV1];
  assert_true(slower > 5);
  assert_int_equal(ns[1][0][CONV1], 1000000);
  assert_true(llabs(ns[1][1][CONV1] - (int64_t)(1e6 * slower)) <= 1);
  assert_int_equal(ns[1][1][CONV2], 0);
  psplit_cost_table_destroy(table);
  psplit_devices_destroy(devices);
  psplit_model_close(model);
}

/* Runtimes fold what follows from sizes that the file fixes, not from those that a caller tells the
 * planner: a session does not know them. */
static void what_follows_from_fixed_sizes_takes_no_time(void **state) {
  (void)state;
  enum { SHAPE, GATHER, CONCAT, SIZE, RESHAPE, N };
  static const psplit_dim_value one = {"batch", 1};
  static const struct {
    const char *size;
    bool given, folded;
  } cases[] = {{"1", false, true}, {"batch", false, false}, {"batch", true, false}};
  for (size_t c = 0; c < sizeof cases / sizeof *cases; c++) {
    char text[512];
    snprintf(text, sizeof text,
             "(float[%s,8,16,16] x) => (float[p,q] y, int64 n)"
             "<int64[1] which = {1}, int64[1] rest = {-1}> {"
             "  s = Shape (x) g = Gather (s, which)"
             "  to = Concat <axis = 0> (g, rest) n = Size (x) y = Reshape (x, to)"
             "}",
             cases[c].size);
    psplit_model *model = opened_text(text);
    psplit_planner_options options;
    psplit_planner_options_init(&options);
    options.dims = &one;
    options.n_dims = cases[c].given;
    psplit_diag diag = {0};
    psplit_planner *planner;
    int64_t ns[N];
    assert_int_equal(psplit_planner_create(model, &options, &diag, &planner), PSPLIT_OK);
    assert_int_equal(psplit_planner_run(planner, "infer-shapes,cost", &diag), PSPLIT_OK);
    psplit_planner_node_ns(planner, 0, ns);
    for (uint32_t n = SHAPE; n < SIZE; n++) assert_int_equal(ns[n] == 0, cases[c].folded);
    assert_true(ns[SIZE] > 0); /* which ONNX Runtime counts in each run */
    psplit_planner_destroy(planner);
    psplit_model_close(model);
  }
}

static void keep_line(void *user, psplit_severity severity, const char *line) {
  (void)severity;
  if (strstr(line, "the state ")) snprintf(user, PSPLIT_DIAG_BYTES, "%s", line);
}

/* All between what reads a state and what writes it shares a stage: where that is the work, the
 * user is told. */
static void a_state_that_holds_the_work_is_named(void **state) {
  (void)state;
  static const struct {
    const char *nodes;
    bool none, told;
  } cases[] = {
    {"a = Add (x, cache_in) b = MatMul (a, a) c = MatMul (b, b) cache_out = Add (c, x)"
     " y = Relu (c)",
     false, true},
    {"a = Add (x, cache_in) b = MatMul (a, a) c = MatMul (b, b) cache_out = Add (c, x)"
     " y = Relu (c)",
     true, false},
    {"cache_out = MatMul (x, cache_in) y = Relu (x)", false, false},
    {"cache_out = Add (x, cache_in) b = MatMul (cache_out, x) y = MatMul (b, b)", false, false},
    {"a = Neg (cache_in) b = MatMul (x, x) y = MatMul (b, b) cache_out = Relu (a)", false, false},
  };
  for (size_t c = 0; c < sizeof cases / sizeof *cases; c++) {
    char text[512], said[PSPLIT_DIAG_BYTES] = "";
    snprintf(text, sizeof text,
             "(float[64,64] x, float[64,64] cache_in) => (float[64,64] y, float[64,64] cache_out)"
             " { %s }",
             cases[c].nodes);
    psplit_model *model = opened_text(text);
    const psplit_logger logger = {.emit = keep_line, .user = said};
    psplit_planner_options options;
    psplit_planner_options_init(&options);
    options.n_stages = 2;
    options.no_states = cases[c].none;
    options.logger = &logger;
    psplit_diag diag = {0};
    psplit_planner *planner;
    assert_int_equal(psplit_planner_create(model, &options, &diag, &planner), PSPLIT_OK);
    assert_int_equal(psplit_planner_run(planner, "infer-shapes,cost", &diag), PSPLIT_OK);
    assert_int_equal(strstr(said, "cache_in") != NULL, cases[c].told);
    psplit_planner_destroy(planner);
    psplit_model_close(model);
  }
}

/* Whatever bytes a file has, it is taken or refused; what is taken gives times that can be. */
static void spoilt_files_are_taken_or_refused(void **state) {
  (void)state;
  static const char *const texts[] = {
    OWN("\"complete\": false, \"costs\": [{\"nodes\": [\"/a/conv/Conv\", \"/b/Add\"], \"ns\": 1e6},"
        "{\"outputs\": [\"y\"], \"workspace_bytes\": 77}]"),
    "[" KERNEL("r1_nchwc_token_4", "Conv", 10, 90) "," KERNEL(
      "fused /b/b.0/conv/Conv", "Conv", 20,
      60) "," KERNEL("/b/Add/SumFusion//XFusion/", "If", 30,
                     5) "," KERNEL("GlobalAveragePool_5", "GlobalAveragePool", 40, 4) "]",
    STATISTICS "/b/Add_7,1,2,3,4\n",
    "module,num_params,num_bytes,num_flops\na.conv,64,256,960\nb,1,2.5,3\n"};
  enum { ROUNDS = 2000 };
  psplit_model *model = residual_block();
  for (uint64_t seed = 0; seed < ROUNDS; seed++) {
    const char *text = texts[seed % 4];
    const size_t n = strlen(text);
    char *spoilt = strdup(text);
    for (uint64_t i = 0; i < 1 + seed % 3; i++) {
      const uint64_t r = psplit_i_splitmix64(seed, i);
      static const char bytes[] = "0129-.,:\"[]{}e_/\n \\";
      spoilt[(r >> 16) % n] = r % 3 ? bytes[(r >> 8) % (sizeof bytes - 1)] : (char)(r >> 40);
    }
    psplit_diag diag = {0};
    psplit_cost_table *table = NULL;
    psplit_planner_options options;
    psplit_planner *planner = NULL;
    psplit_planner_options_init(&options);
    if (psplit_cost_table_parse("f", spoilt, n, &diag, &table) == PSPLIT_OK) {
      options.costs = (const psplit_cost_table *const *)&table;
      options.n_costs = 1;
      assert_int_equal(psplit_planner_create(model, &options, &diag, &planner), PSPLIT_OK);
      if (psplit_planner_run(planner, "infer-shapes,cost", &diag) == PSPLIT_OK) {
        int64_t ns[N_NODES];
        psplit_planner_node_ns(planner, 0, ns);
        for (uint32_t i = 0; i < N_NODES; i++) assert_true(ns[i] >= 0);
      } else {
        assert_int_equal(diag.code, PSPLIT_INVALID);
      }
      psplit_planner_destroy(planner);
    }
    psplit_cost_table_destroy(table);
    free(spoilt);
  }
  psplit_model_close(model);
}

int main(void) {
  const struct CMUnitTest tests[] = {
    cmocka_unit_test(what_is_given_overrides_and_the_rest_is_scaled),
    cmocka_unit_test(a_complete_table_leaves_nothing_to_scale),
    cmocka_unit_test(a_later_table_overrides_an_earlier_one),
    cmocka_unit_test(a_profile_is_mapped_back),
    cmocka_unit_test(names_with_quotes_are_read),
    cmocka_unit_test(kernels_of_bodies_do_not_count_twice),
    cmocka_unit_test(a_nameless_kernel_gets_what_is_left_between),
    cmocka_unit_test(memory_statistics_give_workspaces_alone),
    cmocka_unit_test(olive_speaks_of_modules),
    cmocka_unit_test(what_matches_nothing_is_an_error),
    cmocka_unit_test(hostile_files_are_refused_with_the_place),
    cmocka_unit_test(another_device_is_as_much_slower_as_its_roofline),
    cmocka_unit_test(what_follows_from_fixed_sizes_takes_no_time),
    cmocka_unit_test(a_state_that_holds_the_work_is_named),
    cmocka_unit_test(spoilt_files_are_taken_or_refused),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
