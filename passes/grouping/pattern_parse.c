/* From text to patterns. One line is one statement, so a position is a line number. */
#include <ctype.h>
#include <inttypes.h>
#include <string.h>

#include "foreign.h"
#include "number.h"
#include "pattern.h"
#include "pattern_alternatives.h"

typedef struct parser {
  psplit_i_patterns *into;
  psplit_i_arena *arena;
  psplit_diag *diag;
  const char *origin;
  uint32_t line;
  const char *at; /* rest of the current line */
  bool in_pattern, no_memory;
  uint32_t n_names; /* of the pattern at hand */
  const char *names[PSPLIT_I_PATTERN_NAMES];
  uint64_t made, used, outs; /* bit per name */
} parser;

void psplit_i_patterns_fini(psplit_i_patterns *patterns) {
  psplit_i_vec_fini(&patterns->patterns);
  psplit_i_vec_fini(&patterns->steps);
  psplit_i_vec_fini(&patterns->ops);
  psplit_i_vec_fini(&patterns->sets);
}

static psplit_code wrong(const parser *p, const char *what, const char *word) {
  if (p->no_memory) return psplit_i_nomem(p->diag); /* a word that stands there seemed missing */
  return psplit_i_fail(p->diag, PSPLIT_USAGE, "%s:%" PRIu32 ": %s%s%s%s; see docs/passes.md",
                       p->origin, p->line, what, *word ? " \"" : "", word, *word ? "\"" : "");
}

static void skip_blanks(parser *p) {
  while (*p->at == ' ' || *p->at == '\t' || *p->at == '\r') p->at++;
  if (*p->at == '#') p->at += strlen(p->at);
}

static bool is_word(char c) { return isalnum((unsigned char)c) || (c && strchr("_.-:", c)); }

/* The next word, in the arena; NULL where none stands. */
static const char *word(parser *p) {
  skip_blanks(p);
  size_t n = 0;
  while (is_word(p->at[n])) n++;
  if (!n) return NULL;
  const char *text = psplit_i_arena_strndup(p->arena, p->at, n);
  if (!text) p->no_memory = true;
  p->at += n;
  return text;
}

static bool take(parser *p, const char *symbol) {
  skip_blanks(p);
  const size_t n = strlen(symbol);
  if (strncmp(p->at, symbol, n) != 0) return false;
  p->at += n;
  return true;
}

static psplit_code line_end(parser *p) {
  skip_blanks(p);
  return *p->at ? wrong(p, "expected the end of the line, found", p->at) : PSPLIT_OK;
}

/* Number of a value's name; a new name gets the next one. */
static psplit_code name_id(parser *p, const char *name, uint32_t *out_id) {
  for (uint32_t i = 0; i < p->n_names; i++)
    if (strcmp(p->names[i], name) == 0) {
      *out_id = i;
      return PSPLIT_OK;
    }
  if (p->n_names == PSPLIT_I_PATTERN_NAMES)
    return wrong(p, "a pattern has at most 64 names; too many with", name);
  *out_id = p->n_names;
  p->names[p->n_names++] = name;
  return PSPLIT_OK;
}

static psplit_code add_op(parser *p, const char *text, const char *set) {
  psplit_i_pattern_op op = {.op_type = text};
  const char *colon = strrchr(text, ':');
  if (colon) {
    op.domain = psplit_i_arena_strndup(p->arena, text, (size_t)(colon - text));
    op.op_type = colon + 1;
    if (!op.domain) return psplit_i_nomem(p->diag);
  }
  if (!*op.op_type) return wrong(p, "an operator is missing in", text);
  if (set ? !psplit_i_vec_push(&p->into->sets, ((psplit_i_pattern_set){set, op}))
          : !psplit_i_vec_push(&p->into->ops, op))
    return psplit_i_nomem(p->diag);
  return PSPLIT_OK;
}

static psplit_code add_set_members(parser *p, const char *name) {
  const size_t before = p->into->ops.n;
  for (size_t i = 0; i < p->into->sets.n; i++)
    if (strcmp(p->into->sets.items[i].name, name) == 0 &&
        !psplit_i_vec_push(&p->into->ops, p->into->sets.items[i].op))
      return psplit_i_nomem(p->diag);
  return p->into->ops.n > before ? PSPLIT_OK : wrong(p, "there is no set", name);
}

/* OP { | OP }, where OP is an operator, "*" or "@set". Into `set`, or the table's ops. */
static psplit_code parse_ops(parser *p, const char *set) {
  psplit_code code;
  do {
    const char *text;
    if (!set && take(p, "*")) {
      PSPLIT_TRY(add_op(p, "*", NULL));
    } else if (!set && take(p, "@")) {
      if (!(text = word(p))) return wrong(p, "a set's name is missing after @", "");
      PSPLIT_TRY(add_set_members(p, text));
    } else {
      if (!(text = word(p))) return wrong(p, "an operator is missing before", p->at);
      PSPLIT_TRY(add_op(p, text, set));
    }
  } while (take(p, "|"));
  return PSPLIT_OK;
out:
  return code;
}

