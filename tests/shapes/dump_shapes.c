/* Prints what shape inference and costing say of a model, for the oracle test and for a first look.
 *   dump_shapes MODEL [--bind NAME=VALUE]... [--eval NAME=VALUE]... [--costs] [--quiet]
 * --bind fixes a symbol before inference, --eval only when expressions are evaluated. One line per
 * value, tab-separated: name, data type number, rank or -1, then each dimension as a number or "?"
 * with its expression after it: "V <name> <type> <rank> <dim>=<expression> ...". "F <why>" says why
 * no runtime takes the model. --costs prints one line per node, --quiet only totals. Bytes below 33
 * and '%' of a name are written as %XX. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "../../tools/exit_status.h"
#include "shape.h"
#include "work.h"

static void print_name(const char *name) {
  for (const unsigned char *c = (const unsigned char *)name; *c; c++)
    if (*c < 33 || *c == '%')
      printf("%%%02X", *c);
    else
      putchar(*c);
}

static void say(void *user, psplit_severity severity, const char *line) {
  (void)user;
  (void)severity;
  fprintf(stderr, "%s\n", line);
}

static double now(void) {
  struct timespec time;
  clock_gettime(CLOCK_MONOTONIC, &time);
  return (double)time.tv_sec + (double)time.tv_nsec * 1e-9;
}

static void print_values(const psplit_i_shapes *shapes, const psplit_i_costs *costs) {
  const psplit_i_graph *graph = psplit_i_shapes_graph(shapes);
  for (uint32_t v = 0; v < graph->n_values; v++) {
    const psplit_i_vtype *type = psplit_i_shapes_type(shapes, v);
    printf("V\t");
    print_name(graph->values[v].name);
    printf("\t%d\t%" PRId32 "\t%d\t%d", type->kind, type->elem, type->rank, type->declared_wrong);
    for (int32_t i = 0; i < type->rank; i++) {
      int64_t size;
      psplit_i_text text = {0};
      psplit_i_dim_print(psplit_i_shapes_dims(shapes), type->dims[i], &text);
      if (psplit_i_costs_dim(costs, type->dims[i], &size))
        printf("\t%" PRId64 "=", size);
      else
        printf("\t?=");
      print_name(text.bytes ? text.bytes : "");
      psplit_i_text_fini(&text);
    }
    putchar('\n');
  }
}

static void print_fault(const char *fault) {
  if (!fault) return;
  printf("F\t");
  print_name(fault);
  putchar('\n');
}

static void print_costs(const psplit_i_graph *graph, const psplit_i_costs *costs) {
  for (uint32_t i = 0; i < graph->n_nodes; i++) {
    const uint32_t n = graph->topo[i];
    const psplit_work work = psplit_i_costs_node(costs, n);
    char label[128];
    printf("N\t");
    print_name(psplit_i_node_label(graph, n, label, sizeof label));
    printf("\t%s\t%s\tflops %" PRIu64 "\tread %" PRIu64 "\twritten %" PRIu64 "\tweights %" PRIu64
           "\tlaunches %" PRIu32 "\t%s%s\n",
           graph->nodes[n].op_type, psplit_op_class_name(work.op_class), work.flops,
           work.bytes_read, work.bytes_written, work.weight_bytes, work.launches,
           work.known ? "known" : "unknown",
           psplit_i_costs_node_assumed(costs, n) ? " assumed" : "");
  }
}

int main(int argc, char **argv) {
  psplit_i_binding bound[64], evaluated[64];
  size_t n_bound = 0, n_evaluated = 0;
  bool with_costs = false, quiet = false;
  int64_t assume = -1;
  if (argc < 2) return 2;
  for (int i = 2; i < argc; i++) {
    if (strcmp(argv[i], "--costs") == 0)
      with_costs = true;
    else if (strcmp(argv[i], "--quiet") == 0)
      quiet = true;
    else if (strcmp(argv[i], "--assume") == 0 && i + 1 < argc)
      assume = atoll(argv[++i]);
    else if (i + 1 < argc && strchr(argv[i + 1], '=')) {
      const bool bind = strcmp(argv[i], "--bind") == 0;
      char *equals = strrchr(argv[++i], '=');
      *equals = 0;
      const psplit_i_binding binding = {argv[i], atoll(equals + 1)};
      if (bind && n_bound < 64)
        bound[n_bound++] = binding;
      else if (n_evaluated < 64)
        evaluated[n_evaluated++] = binding;
    }
  }
  psplit_diag diag = {0};
  psplit_model *model = NULL;
  psplit_i_shapes *shapes = NULL;
  psplit_i_costs *costs = NULL;
  const psplit_logger logger = {.emit = say};
  const double start = now();
  psplit_code code = psplit_model_open(argv[1], NULL, &diag, &model);
  if (code != PSPLIT_OK) goto out;
  const double opened = now();
  code =
    psplit_i_shapes_create(psplit_i_model_graph(model), bound, n_bound, &logger, &diag, &shapes);
  if (code != PSPLIT_OK) goto out;
  const double inferred = now();
  const psplit_i_cost_options options = {evaluated, n_evaluated, assume, assume};
  code = psplit_i_costs_create(shapes, &options, &diag, &costs);
  if (code != PSPLIT_OK) goto out;
  const double costed = now();
  if (!quiet) print_values(shapes, costs);
  print_fault(psplit_i_shapes_fault(shapes));
  print_fault(psplit_i_shapes_size_fault(shapes));
  if (with_costs) print_costs(psplit_i_model_graph(model), costs);
  psplit_work sum = {0};
  for (uint32_t n = 0; n < psplit_i_model_graph(model)->n_nodes; n++) {
    const psplit_work work = psplit_i_costs_node(costs, n);
    sum.flops += work.flops;
    sum.bytes_read += work.bytes_read;
    sum.bytes_written += work.bytes_written;
  }
  fprintf(stderr,
          "nodes %" PRIu32 " expressions %" PRIu32 " uncovered %" PRIu32 " unknown %" PRIu32
          " assumed %" PRIu32 " flops %" PRIu64 " read %" PRIu64 " written %" PRIu64
          " open %.3f infer %.3f cost %.3f s\n",
          psplit_i_model_graph(model)->n_nodes, psplit_i_dims_count(psplit_i_shapes_dims(shapes)),
          psplit_i_shapes_n_uncovered(shapes), psplit_i_costs_n_unknown(costs),
          psplit_i_costs_n_assumed(costs), sum.flops, sum.bytes_read, sum.bytes_written,
          opened - start, inferred - opened, costed - inferred);
  const char *missing;
  for (uint32_t i = 0; (missing = psplit_i_costs_missing(costs, i)); i++)
    fprintf(stderr, "missing %s\n", missing);
out:
  if (code != PSPLIT_OK) fprintf(stderr, "error: %s\n", diag.message);
  psplit_i_costs_destroy(costs);
  psplit_i_shapes_destroy(shapes);
  psplit_model_close(model);
  return code == PSPLIT_OK ? 0 : cli_exit_status(code);
}
