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

psplit_code feed_check(const feed_settings *s, const psplit_i_pipe *pipe, psplit_diag *diag) {
  for (size_t i = 0; i < s->given.n + s->shapes.n; i++) {
    const char *name =
      i < s->given.n ? s->given.items[i].input : s->shapes.items[i - s->given.n].input;
    bool found = !name;
    for (uint32_t p = 0; p < pipe->manifest.n_inputs; p++)
      found |= name && strcmp(name, pipe->manifest.inputs[p]) == 0;
    if (!found) return psplit_i_fail(diag, PSPLIT_USAGE, "the model has no input %s", name);
  }
  return PSPLIT_OK;
}
