#include "checkpoint_json.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "checkpoint_place.h"
#include "json_put.h"

enum { VERSION = 1, DIGEST_CHARS = 32 };

/* --- the digest --- */

static int by_name(const void *a, const void *b) {
  const psplit_i_trained_weight *x = *(const psplit_i_trained_weight *const *)a,
                                *y = *(const psplit_i_trained_weight *const *)b;
  return strcmp(x->name, y->name);
}

/* `weights` by name; malloc'd, NULL when out of memory. */
static const psplit_i_trained_weight **sorted(const psplit_i_trained_weight *weights, uint32_t n) {
  const psplit_i_trained_weight **out = malloc((n + (size_t)1) * sizeof *out);
  for (uint32_t i = 0; out && i < n; i++) out[i] = &weights[i];
  if (out) qsort(out, n, sizeof *out, by_name);
  return out;
}

psplit_code psplit_i_checkpoint_digest(const psplit_i_trained_weight *weights, uint32_t n_weights,
                                       psplit_diag *diag, uint64_t out[2]) {
  const psplit_i_trained_weight **rows = sorted(weights, n_weights);
  psplit_i_hasher hasher;
  if (!rows) return psplit_i_nomem(diag);
  psplit_i_hasher_init(&hasher);
  for (uint32_t i = 0; i < n_weights; i++) {
    const psplit_i_trained_weight *w = rows[i];
    const char *type = w->dtype ? w->dtype : "";
    psplit_i_hasher_add(&hasher, w->name, strlen(w->name) + 1);
    psplit_i_hasher_add(&hasher, type, strlen(type) + 1);
    const int64_t rank = w->shape.rank;
    psplit_i_hasher_add(&hasher, &rank, sizeof rank);
    for (int32_t d = 0; d < w->shape.rank; d++)
      psplit_i_hasher_add(&hasher, &w->shape.dims[d].value, sizeof w->shape.dims[d].value);
  }
  psplit_i_hasher_done(&hasher, out);
  free(rows);
  return PSPLIT_OK;
}

/* --- writing --- */

static void put_weight(psplit_i_json *json, const psplit_i_trained_weight *weight) {
  psplit_i_json_open(json, '{');
  json->compact = true;
  psplit_i_json_put_string(json, "name", weight->name);
  psplit_i_json_put_string(json, "dtype", weight->dtype ? weight->dtype : "");
  psplit_i_json_put_open(json, "shape", '[');
  for (int32_t d = 0; d < weight->shape.rank; d++)
    psplit_i_json_int(json, weight->shape.dims[d].value);
  psplit_i_json_close(json, ']');
  psplit_i_json_close(json, '}');
  json->compact = false;
}

static void put_state(psplit_i_json *json, const psplit_i_checkpoint_state *state) {
  char seed[24];
  psplit_i_json_put_uint(json, "step", state->step);
  psplit_i_json_put_uint(json, "epoch", state->epoch);
  psplit_i_json_put_uint(json, "batch", state->batch);
  snprintf(seed, sizeof seed, "%" PRIu64, state->seed); /* 64 bits are too many for some readers */
  psplit_i_json_put_string(json, "seed", seed);
  psplit_i_json_key(json, "optimizer");
  if (state->optimizer)
    psplit_i_json_string(json, state->optimizer);
  else
    psplit_i_json_null(json);
  psplit_i_json_put_uint(json, "rows", state->n_rows);
  psplit_i_json_put_uint(json, "batch_rows", state->batch_rows);
  psplit_i_json_put_uint(json, "micro_batches", state->n_micro_batches);
}

