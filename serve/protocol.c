#include "protocol.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { BOOL = 9, STRING = 8, MAX_RANK = 32, LENGTH_BYTES = 4 };

/* By the protocol, numpy and TensorProto.DataType. */
static const struct type {
  const char *name, *numpy;
  int32_t data_type;
  uint32_t bytes;
  enum { NO_JSON, SIGNED, UNSIGNED, FLOAT, TEXT } kind;
} TYPES[] = {
  {"BOOL", "bool", BOOL, 1, UNSIGNED},   {"UINT8", "uint8", 2, 1, UNSIGNED},
  {"UINT16", "uint16", 4, 2, UNSIGNED},  {"UINT32", "uint32", 12, 4, UNSIGNED},
  {"UINT64", "uint64", 13, 8, UNSIGNED}, {"INT8", "int8", 3, 1, SIGNED},
  {"INT16", "int16", 5, 2, SIGNED},      {"INT32", "int32", 6, 4, SIGNED},
  {"INT64", "int64", 7, 8, SIGNED},      {"FP16", "float16", 10, 2, NO_JSON},
  {"BF16", "bfloat16", 16, 2, NO_JSON},  {"FP32", "float32", 1, 4, FLOAT},
  {"FP64", "float64", 11, 8, FLOAT},     {"BYTES", "string", STRING, 0, TEXT},
};
enum { N_TYPES = sizeof TYPES / sizeof *TYPES };

static const struct type *type_called(const char *name) {
  for (size_t i = 0; i < N_TYPES; i++)
    if (strcmp(TYPES[i].name, name) == 0) return &TYPES[i];
  return NULL;
}

static const struct type *type_of(int32_t data_type) {
  for (size_t i = 0; i < N_TYPES; i++)
    if (TYPES[i].data_type == data_type) return &TYPES[i];
  return NULL;
}

static psplit_code bad(psplit_diag *diag, const char *what) {
  return psplit_diag_fail(diag, PSPLIT_USAGE, "%s", what);
}

static psplit_code no_memory(psplit_diag *diag) {
  return psplit_diag_fail(diag, PSPLIT_NOMEM, "out of memory");
}

/* A member of "parameters" of `of`; NULL: there is none. */
static json_t *parameter(json_t *of, const char *name) {
  return json_object_get(json_object_get(of, "parameters"), name);
}

/* An input while it is read. */
typedef struct reading {
  const struct type *type;
  uint64_t n_elements, n_bytes, n_done;
  unsigned char *bytes; /* what it becomes; NULL while sizes of strings are added up */
  uint64_t text_at;     /* of strings: where the next one goes */
} reading;

static bool put_integer(reading *r, json_t *value) {
  const json_int_t given = json_is_boolean(value) ? json_is_true(value) : json_integer_value(value);
  const uint32_t bits = 8 * r->type->bytes;
  if (!json_is_integer(value) && !(json_is_boolean(value) && r->type->data_type == BOOL))
    return false;
  if (r->type->kind == UNSIGNED && given < 0) return false;
  if (r->type->data_type == BOOL && given > 1) return false;
  if (bits < 64) {
    const json_int_t most = ((json_int_t)1 << (bits - (r->type->kind == SIGNED))) - 1;
    if (given > most || (r->type->kind == SIGNED && given < -most - 1)) return false;
  }
  memcpy(r->bytes + r->n_done * r->type->bytes, &given, r->type->bytes); /* little-endian */
  return true;
}

static bool put_float(reading *r, json_t *value) {
  if (!json_is_number(value)) return false;
  const double given = json_number_value(value);
  const float narrow = (float)given;
  if (r->type->bytes == sizeof narrow)
    memcpy(r->bytes + r->n_done * sizeof narrow, &narrow, sizeof narrow);
  else
    memcpy(r->bytes + r->n_done * sizeof given, &given, sizeof given);
  return true;
}

