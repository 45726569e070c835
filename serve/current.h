/* The split that serves new requests, and its replacement: a reload reads and starts the new split
 * while the old one still serves; the old one then answers its accepted requests and ends. A failed
 * reload changes nothing. */
#ifndef PSPLIT_SERVE_CURRENT_H
#define PSPLIT_SERVE_CURRENT_H

#include "model.h"

typedef struct serve_current serve_current;

/* Callback for the result of a reload, called by the thread that performed it. */
typedef void (*serve_reloaded)(void *user, psplit_code code, const psplit_diag *diag);

typedef struct serve_current_options {
  serve_model_options model; /* how splits are read */
  const psplit_onnxruntime *ort;
  double grace_s;      /* time limit for accepted requests of a replaced split */
  serve_reloaded told; /* called after every reload */
  void *told_user;
} serve_current_options;

/* Starts `first`, as opened with options->model, whose reference it takes, also if it fails. What
 * `options` refers to must outlive *out. Errors: those of serve_model_start, NOMEM. */
PSPLIT_MUST_USE psplit_code serve_current_create(const serve_current_options *options,
                                                 serve_model *first, psplit_diag *diag,
                                                 serve_current **out);

/* The serving model; the caller must release it. */
serve_model *serve_current_hold(serve_current *current);
/* Whether `model` is still the serving one. */
bool serve_current_is(serve_current *current, const serve_model *model);
/* Whether it accepts requests. */
bool serve_current_is_ready(serve_current *current);

/* Requests a reload that begins after this call; `told` (may be NULL) receives its result. False if
 * it will not be performed: out of memory, or stopped. */
bool serve_current_reload(serve_current *current, serve_reloaded told, void *user);
/* Number of successful and failed reloads. */
void serve_current_count(serve_current *current, uint64_t *out_n_good, uint64_t *out_n_bad);

/* Starts no further reloads; accepted requests may take grace_s. Errors: that of a failed stage. */
PSPLIT_MUST_USE psplit_code serve_current_stop(serve_current *current, double grace_s,
                                               psplit_diag *diag);
/* After that: waits for a reload in progress. False if it hangs: the process must exit without
 * it. */
bool serve_current_join(serve_current *current);
void serve_current_destroy(serve_current *current); /* stopped and joined; NULL is fine */

#endif