psplit_code psplit_i_training_json_write(const psplit_i_checkpoint_state *state,
                                         const psplit_i_trained_weight *weights, uint32_t n_weights,
                                         const uint64_t *stage_bytes, psplit_diag *diag,
                                         psplit_i_text *out) {
  const psplit_i_trained_weight **rows = NULL;
  uint64_t digest[2];
  char hex[DIGEST_CHARS + 1];
  psplit_i_json json;
  psplit_code code;
  PSPLIT_TRY(psplit_i_checkpoint_digest(weights, n_weights, diag, digest));
  snprintf(hex, sizeof hex, "%016" PRIx64 "%016" PRIx64, digest[0], digest[1]);
  rows = sorted(weights, n_weights);
  if (!rows) PSPLIT_FAIL(psplit_i_nomem(diag));
  psplit_i_json_init(&json, out);
  psplit_i_json_open(&json, '{');
  psplit_i_json_put_int(&json, "version", VERSION);
  put_state(&json, state);
  psplit_i_json_put_string(&json, "digest", hex);
  psplit_i_json_put_open(&json, "stages", '[');
  for (uint32_t s = 0; s < state->n_stages; s++) {
    char name[PSPLIT_I_STAGE_FILE_BYTES];
    psplit_i_stage_file(s, name);
    psplit_i_json_open(&json, '{');
    json.compact = true;
    psplit_i_json_put_string(&json, "file", name);
    psplit_i_json_put_uint(&json, "bytes", stage_bytes[s]);
    psplit_i_json_close(&json, '}');
    json.compact = false;
  }
  psplit_i_json_close(&json, ']');
  psplit_i_json_put_open(&json, "weights", '[');
  for (uint32_t i = 0; i < n_weights; i++) put_weight(&json, rows[i]);
  psplit_i_json_close(&json, ']');
  psplit_i_json_close(&json, '}');
  if (out->failed) code = psplit_i_nomem(diag);
out:
  free(rows);
  return code;
}

/* --- reading --- */

typedef psplit_i_json_item item;

static void read_seed(item at, uint64_t *out) {
  const char *text = "";
  psplit_i_json_name(at, &text);
  if (at.reader->code == PSPLIT_OK && !psplit_i_parse_u64(text, out))
    psplit_i_json_must_be(&at, "a number from 0 to 2^64 - 1, as a string");
}

static void read_digest(item at, uint64_t out[2]) {
  const char *text = "";
  psplit_i_json_name(at, &text);
  if (at.reader->code != PSPLIT_OK) return;
  if (strlen(text) != DIGEST_CHARS || strspn(text, "0123456789abcdef") != DIGEST_CHARS) {
    psplit_i_json_must_be(&at, "%d hexadecimal digits", DIGEST_CHARS);
    return;
  }
  char half[DIGEST_CHARS / 2 + 1] = {0};
  for (unsigned i = 0; i < 2; i++) {
    memcpy(half, text + i * (DIGEST_CHARS / 2), DIGEST_CHARS / 2);
    out[i] = strtoull(half, NULL, 16);
  }
}

static void read_state(const item *root, psplit_i_checkpoint_state *out) {
  const item optimizer = psplit_i_json_unless_null(psplit_i_json_need(root, "optimizer"));
  psplit_i_json_u64(psplit_i_json_need(root, "step"), &out->step);
  psplit_i_json_u32(psplit_i_json_need(root, "epoch"), 0, UINT32_MAX, &out->epoch);
  psplit_i_json_u64(psplit_i_json_need(root, "batch"), &out->batch);
  read_seed(psplit_i_json_need(root, "seed"), &out->seed);
  if (psplit_i_json_given(optimizer)) {
    const char *text = "";
    psplit_i_json_name(optimizer, &text);
    out->optimizer = psplit_i_json_copy(root->reader, text);
  }
  psplit_i_json_u64(psplit_i_json_need(root, "rows"), &out->n_rows);
  psplit_i_json_u64(psplit_i_json_need(root, "batch_rows"), &out->batch_rows);
  psplit_i_json_u32(psplit_i_json_need(root, "micro_batches"), 0, UINT32_MAX,
                    &out->n_micro_batches);
  read_digest(psplit_i_json_need(root, "digest"), out->digest);
}

static void read_stages(const item *list, psplit_i_training_json *out) {
  static const char *const known[] = {"file", "bytes"};
  const size_t n = psplit_i_json_length(list, 1, UINT32_MAX);
  uint64_t *bytes = PSPLIT_I_JSON_NEW(list->reader, uint64_t, n ? n : 1);
  for (uint32_t s = 0; s < n && list->reader->code == PSPLIT_OK; s++) {
    const item row = psplit_i_json_element(list, s);
    char name[PSPLIT_I_STAGE_FILE_BYTES];
    const char *file = "";
    PSPLIT_I_JSON_KEYS(&row, known);
    const item given = psplit_i_json_need(&row, "file");
    psplit_i_stage_file(s, name);
    psplit_i_json_name(given, &file);
    if (list->reader->code == PSPLIT_OK && strcmp(file, name) != 0)
      psplit_i_json_must_be(&given, "\"%s\"", name);
    psplit_i_json_u64(psplit_i_json_need(&row, "bytes"), &bytes[s]);
  }
  out->state.n_stages = (uint32_t)n;
  out->stage_bytes = bytes;
}

