/* What is stated of training besides: types, in files and in the manifest, and what is kept. */
#ifndef PSPLIT_VERIFY_DECLARED_H
#define PSPLIT_VERIFY_DECLARED_H

#include "gradient.h"
#include "verify.h"

/* Errors of those that tell whether something is so: NOMEM, those of psplit_i_gradient_put_port
 * and, of an input of the model, of psplit_i_compare. */

/* Whether the output of the file at hand is declared as the model's value, or as a shape of it. */
PSPLIT_MUST_USE psplit_code psplit_i_is_declared(const psplit_i_proof *p, uint32_t position,
                                                 uint32_t value, bool *out);
/* The same of an input, which may be one of the model's. */
PSPLIT_MUST_USE psplit_code psplit_i_is_declared_input(psplit_i_proof *p, uint32_t position,
                                                       bool *out);
PSPLIT_MUST_USE psplit_code psplit_i_is_declared_shape(const psplit_i_proof *p, uint32_t position,
                                                       uint32_t value, bool *out);
/* The node of the file at hand is, byte for byte, what gives the shape of the value. */
PSPLIT_MUST_USE psplit_code psplit_i_is_shape_of(const psplit_i_proof *p, const char *name,
                                                 uint32_t node, uint32_t value, bool *out);

/* Types of weights and stash in the manifest; weights of a stage in the order of the model, none
 * twice. Errors: MISMATCH. */
PSPLIT_MUST_USE psplit_code psplit_i_check_stated(const psplit_i_proof *p);

/* By the manifest's "recompute": what stage p->at keeps is not to be computed again, and the nodes
 * of its file (p->part, where `again`) are. Errors: MISMATCH. */
PSPLIT_MUST_USE psplit_code psplit_i_check_recompute(const psplit_i_proof *p, bool again);

/* The file at hand has the head of a model that gives weights, and no field but theirs. */
PSPLIT_MUST_USE psplit_code psplit_i_is_weights_file(const psplit_i_proof *p, bool *out);

#endif
