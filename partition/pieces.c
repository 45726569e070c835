#include <psplit/partition.h>
#include <string.h>

bool psplit_solution_pieces(const psplit_problem *p, const psplit_solution *solution,
                            uint32_t chunks, int64_t *out_forward_ns, int64_t *out_backward_ns,
                            uint64_t *out_activation_bytes) {
  const uint32_t n_stages = solution->n_stages;
  const size_t n = (size_t)n_stages * chunks;
  bool trains = false;
  memset(out_forward_ns, 0, n * sizeof *out_forward_ns);
  memset(out_backward_ns, 0, n * sizeof *out_backward_ns);
  memset(out_activation_bytes, 0, n * sizeof *out_activation_bytes);
  for (uint32_t v = 0; v < p->n_nodes; v++) {
    const uint32_t stage = solution->stage[v];
    const size_t at = (size_t)solution->chunk[v] * n_stages + stage;
    const uint32_t class_id = p->devices[solution->stages[stage].device].class_id;
    const bool backward = p->node_flags && (p->node_flags[v] & PSPLIT_NODE_BACKWARD);
    (backward ? out_backward_ns : out_forward_ns)[at] +=
      p->time_ns[(size_t)v * p->n_classes + class_id];
    if (p->activation_bytes) out_activation_bytes[at] += p->activation_bytes[v];
    trains |= backward;
  }
  for (uint32_t s = 0; s < n_stages; s++)
    (out_backward_ns[s] > out_forward_ns[s] ? out_backward_ns : out_forward_ns)[s] +=
      solution->stages[s].load_ns - solution->stages[s].compute_ns;
  return trains;
}