static void read_weight(const item *row, psplit_i_trained_weight *out) {
  static const char *const known[] = {"name", "dtype", "shape"};
  const char *name = "", *type = "";
  PSPLIT_I_JSON_KEYS(row, known);
  psplit_i_json_name(psplit_i_json_need(row, "name"), &name);
  psplit_i_json_name(psplit_i_json_need(row, "dtype"), &type);
  const item shape = psplit_i_json_need(row, "shape");
  const size_t rank = psplit_i_json_length(&shape, 0, PSPLIT_I_MAX_RANK);
  psplit_i_manifest_dim *dims =
    PSPLIT_I_JSON_NEW(row->reader, psplit_i_manifest_dim, rank ? rank : 1);
  for (size_t d = 0; dims && d < rank; d++)
    psplit_i_json_i64(psplit_i_json_element(&shape, d), -1, INT64_MAX, &dims[d].value);
  out->name = psplit_i_json_copy(row->reader, name);
  out->dtype = psplit_i_json_copy(row->reader, type);
  out->shape = (psplit_i_shape){.rank = (int32_t)rank, .dims = dims};
}

static void read_weights(const item *list, psplit_i_training_json *out) {
  const size_t n = psplit_i_json_length(list, 0, UINT32_MAX);
  psplit_i_trained_weight *weights =
    PSPLIT_I_JSON_NEW(list->reader, psplit_i_trained_weight, n ? n : 1);
  for (size_t i = 0; i < n && list->reader->code == PSPLIT_OK; i++) {
    const item row = psplit_i_json_element(list, i);
    read_weight(&row, &weights[i]);
    if (list->reader->code == PSPLIT_OK && i && strcmp(weights[i - 1].name, weights[i].name) >= 0)
      psplit_i_json_wrong(&row, "weights must be in the order of their names, each once");
  }
  out->weights = weights;
  out->n_weights = (uint32_t)n;
}

psplit_code psplit_i_training_json_parse(const char *path, const char *text, size_t n,
                                         psplit_i_arena *arena, psplit_diag *diag,
                                         psplit_i_training_json *out) {
  static const char *const known[] = {"version", "step",      "epoch",         "batch",
                                      "seed",    "optimizer", "rows",          "batch_rows",
                                      "digest",  "stages",    "micro_batches", "weights"};
  psplit_i_json_reader reader = {.diag = diag, .arena = arena, .file = path};
  psplit_i_training_json found = {0};
  int64_t version = VERSION;
  uint64_t digest[2];
  item root = psplit_i_json_load(&reader, text, n);
  const item at = psplit_i_json_need(&root, "version");
  psplit_i_json_i64(at, 1, INT64_MAX, &version);
  if (reader.code == PSPLIT_OK && version != VERSION)
    psplit_i_json_fail(&at, PSPLIT_UNSUPPORTED, "%" PRId64 " is of a later release", version);
  PSPLIT_I_JSON_KEYS(&root, known);
  read_state(&root, &found.state);
  const item stages = psplit_i_json_need(&root, "stages"),
             weights = psplit_i_json_need(&root, "weights");
  read_stages(&stages, &found);
  read_weights(&weights, &found);
  psplit_i_json_release(&root);
  if (reader.code == PSPLIT_OK)
    reader.code = psplit_i_checkpoint_digest(found.weights, found.n_weights, diag, digest);
  if (reader.code == PSPLIT_OK && memcmp(digest, found.state.digest, sizeof digest) != 0)
    return psplit_i_fail(diag, PSPLIT_INVALID, "%s: the digest is not that of its weights", path);
  if (reader.code == PSPLIT_OK) *out = found;
  return reader.code;
}
