/* The semidefinite program by unit vectors: each in turn becomes what is best for all others as
 * they are (the mixing method), while multipliers grow where a condition is violated.
 *
 * With V the vectors as rows, X = V V' and U the weights on a diagonal, conditions are
 *
 *   (X u)_i <= most, with multiplier row[i]: no part weighs more;
 *   V' U V <= most I, with the matrix `wide`: indicators of parts, times the roots of weights, are
 *   orthogonal, and the square of none is more than `most`.
 *
 * The second speaks of V but for a rotation. So behind each round V is turned as near as can be to
 * what it was: else it would turn away from the multipliers. All here may be inexact: what comes of
 * it is proved by others. */
#include "cluster_vectors.h"

#include <math.h>
#include <string.h>

#include "hash.h"

enum {
  LANES = 8,       /* dimensions are a multiple of it */
  MORE_DIMS = 20,  /* than parts */
  ITERATIONS = 14, /* of what makes a matrix orthogonal */
  SETTLING = 60,   /* rounds in which multipliers stay as they are */
  FEW_PARTS = 16,  /* steps are smaller where there are more */
  FIRST_LOOK = 40, /* rounds before what is about proved is looked at */
  NEXT_LOOK = 20
};
#define ROW_STEP 0.06F  /* of multipliers of rows, over the square of what a part may weigh */
#define WIDE_STEP 0.07F /* the same of matrices, over that itself */
#define MOST_RISE 0.8   /* of what is known early, what comes of it may be more */
#define KEPT 0.3F       /* of a step stays for the next rounds */

typedef struct vectors {
  const psplit_i_pairs *pairs;
  uint32_t n, r;
  float *v, *was;                 /* [n x r] */
  float *weight, *cost;           /* [n], [off[n]] half of a pair's */
  float *degree;                  /* [n] sum of those */
  float *kept, *row;              /* [n] multipliers */
  float *price;                   /* [n] */
  float *sum, *row_sum;           /* [r] of weight times vector, of row times vector */
  float *wide_kept, *wide, *gram; /* [r x r] */
  float *a, *b, *c;               /* [r x r] scratch */
  float *way;                     /* [r] */
  float most, scale;              /* scale: the mean of degrees */
  float gentle;                   /* 1, or less where there are many parts */
} vectors;

uint32_t psplit_i_vector_dims(uint32_t n, uint32_t n_parts) {
  const uint32_t least = n_parts + MORE_DIMS < n ? n_parts + MORE_DIMS : n;
  return (least + LANES - 1) / LANES * LANES;
}

uint64_t psplit_i_vector_ops(const psplit_i_pairs *pairs, uint32_t n_dims) {
  const uint64_t n = pairs->n, r = n_dims;
  return (pairs->off[n] * r + 4 * n * r * r + 4 * ITERATIONS * r * r * r) / 48;
}

static float dot(const float *a, const float *b, uint32_t n) {
  float part[LANES] = {0};
  float sum = 0;
  for (uint32_t k = 0; k < n; k += LANES)
    for (uint32_t l = 0; l < LANES; l++) part[l] += a[k + l] * b[k + l];
  for (uint32_t l = 0; l < LANES; l++) sum += part[l];
  return sum;
}

static void add(float *to, float times, const float *what, uint32_t n) {
  for (uint32_t k = 0; k < n; k++) to[k] += times * what[k];
}

/* out = a b; out = a' b. [r x r], out is neither. */
static void multiply(const float *a, const float *b, uint32_t r, float *out) {
  memset(out, 0, (size_t)r * r * sizeof *out);
  for (uint32_t i = 0; i < r; i++)
    for (uint32_t k = 0; k < r; k++)
      add(out + (size_t)i * r, a[(size_t)i * r + k], b + (size_t)k * r, r);
}

static void multiply_turned(const float *a, const float *b, uint32_t r, float *out) {
  memset(out, 0, (size_t)r * r * sizeof *out);
  for (uint32_t k = 0; k < r; k++)
    for (uint32_t i = 0; i < r; i++)
      add(out + (size_t)i * r, a[(size_t)k * r + i], b + (size_t)k * r, r);
}

/* a becomes about the orthogonal matrix next to it: of a symmetric one that is its sign. Small
 * singular values stay below 1. */
