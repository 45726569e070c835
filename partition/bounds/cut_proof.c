/* Let x be the indicator of a part S: 1 for its clusters, 0 for others. Let L be the matrix with
 * x' L x half of what pairs cost that are in S with one cluster alone. Over all parts these come to
 * what is cut. With any prices p, rows a >= 0 and a matrix F whose row is 0 where a cluster weighs
 * nothing, let
 *
 *   M = L - diag(p) + (a w' + w a') / 2 + F F'.
 *
 * If M + d I has no negative eigenvalue, then for each part
 *
 *   x' L x >= p(S) - a(S) w(S) - |F' x|^2 - d |S|,
 *
 * and over all parts: w(S) is at most `most`; and |F' x|^2 come to no more than `most` times
 * the sum of |F_i|^2 / w_i, since the indicators times the roots of weights are orthogonal, and the
 * square of each is w(S). So what is cut costs no less than
 *
 *   sum p - most sum a - most sum |F_i|^2 / w_i - d n.
 *
 * Rounding. A Cholesky decomposition that is found in floating point is that of a matrix which
 * differs from M + d I by no more than (n + 2) u times its trace, as a matrix with no larger
 * eigenvalue (Higham, Accuracy and Stability of Numerical Algorithms, theorem 10.3; u = 2^-53, in
 * whatever order sums are taken). The matrix in memory differs from M by no more than some u times
 * what its sums add up, in absolute values; the largest row sum of that bounds its eigenvalues.
 * Both are doubled and added to d. */
#include "cut_proof.h"

#include <float.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

enum {
  STEPS = 60,   /* of Lanczos */
  ATTEMPTS = 6, /* at a d that has no negative eigenvalue */
  BISECTIONS = 50
};
#define LEAST_SHIFT 1e-4 /* of the mean of M's diagonal */
#define SURELY 1e-11     /* relative error of sums over clusters, at most */

typedef struct proof {
  const psplit_i_pairs *pairs;
  const psplit_i_multipliers *by;
  uint32_t n;
  double *m;    /* [n x n] the upper triangle, by rows */
  double error; /* of m: no eigenvalue is farther off */
  double trace;
} proof;

uint64_t psplit_i_cut_proof_ops(uint32_t n, uint32_t n_dims) {
  const uint64_t square = (uint64_t)n * n;
  return square * n / 64 + square * (n_dims + STEPS) / 32;
}

static double dot(const double *a, const double *b, uint32_t n) {
  double even = 0, odd = 0;
  uint32_t k = 0;
  for (; k + 2 <= n; k += 2) even += a[k] * b[k], odd += a[k + 1] * b[k + 1];
  return even + odd + (k < n ? a[k] * b[k] : 0);
}

/* M + d I, with its trace and the most that rounding has changed an eigenvalue. */
static void fill(proof *x, double d) {
  const psplit_i_pairs *p = x->pairs;
  const psplit_i_multipliers *by = x->by;
  const uint32_t n = x->n, r = by->n_dims;
  double rows = 0, weights = 0, lengths = 0;
  for (uint32_t i = 0; i < n; i++) {
    rows += by->row[i];
    weights += p->weight[i];
    lengths += sqrt(dot(by->wide + (size_t)i * r, by->wide + (size_t)i * r, r));
  }
  x->error = x->trace = 0;
  for (uint32_t i = 0; i < n; i++) {
    const double *f = by->wide + (size_t)i * r;
    double *m = x->m + (size_t)i * n;
    for (uint32_t j = i; j < n; j++)
      m[j] = (by->row[i] * p->weight[j] + by->row[j] * p->weight[i]) / 2 +
             dot(f, by->wide + (size_t)j * r, r);
    double degree = 0;
    for (uint32_t l = p->off[i]; l < p->off[i + 1]; l++) {
      if (p->to[l] > i) m[p->to[l]] -= p->cost[l] / 2;
      degree += p->cost[l] / 2;
    }
    m[i] += degree - by->price[i] + d;
    x->trace += fabs(m[i]);
    const double summed = 2 * degree + fabs(by->price[i]) + d +
                          (by->row[i] * weights + p->weight[i] * rows) / 2 +
                          sqrt(dot(f, f, r)) * lengths;
    if (!(summed <= x->error)) x->error = summed;
  }
  const double terms = r + 16 + (double)p->off[n] / 2; /* of a sum, at most */
  x->error *= 2 * terms * DBL_EPSILON;
}

/* y = M x. */
static void apply(const proof *x, const double *v, double *y) {
  const uint32_t n = x->n;
  memset(y, 0, n * sizeof *y);
  for (uint32_t i = 0; i < n; i++) {
    const double *m = x->m + (size_t)i * n;
    y[i] += dot(m + i, v + i, n - i);
    for (uint32_t j = i + 1; j < n; j++) y[j] += m[j] * v[i];
  }
}

/* Whether a tridiagonal matrix has an eigenvalue below. */
static bool has_below(const double *diagonal, const double *beside, uint32_t n, double limit) {
  double d = 1;
  for (uint32_t k = 0; k < n; k++) {
    d = diagonal[k] - limit - (k ? beside[k] * beside[k] / d : 0);
    if (d < 0) return true;
    if (d == 0) d = DBL_MIN;
  }
  return false;
}

