#include "module_scope.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

/* Length of a name's scope: all before its last '/'. */
static size_t scope_length(const char *name) {
  const char *slash = strrchr(name, '/');
  return slash ? (size_t)(slash - name) : 0;
}

/* Bytes of `a` that are a scope of `b` as well: whole components. */
static size_t common_scope(const char *a, size_t n, const char *b, size_t n_b) {
  size_t same = 0;
  while (same < n && same < n_b && a[same] == b[same]) same++;
  const bool ends = (same == n || a[same] == '/') && (same == n_b || b[same] == '/');
  if (ends) return same;
  while (same > 0 && a[same - 1] != '/') same--;
  return same ? same - 1 : 0;
}

char *psplit_i_scope_dotted(const char *scope, size_t n, psplit_i_arena *arena) {
  char *out = psplit_i_arena_alloc(arena, n + 1);
  if (!out) return NULL;
  size_t used = 0, last = 0; /* `last`: where the previous component starts */
  for (size_t i = 0; i < n;) {
    size_t end = i;
    while (end < n && scope[end] != '/') end++;
    const size_t width = end - i;
    if (width) {
      const size_t n_last = used - last;
      const bool repeats = n_last && width > n_last && scope[i + n_last] == '.' &&
                           memcmp(scope + i, out + last, n_last) == 0;
      if (repeats)
        used = last;
      else if (used)
        out[used++] = '.';
      if (!repeats) last = used;
      memcpy(out + used, scope + i, width);
      used += width;
    }
    i = end + 1;
  }
  out[used] = '\0';
  return out;
}

static const char *last_name(const psplit_i_scoped *group) {
  const char *name = group->names[group->main];
  const char *slash = strrchr(name, '/');
  if (slash && slash[1]) return slash + 1;
  return *name ? name : group->fallback;
}

/* The scope that all named members share, or "". */
static const char *shared_scope(const psplit_i_scoped *group, psplit_i_arena *arena) {
  const char *first = NULL;
  size_t n = 0;
  for (uint32_t i = 0; i < group->n; i++) {
    const char *name = group->names[i];
    if (!*name) continue;
    n = first ? common_scope(first, n, name, scope_length(name)) : scope_length(name);
    if (!first) first = name;
    if (!n) return "";
  }
  return first ? psplit_i_scope_dotted(first, n, arena) : "";
}

static const char *joined(const char *scope, const char *name, uint32_t number,
                          psplit_i_arena *arena) {
  const size_t n = strlen(scope) + strlen(name) + 16;
  char *out = psplit_i_arena_alloc(arena, n);
  if (!out) return NULL;
  const char *colon = *scope && *name ? ":" : "";
  if (number)
    snprintf(out, n, "%s%s%s#%" PRIu32, scope, colon, name, number);
  else
    snprintf(out, n, "%s%s%s", scope, colon, name);
  return out;
}

psplit_code psplit_i_scope_titles(const psplit_i_scoped *groups, uint32_t n_groups,
                                  psplit_i_arena *arena, psplit_diag *diag, const char **out_titles,
                                  const char **out_scopes) {
  psplit_code code = PSPLIT_NOMEM;
  psplit_i_intern seen;
  psplit_i_intern_init(&seen);
  uint32_t *count = PSPLIT_NEW(arena, uint32_t, 2 * (size_t)n_groups + 1);
  uint32_t *id = PSPLIT_NEW(arena, uint32_t, n_groups);
  if (!count || !id) goto out;
  for (uint32_t g = 0; g < n_groups; g++) {
    if (!(out_titles[g] = out_scopes[g] = shared_scope(&groups[g], arena))) goto out;
    if ((id[g] = psplit_i_intern_add(&seen, out_titles[g])) == PSPLIT_NONE) goto out;
    count[id[g]]++;
  }
  for (uint32_t g = 0; g < n_groups; g++)
    if ((!*out_titles[g] || count[id[g]] > 1) &&
        !(out_titles[g] = joined(out_titles[g], last_name(&groups[g]), 0, arena)))
      goto out;
  /* What is still the same after that is numbered, from the second on. */
  psplit_i_intern_fini(&seen);
  psplit_i_intern_init(&seen);
  memset(count, 0, (2 * (size_t)n_groups + 1) * sizeof *count);
  for (uint32_t g = 0; g < n_groups; g++) {
    const uint32_t title = psplit_i_intern_add(&seen, out_titles[g]);
    if (title == PSPLIT_NONE) goto out;
    if (++count[title] == 1) continue;
    const char *numbered = joined("", out_titles[g], count[title], arena);
    while (numbered && psplit_i_intern_find(&seen, numbered) != PSPLIT_NONE)
      numbered = joined("", out_titles[g], ++count[title], arena); /* a node is called so */
    if (!numbered) goto out;
    if (psplit_i_intern_add(&seen, numbered) == PSPLIT_NONE) goto out;
    out_titles[g] = numbered;
  }
  code = PSPLIT_OK;
out:
  psplit_i_intern_fini(&seen);
  return code == PSPLIT_OK ? code : psplit_i_nomem(diag);
}
