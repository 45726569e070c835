#include "tunings.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
/* cmocka.h needs the four above first. */
#include <cmocka.h>
#include <dirent.h>
#include <string.h>

#include "text.h"

const char CHAIN[] =
  "(float[1,16] x) => (float[1,16] v5) {"
  " [\"n0\"] v0 = Relu (x) [\"n1\"] v1 = Exp (v0) [\"n2\"] v2 = Neg (v1)"
  " [\"n3\"] v3 = Sqrt (v2) [\"n4\"] v4 = Abs (v3) [\"n5\"] v5 = Tanh (v4) }";
const char BRANCH[] =
  "(float[1,16] x, bool flag) => (float[1,16] y) { [\"choice\"] y = If (flag) <"
  "then_branch = t () => (float[1,16] v5) {"
  " [\"n0\"] v0 = Relu (x) [\"n1\"] v1 = Exp (v0) [\"n2\"] v2 = Neg (v1)"
  " [\"n3\"] v3 = Sqrt (v2) [\"n4\"] v4 = Abs (v3) [\"n5\"] v5 = Tanh (v4) },"
  "else_branch = e () => (float[1,16] w) { w = Neg (x) }> }";

void note_round(void *user, const psplit_autotune_round *round) {
  told *t = user;
  assert_true(t->n < MOST_TOLD);
  memcpy(t->measured_ns[t->n], round->measured_ns, round->n_stages * sizeof(int64_t));
  t->rounds[t->n++] = *round;
}

psplit_model *open_tuned(const char *path, bool inlined) {
  psplit_diag diag = {0};
  psplit_model *model;
  psplit_read_options read;
  const psplit_inline_if branch = {.node = "choice", .then_branch = true};
  psplit_read_options_init(&read);
  read.inline_ifs = &branch;
  read.n_inline_ifs = inlined;
  if (psplit_model_open(path, &read, &diag, &model) != PSPLIT_OK) fail_msg("%s", diag.message);
  return model;
}

psplit_cost_table *even_costs(int us) {
  psplit_i_text text = {0};
  psplit_diag diag = {0};
  psplit_cost_table *table;
  psplit_i_text_puts(&text,
                     "{\"format\": \"onnx-pipeline-split-costs\", \"version\": 1, \"costs\": [");
  for (int n = 0; n < N_NODES; n++)
    psplit_i_text_addf(&text, "%s{\"nodes\": [\"n%d\"], \"ns\": %d}", n ? ", " : "", n, 1000 * us);
  psplit_i_text_puts(&text, "]}");
  if (psplit_cost_table_parse("even", text.bytes, text.n, &diag, &table) != PSPLIT_OK)
    fail_msg("%s", diag.message);
  psplit_i_text_fini(&text);
  return table;
}

int64_t cut_with(const psplit_model *model, const psplit_planner_options *given,
                 const psplit_cost_table *costs, char *out) {
  psplit_diag diag = {0};
  psplit_planner *planner;
  psplit_planner_options options = *given;
  const psplit_cost_table *tables[2] = {given->n_costs ? given->costs[0] : costs, costs};
  options.costs = tables;
  options.n_costs = 2;
  if (psplit_planner_create(model, &options, &diag, &planner) != PSPLIT_OK ||
      psplit_planner_run(planner, NULL, &diag) != PSPLIT_OK)
    fail_msg("%s", diag.message);
  const psplit_plan *plan = psplit_planner_plan(planner);
  for (uint32_t n = 0; n < plan->n_nodes; n++) *out++ = (char)('0' + plan->node_stage[n]);
  *out = '\0';
  const int64_t bottleneck_ns = plan->bottleneck_ns;
  psplit_planner_destroy(planner);
  return bottleneck_ns;
}

int n_left(void) {
  int n = 0;
  DIR *here = opendir(".");
  assert_non_null(here);
  for (struct dirent *each; (each = readdir(here));)
    n += each->d_name[0] != '.' && !strstr(each->d_name, ".onnx");
  closedir(here);
  return n;
}

void set_up_tuning(psplit_planner_options *planner, psplit_autotune_options *options,
                   told *rounds) {
  psplit_planner_options_init(planner);
  planner->n_stages = 2;
  planner->n_threads = 1;
  psplit_autotune_options_init(options);
  options->planner = planner;
  options->beside = "out";
  options->after_round = note_round;
  options->after_round_user = rounds;
}
