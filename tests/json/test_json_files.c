/* Why: whoever writes a file by hand reads what is wrong with it in one line, and that line names
 * the place. One table for all kinds of JSON that are read; ' stands for ". */
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include <psplit/cost_table.h>
#include <psplit/devices.h>
#include <psplit/partition.h>

#include "failing.h"
#include "manifest.h"
#include "scratch.h"

typedef enum file_kind { DEVICES, COSTS, PROBLEM, MANIFEST } file_kind;

static char *with_quotes(const char *text) {
  char *json = strdup(text);
  assert_non_null(json);
  for (char *c = json; *c; c++)
    if (*c == '\'') *c = '"';
  return json;
}

static psplit_code read_manifest(psplit_diag *diag) {
  psplit_i_arena arena;
  psplit_i_manifest manifest;
  psplit_i_arena_init(&arena, 0);
  const psplit_code code = psplit_i_manifest_read(".", 0, &arena, diag, &manifest);
  psplit_i_arena_fini(&arena);
  return code;
}

/* A manifest is in the file that is read. */
static psplit_code read_as(file_kind kind, const char *json, psplit_diag *diag) {
  const size_t n = strlen(json);
  psplit_devices *devices = NULL;
  psplit_cost_table *costs = NULL;
  psplit_problem *problem = NULL;
  psplit_code code = PSPLIT_INTERNAL;
  switch (kind) {
    case DEVICES: code = psplit_devices_parse(json, n, diag, &devices); break;
    case COSTS: code = psplit_cost_table_parse("costs", json, n, diag, &costs); break;
    case PROBLEM: code = psplit_problem_parse_json(json, n, "problem", diag, &problem); break;
    case MANIFEST: code = read_manifest(diag); break;
  }
  const bool made = devices || costs || problem;
  psplit_devices_destroy(devices);
  psplit_cost_table_destroy(costs);
  psplit_problem_destroy(problem);
  if (code != PSPLIT_OK && made) fail_msg("%s: both made and refused", json);
  return code;
}

static void put(file_kind kind, const char *json) {
  FILE *file = kind == MANIFEST ? fopen("pipeline.json", "wb") : NULL;
  if (kind != MANIFEST) return;
  assert_non_null(file);
  assert_int_equal(fwrite(json, 1, strlen(json), file), strlen(json));
  assert_int_equal(fclose(file), 0);
}

#define ONE "{'devices': [{'name': 'a', 'preset': 'cpu'"
#define OWN "{'format': 'onnx-pipeline-split-costs', 'version': 1, "
#define PIPER "{'maxDevices': 2, 'maxMemoryPerDevice': 1, 'bandwidth': 1, 'edges': [], "
#define SPLIT "{'format': 'psplit-problem', 'devices': [{}], "
#define NODES "'nodes': [{'id': 7, 'time_ns': 1}, {'id': 8, 'time_ns': 2}]"
#define EDGES(list)                                           \
  "{'maxFPGAs': 2, 'edges': [" list                           \
  "], 'nodes': [{'id': 5, 'fpgaLatency': 1, 'cpuLatency': 1," \
  " 'supportedOnFpga': 1, 'size': 0}]}"
#define FILE_OF(stages, rest)                                                                      \
  "{'format': 'onnx-pipeline-split', 'version': 1, 'boundary': 'io', 'inputs': [], 'outputs': []," \
  " 'stages': [" stages "], 'plan': {'cost_source': 'analytic'}, " rest "}"
#define STAGE(inputs, outputs)                                                            \
  "{'index': 0, 'file': 'stage0.onnx', 'device': 'a', 'nodes': 1, 'duplicated_nodes': 0," \
  " 'inputs': [" inputs "], 'outputs': [" outputs "]}"
#define NO_STAGE_BUT "'nodes': 1, 'duplicated_nodes': 0, 'device': 'a', 'inputs': [], 'outputs': []"

