#include "pins.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "foreign.h"
#include "unknown.h"

/* A name and the node that has it, in the order of names, then of nodes. */
typedef struct named {
  const char *name;
  uint32_t node;
} named;

/* What takes pins, one after the other. */
typedef struct taker {
  psplit_planner *planner;
  psplit_diag *diag;
  named *names; /* [n]; NULL: not needed yet */
  uint32_t n;
} taker;

/* Where a pin was given: as an option, or in a line of a text. */
typedef struct origin {
  psplit_i_advice about;
  char line[288]; /* "pins.txt:7: "; empty: an option */
} origin;

/* A node's own name, or for lack of one that of its first output; "" without either. */
static const char *name_of(const psplit_i_graph *graph, uint32_t node) {
  return psplit_i_node_known_as(graph, &graph->nodes[node]);
}

static int by_name(const void *a, const void *b) {
  const named *x = a, *y = b;
  const int order = strcmp(x->name, y->name);
  return order ? order : (x->node > y->node) - (x->node < y->node);
}

static bool sort_names(taker *t) {
  const psplit_i_graph *graph = t->planner->graph;
  t->names = psplit_i_arena_array(&t->planner->scratch, graph->n_nodes, sizeof *t->names);
  if (!t->names) return false;
  for (uint32_t n = 0; n < graph->n_nodes; n++) {
    const char *name = name_of(graph, n);
    if (*name) t->names[t->n++] = (named){name, n};
  }
  qsort(t->names, t->n, sizeof *t->names, by_name);
  return true;
}

/* The first of these names that is not before `name`. */
static uint32_t lower_bound(const taker *t, const char *name) {
  uint32_t low = 0, high = t->n;
  while (low < high) {
    const uint32_t middle = low + (high - low) / 2;
    if (strcmp(t->names[middle].name, name) < 0)
      low = middle + 1;
    else
      high = middle;
  }
  return low;
}

static bool is_name(const taker *t, const char *pattern) {
  const uint32_t i = lower_bound(t, pattern);
  return i < t->n && strcmp(t->names[i].name, pattern) == 0;
}

/* A pattern that one name matches becomes this name: false where others may match, too. */
static bool is_literal(char *pattern) {
  if (strpbrk(pattern, "*?[")) {
    for (const char *c = pattern; *c; c++) {
      if (*c == '\\' && c[1])
        c++;
      else if (strchr("*?[\\", *c))
        return false;
    }
  } else if (!strchr(pattern, '\\')) {
    return true;
  }
  char *to = pattern;
  for (const char *c = pattern; *c; c++) {
    if (*c == '\\' && !c[1]) return false;
    *to++ = *c == '\\' ? *++c : *c;
  }
  *to = '\0';
  return true;
}

/* A pattern that matches nothing: with the nearest name of a node, and some that there are. */
static psplit_code no_match(psplit_planner *planner, const origin *from, const char *option,
                            const char *pattern, psplit_diag *diag) {
  const psplit_i_graph *graph = planner->graph;
  const char **names = PSPLIT_NEW(&planner->scratch, const char *, graph->n_nodes);
  uint32_t n = 0;
  psplit_i_text hint = {0};
  if (!names) return psplit_i_nomem(diag);
  for (uint32_t i = 0; i < graph->n_nodes; i++) {
    const char *name = name_of(graph, i);
    if (*name) names[n++] = name;
  }
  psplit_i_add_names(&hint, n ? "nodes are" : "nodes with names there are", pattern, names, n);
  const psplit_code code =
    hint.failed ? psplit_i_nomem(diag)
                : psplit_i_fail_about(diag, PSPLIT_USAGE, from->about, "%s%s matches no node%s",
                                      from->line, option, hint.bytes);
  psplit_i_text_fini(&hint);
  return code;
}

static psplit_code pin_node(taker *t, const origin *from, const char *pin, uint32_t node,
                            uint32_t stage) {
  uint32_t *now = &t->planner->pin[node];
  if (*now != PSPLIT_NONE && *now != stage)
    return psplit_i_fail_about(t->diag, PSPLIT_USAGE, from->about,
                               "%s%s: node %s is pinned to stage %" PRIu32 " already", from->line,
                               pin, name_of(t->planner->graph, node), *now);
  *now = stage;
  return PSPLIT_OK;
}

/* "PATTERN=STAGE" for the nodes whose name the pattern is, or without any for those that match. It
 * may itself hold '=': the last one counts. */
