#include "pipeline.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "intern.h"

typedef struct transfer {
  uint64_t tag;
  uint32_t from, to, output, input;
} transfer;

/* Where names stand in a list, first. */
typedef struct positions {
  psplit_i_intern names;
  uint32_t *of; /* [names.n] */
} positions;

/* out->names is the caller's to end, also after a failure. O(n) */
static psplit_code list_names(psplit_i_pipe *p, const char *const *names, uint32_t n,
                              psplit_diag *diag, positions *out) {
  psplit_i_intern_init(&out->names);
  out->of = PSPLIT_NEW(&p->arena, uint32_t, n);
  if (!out->of) return psplit_i_nomem(diag);
  for (uint32_t i = 0; i < n; i++) {
    const uint32_t n_known = out->names.n, id = psplit_i_intern_add(&out->names, names[i]);
    if (id == PSPLIT_NONE) return psplit_i_nomem(diag);
    if (id == n_known) out->of[id] = i;
  }
  return PSPLIT_OK;
}

static uint32_t position_of(const positions *list, const char *name) {
  const uint32_t id = psplit_i_intern_find(&list->names, name);
  return id == PSPLIT_NONE ? PSPLIT_NONE : list->of[id];
}

static psplit_code find_model_inputs(psplit_i_pipe *p, psplit_diag *diag) {
  psplit_code code;
  positions list;
  const psplit_i_manifest *m = &p->manifest;
  PSPLIT_TRY(list_names(p, m->inputs, m->n_inputs, diag, &list));
  p->model_input = PSPLIT_NEW(&p->arena, uint32_t *, m->n_stages);
  if (!p->model_input) PSPLIT_FAIL(psplit_i_nomem(diag));
  for (uint32_t s = 0; s < m->n_stages; s++) {
    const psplit_i_manifest_stage *stage = &m->stages[s];
    uint32_t *found = p->model_input[s] = PSPLIT_NEW(&p->arena, uint32_t, stage->n_inputs);
    if (!found) PSPLIT_FAIL(psplit_i_nomem(diag));
    for (uint32_t i = 0; i < stage->n_inputs; i++)
      found[i] = stage->inputs[i].from == PSPLIT_I_FROM_MODEL
                   ? position_of(&list, stage->inputs[i].tensor)
                   : PSPLIT_NONE;
  }
out:
  psplit_i_intern_fini(&list.names);
  return code;
}

static psplit_code find_model_outputs(psplit_i_pipe *p, psplit_diag *diag) {
  psplit_code code;
  positions list;
  const psplit_i_manifest *m = &p->manifest;
  PSPLIT_TRY(list_names(p, m->outputs, m->n_outputs, diag, &list));
  p->model_output = PSPLIT_NEW(&p->arena, uint32_t *, m->n_stages);
  if (!p->model_output) PSPLIT_FAIL(psplit_i_nomem(diag));
  for (uint32_t s = 0; s < m->n_stages; s++) {
    const psplit_i_manifest_stage *stage = &m->stages[s];
    uint32_t *found = p->model_output[s] = PSPLIT_NEW(&p->arena, uint32_t, stage->n_outputs);
    if (!found) PSPLIT_FAIL(psplit_i_nomem(diag));
    for (uint32_t o = 0; o < stage->n_outputs; o++) {
      const psplit_i_row *row = &stage->outputs[o];
      found[o] = row->to_model ? position_of(&list, row->tensor) : PSPLIT_NONE;
    }
  }
out:
  psplit_i_intern_fini(&list.names);
  return code;
}

static int by_pair_and_tag(const void *a, const void *b) {
  const transfer *x = a, *y = b;
  if (x->from != y->from) return x->from < y->from ? -1 : 1;
  if (x->to != y->to) return x->to < y->to ? -1 : 1;
  return x->tag < y->tag ? -1 : x->tag > y->tag;
}

