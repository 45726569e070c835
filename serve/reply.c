/* Replies of the server. */
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "datatypes.h"
#include "protocol.h"
#include "text.h"

static psplit_code no_memory(psplit_diag *diag) {
  return psplit_diag_fail(diag, PSPLIT_NOMEM, "out of memory");
}

static bool is_utf8(const unsigned char *s, size_t n) {
  for (size_t width; n; s += width, n -= width)
    if (!(width = psplit_i_utf8_length(s, n))) return false;
  return true;
}

static void put_string(FILE *out, const char *text) { psplit_json_print(out, text, strlen(text)); }

static void put_number(FILE *out, const serve_datatype *type, const char *at) {
  uint64_t whole = 0;
  memcpy(&whole, at, type->kind == SERVE_FLOAT ? 0 : type->bytes);
  if (type->data_type == SERVE_BOOL) {
    fputs(whole ? "true" : "false", out);
  } else if (type->kind == SERVE_UNSIGNED) {
    fprintf(out, "%" PRIu64, whole);
  } else if (type->kind == SERVE_SIGNED) {
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

static psplit_code put_data(FILE *out, const serve_datatype *type,
                            const psplit_named_tensor *tensor, psplit_diag *diag) {
  const char *data = tensor->tensor.data;
  uint64_t n = 1;
  for (uint32_t d = 0; d < tensor->tensor.n_dims; d++) n *= (uint64_t)tensor->tensor.dims[d];
  const char *text = data + n * sizeof(uint64_t);
  fputs(",\"data\":[", out);
  for (uint64_t i = 0; i < n; i++) {
    if (i) fputc(',', out);
    if (type->kind != SERVE_TEXT) {
      put_number(out, type, data + i * type->bytes);
      continue;
    }
    uint64_t length;
    memcpy(&length, data + i * sizeof length, sizeof length);
    if (!is_utf8((const unsigned char *)text, (size_t)length))
      return psplit_diag_fail(diag, PSPLIT_USAGE,
                              "output %s is not UTF-8: ask for it as binary data", tensor->name);
    psplit_json_print(out, text, (size_t)length);
    text += length;
  }
  fputc(']', out);
  return PSPLIT_OK;
}

/* Strings with their lengths in 4 bytes; all else as it is. */
static uint64_t put_binary(FILE *out, const serve_datatype *type, const psplit_tensor_view *view) {
  const char *data = view->data;
  if (type->kind != SERVE_TEXT) {
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
    if (out) fwrite(&narrow, 1, SERVE_LENGTH_BYTES, out);
    if (out) fwrite(text, 1, (size_t)length, out);
    text += length;
    bytes += SERVE_LENGTH_BYTES + length;
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
  put_string(out, model);
  if (request->id) {
    fputs(",\"id\":", out);
    if (request->id->kind == PSPLIT_I_JSON_INTEGER)
      fprintf(out, "%" PRId64, request->id->integer);
    else if (request->id->kind == PSPLIT_I_JSON_UNSIGNED)
      fprintf(out, "%" PRIu64, request->id->natural);
    else
      psplit_json_print(out, request->id->text, request->id->n);
  }
  fputs(",\"outputs\":[", out);
  for (uint32_t o = 0; o < response->n_outputs && code == PSPLIT_OK; o++) {
    const psplit_named_tensor *tensor = &response->outputs[o];
    const serve_datatype *type = serve_datatype_of(tensor->tensor.data_type);
    serve_wanted all;
    const serve_wanted *wanted = wanted_of(request, tensor->name, &all);
    if (!wanted) continue;
    if (!type)
      return psplit_diag_fail(diag, PSPLIT_UNSUPPORTED,
                              "the protocol has no datatype for output %s: name others in "
                              "\"outputs\"",
                              tensor->name);
    fprintf(out, "%s{\"name\":", first ? "" : ",");
    first = false;
    put_string(out, tensor->name);
    fprintf(out, ",\"datatype\":\"%s\",\"shape\":[", type->name);
    for (uint32_t d = 0; d < tensor->tensor.n_dims; d++)
      fprintf(out, "%s%" PRId64, d ? "," : "", tensor->tensor.dims[d]);
    fputs("]", out);
    if (wanted->binary || type->kind == SERVE_NO_JSON)
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
    const serve_datatype *type = serve_datatype_of(tensor->tensor.data_type);
    serve_wanted all;
    const serve_wanted *wanted = wanted_of(request, tensor->name, &all);
    if (wanted && (wanted->binary || type->kind == SERVE_NO_JSON))
      put_binary(out, type, &tensor->tensor);
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
  const bool failed = ferror(stream); /* an end without memory is closed as if all were well */
  if ((fclose(stream) != 0 || failed || !made.bytes) && code == PSPLIT_OK) code = no_memory(diag);
  if (code == PSPLIT_OK)
    *out = made;
  else
    free(made.bytes);
  return code;
}

char *serve_error_text(const char *message) {
  char *text = NULL;
  size_t n = 0;
  FILE *out = open_memstream(&text, &n);
  if (!out) return NULL;
  fputs("{\"error\":", out);
  put_string(out, message);
  fputs("}", out);
  const bool bad_stream = ferror(out);
  if (fclose(out) == 0 && !bad_stream) return text;
  free(text);
  return NULL;
}

static void put_values_of(FILE *out, const char *key, const psplit_pipeline_value *values,
                          uint32_t n) {
  fprintf(out, ",\"%s\":[", key);
  for (uint32_t i = 0; i < n; i++) {
    const serve_datatype *type = values[i].dtype ? serve_datatype_of_numpy(values[i].dtype) : NULL;
    fprintf(out, "%s{\"name\":", i ? "," : "");
    put_string(out, values[i].name);
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
  put_string(out, model);
  fputs(",\"versions\":[\"1\"],\"platform\":\"onnx_pipeline\"", out);
  put_values_of(out, "inputs", info->input_values, info->n_needed);
  put_values_of(out, "outputs", info->output_values, info->n_outputs);
  fputs("}", out);
  const bool bad_stream = ferror(out);
  if (fclose(out) == 0 && !bad_stream) return text;
  free(text);
  return NULL;
}
