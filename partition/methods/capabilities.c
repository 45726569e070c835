/* The capability table: which method may run with which features. */
#include "base.h"
#include "methods.h"

#define PSPLIT_I_TAKES(id, cells) [PSPLIT_I_##id] = (cells),
static const char *const CELLS[PSPLIT_I_N_METHODS] = {
#include "capabilities.def"
};

enum {
#define PSPLIT_I_FEATURE(id, name) id = 1 << PSPLIT_I_FEATURE_##id,
#include "capabilities.def"
};

typedef struct refused {
  uint32_t feature, others;
  const char *message;
} refused;

static const refused REFUSED[] = {
#define PSPLIT_I_REFUSED(id, others, message) {id, others, message},
#include "capabilities.def"
};

static bool any_node(const uint32_t *of, uint32_t n) {
  uint32_t v = 0;
  while (of && v < n && of[v] == PSPLIT_NONE) v++;
  return of && v < n;
}

static bool any_backward(const psplit_problem *p) {
  uint32_t v = 0;
  while (p->node_flags && v < p->n_nodes && !(p->node_flags[v] & PSPLIT_NODE_BACKWARD)) v++;
  return p->node_flags && v < p->n_nodes;
}

static bool any_bytes(const psplit_problem *p) {
  bool any = p->n_weights > 0;
  for (uint32_t v = 0; v < p->n_nodes && !any; v++)
    any =
      (p->weight_bytes && p->weight_bytes[v]) || (p->activation_bytes && p->activation_bytes[v]);
  return any;
}

uint32_t psplit_i_features_of(const psplit_problem *p, const psplit_partition_options *o) {
  uint32_t f = 0;
  bool limit = false;
  if (p->overlap) f |= OVERLAP;
  if (any_backward(p)) f |= BACKWARD;
  if (o->max_replicas > 1) f |= REPLICAS;
  if (p->next_hop) f |= RELAYS;
  if (p->n_link_classes) f |= PAIR_LINKS;
  if (p->message_ns) f |= MESSAGES;
  if (p->stash_1f1b) f |= STASH;
  if (o->chunks > 1) f |= CHUNKS;
  if (p->any_device_order) f |= ANY_ORDER;
  if (o->noncontiguous) f |= FREE_PLACEMENT;
  if (o->objective == PSPLIT_LATENCY) f |= LATENCY;
  if (o->objective == PSPLIT_CALL_LATENCY) f |= CALLS;
  if (o->objective == PSPLIT_FILL_DRAIN) f |= FILL_DRAIN;
  if (any_node(p->pin, p->n_nodes)) f |= PINS;
  if (p->n_weights) f |= SHARED_WEIGHTS;
  if (o->require_nonempty) f |= NONEMPTY;
  for (uint32_t d = 0; d < p->n_devices; d++) {
    if (p->devices[d].count == 0) continue;
    limit |= p->devices[d].memory_bytes > 0;
    if (p->devices[d].free_comm) f |= FREE_COMM;
  }
  if (limit && any_bytes(p)) f |= MEMORY;
  if ((f & REPLICAS) && (f & (PINS | STASH))) f |= NUMBERED_COPIES;
  return f;
}

bool psplit_i_takes(psplit_i_method method, uint32_t features) {
  const char *cell = CELLS[method];
  if (!cell) return true; /* it runs others, which are asked */
  for (; *cell; cell++) {
    if (*cell == ' ') continue;
    if ((features & 1) && *cell != '+') return false;
    features >>= 1;
  }
  return true;
}

psplit_code psplit_i_features_check(uint32_t features, psplit_diag *diag) {
  for (size_t i = 0; i < sizeof REFUSED / sizeof *REFUSED; i++)
    if ((features & REFUSED[i].feature) && (features & REFUSED[i].others))
      return psplit_i_fail(diag, PSPLIT_UNSUPPORTED, "%s", REFUSED[i].message);
  return PSPLIT_OK;
}
