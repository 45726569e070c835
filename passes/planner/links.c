/* Classes of devices by their links: what the partitioner is told. */
#include "links.h"

#include <stdlib.h>
#include <string.h>

#include "devices_inside.h"

enum {
  MOST_LINKS = 8,   /* told of one class in one direction */
  MOST_CLASSES = 32 /* that links alone tell apart: the solver's work grows with them */
};

/* The links of some devices in both directions; index 0: sending, 1: receiving. */
typedef struct profile {
  psplit_device_link *link[2]; /* each [n_stages^2], or [n_stages] for one device */
  uint32_t n[2];
  bool one[2]; /* all of them were the same */
} profile;

typedef struct finder {
  const psplit_planner *planner;
  psplit_i_link_choice choice;
  psplit_i_links *out;
  uint32_t n_links;
} finder;

static bool same(const psplit_device_link *a, const psplit_device_link *b) {
  return a->latency_ns == b->latency_ns && !(a->bytes_per_second < b->bytes_per_second) &&
         !(a->bytes_per_second > b->bytes_per_second);
}

/* The least latency first, of equal ones the widest. */
static int compare_links(const void *a, const void *b) {
  const psplit_device_link *x = a, *y = b;
  if (x->latency_ns != y->latency_ns) return x->latency_ns < y->latency_ns ? -1 : 1;
  return x->bytes_per_second > y->bytes_per_second ? -1 : x->bytes_per_second < y->bytes_per_second;
}

/* Adds the links of `stage` to later stages, or from earlier ones; only the nearest, if so asked.
 */
static void collect(const finder *f, uint32_t stage, profile *p) {
  const uint32_t n = f->planner->options.n_stages;
  for (int side = 0; side < 2; side++)
    for (uint32_t k = 1; side ? k <= stage : k < n - stage; k++) {
      const uint32_t from = side ? stage - k : stage, to = side ? stage : stage + k;
      const psplit_device_link link = psplit_devices_link(f->planner->devices, from, to);
      if (!(link.bytes_per_second > 0)) continue;
      p->link[side][p->n[side]++] = link;
      if (f->choice == PSPLIT_I_LINKS_NEAREST) break;
    }
}

/* Leaves the links that are least for some number of bytes: the others are never the least. */
static void thin(profile *p, int side) {
  psplit_device_link *link = p->link[side];
  const uint32_t n = p->n[side];
  uint32_t kept = 0;
  p->one[side] = true;
  if (n) qsort(link, n, sizeof *link, compare_links);
  for (uint32_t i = 0; i < n; i++) {
    p->one[side] &= same(&link[i], &link[0]);
    if (kept && link[i].bytes_per_second <= link[kept - 1].bytes_per_second) continue;
    if (kept == MOST_LINKS) /* wider than all, and no slower to begin than it was */
      link[kept - 1].bytes_per_second = link[i].bytes_per_second;
    else
      link[kept++] = link[i];
  }
  p->n[side] = kept;
}

/* A device that no split can make send, or receive, goes with those that are like it elsewhere. */
static void finish(profile *p) {
  for (int side = 0; side < 2; side++) thin(p, side);
  for (int side = 0; side < 2; side++) {
    if (p->n[side] || !p->n[1 - side]) continue;
    memcpy(p->link[side], p->link[1 - side], p->n[1 - side] * sizeof *p->link[side]);
    p->n[side] = p->n[1 - side];
    break;
  }
}

static bool is_class(const psplit_i_links *l, uint32_t c, uint32_t time_class, const profile *p) {
  if (l->time_class[c] != time_class) return false;
  for (int side = 0; side < 2; side++) {
    const uint32_t from = l->off[2 * c + (uint32_t)side];
    if (l->off[2 * c + (uint32_t)side + 1] - from != p->n[side]) return false;
    for (uint32_t i = 0; i < p->n[side]; i++)
      if (!same(&l->link[from + i], &p->link[side][i])) return false;
  }
  return true;
}

