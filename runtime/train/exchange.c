#include "exchange.h"

#include "all_reduce.h"

psplit_code psplit_i_take_all(psplit_i_work *w, psplit_i_learner *l, psplit_i_wire_kind kind,
                              psplit_i_event *event) {
  const psplit_i_wiring *wiring = &w->setup->wiring;
  for (uint32_t i = 0; i < wiring->n_wires; i++) {
    psplit_i_bundle *bundle;
    if (!psplit_i_wire_enters(&wiring->wires[i], kind, l->index, l->replica)) continue;
    const psplit_code code = psplit_i_receive_from(w->device, i, &bundle);
    if (code != PSPLIT_OK) return code;
    event->transfer_ns += bundle->transfer_ns;
    event->bytes += bundle->bytes;
    if (bundle->failure)
      w->given_up = true;
    else
      psplit_i_learner_take(l, i, bundle);
    psplit_i_bundle_destroy(bundle);
  }
  return PSPLIT_OK;
}

psplit_code psplit_i_give_all(psplit_i_work *w, const psplit_i_learner *l, psplit_i_wire_kind kind,
                              psplit_diag *diag) {
  const psplit_i_wiring *wiring = &w->setup->wiring;
  static const psplit_diag GIVEN_UP = {.code = PSPLIT_CANCELLED, .message = "interrupted"};
  psplit_code code = PSPLIT_OK;
  for (uint32_t i = 0; i < wiring->n_wires && code == PSPLIT_OK; i++) {
    const psplit_i_wire *wire = &wiring->wires[i];
    if (!psplit_i_wire_leaves(wire, kind, l->index, l->replica)) continue;
    psplit_i_bundle *bundle = psplit_i_bundle_create(wire->n_tensors);
    if (!bundle) return psplit_i_nomem(diag);
    if (!w->given_up)
      psplit_i_learner_give(l, i, bundle);
    else
      code = psplit_i_bundle_fail(bundle, &GIVEN_UP, diag);
    if (code == PSPLIT_OK)
      code = psplit_i_send_to(w->device, i, bundle);
    else
      psplit_i_bundle_destroy(bundle);
  }
  return code;
}

/* Once a step: gradients of weights that several stages read, to who updates these; and weights
 * from there to the others. */
psplit_code psplit_i_share(psplit_i_work *w, psplit_i_wire_kind kind, psplit_diag *diag) {
  psplit_i_event ignored = {0};
  psplit_code code = PSPLIT_OK;
  for (uint32_t c = 0; c < w->setup->wiring.n_chunks && code == PSPLIT_OK; c++)
    code = psplit_i_give_all(w, &w->learners[c], kind, diag);
  for (uint32_t c = 0; c < w->setup->wiring.n_chunks && code == PSPLIT_OK; c++)
    code = psplit_i_take_all(w, &w->learners[c], kind, &ignored);
  return code;
}

/* What this replica has of the gradients to the first one, which adds them in the order of the
 * replicas and gives all of them the sums. */
static psplit_code add_replicas(psplit_i_work *w, psplit_i_learner *l, psplit_diag *diag) {
  const psplit_i_wiring *wiring = &w->setup->wiring;
  psplit_code code = PSPLIT_OK;
  for (uint32_t r = 1; r < wiring->n_replicas; r++)
    for (uint32_t i = 0; i < wiring->n_wires && code == PSPLIT_OK; i++) {
      psplit_i_bundle *bundle;
      if (!psplit_i_wire_enters(&wiring->wires[i], PSPLIT_I_WIRE_GRADIENTS, l->index, 0) ||
          wiring->wires[i].from_replica != r)
        continue;
      PSPLIT_TRY(psplit_i_receive_from(w->device, i, &bundle));
      w->given_up |= bundle->failure != NULL;
      if (!w->given_up) code = psplit_i_learner_add(l, i, bundle, diag);
      psplit_i_bundle_destroy(bundle);
    }
  if (code == PSPLIT_OK) code = psplit_i_give_all(w, l, PSPLIT_I_WIRE_SUMS, diag);
out:
  return code;
}

psplit_code psplit_i_sum_replicas(psplit_i_work *w, psplit_diag *diag) {
  const uint32_t n_chunks = w->setup->wiring.n_chunks;
  psplit_i_event ignored = {0};
  psplit_code code = PSPLIT_OK;
  if (w->setup->wiring.n_replicas == 1) return PSPLIT_OK;
  for (uint32_t c = 0; c < n_chunks && code == PSPLIT_OK; c++) {
    if (!w->given_up) code = psplit_i_learner_fill_sums(&w->learners[c], diag);
    if (code == PSPLIT_OK)
      code = psplit_i_give_all(w, &w->learners[c], PSPLIT_I_WIRE_GRADIENTS, diag);
  }
  for (uint32_t c = 0; c < n_chunks && code == PSPLIT_OK; c++)
    code = w->replica ? psplit_i_take_all(w, &w->learners[c], PSPLIT_I_WIRE_SUMS, &ignored)
                      : add_replicas(w, &w->learners[c], diag);
  return code;
}
