/* Updates, and files of first weights. */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "fields.h"
#include "in_file.h"
#include "training_inside.h"

/* Whether the open file `fd` of that length holds these bytes and nothing else. */
static psplit_code holds(const char *path, int fd, uint64_t length, const psplit_i_text *expected,
                         psplit_diag *diag, bool *out) {
  psplit_code code = PSPLIT_OK;
  char buffer[65536];
  *out = length == expected->n;
  for (size_t at = 0; *out && at < expected->n; at += sizeof buffer) {
    const size_t left = expected->n - at, n = left < sizeof buffer ? left : sizeof buffer;
    PSPLIT_TRY(psplit_i_in_read_at(path, fd, at, buffer, n, diag));
    *out = memcmp(buffer, expected->bytes + at, n) == 0;
  }
out:
  return code;
}

static psplit_code check_bytes(const psplit_i_training_proof *c, const char *file,
                               const psplit_i_text *expected) {
  psplit_code code = PSPLIT_OK;
  psplit_i_text path = {0};
  uint64_t length;
  int fd = -1;
  bool equal = false;
  psplit_i_text_addf(&path, "%s/%s", c->directory, file);
  if (path.failed) PSPLIT_FAIL(psplit_i_nomem(c->p->diag));
  PSPLIT_TRY(psplit_i_in_open(path.bytes, c->p->diag, &fd, &length));
  PSPLIT_TRY(holds(path.bytes, fd, length, expected, c->p->diag, &equal));
  if (!equal)
    PSPLIT_FAIL(
      PSPLIT_I_DIFFERS(c->p, "%s is not the update by \"%s\"", file, c->table->optimizer));
out:
  if (fd >= 0) close(fd);
  psplit_i_text_fini(&path);
  return code;
}

/* What the manifest says goes in and out of an update. */
static bool lists_ports(const psplit_i_training_proof *c, const psplit_i_update_part *update,
                        const psplit_i_update_ports *ports) {
  bool good = psplit_i_same(update->lr, ports->lr) && psplit_i_same(update->scale, ports->scale) &&
              psplit_i_same(update->step, ports->step) && update->n_kept == ports->kept.n;
  for (uint32_t i = 0; good && i < update->n_kept; i++) {
    const psplit_i_kept *kept = &ports->kept.items[i];
    const psplit_i_kept_row *row = &update->kept[i];
    good =
      psplit_i_same(row->name, kept->name) && psplit_i_same(row->new_name, kept->new_name) &&
      psplit_i_same(row->weight, psplit_gradient_trainable(c->gradient, kept->trainable).name) &&
      row->is_state == kept->is_state;
  }
  return good;
}

/* The weights that the stage updates: of whose gradients it is the first stage that gives some. */
static psplit_code list_updated(const psplit_i_training_proof *c, uint32_t s, uint32_t *updated,
                                uint32_t *out_n) {
  *out_n = 0;
  for (uint32_t t = 0; t < c->gradient->n_trainables; t++) {
    if (c->arises[t] != s) continue;
    updated[(*out_n)++] = t;
    if (c->table->weights[c->row_of[t]].owner != s)
      return PSPLIT_I_DIFFERS(c->p,
                              "the gradient of \"%s\" arises in stage %" PRIu32
                              ", but the manifest names another owner",
                              psplit_gradient_trainable(c->gradient, t).name, s);
  }
  return PSPLIT_OK;
}

psplit_code psplit_i_check_update(psplit_i_training_proof *c, uint32_t s) {
  psplit_code code = PSPLIT_OK;
  const psplit_i_training_parts *stage = &c->table->stages[s];
  const psplit_gradient *gradient = c->gradient;
  psplit_i_text expected = {0};
  psplit_i_update_ports ports = {0};
  uint32_t *updated = malloc((gradient->n_trainables + (size_t)1) * sizeof *updated);
  uint32_t n = 0;
  if (!updated) return psplit_i_nomem(c->p->diag);
  PSPLIT_TRY(list_updated(c, s, updated, &n));
  const bool updates = c->table->optimizer && n;
  if (updates != (stage->update.file != NULL))
    PSPLIT_FAIL(
      PSPLIT_I_DIFFERS(c->p, "stage %" PRIu32 " has %s update", s, updates ? "no" : "an"));
  if (!updates) goto out;
  psplit_diag why = {0};
  code =
    psplit_i_gradient_update(&(psplit_i_update_request){gradient, c->table->optimizer, updated, n},
                             &c->p->arena, &why, &expected, &ports);
  if (code == PSPLIT_USAGE) PSPLIT_FAIL(PSPLIT_I_DIFFERS(c->p, "%s", why.message));
  if (code != PSPLIT_OK) PSPLIT_FAIL(psplit_i_fail_as(c->p->diag, &why));
  PSPLIT_TRY(check_bytes(c, stage->update.file, &expected));
  if (!lists_ports(c, &stage->update, &ports))
    PSPLIT_FAIL(PSPLIT_I_DIFFERS(c->p, "%s has other inputs or outputs than the manifest says",
                                 stage->update.file));
out:
  psplit_i_update_ports_fini(&ports);
  psplit_i_text_fini(&expected);
  free(updated);
  return code;
}

/* A file of weights holds the model's, which are its outputs, and nothing else. */
psplit_code psplit_i_check_first_weights(psplit_i_training_proof *c, uint32_t s) {
  psplit_code code;
  psplit_i_proof *p = c->p;
  const char *file = c->table->stages[s].first_weights;
  if (!file) return PSPLIT_OK;
  p->at = s;
  PSPLIT_TRY(psplit_i_open_part(p, c->directory, file, c->options));
  bool good = p->part->n_nodes == 0 && p->part->n_inputs == 0 &&
              p->part->n_outputs == p->part->n_initializers && c->table->plain_weights;
  if (good) PSPLIT_TRY(psplit_i_is_weights_file(p, &good));
  for (uint32_t o = 0; good && o < p->part->n_outputs; o++) {
    const uint32_t value =
      psplit_i_graph_find_value(p->graph, p->part->values[p->part->outputs[o]].name);
    good = value != PSPLIT_NONE;
    if (good) PSPLIT_TRY(psplit_i_is_declared(p, o, value, &good));
  }
  for (uint32_t i = 0; good && i < p->part->n_initializers; i++) {
    const psplit_i_value *part = &p->part->values[p->part->initializers[i]];
    const uint32_t value = psplit_i_graph_find_value(p->graph, part->name);
    good = part->is_output && psplit_i_is_trained(p, part->name) && !c->first_seen[value];
    if (good)
      PSPLIT_TRY(psplit_i_compare(p, PSPLIT_I_GRAPH_INITIALIZER,
                                  p->graph->values[value].initializer, i, part->name, &good));
    if (good) c->first_seen[value] = 1;
  }
  if (!good)
    PSPLIT_FAIL(
      PSPLIT_I_DIFFERS(p, "%s does not hold initial values of weights as the model does", file));
  PSPLIT_TRY(psplit_i_pairs_compare(p, p->at, c->options->n_threads));
out:
  psplit_i_close_part(p);
  return code;
}