static psplit_code make_links(psplit_i_pipe *p, const psplit_i_ports *rows, psplit_diag *diag) {
  const psplit_i_manifest *m = &p->manifest;
  const size_t n = m->n_transfers;
  transfer *all = PSPLIT_NEW(&p->arena, transfer, n);
  uint32_t *ports = PSPLIT_NEW(&p->arena, uint32_t, 2 * n);
  /* Each stage may have two more, with the outside. */
  p->links = PSPLIT_NEW(&p->arena, psplit_i_pipe_link, n + 2 * (size_t)m->n_stages);
  if (!all || !ports || !p->links) return psplit_i_nomem(diag);
  for (size_t i = 0; i < n; i++)
    all[i] = (transfer){m->transfers[i].tag, m->transfers[i].from, m->transfers[i].to,
                        rows[i].output, rows[i].input};
  if (n) qsort(all, n, sizeof *all, by_pair_and_tag);
  for (size_t i = 0; i < n; i++) {
    psplit_i_pipe_link *link = p->n_links ? &p->links[p->n_links - 1] : NULL;
    if (!link || link->from != all[i].from || link->to != all[i].to) {
      link = &p->links[p->n_links++];
      *link = (psplit_i_pipe_link){
        .from = all[i].from, .to = all[i].to, .outputs = ports + i, .inputs = ports + n + i};
    }
    ports[i] = all[i].output;
    ports[n + i] = all[i].input;
    link->n_tensors++;
  }
  return PSPLIT_OK;
}

/* All of it is one phase. */
static psplit_code make_phase(psplit_i_pipe *p, psplit_diag *diag) {
  const psplit_i_manifest *m = &p->manifest;
  p->phases = PSPLIT_NEW(&p->arena, psplit_i_phase, 1);
  psplit_i_phase_stage *stages = PSPLIT_NEW(&p->arena, psplit_i_phase_stage, m->n_stages);
  if (!p->phases || !stages) return psplit_i_nomem(diag);
  for (uint32_t s = 0; s < m->n_stages; s++)
    stages[s] = (psplit_i_phase_stage){m->stages[s].file, 0, m->stages[s].n_inputs, 0,
                                       m->stages[s].n_outputs};
  p->phases[0] = (psplit_i_phase){p->directory, 0, m->n_needed, 0, m->n_outputs, stages};
  p->n_phases = 1;
  return PSPLIT_OK;
}

static psplit_code find_replicas(psplit_i_pipe *pipe, psplit_diag *diag) {
  const psplit_i_manifest *m = &pipe->manifest;
  uint32_t *n_replicas = psplit_i_arena_array(&pipe->arena, m->n_stages, sizeof *n_replicas);
  if (!n_replicas) return psplit_i_nomem(diag);
  for (uint32_t s = 0; s < m->n_stages; s++) n_replicas[s] = m->stages[s].n_replicas;
  pipe->n_replicas = n_replicas;
  return PSPLIT_OK;
}

psplit_code psplit_i_pipe_read(const char *directory, uint64_t max_bytes, psplit_diag *diag,
                               psplit_i_pipe *out) {
  psplit_i_pipe pipe = {.directory = directory};
  const psplit_i_ports *ports;
  psplit_code code;
  psplit_i_arena_init(&pipe.arena, 0);
  PSPLIT_TRY(psplit_i_manifest_read(directory, max_bytes, &pipe.arena, diag, &pipe.manifest));
  PSPLIT_TRY(psplit_i_manifest_check(directory, &pipe.manifest, &pipe.arena, diag, &ports));
  PSPLIT_TRY(find_replicas(&pipe, diag));
  PSPLIT_TRY(make_phase(&pipe, diag));
  PSPLIT_TRY(find_model_inputs(&pipe, diag));
  PSPLIT_TRY(find_model_outputs(&pipe, diag));
  PSPLIT_TRY(make_links(&pipe, ports, diag));
  PSPLIT_TRY(psplit_i_pipe_make_ends(&pipe, diag));
out:
  if (code == PSPLIT_OK)
    *out = pipe;
  else
    psplit_i_pipe_fini(&pipe);
  return code;
}

