/* What a server counts, as Prometheus reads it (text format 0.0.4). */
#ifndef PSPLIT_SERVE_METRICS_H
#define PSPLIT_SERVE_METRICS_H

#include <stdatomic.h>

#include "current.h"

enum { SERVE_N_BUCKETS = 14 };
typedef struct serve_metrics {
  _Atomic uint64_t n_by_bucket[SERVE_N_BUCKETS + 1];
  _Atomic uint64_t n_good, n_failed; /* of those that were accepted */
  _Atomic uint64_t n_no_room, n_bad; /* not accepted */
  _Atomic int64_t total_ns;
} serve_metrics;

/* Adds an answer that took so long. */
void serve_metrics_add(serve_metrics *metrics, int64_t total_ns);

/* Of this process; 0: it is not known. */
uint64_t serve_resident_bytes(void);

/* malloc'd; NULL when out of memory. */
char *serve_metrics_text(const serve_metrics *metrics, serve_current *current);

#endif
