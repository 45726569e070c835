/* Minimum cuts in one fan, for the lines of fan_lines.h. */
#ifndef PSPLIT_PARTITION_FAN_NETWORK_H
#define PSPLIT_PARTITION_FAN_NETWORK_H

#include "cut_network.h"
#include "fan_lines.h"

/* What lines are made with, one fan after the other. */
typedef struct psplit_i_fan_builder {
  const psplit_i_instance *instance;
  const int64_t *min_time;
  int64_t *send, *recv;  /* [n_nets] */
  uint32_t *last;        /* [n] last consumer of its nets that run ahead, or itself */
  uint32_t *net, n_nets; /* those that meet the fan */
  uint32_t *seen;        /* [n_nets] of the fan that listed it last, + 1 */
  psplit_i_fans *fans;
  psplit_i_fan *fan;
  int64_t limit, constant; /* of the cut that is built */
  uint32_t most_cuts;
  psplit_i_cut_network cut;
  psplit_i_budget *budget;
} psplit_i_fan_builder;

/* Consumers of a net: how many are in H; whether one is z, or behind it. */
typedef struct psplit_i_fan_readers {
  uint32_t n_inner;
  bool back, behind;
} psplit_i_fan_readers;

psplit_i_fan_readers psplit_i_fan_readers_of(const psplit_i_fan_builder *b, uint32_t net);

/* Whether a cluster is in H. */
bool psplit_i_fan_holds(const psplit_i_fan_builder *b, uint32_t cluster);

/* The network node of a net's producer: in H, or PSPLIT_I_SOURCE, which is what is in the stage in
 * question for certain, or PSPLIT_NONE where it is no part of the stage of a for certain. The first
 * d open producers are. */
uint32_t psplit_i_fan_sender(const psplit_i_fan_builder *b, uint32_t net, uint32_t d);

/* The network whose source sides are downsets of H. A cut pays ONE times what stages in front of
 * that of z send, where the first d open producers are in the stage of a; or, d NONE, what the
 * stage of z receives. Besides it pays slope times the time outside, or, slope < 0, -slope times
 * the time inside. b->constant is paid by all downsets, and is neither in the cut nor in parts of
 * ONE. */
void psplit_i_fan_network(psplit_i_fan_builder *b, uint32_t d, int64_t slope);

/* The network whose source sides are stages in H, which pay `multiplier` times what they send and
 * receive, and ONE less that for each time outside. `paid` of the nets are left out; consumers of
 * `missed` as well. */
void psplit_i_fan_stage_network(psplit_i_fan_builder *b, const uint32_t *paid, uint32_t n_paid,
                                uint32_t missed, int64_t multiplier);

/* The network whose source sides are what stages with all `broad` nets, with a and with z have of
 * H. A cut pays SHARES times the time there and what is sent and received there, and `share` times
 * that of all else: of nets from H, each to one stage. What z receives is left out. */
void psplit_i_fan_shared_network(psplit_i_fan_builder *b, const uint32_t *broad, uint32_t n_broad,
                                 int64_t share);

/* The network whose source sides are what the stage of z has of H. A cut pays what it saves less
 * than H would: ONE for each net of H that z or what is behind reads, to send and for z to receive,
 * and `price` for each part of ONE of the load, which it adds to. Returns what H would save. */
int64_t psplit_i_fan_saved_network(psplit_i_fan_builder *b, int64_t price);

/* The least cut of the network; 0 when out of memory, or what is known where the budget ends. */
int64_t psplit_i_fan_cut(psplit_i_fan_builder *b);

/* Time of the source side of the last cut. */
int64_t psplit_i_fan_time_inside(psplit_i_fan_builder *b);

#endif
