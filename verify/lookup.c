/* Tables over the manifest: every question of the proof is answered in constant time. */
#include <inttypes.h>

#include "verify.h"

bool psplit_i_table_init(psplit_i_table *table, psplit_i_arena *arena, size_t n, uint64_t seed) {
  uint32_t n_slots = 8;
  while (n_slots < UINT32_C(1) << 31 && n_slots / 2 < n) n_slots *= 2;
  table->entries = n_slots / 2 < n ? NULL : PSPLIT_NEW(arena, psplit_i_entry, n_slots);
  if (!table->entries) return false;
  for (uint32_t i = 0; i < n_slots; i++) table->entries[i].value = PSPLIT_NONE;
  table->n_slots = n_slots;
  table->seed = seed;
  return true;
}

/* Where the key is, or the empty place for it. */
static psplit_i_entry *find_entry(const psplit_i_table *table, uint32_t a, uint32_t b, uint32_t c) {
  const uint64_t hash =
    psplit_i_mix64(psplit_i_mix64(table->seed ^ ((uint64_t)a << 32 | b)) ^ table->seed ^ c);
  for (uint32_t i = (uint32_t)hash & (table->n_slots - 1);; i = (i + 1) & (table->n_slots - 1)) {
    psplit_i_entry *entry = &table->entries[i];
    if (entry->value == PSPLIT_NONE || (entry->a == a && entry->b == b && entry->c == c))
      return entry;
  }
}

bool psplit_i_table_add(psplit_i_table *table, uint32_t a, uint32_t b, uint32_t c, uint32_t value) {
  psplit_i_entry *entry = find_entry(table, a, b, c);
  if (entry->value != PSPLIT_NONE) return false;
  *entry = (psplit_i_entry){a, b, c, value};
  return true;
}

uint32_t psplit_i_table_find(const psplit_i_table *table, uint32_t a, uint32_t b, uint32_t c) {
  return find_entry(table, a, b, c)->value;
}

/* Id of a name of the manifest. */
static psplit_code name_id(psplit_i_proof *p, const char *name, uint32_t *out) {
  *out = psplit_i_intern_add(&p->names, name);
  return *out == PSPLIT_NONE ? psplit_i_nomem(p->diag) : PSPLIT_OK;
}

static psplit_code make_room(psplit_i_proof *p) {
  const psplit_i_manifest *m = &p->manifest;
  size_t n_rows = 0, n_inputs = 0, n_offers = 0, n_copies = 0;
  for (uint32_t s = 0; s < m->n_stages; s++) {
    const psplit_i_manifest_stage *stage = &m->stages[s];
    n_rows += (size_t)stage->n_inputs + stage->n_outputs;
    n_inputs += stage->n_inputs;
    for (uint32_t o = 0; o < stage->n_outputs; o++) n_offers += stage->outputs[o].n_to;
  }
  for (uint32_t d = 0; d < m->n_duplicates; d++) n_copies += (size_t)m->duplicates[d].n_also + 1;
  const uint64_t seed = p->names.key[0];
  psplit_i_arena *arena = &p->arena;
  return psplit_i_table_init(&p->rows, arena, n_rows, seed) &&
             psplit_i_table_init(&p->wants, arena, n_inputs, seed) &&
             psplit_i_table_init(&p->offers, arena, n_offers, seed) &&
             psplit_i_table_init(&p->transfers, arena, m->n_transfers, seed) &&
             psplit_i_table_init(&p->tags, arena, m->n_transfers, seed) &&
             psplit_i_table_init(&p->duplicates, arena, n_copies, seed)
           ? PSPLIT_OK
           : psplit_i_nomem(p->diag);
}