psplit_code psplit_i_pipe_check_runs(const psplit_i_pipe *pipe, psplit_diag *diag) {
  const psplit_i_training_table *training = pipe->manifest.training;
  if (!training || !training->plain_weights) return PSPLIT_OK;
  return psplit_i_fail_about(diag, PSPLIT_UNSUPPORTED, PSPLIT_I_HELPS(TRAINER),
                             "the stages of %s are for training: their weights are inputs without "
                             "initial values",
                             pipe->directory);
}

void psplit_i_pipe_fini(psplit_i_pipe *pipe) { psplit_i_arena_fini(&pipe->arena); }

static bool receives(const psplit_i_pipe *pipe, uint32_t stage) {
  for (uint32_t l = 0; l < pipe->n_links; l++)
    if (pipe->links[l].to == stage) return true;
  return false;
}

psplit_code psplit_i_pipe_make_ends(psplit_i_pipe *pipe, psplit_diag *diag) {
  const psplit_i_manifest *m = &pipe->manifest;
  pipe->ends = PSPLIT_NEW(&pipe->arena, uint32_t *, m->n_stages);
  for (uint32_t s = 0; s < m->n_stages && !pipe->arena.failed; s++)
    pipe->ends[s] = PSPLIT_NEW(&pipe->arena, uint32_t,
                               2 * ((size_t)m->stages[s].n_inputs + m->stages[s].n_outputs));
  return pipe->arena.failed ? psplit_i_nomem(diag) : PSPLIT_OK;
}

/* `room` is for so many tensors. */
static void add_link(psplit_i_pipe *pipe, uint32_t from, uint32_t to, uint32_t *room,
                     uint32_t capacity) {
  pipe->links[pipe->n_links++] =
    (psplit_i_pipe_link){.from = from, .to = to, .outputs = room, .inputs = room + capacity};
}

static void add_tensor(psplit_i_pipe *pipe, uint32_t output, uint32_t input) {
  psplit_i_pipe_link *link = &pipe->links[pipe->n_links - 1];
  link->outputs[link->n_tensors] = output;
  link->inputs[link->n_tensors++] = input;
}

psplit_code psplit_i_pipe_keep_input(psplit_i_pipe *pipe, uint32_t stage, uint32_t port,
                                     psplit_diag *diag) {
  const psplit_i_manifest *m = &pipe->manifest;
  if (!pipe->kept) {
    bool **kept = PSPLIT_NEW(&pipe->arena, bool *, m->n_stages);
    for (uint32_t s = 0; kept && s < m->n_stages; s++)
      if (!(kept[s] = PSPLIT_NEW(&pipe->arena, bool, (size_t)m->stages[s].n_inputs + 1)))
        return psplit_i_nomem(diag);
    if (!kept) return psplit_i_nomem(diag);
    pipe->kept = kept;
  }
  pipe->kept[stage][port] = true;
  return PSPLIT_OK;
}

void psplit_i_pipe_keep_output(psplit_i_pipe *pipe, uint32_t stage, uint32_t port) {
  pipe->model_output[stage][port] = PSPLIT_NONE;
}

/* Whether who feeds the pipeline gives this input. */
static bool is_fed(const psplit_i_pipe *pipe, uint32_t stage, uint32_t port) {
  const psplit_i_row *row = &pipe->manifest.stages[stage].inputs[port];
  return row->from == PSPLIT_I_FROM_MODEL && !row->optional &&
         !(pipe->kept && pipe->kept[stage][port]);
}

static psplit_code add_feed(psplit_i_pipe *pipe, uint32_t s, psplit_diag *diag) {
  const psplit_i_manifest *m = &pipe->manifest;
  const psplit_i_manifest_stage *stage = &m->stages[s];
  bool fed = !receives(pipe, s);
  for (uint32_t i = 0; i < stage->n_inputs; i++) fed |= is_fed(pipe, s, i);
  if (!fed) return PSPLIT_OK;
  add_link(pipe, PSPLIT_I_OUTSIDE, s, pipe->ends[s], stage->n_inputs);
  for (uint32_t i = 0; i < stage->n_inputs; i++) {
    if (!is_fed(pipe, s, i)) continue;
    const uint32_t input = pipe->model_input[s][i];
    if (input == PSPLIT_NONE || input >= m->n_needed)
      return psplit_i_fail(diag, PSPLIT_INVALID, "pipeline.json: the model has no input %s",
                           stage->inputs[i].tensor);
    add_tensor(pipe, input, i);
  }
  return PSPLIT_OK;
}

