#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base.h"
#include "process.h"

/* The text is strings, each with its NUL: the release, the library, the file, level, threads,
 * provider ("": none), whether placement is asserted between lists, each with how long it is before
 * it: provider options and configuration entries (keys and values in turn), nodes of the host,
 * libraries of custom operators, inputs, outputs. */
static void put(psplit_i_text *out, const char *string) {
  psplit_i_text_add(out, string, strlen(string) + 1);
}

static void put_number(psplit_i_text *out, int64_t number) {
  psplit_i_text_addf(out, "%" PRId64, number);
  psplit_i_text_add(out, "", 1);
}

static void put_pairs(psplit_i_text *out, size_t n, const char *const *keys,
                      const char *const *values) {
  put_number(out, (int64_t)n);
  for (size_t i = 0; i < n; i++) {
    put(out, keys[i]);
    put(out, values[i]);
  }
}

static void put_names(psplit_i_text *out, uint32_t n, const char *const *names) {
  put_number(out, n);
  for (uint32_t i = 0; i < n; i++) put(out, names[i]);
}

psplit_code psplit_i_process_task_write(const char *library, const psplit_i_process_options *o,
                                        psplit_diag *diag, psplit_i_text *out) {
  const psplit_i_session_options *s = o->session;
  put(out, psplit_version());
  put(out, library);
  put(out, o->path);
  put_number(out, s->optimization);
  put_number(out, s->n_threads);
  put(out, s->provider ? s->provider : "");
  put_pairs(out, s->n_provider_options, s->provider_keys, s->provider_values);
  put_pairs(out, s->n_config, s->config_keys, s->config_values);
  put_number(out, s->assert_placement);
  put_names(out, (uint32_t)s->n_host_nodes, s->host_nodes);
  put_names(out, (uint32_t)o->ort->n_custom_ops, (const char *const *)o->ort->custom_ops);
  put_names(out, o->n_inputs, o->input_names);
  put_names(out, o->n_outputs, o->output_names);
  return out->failed ? psplit_i_nomem(diag) : PSPLIT_OK;
}

typedef struct reader {
  const char *at, *end;
  bool bad;
  const char **names; /* where the next list goes */
  size_t room;
} reader;

static const char *get(reader *r) {
  const char *string = r->at;
  if (r->at >= r->end) {
    r->bad = true;
    return "";
  }
  r->at += strlen(string) + 1;
  return string;
}

static int64_t get_number(reader *r, int64_t most) {
  char *end;
  const char *text = get(r);
  const long long number = strtoll(text, &end, 10);
  if (!*text || *end || number < 0 || number > most) r->bad = true;
  return r->bad ? 0 : number;
}

/* A list of n strings, every step-th of those that follow. */
static size_t get_list(reader *r, size_t step, const char *const **out_first,
                       const char *const **out_second) {
  const size_t n = (size_t)get_number(r, (int64_t)r->room / (int64_t)step);
  const char **lists[2] = {r->names, r->names + n};
  for (size_t i = 0; i < n * step && !r->bad; i++) lists[i % step][i / step] = get(r);
  *out_first = lists[0];
  if (out_second) *out_second = lists[1];
  r->names += n * step;
  r->room -= n * step;
  return n;
}

psplit_code psplit_i_process_task_read(const char *text, uint64_t n, psplit_diag *diag,
                                       psplit_i_process_task *out) {
  reader r = {.at = text, .end = text + n};
  for (uint64_t i = 0; i < n; i++) r.room += !text[i];
  const char **names = calloc(r.room + 1, sizeof *names);
  if (!names) return psplit_i_nomem(diag);
  r.names = names;
  const char *version = get(&r);
  if (!r.bad && strcmp(version, psplit_version()) != 0) {
    free(names);
    return psplit_i_fail(diag, PSPLIT_INVALID,
                         "the service is of release %s, its stages would be of %s", version,
                         psplit_version());
  }
  psplit_i_process_task task = {.names = names, .library = get(&r), .path = get(&r)};
  psplit_i_session_options *s = &task.session;
  s->optimization = (int)get_number(&r, INT16_MAX);
  s->n_threads = (uint32_t)get_number(&r, INT32_MAX);
  s->provider = get(&r);
  if (!*s->provider) s->provider = NULL;
  s->n_provider_options = get_list(&r, 2, &s->provider_keys, &s->provider_values);
  s->n_config = get_list(&r, 2, &s->config_keys, &s->config_values);
  s->assert_placement = get_number(&r, 1);
  s->n_host_nodes = get_list(&r, 1, &s->host_nodes, NULL);
  task.n_custom_ops = get_list(&r, 1, &task.custom_ops, NULL);
  task.n_inputs = (uint32_t)get_list(&r, 1, &task.input_names, NULL);
  task.n_outputs = (uint32_t)get_list(&r, 1, &task.output_names, NULL);
  if (r.bad || r.at != r.end) {
    free(names);
    return psplit_i_fail(diag, PSPLIT_INVALID, "malformed message: the request to open a stage");
  }
  *out = task;
  return PSPLIT_OK;
}
