#include "wiring.h"

#include <inttypes.h>
#include <string.h>

/* Wires in the making: there is room for all that there can be. */
static psplit_i_wire *add_wire(psplit_i_wiring *w, const psplit_i_wire *ends, uint32_t n_tensors) {
  const bool devices = ends->kind >= PSPLIT_I_WIRE_REPORT;
  psplit_i_wire *wire = &w->wires[w->n_wires++];
  *wire = *ends;
  wire->from_device =
    devices ? ends->from : ends->from_replica * w->n_line + ends->from % w->n_line;
  wire->to_device = devices ? ends->to : ends->to_replica * w->n_line + ends->to % w->n_line;
  wire->given = PSPLIT_NEW(&w->arena, const char *, n_tensors);
  wire->taken = PSPLIT_NEW(&w->arena, const char *, n_tensors);
  return wire->given && wire->taken ? wire : NULL;
}

static psplit_i_wire within(psplit_i_wire_kind kind, uint32_t from, uint32_t to, uint32_t replica) {
  return (psplit_i_wire){
    .kind = kind, .from = from, .to = to, .from_replica = replica, .to_replica = replica};
}

static void add_tensor(psplit_i_wire *wire, const char *given, const char *taken) {
  wire->given[wire->n_tensors] = given;
  wire->taken[wire->n_tensors++] = taken;
}

static bool add_forward(psplit_i_wiring *w, const psplit_i_pipe *pipe, uint32_t replica) {
  const psplit_i_manifest_stage *stages = pipe->manifest.stages;
  for (uint32_t l = 0; l < pipe->n_links; l++) {
    const psplit_i_pipe_link *link = &pipe->links[l];
    const psplit_i_wire ends = within(PSPLIT_I_WIRE_FORWARD, link->from, link->to, replica);
    psplit_i_wire *wire = add_wire(w, &ends, link->n_tensors);
    if (!wire) return false;
    for (uint32_t t = 0; t < link->n_tensors; t++)
      add_tensor(wire, stages[link->from].outputs[link->outputs[t]].name,
                 stages[link->to].inputs[link->inputs[t]].name);
  }
  return true;
}

/* The wire that there is already, or a new one. Transfers come by tag, not by pair. */
static psplit_i_wire *pair_wire(psplit_i_wiring *w, const psplit_i_wire *ends, uint32_t most) {
  for (uint32_t i = 0; i < w->n_wires; i++) {
    const psplit_i_wire *wire = &w->wires[i];
    if (wire->from == ends->from && wire->from_replica == ends->from_replica &&
        psplit_i_wire_enters(wire, ends->kind, ends->to, ends->to_replica))
      return &w->wires[i];
  }
  return add_wire(w, ends, most);
}

static psplit_code add_backward(psplit_i_wiring *w, const psplit_i_training_table *training,
                                uint32_t replica, psplit_diag *diag) {
  for (uint32_t t = 0; t < training->n_transfers; t++) {
    const psplit_i_manifest_transfer *row = &training->transfers[t];
    if (row->from == row->to && training->stages[row->to].weight_gradients.file)
      continue; /* from one of its files to the other */
    if (row->from <= row->to)
      return psplit_i_fail(diag, PSPLIT_INVALID,
                           "pipeline.json: the gradient %s does not go to an earlier stage",
                           row->tensor);
    const psplit_i_wire ends = within(PSPLIT_I_WIRE_BACKWARD, row->from, row->to, replica);
    psplit_i_wire *wire = pair_wire(w, &ends, training->n_transfers);
    if (!wire) return psplit_i_nomem(diag);
    add_tensor(wire, row->tensor, row->tensor);
  }
  return PSPLIT_OK;
}

static psplit_code add_weights(psplit_i_wiring *w, const psplit_i_training_table *training,
                               uint32_t replica, psplit_diag *diag) {
  for (uint32_t k = 0; k < training->n_weights; k++) {
    const psplit_i_trained_weight *weight = &training->weights[k];
    for (uint32_t i = 0; i < weight->n_stages && weight->owner != PSPLIT_NONE; i++) {
      if (weight->stages[i] == weight->owner) continue;
      const psplit_i_wire ends =
        within(PSPLIT_I_WIRE_WEIGHTS, weight->owner, weight->stages[i], replica);
      psplit_i_wire *wire = pair_wire(w, &ends, training->n_weights);
      if (!wire) return psplit_i_nomem(diag);
      add_tensor(wire, weight->name, weight->name);
    }
  }
  return PSPLIT_OK;
}

uint32_t psplit_i_n_gradients(const psplit_i_trained_weight *weight) {
  return weight->gradient ? 1 + weight->n_more : 0;
}

psplit_i_gradient_row psplit_i_gradient_of(const psplit_i_trained_weight *weight, uint32_t part) {
  const psplit_i_gradient_row first = {weight->gradient, weight->before};
  return part ? weight->more[part - 1] : first;
}

/* The stage whose backward pass gives a gradient to the update. */
static uint32_t find_maker(const psplit_i_pipe *pipe, const char *gradient) {
  for (uint32_t s = 0; s < pipe->manifest.n_stages; s++) {
    for (int h = 0; h < PSPLIT_I_N_HALVES; h++) {
      const psplit_i_part *part = psplit_i_backward_part(&pipe->manifest.training->stages[s], h);
      for (uint32_t o = 0; o < part->n_outputs; o++)
        if (part->outputs[o].goal == PSPLIT_I_PART_UPDATE &&
            strcmp(part->outputs[o].name, gradient) == 0)
          return s;
    }
  }
  return PSPLIT_NONE;
}

