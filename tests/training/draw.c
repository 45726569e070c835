/* Prints what random operators draw, one number a line:
 *   draw KIND RATIO SEED STEP MICRO_BATCH NUMBER N
 * KIND is keep, uniform or normal. */
#include <psplit/random.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

int main(int argc, char **argv) {
  enum { MOST = 1 << 20 };
  if (argc != 8) return 2;
  const psplit_draw draw = {.seed = strtoull(argv[3], NULL, 0),
                            .step = (uint32_t)strtoul(argv[4], NULL, 0),
                            .micro_batch = (uint32_t)strtoul(argv[5], NULL, 0),
                            .number = (uint32_t)strtoul(argv[6], NULL, 0)};
  static uint8_t keep[MOST];
  static float numbers[MOST];
  const size_t n = strtoul(argv[7], NULL, 0);
  if (n > MOST) return 2;
  const bool is_keep = strcmp(argv[1], "keep") == 0;
  if (is_keep)
    psplit_draw_keep(&draw, strtod(argv[2], NULL), 0, n, keep);
  else if (strcmp(argv[1], "uniform") == 0)
    psplit_draw_uniform(&draw, 0, n, numbers);
  else
    psplit_draw_normal(&draw, 0, n, numbers);
  for (size_t i = 0; i < n; i++) printf("%.9g\n", is_keep ? keep[i] : (double)numbers[i]);
  return 0;
}
