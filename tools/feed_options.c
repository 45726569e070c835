#include "feed_options.h"

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
  *out_name = cli_need(strndup(text, (size_t)(at - text)));
  *out_value = at + 1;
  return true;
}

static bool add_dim(const cli *program, feed_settings *s, const char *text) {
  psplit_feed_options *o = &s->options;
  char *name;
  const char *value;
  uint64_t count;
  if (!cut(program, "dim", text, &name, &value)) return false;
  if (!cli_count(program, "dim", value, 0, INT64_MAX, &count)) {
    free(name);
    return false;
  }
  size_t at = 0; /* what is said later counts */
  while (at < o->n_dims && strcmp(s->dims[at].name, name) != 0) at++;
  if (at < o->n_dims) {
    free((char *)(uintptr_t)s->dims[at].name);
  } else {
    o->dims = s->dims = cli_need(cli_grow(s->dims, o->n_dims, sizeof *s->dims));
    o->n_dims++;
  }
  s->dims[at] = (psplit_dim_value){name, (int64_t)count};
  return true;
}

static bool add_shape(const cli *program, feed_settings *s, const char *text) {
  enum { MAX_RANK = 32 };
  psplit_feed_options *o = &s->options;
  char *name;
  const char *value;
  uint32_t n;
  if (!cut(program, "shape", text, &name, &value)) return false;
  int64_t *dims = cli_need(malloc(MAX_RANK * sizeof *dims));
  if (!cli_sizes(value, dims, MAX_RANK, &n)) {
    cli_usage(program, "--shape takes NAME=N,N,..., not \"%s\"", text);
    free(dims);
    free(name);
    return false;
  }
  o->shapes = s->shapes = cli_need(cli_grow(s->shapes, o->n_shapes, sizeof *s->shapes));
  s->shapes[o->n_shapes++] = (psplit_feed_shape){name, n, dims};
  return true;
}

/* "ones", "zeros" and "LO..HI" are ranges of numbers that are made. */
static bool read_range(const char *text, double *out_low, double *out_high) {
  if (strcmp(text, "ones") == 0) return (*out_low = *out_high = 1) == 1;
  if (strcmp(text, "zeros") == 0) return (*out_low = *out_high = 0) == 0;
  /* "1..5" would be read as "1." and ".5". */
  const char *dots = strstr(text, "..");
  if (!dots || dots == text || (size_t)(dots - text) >= 64) return false;
  char low[64], *end;
  memcpy(low, text, (size_t)(dots - text));
  low[dots - text] = 0;
  *out_low = strtod(low, &end);
  if (*end) return false;
  *out_high = strtod(dots + 2, &end);
  return end != dots + 2 && !*end;
}

static void add_range(feed_settings *s, char *name, double low, double high) {
  psplit_feed_options *o = &s->options;
  o->ranges = s->ranges = cli_need(cli_grow(s->ranges, o->n_ranges, sizeof *s->ranges));
  s->ranges[o->n_ranges++] = (psplit_feed_range){name, low, high};
}

static void add_file(feed_settings *s, char *name, const char *path) {
  psplit_feed_options *o = &s->options;
  o->files = s->files = cli_need(cli_grow(s->files, o->n_files, sizeof *s->files));
  s->files[o->n_files++] = (psplit_feed_file){name, path};
}

static bool add_input(const cli *program, feed_settings *s, const char *text) {
  const char *at = strchr(text, '=');
  if (!cli_names_input(program, "input", text)) return false;
  double low, high;
  char *name = at ? cli_need(strndup(text, (size_t)(at - text))) : NULL;
  if (at && read_range(at + 1, &low, &high))
    add_range(s, name, low, high);
  else
    add_file(s, name, at ? at + 1 : text);
  return true;
}

void feed_init(feed_settings *s) {
  *s = (feed_settings){0};
  psplit_feed_options_init(&s->options);
}

bool feed_option(const cli *program, feed_settings *s, int id, const char *argument) {
  switch (id) {
    case OPT_INPUT: return add_input(program, s, argument);
    case OPT_SEED: return cli_count(program, "seed", argument, 0, UINT64_MAX, &s->options.seed);
    case OPT_DIM: return add_dim(program, s, argument);
    case OPT_MAX_UNPACKED:
      return cli_mebibytes(program, "max-unpacked", argument, &s->options.max_unpacked_bytes);
    case OPT_CASTS: return s->options.safe_casts = true;
    case OPT_SHAPE: return add_shape(program, s, argument);
    default: return false;
  }
}

void feed_fini(feed_settings *s) {
  const psplit_feed_options *o = &s->options;
  for (size_t i = 0; i < o->n_files; i++) free((char *)(uintptr_t)o->files[i].input);
  for (size_t i = 0; i < o->n_ranges; i++) free((char *)(uintptr_t)o->ranges[i].input);
  for (size_t i = 0; i < o->n_dims; i++) free((char *)(uintptr_t)o->dims[i].name);
  for (size_t i = 0; i < o->n_shapes; i++) {
    free((char *)(uintptr_t)o->shapes[i].input);
    free((int64_t *)(uintptr_t)o->shapes[i].dims);
  }
  free(s->files);
  free(s->dims);
  free(s->shapes);
  free(s->ranges);
}
