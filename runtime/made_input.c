#include "made_input.h"

#include <math.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>

#include "casts.h"
#include "name_list.h"

enum { F32 = 1, U8, I8, U16, I16, I32, I64, STRING, BOOL, F16, F64, U32, U64, C64, C128, BF16 };

static double unit(uint64_t bits) { return (double)(bits >> 11) * 0x1p-53; }

bool psplit_i_made_is_small(int32_t data_type) {
  return data_type == U16 || data_type == I16 || data_type == U32 || data_type == I32 ||
         data_type == U64 || data_type == I64;
}

psplit_code psplit_i_tensor_fill_random(psplit_i_tensor *tensor, uint64_t seed, const char *name,
                                        uint32_t micro_batch, psplit_diag *diag) {
  psplit_i_tensor_view view;
  psplit_code code = psplit_i_tensor_look(tensor, diag, &view);
  if (code != PSPLIT_OK) return code;
  const uint64_t stream =
    psplit_i_splitmix64(psplit_i_hash_bytes(name, strlen(name), seed), micro_batch);
  const uint32_t bits = psplit_i_element_bits(view.data_type);
  const int32_t type = view.data_type;
  const bool complex = type == C64 || type == C128;
  /* What is smaller than a byte, or has no type in C, is bytes here. */
  const uint64_t n = complex            ? 2 * view.n_elements
                     : bits && bits < 8 ? view.n_bytes
                                        : view.n_elements;
  for (uint64_t i = 0; i < n && code == PSPLIT_OK; i++) {
    const uint64_t r = psplit_i_splitmix64(stream, i), small = r % PSPLIT_I_MADE_BELOW;
    const uint32_t sign = (uint32_t)(r & 1) << 15;
    switch (type) {
      case F32:
      case C64: ((float *)view.data)[i] = (float)((double)(r >> 40) * 0x1p-23 - 1); break;
      case F64:
      case C128: ((double *)view.data)[i] = 2 * unit(r) - 1; break;
      /* Of 16-bit floats: +-[0.125, 1). */
      case F16:
        ((uint16_t *)view.data)[i] = (uint16_t)(sign | (0x3000 + (r >> 32) % 0x0c00));
        break;
      case BF16:
        ((uint16_t *)view.data)[i] = (uint16_t)(sign | (0x3e00 + (r >> 32) % 0x0180));
        break;
      case BOOL: ((uint8_t *)view.data)[i] = (uint8_t)(r >> 63); break;
      case U16:
      case I16: ((uint16_t *)view.data)[i] = (uint16_t)small; break;
      case U32:
      case I32: ((uint32_t *)view.data)[i] = (uint32_t)small; break;
      case U64:
      case I64: ((uint64_t *)view.data)[i] = small; break;
      case U8:
      case I8: ((uint8_t *)view.data)[i] = (uint8_t)(r >> 56); break;
      case STRING: {
        char text[8];
        const int length = snprintf(text, sizeof text, "s%d", (int)small);
        code = psplit_i_tensor_set_string(tensor, (size_t)i, text, (size_t)length, diag);
        break;
      }
      default: /* 8-bit floats stay finite with the sign and the top of the exponent clear */
        ((uint8_t *)view.data)[i] = (uint8_t)(bits == 8 ? (r >> 56) & 0x3f : r >> 56);
    }
  }
  return code;
}

static bool begins_with(const char *name, const char *start) {
  return strncasecmp(name, start, strlen(start)) == 0;
}

/* Names by which exporters (optimum, ONNX Runtime's model builder, Paddle, ESPnet, those of BERT)
 * call what says how long a sequence is, or where in it and in which of two a token stands. */
enum { MASK, POSITIONS, LENGTH, TOTAL, LAST, TYPES };
static const struct {
  const char *end; /* of the name */
  int what;
} NAMED[] = {
  {"mask", MASK},
  {"position_ids", POSITIONS},
  {"cache_position", POSITIONS},
  {"type_ids", TYPES},
  {"segment_ids", TYPES},
  {"seqlens_k", LAST},
  {"total_sequence_length", TOTAL},
  {"total_seq_len", TOTAL},
  {"lengths", LENGTH},
  {"length", LENGTH},
  {"_lens", LENGTH},
  {"_len", LENGTH},
};

