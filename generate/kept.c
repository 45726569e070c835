#include "kept.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

psplit_code psplit_i_kept_init(psplit_i_kept *kept, uint32_t n_slots, psplit_diag *diag) {
  const size_t n = (size_t)n_slots * kept->decoder->n_kept + 1;
  kept->n_slots = n_slots;
  kept->tensors = calloc(n, sizeof *kept->tensors);
  kept->bytes = calloc(n, sizeof *kept->bytes);
  kept->same = calloc((size_t)n_slots * kept->decoder->n_same + 1, sizeof *kept->same);
  return kept->tensors && kept->bytes && kept->same ? PSPLIT_OK : psplit_i_nomem(diag);
}

void psplit_i_kept_fini(psplit_i_kept *kept) {
  const psplit_i_decoder *d = kept->decoder;
  const size_t n_slots = d ? kept->n_slots : 0;
  psplit_i_tensors_release(kept->tensors, d ? n_slots * d->n_kept : 0);
  psplit_i_tensors_release(kept->same, d ? n_slots * d->n_same : 0);
  free(kept->tensors);
  free(kept->bytes);
  free(kept->same);
  kept->tensors = kept->same = NULL;
  kept->bytes = NULL;
}

/* Puts a tensor, which it takes over, in the place of what was kept; NULL: of nothing. */
static psplit_code put(psplit_i_kept *kept, size_t at, psplit_i_tensor *tensor, psplit_diag *diag) {
  psplit_i_tensor_view view = {0};
  const psplit_code code = tensor ? psplit_i_tensor_look(tensor, diag, &view) : PSPLIT_OK;
  psplit_i_tensor_release(kept->tensors[at]);
  kept->tensors[at] = tensor;
  const uint64_t before = atomic_exchange(&kept->bytes[at], view.n_bytes);
  const uint64_t now = atomic_fetch_add(&kept->now, view.n_bytes - before) + view.n_bytes - before;
  uint64_t most = atomic_load(&kept->at_most);
  while (now > most && !atomic_compare_exchange_weak(&kept->at_most, &most, now)) {
  }
  return code;
}

/* The state of a sequence that has had no step. */
static psplit_code make_empty(const psplit_i_kept *kept, uint32_t stage, uint32_t input,
                              const psplit_i_session_port *port, psplit_diag *diag,
                              psplit_i_tensor **out) {
  const uint32_t batch =
    psplit_i_decoder_batch_axis(kept->pipe, kept->decoder, kept->pipe->model_input[stage][input]);
  int64_t dims[PSPLIT_I_MAX_RANK];
  psplit_i_tensor_view view;
  psplit_i_tensor *tensor = NULL;
  psplit_code code;
  for (size_t d = 0; d < port->n_dims; d++)
    dims[d] = port->dims[d] >= 0 ? port->dims[d] : d == batch ? 1 : 0;
  PSPLIT_TRY(psplit_i_tensor_create(kept->ort, port->data_type, dims, port->n_dims, diag, &tensor));
  PSPLIT_TRY(psplit_i_tensor_look(tensor, diag, &view));
  if (view.data && view.n_bytes) memset(view.data, 0, (size_t)view.n_bytes);
  *out = tensor;
  tensor = NULL;
out:
  psplit_i_tensor_release(tensor);
  return code;
}

/* What a session says of an input of its stage. */
static psplit_code find_port(const psplit_i_kept *kept, const psplit_i_session *session,
                             uint32_t stage, uint32_t input, psplit_diag *diag,
                             const psplit_i_session_port **out) {
  const char *name = kept->pipe->manifest.stages[stage].inputs[input].name;
  const psplit_i_session_port *port = psplit_i_session_input(session, name);
  *out = port;
  return port && port->is_tensor
           ? PSPLIT_OK
           : psplit_i_fail(diag, PSPLIT_UNSUPPORTED, "state %s is not a tensor", name);
}

/* The states that a step reads. */
static psplit_code give_states(psplit_i_kept *kept, uint32_t stage, const psplit_i_session *session,
                               const psplit_i_step *step, psplit_i_tensor **inputs,
                               psplit_diag *diag) {
  const psplit_i_decoder *d = kept->decoder;
  psplit_code code = PSPLIT_OK;
  for (uint32_t k = 0; k < d->n_kept; k++) {
    if (d->kept[k].stage != stage) continue;
    const size_t at = (size_t)step->slot * d->n_kept + k;
    const uint32_t input = d->kept[k].input;
    if (step->position == 0) {
      const psplit_i_session_port *port;
      psplit_i_tensor *empty = NULL;
      PSPLIT_TRY(find_port(kept, session, stage, input, diag, &port));
      PSPLIT_TRY(make_empty(kept, stage, input, port, diag, &empty));
      PSPLIT_TRY(put(kept, at, empty, diag));
    }
    if (!kept->tensors[at])
      return psplit_i_fail(diag, PSPLIT_INTERNAL, "state %s is not there",
                           kept->pipe->manifest.stages[stage].inputs[input].name);
    inputs[input] = psplit_i_tensor_hold(kept->tensors[at]);
  }
out:
  return code;
}