/* Strings as the service takes them: lengths, then texts. */
static bool put_text(reading *r, json_t *value) {
  const uint64_t n = json_string_length(value);
  if (!json_is_string(value)) return false;
  if (r->bytes) {
    memcpy(r->bytes + r->n_done * sizeof n, &n, sizeof n);
    memcpy(r->bytes + r->text_at, json_string_value(value), (size_t)n);
  }
  r->text_at += n;
  return true;
}

/* Lists within lists, or one flat list. False where there is something else in them, or too much.
 */
static bool put_values(reading *r, json_t *list, int depth) {
  size_t i;
  json_t *value;
  if (depth > MAX_RANK) return false;
  json_array_foreach(list, i, value) {
    if (json_is_array(value)) {
      if (!put_values(r, value, depth + 1)) return false;
      continue;
    }
    const bool good =
      r->n_done < r->n_elements && (r->type->kind == TEXT    ? put_text(r, value)
                                    : r->type->kind == FLOAT ? put_float(r, value)
                                                             : put_integer(r, value));
    if (!good) return false;
    r->n_done++;
  }
  return true;
}

/* How many values are in it; false where lists are too deep. */
static bool count_values(json_t *list, int depth, uint64_t *io_n) {
  size_t i;
  json_t *value;
  if (depth > MAX_RANK) return false;
  json_array_foreach(list, i, value) {
    if (!json_is_array(value))
      ++*io_n;
    else if (!count_values(value, depth + 1, io_n))
      return false;
  }
  return true;
}

