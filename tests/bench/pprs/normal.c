#include "normal.h"

#include <math.h>

enum { N_LAYERS = 128 };

/* Edges of layers of equal area under exp(-x^2 / 2), from the outermost. */
static double edge[N_LAYERS + 1], height[N_LAYERS + 1];

void lab_normal_prepare(void) {
  const double tail = 3.442619855899, area = 9.91256303526217e-3;
  double f = exp(-tail * tail / 2);
  edge[0] = area / f;
  edge[1] = tail;
  for (int i = 2; i < N_LAYERS; i++) {
    edge[i] = sqrt(-2 * log(area / edge[i - 1] + f));
    f = exp(-edge[i] * edge[i] / 2);
  }
  edge[N_LAYERS] = 0;
  for (int i = 0; i <= N_LAYERS; i++) height[i] = exp(-edge[i] * edge[i] / 2);
}

lab_normal lab_normal_begin(const psplit_i_random_stream *stream) {
  lab_normal out;
  for (unsigned i = 0; i < 4; i++) out.s[i] = psplit_i_random_bits(stream, i);
  return out;
}

static uint64_t next_bits(lab_normal *r) {
  uint64_t *s = r->s;
  const uint64_t result = s[0] + s[3], t = s[1] << 17;
  s[2] ^= s[0];
  s[3] ^= s[1];
  s[1] ^= s[2];
  s[0] ^= s[3];
  s[2] ^= t;
  s[3] = s[3] << 45 | s[3] >> 19;
  return result;
}

static double uniform(lab_normal *r) { return ((double)(next_bits(r) >> 11) + 0.5) * 0x1p-53; }

static double from_tail(lab_normal *r) {
  double x, y;
  do {
    x = -log(uniform(r)) / edge[1];
    y = -log(uniform(r));
  } while (2 * y < x * x);
  return edge[1] + x;
}

double lab_normal_next(lab_normal *r) {
  for (;;) {
    const uint64_t bits = next_bits(r);
    const unsigned layer = (unsigned)(bits >> 4) % N_LAYERS;
    const double u = ((double)(bits >> 11) + 0.5) * 0x1p-53, x = u * edge[layer];
    const double sign = bits >> 3 & 1 ? -1 : 1;
    if (x < edge[layer + 1]) return sign * x;
    if (layer == 0) return sign * from_tail(r);
    const double f = exp(-x * x / 2);
    if (height[layer] + uniform(r) * (height[layer + 1] - height[layer]) < f) return sign * x;
  }
}