static void make_orthogonal(vectors *s, float *a) {
  const uint32_t r = s->r;
  const size_t cells = (size_t)r * r;
  double squares = 1e-30;
  for (size_t k = 0; k < cells; k++) squares += (double)a[k] * (double)a[k];
  const float first = (float)(1 / sqrt(squares));
  for (size_t k = 0; k < cells; k++) a[k] *= first;
  for (int i = 0; i < ITERATIONS; i++) {
    multiply_turned(a, a, r, s->b);
    multiply(a, s->b, r, s->c);
    for (size_t k = 0; k < cells; k++) a[k] = 1.5F * a[k] - 0.5F * s->c[k];
  }
}

/* Multipliers of the rows, from what parts weigh. */
static void step_rows(vectors *s) {
  const uint32_t n = s->n, r = s->r;
  const float step = ROW_STEP * s->gentle * s->scale / (s->most * s->most);
  memset(s->sum, 0, r * sizeof *s->sum);
  memset(s->row_sum, 0, r * sizeof *s->row_sum);
  for (uint32_t i = 0; i < n; i++) add(s->sum, s->weight[i], s->v + (size_t)i * r, r);
  for (uint32_t i = 0; i < n; i++) {
    const float more = dot(s->v + (size_t)i * r, s->sum, r) - s->most;
    s->kept[i] = fmaxf(s->kept[i] + KEPT * step * more, 0);
    s->row[i] = fmaxf(s->kept[i] + step * more, 0);
    add(s->row_sum, s->row[i], s->v + (size_t)i * r, r);
  }
}

/* out = x' U y. */
static void weigh(const vectors *s, const float *x, const float *y, float *out) {
  const uint32_t r = s->r;
  memset(out, 0, (size_t)r * r * sizeof *out);
  for (uint32_t i = 0; i < s->n; i++)
    for (uint32_t k = 0; k < r; k++)
      add(out + (size_t)k * r, s->weight[i] * x[(size_t)i * r + k], y + (size_t)i * r, r);
}

/* The matrix of multipliers, from V' U V: the part of it without negative eigenvalues. */
static void step_wide(vectors *s) {
  const uint32_t r = s->r;
  const float step = WIDE_STEP * sqrtf(s->gentle) * s->scale / s->most;
  weigh(s, s->v, s->v, s->gram);
  for (uint32_t i = 0; i < r; i++)
    for (uint32_t k = 0; k < r; k++) {
      const float more = s->gram[(size_t)i * r + k] - (i == k ? s->most : 0);
      s->wide[(size_t)i * r + k] = s->wide_kept[(size_t)i * r + k] + step * more;
    }
  memcpy(s->a, s->wide, (size_t)r * r * sizeof *s->a);
  make_orthogonal(s, s->a);
  multiply(s->wide, s->a, r, s->b);
  for (uint32_t i = 0; i < r; i++)
    for (uint32_t k = 0; k <= i; k++) {
      const size_t ik = (size_t)i * r + k, ki = (size_t)k * r + i;
      const float half = 0.25F * (s->wide[ik] + s->wide[ki] + s->b[ik] + s->b[ki]);
      s->c[ik] = s->c[ki] = half;
    }
  for (size_t k = 0; k < (size_t)r * r; k++) {
    s->wide[k] = s->c[k];
    s->wide_kept[k] += KEPT * (s->wide[k] - s->wide_kept[k]);
  }
}

/* At least the largest eigenvalue of the matrix, and not much more. */
static float largest(const vectors *s) {
  double squares = 0, trace = 0;
  for (size_t k = 0; k < (size_t)s->r * s->r; k++)
    squares += (double)s->wide[k] * (double)s->wide[k];
  for (uint32_t i = 0; i < s->r; i++) trace += (double)s->wide[(size_t)i * s->r + i];
  const double root = sqrt(squares);
  return (float)(root < trace ? root : trace);
}

/* What other vectors and the multipliers of rows are to cluster i, less `more` times its own. */
static void find_way(vectors *s, uint32_t i, float more) {
  const psplit_i_pairs *p = s->pairs;
  const uint32_t r = s->r;
  const float *v = s->v + (size_t)i * r, w = s->weight[i], row = s->row[i];
  for (uint32_t k = 0; k < r; k++)
    s->way[k] = 0.5F * (row * s->sum[k] + w * s->row_sum[k]) - (row * w + more) * v[k];
  for (uint32_t l = p->off[i]; l < p->off[i + 1]; l++)
    add(s->way, -s->cost[l], s->v + (size_t)p->to[l] * r, r);
}

