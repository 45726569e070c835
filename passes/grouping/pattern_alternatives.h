/* Alternatives in a text of patterns: which lines belong to which of the patterns that it stands
 * for.
 *
 *     either          Lines up to "or" or "end" are one alternative. A pattern with groups of 3 and
 *       ...           of 2 alternatives stands for 6 patterns of its name, the first alternatives
 *     or              first, those of the last group changing fastest.
 *       ...
 *     end */
#ifndef PSPLIT_PASSES_PATTERN_ALTERNATIVES_H
#define PSPLIT_PASSES_PATTERN_ALTERNATIVES_H

#include "base.h"

enum { PSPLIT_I_PATTERN_GROUPS = 8, PSPLIT_I_PATTERN_CHOICES = 64 }; /* per pattern */

/* A text, line by line. */
typedef struct psplit_i_lines {
  const char **text; /* [n] without the line ends */
  uint32_t n;
} psplit_i_lines;

/* Copies a text without NUL bytes into `arena`; false when out of memory. */
PSPLIT_MUST_USE bool psplit_i_lines_split(psplit_i_lines *lines, const char *text, size_t n,
                                          psplit_i_arena *arena);

/* The groups of alternatives in one pattern. */
typedef struct psplit_i_alternatives {
  uint32_t end;       /* the line behind the pattern's last one */
  uint32_t n_choices; /* patterns that it stands for: the product of n_ways; 1 without groups */
  uint32_t n_groups;
  uint32_t n_ways[PSPLIT_I_PATTERN_GROUPS];
} psplit_i_alternatives;

/* The groups of the pattern that begins at line `first` (or of the lines there before the first
 * pattern). What is wrong with them, and in which line from 1, or NULL. O(lines of the pattern). */
const char *psplit_i_alternatives_find(const psplit_i_lines *lines, uint32_t first,
                                       psplit_i_alternatives *out, uint32_t *out_line);

/* A walk over a pattern's lines for one choice, from 0 to n_choices - 1. */
typedef struct psplit_i_choice {
  const psplit_i_alternatives *of;
  uint32_t choice;
  uint32_t group, way; /* where the walk is; a group that lies behind is over */
  bool inside;
} psplit_i_choice;

/* Whether the pattern of this choice has line i; to be asked of each line in turn. Sets belong to
 * the text, not to a pattern: the first choice alone has them. */
bool psplit_i_choice_takes(psplit_i_choice *at, const psplit_i_lines *lines, uint32_t i);

#endif
