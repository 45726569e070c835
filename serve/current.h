/* The split that new requests go to, and how another takes its place: it is read and started while
 * the one before it serves, which then answers what it has accepted and ends. One that cannot be
 * started changes nothing. */
#ifndef PSPLIT_SERVE_CURRENT_H
#define PSPLIT_SERVE_CURRENT_H

#include "model.h"

typedef struct serve_current serve_current;

/* Told what became of a reload, by the thread that did it. */
typedef void (*serve_reloaded)(void *user, psplit_code code, const psplit_diag *diag);

/* Reads and starts the split of `options`, which outlives *out. `grace_s`: how long one that is
 * replaced may take for what it has accepted. `told` hears of every reload. Errors: those of
 * serve_model_open and serve_model_start, NOMEM. */
PSPLIT_MUST_USE psplit_code serve_current_create(const serve_model_options *options, double grace_s,
                                                 serve_reloaded told, void *told_user,
                                                 psplit_diag *diag, serve_current **out);

/* The one that serves, for the caller to release. */
serve_model *serve_current_hold(serve_current *current);
/* Whether it is still that one. */
bool serve_current_is(serve_current *current, const serve_model *model);
/* Whether it takes requests. */
bool serve_current_is_ready(serve_current *current);

/* Asks for a reload; `told`, which may be NULL, hears of that one, which begins after now. False
 * where none will be: out of memory, or over. */
bool serve_current_reload(serve_current *current, serve_reloaded told, void *user);
/* How many there were. */
void serve_current_count(serve_current *current, uint64_t *out_n_good, uint64_t *out_n_bad);

/* No reload begins any more; what was accepted may take grace_s. Errors: that of a stage that broke
 * down. */
PSPLIT_MUST_USE psplit_code serve_current_stop(serve_current *current, double grace_s,
                                               psplit_diag *diag);
/* After that: waits for a reload that is under way. False where it is stuck: the process has to end
 * without it. */
bool serve_current_join(serve_current *current);
void serve_current_destroy(serve_current *current); /* stopped and joined; NULL is fine */

#endif
