#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "check_inside.h"

/* What net e takes the stage `from` to send to stage `to`, or that to receive it. */
static int64_t transfer_ns(const psplit_i_check *c, uint32_t e, uint32_t from, uint32_t to,
                           bool send) {
  const psplit_problem *p = c->p;
  const uint32_t sender = c->out->stages[from].device, receiver = c->out->stages[to].device;
  const psplit_device *who = &p->devices[send ? sender : receiver];
  if (who->free_comm) return 0;
  if (p->n_link_classes == 0) return psplit_i_net_ns(p, e, who->class_id, send);
  const uint32_t link = p->device_link[(size_t)sender * p->n_devices + receiver];
  return p->net_link_ns[(size_t)e * p->n_link_classes + link];
}

static bool has_link(const psplit_problem *p, uint32_t n_stages, uint32_t from, uint32_t to) {
  return p->next_hop[(size_t)from * n_stages + to] == to;
}

/* One hop of net e: `to` has it from now on. */
static void hop(psplit_i_check *c, uint32_t e, uint32_t from, uint32_t to) {
  c->out->stages[from].send_ns += transfer_ns(c, e, from, to, true);
  c->out->stages[to].recv_ns += transfer_ns(c, e, from, to, false);
  c->mark[to] = e;
  const size_t pair = (size_t)from * c->out->n_stages + to;
  if (c->hops) c->hops[pair] = true;
  if (c->sent && !(c->p->net_flags && (c->p->net_flags[e] & PSPLIT_NET_NO_MESSAGE)))
    c->sent[pair] = true;
}

/* Nets that may have to be passed on. */
static psplit_code add_relayed(psplit_i_check *c) {
  const psplit_problem *p = c->p;
  const uint32_t n = c->out->n_stages;
  bool *reads = calloc(n, 1);
  psplit_code code = reads ? PSPLIT_OK : psplit_i_nomem(c->diag);
  memset(c->mark, 0xff, n * sizeof *c->mark);
  for (uint32_t e = 0; e < p->n_nets && code == PSPLIT_OK; e++) {
    const uint32_t home = c->stage[p->net_producer[e]];
    memset(reads, 0, n);
    for (uint32_t k = p->net_off[e]; k < p->net_off[e + 1]; k++)
      reads[c->stage[p->net_consumer[k]]] = true;
    c->mark[home] = e;
    for (uint32_t s = home + 1; s < n; s++) {
      if (!reads[s] || c->mark[s] == e) continue;
      uint32_t from = home;
      if (!has_link(p, n, home, s))
        for (from = home + 1; from < s && !(c->mark[from] == e && has_link(p, n, from, s));) from++;
      if (from < s) {
        hop(c, e, from, s);
        continue;
      }
      for (uint32_t at = home, next; at != s; at = next) {
        next = p->next_hop[(size_t)at * n + s];
        if (next == PSPLIT_NONE) {
          code = psplit_i_fail(c->diag, PSPLIT_MISMATCH,
                               "no way leads from stage %" PRIu32 " to stage %" PRIu32, home, s);
          break;
        }
        if (c->mark[next] != e) hop(c, e, at, next);
      }
      if (code != PSPLIT_OK) break;
    }
  }
  free(reads);
  return code;
}

static void add_direct(psplit_i_check *c) {
  const psplit_problem *p = c->p;
  memset(c->mark, 0xff, c->out->n_stages * sizeof *c->mark);
  for (uint32_t e = 0; e < p->n_nets; e++) {
    const uint32_t home = c->stage[p->net_producer[e]];
    bool sent = false;
    for (uint32_t k = p->net_off[e]; k < p->net_off[e + 1]; k++) {
      const uint32_t s = c->stage[p->net_consumer[k]];
      if (s == home || c->mark[s] == e) continue;
      c->mark[s] = e;
      c->out->stages[s].recv_ns += transfer_ns(c, e, home, s, false);
      if (!sent || p->comm == PSPLIT_COMM_P2P)
        c->out->stages[home].send_ns += transfer_ns(c, e, home, s, true);
      sent = true;
    }
  }
}

