#include "phases.h"

/* What the join is made of, and the lists of the joined pipe while they are written. */
typedef struct join {
  const psplit_i_pipe *const *pipes;
  uint32_t n;
  psplit_i_pipe *out;
  const char **inputs, **outputs;
  psplit_i_manifest_value *input_values, *output_values;
} join;

/* Inputs first..last-1 of a model, behind those that are there. */
static void add_inputs(const join *j, const psplit_i_manifest *from, uint32_t first,
                       uint32_t last) {
  psplit_i_manifest *m = &j->out->manifest;
  for (uint32_t i = first; i < last; i++) {
    j->inputs[m->n_inputs] = from->inputs[i];
    j->input_values[m->n_inputs++] = from->input_values[i];
  }
}

/* Inputs and outputs of all models, by phase; the inputs that are needed before all others. */
static psplit_code join_values(join *j, psplit_diag *diag) {
  psplit_i_pipe *out = j->out;
  psplit_i_manifest *m = &out->manifest;
  size_t n_inputs = 0, n_outputs = 0;
  for (uint32_t p = 0; p < j->n; p++) {
    n_inputs += j->pipes[p]->manifest.n_inputs;
    n_outputs += j->pipes[p]->manifest.n_outputs;
  }
  m->inputs = j->inputs = PSPLIT_NEW(&out->arena, const char *, n_inputs);
  m->outputs = j->outputs = PSPLIT_NEW(&out->arena, const char *, n_outputs);
  m->input_values = j->input_values = PSPLIT_NEW(&out->arena, psplit_i_manifest_value, n_inputs);
  m->output_values = j->output_values = PSPLIT_NEW(&out->arena, psplit_i_manifest_value, n_outputs);
  if (out->arena.failed) return psplit_i_nomem(diag);
  m->n_inputs = m->n_outputs = 0;
  for (uint32_t p = 0; p < j->n; p++) {
    const psplit_i_manifest *from = &j->pipes[p]->manifest;
    out->phases[p] = (psplit_i_phase){.directory = j->pipes[p]->directory,
                                      .first_input = m->n_inputs,
                                      .n_needed = from->n_needed,
                                      .first_output = m->n_outputs,
                                      .n_outputs = from->n_outputs};
    add_inputs(j, from, 0, from->n_needed);
    for (uint32_t o = 0; o < from->n_outputs; o++) {
      j->outputs[m->n_outputs] = from->outputs[o];
      j->output_values[m->n_outputs++] = from->output_values[o];
    }
  }
  m->n_needed = m->n_inputs;
  for (uint32_t p = 0; p < j->n; p++) {
    const psplit_i_manifest *from = &j->pipes[p]->manifest;
    add_inputs(j, from, from->n_needed, from->n_inputs);
  }
  return PSPLIT_OK;
}

/* A position among the values of a model, among those of all. */
static uint32_t moved(uint32_t position, uint32_t n, uint32_t first) {
  return position < n ? first + position : PSPLIT_NONE;
}

/* The ports of stage s: those of each phase behind those of the phases before it. */
static psplit_code join_stage(const join *j, uint32_t s, psplit_i_manifest_stage *stage,
                              psplit_diag *diag) {
  psplit_i_pipe *out = j->out;
  size_t n_inputs = 0, n_outputs = 0;
  for (uint32_t p = 0; p < j->n; p++) {
    if (s >= j->pipes[p]->manifest.n_stages) continue;
    n_inputs += j->pipes[p]->manifest.stages[s].n_inputs;
    n_outputs += j->pipes[p]->manifest.stages[s].n_outputs;
  }
  psplit_i_row *inputs = PSPLIT_NEW(&out->arena, psplit_i_row, n_inputs);
  psplit_i_row *outputs = PSPLIT_NEW(&out->arena, psplit_i_row, n_outputs);
  uint32_t *model_input = out->model_input[s] = PSPLIT_NEW(&out->arena, uint32_t, n_inputs);
  uint32_t *model_output = out->model_output[s] = PSPLIT_NEW(&out->arena, uint32_t, n_outputs);
  if (out->arena.failed) return psplit_i_nomem(diag);
  stage->inputs = inputs;
  stage->outputs = outputs;
  stage->n_inputs = stage->n_outputs = 0;
  for (uint32_t p = 0; p < j->n; p++) {
    const psplit_i_pipe *pipe = j->pipes[p];
    const psplit_i_phase *phase = &out->phases[p];
    psplit_i_phase_stage *own = &phase->stages[s];
    *own = (psplit_i_phase_stage){.first_input = stage->n_inputs, .first_output = stage->n_outputs};
    if (s >= pipe->manifest.n_stages) continue;
    const psplit_i_manifest_stage *from = &pipe->manifest.stages[s];
    own->file = from->file;
    own->n_inputs = from->n_inputs;
    own->n_outputs = from->n_outputs;
    for (uint32_t i = 0; i < from->n_inputs; i++) {
      model_input[stage->n_inputs] =
        moved(pipe->model_input[s][i], phase->n_needed, phase->first_input);
      inputs[stage->n_inputs++] = from->inputs[i];
    }
    for (uint32_t o = 0; o < from->n_outputs; o++) {
      model_output[stage->n_outputs] =
        moved(pipe->model_output[s][o], phase->n_outputs, phase->first_output);
      outputs[stage->n_outputs++] = from->outputs[o];
    }
  }
  return PSPLIT_OK;
}

