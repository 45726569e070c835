/* Policies as ONNX models: an ordinary graph of the encoder and one decision, so that any runtime
 * computes what policy/network.c does, and its initializers are the weights. Inputs and outputs are
 * described in docs/learned.md. */
#ifndef PSPLIT_POLICY_FILE_H
#define PSPLIT_POLICY_FILE_H

#include <psplit/policy.h>

#endif