static psplit_code apply_pin(taker *t, const origin *from, const char *pin) {
  psplit_planner *planner = t->planner;
  const psplit_i_graph *graph = planner->graph;
  const char *equals = strrchr(pin, '=');
  uint64_t stage;
  if (!equals || equals == pin || !psplit_i_parse_u64(equals + 1, &stage))
    return psplit_i_fail_about(t->diag, PSPLIT_USAGE, from->about,
                               "%s\"%s\": it takes PATTERN=STAGE", from->line, pin);
  if (stage >= planner->options.n_stages)
    return psplit_i_fail_about(t->diag, PSPLIT_USAGE, from->about, "%s%s: stages are 0 to %" PRIu32,
                               from->line, pin, planner->options.n_stages - 1);
  const size_t n = (size_t)(equals - pin);
  char *pattern = psplit_i_arena_strndup(&planner->scratch, pin, n);
  char *name = psplit_i_arena_strndup(&planner->scratch, pin, n);
  if (!pattern || !name || (!t->names && !sort_names(t))) return psplit_i_nomem(t->diag);
  psplit_code code = PSPLIT_OK;
  bool any = false;
  if (is_name(t, name) || is_literal(name)) {
    for (uint32_t i = lower_bound(t, name);
         i < t->n && strcmp(t->names[i].name, name) == 0 && code == PSPLIT_OK; i++) {
      any = true;
      code = pin_node(t, from, pin, t->names[i].node, (uint32_t)stage);
    }
  } else {
    for (uint32_t i = 0; i < graph->n_nodes && code == PSPLIT_OK; i++) {
      const char *known = name_of(graph, i);
      if (!*known || !psplit_i_glob_match(pattern, known)) continue;
      any = true;
      code = pin_node(t, from, pin, i, (uint32_t)stage);
    }
  }
  return any ? code : no_match(planner, from, pin, pattern, t->diag);
}

/* How many backslashes begin a pin of a text for its '#' alone, which would begin a comment: one of
 * those before it. */
static size_t quote_length(const char *pin, size_t n) {
  size_t i = 0;
  while (i < n && pin[i] == '\\') i++;
  return i && i < n && pin[i] == '#';
}

/* A text of pins; lines may end in CR LF. */
static psplit_code apply_text(taker *t, const char *name, const char *text, size_t n) {
  const psplit_i_foreign *foreign = n ? psplit_i_foreign_find(text, n) : NULL;
  if (foreign)
    return psplit_i_fail(t->diag, PSPLIT_USAGE, "%s: not a file of pins: it is %s%s", name,
                         foreign->is, foreign->helps);
  psplit_code code = PSPLIT_OK;
  uint32_t line = 0;
  for (const char *at = text, *end = text + n; at < end && code == PSPLIT_OK;) {
    const char *stop = memchr(at, '\n', (size_t)(end - at));
    if (!stop) stop = end;
    origin from = {.line = ""};
    snprintf(from.line, sizeof from.line, "%.256s:%" PRIu32 ": ", name, ++line);
    size_t length = (size_t)(stop - at);
    if (length && at[length - 1] == '\r') length--;
    if (memchr(at, '\0', length))
      return psplit_i_fail(t->diag, PSPLIT_USAGE, "%sa NUL byte: no name has one", from.line);
    if (length && *at != '#') {
      const size_t quote = quote_length(at, length);
      char *pin = psplit_i_arena_strndup(&t->planner->scratch, at + quote, length - quote);
      code = pin ? apply_pin(t, &from, pin) : psplit_i_nomem(t->diag);
    }
    at = stop + (stop < end);
  }
  return code;
}

psplit_code psplit_i_planner_take_pins(psplit_planner *planner, psplit_diag *diag) {
  const psplit_planner_options *options = &planner->options;
  taker t = {.planner = planner, .diag = diag};
  const origin option = {.about = PSPLIT_I_ABOUT(PIN)};
  psplit_code code = PSPLIT_OK;
  for (size_t i = 0; i < options->n_pins && code == PSPLIT_OK; i++)
    code = apply_pin(&t, &option, options->pins[i]);
  if (options->pins_text && code == PSPLIT_OK)
    code = apply_text(&t, options->pins_name ? options->pins_name : "pins", options->pins_text,
                      options->n_pins_text);
  psplit_i_arena_reset(&planner->scratch);
  return code;
}

static bool names_a_node(const psplit_i_graph *graph, const char *pattern) {
  for (uint32_t n = 0; n < graph->n_nodes; n++)
    if (strcmp(name_of(graph, n), pattern) == 0) return true;
  return false;
}

/* Nodes that match share a class; a node of an earlier class brings that class along. */
static psplit_code apply_together(psplit_planner *planner, const char *pattern, uint32_t class_id,
                                  psplit_diag *diag) {
  const origin option = {.about = PSPLIT_I_ABOUT(KEEP_TOGETHER)};
  const bool is_name = names_a_node(planner->graph, pattern);
  bool any = false;
  for (uint32_t n = 0; n < planner->graph->n_nodes; n++) {
    const char *name = name_of(planner->graph, n);
    if (!*name || !psplit_i_name_match(pattern, is_name, name)) continue;
    any = true;
    const uint32_t old = planner->together[n];
    if (old == PSPLIT_NONE) {
      planner->together[n] = class_id;
    } else if (old != class_id) {
      for (uint32_t m = 0; m < planner->graph->n_nodes; m++)
        if (planner->together[m] == old) planner->together[m] = class_id;
    }
  }
  return any ? PSPLIT_OK : no_match(planner, &option, pattern, pattern, diag);
}

psplit_code psplit_i_planner_keep_together(psplit_planner *planner, psplit_diag *diag) {
  const psplit_planner_options *options = &planner->options;
  psplit_code code = PSPLIT_OK;
  for (size_t i = 0; i < options->n_keep_together && code == PSPLIT_OK; i++)
    code = apply_together(planner, options->keep_together[i], (uint32_t)i, diag);
  planner->n_together = (uint32_t)options->n_keep_together;
  return code;
}
