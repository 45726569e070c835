/* Rules: ai.onnx.ml, as converters of scikit-learn and of trees write it. */
#include <string.h>

#include "checked.h"
#include "infer.h"

enum { FLOAT = 1, INT64 = 7, STRING = 8 };

/* Rows of input 0, where a list is one row. */
static psplit_dim rows_of(psplit_i_site *at) {
  const int32_t rank = psplit_i_rank(at, 0);
  return rank == 2   ? psplit_i_dim_of(at, 0, 0)
         : rank == 1 ? psplit_i_dim_const(at->dims, 1)
                     : psplit_i_dim_fresh(at->dims);
}

/* A size of its own next to these rows. */
static void rows_and(psplit_i_site *at, uint32_t output, int32_t elem, psplit_dim columns) {
  const psplit_dim dims[2] = {rows_of(at), columns};
  psplit_i_out(at, output, elem, 2, dims);
}

/* ai.onnx.ml regressors: [rows, targets]. */
static void targets_of(psplit_i_site *at, int32_t elem) {
  const int64_t targets = psplit_i_int(at, "targets", psplit_i_int(at, "n_targets", 1));
  rows_and(at, 0, elem, psplit_i_number_or_fresh(at, targets));
}
void psplit_i_infer_ml_regressor(psplit_i_site *at) { targets_of(at, FLOAT); }

/* The newer operator gives what it is given. */
void psplit_i_infer_ml_trees(psplit_i_site *at) { targets_of(at, psplit_i_elem(at, 0)); }

/* A label for each row, of which there are *out_n; the scores are the caller's. */
static void label_rows(psplit_i_site *at, size_t *out_n) {
  const Onnx__AttributeProto *words = psplit_i_attribute(at, "classlabels_strings");
  const Onnx__AttributeProto *numbers = psplit_i_attribute(at, "classlabels_ints");
  const Onnx__AttributeProto *other = psplit_i_attribute(at, "classlabels_int64s");
  if (!numbers) numbers = other;
  const bool text = words && words->n_strings > 0;
  const psplit_dim rows = rows_of(at);
  psplit_i_out(at, 0, text ? STRING : INT64, 1, &rows);
  *out_n = text ? words->n_strings : numbers ? numbers->n_ints : 0;
}

/* Of trees: a score for each label. */
void psplit_i_infer_ml_classifier(psplit_i_site *at) {
  size_t n;
  label_rows(at, &n);
  rows_and(at, 1, FLOAT, psplit_i_number_or_fresh(at, (int64_t)n));
}

/* A score for each intercept; one is enough to tell two labels apart. */
void psplit_i_infer_ml_linear_classifier(psplit_i_site *at) {
  const Onnx__AttributeProto *intercepts = psplit_i_attribute(at, "intercepts");
  size_t n;
  label_rows(at, &n);
  if (intercepts && intercepts->n_floats && !(intercepts->n_floats == 1 && n == 2))
    n = intercepts->n_floats;
  rows_and(at, 1, FLOAT, psplit_i_number_or_fresh(at, (int64_t)n));
}

/* With vectors and without probabilities, of three labels or more: a score for each pair. */
void psplit_i_infer_ml_svm_classifier(psplit_i_site *at) {
  const Onnx__AttributeProto *probabilities = psplit_i_attribute(at, "prob_a");
  size_t n, n_vectors;
  label_rows(at, &n);
  const int64_t *vectors = psplit_i_int_list(at, "vectors_per_class", &n_vectors);
  const bool pairs = vectors && n_vectors && !(probabilities && probabilities->n_floats);
  uint64_t scores = n;
  if (pairs && n > 2 && !psplit_i_mul_u64(n, n - 1, &scores)) scores = 0;
  if (pairs && n > 2) scores /= 2;
  rows_and(at, 1, FLOAT, psplit_i_number_or_fresh(at, scores > INT64_MAX ? 0 : (int64_t)scores));
}

void psplit_i_infer_ml_float_like(psplit_i_site *at) { psplit_i_out_like(at, 0, 0, FLOAT); }

/* What strings are mapped to, and numbers. */
static int32_t other_label(const psplit_i_site *at) {
  return psplit_i_elem(at, 0) == STRING ? INT64 : STRING;
}

