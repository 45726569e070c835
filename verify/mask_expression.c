/* The replacement of a random operator that reads a mask, as specified and as found in the nodes,
 * both as text. */
#include "mask_expression.h"

#include <inttypes.h>
#include <string.h>

#include "gradient.h"
#include "onnx.pb-c.h"

enum { FLOAT = 1 }; /* of TensorProto.DataType */

static void put_constant(const Onnx__TensorProto *tensor, psplit_i_text *out) {
  psplit_i_text_addf(out, "#%d:", tensor ? tensor->data_type : 0);
  for (size_t i = 0; tensor && i < tensor->raw_data.len; i++)
    psplit_i_text_addf(out, "%02x", tensor->raw_data.data[i]);
}

/* What a value is as an expression: the next mask is @, values of the whole model are 'NAME'. */
static void put_value(psplit_i_mask_part *at, uint32_t value, psplit_i_text *out) {
  const psplit_i_graph *graph = at->w->edited;
  const char *name = graph->values[value].name;
  const uint32_t producer = graph->values[value].producer;
  const psplit_i_training_table *table = at->w->table;
  if (producer == PSPLIT_NONE || producer < at->first || producer >= at->first + at->n) {
    const bool is_next = strcmp(table->masks[at->w->mask].tensor, name) == 0;
    psplit_i_text_addf(out, is_next ? "@" : "'%s'", name);
    return;
  }
  const psplit_i_node *node = &graph->nodes[producer];
  int64_t to = 0;
  at->used[producer - at->first] = true;
  psplit_i_text_addf(out, "%s%s", node->domain, node->op_type);
  const bool is_constant = psplit_i_node_is(node, "Constant");
  const bool is_cast = psplit_i_attr_int(node, "to", &to);
  if (is_cast) psplit_i_text_addf(out, "<%" PRId64 ">", to);
  if (node->n_attributes != (size_t)(is_cast || is_constant)) psplit_i_text_puts(out, "<?>");
  psplit_i_text_puts(out, "(");
  if (is_constant) put_constant(psplit_i_attr_tensor(node, "value"), out);
  for (uint32_t i = 0; i < node->n_inputs; i++) {
    if (i) psplit_i_text_puts(out, ",");
    if (node->inputs[i] != PSPLIT_NONE) put_value(at, node->inputs[i], out);
  }
  psplit_i_text_puts(out, ")");
}

static void put_number(psplit_i_text *out, int32_t elem, double value) {
  uint8_t bytes[8];
  const size_t n = psplit_i_number_bytes(elem, value, bytes);
  psplit_i_text_addf(out, "Constant(#%d:", elem);
  for (size_t i = 0; i < n; i++) psplit_i_text_addf(out, "%02x", bytes[i]);
  psplit_i_text_puts(out, ")");
}

/* What is drawn, of the shape of `like`. */
static void put_drawn(psplit_i_text *out, const char *like, bool is_shaped) {
  if (is_shaped)
    psplit_i_text_addf(out, "Reshape(@,Shape('%s'))", like);
  else
    psplit_i_text_puts(out, "@");
}

static void put_expected(const psplit_i_mask_expected *e, const psplit_i_node *node, bool is_shaped,
                         psplit_i_text *out) {
  const bool is_bernoulli = psplit_i_node_is(node, "Bernoulli");
  if (e->kind == PSPLIT_DRAW_KEEP) {
    psplit_i_text_puts(out, "Where(");
    put_drawn(out, e->like, is_shaped);
    psplit_i_text_addf(out, ",Mul('%s',", e->like);
    put_number(out, e->elem, 1 / (1 - e->ratio));
    psplit_i_text_puts(out, "),");
    put_number(out, e->elem, 0);
    psplit_i_text_puts(out, ")");
    return;
  }
  const bool is_cast = is_bernoulli || e->y_elem != FLOAT;
  if (is_cast) psplit_i_text_addf(out, "Cast<%d>(", e->y_elem);
  psplit_i_text_puts(out, is_bernoulli ? "Less(" : "Add(Mul(");
  if (is_bernoulli && e->elem != FLOAT) psplit_i_text_addf(out, "Cast<%d>(", e->elem);
  put_drawn(out, e->like, is_shaped);
  if (is_bernoulli) {
    psplit_i_text_addf(out, "%s,'%s')", e->elem != FLOAT ? ")" : "", e->like);
  } else {
    psplit_i_text_puts(out, ",");
    put_number(out, FLOAT, e->factor);
    psplit_i_text_puts(out, "),");
    put_number(out, FLOAT, e->term);
    psplit_i_text_puts(out, ")");
  }
  if (is_cast) psplit_i_text_puts(out, ")");
}

void psplit_i_mask_expect(const psplit_i_mask_walk *w, const psplit_gradient *gradient,
                          const psplit_i_node *node, psplit_i_mask_expected *out) {
  float low = 0, high = 1, mean = 0, scale = 1;
  int64_t dtype = 0;
  const char *y = w->whole->values[node->outputs[0]].name;
  const uint32_t in_edited = psplit_i_graph_find_value(w->edited, y);
  const char *x = psplit_i_is_given(node, 0) ? w->whole->values[node->inputs[0]].name : NULL;
  const uint32_t x_edited = x ? psplit_i_graph_find_value(w->edited, x) : in_edited;
  out->like = x ? x : "";
  out->elem = psplit_i_shapes_type(gradient->shapes, x_edited)->elem;
  out->y_elem = psplit_i_attr_int(node, "dtype", &dtype) ? (int32_t)dtype : x ? out->elem : FLOAT;
  psplit_i_attr_float(node, "low", &low);
  psplit_i_attr_float(node, "high", &high);
  psplit_i_attr_float(node, "mean", &mean);
  psplit_i_attr_float(node, "scale", &scale);
  const bool is_normal =
    psplit_i_node_is(node, "RandomNormal") || psplit_i_node_is(node, "RandomNormalLike");
  out->kind = psplit_i_node_is(node, "Dropout") ? PSPLIT_DRAW_KEEP
              : is_normal                       ? PSPLIT_DRAW_NORMAL
                                                : PSPLIT_DRAW_UNIFORM;
  out->factor = is_normal ? (double)scale : (double)high - (double)low;
  out->term = is_normal ? (double)mean : (double)low;
}

bool psplit_i_mask_is_expression(psplit_i_mask_part *at, const psplit_i_mask_expected *e,
                                 const psplit_i_node *node, bool is_shaped,
                                 psplit_i_text *scratch) {
  const psplit_i_graph *whole = at->w->whole, *edited = at->w->edited;
  size_t half;
  bool good = true;
  memset(at->used, 0, sizeof at->used);
  scratch->n = 0;
  put_expected(e, node, is_shaped, scratch);
  if (node->n_outputs > 1 && node->outputs[1] != PSPLIT_NONE) {
    psplit_i_text_puts(scratch, ";Identity(");
    put_drawn(scratch, e->like, is_shaped);
    psplit_i_text_puts(scratch, ")");
  }
  half = scratch->n;
  for (uint32_t o = 0; o < node->n_outputs; o++) {
    if (node->outputs[o] == PSPLIT_NONE) continue;
    const uint32_t value = psplit_i_graph_find_value(edited, whole->values[node->outputs[o]].name);
    if (value == PSPLIT_NONE) return false;
    if (o) psplit_i_text_puts(scratch, ";");
    put_value(at, value, scratch);
  }
  for (uint32_t i = 0; i < at->n; i++) good &= at->used[i];
  return good && !scratch->failed && scratch->n == 2 * half &&
         memcmp(scratch->bytes, scratch->bytes + half, half) == 0;
}