static void add_class(finder *f, uint32_t time_class, const profile *p) {
  psplit_i_links *l = f->out;
  const uint32_t c = l->n++;
  l->time_class[c] = time_class;
  for (int side = 0; side < 2; side++) {
    if (p->n[side]) memcpy(l->link + f->n_links, p->link[side], p->n[side] * sizeof *l->link);
    f->n_links += p->n[side];
    l->off[2 * c + (uint32_t)side + 1] = f->n_links;
  }
}

/* False: links alone would make too many classes. */
static bool by_links(finder *f, profile *p) {
  psplit_i_links *l = f->out;
  for (uint32_t s = 0; s < f->planner->options.n_stages; s++) {
    const uint32_t time_class = f->planner->device_class[s];
    p->n[0] = p->n[1] = 0;
    collect(f, s, p);
    finish(p);
    l->exact &= p->one[0] && p->one[1];
    uint32_t c = 0;
    while (c < l->n && !is_class(l, c, time_class, p)) c++;
    if (c == f->planner->n_classes + MOST_CLASSES) return false;
    if (c == l->n) add_class(f, time_class, p);
    l->of_stage[s] = c;
  }
  return true;
}

/* The planner's classes, each with the links of all its devices, or the nearest of its first. */
static void by_times(finder *f, profile *p) {
  psplit_i_links *l = f->out;
  const uint32_t n_stages = f->planner->options.n_stages;
  l->n = f->n_links = 0;
  l->exact = true;
  for (uint32_t c = 0; c < f->planner->n_classes; c++) {
    p->n[0] = p->n[1] = 0;
    for (uint32_t s = 0; s < n_stages; s++)
      if (f->planner->device_class[s] == c &&
          (f->choice == PSPLIT_I_LINKS_LEAST || s == f->planner->class_device[c]))
        collect(f, s, p);
    finish(p);
    l->exact &= p->one[0] && p->one[1];
    add_class(f, c, p);
  }
  memcpy(l->of_stage, f->planner->device_class, n_stages * sizeof *l->of_stage);
}

psplit_code psplit_i_links_find(const psplit_planner *planner, psplit_i_link_choice choice,
                                psplit_i_arena *arena, psplit_diag *diag, psplit_i_links *out) {
  const uint32_t n_stages = planner->options.n_stages;
  const size_t most = (size_t)planner->n_classes + MOST_CLASSES;
  const size_t n_pairs = (size_t)n_stages * n_stages;
  finder f = {.planner = planner, .choice = choice, .out = out};
  profile p = {.link = {psplit_i_arena_array(arena, n_pairs, sizeof(psplit_device_link)),
                        psplit_i_arena_array(arena, n_pairs, sizeof(psplit_device_link))}};
  *out = (psplit_i_links){.exact = true};
  out->of_stage = psplit_i_arena_zeroed(arena, n_stages, sizeof *out->of_stage);
  out->time_class = psplit_i_arena_zeroed(arena, most, sizeof *out->time_class);
  out->off = psplit_i_arena_zeroed(arena, 2 * most + 1, sizeof *out->off);
  out->link = psplit_i_arena_array(arena, 2 * most * MOST_LINKS, sizeof *out->link);
  if (!p.link[0] || !p.link[1] || !out->of_stage || !out->time_class || !out->off || !out->link)
    return psplit_i_nomem(diag);
  if (!by_links(&f, &p)) by_times(&f, &p);
  return PSPLIT_OK;
}

int64_t psplit_i_links_ns(const psplit_i_links *links, uint32_t class_id, uint64_t bytes,
                          bool send) {
  const uint32_t first = links->off[2 * class_id + !send],
                 end = links->off[2 * class_id + !send + 1];
  int64_t least = first < end ? INT64_MAX : 0;
  for (uint32_t i = first; i < end; i++) {
    const int64_t ns = psplit_i_link_ns(&links->link[i], bytes);
    if (ns < least) least = ns;
  }
  return least;
}
