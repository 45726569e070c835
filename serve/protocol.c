#include "protocol.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "datatypes.h"

enum { MAX_RANK = 32 };

static psplit_code bad(psplit_diag *diag, const char *what) {
  return psplit_diag_fail(diag, PSPLIT_USAGE, "%s", what);
}

static psplit_code no_memory(psplit_diag *diag) {
  return psplit_diag_fail(diag, PSPLIT_NOMEM, "out of memory");
}

typedef psplit_i_json_value json;

static bool is(const json *value, psplit_i_json_kind kind) { return value && value->kind == kind; }

/* How many elements an array has; 0 where there is none. */
static size_t length(const json *array) { return is(array, PSPLIT_I_JSON_ARRAY) ? array->n : 0; }

/* A member of an object; NULL: there is none, or no object. O(members). */
static const json *find(const json *object, const char *key) {
  for (uint32_t i = 0; is(object, PSPLIT_I_JSON_OBJECT) && i < object->n; i++)
    if (strcmp(object->children[i].key, key) == 0) return &object->children[i];
  return NULL;
}

/* A string; NULL where there is none. */
static const char *text_at(const json *object, const char *key) {
  const json *value = find(object, key);
  return is(value, PSPLIT_I_JSON_STRING) ? value->text : NULL;
}

/* As above, of what may be left out; many clients write null for that. */
static const json *find_given(const json *object, const char *key) {
  const json *value = find(object, key);
  return is(value, PSPLIT_I_JSON_NULL) ? NULL : value;
}

/* "parameters" of `of`; NULL: there are none. */
static psplit_code read_parameters(const json *of, psplit_diag *diag, const json **out) {
  *out = find_given(of, "parameters");
  return !*out || is(*out, PSPLIT_I_JSON_OBJECT) ? PSPLIT_OK
                                                 : bad(diag, "parameters has to be an object");
}

/* A parameter of `of` that is true or false; *io stays where it is left out. */
static psplit_code read_flag(const json *of, const char *name, psplit_diag *diag, bool *io) {
  const json *parameters;
  const psplit_code code = read_parameters(of, diag, &parameters);
  if (code != PSPLIT_OK) return code;
  const json *value = find_given(parameters, name);
  if (!value) return PSPLIT_OK;
  *io = is(value, PSPLIT_I_JSON_TRUE);
  if (*io || is(value, PSPLIT_I_JSON_FALSE)) return PSPLIT_OK;
  return psplit_diag_fail(diag, PSPLIT_USAGE, "%s has to be true or false", name);
}

/* An input while it is read. */
typedef struct reading {
  const serve_datatype *type;
  uint64_t n_elements, n_bytes, n_done;
  unsigned char *bytes; /* what it becomes; NULL while sizes of strings are added up */
  uint64_t text_at;     /* of strings: where the next one goes */
} reading;

static bool put_integer(reading *r, const json *value) {
  if (value->kind == PSPLIT_I_JSON_UNSIGNED && r->type->kind == SERVE_UNSIGNED &&
      r->type->bytes == sizeof value->natural) {
    memcpy(r->bytes + r->n_done * sizeof value->natural, &value->natural, sizeof value->natural);
    return true;
  }
  const bool truth = value->kind == PSPLIT_I_JSON_TRUE;
  const bool boolean = truth || value->kind == PSPLIT_I_JSON_FALSE;
  const int64_t given = value->kind == PSPLIT_I_JSON_INTEGER ? value->integer : truth;
  const uint32_t bits = 8 * r->type->bytes;
  if (value->kind != PSPLIT_I_JSON_INTEGER && !(boolean && r->type->data_type == SERVE_BOOL))
    return false;
  if (r->type->kind == SERVE_UNSIGNED && given < 0) return false;
  if (r->type->data_type == SERVE_BOOL && given > 1) return false;
  if (bits < 64) {
    const int64_t most = ((int64_t)1 << (bits - (r->type->kind == SERVE_SIGNED))) - 1;
    if (given > most || (r->type->kind == SERVE_SIGNED && given < -most - 1)) return false;
  }
  memcpy(r->bytes + r->n_done * r->type->bytes, &given, r->type->bytes); /* little-endian */
  return true;
}

