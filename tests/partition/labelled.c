#include "labelled.h"

bool has_prices(const bed *b) { return b->instance.n_types == 1 && b->instance.all_forward; }

int64_t labelled_load(const psplit_i_instance *in, const int *label) {
  int64_t load = 0;
  for (uint32_t v = 0; v < in->n; v++) load += label[v] == 1 ? in->w[v] : 0;
  for (uint32_t e = 0; e < in->n_nets; e++) {
    const int from = label[in->net_pin[in->net_off[e]]];
    bool to[3] = {false};
    for (uint32_t q = in->net_off[e] + 1; q < in->net_off[e + 1]; q++)
      to[label[in->net_pin[q]]] = true;
    if ((from > 0 && to[0]) || (from > 1 && to[1])) return -1;
    if (from == 0 && to[1]) load += in->recv[e];
    if (from == 1 && to[2]) load += in->send[e];
  }
  return load;
}

bool next_labels(const psplit_i_instance *in, int *label) {
  uint32_t v = 0;
  while (v < in->n && label[v] == 2) label[v++] = 0;
  if (v == in->n) return false;
  label[v]++;
  return true;
}
