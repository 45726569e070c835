#include "all_reduce.h"

#include <stdlib.h>

enum { DOUBLE = 11 };

psplit_code psplit_i_receive_from(const psplit_i_device *device, uint32_t wire,
                                  psplit_i_bundle **out) {
  *out = psplit_i_queue_pop(device->queues[wire]);
  return *out ? PSPLIT_OK : PSPLIT_I_STOPPED;
}

psplit_code psplit_i_send_to(const psplit_i_device *device, uint32_t wire,
                             psplit_i_bundle *bundle) {
  return psplit_i_queue_push(device->queues[wire], bundle) ? PSPLIT_OK : PSPLIT_I_STOPPED;
}

static psplit_code send_row(const psplit_i_device *d, uint32_t wire, const double *row, size_t n,
                            psplit_diag *diag) {
  const int64_t dims[] = {(int64_t)n};
  psplit_i_tensor_view view;
  psplit_i_bundle *bundle = psplit_i_bundle_create(1);
  psplit_code code;
  if (!bundle) return psplit_i_nomem(diag);
  PSPLIT_TRY(psplit_i_tensor_make(d->ort, DOUBLE, dims, 1, diag, &bundle->tensors[0], &view));
  memcpy(view.data, row, n * sizeof *row);
  return psplit_i_send_to(d, wire, bundle);
out:
  psplit_i_bundle_destroy(bundle);
  return code;
}

static psplit_code receive_row(const psplit_i_device *d, uint32_t wire, size_t n, psplit_diag *diag,
                               double *out) {
  psplit_i_tensor_view view;
  psplit_i_bundle *bundle;
  psplit_code code = psplit_i_receive_from(d, wire, &bundle);
  if (code != PSPLIT_OK) return code;
  code = psplit_i_tensor_look(bundle->tensors[0], diag, &view);
  if (code == PSPLIT_OK && (view.data_type != DOUBLE || view.n_elements != n))
    code = psplit_i_fail(diag, PSPLIT_INVALID,
                         "devices do not train in the same way: were all given the same options?");
  if (code == PSPLIT_OK) memcpy(out, view.data, n * sizeof *out);
  psplit_i_bundle_destroy(bundle);
  return code;
}

psplit_code psplit_i_all_reduce(const psplit_i_device *d, const double *report, size_t n,
                                psplit_i_reduction reduction, psplit_diag *diag,
                                double *out_answer) {
  const size_t n_answer = reduction.n_answer;
  const psplit_i_wiring *w = &d->setup->wiring;
  psplit_code code = PSPLIT_OK;
  if (d->index > 0) {
    PSPLIT_TRY(
      send_row(d, psplit_i_wiring_find(w, PSPLIT_I_WIRE_REPORT, d->index, 0, 0), report, n, diag));
    return receive_row(d, psplit_i_wiring_find(w, PSPLIT_I_WIRE_ORDER, 0, d->index, 0), n_answer,
                       diag, out_answer);
  }
  double *all = malloc((n * w->n_devices + 1) * sizeof *all);
  if (!all) return psplit_i_nomem(diag);
  memcpy(all, report, n * sizeof *all);
  for (uint32_t other = 1; other < w->n_devices && code == PSPLIT_OK; other++)
    code = receive_row(d, psplit_i_wiring_find(w, PSPLIT_I_WIRE_REPORT, other, 0, 0), n, diag,
                       all + n * other);
  if (code == PSPLIT_OK) code = reduction.decide(reduction.user, all, n, out_answer, diag);
  free(all);
  for (uint32_t other = 1; other < w->n_devices && code == PSPLIT_OK; other++)
    code = send_row(d, psplit_i_wiring_find(w, PSPLIT_I_WIRE_ORDER, 0, other, 0), out_answer,
                    n_answer, diag);
out:
  return code;
}