static bool put_float(reading *r, const json *value) {
  double given;
  if (!psplit_i_json_as_double(value, &given)) return false;
  if (r->type->bytes == sizeof(float)) {
    const float narrow = (float)given;
    if (isinf(narrow)) return false; /* JSON has no such numbers */
    memcpy(r->bytes + r->n_done * sizeof narrow, &narrow, sizeof narrow);
  } else {
    memcpy(r->bytes + r->n_done * sizeof given, &given, sizeof given);
  }
  return true;
}

/* Strings as the service takes them: lengths, then texts. */
static bool put_text(reading *r, const json *value) {
  if (value->kind != PSPLIT_I_JSON_STRING) return false;
  const uint64_t n = value->n;
  if (r->bytes) {
    memcpy(r->bytes + r->n_done * sizeof n, &n, sizeof n);
    memcpy(r->bytes + r->text_at, value->text, (size_t)n);
  }
  r->text_at += n;
  return true;
}

/* Lists within lists, or one flat list. False where there is something else in them, or too much.
 */
static bool put_values(reading *r, const json *list, int depth) {
  if (depth > MAX_RANK) return false;
  for (uint32_t i = 0; i < list->n; i++) {
    const json *value = &list->children[i];
    if (value->kind == PSPLIT_I_JSON_ARRAY) {
      if (!put_values(r, value, depth + 1)) return false;
      continue;
    }
    const bool good =
      r->n_done < r->n_elements && (r->type->kind == SERVE_TEXT    ? put_text(r, value)
                                    : r->type->kind == SERVE_FLOAT ? put_float(r, value)
                                                                   : put_integer(r, value));
    if (!good) return false;
    r->n_done++;
  }
  return true;
}

/* How many values are in it; false where lists are too deep. */
static bool count_values(const json *list, int depth, uint64_t *io_n) {
  if (depth > MAX_RANK) return false;
  for (uint32_t i = 0; i < list->n; i++) {
    const json *value = &list->children[i];
    if (value->kind != PSPLIT_I_JSON_ARRAY)
      ++*io_n;
    else if (!count_values(value, depth + 1, io_n))
      return false;
  }
  return true;
}

static psplit_code read_list(const json *list, reading *r, psplit_diag *diag) {
  static const char WRONG[] = "data has values of another type, or out of range";
  uint64_t n = 0;
  if (r->type->kind == SERVE_NO_JSON)
    return bad(diag, "numbers of this datatype come as binary data");
  if (!count_values(list, 1, &n) || n != r->n_elements)
    return bad(diag, "data does not have as many values as shape");
  if (r->type->kind == SERVE_TEXT) {
    r->text_at = r->n_elements * sizeof(uint64_t);
    if (list->n && !put_values(r, list, 1)) return bad(diag, WRONG);
    r->n_bytes = r->text_at;
    r->text_at = r->n_elements * sizeof(uint64_t);
    r->n_done = 0;
  }
  r->bytes = calloc(1, (size_t)r->n_bytes + sizeof(uint64_t));
  if (!r->bytes) return no_memory(diag);
  return put_values(r, list, 1) ? PSPLIT_OK : bad(diag, WRONG);
}

/* Binary strings: each has its length in 4 bytes before it. */
static psplit_code read_texts(const unsigned char *from, uint64_t n, reading *r,
                              psplit_diag *diag) {
  static const char WRONG[] = "the size of the binary data does not match datatype and shape";
  if (r->n_elements > n / SERVE_LENGTH_BYTES) return bad(diag, WRONG);
  const uint64_t n_text = n - r->n_elements * SERVE_LENGTH_BYTES;
  uint64_t at = 0, text_at = r->n_elements * sizeof(uint64_t);
  r->n_bytes = text_at + n_text;
  r->bytes = calloc(1, (size_t)r->n_bytes + 1);
  if (!r->bytes) return no_memory(diag);
  for (uint64_t i = 0; i < r->n_elements; i++) {
    uint32_t narrow;
    if (n - at < SERVE_LENGTH_BYTES) return bad(diag, WRONG);
    memcpy(&narrow, from + at, SERVE_LENGTH_BYTES);
    at += SERVE_LENGTH_BYTES;
    const uint64_t length = narrow;
    if (length > n - at || length > r->n_bytes - text_at) return bad(diag, WRONG);
    memcpy(r->bytes + i * sizeof length, &length, sizeof length);
    memcpy(r->bytes + text_at, from + at, (size_t)length);
    at += length;
    text_at += length;
  }
  return at == n ? PSPLIT_OK : bad(diag, WRONG);
}

