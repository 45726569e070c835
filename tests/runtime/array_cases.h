/* Tensors that tests read from files, and what has to come of it; the test fails if it does not. */
#ifndef PSPLIT_TESTS_ARRAY_CASES_H
#define PSPLIT_TESTS_ARRAY_CASES_H

#include "arrays.h"
#include "made_files.h"
#include "onnx.pb-c.h"

/* ONNX's types by short names. */
enum { F32 = 1, U8, I8, U16, I16, I32, I64, STRING, BOOL, F16, F64, U32, U64, C64, C128, BF16, F8 };
enum { INT4 = 22 };

/* What reading returned, and just these words ("" where it is fine). */
void expect_read(psplit_code code, const psplit_diag *diag, psplit_code wanted, const char *says);
/* The numbers of a tensor, or its strings, as "1 2.5" and "a|b", cut at `size` - 1. */
void print_tensor(const psplit_i_tensor *tensor, char *out, size_t size);
/* Without numbers yet; dims[n_dims] stay the caller's. */
Onnx__TensorProto shaped_proto(int32_t type, int64_t *dims, size_t n_dims);
/* A .pb file of it. */
made_bytes packed_proto(const Onnx__TensorProto *proto);
/* Reads such a file named "f" for an input of type `wanted`; *out is the caller's, or NULL. */
PSPLIT_MUST_USE psplit_code read_proto(const Onnx__TensorProto *proto, int32_t wanted,
                                       bool safe_casts, psplit_diag *diag, psplit_i_tensor **out);

#endif
