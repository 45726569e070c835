#include "current.h"

#include <pthread.h>
#include <stdlib.h>
#include <time.h>

typedef struct ask {
  struct ask *next;
  serve_reloaded told; /* may be NULL */
  void *user;
} ask;

struct serve_current {
  serve_current_options options;
  pthread_t thread;
  pthread_mutex_t mutex;
  pthread_cond_t changed;
  serve_model *model;
  ask *asks; /* in any order: all of them are for the next reload */
  uint64_t n_good, n_bad;
  bool started, over, ended, joined;
  bool drains; /* one that was replaced answers what it has accepted */
};

static void tell_all(ask *asks, psplit_code code, const psplit_diag *diag) {
  while (asks) {
    ask *one = asks;
    asks = one->next;
    if (one->told) one->told(one->user, code, diag);
    free(one);
  }
}

static psplit_code load(const serve_current_options *options, psplit_diag *diag,
                        serve_model **out) {
  serve_model *model = NULL;
  psplit_code code = serve_model_open(&options->model, diag, &model);
  if (code == PSPLIT_OK) code = serve_model_start(model, options->ort, diag);
  if (code == PSPLIT_OK)
    *out = model;
  else
    serve_model_release(model);
  return code;
}

/* Puts `made` in the place of what is returned, which the caller releases: what was there before,
 * or `made` itself, where all is over. */
static serve_model *replace(serve_current *c, serve_model *made) {
  pthread_mutex_lock(&c->mutex);
  serve_model *old = c->over ? made : c->model;
  if (!c->over) c->model = made;
  pthread_mutex_unlock(&c->mutex);
  return old;
}

static void reload(serve_current *c, ask *asks) {
  psplit_diag diag = {0}, ignored = {0};
  serve_model *made = NULL;
  const psplit_code code = load(&c->options, &diag, &made);
  serve_model *old = code == PSPLIT_OK ? replace(c, made) : NULL;
  pthread_mutex_lock(&c->mutex);
  c->n_good += code == PSPLIT_OK;
  c->n_bad += code != PSPLIT_OK;
  c->drains = old != NULL;
  pthread_mutex_unlock(&c->mutex);
  c->options.told(c->options.told_user, code, &diag);
  tell_all(asks, code, &diag);
  if (!old) return;
  /* Who still holds it has its answers, or gets them now: what it ended with is told to them. */
  const psplit_code stopped =
    psplit_service_stop(serve_model_service(old), c->options.grace_s, &ignored);
  (void)stopped;
  serve_model_release(old);
  pthread_mutex_lock(&c->mutex);
  c->drains = false;
  pthread_mutex_unlock(&c->mutex);
}

static void *reloader(void *user) {
  serve_current *c = user;
  pthread_mutex_lock(&c->mutex);
  while (!c->over) {
    ask *asks = c->asks;
    c->asks = NULL;
    if (!asks) {
      pthread_cond_wait(&c->changed, &c->mutex);
      continue;
    }
    pthread_mutex_unlock(&c->mutex);
    reload(c, asks);
    pthread_mutex_lock(&c->mutex);
  }
  c->ended = true;
  pthread_mutex_unlock(&c->mutex);
  return NULL;
}

psplit_code serve_current_create(const serve_current_options *options, serve_model *first,
                                 psplit_diag *diag, serve_current **out) {
  serve_current *c = calloc(1, sizeof *c);
  if (!c) {
    serve_model_release(first);
    return cli_nomem(diag);
  }
  *c = (serve_current){.options = *options, .model = first};
  pthread_mutex_init(&c->mutex, NULL);
  pthread_cond_init(&c->changed, NULL);
  psplit_code code = serve_model_start(first, options->ort, diag);
  if (code == PSPLIT_OK && pthread_create(&c->thread, NULL, reloader, c))
    code = psplit_diag_fail(diag, PSPLIT_NOMEM, "cannot start a thread");
  else
    c->started = code == PSPLIT_OK;
  if (code == PSPLIT_OK)
    *out = c;
  else
    serve_current_destroy(c);
  return code;
}

serve_model *serve_current_hold(serve_current *c) {
  pthread_mutex_lock(&c->mutex);
  serve_model *model = c->model;
  serve_model_hold(model);
  pthread_mutex_unlock(&c->mutex);
  return model;
}

bool serve_current_is(serve_current *c, const serve_model *model) {
  pthread_mutex_lock(&c->mutex);
  const bool is = c->model == model;
  pthread_mutex_unlock(&c->mutex);
  return is;
}

bool serve_current_is_ready(serve_current *c) {
  serve_model *model = serve_current_hold(c);
  const bool ready = psplit_service_is_ready(serve_model_service(model));
  serve_model_release(model);
  return ready;
}

bool serve_current_reload(serve_current *c, serve_reloaded told, void *user) {
  ask *one = malloc(sizeof *one);
  if (!one) return false;
  pthread_mutex_lock(&c->mutex);
  const bool taken = !c->over;
  if (taken) {
    *one = (ask){c->asks, told, user};
    c->asks = one;
    pthread_cond_signal(&c->changed);
  }
  pthread_mutex_unlock(&c->mutex);
  if (!taken) free(one);
  return taken;
}

void serve_current_count(serve_current *c, uint64_t *out_n_good, uint64_t *out_n_bad) {
  pthread_mutex_lock(&c->mutex);
  *out_n_good = c->n_good;
  *out_n_bad = c->n_bad;
  pthread_mutex_unlock(&c->mutex);
}

psplit_code serve_current_stop(serve_current *c, double grace_s, psplit_diag *diag) {
  static const psplit_diag OVER = {.code = PSPLIT_IO, .message = "the server ends"};
  pthread_mutex_lock(&c->mutex);
  c->over = true;
  ask *asks = c->asks;
  c->asks = NULL;
  pthread_cond_signal(&c->changed);
  pthread_mutex_unlock(&c->mutex);
  tell_all(asks, OVER.code, &OVER);
  return psplit_service_stop(serve_model_service(c->model), grace_s, diag);
}

/* Whether the reloader ends within that time. */
static bool wait_end(serve_current *c, double most_s) {
  static const long LOOK_NS = 20000000;
  const double until_s = cli_now_s() + most_s;
  for (;;) {
    pthread_mutex_lock(&c->mutex);
    const bool ended = c->ended;
    pthread_mutex_unlock(&c->mutex);
    if (ended || cli_now_s() >= until_s) return ended;
    nanosleep(&(struct timespec){0, LOOK_NS}, NULL);
  }
}

bool serve_current_join(serve_current *c) {
  static const double LOAD_S = 2;
  if (!c->started || c->joined) return true;
  /* One that was replaced has its own time for what it has accepted. */
  pthread_mutex_lock(&c->mutex);
  const bool drains = c->drains;
  pthread_mutex_unlock(&c->mutex);
  if (!wait_end(c, drains ? c->options.grace_s + LOAD_S : LOAD_S)) return false;
  pthread_join(c->thread, NULL);
  return c->joined = true;
}

void serve_current_destroy(serve_current *c) {
  if (!c) return;
  serve_model_release(c->model);
  pthread_cond_destroy(&c->changed);
  pthread_mutex_destroy(&c->mutex);
  free(c);
}