static psplit_code read_shape(const json *input, reading *r, psplit_diag *diag, int64_t *dims,
                              uint32_t *out_n) {
  const json *shape = find(input, "shape");
  if (!is(shape, PSPLIT_I_JSON_ARRAY) || shape->n > MAX_RANK)
    return bad(diag, "shape has to be a list of at most 32 numbers");
  r->n_elements = 1;
  bool empty = false;
  for (uint32_t d = 0; d < shape->n; d++) {
    const json *dim = &shape->children[d];
    if (dim->kind != PSPLIT_I_JSON_INTEGER || dim->integer < 0)
      return bad(diag, "shape has to be a list of at most 32 numbers");
    dims[d] = dim->integer;
    empty |= dims[d] == 0;
    if (dims[d] && r->n_elements > (uint64_t)INT64_MAX / 16 / (uint64_t)dims[d])
      return bad(diag, "shape is too large");
    r->n_elements *= dims[d] ? (uint64_t)dims[d] : 1;
  }
  if (empty) r->n_elements = 0;
  r->n_bytes = r->n_elements * r->type->bytes;
  *out_n = shape->n;
  return PSPLIT_OK;
}

/* An input; *io_at is how much of the binary data was used. */
static psplit_code read_input(const json *input, const char *binary, size_t n_binary, size_t *io_at,
                              psplit_diag *diag, serve_request *out) {
  const char *name = text_at(input, "name"), *datatype = text_at(input, "datatype");
  const json *data = find_given(input, "data"), *parameters;
  psplit_named_tensor *to = &out->inputs[out->n_inputs];
  reading r = {.type = datatype ? serve_datatype_called(datatype) : NULL};
  if (!name || !r.type) return bad(diag, "an input has a name and a datatype of the protocol");
  psplit_code code = read_parameters(input, diag, &parameters);
  if (code != PSPLIT_OK) return code;
  const json *size = find(parameters, "binary_data_size");
  if (data && size) return bad(diag, "an input has data or binary_data_size, not both");
  int64_t *dims = calloc(MAX_RANK, sizeof *dims);
  if (!dims) return no_memory(diag);
  uint32_t n_dims = 0;
  code = read_shape(input, &r, diag, dims, &n_dims);
  const void *lent = NULL;
  if (code == PSPLIT_OK && size) {
    const int64_t n = size->kind == PSPLIT_I_JSON_INTEGER ? size->integer : -1;
    if (n < 0)
      code = bad(diag, "binary_data_size has to be a number of bytes");
    else if ((uint64_t)n > n_binary - *io_at)
      code = bad(diag, "binary_data_size exceeds the data after the JSON");
    else if (r.type->kind == SERVE_TEXT)
      code = read_texts((const unsigned char *)binary + *io_at, (uint64_t)n, &r, diag);
    else if ((uint64_t)n != r.n_bytes)
      code = bad(diag, "binary_data_size does not match datatype and shape");
    else
      lent = binary + *io_at;
    if (code == PSPLIT_OK) *io_at += (size_t)n;
  } else if (code == PSPLIT_OK) {
    if (is(data, PSPLIT_I_JSON_ARRAY))
      code = read_list(data, &r, diag);
    else
      code = bad(diag, "an input has data, or binary_data_size");
  }
  /* Dimensions stand behind the data, so that one block is all there is to free. */
  void *owned = code == PSPLIT_OK
                  ? realloc(r.bytes, (lent ? 0 : (size_t)r.n_bytes + 16) + MAX_RANK * sizeof *dims)
                  : NULL;
  if (owned) {
    const size_t at = lent ? 0 : ((size_t)r.n_bytes + 7) / 8 * 8;
    int64_t *kept = (int64_t *)(void *)((char *)owned + at);
    memcpy(kept, dims, MAX_RANK * sizeof *dims);
    out->owned[out->n_inputs++] = owned;
    *to = (psplit_named_tensor){name,
                                {r.type->data_type, n_dims, kept, lent ? lent : owned, r.n_bytes}};
  } else {
    if (code == PSPLIT_OK) code = no_memory(diag);
    free(r.bytes);
  }
  free(dims);
  return code;
}

