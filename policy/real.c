#include "real.h"

#include <stdint.h>
#include <string.h>

/* 2^k for -1022 <= k <= 1023. */
static double power_of_two(int64_t k) {
  const uint64_t bits = (uint64_t)(k + 1023) << 52;
  double result;
  memcpy(&result, &bits, sizeof result);
  return result;
}

void psplit_i_policy_exp_all(double *io_x, size_t n) {
  static const double kLog2e = 1.4426950408889634, kLn2High = 0.693147180369123816490,
                      kLn2Low = 1.90821492927058770002e-10;
  enum { DEGREE = 13, BLOCK = 32 };
  for (size_t from = 0; from < n; from += BLOCK) {
    double r[BLOCK] = {0}, sum[BLOCK]; /* |r| <= ln 2 / 2 */
    int64_t k[BLOCK] = {0};
    double *x = io_x + from;
    const size_t m = n - from < BLOCK ? n - from : BLOCK;
    for (size_t j = 0; j < m; j++) {
      const double within = x[j] > 700 ? 700 : !(x[j] > -700) ? -700 : x[j];
      const double shifted = within * kLog2e;
      k[j] = (int64_t)(shifted < 0 ? shifted - 0.5 : shifted + 0.5);
      r[j] = (within - (double)k[j] * kLn2High) - (double)k[j] * kLn2Low;
    }
    for (size_t j = 0; j < BLOCK; j++) sum[j] = 1;
    /* Taylor, from the last term on. Divisions take long one behind the other, not side by side. */
    for (int i = DEGREE; i > 0; i--)
      for (size_t j = 0; j < BLOCK; j++) sum[j] = 1 + sum[j] * r[j] / i;
    for (size_t j = 0; j < m; j++) x[j] = sum[j] * power_of_two(k[j]);
  }
}

double psplit_i_policy_exp(double x) {
  static const double kLog2e = 1.4426950408889634, kLn2High = 0.693147180369123816490,
                      kLn2Low = 1.90821492927058770002e-10;
  enum { DEGREE = 13 };
  if (x > 700) x = 700;
  if (!(x > -700)) x = -700;
  const double shifted = x * kLog2e;
  const int64_t k = (int64_t)(shifted < 0 ? shifted - 0.5 : shifted + 0.5);
  const double r = (x - (double)k * kLn2High) - (double)k * kLn2Low; /* |r| <= ln 2 / 2 */
  double sum = 1;
  for (int i = DEGREE; i > 0; i--) sum = 1 + sum * r / i; /* Taylor, from the last term on */
  return sum * power_of_two(k);
}

double psplit_i_policy_log(double x) {
  enum { TERMS = 30 };
  uint64_t bits;
  memcpy(&bits, &x, sizeof bits);
  int64_t k = (int64_t)(bits >> 52 & 0x7ff) - 1023;
  bits = (bits & ((UINT64_C(1) << 52) - 1)) | UINT64_C(1023) << 52;
  double m; /* in [1, 2), then in [0.7, 1.4] */
  memcpy(&m, &bits, sizeof m);
  if (m > 1.4142135623730951) m *= 0.5, k++;
  const double s = (m - 1) / (m + 1), s2 = s * s; /* log m = 2 artanh s */
  double sum = 0;
  for (int i = TERMS; i >= 0; i--) sum = 1.0 / (2 * i + 1) + sum * s2;
  return 2 * s * sum + (double)k * 0.6931471805599453;
}

void psplit_i_rows_add(const psplit_i_real *restrict x, const psplit_i_real *restrict w,
                       size_t n_in, size_t n_out, psplit_i_real *restrict out) {
  for (size_t i = 0; i < n_in; i++) {
    const psplit_i_real a = x[i];
    const psplit_i_real *restrict row = w + i * n_out;
    for (size_t j = 0; j < n_out; j++) out[j] += a * row[j];
  }
}

/* Eight partial sums in a fixed order, so that they can stand side by side in vectors. */
void psplit_i_rows_back(const psplit_i_real *restrict d_out, const psplit_i_real *restrict w,
                        size_t n_in, size_t n_out, psplit_i_real *restrict d_in) {
  enum { LANES = 8 };
  for (size_t i = 0; i < n_in; i++) {
    const psplit_i_real *restrict row = w + i * n_out;
    psplit_i_real part[LANES] = {0}, sum = 0;
    size_t j = 0;
    for (; j + LANES <= n_out; j += LANES)
      for (size_t k = 0; k < LANES; k++) part[k] += row[j + k] * d_out[j + k];
    for (; j < n_out; j++) sum += row[j] * d_out[j];
    for (size_t k = 0; k < LANES; k++) sum += part[k];
    d_in[i] += sum;
  }
}

void psplit_i_rows_grad(const psplit_i_real *restrict x, const psplit_i_real *restrict d_out,
                        size_t n_in, size_t n_out, psplit_i_real *restrict d_w) {
  for (size_t i = 0; i < n_in; i++) {
    const psplit_i_real a = x[i];
    psplit_i_real *restrict row = d_w + i * n_out;
    for (size_t j = 0; j < n_out; j++) row[j] += a * d_out[j];
  }
}
