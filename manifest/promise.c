#include "promise.h"

#include "json_put.h"

void psplit_i_promise_write(psplit_i_json *json, const psplit_plan *plan) {
  psplit_i_json_put_string(json, "device_order", plan->device_order);
  if (plan->bound_scope) psplit_i_json_put_string(json, "bound_scope", plan->bound_scope);
  if (plan->proof_scope) psplit_i_json_put_string(json, "proof_scope", plan->proof_scope);
  psplit_i_json_put_string(json, "single_device", plan->single_device);
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
  psplit_i_json_put_string(json, "headline", plan->headline);
}

void psplit_i_promise_open_data(psplit_i_json *json, const psplit_plan_data *data) {
  psplit_i_json_put_open(json, "data_dependent", '{');
  psplit_i_json_put_uint(json, "nodes", data->n_nodes);
  psplit_i_json_put_double(json, "time_frac", data->time_frac);
  psplit_i_json_put_double(json, "time_frac_1000x", data->plenty_frac);
}
