#include "digest.h"

#include <inttypes.h>
#include <stdio.h>

#include "problem.h"

uint32_t psplit_i_crc32(uint32_t crc, const void *bytes, size_t n) {
  /* A table for half bytes is short enough to be constant; a table filled at run time would be
   * mutable state. */
  static const uint32_t TABLE[16] = {
    0x00000000, 0x1db71064, 0x3b6e20c8, 0x26d930ac, 0x76dc4190, 0x6b6b51f4, 0x4db26158, 0x5005713c,
    0xedb88320, 0xf00f9344, 0xd6d6a3e8, 0xcb61b38c, 0x9b64c2b0, 0x86d3d2d4, 0xa00ae278, 0xbdbdf21c};
  const unsigned char *at = bytes;
  crc = ~crc;
  for (size_t i = 0; i < n; i++) {
    crc ^= at[i];
    crc = crc >> 4 ^ TABLE[crc & 15];
    crc = crc >> 4 ^ TABLE[crc & 15];
  }
  return ~crc;
}

static void put(uint32_t *crc, int64_t number) {
  char text[24];
  const int n = snprintf(text, sizeof text, "%" PRId64 " ", number);
  *crc = psplit_i_crc32(*crc, text, (size_t)n);
}

static void put_bytes(uint32_t *crc, uint64_t number) {
  char text[24];
  const int n = snprintf(text, sizeof text, "%" PRIu64 " ", number);
  *crc = psplit_i_crc32(*crc, text, (size_t)n);
}

static int64_t or_zero(const uint32_t *list, uint32_t i) {
  return list && list[i] != PSPLIT_NONE ? (int64_t)list[i] + 1 : 0;
}

static void put_nodes(uint32_t *crc, const psplit_problem *p) {
  for (uint32_t v = 0; v < p->n_nodes; v++) {
    for (uint32_t c = 0; c < p->n_classes; c++) {
      const int64_t ns = p->time_ns[(size_t)v * p->n_classes + c];
      put(crc, ns == PSPLIT_TIME_FORBIDDEN ? -1 : ns);
    }
    put_bytes(crc, p->weight_bytes ? p->weight_bytes[v] : 0);
    put_bytes(crc, p->activation_bytes ? p->activation_bytes[v] : 0);
    put(crc, p->node_flags ? p->node_flags[v] : 0);
    put(crc, or_zero(p->together, v));
    put(crc, or_zero(p->pin, v));
  }
}

static void put_nets(uint32_t *crc, const psplit_problem *p) {
  for (uint32_t e = 0; e < p->n_nets; e++) {
    put(crc, p->net_producer[e]);
    put(crc, p->net_off[e + 1] - p->net_off[e]);
    for (uint32_t k = p->net_off[e]; k < p->net_off[e + 1]; k++) put(crc, p->net_consumer[k]);
    for (uint32_t c = 0; c < p->n_classes; c++) {
      put(crc, psplit_i_net_ns(p, e, c, true));
      put(crc, psplit_i_net_ns(p, e, c, false));
    }
    const unsigned known = PSPLIT_NET_UNCUTTABLE | PSPLIT_NET_NO_MESSAGE;
    put(crc, p->net_flags ? p->net_flags[e] & known : 0);
  }
}

uint32_t psplit_i_problem_digest(const psplit_problem *p) {
  uint32_t crc = 0;
  put(&crc, p->n_nodes);
  put(&crc, p->n_classes);
  put_nodes(&crc, p);
  put(&crc, p->n_nets);
  put_nets(&crc, p);
  put(&crc, p->n_order);
  for (uint32_t k = 0; k < p->n_order; k++) {
    put(&crc, p->order_from[k]);
    put(&crc, p->order_to[k]);
  }
  put(&crc, p->n_weights);
  for (uint32_t g = 0; g < p->n_weights; g++) {
    put_bytes(&crc, p->weight_group_bytes[g]);
    put(&crc, p->weight_off[g + 1] - p->weight_off[g]);
    for (uint32_t k = p->weight_off[g]; k < p->weight_off[g + 1]; k++) put(&crc, p->weight_user[k]);
  }
  put(&crc, p->n_devices);
  for (uint32_t d = 0; d < p->n_devices; d++) {
    put(&crc, p->devices[d].class_id);
    put_bytes(&crc, p->devices[d].memory_bytes);
    put(&crc, p->devices[d].free_comm);
  }
  put(&crc, p->any_device_order);
  put(&crc, p->stash_1f1b);
  for (uint32_t c = 0; p->message_ns && c < p->n_classes; c++) put(&crc, p->message_ns[c]);
  return crc;
}
