#include "casts.h"

#include <float.h>
#include <math.h>
#include <string.h>

enum { F32 = 1, U8, I8, U16, I16, I32, I64, BOOL = 9, F16, F64, U32, U64, BF16 = 16 };

double psplit_i_tensor_number(const psplit_i_tensor_view *view, uint64_t i) {
  const void *data = view->data;
  switch (view->data_type) {
    case 1: return ((const float *)data)[i];
    case 2: return ((const uint8_t *)data)[i];
    case 9: return ((const uint8_t *)data)[i] != 0;
    case 3: return ((const int8_t *)data)[i];
    case 4: return ((const uint16_t *)data)[i];
    case 5: return ((const int16_t *)data)[i];
    case 6: return ((const int32_t *)data)[i];
    case 7: return (double)((const int64_t *)data)[i];
    case 11: return ((const double *)data)[i];
    case 12: return ((const uint32_t *)data)[i];
    case 13: return (double)((const uint64_t *)data)[i];
    case 10: { /* float16: sign, 5 bits of exponent, 10 of mantissa */
      const uint16_t h = ((const uint16_t *)data)[i];
      const int exponent = h >> 10 & 31, mantissa = h & 1023;
      const double size = exponent == 31  ? (mantissa ? NAN : INFINITY)
                          : exponent == 0 ? ldexp(mantissa, -24)
                                          : ldexp(1024 + mantissa, exponent - 25);
      return h >> 15 ? -size : size;
    }
    case 16: { /* bfloat16: the upper half of a float */
      const uint32_t bits = (uint32_t)((const uint16_t *)data)[i] << 16;
      float value;
      memcpy(&value, &bits, sizeof value);
      return value;
    }
    default: return NAN;
  }
}

typedef struct kind {
  enum { NONE, UNSIGNED, SIGNED, FLOAT } what;
  uint32_t bits; /* of floats: of the mantissa */
} kind;

static kind kind_of(int32_t type) {
  switch (type) {
    case BOOL: return (kind){UNSIGNED, 1};
    case U8:
    case U16:
    case U32:
    case U64: return (kind){UNSIGNED, psplit_i_element_bits(type)};
    case I8:
    case I16:
    case I32:
    case I64: return (kind){SIGNED, psplit_i_element_bits(type)};
    case BF16: return (kind){FLOAT, 8};
    case F16: return (kind){FLOAT, 11};
    case F32: return (kind){FLOAT, 24};
    case F64: return (kind){FLOAT, 53};
    default: return (kind){NONE, 0};
  }
}

bool psplit_i_cast_is_safe(int32_t from, int32_t to) {
  const kind a = kind_of(from), b = kind_of(to);
  if (from == to) return true;
  if (a.what == NONE || b.what == NONE || to == BOOL) return false;
  if (a.what == FLOAT) return b.what == FLOAT && b.bits > a.bits && to != F16;
  if (b.what == a.what || b.what == FLOAT) return b.bits + (a.what == SIGNED) >= a.bits;
  return b.what == SIGNED && b.bits > a.bits;
}

/* Digits that it does not hold are cut off; what is nearly 0 becomes 0, what is too large the
 * largest. */
static uint16_t half(double value) {
  int exponent;
  if (fabs(value) < 0x1p-14) return 0;
  const double part = frexp(fmin(fabs(value), 65504), &exponent); /* 0.5 <= part < 1 */
  return (uint16_t)((value < 0 ? 1u << 15 : 0) | (uint32_t)(exponent + 14) << 10 |
                    (uint32_t)ldexp(part - 0.5, 11));
}

static uint16_t upper_half(double value) {
  const float narrow = (float)value;
  uint32_t bits;
  memcpy(&bits, &narrow, sizeof bits);
  return (uint16_t)(bits >> 16);
}

bool psplit_i_element_is_float(int32_t type) { return kind_of(type).what == FLOAT; }

bool psplit_i_element_holds(int32_t type, double value) {
  const kind to = kind_of(type);
  switch (to.what) {
    case NONE: return false;
    case FLOAT: return fabs(value) <= (type == F16 ? 65504 : type == F64 ? DBL_MAX : FLT_MAX);
    case UNSIGNED: return value == floor(value) && value >= 0 && value < ldexp(1, (int)to.bits);
    default: {
      const double end = ldexp(1, (int)to.bits - 1);
      return value == floor(value) && value >= -end && value < end;
    }
  }
}

void psplit_i_tensor_set_number(const psplit_i_tensor_view *view, uint64_t i, double value) {
  void *data = view->data;
  switch (view->data_type) {
    case F32: ((float *)data)[i] = (float)value; break;
    case F64: ((double *)data)[i] = value; break;
    case F16: ((uint16_t *)data)[i] = half(value); break;
    case BF16: ((uint16_t *)data)[i] = upper_half(value); break;
    case BOOL: ((uint8_t *)data)[i] = value != 0; break;
    case U8: ((uint8_t *)data)[i] = (uint8_t)value; break;
    case U16: ((uint16_t *)data)[i] = (uint16_t)value; break;
    case U32: ((uint32_t *)data)[i] = (uint32_t)value; break;
    case U64: ((uint64_t *)data)[i] = (uint64_t)value; break;
    case I8: ((int8_t *)data)[i] = (int8_t)value; break;
    case I16: ((int16_t *)data)[i] = (int16_t)value; break;
    case I32: ((int32_t *)data)[i] = (int32_t)value; break;
    default: ((int64_t *)data)[i] = (int64_t)value; break;
  }
}

psplit_code psplit_i_tensor_cast(const psplit_i_ort *ort, int32_t data_type, psplit_diag *diag,
                                 psplit_i_tensor **io_tensor) {
  psplit_i_tensor *made;
  psplit_i_tensor_view from, to;
  psplit_code code;
  PSPLIT_TRY(psplit_i_tensor_look(*io_tensor, diag, &from));
  PSPLIT_TRY(psplit_i_tensor_make(ort, data_type, from.dims, from.n_dims, diag, &made, &to));
  /* A double holds all of the types that can be cast. */
  for (uint64_t i = 0; i < from.n_elements; i++)
    psplit_i_tensor_set_number(&to, i, psplit_i_tensor_number(&from, i));
  psplit_i_tensor_release(*io_tensor);
  *io_tensor = made;
out:
  return code;
}
