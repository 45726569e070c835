#include "weigh.h"

#include "checked.h"
#include "classes.h"

psplit_code psplit_i_weigh(const psplit_problem *p, int64_t forward, int64_t backward,
                           psplit_i_arena *arena, psplit_problem *out_problem) {
  const size_t n_times = (size_t)p->n_nodes * p->n_classes,
               n_sent = (size_t)p->n_nets * p->n_classes;
  int64_t *time = psplit_i_arena_array(arena, n_times, sizeof *time);
  int64_t *send = psplit_i_arena_array(arena, n_sent, sizeof *send);
  int64_t *recv = psplit_i_arena_array(arena, n_sent, sizeof *recv);
  if (!time || !send || !recv) return PSPLIT_NOMEM;
  for (uint32_t v = 0; v < p->n_nodes; v++)
    for (uint32_t c = 0; c < p->n_classes; c++) {
      const size_t at = (size_t)v * p->n_classes + c;
      time[at] = p->time_ns[at];
      if (time[at] == PSPLIT_TIME_FORBIDDEN) continue;
      time[at] = psplit_i_sat_mul_i64(time[at], psplit_i_is_backward(p, v) ? backward : forward);
    }
  for (uint32_t e = 0; e < p->n_nets; e++)
    for (uint32_t c = 0; c < p->n_classes; c++) {
      const int64_t weight = psplit_i_is_backward(p, p->net_producer[e]) ? backward : forward;
      const size_t at = (size_t)e * p->n_classes + c;
      send[at] = psplit_i_sat_mul_i64(psplit_i_net_ns(p, e, c, true), weight);
      recv[at] = psplit_i_sat_mul_i64(psplit_i_net_ns(p, e, c, false), weight);
    }
  *out_problem = *p;
  out_problem->time_ns = time;
  out_problem->net_send_ns = send;
  out_problem->net_recv_ns = recv;
  return PSPLIT_OK;
}