/* What is wrong with it is told with its name, where it has one. */
static psplit_code read_named(const json *input, const char *binary, size_t n_binary, size_t *io_at,
                              psplit_diag *diag, serve_request *out) {
  const char *name = text_at(input, "name");
  psplit_diag why = {0};
  const psplit_code code = read_input(input, binary, n_binary, io_at, &why, out);
  if (code == PSPLIT_OK) return code;
  return name ? psplit_diag_fail(diag, code, "input %s: %s", name, why.message)
              : psplit_diag_fail(diag, code, "%s", why.message);
}

static psplit_code read_wanted(const json *outputs, psplit_diag *diag, serve_request *out) {
  const size_t n = length(outputs);
  psplit_code code = PSPLIT_OK;
  if (!outputs) return PSPLIT_OK;
  if (!is(outputs, PSPLIT_I_JSON_ARRAY)) return bad(diag, "outputs has to be a list");
  out->wanted = calloc(n + 1, sizeof *out->wanted);
  if (!out->wanted) return no_memory(diag);
  for (size_t i = 0; i < n && code == PSPLIT_OK; i++) {
    const json *output = &outputs->children[i];
    serve_wanted wanted = {text_at(output, "name"), out->binary};
    if (!wanted.name) return bad(diag, "an output has a name");
    code = read_flag(output, "binary_data", diag, &wanted.binary);
    out->wanted[out->n_wanted++] = wanted;
  }
  return code;
}

/* The protocol's id is a string. Numbers are what many clients count requests by; what else it is
 * would be lost. */
static psplit_code read_id(const json *root, psplit_diag *diag, const json **out) {
  *out = find_given(root, "id");
  if (!*out || is(*out, PSPLIT_I_JSON_STRING) || is(*out, PSPLIT_I_JSON_INTEGER) ||
      is(*out, PSPLIT_I_JSON_UNSIGNED))
    return PSPLIT_OK;
  return bad(diag, "id has to be a string or a whole number of 64 bits");
}

static psplit_code parse(const char *text, size_t n, psplit_i_arena *arena, psplit_diag *diag,
                         const json **out) {
  psplit_i_json_place place = {0};
  const psplit_code code = psplit_i_json_parse(text, n, arena, &place, out);
  if (code == PSPLIT_OK) return code;
  if (code == PSPLIT_NOMEM) return no_memory(diag);
  if (code != PSPLIT_LIMIT && !place.line)
    return psplit_diag_fail(diag, PSPLIT_INVALID, "%s", place.what);
  return psplit_diag_fail(diag, PSPLIT_INVALID, "JSON: %s, at line %zu, column %zu",
                          code == PSPLIT_LIMIT ? "too many values" : place.what, place.line,
                          place.column);
}

psplit_code serve_request_parse(const char *body, size_t n_body, size_t n_json, psplit_diag *diag,
                                serve_request *out) {
  serve_request made = {0};
  const json *root = NULL;
  size_t at = 0;
  if (n_json > n_body) return bad(diag, "the JSON is longer than the body");
  psplit_i_arena_init(&made.arena, 0);
  psplit_code code = parse(body, n_json, &made.arena, diag, &root);
  const json *inputs = find(root, "inputs");
  const size_t n = length(inputs);
  if (code == PSPLIT_OK && !is(inputs, PSPLIT_I_JSON_ARRAY))
    code = bad(diag, "a request is an object with a list of inputs");
  if (code == PSPLIT_OK) code = read_id(root, diag, &made.id);
  if (code == PSPLIT_OK) code = read_flag(root, "binary_data_output", diag, &made.binary);
  if (code == PSPLIT_OK) {
    made.inputs = calloc(n + 1, sizeof *made.inputs);
    made.owned = calloc(n + 1, sizeof *made.owned);
    if (!made.inputs || !made.owned) code = no_memory(diag);
  }
  for (size_t i = 0; i < n && code == PSPLIT_OK; i++)
    code = read_named(&inputs->children[i], body + n_json, n_body - n_json, &at, diag, &made);
  if (code == PSPLIT_OK && at != n_body - n_json)
    code = bad(diag, "there is more binary data than inputs");
  if (code == PSPLIT_OK) code = read_wanted(find_given(root, "outputs"), diag, &made);
  if (code == PSPLIT_OK)
    *out = made;
  else
    serve_request_fini(&made);
  return code;
}

void serve_request_fini(serve_request *r) {
  for (uint32_t i = 0; r->owned && i < r->n_inputs; i++) free(r->owned[i]);
  free(r->owned);
  free(r->inputs);
  free(r->wanted);
  psplit_i_arena_fini(&r->arena);
  *r = (serve_request){0};
}