/* What takes the place of states where a prompt's own model reads them. */
static psplit_code give_empty(const psplit_i_kept *kept, uint32_t stage,
                              const psplit_i_session *session, psplit_i_tensor **inputs,
                              psplit_diag *diag) {
  const psplit_i_decoder *d = kept->decoder;
  psplit_code code = PSPLIT_OK;
  for (uint32_t e = 0; e < d->n_empty && code == PSPLIT_OK; e++) {
    const psplit_i_session_port *port;
    if (d->empty[e].stage != stage) continue;
    code = find_port(kept, session, stage, d->empty[e].input, diag, &port);
    if (code == PSPLIT_OK)
      code = make_empty(kept, stage, d->empty[e].input, port, diag, &inputs[d->empty[e].input]);
  }
  return code;
}

/* What stays the same, as it came with the first step. */
static void give_same(psplit_i_kept *kept, uint32_t stage, const psplit_i_step *step,
                      psplit_i_tensor **inputs) {
  const psplit_i_decoder *d = kept->decoder;
  for (uint32_t k = 0; k < d->n_same; k++) {
    if (d->same[k].stage != stage) continue;
    psplit_i_tensor **own = &kept->same[(size_t)step->slot * d->n_same + k];
    psplit_i_tensor **input = &inputs[d->same[k].input];
    if (*input) {
      psplit_i_tensor_release(*own);
      *own = psplit_i_tensor_hold(*input);
    } else if (*own) {
      *input = psplit_i_tensor_hold(*own);
    }
  }
}

static psplit_code before(void *user, uint32_t stage, const psplit_i_session *session,
                          const psplit_i_step *step, psplit_i_tensor **inputs, psplit_diag *diag) {
  psplit_i_kept *kept = user;
  const psplit_i_decoder_phases *phases = &kept->decoder->phases;
  if (step->slot >= kept->n_slots)
    return psplit_i_fail(diag, PSPLIT_INTERNAL, "there is no slot %" PRIu64, step->slot);
  if (step->phase != phases->token)
    return step->phase == phases->prompt ? give_empty(kept, stage, session, inputs, diag)
                                         : PSPLIT_OK;
  give_same(kept, stage, step, inputs);
  return give_states(kept, stage, session, step, inputs, diag);
}

static psplit_code pick_token(const psplit_i_kept *kept, const psplit_i_step *step,
                              psplit_i_tensor **io_tensor, psplit_diag *diag) {
  psplit_i_tensor *made = NULL;
  psplit_i_tensor_view view;
  int64_t token;
  psplit_code code;
  PSPLIT_TRY(
    psplit_i_sample(*io_tensor, &kept->sampling, step->sequence, step->position, diag, &token));
  PSPLIT_TRY(psplit_i_tensor_create(kept->ort, 7, &(int64_t){1}, 1, diag, &made));
  PSPLIT_TRY(psplit_i_tensor_look(made, diag, &view));
  memcpy(view.data, &token, sizeof token);
  psplit_i_tensor_release(*io_tensor);
  *io_tensor = made;
  made = NULL;
out:
  psplit_i_tensor_release(made);
  return code;
}

static psplit_code after(void *user, uint32_t stage, const psplit_i_step *step,
                         psplit_i_tensor **outputs, psplit_diag *diag) {
  psplit_i_kept *kept = user;
  const psplit_i_decoder *d = kept->decoder;
  const psplit_i_logits *logits = step->phase == d->phases.token ? &d->token : &d->prompt;
  psplit_code code = PSPLIT_OK;
  if (step->phase == d->phases.encode) return PSPLIT_OK;
  for (uint32_t k = 0; k < d->n_kept; k++) {
    if (d->kept[k].stage != stage) continue;
    const uint32_t output = step->position ? d->kept[k].output : d->kept[k].first_output;
    if (output != PSPLIT_NONE)
      PSPLIT_TRY(
        put(kept, (size_t)step->slot * d->n_kept + k, psplit_i_tensor_hold(outputs[output]), diag));
  }
  if (stage == logits->stage) PSPLIT_TRY(pick_token(kept, step, &outputs[logits->port], diag));
out:
  return code;
}

/* Values of a provider end before it does. */
static void close_stage(void *user, uint32_t stage) {
  psplit_i_kept *kept = user;
  const psplit_i_decoder *d = kept->decoder;
  for (size_t slot = 0; slot < kept->n_slots; slot++)
    for (uint32_t k = 0; k < d->n_kept; k++)
      if (d->kept[k].stage == stage)
        psplit_i_tensors_release(&kept->tensors[slot * d->n_kept + k], 1);
}

psplit_i_keeper psplit_i_kept_keeper(psplit_i_kept *kept) {
  return (psplit_i_keeper){.user = kept, .before = before, .after = after, .close = close_stage};
}
