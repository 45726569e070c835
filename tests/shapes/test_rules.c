/* Rules of shape inference by tables of nodes: test_rules FILE...; with --print the files as they
 * would be if all that is inferred were right, which a change of a rule is reviewed by.
 *
 * A file is blocks with an empty line between them:
 *
 *   # what the rule does there
 *   17 (float[b,s] x) <int64 i = {0}> y, z = Op <axis = 1> (x, i)
 *   = y float32[b, s]
 *   = z int64[?]
 *   ! what no runtime takes of it
 *
 * The number is the operator set of ai.onnx; inputs, perhaps constants in <>, and nodes are written
 * as in docs/text-form.md, until the first line that begins with = or !. Sizes that nobody knows
 * are numbered within their block. A line with ! must stand where a fault is found. */
#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "open.h"
#include "shape.h"
#include "work.h"

typedef struct block {
  psplit_i_text nodes, values, expected; /* `values`: names, comma-separated */
  int line;
} block;

static void end(const char *what) {
  fprintf(stderr, "test_rules: %s\n", what);
  exit(1);
}

/* Behind the bracketed part that begins at `text`; `text` itself where none begins. */
static const char *behind(const char *text, char open, char close) {
  if (*text != open) return text;
  int depth = 0;
  do {
    depth += *text == open ? 1 : *text == close ? -1 : 0;
    text++;
  } while (*text && depth > 0);
  return text;
}
static psplit_model *model_of(const block *b) {
  char *text;
  const long opset = strtol(b->nodes.bytes, &text, 10);
  text += strspn(text, " ");
  const char *constants = behind(text, '(', ')');
  const char *inputs_end = constants;
  constants += strspn(constants, " \n");
  const char *nodes = behind(constants, '<', '>');
  psplit_i_text whole = {0};
  psplit_i_text_addf(&whole,
                     "<ir_version: 8, opset_import: [\"\": %ld, \"com.microsoft\": 1, "
                     "\"ai.onnx.ml\": 5, \"ai.onnx.preview.training\": 1, \"onnx.brevitas\": 1, "
                     "\"qonnx.custom_op.general\": 1, \"finn.custom_op.general\": 1]>\n"
                     "%.*s => (%s) %.*s {%s}",
                     opset, (int)(inputs_end - text), text, b->values.bytes,
                     (int)(nodes - constants), constants, nodes);
  psplit_model *model = opened_text(whole.bytes);
  psplit_i_text_fini(&whole);
  return model;
}

/* Adds a printed type with its unknown sizes, ?7, counted on from *n. */
static void add_numbered(psplit_i_text *to, const char *type, long *known, long *n) {
  while (*type) {
    if (*type == '?' && isdigit((unsigned char)type[1])) {
      char *end;
      const long number = strtol(type + 1, &end, 10);
      long i = 0;
      while (i < *n && known[i] != number) i++;
      if (i == *n && *n < 64) known[(*n)++] = number;
      psplit_i_text_addf(to, "?%ld", i);
      type = end;
    } else {
      psplit_i_text_addf(to, "%c", *type++);
    }
  }
}

static void infer(const block *b, psplit_i_text *out) {
  psplit_model *model = model_of(b);
  psplit_diag diag = {0};
  psplit_i_shapes *shapes;
  if (psplit_i_shapes_create(psplit_i_model_graph(model), NULL, 0, NULL, &diag, &shapes) !=
      PSPLIT_OK) {
    psplit_i_text_addf(out, "! %s\n", diag.message);
    psplit_model_close(model);
    return;
  }
  char *names = strdup(b->values.bytes);
  long known[64], n = 0;
  for (char *name = strtok(names, ", "); name; name = strtok(NULL, ", ")) {
    const uint32_t id = psplit_i_graph_find_value(psplit_i_shapes_graph(shapes), name);
    psplit_i_text type = {0};
    if (id != PSPLIT_NONE) psplit_i_shapes_print(shapes, psplit_i_shapes_type(shapes, id), &type);
    psplit_i_text_addf(out, "= %s ", name);
    add_numbered(out, type.bytes ? type.bytes : "no such value", known, &n);
    psplit_i_text_puts(out, "\n");
    psplit_i_text_fini(&type);
  }
  free(names);
  const char *faults[] = {psplit_i_shapes_fault(shapes), psplit_i_shapes_size_fault(shapes)};
  for (size_t i = 0; i < 2; i++)
    if (faults[i]) psplit_i_text_addf(out, "! %s\n", faults[i]);
  /* Work is counted of any node, whatever is known of it. */
  psplit_i_costs *costs;
  const psplit_i_cost_options options = {NULL, 0, 2, 2};
  if (psplit_i_costs_create(shapes, &options, NULL, &costs) != PSPLIT_OK) end("no costs");
  psplit_i_costs_destroy(costs);
  psplit_i_shapes_destroy(shapes);
  psplit_model_close(model);
}

/* Infers a finished block; false where something else is expected. */
static bool run(block *b, const char *file, bool print) {
  bool right = true;
  if (b->nodes.n) {
    psplit_i_text found = {0};
    infer(b, &found);
    if (print)
      printf("%s%s", b->nodes.bytes, found.bytes);
    else if (strcmp(found.bytes, b->expected.bytes) != 0) {
      right = false;
      printf("# %s:%d: expected\n%s# found\n%s", file, b->line, b->expected.bytes, found.bytes);
    }
    psplit_i_text_fini(&found);
  }
  psplit_i_text_fini(&b->nodes);
  psplit_i_text_fini(&b->values);
  psplit_i_text_fini(&b->expected);
  *b = (block){.line = 0};
  return right;
}

/* Adds a line to a block. */
static void add_line(block *b, const char *line) {
  if (*line == '=') {
    const char *name = line + 2;
    psplit_i_text_addf(&b->values, "%s%.*s", b->values.n ? ", " : "", (int)strcspn(name, " \n"),
                       name);
  }
  psplit_i_text_puts(*line == '=' || *line == '!' ? &b->expected : &b->nodes, line);
}

static uint32_t run_file(const char *path, bool print, uint32_t *n_blocks) {
  FILE *file = fopen(path, "r");
  if (!file) end(path);
  char line[4096];
  block b = {.line = 0};
  uint32_t n_wrong = 0;
  for (int number = 1; fgets(line, sizeof line, file); number++) {
    if (*line == '\n' || *line == '#') {
      n_wrong += !run(&b, path, print);
      if (print) fputs(line, stdout);
      continue;
    }
    if (!b.nodes.n) {
      b.line = number;
      ++*n_blocks;
    }
    add_line(&b, line);
  }
  n_wrong += !run(&b, path, print);
  fclose(file);
  return n_wrong;
}

int main(int argc, char **argv) {
  const bool print = argc > 1 && strcmp(argv[1], "--print") == 0;
  uint32_t n_wrong = 0;
  if (!print) printf("1..%d\n", argc - 1);
  for (int i = print ? 2 : 1; i < argc; i++) {
    uint32_t n_blocks = 0;
    const uint32_t wrong = run_file(argv[i], print, &n_blocks);
    if (!print) printf("%sok %d - %s, %u blocks\n", wrong ? "not " : "", i, argv[i], n_blocks);
    n_wrong += wrong;
  }
  return n_wrong ? 1 : 0;
}