/* Cluster i's vector goes the other way; what is best for it then is its price. */
static void go(vectors *s, uint32_t i, float more) {
  const uint32_t r = s->r;
  float *v = s->v + (size_t)i * r;
  const float length = sqrtf(dot(s->way, s->way, r));
  s->price[i] = s->degree[i] + s->row[i] * s->weight[i] + more - length;
  if (!(length > 0)) return;
  for (uint32_t k = 0; k < r; k++) {
    const float next = -s->way[k] / length, by = next - v[k];
    s->way[k] = by;
    s->sum[k] += s->weight[i] * by;
    s->row_sum[k] += s->row[i] * by;
    v[k] = next;
  }
}

/* Each vector in turn. */
static void mix(vectors *s) {
  const uint32_t r = s->r;
  const float most_wide = largest(s);
  for (uint32_t i = 0; i < s->n; i++) {
    const float *v = s->v + (size_t)i * r, w = s->weight[i];
    find_way(s, i, most_wide * w);
    for (uint32_t k = 0; k < r; k++) add(s->way, w * v[k], s->wide + (size_t)k * r, r);
    go(s, i, most_wide * w);
  }
}

/* Turns all vectors back to what they were as nearly as can be. */
static void turn_back(vectors *s) {
  const uint32_t r = s->r;
  weigh(s, s->v, s->was, s->a);
  for (uint32_t k = 0; k < r; k++) s->a[(size_t)k * r + k] += 0.02F * s->most;
  make_orthogonal(s, s->a);
  for (uint32_t i = 0; i < s->n; i++) {
    float *v = s->v + (size_t)i * r;
    memset(s->way, 0, r * sizeof *s->way);
    for (uint32_t k = 0; k < r; k++) add(s->way, v[k], s->a + (size_t)k * r, r);
    const float length = sqrtf(dot(s->way, s->way, r));
    if (length > 0)
      for (uint32_t k = 0; k < r; k++) v[k] = s->way[k] / length;
  }
}

static bool vectors_init(vectors *s, psplit_i_arena *arena) {
  const psplit_i_pairs *p = s->pairs;
  const size_t n = p->n, r = s->r;
  float **of_clusters[] = {&s->weight, &s->degree, &s->kept, &s->row, &s->price};
  float **square[] = {&s->wide_kept, &s->wide, &s->gram, &s->a, &s->b, &s->c};
  for (size_t k = 0; k < sizeof of_clusters / sizeof *of_clusters; k++)
    *of_clusters[k] = PSPLIT_NEW(arena, float, n);
  for (size_t k = 0; k < sizeof square / sizeof *square; k++)
    *square[k] = PSPLIT_NEW(arena, float, r *r);
  s->v = PSPLIT_NEW(arena, float, n *r);
  s->was = PSPLIT_NEW(arena, float, n *r);
  s->cost = PSPLIT_NEW(arena, float, p->off[n]);
  s->sum = PSPLIT_NEW(arena, float, 3 * r);
  if (arena->failed) return false;
  s->row_sum = s->sum + r;
  s->way = s->row_sum + r;
  s->most = (float)p->most;
  const uint32_t n_parts = s->r > MORE_DIMS ? s->r - MORE_DIMS : 1;
  s->gentle = n_parts > FEW_PARTS ? (float)FEW_PARTS / (float)n_parts : 1;
  for (uint32_t i = 0; i < n; i++) {
    s->weight[i] = (float)p->weight[i];
    for (uint32_t l = p->off[i]; l < p->off[i + 1]; l++) {
      s->cost[l] = (float)(p->cost[l] / 2);
      s->degree[i] += s->cost[l];
    }
    s->scale += s->degree[i] / (float)n;
    for (uint32_t k = 0; k < r; k++)
      s->v[i * r + k] = (float)(psplit_i_splitmix64(i, k) >> 40) * 0x1p-24F - 0.5F;
    const float length = sqrtf(dot(s->v + i * r, s->v + i * r, (uint32_t)r));
    for (uint32_t k = 0; k < r; k++) s->v[i * r + k] /= length;
  }
  return true;
}

/* About what the multipliers prove. */
static double dual(const vectors *s) {
  double sum = 0;
  for (uint32_t i = 0; i < s->n; i++) sum += (double)s->price[i] - (double)(s->row[i] * s->most);
  for (uint32_t k = 0; k < s->r; k++) sum -= (double)(s->wide[(size_t)k * s->r + k] * s->most);
  return sum;
}

/* What the vectors themselves take: about the most that there is to prove. */
static double primal(const vectors *s) {
  double sum = 0;
  for (uint32_t i = 0; i < s->n; i++)
    for (uint32_t l = s->pairs->off[i]; l < s->pairs->off[i + 1]; l++) {
      const float *v = s->v + (size_t)i * s->r, *o = s->v + (size_t)s->pairs->to[l] * s->r;
      sum += (double)s->cost[l] * (1 - (double)dot(v, o, s->r));
    }
  return sum;
}

