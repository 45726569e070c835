#include "feed_options.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

/* Cuts "NAME=VALUE" at the last '='; false (after an error line) where there is none. */
static bool cut(const cli *program, const char *option, const char *text, char **out_name,
                const char **out_value) {
  const char *at = strrchr(text, '=');
  if (!at || at == text) {
    cli_usage(program, "--%s takes NAME=VALUE, not \"%s\"", option, text);
    return false;
  }
  *out_name = strndup(text, (size_t)(at - text));
  *out_value = at + 1;
  return *out_name != NULL;
}

static bool add_dim(const cli *program, feed_settings *s, const char *text) {
  char *name;
  const char *value;
  uint64_t count;
  if (!cut(program, "dim", text, &name, &value) ||
      !cli_count(program, "dim", value, 0, INT64_MAX, &count))
    return false;
  for (size_t i = 0; i < s->dims.n; i++) {
    if (strcmp(s->dims.items[i].name, name) != 0) continue;
    s->dims.items[i].value = (int64_t)count; /* what is said later counts */
    free(name);
    return true;
  }
  return psplit_i_vec_push(&s->dims, ((psplit_i_dim_value){name, (int64_t)count}));
}

static bool add_shape(const cli *program, feed_settings *s, const char *text) {
  psplit_i_shape_value shape = {0};
  char *name;
  const char *value;
  if (!cut(program, "shape", text, &name, &value)) return false;
  shape.input = name;
  while (*value) {
    char *end;
    errno = 0;
    const long long size = strtoll(value, &end, 10);
    if (*value < '0' || *value > '9' || errno || shape.n_dims == PSPLIT_I_MAX_RANK ||
        (*end && *end != ',')) {
      cli_usage(program, "--shape takes NAME=N,N,..., not \"%s\"", text);
      return false;
    }
    shape.dims[shape.n_dims++] = size;
    value = end + (*end == ',');
  }
  return psplit_i_vec_push(&s->shapes, shape);
}

static bool add_input(const cli *program, feed_settings *s, const char *text) {
  const char *at = strchr(text, '=');
  psplit_i_given given = {NULL, text};
  if (at)
    given = (psplit_i_given){strndup(text, (size_t)(at - text)), at + 1};
  else if (strlen(text) < 4 || strcmp(text + strlen(text) - 4, ".npz") != 0) {
    cli_usage(program, "--input takes NAME=FILE, or an .npz; not \"%s\"", text);
    return false;
  }
  return psplit_i_vec_push(&s->given, given);
}

bool feed_option(const cli *program, feed_settings *s, int id, const char *argument) {
  bool good = false;
  switch (id) {
    case OPT_INPUT: good = add_input(program, s, argument); break;
    case OPT_SEED:
      good = cli_count(program, "seed", argument, 0, UINT64_MAX, &s->options.seed);
      break;
    case OPT_DIM: good = add_dim(program, s, argument); break;
    case OPT_SHAPE: good = add_shape(program, s, argument); break;
    default: break;
  }
  s->options.given = s->given.items;
  s->options.n_given = s->given.n;
  s->options.dims = s->dims.items;
  s->options.n_dims = s->dims.n;
  s->options.shapes = s->shapes.items;
  s->options.n_shapes = s->shapes.n;
  return good;
}

void feed_fini(feed_settings *s) {
  for (size_t i = 0; i < s->given.n; i++) free((char *)s->given.items[i].input);
  for (size_t i = 0; i < s->dims.n; i++) free((char *)s->dims.items[i].name);
  for (size_t i = 0; i < s->shapes.n; i++) free((char *)s->shapes.items[i].input);
  psplit_i_vec_fini(&s->given);
  psplit_i_vec_fini(&s->dims);
  psplit_i_vec_fini(&s->shapes);
}

/* The input that option i of --input and --shape names; NULL: an .npz that names them itself. */
static const char *named_input(const feed_settings *s, size_t i) {
  return i < s->given.n ? s->given.items[i].input : s->shapes.items[i - s->given.n].input;
}

static bool add_symbols(const psplit_i_shape *shape, psplit_i_intern *names) {
  for (int32_t axis = 0; axis < shape->rank; axis++)
    if (shape->dims[axis].param &&
        psplit_i_intern_add(names, shape->dims[axis].param) == PSPLIT_NONE)
      return false;
  return true;
}

/* Against the symbols that pipeline.json has: of the model's inputs and outputs, and of what
 * crosses.
 */
static psplit_code check_dims(const feed_settings *s, const psplit_i_manifest *m,
                              psplit_diag *diag) {
  psplit_code code = PSPLIT_OK;
  psplit_i_intern names;
  bool ok = true;
  psplit_i_intern_init(&names);
  for (uint32_t i = 0; ok && i < m->n_inputs; i++)
    ok = add_symbols(&m->input_values[i].shape, &names);
  for (uint32_t i = 0; ok && i < m->n_outputs; i++)
    ok = add_symbols(&m->output_values[i].shape, &names);
  for (uint32_t i = 0; ok && i < m->n_transfers; i++)
    ok = add_symbols(&m->transfers[i].shape, &names);
  if (!ok) PSPLIT_TRY(psplit_i_nomem(diag));
  for (size_t i = 0; i < s->dims.n; i++)
    if (psplit_i_intern_find(&names, s->dims.items[i].name) == PSPLIT_NONE)
      PSPLIT_TRY(psplit_i_fail_unknown(diag, "the split has no dimension", s->dims.items[i].name,
                                       names.text, names.n));
out:
  psplit_i_intern_fini(&names);
  return code;
}

psplit_code feed_check(const feed_settings *s, const psplit_i_pipe *pipe, psplit_diag *diag) {
  const psplit_i_manifest *m = &pipe->manifest;
  for (size_t i = 0; i < s->given.n + s->shapes.n; i++) {
    const char *name = named_input(s, i);
    bool found = !name;
    for (uint32_t p = 0; p < m->n_inputs; p++) found |= name && strcmp(name, m->inputs[p]) == 0;
    if (!found)
      return psplit_i_fail_unknown(diag, "the model has no input", name, m->inputs, m->n_inputs);
  }
  return s->dims.n ? check_dims(s, m, diag) : PSPLIT_OK;
}

psplit_code feed_check_model(const feed_settings *s, const psplit_model *model, psplit_diag *diag) {
  psplit_code code = PSPLIT_OK;
  for (size_t i = 0; i < s->given.n + s->shapes.n; i++) {
    const char *name = named_input(s, i);
    if (name) PSPLIT_TRY(psplit_model_check_inputs(model, &name, 1, diag));
  }
  for (size_t i = 0; i < s->dims.n; i++) {
    const psplit_dim_value dim = {s->dims.items[i].name, s->dims.items[i].value};
    PSPLIT_TRY(psplit_model_check_dims(model, &dim, 1, diag));
  }
out:
  return code;
}
