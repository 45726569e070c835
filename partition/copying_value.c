/* Loads of a split with copies, from what each stage holds alone. */
#include "checked.h"
#include "copying_inside.h"

typedef struct stage_sums {
  psplit_i_copying_load load;
  uint32_t sent_to, received_from; /* stages, bits */
} stage_sums;

/* Whether a stage in front of `to` and behind `home` holds a copy of the node: it may be who sends,
 * where tensors go any way. */
static bool made_between(const psplit_i_copying_split *split, uint32_t home, uint32_t to,
                         uint64_t node) {
  for (uint32_t s = home + 1; s < to; s++)
    if (split->copied[s] & node) return true;
  return false;
}

/* The stages that need a net and do not hold its producer pay, and the producer's home. */
static void charge(const psplit_i_copying *p, const psplit_i_copying_split *split, uint32_t e,
                   stage_sums *sums) {
  const psplit_i_copying_net *net = &p->net[e];
  const uint64_t maker = UINT64_C(1) << net->producer;
  uint32_t home = 0;
  bool sent = false;
  while (!(split->home[home] & maker)) home++;
  for (uint32_t s = home + 1; s < p->n_stages; s++) {
    const uint64_t held = split->home[s] | split->copied[s];
    if ((held & maker) || !(net->readers & (net->price ? split->home[s] : held))) continue;
    psplit_i_add_ns(net->price ? &sums[s].load.compute_ns : &sums[s].load.recv_ns, net->recv_ns);
    if (!net->price) sums[s].received_from |= UINT32_C(1) << home;
    if (p->any_way && (sent || (!net->price && made_between(split, home, s, maker)))) continue;
    sent = true;
    psplit_i_add_ns(net->price ? &sums[home].load.compute_ns : &sums[home].load.send_ns,
                    net->send_ns);
    if (!net->price) sums[home].sent_to |= UINT32_C(1) << s;
  }
}

static void charge_messages(const psplit_i_copying *p, uint32_t others, int64_t *io_ns) {
  for (; others; others &= others - 1) {
    psplit_i_add_ns(io_ns, p->message_ns);
    if (p->any_way) return;
  }
}

int64_t psplit_i_copying_value(const psplit_i_copying *p, const psplit_i_copying_split *split) {
  stage_sums sums[PSPLIT_I_COPYING_STAGES] = {0};
  int64_t value_ns = 0;
  for (uint32_t e = 0; e < p->n_nets; e++) charge(p, split, e, sums);
  for (uint32_t s = 0; s < p->n_stages; s++) {
    for (uint32_t n = 0; n < p->n_nodes; n++)
      if ((split->home[s] | split->copied[s]) >> n & 1)
        psplit_i_add_ns(&sums[s].load.compute_ns, p->ns[(size_t)s * p->n_nodes + n]);
    charge_messages(p, sums[s].sent_to, &sums[s].load.send_ns);
    charge_messages(p, sums[s].received_from, &sums[s].load.recv_ns);
    const int64_t ns = psplit_i_copying_load_ns(p, &sums[s].load);
    if (ns > value_ns) value_ns = ns;
  }
  return value_ns;
}
