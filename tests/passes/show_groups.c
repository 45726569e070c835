/* Prints where each node of a model ends up: what tests read to see groups.
 *   show_groups MODEL K [--patterns FILE] [--passes PIPELINE] [NAME=VALUE]...
 * One line a node, in the order of the file:
 *   NODE GROUP STAGES OP
 * GROUP is "-" for functions of constants and "dead" for what reaches no output; STAGES is the
 * stages that hold the node, owner first, joined by ','. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "../../tools/exit_status.h"
#include "planner.h"

enum { MAX_DIMS = 32 };

static void print_stages(const psplit_plan *plan, uint32_t node) {
  if (!plan) {
    fputs("-", stdout);
    return;
  }
  printf("%" PRIu32, plan->node_stage[node]);
  for (uint32_t c = 0; c < plan->n_copies; c++)
    if (plan->copies[c].node == node) printf(",%" PRIu32, plan->copies[c].stage);
}

static void print_nodes(const psplit_planner *planner) {
  const psplit_i_graph *graph = planner->graph;
  const psplit_plan *plan = psplit_planner_plan(planner);
  uint32_t *group = calloc((size_t)graph->n_nodes + 1, sizeof *group);
  if (!group) abort();
  psplit_i_grouping_number(&planner->grouping, group);
  for (uint32_t n = 0; n < graph->n_nodes; n++) {
    printf("%" PRIu32 " ", n);
    if (planner->node_flags[n] & PSPLIT_I_NODE_DEAD)
      fputs("dead", stdout);
    else if (group[n] == PSPLIT_NONE)
      fputs("-", stdout);
    else
      printf("%" PRIu32, group[n]);
    fputs(" ", stdout);
    print_stages(plan, n);
    printf(" %s\n", graph->nodes[n].op_type);
  }
  free(group);
}

static int failed(const psplit_diag *diag) {
  fprintf(stderr, "error: %s\n", diag->message);
  return cli_exit_status(diag->code);
}

int main(int argc, char **argv) {
  psplit_dim_value dims[MAX_DIMS];
  psplit_planner_options options;
  psplit_planner_options_init(&options);
  if (argc < 3) return 2;
  options.n_stages = (uint32_t)strtoul(argv[2], NULL, 10);
  options.dims = dims;
  options.verify_each = true;
  const char *pipeline = NULL;
  for (int i = 3; i < argc; i++) {
    char *equals = strrchr(argv[i], '=');
    if (strcmp(argv[i], "--passes") == 0 && i + 1 < argc) {
      pipeline = argv[++i];
    } else if (equals && options.n_dims < MAX_DIMS) {
      *equals = '\0';
      dims[options.n_dims++] = (psplit_dim_value){argv[i], strtoll(equals + 1, NULL, 10)};
    } else {
      return 2;
    }
  }
  psplit_diag diag = {0};
  psplit_model *model;
  psplit_planner *planner;
  if (psplit_model_open(argv[1], NULL, &diag, &model) != PSPLIT_OK) return failed(&diag);
  psplit_code code = psplit_planner_create(model, &options, &diag, &planner);
  if (code == PSPLIT_OK) {
    code = psplit_planner_run(planner, pipeline, &diag);
    if (code == PSPLIT_OK) print_nodes(planner);
    psplit_planner_destroy(planner);
  }
  psplit_model_close(model);
  return code == PSPLIT_OK ? 0 : failed(&diag);
}