static const struct {
  file_kind kind;
  psplit_code code;
  const char *text, *line;
} bad_files[] = {
  {DEVICES, PSPLIT_MALFORMED, "{'a': 1,}", "line 1, column 9: string or '}' expected near '}'"},
  {DEVICES, PSPLIT_MALFORMED, "{'devices': [], 'devices': []}",
   "line 1, column 25: duplicate object key near '\"devices\"'"},
  {DEVICES, PSPLIT_INVALID, "[1]", "file: must be an object, not an array"},
  {DEVICES, PSPLIT_INVALID, "{}", "devices: is missing"},
  {DEVICES, PSPLIT_INVALID, "{'devices': 3}", "devices: must be an array that is not empty, not 3"},
  {DEVICES, PSPLIT_INVALID, "{'format': 'x', 'devices': []}",
   "format: must be \"onnx-pipeline-split-devices\", not \"x\""},
  {DEVICES, PSPLIT_INVALID, ONE "}], 'version': 2}", "version: must be 1, not 2"},
  {DEVICES, PSPLIT_INVALID, ONE "}], 'link': []}", "link: unknown key; did you mean links?"},
  {DEVICES, PSPLIT_INVALID, ONE ", 'memory_byte': 1}]}",
   "devices[0].memory_byte: unknown key; did you mean memory_bytes?"},
  {DEVICES, PSPLIT_INVALID, ONE "}], 'topology': {'x': {}}}",
   "topology.x: unknown key; keys are: same_host, same_rack, anywhere"},
  {DEVICES, PSPLIT_INVALID, ONE ", 'memory_bytes': '8 GiB'}]}",
   "devices[0].memory_bytes: must be an integer from 0, not \"8 GiB\""},
  {DEVICES, PSPLIT_INVALID, ONE ", 'memory_bytes': -1}]}",
   "devices[0].memory_bytes: must be an integer from 0, not -1"},
  {DEVICES, PSPLIT_INVALID, ONE ", 'name2': 1}, {'name': ''}]}",
   "devices[0].name2: unknown key; did you mean name?"},
  {DEVICES, PSPLIT_INVALID, ONE "}, {'name': ''}]}",
   "devices[1].name: must be a string that is not empty, not \"\""},
  {DEVICES, PSPLIT_INVALID, ONE "}, null]}", "devices[1]: must be an object, not null"},
  {DEVICES, PSPLIT_INVALID, ONE ", 'session': {'threads': 0}}]}",
   "devices[0].session.threads: must be an integer from 1 to 4096, not 0"},
  {DEVICES, PSPLIT_INVALID, ONE ", 'session': {'optimization': 3}}]}",
   "devices[0].session.optimization: must be 0, 1, 2 or 99, not 3"},
  {DEVICES, PSPLIT_INVALID, ONE ", 'session': {'config': {'a.b': 1.5}}}]}",
   "devices[0].session.config.a.b: must be a string or an integer, not 1.5"},
  {DEVICES, PSPLIT_INVALID, ONE ", 'efficiency': {'conv': 2}}]}",
   "devices[0].efficiency.conv: must be a number above 0 up to 1, not 2"},
  {DEVICES, PSPLIT_INVALID, ONE "}], 'links': [{'from': 'a', 'to': 'b'}]}",
   "links[0].to: must be the name of one of the devices, not \"b\""},
  {DEVICES, PSPLIT_INVALID, ONE "}], 'links': [{'from': 'a'}]}", "links[0].to: is missing"},

  {COSTS, PSPLIT_MALFORMED, "{",
   "costs: line 1, column 1: string or '}' expected near end of file; a profile is whole only once "
   "its session has ended it"},
  {COSTS, PSPLIT_INVALID, OWN "'costs': {}}", "costs: costs: must be an array, not an object"},
  {COSTS, PSPLIT_INVALID, OWN "'dims': {'n': true}, 'costs': []}",
   "costs: dims.n: must be an integer from 0, not true"},
  {COSTS, PSPLIT_INVALID, OWN "'costs': [{'nodes': ['a'], 'ns': 1}, {'nodes': ['a', 2]}]}",
   "costs: costs[1].nodes[1]: must be a string that is not empty, not 2"},
  {COSTS, PSPLIT_INVALID, OWN "'costs': [{'nodes': ['a'], 'nss': 1}]}",
   "costs: costs[0].nss: unknown key; did you mean ns?"},
  {COSTS, PSPLIT_INVALID, OWN "'costs': [{'nodes': ['a'], 'ns': -1}]}",
   "costs: costs[0].ns: must be a number from 0 to 1e+18, not -1"},
  {COSTS, PSPLIT_INVALID, "{'traceEvents': [{}, {'cat': 'Node', 'name': 'a_kernel_time'}]}",
   "costs: traceEvents[1].dur: is missing"},

  {PROBLEM, PSPLIT_MALFORMED, "{", "problem:1:1: string or '}' expected near end of file"},
  {PROBLEM, PSPLIT_INVALID, "[]", "problem: must be an object, not an array"},
  {PROBLEM, PSPLIT_INVALID, "{}",
   "problem: neither \"format\": \"psplit-problem\" nor a dnn-partitioning problem (\"maxFPGAs\") "
   "nor one of Piper (\"maxDevices\")"},
  {PROBLEM, PSPLIT_INVALID, PIPER "'nodes': [{'TMPCs': {'2': []}}]}",
   "problem: nodes[0].TMPCs.1: is missing"},
  {PROBLEM, PSPLIT_INVALID, PIPER "'nodes': [{'TMPCs': {'1': []}}]}",
   "problem: nodes[0].TMPCs.1: must not be empty"},
  {PROBLEM, PSPLIT_UNSUPPORTED, SPLIT "'version': 2}", "problem: version: is not 1"},
  {PROBLEM, PSPLIT_INVALID, SPLIT "'comm': 'both'}",
   "problem: comm: must be \"p2p\" or \"shared\", not \"both\""},
  {PROBLEM, PSPLIT_INVALID, SPLIT "'overlap': 'no'}",
   "problem: overlap: must be true or false, not \"no\""},
  {PROBLEM, PSPLIT_INVALID, SPLIT "'nodes': [{'id': 7, 'time_ns': 1}, {'id': 8}]}",
   "problem: nodes[1].time_ns: is missing"},
  {PROBLEM, PSPLIT_INVALID, SPLIT "'nodes': [{'time_ns': [1, 2]}]}",
   "problem: nodes[0].time_ns: must be an array of 1, not of 2"},
  {PROBLEM, PSPLIT_INVALID, SPLIT "'nodes': [{'time_ns': -1}]}",
   "problem: nodes[0].time_ns: must be an integer from 0, not -1"},
  {PROBLEM, PSPLIT_INVALID, SPLIT "'nodes': [{'time_ns': 1, 'id': 3}, {'time_ns': 1, 'id': 3}]}",
   "problem: nodes: two nodes have the id 3"},
  {PROBLEM, PSPLIT_INVALID, SPLIT NODES ", 'tensors': [{'producer': 7, 'consumers': [8, 9]}]}",
   "problem: tensors[0].consumers[1]: must be the id of a node, not 9"},
  {PROBLEM, PSPLIT_INVALID, SPLIT NODES ", 'tensors': [{'producer': 7}]}",
   "problem: tensors[0].consumers: is missing"},
  {PROBLEM, PSPLIT_INVALID, SPLIT NODES ", 'order': [[7, 8], [8]]}",
   "problem: order[1]: must be an array of 2, not of 1"},
  {PROBLEM, PSPLIT_INVALID, SPLIT NODES ", 'weights': [{'bytes': 1, 'users': 7}]}",
   "problem: weights[0].users: must be an array, not 7"},
  {PROBLEM, PSPLIT_INVALID, SPLIT NODES ", 'links': []}",
   "problem: links: must be an array of 1, not of 0"},
  {PROBLEM, PSPLIT_INVALID, EDGES("{'sourceId': 5, 'cost': 0}"),
   "problem: edges[0].destId: is missing"},
  {PROBLEM, PSPLIT_INVALID, EDGES("{'sourceId': 5, 'destId': 5, 'cost': 'x'}"),
   "problem: edges[0].cost: must be a number from 0 to 2.30584e+09, not \"x\""},

  {MANIFEST, PSPLIT_MALFORMED, "x", "./pipeline.json:1:1: not JSON: '[' or '{' expected near 'x'"},
  {PROBLEM, PSPLIT_MALFORMED, "\b\a\"\a\001\002\003\004\005",
   "problem: not JSON: it is an ONNX model"},
  {DEVICES, PSPLIT_MALFORMED, "ab\001\002\003\004\005", "not JSON: it is not a text"},
  {MANIFEST, PSPLIT_INVALID, "{}", "./pipeline.json: format: is missing"},
  {MANIFEST, PSPLIT_UNSUPPORTED, "{'format': 'onnx-pipeline-split', 'version': 2}",
   "./pipeline.json: is not of format onnx-pipeline-split, version 1"},
  {MANIFEST, PSPLIT_UNSUPPORTED, "{'format': 'onnx-pipeline-split-costs', 'version': 1}",
   "./pipeline.json: is not of format onnx-pipeline-split, version 1"},
  {MANIFEST, PSPLIT_UNSUPPORTED, "{'format': 'onnx-pipeline-split', 'version': '1'}",
   "./pipeline.json: is not of format onnx-pipeline-split, version 1"},
  {MANIFEST, PSPLIT_INVALID, FILE_OF("", "'transfers': []"),
   "./pipeline.json: stages: must not be empty"},
  {MANIFEST, PSPLIT_INVALID,
   FILE_OF("{'index': 1, 'file': 'a', " NO_STAGE_BUT "}", "'transfers': []"),
   "./pipeline.json: stages[0].index: must be 0, not 1"},
  {MANIFEST, PSPLIT_INVALID,
   FILE_OF("{'index': 0, 'file': '../a', " NO_STAGE_BUT "}", "'transfers': []"),
   "./pipeline.json: stages[0].file: must be a plain name, not \"../a\""},
  {MANIFEST, PSPLIT_INVALID,
   FILE_OF(STAGE("{'name': 'x', 'tensor': 'x', 'from': 'model'}, {'tensor': 'y'}", ""),
           "'transfers': []"),
   "./pipeline.json: stages[0].inputs[1].name: is missing"},
  {MANIFEST, PSPLIT_INVALID,
   FILE_OF(STAGE("{'name': 'x', 'tensor': 'x', 'from': 1}", ""), "'transfers': []"),
   "./pipeline.json: stages[0].inputs[0].from: must be 0, not 1"},
  {MANIFEST, PSPLIT_INVALID,
   FILE_OF(STAGE("", "{'name': 'x', 'tensor': 'x', 'to': ['model', 'stage']}"), "'transfers': []"),
   "./pipeline.json: stages[0].outputs[0].to[1]: must be a stage or \"model\", not \"stage\""},
  {MANIFEST, PSPLIT_INVALID, FILE_OF(STAGE("", ""), "'transfers': [{'tensor': 'x'}]"),
   "./pipeline.json: transfers[0].bytes: is missing"},
  {MANIFEST, PSPLIT_INVALID,
   FILE_OF(STAGE("", ""),
           "'transfers': [{'tensor': 'x', 'dtype': 'int8', 'tag': 0, 'from': 0,"
           " 'to': 0, 'bytes': null, 'shape': [null, 'n', 3, -1]}]"),
   "./pipeline.json: transfers[0].shape[3]: must be an integer from 0, not -1"},
  {MANIFEST, PSPLIT_INVALID,
   FILE_OF("{'index': 0, 'file': '.a', " NO_STAGE_BUT "}", "'transfers': []"),
   "./pipeline.json: stages[0].file: must be a plain name, not \".a\""},
  {MANIFEST, PSPLIT_INVALID,
   FILE_OF("{'index': 0, 'file': 'a/../../b', " NO_STAGE_BUT "}", "'transfers': []"),
   "./pipeline.json: stages[0].file: must be a plain name, not \"a/../../b\""},
  {MANIFEST, PSPLIT_INVALID,
   FILE_OF("{'index': 0, 'file': '/a', " NO_STAGE_BUT "}", "'transfers': []"),
   "./pipeline.json: stages[0].file: must be a plain name, not \"/a\""},
  {MANIFEST, PSPLIT_INVALID,
   FILE_OF("{'index': 0, 'file': 'a', 'replicas': 2, 'devices': ['a'], " NO_STAGE_BUT "}",
           "'transfers': []"),
   "./pipeline.json: stages[0].devices: does not hold a device for each replica"},
  {MANIFEST, PSPLIT_INVALID,
   FILE_OF("{'index': 0, 'file': 'a', 'replicas': 2, 'devices': [1, 'a'], " NO_STAGE_BUT "}",
           "'transfers': []"),
   "./pipeline.json: stages[0].devices[0]: must be a string, not 1"},
  {MANIFEST, PSPLIT_INVALID, FILE_OF(STAGE("", ""), "'transfers': [], 'files': ['a', '']"),
   "./pipeline.json: files: holds what is not a name of a file"},
  {MANIFEST, PSPLIT_INVALID, FILE_OF(STAGE("", ""), "'transfers': [], 'files': ['a/b', 'a']"),
   "./pipeline.json: files: holds what is not a name of a file"},
  {MANIFEST, PSPLIT_INVALID, FILE_OF(STAGE("", ""), "'transfers': [], 'files': [true, 'a']"),
   "./pipeline.json: files[0]: must be a string, not true"},
  {MANIFEST, PSPLIT_INVALID, FILE_OF(STAGE("", ""), "'transfers': [], 'files': [false]"),
   "./pipeline.json: files[0]: must be a string, not false"},
};

