/* A model that is split by hand. */
#ifndef PSPLIT_TESTS_RICH_H
#define PSPLIT_TESTS_RICH_H

#include <psplit/emit.h>

/* A model with what is easily lost:
 *
 * 0 Mul(x, w) = a                    | b is an output of the model, is sent, and is captured
 * 1 Relu(a) = b                      |
 * 2 If(c) { Add(b, v) } { b } = d    | v is read in a body only
 * 3 Mul(d, w) = e                    | w is tied to node 0
 * 4 Add(e, b) = y                    | b skips a stage */
enum { N_NODES = 5, N_BIG = 300 };

/* Writes model.onnx. */
psplit_model *open_rich(void);
psplit_model *open_model(const char *path);

/* Begun, then added to, then ended. */
typedef struct test_plan {
  psplit_plan plan;
  uint32_t node_stage[16];
  psplit_plan_stage stages[4];
  psplit_plan_copy copies[4];
  psplit_plan_transfer transfers[8];
} test_plan;

/* `where`: the stage of each node as a digit. */
void start_plan(test_plan *p, uint32_t n_stages, const char *where);
void add_transfer(test_plan *p, const psplit_model *model, const char *name, uint32_t from,
                  uint32_t to);
void add_copy(test_plan *p, uint32_t node_id, uint32_t stage);
void end_plan(test_plan *p);
/* Nodes 0, 1 | 2 | 3, 4. */
void rich_plan(test_plan *p, const psplit_model *model);

PSPLIT_MUST_USE psplit_code emit(const psplit_model *model, const test_plan *p,
                                 const char *directory, psplit_boundary boundary,
                                 psplit_weights weights, bool replace, psplit_diag *diag);
void emit_ok(const psplit_model *model, const test_plan *p, const char *directory,
             psplit_boundary boundary, psplit_weights weights);

uint32_t id_of(const psplit_model *model, const char *name);
bool exists(const char *path);

#endif