/* What a message takes the stage `from` to send to stage `to`, or that to receive. */
static int64_t message_ns(const psplit_i_check *c, uint32_t from, uint32_t to, bool send) {
  const psplit_problem *p = c->p;
  const uint32_t sender = c->out->stages[from].device, receiver = c->out->stages[to].device;
  const psplit_device *who = &p->devices[send ? sender : receiver];
  if (who->free_comm) return 0;
  if (p->n_link_classes == 0) return p->message_ns[who->class_id];
  return p->message_ns[p->device_link[(size_t)sender * p->n_devices + receiver]];
}

/* By shared memory: one message for all that a stage sends, and one for all that it receives. */
static psplit_code add_shared_messages(psplit_i_check *c) {
  enum { SENDS = 1, RECEIVES = 2 };
  const psplit_problem *p = c->p;
  uint8_t *does = calloc(c->out->n_stages, 1);
  if (!does) return psplit_i_nomem(c->diag);
  for (uint32_t e = 0; e < p->n_nets; e++) {
    const uint32_t home = c->stage[p->net_producer[e]];
    if (p->net_flags && (p->net_flags[e] & PSPLIT_NET_NO_MESSAGE)) continue;
    for (uint32_t k = p->net_off[e]; k < p->net_off[e + 1]; k++) {
      const uint32_t to = c->stage[p->net_consumer[k]];
      if (to == home) continue;
      does[home] |= SENDS;
      does[to] |= RECEIVES;
    }
  }
  for (uint32_t s = 0; s < c->out->n_stages; s++) {
    if (does[s] & SENDS) c->out->stages[s].send_ns += message_ns(c, s, s, true);
    if (does[s] & RECEIVES) c->out->stages[s].recv_ns += message_ns(c, s, s, false);
  }
  free(does);
  return PSPLIT_OK;
}

/* One message for each pair of stages of which the first sends the second something. */
static psplit_code add_messages(psplit_i_check *c) {
  const psplit_problem *p = c->p;
  const uint32_t n = c->out->n_stages;
  if (p->comm == PSPLIT_COMM_SHARED) return add_shared_messages(c);
  uint32_t *first = malloc(n * sizeof *first); /* net that a stage makes, PSPLIT_NONE: none */
  uint32_t *next = malloc(((size_t)p->n_nets + 1) * sizeof *next);
  const psplit_code code = first && next ? PSPLIT_OK : psplit_i_nomem(c->diag);
  if (code != PSPLIT_OK) goto out;
  memset(first, 0xff, n * sizeof *first);
  for (uint32_t e = 0; e < p->n_nets; e++) {
    uint32_t *home = &first[c->stage[p->net_producer[e]]];
    next[e] = *home;
    *home = e;
  }
  memset(c->mark, 0xff, n * sizeof *c->mark);
  for (uint32_t s = 0; s < n; s++)
    for (uint32_t e = first[s]; e != PSPLIT_NONE; e = next[e])
      for (uint32_t k = p->net_off[e]; k < p->net_off[e + 1]; k++) {
        const uint32_t to = c->stage[p->net_consumer[k]];
        if (to == s || c->mark[to] == s) continue;
        if (p->net_flags && (p->net_flags[e] & PSPLIT_NET_NO_MESSAGE)) break;
        c->mark[to] = s;
        c->out->stages[s].send_ns += message_ns(c, s, to, true);
        c->out->stages[to].recv_ns += message_ns(c, s, to, false);
      }
out:
  free(first);
  free(next);
  return code;
}

/* The same where tensors are passed on: every hop is part of a message. */
static void add_hop_messages(psplit_i_check *c) {
  const uint32_t n = c->out->n_stages;
  for (uint32_t from = 0; from < n; from++)
    for (uint32_t to = 0; to < n; to++) {
      if (!c->sent[(size_t)from * n + to]) continue;
      c->out->stages[from].send_ns += message_ns(c, from, to, true);
      c->out->stages[to].recv_ns += message_ns(c, from, to, false);
    }
}

psplit_code psplit_i_check_add_transfers(psplit_i_check *c) {
  psplit_code code = PSPLIT_OK;
  if (c->p->next_hop)
    PSPLIT_TRY(add_relayed(c));
  else
    add_direct(c);
  if (!c->p->message_ns) goto out;
  if (c->sent)
    add_hop_messages(c);
  else
    PSPLIT_TRY(add_messages(c));
out:
  return code;
}
