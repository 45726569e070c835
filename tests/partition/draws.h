/* Numbers at random for tests that draw their own problems: the same ones from the same state. */
#ifndef PSPLIT_TESTS_DRAWS_H
#define PSPLIT_TESTS_DRAWS_H

#include <stdint.h>

extern uint64_t draw_state;

/* 0 .. below - 1. */
uint32_t draw(uint64_t below);

#endif
