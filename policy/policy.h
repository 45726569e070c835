/* policy: splits that are learned. A network looks at a problem as the partitioner's solvers see it
 * (psplit/proposer.h), encodes the graph, and places item after item on the stages, whose loads it
 * follows; it is trained on proved optima and then by reinforcement (PPO). It sees base and the
 * partitioner's public face, and knows nothing of ONNX.
 *
 * Everything computes in loops of a fixed order, with exp, tanh and log of its own and without
 * contraction of products and sums: the same decisions from every compiler, at every optimisation,
 * on every width of vectors. docs/learned.md says what the network is and what it is worth. */
#ifndef PSPLIT_POLICY_POLICY_H
#define PSPLIT_POLICY_POLICY_H

#include <psplit/policy.h>

#include "base.h"
#include "network.h"

struct psplit_policy {
  psplit_i_policy_network network;
};

#endif
