#include "draws.h"

uint64_t draw_state;

uint32_t draw(uint64_t below) {
  draw_state = draw_state * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
  return (uint32_t)((draw_state >> 33) % below);
}
