/* The numbers that the network computes with, and functions of them that give the same bits
 * everywhere: libm's differ from one release to the next. */
#ifndef PSPLIT_POLICY_REAL_H
#define PSPLIT_POLICY_REAL_H

#include <stddef.h>

/* Double for tests that compare gradients with differences. */
#ifdef PSPLIT_POLICY_DOUBLE
typedef double psplit_i_real;
#else
typedef float psplit_i_real;
#endif

/* Within 4e-16 of e^x, relatively, for |x| <= 700; x beyond that counts as that. */
double psplit_i_policy_exp(double x);
/* The same of each of n numbers, to the bit, and several times as fast. */
void psplit_i_policy_exp_all(double *io_x, size_t n);
/* Within 1e-14 of the natural logarithm; x > 0 and normal. */
double psplit_i_policy_log(double x);
static inline psplit_i_real psplit_i_tanh(psplit_i_real x) {
  return (psplit_i_real)(1 - 2 / (psplit_i_policy_exp(2 * (double)x) + 1));
}

/* out[j] += sum over i of x[i] * w[i * n_out + j], rows in their order for every j: vectors of any
 * width compute the same. */
void psplit_i_rows_add(const psplit_i_real *restrict x, const psplit_i_real *restrict w,
                       size_t n_in, size_t n_out, psplit_i_real *restrict out);
/* The same backwards: d_in[i] += sum over j of w[i * n_out + j] * d_out[j]. */
void psplit_i_rows_back(const psplit_i_real *restrict d_out, const psplit_i_real *restrict w,
                        size_t n_in, size_t n_out, psplit_i_real *restrict d_in);
/* And for the weights: d_w[i * n_out + j] += x[i] * d_out[j]. */
void psplit_i_rows_grad(const psplit_i_real *restrict x, const psplit_i_real *restrict d_out,
                        size_t n_in, size_t n_out, psplit_i_real *restrict d_w);

#endif