static psplit_code add_rows(psplit_i_proof *p, uint32_t s) {
  psplit_code code = PSPLIT_OK;
  const psplit_i_manifest_stage *stage = &p->manifest.stages[s];
  uint32_t port, tensor;
  for (uint32_t i = 0; i < stage->n_inputs; i++) {
    const psplit_i_row *row = &stage->inputs[i];
    PSPLIT_TRY(name_id(p, row->name, &port));
    PSPLIT_TRY(name_id(p, row->tensor, &tensor));
    if (!psplit_i_table_add(&p->rows, port, s, 0, i))
      return PSPLIT_I_DIFFERS(p, "stage %" PRIu32 ": the manifest lists input \"%s\" twice",
                              psplit_i_called(p, s), row->name);
    if (!psplit_i_table_add(&p->wants, tensor, row->from, s, i))
      return PSPLIT_I_DIFFERS(p, "stage %" PRIu32 " takes \"%s\" twice from the same place",
                              psplit_i_called(p, s), row->tensor);
  }
  for (uint32_t o = 0; o < stage->n_outputs; o++) {
    const psplit_i_row *row = &stage->outputs[o];
    PSPLIT_TRY(name_id(p, row->name, &port));
    PSPLIT_TRY(name_id(p, row->tensor, &tensor));
    /* A model may list an output twice; then so does its stage. */
    (void)psplit_i_table_add(&p->rows, port, s, 1, o);
    for (uint32_t t = 0; t < row->n_to; t++)
      if (!psplit_i_table_add(&p->offers, tensor, s, row->to[t], o))
        return PSPLIT_I_DIFFERS(p, "stage %" PRIu32 " sends \"%s\" twice to stage %" PRIu32,
                                psplit_i_called(p, s), row->tensor, psplit_i_called(p, row->to[t]));
  }
out:
  return code;
}

static psplit_code add_transfers(psplit_i_proof *p) {
  psplit_code code = PSPLIT_OK;
  const psplit_i_manifest *m = &p->manifest;
  for (uint32_t t = 0; t < m->n_transfers; t++) {
    const psplit_i_manifest_transfer *transfer = &m->transfers[t];
    uint32_t tensor;
    PSPLIT_TRY(name_id(p, transfer->tensor, &tensor));
    if (!psplit_i_table_add(&p->tags, (uint32_t)transfer->tag, (uint32_t)(transfer->tag >> 32), 0,
                            t))
      return PSPLIT_I_DIFFERS(p, "two transfers have tag %" PRIu64, transfer->tag);
    if (!psplit_i_table_add(&p->transfers, tensor, transfer->from, transfer->to, t))
      return PSPLIT_I_DIFFERS(
        p, "\"%s\" from stage %" PRIu32 " to %" PRIu32 " is listed twice among the transfers",
        transfer->tensor, psplit_i_called(p, transfer->from), psplit_i_called(p, transfer->to));
  }
out:
  return code;
}

static psplit_code add_duplicates(psplit_i_proof *p) {
  const psplit_i_manifest *m = &p->manifest;
  for (uint32_t d = 0; d < m->n_duplicates; d++) {
    const psplit_i_duplicate *duplicate = &m->duplicates[d];
    if (duplicate->node >= p->graph->n_nodes)
      return PSPLIT_I_DIFFERS(
        p, "the manifest declares a duplicate of node %" PRIu32 ", which does not exist",
        duplicate->node);
    if (p->declared[duplicate->node])
      return PSPLIT_I_DIFFERS(p, "the manifest declares node %" PRIu32 " a duplicate twice",
                              duplicate->node);
    p->declared[duplicate->node] = d + 1;
    for (uint32_t i = 0; i < duplicate->n_also + 1; i++)
      if (!psplit_i_table_add(&p->duplicates, duplicate->node,
                              i ? duplicate->also[i - 1] : duplicate->stage, 0, d))
        return PSPLIT_I_DIFFERS(
          p, "the manifest places a copy of node %" PRIu32 " twice in one stage", duplicate->node);
  }
  return PSPLIT_OK;
}

psplit_code psplit_i_tables_init(psplit_i_proof *p) {
  psplit_code code;
  /* The first name brings the intern table's secret key. */
  PSPLIT_TRY(psplit_i_intern_reserve(&p->names, 16) ? PSPLIT_OK : psplit_i_nomem(p->diag));
  PSPLIT_TRY(make_room(p));
  for (uint32_t s = 0; s < p->manifest.n_stages; s++) PSPLIT_TRY(add_rows(p, s));
  PSPLIT_TRY(add_transfers(p));
  PSPLIT_TRY(add_duplicates(p));
out:
  return code;
}

/* --- of training --- */

uint32_t psplit_i_training_ports_find(const psplit_i_training_ports *training, psplit_i_set set,
                                      const char *name, uint32_t stage) {
  const uint32_t id = training ? psplit_i_intern_find(training->names, name) : PSPLIT_NONE;
  return id == PSPLIT_NONE ? PSPLIT_NONE : psplit_i_table_find(training->sets, id, stage, set);
}

bool psplit_i_is_trained(const psplit_i_proof *p, const char *name) {
  const uint32_t value = p->training ? psplit_i_graph_find_value(p->graph, name) : PSPLIT_NONE;
  return value != PSPLIT_NONE && p->training->trained[value];
}
