/* Writing members of JSON objects. A NULL string is null; for an object or a list, its bracket is
 * opened. */
#ifndef PSPLIT_BASE_JSON_PUT_H
#define PSPLIT_BASE_JSON_PUT_H

#include "json.h"

static inline void psplit_i_json_put_string(psplit_i_json *json, const char *key,
                                            const char *value) {
  psplit_i_json_key(json, key);
  if (value)
    psplit_i_json_string(json, value);
  else
    psplit_i_json_null(json);
}
static inline void psplit_i_json_put_int(psplit_i_json *json, const char *key, int64_t value) {
  psplit_i_json_key(json, key);
  psplit_i_json_int(json, value);
}
static inline void psplit_i_json_put_uint(psplit_i_json *json, const char *key, uint64_t value) {
  psplit_i_json_key(json, key);
  psplit_i_json_uint(json, value);
}
/* PSPLIT_NONE is null. */
static inline void psplit_i_json_put_id(psplit_i_json *json, const char *key, uint32_t id) {
  psplit_i_json_key(json, key);
  if (id == PSPLIT_NONE)
    psplit_i_json_null(json);
  else
    psplit_i_json_uint(json, id);
}
static inline void psplit_i_json_put_double(psplit_i_json *json, const char *key, double value) {
  psplit_i_json_key(json, key);
  psplit_i_json_double(json, value);
}
static inline void psplit_i_json_put_bool(psplit_i_json *json, const char *key, bool value) {
  psplit_i_json_key(json, key);
  psplit_i_json_bool(json, value);
}
static inline void psplit_i_json_put_open(psplit_i_json *json, const char *key, char bracket) {
  psplit_i_json_key(json, key);
  psplit_i_json_open(json, bracket);
}

#endif
