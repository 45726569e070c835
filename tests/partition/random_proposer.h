/* A proposer without sense: stages and keys at random, some of which break rules. */
#ifndef PSPLIT_TESTS_RANDOM_PROPOSER_H
#define PSPLIT_TESTS_RANDOM_PROPOSER_H

#include <psplit/proposer.h>

/* Order is kept; memory, pins and what devices can run need not be. */
psplit_proposer random_proposer(uint32_t n_attempts);

#endif
