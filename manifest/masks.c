/* Masks of random operators: training.masks of pipeline.json. */
#include <string.h>

#include "rows.h"

enum { MOST_TERMS = 64, MOST_FACTORS = 64, MOST_RANK = 64 };

/* [12, "batch", "length"]: the number is 1 where there is none. */
static void read_term(item product, psplit_i_size_term *out) {
  const size_t n = psplit_i_json_length(&product, 1, MOST_FACTORS);
  const char **symbols = NEW(&product, const char *, n);
  out->factor = 1;
  for (size_t i = 0; i < n && !failed(&product); i++) {
    const item factor = psplit_i_json_element(&product, i);
    if (i == 0 && psplit_i_json_is_integer(factor))
      psplit_i_json_i64(factor, INT64_MIN, INT64_MAX, &out->factor);
    else
      psplit_i_json_name(factor, &symbols[out->n_symbols++]);
  }
  out->symbols = symbols;
}

/* A number, a symbol, or a list of products whose sum it is. */
static void read_size(item size, psplit_i_mask_size *out) {
  const size_t n = psplit_i_json_is_array(size) ? psplit_i_json_length(&size, 0, MOST_TERMS) : 1;
  psplit_i_size_term *terms = NEW(&size, psplit_i_size_term, n);
  const char **symbol = NEW(&size, const char *, 1);
  if (failed(&size)) return;
  out->terms = terms;
  out->n_terms = (uint32_t)n;
  if (psplit_i_json_is_array(size)) {
    for (size_t i = 0; i < n && !failed(&size); i++)
      read_term(psplit_i_json_element(&size, i), &terms[i]);
  } else if (psplit_i_json_is_string(size)) {
    psplit_i_json_name(size, symbol);
    terms[0] = (psplit_i_size_term){.factor = 1, .symbols = symbol, .n_symbols = 1};
  } else {
    psplit_i_json_i64(size, 0, INT64_MAX, &terms[0].factor);
  }
}

static void read_mask(item row, uint32_t n_stages, psplit_i_mask_row *out) {
  static const char *const kinds[] = {"keep", "uniform", "normal"};
  static const char *const types[] = {"bool", "float32", "float32"};
  const item shape = psplit_i_json_need(&row, "shape"), dtype = psplit_i_json_need(&row, "dtype");
  int64_t number = (int64_t)row.index;
  out->rank = (uint32_t)psplit_i_json_length(&shape, 0, MOST_RANK);
  psplit_i_mask_size *sizes = NEW(&shape, psplit_i_mask_size, out->rank);
  psplit_i_json_i64(psplit_i_json_need(&row, "number"), number, number, &number);
  out->number = (uint32_t)number;
  psplit_i_json_name(psplit_i_json_need(&row, "name"), &out->name);
  psplit_i_json_name(psplit_i_json_need(&row, "tensor"), &out->tensor);
  need_text(&row, "node", &out->node);
  need_index(&row, "stage", n_stages, &out->stage);
  psplit_i_json_choice(psplit_i_json_need(&row, "kind"), kinds, 3, &out->kind);
  psplit_i_json_text(dtype, &out->dtype);
  if (out->dtype && strcmp(out->dtype, types[out->kind]) != 0)
    psplit_i_json_must_be(&dtype, "%s", types[out->kind]);
  if (out->kind == 0) psplit_i_json_real(psplit_i_json_need(&row, "ratio"), 0, 1, &out->ratio);
  for (uint32_t a = 0; a < out->rank && !failed(&row); a++)
    read_size(psplit_i_json_element(&shape, a), &sizes[a]);
  out->shape = sizes;
}

void psplit_i_read_masks(item list, uint32_t n_stages, const psplit_i_mask_row **out,
                         uint32_t *out_n) {
  const uint32_t n = (uint32_t)length(&list);
  psplit_i_mask_row *rows = NEW(&list, psplit_i_mask_row, n);
  for (uint32_t i = 0; i < n && !failed(&list); i++)
    read_mask(psplit_i_json_element(&list, i), n_stages, &rows[i]);
  *out = rows;
  *out_n = n;
}

static bool evaluate(const psplit_i_mask_size *size, psplit_i_symbol_fn find, void *user,
                     const char **io_symbol, int64_t *out) {
  int64_t sum = 0;
  for (uint32_t t = 0; t < size->n_terms; t++) {
    const psplit_i_size_term *term = &size->terms[t];
    int64_t product = term->factor, value;
    for (uint32_t i = 0; i < term->n_symbols; i++) {
      *io_symbol = term->symbols[i];
      if (!find(user, *io_symbol, &value) || __builtin_mul_overflow(product, value, &product))
        return false;
    }
    if (__builtin_add_overflow(sum, product, &sum)) return false;
  }
  *out = sum;
  return sum >= 0;
}

psplit_code psplit_i_mask_sizes(const psplit_i_mask_row *mask, psplit_i_symbol_fn find, void *user,
                                psplit_diag *diag, int64_t *out_shape, int64_t *out_n) {
  int64_t n = 1;
  const char *symbol = NULL;
  for (uint32_t a = 0; a < mask->rank; a++)
    if (!evaluate(&mask->shape[a], find, user, &symbol, &out_shape[a]) ||
        __builtin_mul_overflow(n, out_shape[a], &n))
      return psplit_i_fail(diag, PSPLIT_INVALID,
                           "mask \"%s\": axis %u has no size by what is fed%s%s%s", mask->name, a,
                           symbol ? " (symbol \"" : "", symbol ? symbol : "", symbol ? "\")" : "");
  *out_n = n;
  return PSPLIT_OK;
}