/* About the least eigenvalue of M, by Lanczos' method. scratch: [3 n]. */
static double least_eigenvalue(const proof *x, double *scratch) {
  const uint32_t n = x->n;
  double diagonal[STEPS], beside[STEPS + 1] = {0};
  double *v = scratch, *before = v + n, *y = before + n;
  uint32_t k = 0;
  memset(before, 0, n * sizeof *before);
  for (uint32_t i = 0; i < n; i++) v[i] = (i * 7919 % 1009 + 1) / 1009.0 - 0.5;
  const double first = sqrt(dot(v, v, n));
  for (uint32_t i = 0; i < n; i++) v[i] /= first;
  for (; k < STEPS && k < n; k++) {
    apply(x, v, y);
    diagonal[k] = dot(v, y, n);
    for (uint32_t i = 0; i < n; i++) y[i] -= diagonal[k] * v[i] + beside[k] * before[i];
    beside[k + 1] = sqrt(dot(y, y, n));
    if (!(beside[k + 1] > 1e-12 * x->trace)) {
      k++;
      break;
    }
    for (uint32_t i = 0; i < n; i++) {
      before[i] = v[i];
      v[i] = y[i] / beside[k + 1];
    }
  }
  double low = -x->trace - 1, high = x->trace + 1;
  for (int i = 0; i < BISECTIONS; i++) {
    const double middle = low + (high - low) / 2;
    if (has_below(diagonal, beside, k, middle))
      high = middle;
    else
      low = middle;
  }
  return low;
}

/* Cholesky's decomposition in place; false where there is none. */
static bool decompose(proof *x) {
  const uint32_t n = x->n;
  for (uint32_t i = 0; i < n; i++) {
    double *to = x->m + (size_t)i * n;
    uint32_t k = 0;
    for (; k + 4 <= i; k += 4) {
      const double *a = x->m + (size_t)k * n, *b = a + n, *c = b + n, *d = c + n;
      const double ai = a[i], bi = b[i], ci = c[i], di = d[i];
      for (uint32_t j = i; j < n; j++) to[j] -= ai * a[j] + bi * b[j] + ci * c[j] + di * d[j];
    }
    for (; k < i; k++) {
      const double *a = x->m + (size_t)k * n;
      const double ai = a[i];
      for (uint32_t j = i; j < n; j++) to[j] -= ai * a[j];
    }
    if (!(to[i] > 0) || !isfinite(to[i])) return false;
    const double root = sqrt(to[i]);
    to[i] = root;
    for (uint32_t j = i + 1; j < n; j++) to[j] /= root;
  }
  return true;
}

/* sum p - most (sum a + sum |F_i|^2 / w_i), rounded down; a value that is not finite where a row of
 * F is not 0 and its cluster weighs nothing. */
static double sum_up(const proof *x) {
  const psplit_i_pairs *p = x->pairs;
  const psplit_i_multipliers *by = x->by;
  double sum = 0, size = 0;
  for (uint32_t i = 0; i < x->n; i++) {
    const double *f = by->wide + (size_t)i * by->n_dims;
    const double square = dot(f, f, by->n_dims);
    const double paid = p->most * (by->row[i] + (square > 0 ? square / p->weight[i] : 0));
    sum += by->price[i] - paid;
    size += fabs(by->price[i]) + paid;
  }
  return sum - SURELY * size;
}

static bool are_valid(const proof *x) {
  for (uint32_t i = 0; i < x->n; i++)
    if (!(x->by->row[i] >= 0)) return false;
  return true;
}

psplit_code psplit_i_cut_proof(const psplit_i_pairs *pairs, const psplit_i_multipliers *multipliers,
                               psplit_i_budget *budget, double *out_least) {
  const uint32_t n = pairs->n;
  proof x = {.pairs = pairs, .by = multipliers, .n = n};
  *out_least = 0;
  const double sum = sum_up(&x);
  if (!(sum > 0) || !isfinite(sum) || !are_valid(&x)) return PSPLIT_OK;
  x.m = malloc(((size_t)n * n + 3 * (size_t)n) * sizeof *x.m);
  if (!x.m) return PSPLIT_NOMEM;
  fill(&x, 0);
  const double least = least_eigenvalue(&x, x.m + (size_t)n * n);
  double d = (least < 0 ? -1.25 * least : 0) + LEAST_SHIFT * x.trace / n;
  for (int k = 0; k < ATTEMPTS && sum > d * n; k++) {
    if (!psplit_i_spend(budget, psplit_i_cut_proof_ops(n, multipliers->n_dims))) break;
    fill(&x, d);
    const double lost = d + x.error + 2 * (n + 2) * DBL_EPSILON * x.trace;
    if (!decompose(&x)) {
      d *= 2;
      continue;
    }
    const double proved = sum - lost * n * (1 + SURELY);
    *out_least = proved > 0 ? proved * (1 - SURELY) : 0;
    break;
  }
  free(x.m);
  return PSPLIT_OK;
}