static int named(const char *name) {
  for (size_t i = 0; i < sizeof NAMED / sizeof NAMED[0]; i++)
    if (psplit_i_name_ends(name, NAMED[i].end)) return NAMED[i].what;
  return -1;
}

void psplit_i_sequence_sizes_look(psplit_i_sequence_sizes *sizes, const char *name,
                                  const int64_t *dims, size_t n_dims) {
  const bool cache = begins_with(name, "past");
  if (cache && n_dims >= 3 && !sizes->past && !strstr(name, "encoder") && dims[n_dims - 2] > 0)
    sizes->past = dims[n_dims - 2]; /* ..., positions, numbers of a head */
  if (cache || named(name) >= 0 || n_dims < 2 || dims[1] <= 0) return;
  if (!sizes->tokens || psplit_i_name_ends(name, "input_ids")) sizes->tokens = dims[1];
}

static psplit_i_made range_of(double value) {
  return (psplit_i_made){.how = PSPLIT_I_MADE_RANGE, .low = value, .high = value};
}

psplit_i_made psplit_i_made_by_name(const char *name, const psplit_i_sequence_sizes *sizes) {
  const double past = (double)sizes->past, total = (double)(sizes->past + sizes->tokens);
  const double tokens = (double)sizes->tokens;
  switch (named(name)) {
    case MASK: return range_of(1);
    case TYPES: return range_of(0); /* the one that all models have */
    case POSITIONS:
      return (psplit_i_made){.how = PSPLIT_I_MADE_POSITIONS, .low = past, .high = past};
    case LENGTH:
      if (sizes->tokens) return range_of(tokens);
      break;
    case TOTAL:
      if (sizes->tokens) return range_of(total);
      break;
    case LAST:
      if (sizes->tokens) return range_of(total - 1);
      break;
    default: break;
  }
  return (psplit_i_made){.how = PSPLIT_I_MADE_RANDOM};
}

static void fill_range(const psplit_i_made *made, const psplit_i_tensor_view *view,
                       uint64_t stream) {
  const bool real = psplit_i_element_is_float(view->data_type);
  const double width = made->high - made->low;
  const uint64_t n_whole = real || width >= 0x1p63 ? 0 : (uint64_t)width + 1;
  for (uint64_t i = 0; i < view->n_elements; i++) {
    const uint64_t r = psplit_i_splitmix64(stream, i);
    const double above = n_whole ? (double)(r % n_whole) : unit(r) * width;
    psplit_i_tensor_set_number(view, i, made->low + (real ? above : floor(above)));
  }
}

static void fill_positions(const psplit_i_made *made, const psplit_i_tensor_view *view) {
  const uint64_t row = view->n_dims ? (uint64_t)view->dims[view->n_dims - 1] : 1;
  for (uint64_t i = 0; i < view->n_elements; i++)
    psplit_i_tensor_set_number(view, i, made->low + (double)(i % row));
}

psplit_code psplit_i_made_fill(const psplit_i_made *made, psplit_i_tensor *tensor, uint64_t seed,
                               const char *name, uint32_t micro_batch, psplit_diag *diag) {
  const uint64_t stream =
    psplit_i_splitmix64(psplit_i_hash_bytes(name, strlen(name), seed), micro_batch);
  psplit_i_tensor_view view;
  psplit_code code = psplit_i_tensor_look(tensor, diag, &view);
  if (code != PSPLIT_OK) return code;
  const int32_t type = view.data_type;
  double high = made->high;
  if (made->how == PSPLIT_I_MADE_POSITIONS && view.n_dims)
    high = made->low + (double)view.dims[view.n_dims - 1];
  const bool fits = psplit_i_element_holds(type, made->low) && psplit_i_element_holds(type, high);
  if (!fits && made->asked)
    return psplit_i_fail(diag, PSPLIT_USAGE, "input %s is of %s, which does not hold %.17g..%.17g",
                         name, psplit_i_element_name(type) ? psplit_i_element_name(type) : "a type",
                         made->low, made->high);
  /* What is only called so is made as any other. */
  if (!fits || made->how == PSPLIT_I_MADE_RANDOM)
    return psplit_i_tensor_fill_random(tensor, seed, name, micro_batch, diag);
  if (made->how == PSPLIT_I_MADE_POSITIONS)
    fill_positions(made, &view);
  else
    fill_range(made, &view, stream);
  return PSPLIT_OK;
}
