#include "targets.h"

#include <inttypes.h>
#include <psplit/snapshot.h>
#include <psplit/view.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* What a file is made of. */
typedef struct request {
  const psplit_model *model;
  const psplit_plan *plan;
  const plan_options *options;
  const psplit_emit_options *emit;
  const psplit_session *const *sessions; /* of stages; NULL: the devices say nothing */
} request;

static psplit_code make_genai(const request *r, psplit_diag *diag, char **out_text) {
  psplit_genai_options genai;
  psplit_genai_options_init(&genai);
  genai.context_length = (uint32_t)r->options->decode.past;
  genai.sessions = r->sessions;
  return psplit_genai_config(r->model, r->plan, r->emit, &genai, diag, out_text);
}

static psplit_code make_triton(const request *r, psplit_diag *diag, char **out_text) {
  psplit_triton_options triton;
  psplit_triton_options_init(&triton);
  triton.sessions = r->sessions;
  return psplit_triton_script(r->model, r->plan, r->emit, &triton, diag, out_text);
}

/* "INPUT=N,N,..." */
static char *shape_word(const psplit_input_size *shape) {
  enum { DIGITS = 21 };
  const size_t bytes = strlen(shape->input) + 2 + (size_t)shape->n_dims * (DIGITS + 1);
  char *word = malloc(bytes);
  if (!word) return NULL;
  size_t at = (size_t)snprintf(word, bytes, "%s=", shape->input);
  for (uint32_t i = 0; i < shape->n_dims; i++)
    at += (size_t)snprintf(word + at, bytes - at, "%s%" PRId64, i ? "," : "", shape->dims[i]);
  return word;
}

/* The job ends at once without a size of each input, which nobody sees before it is on a cluster.
 */
static void say_open_sizes(const psplit_logger *logger, const psplit_plan *plan) {
  enum { MOST = 4, NAME = 48 };
  char line[MOST * NAME + 256], name[NAME];
  if (!plan->n_assumed) return;
  size_t at = (size_t)snprintf(line, sizeof line,
                               "mpijob.yaml runs stages with random numbers, and the run has no "
                               "size for ");
  for (uint32_t i = 0; i < plan->n_assumed && i < MOST; i++)
    at += (size_t)snprintf(line + at, sizeof line - at, "%s%s", i ? ", " : "",
                           cli_printable(plan->assumed_names[i], name, sizeof name));
  snprintf(line + at, sizeof line - at,
           "%s: give --dim or --shape here, or add them to its command",
           plan->n_assumed > MOST ? ", ..." : "");
  logger->emit(logger->user, PSPLIT_WARNING, line);
}

/* A run of random numbers, with the sizes that costs were counted for. */
static psplit_code make_job(const request *r, psplit_diag *diag, char **out_text) {
  static const char *const RUN[] = {"onnx-pipeline-run", "/split", "--random", "--micro-batches",
                                    "100"};
  enum { N_RUN = sizeof RUN / sizeof *RUN, VALUE_BYTES = 24, MOST = 2 * PLAN_MAX_REPEATED };
  const psplit_planner_options *planner = &r->options->planner;
  const char *command[N_RUN + 2 * MOST];
  char *words[MOST] = {NULL};
  size_t n_words = 0;
  psplit_mpi_job_options job;
  psplit_mpi_job_options_init(&job);
  psplit_code code = PSPLIT_OK;
  job.sessions = r->sessions;
  job.command = command;
  memcpy(command, RUN, sizeof RUN);
  job.n_command = N_RUN;
  for (size_t i = 0; i < planner->n_dims + planner->n_shapes && code == PSPLIT_OK; i++) {
    const bool is_dim = i < planner->n_dims;
    char *word;
    if (is_dim) {
      const size_t bytes = strlen(planner->dims[i].name) + VALUE_BYTES;
      word = malloc(bytes);
      if (word) snprintf(word, bytes, "%s=%" PRId64, planner->dims[i].name, planner->dims[i].value);
    } else {
      word = shape_word(&planner->shapes[i - planner->n_dims]);
    }
    if (!word) {
      code = cli_nomem(diag);
      break;
    }
    command[job.n_command++] = is_dim ? "--dim" : "--shape";
    command[job.n_command++] = words[n_words++] = word;
  }
  if (code == PSPLIT_OK) code = psplit_mpi_job(r->model, r->plan, &job, diag, out_text);
  if (code == PSPLIT_OK) say_open_sizes(r->emit->logger, r->plan);
  for (size_t i = 0; i < n_words; i++) free(words[i]);
  return code;
}