static void every_line_names_the_place(void **state) {
  (void)state;
  for (size_t i = 0; i < sizeof bad_files / sizeof *bad_files; i++) {
    psplit_diag diag = {0};
    char *json = with_quotes(bad_files[i].text);
    put(bad_files[i].kind, json);
    const psplit_code code = read_as(bad_files[i].kind, json, &diag);
    if (code != bad_files[i].code || strcmp(diag.message, bad_files[i].line) != 0)
      fail_msg("%s\n%s: %s\nwanted: %s", json, psplit_code_name(code), diag.message,
               bad_files[i].line);
    free(json);
  }
}

static const struct {
  file_kind kind;
  const char *text;
} good_files[] = {
  {DEVICES,
   ONE ", 'efficiency': {'conv': 0.5}, 'flops_per_second': {'int8': 1}, 'host': 'h', 'session':"
       " {'provider': 'P', 'provider_options': {'a': 1, 'b': '2'}, 'config': {'c': 'd'}}}],"
       " 'topology': {'same_host': {'latency_ns': 1}},"
       " 'links': []}"},
  {COSTS, OWN "'dims': {'n': 4}, 'costs': [{'nodes': ['a', 'b'], 'kernel': 'k', 'ns': 1}]}"},
  {PROBLEM, SPLIT NODES
   ", 'tensors': [{'producer': 7, 'consumers': [8], 'bytes': 3}], 'order': [[7, 8]], 'weights':"
   " [{'bytes': 1, 'users': [7, 8]}], 'links': [{'latency_ns': 1, 'bytes_per_s': 1}]}"},
  {PROBLEM, EDGES("")},
  {MANIFEST, FILE_OF(STAGE("{'name': 'x', 'tensor': 'x', 'from': 'model'}",
                           "{'name': 'y', 'tensor': 'y', 'to': [0, 'model']}"),
                     "'transfers': [{'tensor': 'x', 'dtype': 'int8', 'tag': 0, 'from': 0, 'to': 0,"
                     " 'bytes': null, 'shape': [null, 'n', 3]}], 'duplicates': [{'index': 0,"
                     " 'stage': 0, 'also': [0]}], 'inlined': [{'node': 'n', 'condition': 'c',"
                     " 'branch': 'then', 'assumed': true}]")},
  {MANIFEST,
   FILE_OF("{'index': 0, 'file': 'a', 'replicas': 2, 'devices': ['a', 'b'], " NO_STAGE_BUT "}",
           "'transfers': [], 'files': ['a', 'b.data']")},
};