/* Labels to labels: the type is that of the values given. */
void psplit_i_infer_ml_label_encoder(psplit_i_site *at) {
  int32_t elem = 0;
  const Onnx__AttributeProto *tensor = psplit_i_attribute(at, "values_tensor");
  if (psplit_i_attribute(at, "values_strings"))
    elem = STRING;
  else if (psplit_i_attribute(at, "values_int64s"))
    elem = INT64;
  else if (psplit_i_attribute(at, "values_floats"))
    elem = FLOAT;
  else if (tensor && tensor->t)
    elem = psplit_i_tensor_of(tensor->t).data_type;
  else if (psplit_i_attribute(at, "classes_strings"))
    elem = other_label(at);
  psplit_i_out_like(at, 0, 0, elem);
}

/* Strings to the numbers of their categories, and back. */
void psplit_i_infer_ml_category_mapper(psplit_i_site *at) {
  psplit_i_out_like(at, 0, 0, other_label(at));
}

/* One more axis, of the number of categories. */
void psplit_i_infer_ml_one_hot(psplit_i_site *at) {
  const psplit_i_vtype *data = psplit_i_in(at, 0);
  const Onnx__AttributeProto *numbers = psplit_i_attribute(at, "cats_int64s");
  const Onnx__AttributeProto *words = psplit_i_attribute(at, "cats_strings");
  const size_t n = numbers && numbers->n_ints ? numbers->n_ints : words ? words->n_strings : 0;
  psplit_dim dims[PSPLIT_MAX_RANK];
  const bool known = data->rank >= 0 && data->rank < PSPLIT_MAX_RANK;
  if (known && data->rank) memcpy(dims, data->dims, (size_t)data->rank * sizeof *dims);
  if (known) dims[data->rank] = psplit_i_number_or_fresh(at, (int64_t)n);
  psplit_i_out(at, 0, FLOAT, known ? data->rank + 1 : -1, dims);
}

/* Columns picked by index, whose shape does not count: as many as there are indices. */
void psplit_i_infer_ml_feature_extractor(psplit_i_site *at) {
  const psplit_i_vtype *data = psplit_i_in(at, 0), *picked = psplit_i_in(at, 1);
  psplit_dim dims[PSPLIT_MAX_RANK];
  if (data->rank < 1 || picked->rank < 0) {
    psplit_i_out(at, 0, data->elem, -1, NULL);
    return;
  }
  const psplit_dim one = psplit_i_dim_const(at->dims, 1);
  psplit_dim n = one;
  for (int32_t i = 0; i < picked->rank; i++) n = psplit_i_dim_mul(at->dims, n, picked->dims[i]);
  const int32_t rank = data->rank == 1 ? 2 : data->rank;
  dims[0] = one; /* a row of values makes a matrix of one row */
  if (data->rank > 1) memcpy(dims, data->dims, (size_t)data->rank * sizeof *dims);
  dims[rank - 1] = n;
  psplit_i_out(at, 0, data->elem, rank, dims);
}

/* Maps: nothing to say about sizes. */
void psplit_i_infer_ml_map(psplit_i_site *at) { (void)at; }

/* Type that `cast_to` names. */
void psplit_i_infer_ml_cast_map(psplit_i_site *at) {
  const bool text = psplit_i_text_is(at, "cast_to", "TO_STRING", false);
  const bool whole = psplit_i_text_is(at, "cast_to", "TO_INT64", false);
  psplit_dim dims[2];
  psplit_i_fresh_dims(at, 2, dims);
  psplit_i_out(at, 0, text ? STRING : whole ? INT64 : FLOAT, 2, dims);
}

/* Several inputs side by side: [rows, sum of columns]. */
void psplit_i_infer_ml_feature_vectorizer(psplit_i_site *at) {
  size_t n;
  const int64_t *columns = psplit_i_int_list(at, "inputdimensions", &n);
  int64_t total = 0;
  for (size_t i = 0; columns && i < n; i++)
    if (total < 0 || columns[i] < 0 || !psplit_i_add_i64(total, columns[i], &total)) total = -1;
  rows_and(
    at, 0, FLOAT,
    columns && total >= 0 ? psplit_i_dim_const(at->dims, total) : psplit_i_dim_fresh(at->dims));
}