/* A factor of wide / most on the lower triangle of s->a, about: columns that it lacks are 0. */
static void find_factor(vectors *s) {
  const uint32_t r = s->r;
  float *l = s->a;
  memset(l, 0, (size_t)r * r * sizeof *l);
  for (uint32_t j = 0; j < r; j++)
    for (uint32_t i = j; i < r; i++) {
      float left = s->wide[(size_t)i * r + j] / s->most;
      for (uint32_t k = 0; k < j; k++) left -= l[(size_t)i * r + k] * l[(size_t)j * r + k];
      const float pivot = l[(size_t)j * r + j];
      if (i == j)
        l[(size_t)j * r + j] = left > 1e-7F * s->scale / s->most ? sqrtf(left) : 0;
      else
        l[(size_t)i * r + j] = pivot > 0 ? left / pivot : 0;
    }
}

/* Vectors and prices that belong to the multipliers as they are, which stay. */
static void settle(vectors *s, const float *wide) {
  const uint32_t r = s->r;
  float *by = s->a; /* wide' V */
  for (int round = 0; round < SETTLING; round++) {
    memset(s->sum, 0, 2 * r * sizeof *s->sum);
    memset(by, 0, (size_t)r * r * sizeof *by);
    for (uint32_t i = 0; i < s->n; i++) {
      const float *v = s->v + (size_t)i * r, *f = wide + (size_t)i * r;
      add(s->sum, s->weight[i], v, r);
      add(s->row_sum, s->row[i], v, r);
      for (uint32_t k = 0; k < r; k++) add(by + (size_t)k * r, f[k], v, r);
    }
    for (uint32_t i = 0; i < s->n; i++) {
      const float *f = wide + (size_t)i * r;
      const float square = dot(f, f, r);
      find_way(s, i, square);
      for (uint32_t k = 0; k < r; k++) add(s->way, f[k], by + (size_t)k * r, r);
      go(s, i, square);
      for (uint32_t k = 0; k < r; k++) add(by + (size_t)k * r, f[k], s->way, r);
    }
  }
}

static psplit_code give(vectors *s, psplit_i_arena *arena, psplit_i_multipliers *out) {
  const uint32_t n = s->n, r = s->r;
  out->n_dims = r;
  out->price = PSPLIT_NEW(arena, double, n);
  out->row = PSPLIT_NEW(arena, double, n);
  out->wide = PSPLIT_NEW(arena, double, (size_t)n *r);
  if (arena->failed) return PSPLIT_NOMEM;
  find_factor(s);
  float *wide = s->was;
  for (uint32_t i = 0; i < n; i++) {
    memset(s->way, 0, r * sizeof *s->way);
    for (uint32_t k = 0; k < r; k++) add(s->way, s->v[(size_t)i * r + k], s->a + (size_t)k * r, r);
    for (uint32_t k = 0; k < r; k++) wide[(size_t)i * r + k] = s->weight[i] * s->way[k];
  }
  settle(s, wide);
  for (uint32_t i = 0; i < n; i++) {
    out->price[i] = (double)s->price[i];
    out->row[i] = (double)s->row[i];
    for (uint32_t k = 0; k < r; k++) out->wide[(size_t)i * r + k] = (double)wide[(size_t)i * r + k];
  }
  return PSPLIT_OK;
}

psplit_code psplit_i_cluster_vectors(const psplit_i_pairs *pairs, uint32_t n_dims,
                                     uint32_t n_rounds, double least, psplit_i_budget *budget,
                                     psplit_i_arena *arena, psplit_i_multipliers *out) {
  vectors s = {.pairs = pairs, .n = pairs->n, .r = n_dims};
  *out = (psplit_i_multipliers){0};
  if (!vectors_init(&s, arena)) return PSPLIT_NOMEM;
  const size_t bytes = (size_t)s.n * s.r * sizeof *s.v;
  for (uint32_t k = 1; k <= n_rounds; k++) {
    if (!psplit_i_spend(budget, psplit_i_vector_ops(pairs, n_dims))) return PSPLIT_OK;
    step_rows(&s);
    step_wide(&s);
    memcpy(s.was, s.v, bytes);
    mix(&s);
    turn_back(&s);
    if (k >= FIRST_LOOK && k % NEXT_LOOK == 0 && primal(&s) < MOST_RISE * least) return PSPLIT_OK;
  }
  out->about = dual(&s);
  return give(&s, arena, out);
}
