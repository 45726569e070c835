#include "pattern_alternatives.h"

#include <string.h>

typedef enum line_kind {
  LINE_OTHER, /* a step, "out", nothing */
  LINE_PATTERN,
  LINE_SET,
  LINE_EITHER,
  LINE_OR,
  LINE_END
} line_kind;

/* The lines of alternatives hold that one word: a value may be called "end" all the same. */
static line_kind kind_of(const char *line) {
  static const struct {
    const char *word;
    line_kind kind;
    bool alone;
  } kinds[] = {{"pattern", LINE_PATTERN, false},
               {"set", LINE_SET, false},
               {"either", LINE_EITHER, true},
               {"or", LINE_OR, true},
               {"end", LINE_END, true}};
  static const char blanks[] = " \t\r";
  line += strspn(line, blanks);
  const size_t n = strcspn(line, " \t\r#");
  const char *rest = line + n + strspn(line + n, blanks);
  for (size_t i = 0; i < sizeof kinds / sizeof *kinds; i++)
    if (strlen(kinds[i].word) == n && strncmp(kinds[i].word, line, n) == 0)
      return !kinds[i].alone || !*rest || *rest == '#' ? kinds[i].kind : LINE_OTHER;
  return LINE_OTHER;
}

bool psplit_i_lines_split(psplit_i_lines *lines, const char *text, size_t n,
                          psplit_i_arena *arena) {
  char *rest = psplit_i_arena_strndup(arena, text, n);
  uint32_t n_lines = 1;
  for (size_t i = 0; i < n; i++) n_lines += text[i] == '\n';
  *lines = (psplit_i_lines){.text = psplit_i_arena_array(arena, n_lines, sizeof *lines->text)};
  if (!rest || !lines->text) return false;
  while (rest) lines->text[lines->n++] = strsep(&rest, "\n");
  return true;
}

const char *psplit_i_alternatives_find(const psplit_i_lines *lines, uint32_t first,
                                       psplit_i_alternatives *out, uint32_t *out_line) {
  static const char too_many[] = "the alternatives of a pattern may have at most 64 combinations";
  uint32_t either = 0; /* the line that the group at hand began at */
  bool inside = false;
  *out = (psplit_i_alternatives){.end = first, .n_choices = 1};
  do {
    const line_kind kind = kind_of(lines->text[out->end]);
    *out_line = out->end + 1;
    if (inside && (kind == LINE_SET || kind == LINE_PATTERN || kind == LINE_EITHER))
      return "only steps and \"out\" are allowed between \"either\" and \"end\"";
    if (!inside && (kind == LINE_OR || kind == LINE_END)) return "\"either\" is missing before";
    if (kind == LINE_EITHER) {
      if (out->n_groups == PSPLIT_I_PATTERN_GROUPS)
        return "a pattern has at most 8 groups of alternatives";
      out->n_ways[out->n_groups++] = 1;
      either = *out_line;
      inside = true;
    } else if (kind == LINE_OR) {
      if (++out->n_ways[out->n_groups - 1] > PSPLIT_I_PATTERN_CHOICES) return too_many;
    } else if (kind == LINE_END) {
      out->n_choices *= out->n_ways[out->n_groups - 1];
      if (out->n_choices > PSPLIT_I_PATTERN_CHOICES) return too_many;
      inside = false;
    }
    out->end++;
  } while (out->end < lines->n && (inside || kind_of(lines->text[out->end]) != LINE_PATTERN));
  if (!inside) return NULL;
  *out_line = either;
  return "\"end\" is missing after \"either\"";
}

/* The alternative that the choice has of the group at hand. */
static uint32_t wanted_way(const psplit_i_choice *at) {
  uint32_t rest = at->choice;
  for (uint32_t g = at->of->n_groups - 1; g > at->group; g--) rest /= at->of->n_ways[g];
  return rest % at->of->n_ways[at->group];
}

bool psplit_i_choice_takes(psplit_i_choice *at, const psplit_i_lines *lines, uint32_t i) {
  switch (kind_of(lines->text[i])) {
    case LINE_EITHER:
      at->inside = true;
      at->way = 0;
      return false;
    case LINE_OR: at->way++; return false;
    case LINE_END:
      at->inside = false;
      at->group++;
      return false;
    case LINE_SET: return at->choice == 0;
    default: return !at->inside || at->way == wanted_way(at);
  }
}