struct target_row {
  const char *name;
  const char *file; /* of DIR; NULL: a line with the layers of stages is printed, */
  psplit_code (*make)(const request *r, psplit_diag *diag, char **out_text);
  bool needs_context;
  const char *line; /* which begins so, */
  uint32_t behind;  /* and counts so many layers more in the last stage */
};

static const target_row TARGETS[] = {
  {.name = "genai", .file = "genai_config.json", .make = make_genai, .needs_context = true},
  {.name = "triton", .file = "triton.sh", .make = make_triton},
  {.name = "k8s", .file = "mpijob.yaml", .make = make_job},
  {.name = "vllm", .line = "VLLM_PP_LAYER_PARTITION="},
  {.name = "llama.cpp", .line = "-ts ", .behind = 1}, /* what comes behind the layers is one */
};
enum { N_TARGETS = sizeof TARGETS / sizeof *TARGETS };

bool target_parse(const cli *program, const char *text, target *out) {
  int which;
  if (!cli_choice(program, "target", text, &which)) return false;
  size_t i = 0;
  while (i + 1 < N_TARGETS && strcmp(TARGETS[i].name, text) != 0) i++;
  *out = &TARGETS[i];
  return true;
}

const char *target_name(target t) { return t->name; }
bool target_prints(target t) { return t && t->line; }
bool target_needs_context(target t) { return t->needs_context; }

const char *target_file(target t) { return t->file; }

psplit_code target_make(target t, const psplit_model *model, const planned *made,
                        const plan_options *options, const psplit_emit_options *emit,
                        psplit_diag *diag, char **out_text) {
  const psplit_plan *plan = psplit_planner_plan(made->planner);
  const psplit_session **sessions = malloc(((size_t)plan->n_stages + 1) * sizeof *sessions);
  if (!sessions) return cli_nomem(diag);
  for (uint32_t s = 0; made->devices && s < plan->n_stages; s++)
    sessions[s] = psplit_devices_session(made->devices, plan->stages[s].device_id);
  const request r = {model, plan, options, emit, made->devices ? sessions : NULL};
  const psplit_code code = t->make(&r, diag, out_text);
  free(sessions);
  return code;
}

static void print_layers(target t, const uint32_t *layers, uint32_t n_stages, FILE *out) {
  fprintf(out, "%s", t->line);
  for (uint32_t s = 0; s < n_stages; s++)
    fprintf(out, "%s%" PRIu32, s ? "," : "", layers[s] + (s + 1 == n_stages ? t->behind : 0));
  fputs("\n", out);
}

psplit_code target_print(target t, const planned *made, const psplit_logger *logger, FILE *out,
                         psplit_diag *diag) {
  psplit_snapshot *snapshot = NULL;
  uint32_t torn = 0;
  psplit_code code = psplit_snapshot_take(made->planner, diag, &snapshot);
  if (code != PSPLIT_OK) return code;
  uint32_t *layers = malloc(((size_t)snapshot->n_stages + 1) * sizeof *layers);
  code = layers ? psplit_view_layers(snapshot, diag, layers, &torn) : cli_nomem(diag);
  if (code == PSPLIT_OK) print_layers(t, layers, snapshot->n_stages, out);
  if (code == PSPLIT_OK && torn) {
    char line[160];
    snprintf(
      line, sizeof line,
      "the plan cuts through %" PRIu32
      " of the layers, so there is no line for other programs: --keep-blocks keeps them whole",
      torn);
    logger->emit(logger->user, PSPLIT_WARNING, line);
  }
  free(layers);
  psplit_snapshot_destroy(snapshot);
  return code;
}