static psplit_code join_stages(join *j, psplit_diag *diag) {
  psplit_i_pipe *out = j->out;
  const uint32_t n_stages = out->manifest.n_stages;
  psplit_i_manifest_stage *stages = PSPLIT_NEW(&out->arena, psplit_i_manifest_stage, n_stages);
  psplit_code code = PSPLIT_OK;
  out->model_input = PSPLIT_NEW(&out->arena, uint32_t *, n_stages);
  out->model_output = PSPLIT_NEW(&out->arena, uint32_t *, n_stages);
  for (uint32_t p = 0; p < j->n; p++)
    out->phases[p].stages = PSPLIT_NEW(&out->arena, psplit_i_phase_stage, n_stages);
  if (out->arena.failed) return psplit_i_nomem(diag);
  for (uint32_t s = 0; s < n_stages && code == PSPLIT_OK; s++) {
    stages[s] = out->manifest.stages[s];
    code = join_stage(j, s, &stages[s], diag);
  }
  out->manifest.stages = stages;
  return code;
}

static const psplit_i_pipe_link *find_link(const psplit_i_pipe *pipe, uint32_t from, uint32_t to) {
  for (uint32_t l = 0; l < pipe->n_links; l++)
    if (pipe->links[l].from == from && pipe->links[l].to == to) return &pipe->links[l];
  return NULL;
}

/* What goes from one stage to another in any phase. */
static psplit_code join_link(join *j, uint32_t from, uint32_t to, psplit_diag *diag) {
  psplit_i_pipe *out = j->out;
  size_t n = 0;
  for (uint32_t p = 0; p < j->n; p++) {
    const psplit_i_pipe_link *link = find_link(j->pipes[p], from, to);
    n += link ? link->n_tensors : 0;
  }
  if (!n) return PSPLIT_OK;
  psplit_i_pipe_link *made = &out->links[out->n_links++];
  *made = (psplit_i_pipe_link){.from = from,
                               .to = to,
                               .outputs = PSPLIT_NEW(&out->arena, uint32_t, n),
                               .inputs = PSPLIT_NEW(&out->arena, uint32_t, n)};
  if (out->arena.failed) return psplit_i_nomem(diag);
  for (uint32_t p = 0; p < j->n; p++) {
    const psplit_i_pipe_link *link = find_link(j->pipes[p], from, to);
    const psplit_i_phase_stage *stages = out->phases[p].stages;
    for (uint32_t i = 0; link && i < link->n_tensors; i++) {
      made->outputs[made->n_tensors] = stages[from].first_output + link->outputs[i];
      made->inputs[made->n_tensors++] = stages[to].first_input + link->inputs[i];
    }
  }
  return PSPLIT_OK;
}

static psplit_code join_links(join *j, psplit_diag *diag) {
  psplit_i_pipe *out = j->out;
  const uint32_t n_stages = out->manifest.n_stages;
  size_t most = 2 * (size_t)n_stages; /* with the outside */
  psplit_code code = PSPLIT_OK;
  for (uint32_t p = 0; p < j->n; p++) most += j->pipes[p]->n_links;
  out->links = PSPLIT_NEW(&out->arena, psplit_i_pipe_link, most);
  if (!out->links) return psplit_i_nomem(diag);
  for (uint32_t from = 0; from < n_stages; from++)
    for (uint32_t to = from + 1; to < n_stages && code == PSPLIT_OK; to++)
      code = join_link(j, from, to, diag);
  return code;
}

psplit_code psplit_i_pipes_join(const psplit_i_pipe *const *pipes, uint32_t n, psplit_diag *diag,
                                psplit_i_pipe *out) {
  const psplit_i_pipe *last = pipes[n - 1];
  psplit_i_pipe made = {.directory = last->directory, .manifest = last->manifest, .n_phases = n};
  join j = {.pipes = pipes, .n = n, .out = &made};
  psplit_code code = PSPLIT_OK;
  psplit_i_arena_init(&made.arena, 0);
  for (uint32_t p = 0; p < n; p++) {
    PSPLIT_TRY(psplit_i_pipe_check_runs(pipes[p], diag));
    if (pipes[p]->manifest.n_stages > last->manifest.n_stages)
      PSPLIT_FAIL(psplit_i_fail(diag, PSPLIT_UNSUPPORTED, "%s has %u stages, and %s only %u",
                                pipes[p]->directory, pipes[p]->manifest.n_stages, last->directory,
                                last->manifest.n_stages));
  }
  made.manifest.training = NULL;
  made.manifest.n_training_files = 0;
  made.phases = PSPLIT_NEW(&made.arena, psplit_i_phase, n);
  if (!made.phases) PSPLIT_FAIL(psplit_i_nomem(diag));
  PSPLIT_TRY(join_values(&j, diag));
  PSPLIT_TRY(join_stages(&j, diag));
  PSPLIT_TRY(join_links(&j, diag));
  PSPLIT_TRY(psplit_i_pipe_make_ends(&made, diag));
out:
  if (code == PSPLIT_OK)
    *out = made;
  else
    psplit_i_pipe_fini(&made);
  return code;
}
