#include "delivered.h"

#include <stdlib.h>
#include <string.h>

#include "base.h"

psplit_code psplit_delivered_create(psplit_diag *diag, psplit_delivered **out_delivered) {
  psplit_delivered *d = calloc(1, sizeof *d);
  if (!d) return psplit_i_nomem(diag);
  pthread_mutex_init(&d->mutex, NULL);
  *out_delivered = d;
  return PSPLIT_OK;
}

void psplit_delivered_destroy(psplit_delivered *d) {
  if (d) pthread_mutex_destroy(&d->mutex);
  free(d);
}

uint32_t psplit_delivered_get(psplit_delivered *d, psplit_range *out_ranges, uint32_t most,
                              uint64_t *out_n) {
  pthread_mutex_lock(&d->mutex);
  const uint32_t n = (uint32_t)d->list.n_ranges < most ? (uint32_t)d->list.n_ranges : most;
  if (n) memcpy(out_ranges, d->list.ranges, n * sizeof *out_ranges);
  if (out_n) *out_n = d->list.n;
  pthread_mutex_unlock(&d->mutex);
  return n;
}

void psplit_i_delivered_add(psplit_delivered *d, uint64_t micro_batch) {
  if (!d) return;
  pthread_mutex_lock(&d->mutex);
  psplit_i_delivered_list *list = &d->list;
  psplit_range *last = list->n_ranges ? &list->ranges[list->n_ranges - 1] : NULL;
  list->n++;
  if (last && last->last + 1 == micro_batch)
    last->last = micro_batch;
  else if (list->n_ranges < PSPLIT_MOST_RANGES)
    list->ranges[list->n_ranges++] = (psplit_range){micro_batch, micro_batch};
  pthread_mutex_unlock(&d->mutex);
}

void psplit_i_delivered_set(psplit_delivered *d, const psplit_i_delivered_list *list) {
  pthread_mutex_lock(&d->mutex);
  d->list.n = d->list.n_ranges = 0;
  if (list->n_ranges <= PSPLIT_MOST_RANGES) d->list = *list;
  pthread_mutex_unlock(&d->mutex);
}