/* Some of a weight's gradient, from who sums it to who updates the weight. */
static psplit_code add_parts(psplit_i_wiring *w, const psplit_i_pipe *pipe, uint32_t replica,
                             uint32_t n_gradients, psplit_diag *diag) {
  const psplit_i_training_table *training = pipe->manifest.training;
  for (uint32_t k = 0; k < training->n_weights; k++) {
    const psplit_i_trained_weight *weight = &training->weights[k];
    for (uint32_t p = 0; p < psplit_i_n_gradients(weight) && weight->owner != PSPLIT_NONE; p++) {
      const char *name = psplit_i_gradient_of(weight, p).gradient;
      const uint32_t maker = find_maker(pipe, name);
      if (maker == PSPLIT_NONE)
        return psplit_i_fail(diag, PSPLIT_INVALID, "pipeline.json: no stage gives %s", name);
      if (maker == weight->owner) continue;
      const psplit_i_wire ends = within(PSPLIT_I_WIRE_PARTS, maker, weight->owner, replica);
      psplit_i_wire *wire = pair_wire(w, &ends, n_gradients);
      if (!wire) return psplit_i_nomem(diag);
      add_tensor(wire, name, name);
    }
  }
  return PSPLIT_OK;
}

/* Gradients of the weights that a stage updates, to the first replica, and their sums back. */
static bool add_gradients(psplit_i_wiring *w, const psplit_i_training_table *training,
                          uint32_t n_gradients, uint32_t replica) {
  for (uint32_t k = 0; k < training->n_weights && replica > 0; k++) {
    const psplit_i_trained_weight *weight = &training->weights[k];
    psplit_i_wire ends = {.kind = PSPLIT_I_WIRE_GRADIENTS,
                          .from = weight->owner,
                          .to = weight->owner,
                          .from_replica = replica};
    const uint32_t n = weight->owner == PSPLIT_NONE ? 0 : psplit_i_n_gradients(weight);
    if (!n) continue;
    psplit_i_wire *there = pair_wire(w, &ends, n_gradients);
    ends.kind = PSPLIT_I_WIRE_SUMS;
    ends.from_replica = 0;
    ends.to_replica = replica;
    psplit_i_wire *back = there ? pair_wire(w, &ends, n_gradients) : NULL;
    if (!back) return false;
    for (uint32_t p = 0; p < n; p++) {
      const char *name = psplit_i_gradient_of(weight, p).gradient;
      add_tensor(there, name, name);
      add_tensor(back, name, name);
    }
  }
  return true;
}

static bool add_devices(psplit_i_wiring *w) {
  for (uint32_t d = 1; d < w->n_devices; d++) {
    const psplit_i_wire both[] = {{.kind = PSPLIT_I_WIRE_REPORT, .from = d},
                                  {.kind = PSPLIT_I_WIRE_ORDER, .to = d}};
    for (size_t k = 0; k < 2; k++) {
      psplit_i_wire *wire = add_wire(w, &both[k], 1);
      if (!wire) return false;
      add_tensor(wire, "", "");
    }
  }
  return true;
}

psplit_code psplit_i_wiring_make(const psplit_i_pipe *pipe, uint32_t n_chunks, uint32_t n_replicas,
                                 psplit_diag *diag, psplit_i_wiring *out) {
  const uint32_t n_stages = pipe->manifest.n_stages;
  const psplit_i_training_table *training = pipe->manifest.training;
  psplit_i_wiring w = {.n_chunks = n_chunks, .n_replicas = n_replicas};
  psplit_code code = PSPLIT_OK;
  /* In each replica: what crosses, and two wires for each stage and each device. */
  size_t most = pipe->n_links + (size_t)training->n_transfers + 4 * (size_t)n_stages;
  if (!n_chunks || n_stages % n_chunks)
    return psplit_i_fail(diag, PSPLIT_USAGE,
                         "%" PRIu32 " stages cannot be given to devices %" PRIu32
                         " to each: their "
                         "number has to be a multiple of it",
                         n_stages, n_chunks);
  w.n_line = n_stages / n_chunks;
  w.n_devices = w.n_line * n_replicas;
  uint32_t n_gradients = 0;
  for (uint32_t k = 0; k < training->n_weights; k++) {
    most += training->weights[k].n_stages;
    n_gradients += psplit_i_n_gradients(&training->weights[k]);
  }
  most += n_gradients;
  psplit_i_arena_init(&w.arena, 0);
  w.wires = PSPLIT_NEW(&w.arena, psplit_i_wire, most * n_replicas);
  if (!w.wires) PSPLIT_FAIL(psplit_i_nomem(diag));
  for (uint32_t r = 0; r < n_replicas; r++) {
    if (!add_forward(&w, pipe, r)) PSPLIT_FAIL(psplit_i_nomem(diag));
    PSPLIT_TRY(add_backward(&w, training, r, diag));
    PSPLIT_TRY(add_parts(&w, pipe, r, n_gradients, diag));
    if (!add_gradients(&w, training, n_gradients, r)) PSPLIT_FAIL(psplit_i_nomem(diag));
    PSPLIT_TRY(add_weights(&w, training, r, diag));
  }
  if (!add_devices(&w)) PSPLIT_FAIL(psplit_i_nomem(diag));
  *out = w;
out:
  if (code != PSPLIT_OK) psplit_i_wiring_fini(&w);
  return code;
}

void psplit_i_wiring_fini(psplit_i_wiring *wiring) { psplit_i_arena_fini(&wiring->arena); }

uint32_t psplit_i_wiring_find(const psplit_i_wiring *w, psplit_i_wire_kind kind, uint32_t from,
                              uint32_t to, uint32_t to_replica) {
  for (uint32_t i = 0; i < w->n_wires; i++)
    if (w->wires[i].from == from && psplit_i_wire_enters(&w->wires[i], kind, to, to_replica))
      return i;
  return PSPLIT_NONE;
}