static psplit_code parse_operand(parser *p, psplit_i_operand *out) {
  if (take(p, "*")) {
    out->kind = PSPLIT_I_OPERAND_REST;
    return PSPLIT_OK;
  }
  out->kind = take(p, "~") ? PSPLIT_I_OPERAND_ANYWHERE : PSPLIT_I_OPERAND_VALUE;
  const char *text = word(p);
  if (!text) return wrong(p, "an operand is missing before", p->at);
  if (out->kind == PSPLIT_I_OPERAND_VALUE) {
    char *end;
    out->number = psplit_i_number_parse(text, &end);
    if (strcmp(text, "_") == 0)
      out->kind = PSPLIT_I_OPERAND_ANY;
    else if (strcmp(text, "const") == 0)
      out->kind = PSPLIT_I_OPERAND_CONST;
    else if (!*end && !isalpha((unsigned char)*text))
      out->kind = PSPLIT_I_OPERAND_NUMBER;
    if (out->kind != PSPLIT_I_OPERAND_VALUE) return PSPLIT_OK;
  }
  const psplit_code code = name_id(p, text, &out->name);
  if (code == PSPLIT_OK) p->used |= UINT64_C(1) << out->name;
  return code;
}

static psplit_code parse_operands(parser *p, psplit_i_step_pattern *step) {
  psplit_code code;
  if (!take(p, "(")) return wrong(p, "\"(\" is missing before", p->at);
  if (take(p, ")")) return PSPLIT_OK;
  do {
    if (step->n_operands == PSPLIT_I_PATTERN_OPERANDS)
      return wrong(p, "a step has at most 8 operands", "");
    if (step->n_operands && step->operands[step->n_operands - 1].kind == PSPLIT_I_OPERAND_REST)
      return wrong(p, "\"*\" must be the last operand", "");
    PSPLIT_TRY(parse_operand(p, &step->operands[step->n_operands]));
    step->n_operands++;
  } while (take(p, ","));
  return take(p, ")") ? PSPLIT_OK : wrong(p, "\")\" is missing before", p->at);
out:
  return code;
}

/* Whether an earlier step speaks of one of this step's values: else it could not be found. */
static bool is_reached(const psplit_i_step_pattern *step, uint64_t known) {
  for (uint32_t r = 0; r < step->n_results; r++)
    if (step->results[r] != PSPLIT_NONE && known >> step->results[r] & 1) return true;
  for (uint32_t o = 0; o < step->n_operands; o++) {
    const psplit_i_operand *operand = &step->operands[o];
    const bool named =
      operand->kind == PSPLIT_I_OPERAND_VALUE || operand->kind == PSPLIT_I_OPERAND_ANYWHERE;
    if (named && known >> operand->name & 1) return true;
  }
  return false;
}

/* RESULT { , RESULT } [?]= OPS ( OPERANDS ); `first` is the word already read. */
static psplit_code parse_step(parser *p, const char *first) {
  psplit_code code;
  psplit_i_pattern *pattern = &p->into->patterns.items[p->into->patterns.n - 1];
  if (pattern->n_steps == PSPLIT_I_PATTERN_STEPS)
    return wrong(p, "a pattern has at most 48 steps", "");
  psplit_i_step_pattern step = {.first_op = (uint32_t)p->into->ops.n};
  const uint64_t known = p->made | p->used;
  for (const char *name = first;; name = word(p)) {
    if (!name) return wrong(p, "a result is missing before", p->at);
    if (step.n_results == PSPLIT_I_PATTERN_RESULTS)
      return wrong(p, "a step has at most 4 results", "");
    uint32_t id = PSPLIT_NONE;
    if (strcmp(name, "_") != 0) {
      PSPLIT_TRY(name_id(p, name, &id));
      if (p->made >> id & 1) return wrong(p, "two steps make", name);
      p->made |= UINT64_C(1) << id;
    }
    step.results[step.n_results++] = id;
    if (!take(p, ",")) break;
  }
  step.optional = take(p, "?=");
  if (!step.optional && !take(p, "=")) return wrong(p, "\"=\" is missing before", p->at);
  PSPLIT_TRY(parse_ops(p, NULL));
  step.n_ops = (uint32_t)p->into->ops.n - step.first_op;
  PSPLIT_TRY(parse_operands(p, &step));
  PSPLIT_TRY(line_end(p));
  if (step.optional && !pattern->n_steps) return wrong(p, "the first step cannot be optional", "");
  if (pattern->n_steps && !is_reached(&step, known))
    return wrong(p, "no earlier step names a value of this one:", first);
  if (!psplit_i_vec_push(&p->into->steps, step)) return psplit_i_nomem(p->diag);
  pattern->n_steps++;
  return PSPLIT_OK;
out:
  return code;
}

