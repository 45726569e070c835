#include "json.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "number.h"

void psplit_i_json_init(psplit_i_json *json, psplit_i_text *out) {
  *json = (psplit_i_json){.out = out};
}

static void new_line(psplit_i_json *json) {
  if (json->compact) return;
  psplit_i_text_add(json->out, "\n", 1);
  for (unsigned i = 0; i < json->depth; i++) psplit_i_text_add(json->out, "  ", 2);
}

/* What stands between the previous item and the next one. */
static void begin_item(psplit_i_json *json) {
  if (json->after_key) {
    json->after_key = false;
    return;
  }
  if (json->need_comma) psplit_i_text_puts(json->out, json->compact ? ", " : ",");
  if (json->depth) new_line(json);
}

void psplit_i_json_open(psplit_i_json *json, char bracket) {
  begin_item(json);
  psplit_i_text_add(json->out, &bracket, 1);
  json->depth++;
  json->need_comma = false;
}

void psplit_i_json_close(psplit_i_json *json, char bracket) {
  json->depth--;
  if (json->need_comma) new_line(json);
  psplit_i_text_add(json->out, &bracket, 1);
  json->need_comma = true;
  if (json->depth == 0) psplit_i_text_add(json->out, "\n", 1);
}

void psplit_i_json_key(psplit_i_json *json, const char *key) {
  begin_item(json);
  psplit_i_json_quote(json->out, key);
  psplit_i_text_add(json->out, ": ", 2);
  json->after_key = true;
}

void psplit_i_json_string(psplit_i_json *json, const char *value) {
  begin_item(json);
  psplit_i_json_quote(json->out, value);
  json->need_comma = true;
}

bool psplit_i_json_says(const char *said, const char *text) {
  static const char REPLACEMENT[] = "\xef\xbf\xbd";
  for (size_t left = strlen(text); left;) {
    const size_t length = psplit_i_utf8_length((const unsigned char *)text, left);
    const char *meant = length ? text : REPLACEMENT;
    const size_t n = length ? length : strlen(REPLACEMENT), width = length ? length : 1;
    if (strncmp(said, meant, n) != 0) return false;
    said += n;
    text += width;
    left -= width;
  }
  return !*said;
}

void psplit_i_json_int(psplit_i_json *json, int64_t value) {
  begin_item(json);
  psplit_i_text_addf(json->out, "%" PRId64, value);
  json->need_comma = true;
}

void psplit_i_json_uint(psplit_i_json *json, uint64_t value) {
  begin_item(json);
  psplit_i_text_addf(json->out, "%" PRIu64, value < INT64_MAX ? value : (uint64_t)INT64_MAX);
  json->need_comma = true;
}

void psplit_i_json_double(psplit_i_json *json, double value) {
  if (!isfinite(value)) {
    psplit_i_json_null(json);
    return;
  }
  begin_item(json);
  char text[PSPLIT_I_NUMBER_BYTES];
  psplit_i_number_print(value, 1, PSPLIT_I_MOST_DIGITS, text);
  psplit_i_text_puts(json->out, text);
  if (!strpbrk(text, ".e")) psplit_i_text_puts(json->out, ".0");
  json->need_comma = true;
}

void psplit_i_json_bool(psplit_i_json *json, bool value) {
  begin_item(json);
  psplit_i_text_puts(json->out, value ? "true" : "false");
  json->need_comma = true;
}

void psplit_i_json_null(psplit_i_json *json) {
  begin_item(json);
  psplit_i_text_puts(json->out, "null");
  json->need_comma = true;
}