/* Allocations fail one after the other. */
static void memory_that_runs_out_is_told(void **state) {
  (void)state;
  for (size_t f = 0; f < sizeof good_files / sizeof *good_files; f++) {
    char *json = with_quotes(good_files[f].text);
    bool reached = true;
    put(good_files[f].kind, json);
    for (long i = 0; reached; i++) {
      psplit_diag diag = {0};
      const long live_before = live_blocks();
      fail_allocation_after(i);
      const psplit_code code = read_as(good_files[f].kind, json, &diag);
      reached = stop_failing();
      if (code != (reached ? PSPLIT_NOMEM : PSPLIT_OK) || live_blocks() != live_before)
        fail_msg("%s\nallocation %ld: %s %s, %ld blocks stay", json, i, psplit_code_name(code),
                 diag.message, live_blocks() - live_before);
      if (!reached && i < 2) fail_msg("%s\nonly %ld allocations", json, i);
    }
    free(json);
  }
}

/* The end of a path is what tells most. */
static void long_paths_keep_their_end(void **state) {
  (void)state;
  char json[2000] =
    "{\"devices\": [{\"name\": \"a\", \"preset\": \"cpu\", \"session\": {\"config\": {\"";
  size_t n = strlen(json);
  memset(json + n, 'k', 1500);
  memcpy(json + n + 1500, "\": null}}}]}", sizeof "\": null}}}]}");
  psplit_diag diag = {0};
  assert_int_equal(read_as(DEVICES, json, &diag), PSPLIT_INVALID);
  assert_non_null(strstr(diag.message, "devices[0].session.config.kkkk"));
  assert_non_null(strstr(diag.message, ": must be a string or an integer, not null"));
  assert_true(strlen(diag.message) < 300);
}

int main(void) {
  const struct CMUnitTest tests[] = {
    cmocka_unit_test_setup_teardown(every_line_names_the_place, enter_scratch, leave_scratch),
    cmocka_unit_test_setup_teardown(memory_that_runs_out_is_told, enter_scratch, leave_scratch),
    cmocka_unit_test(long_paths_keep_their_end),
  };
  return cmocka_run_group_tests_name("json-files", tests, NULL, NULL);
}