bool psplit_i_pipe_is_final(const psplit_i_pipe *pipe, uint32_t stage) {
  bool gives = false;
  for (uint32_t l = 0; l < pipe->n_links; l++)
    gives |= pipe->links[l].from == stage && pipe->links[l].to != PSPLIT_I_OUTSIDE;
  for (uint32_t o = 0; gives && o < pipe->manifest.stages[stage].n_outputs; o++)
    gives = pipe->model_output[stage][o] == PSPLIT_NONE;
  return !gives;
}

uint32_t psplit_i_pipe_n_final(const psplit_i_pipe *pipe) {
  uint32_t n = 0;
  for (uint32_t s = 0; s < pipe->manifest.n_stages; s++) n += psplit_i_pipe_is_final(pipe, s);
  return n;
}

uint32_t psplit_i_pipe_deliverer(const psplit_i_pipe *pipe) {
  for (uint32_t l = 0; l < pipe->n_links; l++)
    if (pipe->links[l].to == PSPLIT_I_OUTSIDE) return 0;
  uint32_t s = 0;
  while (!psplit_i_pipe_is_final(pipe, s)) s++;
  return s;
}

static void add_collect(psplit_i_pipe *pipe, uint32_t s, bool outputs) {
  const psplit_i_manifest_stage *stage = &pipe->manifest.stages[s];
  const uint32_t *found = pipe->model_output[s];
  if (!psplit_i_pipe_is_final(pipe, s)) return;
  add_link(pipe, s, PSPLIT_I_OUTSIDE, pipe->ends[s] + 2 * (size_t)stage->n_inputs,
           stage->n_outputs);
  for (uint32_t o = 0; outputs && o < stage->n_outputs; o++)
    if (found[o] != PSPLIT_NONE) add_tensor(pipe, o, found[o]);
}

psplit_code psplit_i_pipe_open_ends(psplit_i_pipe *pipe, psplit_i_pipe_wants wants,
                                    psplit_diag *diag) {
  psplit_code code = PSPLIT_OK;
  for (uint32_t s = 0; s < pipe->manifest.n_stages; s++) {
    if (wants.feed) PSPLIT_TRY(add_feed(pipe, s, diag));
    if (wants.collect) add_collect(pipe, s, wants.outputs);
  }
out:
  return code;
}

/* Bytes of one micro-batch between stages; UINT64_MAX where the plan does not know. */
static uint64_t crossing_bytes(const psplit_i_manifest *m) {
  uint64_t sum = 0;
  for (size_t t = 0; t < m->n_transfers; t++)
    sum =
      psplit_i_sat_add_u64(sum, m->transfers[t].bytes_known ? m->transfers[t].bytes : UINT64_MAX);
  return sum;
}

uint64_t psplit_i_pipe_link_bytes(const psplit_i_pipe *pipe, const psplit_i_pipe_link *link) {
  const psplit_i_manifest *m = &pipe->manifest;
  uint64_t sum = 0;
  for (size_t t = 0; t < m->n_transfers; t++) {
    const psplit_i_manifest_transfer *row = &m->transfers[t];
    if (row->from != link->from || row->to != link->to) continue;
    if (!row->bytes_known) return 0;
    sum = psplit_i_sat_add_u64(sum, row->bytes);
  }
  return sum;
}

uint32_t psplit_i_pipe_depth(const psplit_i_pipe *pipe) {
  enum { LEAST = 2, MOST = 32, SHORT_NS = 200000, MOST_BYTES = 1 << 20 };
  const psplit_i_manifest *m = &pipe->manifest;
  for (uint32_t s = 0; s < m->n_stages; s++)
    if (m->stages[s].load_ns < 0 || m->stages[s].load_ns >= SHORT_NS) return LEAST;
  const uint64_t bytes = crossing_bytes(m);
  uint32_t depth = MOST;
  while (depth > LEAST && bytes > MOST_BYTES / depth) depth /= 2;
  return depth;
}
