#include "promise.h"

static void put_text(psplit_i_json *json, const char *key, const char *text) {
  psplit_i_json_key(json, key);
  if (text)
    psplit_i_json_string(json, text);
  else
    psplit_i_json_null(json);
}

void psplit_i_promise_write(psplit_i_json *json, const psplit_plan *plan) {
  put_text(json, "device_order", plan->device_order);
  put_text(json, "single_device", plan->single_device);
  psplit_i_json_key(json, "single_device_ns");
  if (plan->single_device)
    psplit_i_json_int(json, plan->single_device_ns);
  else
    psplit_i_json_null(json);
  psplit_i_json_key(json, "speed_up");
  if (plan->speed_up >= 0)
    psplit_i_json_double(json, plan->speed_up);
  else
    psplit_i_json_null(json);
  put_text(json, "headline", plan->headline);
}

void psplit_i_promise_open_data(psplit_i_json *json, const psplit_plan_data *data) {
  psplit_i_json_key(json, "data_dependent");
  psplit_i_json_open(json, '{');
  psplit_i_json_key(json, "nodes");
  psplit_i_json_uint(json, data->n_nodes);
  psplit_i_json_key(json, "time_frac");
  psplit_i_json_double(json, data->time_frac);
  psplit_i_json_key(json, "time_frac_1000x");
  psplit_i_json_double(json, data->plenty_frac);
}
