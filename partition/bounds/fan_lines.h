/* Lower bounds, as lines over time, on the cost of cutting a fan: the clusters between two
 * separators. */
#ifndef PSPLIT_PARTITION_FAN_LINES_H
#define PSPLIT_PARTITION_FAN_LINES_H

#include "automaton.h"
#include "base.h"
#include "budget.h"

enum {
  PSPLIT_I_FAN_ONE = 1 << 12, /* lines are in parts of it */
  PSPLIT_I_FAN_STEEPEST = 8,  /* of a line */
  PSPLIT_I_FAN_OPEN = 4,  /* producers in front of a fan's first separator that are told apart */
  PSPLIT_I_FAN_BROAD = 3, /* nets that enter a fan, likewise */
  PSPLIT_I_FAN_SHARES = 8 /* a load counts so many parts, or fewer */
};

/* (at_zero + slope x) / ONE */
typedef struct psplit_i_fan_line {
  int64_t at_zero, slope;
} psplit_i_fan_line;

/* Lines [first, end) of the fans' list. */
typedef struct psplit_i_fan_lines {
  uint32_t first, end;
} psplit_i_fan_lines;

/* A net from in front of a fan that several clusters of it read. */
typedef struct psplit_i_fan_net {
  uint32_t producer;
  int64_t send; /* for each stage that receives it */
  bool certain; /* z or what is behind reads it as well */
} psplit_i_fan_net;

/* Between the separators a and z lies H = [first, end) of the clusters. */
typedef struct psplit_i_fan {
  uint32_t first, end;      /* z is `end` */
  bool has_front, has_back; /* a, z is a cluster; not before the first fan, behind the last one */
  int64_t time, back_time;  /* min_time of H, of z */
  uint32_t n_open;
  uint32_t
    open[PSPLIT_I_FAN_OPEN]; /* producers before a that clusters behind a read, latest first */
  /* At most the latest d of those are in the stage of a: what stages without z send at least where
   * x of H is in front of the stage of z. */
  psplit_i_fan_lines send[PSPLIT_I_FAN_OPEN + 1];
  psplit_i_fan_lines recv; /* what the stage of z receives at least */
  int64_t best_front;      /* x where what that stage takes, time - x + recv, is least */
  /* A stage with neither separator either receives all `broad` nets, or misses one of them: upper
   * bounds on what it has of H, by the time that is left beside those. */
  psplit_i_fan_lines middle, missing[PSPLIT_I_FAN_BROAD]; /* empty: H */
  uint32_t n_broad;
  psplit_i_fan_net broad[PSPLIT_I_FAN_BROAD];
  int64_t broad_recv;
  int64_t broad_send[PSPLIT_I_FAN_OPEN + 1]; /* what a's stage sends each that receives them */
  /* Of those, of nets that z or what is behind reads as well. */
  int64_t certain_send[PSPLIT_I_FAN_OPEN + 1];
  /* What all stages take of H and for what is sent there, at least, if loads count SHARES parts,
   * but k parts where a stage misses a broad net. What the stage of z has of H is taken as if it
   * were apart from z: `saved` is how much less it may be, by what it adds to back_time and
   * back_recv. */
  int64_t shared[PSPLIT_I_FAN_SHARES];
  int64_t back_recv; /* what z receives then, counted in whole */
  psplit_i_fan_lines saved;
} psplit_i_fan;

typedef struct psplit_i_fans {
  psplit_i_fan *fan;
  uint32_t n;
  int64_t most; /* no load is above it */
  PSPLIT_VEC(psplit_i_fan_line) lines;
  psplit_i_arena arena;
} psplit_i_fans;

/* Between all separators; stages with loads <= limit matter. Without lines where the budget ends:
 * then nothing is known to cost. *out_any false: too large to compute with, or no device pays.
 * Errors: NOMEM. */
PSPLIT_MUST_USE psplit_code psplit_i_fans_make(const psplit_i_instance *instance,
                                               const psplit_i_automaton *automaton, int64_t limit,
                                               psplit_i_budget *budget, bool *out_any,
                                               psplit_i_fans *out_fans);
void psplit_i_fans_fini(psplit_i_fans *fans);

static inline int64_t psplit_i_floor_div(int64_t a, int64_t b) {
  return a / b - (a % b != 0 && (a < 0) != (b < 0));
}

/* The largest of the lines at x, but at least 0, in parts of ONE. */
static inline int64_t psplit_i_fan_at(const psplit_i_fans *fans, psplit_i_fan_lines of, int64_t x) {
  int64_t most = 0;
  for (uint32_t k = of.first; k < of.end; k++) {
    const psplit_i_fan_line line = fans->lines.items[k];
    const int64_t y = line.at_zero + line.slope * x;
    if (y > most) most = y;
  }
  return most;
}

#endif