static psplit_code read_list(json_t *list, reading *r, psplit_diag *diag) {
  static const char WRONG[] = "data has values of another type, or out of range";
  uint64_t n = 0;
  if (r->type->kind == NO_JSON) return bad(diag, "numbers of this datatype come as binary data");
  if (!count_values(list, 1, &n) || n != r->n_elements)
    return bad(diag, "data has not as many values as shape");
  if (r->type->kind == TEXT) {
    r->text_at = r->n_elements * sizeof(uint64_t);
    if (json_array_size(list) && !put_values(r, list, 1)) return bad(diag, WRONG);
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
  static const char WRONG[] = "binary data is not what datatype and shape say";
  if (r->n_elements > n / LENGTH_BYTES) return bad(diag, WRONG);
  const uint64_t n_text = n - r->n_elements * LENGTH_BYTES;
  uint64_t at = 0, text_at = r->n_elements * sizeof(uint64_t);
  r->n_bytes = text_at + n_text;
  r->bytes = calloc(1, (size_t)r->n_bytes + 1);
  if (!r->bytes) return no_memory(diag);
  for (uint64_t i = 0; i < r->n_elements; i++) {
    uint32_t narrow;
    if (n - at < LENGTH_BYTES) return bad(diag, WRONG);
    memcpy(&narrow, from + at, LENGTH_BYTES);
    at += LENGTH_BYTES;
    const uint64_t length = narrow;
    if (length > n - at || length > r->n_bytes - text_at) return bad(diag, WRONG);
    memcpy(r->bytes + i * sizeof length, &length, sizeof length);
    memcpy(r->bytes + text_at, from + at, (size_t)length);
    at += length;
    text_at += length;
  }
  return at == n ? PSPLIT_OK : bad(diag, WRONG);
}

static psplit_code read_shape(json_t *input, reading *r, psplit_diag *diag, int64_t *dims,
                              uint32_t *out_n) {
  json_t *shape = json_object_get(input, "shape");
  if (!json_is_array(shape) || json_array_size(shape) > MAX_RANK)
    return bad(diag, "shape has to be a list of at most 32 numbers");
  r->n_elements = 1;
  bool empty = false;
  for (size_t d = 0; d < json_array_size(shape); d++) {
    json_t *dim = json_array_get(shape, d);
    if (!json_is_integer(dim) || json_integer_value(dim) < 0)
      return bad(diag, "shape has to be a list of at most 32 numbers");
    dims[d] = json_integer_value(dim);
    empty |= dims[d] == 0;
    if (dims[d] && r->n_elements > (uint64_t)INT64_MAX / 16 / (uint64_t)dims[d])
      return bad(diag, "shape is too large");
    r->n_elements *= dims[d] ? (uint64_t)dims[d] : 1;
  }
  if (empty) r->n_elements = 0;
  r->n_bytes = r->n_elements * r->type->bytes;
  *out_n = (uint32_t)json_array_size(shape);
  return PSPLIT_OK;
}

/* An input; *io_at is how much of the binary data was used. */
static psplit_code read_input(json_t *input, const char *binary, size_t n_binary, size_t *io_at,
                              psplit_diag *diag, serve_request *out) {
  const char *name = json_string_value(json_object_get(input, "name"));
  const char *datatype = json_string_value(json_object_get(input, "datatype"));
  json_t *data = json_object_get(input, "data"), *size = parameter(input, "binary_data_size");
  psplit_named_tensor *to = &out->inputs[out->n_inputs];
  reading r = {.type = datatype ? type_called(datatype) : NULL};
  if (!name || !r.type) return bad(diag, "an input has a name and a datatype of the protocol");
  int64_t *dims = calloc(MAX_RANK, sizeof *dims);
  if (!dims) return no_memory(diag);
  uint32_t n_dims = 0;
  psplit_code code = read_shape(input, &r, diag, dims, &n_dims);
  const void *lent = NULL;
  if (code == PSPLIT_OK && size) {
    const json_int_t n = json_is_integer(size) ? json_integer_value(size) : -1;
    if (n < 0 || (uint64_t)n > n_binary - *io_at)
      code = bad(diag, "binary_data_size is more than what comes behind the JSON");
    else if (r.type->kind == TEXT)
      code = read_texts((const unsigned char *)binary + *io_at, (uint64_t)n, &r, diag);
    else if ((uint64_t)n != r.n_bytes)
      code = bad(diag, "binary_data_size is not what datatype and shape say");
    else
      lent = binary + *io_at;
    if (code == PSPLIT_OK) *io_at += (size_t)n;
  } else if (code == PSPLIT_OK) {
    if (json_is_array(data))
      code = read_list(data, &r, diag);
    else
      code = bad(diag, "an input has data, or binary_data_size");
  }
  /* Dimensions stand behind the data, so that one block is all there is to free. */
  void *owned = code == PSPLIT_OK
                  ? realloc(r.bytes, (lent ? 0 : (size_t)r.n_bytes + 16) + MAX_RANK * sizeof *dims)
                  : NULL;
  if (code == PSPLIT_OK && !owned) code = no_memory(diag);
  if (code == PSPLIT_OK) {
    const size_t at = lent ? 0 : ((size_t)r.n_bytes + 7) / 8 * 8;
    int64_t *kept = (int64_t *)(void *)((char *)owned + at);
    memcpy(kept, dims, MAX_RANK * sizeof *dims);
    out->owned[out->n_inputs++] = owned;
    *to = (psplit_named_tensor){name,
                                {r.type->data_type, n_dims, kept, lent ? lent : owned, r.n_bytes}};
  } else {
    free(r.bytes);
  }
  free(dims);
  return code;
}

static psplit_code read_wanted(json_t *outputs, psplit_diag *diag, serve_request *out) {
  const size_t n = json_array_size(outputs);
  if (!outputs) return PSPLIT_OK;
  if (!json_is_array(outputs)) return bad(diag, "outputs has to be a list");
  out->wanted = calloc(n + 1, sizeof *out->wanted);
  if (!out->wanted) return no_memory(diag);
  for (size_t i = 0; i < n; i++) {
    json_t *output = json_array_get(outputs, i), *binary = parameter(output, "binary_data");
    const char *name = json_string_value(json_object_get(output, "name"));
    if (!name) return bad(diag, "an output has a name");
    out->wanted[out->n_wanted++] =
      (serve_wanted){name, binary ? json_is_true(binary) : out->binary};
  }
  return PSPLIT_OK;
}

psplit_code serve_request_parse(const char *body, size_t n_body, size_t n_json, psplit_diag *diag,
                                serve_request *out) {
  json_error_t error;
  serve_request made = {0};
  psplit_code code = PSPLIT_OK;
  size_t at = 0;
  if (n_json > n_body) return bad(diag, "the JSON is longer than the body");
  made.root = json_loadb(body, n_json, JSON_REJECT_DUPLICATES, &error);
  json_t *inputs = json_object_get(made.root, "inputs");
  const size_t n = json_array_size(inputs);
  if (!made.root)
    code =
      psplit_diag_fail(diag, PSPLIT_INVALID, "JSON: %s, at byte %d", error.text, error.position);
  else if (!json_is_array(inputs))
    code = bad(diag, "a request is an object with a list of inputs");
  if (code == PSPLIT_OK) {
    made.id = json_string_value(json_object_get(made.root, "id"));
    made.binary = json_is_true(parameter(made.root, "binary_data_output"));
    made.inputs = calloc(n + 1, sizeof *made.inputs);
    made.owned = calloc(n + 1, sizeof *made.owned);
    if (!made.inputs || !made.owned) code = no_memory(diag);
  }
  for (size_t i = 0; i < n && code == PSPLIT_OK; i++)
    code = read_input(json_array_get(inputs, i), body + n_json, n_body - n_json, &at, diag, &made);
  if (code == PSPLIT_OK && at != n_body - n_json)
    code = bad(diag, "there is more binary data than inputs");
  if (code == PSPLIT_OK) code = read_wanted(json_object_get(made.root, "outputs"), diag, &made);
  if (code == PSPLIT_OK)
    *out = made;
  else
    serve_request_fini(&made);
  return code;
}

void serve_request_fini(serve_request *r) {
  for (uint32_t i = 0; i < r->n_inputs; i++) free(r->owned[i]);
  free(r->owned);
  free(r->inputs);
  free(r->wanted);
  json_decref(r->root);
  *r = (serve_request){0};
}

/* A string with its quotes; false where it is not UTF-8. */
static bool put_string(FILE *out, const char *text, size_t n) {
  json_t *string = json_stringn(text, n);
  char *dumped = string ? json_dumps(string, JSON_ENCODE_ANY) : NULL;
  if (dumped) fputs(dumped, out);
  free(dumped);
  json_decref(string);
  return dumped != NULL;
}

static void put_number(FILE *out, const struct type *type, const char *at) {
  uint64_t whole = 0;
  memcpy(&whole, at, type->kind == FLOAT ? 0 : type->bytes);
  if (type->data_type == BOOL) {
    fputs(whole ? "true" : "false", out);
  } else if (type->kind == UNSIGNED) {
    fprintf(out, "%" PRIu64, whole);
  } else if (type->kind == SIGNED) {
    const unsigned shift = 64 - 8 * type->bytes;
    fprintf(out, "%" PRId64, (int64_t)(whole << shift) >> shift);
  } else {
    double value;
    float narrow;
    memcpy(&narrow, at, sizeof narrow);
    if (type->bytes == sizeof value) memcpy(&value, at, sizeof value);
    const double number = type->bytes == sizeof value ? value : (double)narrow;
    if (isfinite(number))
      fprintf(out, type->bytes == sizeof value ? "%.17g" : "%.9g", number);
    else
      fputs("null", out); /* JSON has no such numbers */
  }
}

static psplit_code put_data(FILE *out, const struct type *type, const psplit_named_tensor *tensor,
                            psplit_diag *diag) {
  const char *data = tensor->tensor.data;
  uint64_t n = 1;
  for (uint32_t d = 0; d < tensor->tensor.n_dims; d++) n *= (uint64_t)tensor->tensor.dims[d];
  const char *text = data + n * sizeof(uint64_t);
  fputs(",\"data\":[", out);
  for (uint64_t i = 0; i < n; i++) {
    if (i) fputc(',', out);
    if (type->kind != TEXT) {
      put_number(out, type, data + i * type->bytes);
      continue;
    }
    uint64_t length;
    memcpy(&length, data + i * sizeof length, sizeof length);
    if (!put_string(out, text, (size_t)length))
      return psplit_diag_fail(diag, PSPLIT_USAGE,
                              "output %s is not UTF-8: ask for it as binary data", tensor->name);
    text += length;
  }
  fputc(']', out);
  return PSPLIT_OK;
}

/* Strings with their lengths in 4 bytes; all else as it is. */
static uint64_t put_binary(FILE *out, const struct type *type, const psplit_tensor_view *view) {
  const char *data = view->data;
  if (type->kind != TEXT) {
    if (out && view->n_bytes) fwrite(data, 1, (size_t)view->n_bytes, out);
    return view->n_bytes;
  }
  uint64_t n = 1, bytes = 0;
  for (uint32_t d = 0; d < view->n_dims; d++) n *= (uint64_t)view->dims[d];
  const char *text = data + n * sizeof(uint64_t);
  for (uint64_t i = 0; i < n; i++) {
    uint64_t length;
    memcpy(&length, data + i * sizeof length, sizeof length);
    const uint32_t narrow = (uint32_t)length;
    if (out) fwrite(&narrow, 1, LENGTH_BYTES, out);
    if (out) fwrite(text, 1, (size_t)length, out);
    text += length;
    bytes += LENGTH_BYTES + length;
  }
  return bytes;
}

/* What is wanted of an output; NULL: nothing. `all` has room for an answer. */
static const serve_wanted *wanted_of(const serve_request *request, const char *name,
                                     serve_wanted *all) {
  *all = (serve_wanted){name, request->binary};
  for (size_t i = 0; i < request->n_wanted; i++)
    if (strcmp(request->wanted[i].name, name) == 0) return &request->wanted[i];
  return request->wanted && request->n_wanted ? NULL : all;
}

static psplit_code check_wanted(const serve_request *request, const psplit_response *response,
                                psplit_diag *diag) {
  for (size_t i = 0; i < request->n_wanted; i++) {
    bool found = false;
    for (uint32_t o = 0; o < response->n_outputs; o++)
      found |= strcmp(request->wanted[i].name, response->outputs[o].name) == 0;
    if (!found)
      return psplit_diag_fail(diag, PSPLIT_USAGE, "the model has no output %s",
                              request->wanted[i].name);
  }
  return PSPLIT_OK;
}

/* The JSON, and into `binary` what comes behind it. */
static psplit_code put_reply(FILE *out, const char *model, const serve_request *request,
                             const psplit_response *response, psplit_diag *diag) {
  psplit_code code = check_wanted(request, response, diag);
  bool first = true;
  fputs("{\"model_name\":", out);
  put_string(out, model, strlen(model));
  if (request->id) {
    fputs(",\"id\":", out);
    put_string(out, request->id, strlen(request->id));
  }
  fputs(",\"outputs\":[", out);
  for (uint32_t o = 0; o < response->n_outputs && code == PSPLIT_OK; o++) {
    const psplit_named_tensor *tensor = &response->outputs[o];
    const struct type *type = type_of(tensor->tensor.data_type);
    serve_wanted all;
    const serve_wanted *wanted = wanted_of(request, tensor->name, &all);
    if (!wanted) continue;
    if (!type)
      return psplit_diag_fail(diag, PSPLIT_UNSUPPORTED,
                              "the protocol has no datatype for output %s", tensor->name);
    fprintf(out, "%s{\"name\":", first ? "" : ",");
    first = false;
    put_string(out, tensor->name, strlen(tensor->name));
    fprintf(out, ",\"datatype\":\"%s\",\"shape\":[", type->name);
    for (uint32_t d = 0; d < tensor->tensor.n_dims; d++)
      fprintf(out, "%s%" PRId64, d ? "," : "", tensor->tensor.dims[d]);
    fputs("]", out);
    if (wanted->binary || type->kind == NO_JSON)
      fprintf(out, ",\"parameters\":{\"binary_data_size\":%" PRIu64 "}",
              put_binary(NULL, type, &tensor->tensor));
    else
      code = put_data(out, type, tensor, diag);
    fputs("}", out);
  }
  fputs("]}", out);
  return code;
}

static void put_tail(FILE *out, const serve_request *request, const psplit_response *response) {
  for (uint32_t o = 0; o < response->n_outputs; o++) {
    const psplit_named_tensor *tensor = &response->outputs[o];
    const struct type *type = type_of(tensor->tensor.data_type);
    serve_wanted all;
    const serve_wanted *wanted = wanted_of(request, tensor->name, &all);
    if (wanted && (wanted->binary || type->kind == NO_JSON)) put_binary(out, type, &tensor->tensor);
  }
}

psplit_code serve_reply_make(const char *model, const serve_request *request,
                             const psplit_response *response, psplit_diag *diag, serve_reply *out) {
  serve_reply made = {0};
  FILE *stream = open_memstream(&made.bytes, &made.n);
  if (!stream) return no_memory(diag);
  psplit_code code = put_reply(stream, model, request, response, diag);
  fflush(stream);
  made.n_json = made.n;
  if (code == PSPLIT_OK) put_tail(stream, request, response);
  if ((ferror(stream) || fclose(stream) != 0) && code == PSPLIT_OK) code = no_memory(diag);
  if (code == PSPLIT_OK)
    *out = made;
  else
    free(made.bytes);
  return code;
}

char *serve_error_text(const char *message) {
  json_t *object = json_pack("{s:s}", "error", message);
  if (!object) object = json_pack("{s:s}", "error", "unknown");
  char *text = object ? json_dumps(object, JSON_COMPACT) : NULL;
  json_decref(object);
  return text;
}

static void put_values_of(FILE *out, const char *key, const psplit_pipeline_value *values,
                          uint32_t n) {
  fprintf(out, ",\"%s\":[", key);
  for (uint32_t i = 0; i < n; i++) {
    const struct type *type = NULL;
    for (size_t t = 0; t < N_TYPES && values[i].dtype; t++)
      if (strcmp(TYPES[t].numpy, values[i].dtype) == 0) type = &TYPES[t];
    fprintf(out, "%s{\"name\":", i ? "," : "");
    put_string(out, values[i].name, strlen(values[i].name));
    fprintf(out, ",\"datatype\":\"%s\",\"shape\":[", type ? type->name : "");
    for (uint32_t d = 0; d < values[i].n_dims; d++)
      fprintf(out, "%s%" PRId64, d ? "," : "", values[i].dims[d]);
    fputs("]}", out);
  }
  fputs("]", out);
}

char *serve_metadata_text(const char *model, const psplit_pipeline_info *info) {
  char *text = NULL;
  size_t n = 0;
  FILE *out = open_memstream(&text, &n);
  if (!out) return NULL;
  fputs("{\"name\":", out);
  put_string(out, model, strlen(model));
  fputs(",\"versions\":[\"1\"],\"platform\":\"onnx_pipeline\"", out);
  put_values_of(out, "inputs", info->input_values, info->n_needed);
  put_values_of(out, "outputs", info->output_values, info->n_outputs);
  fputs("}", out);
  const bool bad_stream = ferror(out);
  if (fclose(out) == 0 && !bad_stream) return text;
  free(text);
  return NULL;
}