/* What may be read outside: the values after "out", else those that no step reads. */
static psplit_code finish_pattern(parser *p) {
  if (!p->in_pattern) return PSPLIT_OK;
  psplit_i_pattern *pattern = &p->into->patterns.items[p->into->patterns.n - 1];
  p->in_pattern = false;
  if (!pattern->n_steps) return wrong(p, "no steps in pattern", pattern->name);
  if (p->outs & ~p->made)
    return wrong(p, "\"out\" names a value that no step makes in", pattern->name);
  pattern->n_names = p->n_names;
  pattern->outs = p->outs ? p->outs : p->made & ~p->used;
  return PSPLIT_OK;
}

static psplit_code start_pattern(parser *p) {
  const char *name = word(p);
  if (!name) return wrong(p, "a pattern's name is missing", "");
  const psplit_code code = line_end(p);
  if (code != PSPLIT_OK) return code;
  const psplit_i_pattern pattern = {.name = name, .first_step = (uint32_t)p->into->steps.n};
  if (!psplit_i_vec_push(&p->into->patterns, pattern)) return psplit_i_nomem(p->diag);
  p->in_pattern = true;
  p->n_names = 0;
  p->made = p->used = p->outs = 0;
  return PSPLIT_OK;
}

static psplit_code parse_outs(parser *p) {
  psplit_code code;
  for (const char *name; (name = word(p));) {
    uint32_t id = 0;
    PSPLIT_TRY(name_id(p, name, &id));
    p->outs |= UINT64_C(1) << id;
  }
  return line_end(p);
out:
  return code;
}

static psplit_code parse_line(parser *p) {
  skip_blanks(p);
  if (!*p->at) return PSPLIT_OK;
  const char *first = word(p);
  if (!first) return wrong(p, "a line starts with a name, not with", p->at);
  if (strcmp(first, "pattern") == 0) return start_pattern(p);
  if (strcmp(first, "set") == 0) {
    const char *name = word(p);
    if (!name || !take(p, "=")) return wrong(p, "expected: set NAME = OP | OP", "");
    const psplit_code code = parse_ops(p, name);
    return code == PSPLIT_OK ? line_end(p) : code;
  }
  if (!p->in_pattern) return wrong(p, "no pattern has begun before", first);
  return strcmp(first, "out") == 0 ? parse_outs(p) : parse_step(p, first);
}

/* One of the patterns that the lines from `first` on, a pattern's own, stand for. */
static psplit_code parse_choice(parser *p, const psplit_i_lines *lines, uint32_t first,
                                const psplit_i_alternatives *of, uint32_t choice) {
  psplit_code code;
  psplit_i_choice at = {.of = of, .choice = choice};
  for (uint32_t i = first; i < of->end; i++) {
    if (!psplit_i_choice_takes(&at, lines, i)) continue;
    p->line = i + 1;
    p->at = lines->text[i];
    PSPLIT_TRY(parse_line(p));
  }
  p->line = first + 1;
  PSPLIT_TRY(finish_pattern(p));
out:
  return code;
}

psplit_code psplit_i_patterns_parse(psplit_i_patterns *patterns, const char *origin,
                                    const char *text, size_t n, psplit_i_arena *arena,
                                    psplit_diag *diag) {
  psplit_code code = PSPLIT_OK;
  parser p = {.into = patterns, .arena = arena, .diag = diag, .origin = origin, .line = 1};
  psplit_i_lines lines;
  const psplit_i_foreign *foreign = n ? psplit_i_foreign_to_text(text, n) : NULL;
  if (foreign)
    return psplit_i_fail(diag, PSPLIT_USAGE, "%s: not a file of patterns: it is %s%s", origin,
                         foreign->is, foreign->helps);
  if (memchr(text, '\0', n)) return wrong(&p, "not a text: it holds a NUL byte", "");
  if (!psplit_i_lines_split(&lines, text, n, arena)) return psplit_i_nomem(diag);
  for (uint32_t i = 0; i < lines.n;) {
    psplit_i_alternatives of;
    const char *mistake = psplit_i_alternatives_find(&lines, i, &of, &p.line);
    if (mistake) return wrong(&p, mistake, "");
    for (uint32_t choice = 0; choice < of.n_choices; choice++)
      PSPLIT_TRY(parse_choice(&p, &lines, i, &of, choice));
    i = of.end;
  }
  if (p.no_memory) return psplit_i_nomem(diag);
out:
  return code;
}
