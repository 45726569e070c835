/* Proof of what belongs to training. */
#ifndef PSPLIT_VERIFY_TRAINING_H
#define PSPLIT_VERIFY_TRAINING_H

#include "verify.h"

/* That the directory of p->manifest trains p->model: the model is differentiated again, by the
 * rules and not by what wrote the files. Then
 *   stages        are the model with its loss, as in any proof, and give what they are to keep;
 *   backward      files are the backward pass, by the same proof, and each of their inputs is what
 *                 the manifest says;
 *   again         files hold the model's own nodes between values that are kept and wanted;
 *   update        files are the bytes that the optimizer's text makes;
 *   first_weights files hold the model's weights.
 * Errors: as psplit_verify. */
PSPLIT_MUST_USE psplit_code psplit_i_prove_training(psplit_i_proof *p, const char *directory,
                                                    const psplit_verify_options *options);

#endif
