#include "message_floor.h"

#include "methods.h"

psplit_i_message_floor psplit_i_message_floor_of(const psplit_i_instance *instance,
                                                 const psplit_i_automaton *automaton) {
  psplit_i_message_floor floor = {.by_pairs = !psplit_i_one_message(instance)};
  double slowest = 1;
  bool any_pays = false;
  if (instance->n_roots == 0) return floor;
  for (uint32_t t = 0; t < instance->n_types; t++) {
    if (automaton->count[t] == 0 || instance->problem->devices[t].free_comm) continue;
    const int64_t send = instance->least_message[t];
    const int64_t recv = instance->least_message[instance->n_types + t];
    if (!any_pays || send < floor.send) floor.send = send;
    if (!any_pays || recv < floor.recv) floor.recv = recv;
    if (automaton->ratio[t] > slowest) slowest = automaton->ratio[t];
    any_pays = true;
  }
  if (any_pays && psplit_i_takes(PSPLIT_I_RULE_MESSAGE_FLOOR, automaton->features))
    floor.share = 1 / slowest;
  return floor;
}
