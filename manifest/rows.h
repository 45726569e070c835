/* Rows that several tables of pipeline.json have, and how they are read. Strings and arrays are in
 * the reader's arena; a failure is the reader's. */
#ifndef PSPLIT_MANIFEST_ROWS_H
#define PSPLIT_MANIFEST_ROWS_H

#include "json_read.h"
#include "manifest.h"

typedef psplit_i_json_item item;

#define NEW(object, type, n) PSPLIT_I_JSON_NEW((object)->reader, type, (n))

static inline size_t length(const item *array) {
  return psplit_i_json_length(array, 0, PSPLIT_NONE - 1);
}

static inline bool failed(const item *at) { return at->reader->code != PSPLIT_OK; }

static inline void need_text(const item *object, const char *key, const char **out) {
  psplit_i_json_text(psplit_i_json_need(object, key), out);
}

static inline void need_index(const item *object, const char *key, uint32_t limit, uint32_t *out) {
  psplit_i_json_u32(psplit_i_json_need(object, key), 0, limit - 1, out);
}

static inline item need_or_null(const item *object, const char *key) {
  return psplit_i_json_unless_null(psplit_i_json_need(object, key));
}

/* The member "file": a plain name. */
void psplit_i_read_file_name(const item *object, const char **out);
void psplit_i_read_shape(item shape, psplit_i_shape *out);
/* Stages are below n_stages. */
void psplit_i_read_transfers(item list, uint32_t n_stages, bool with_bytes,
                             const psplit_i_manifest_transfer **out, uint32_t *out_n);
void psplit_i_read_duplicates(item list, uint32_t n_stages, const psplit_i_duplicate **out,
                              uint32_t *out_n);

/* masks.c */
void psplit_i_read_masks(item list, uint32_t n_stages, const psplit_i_mask_row **out,
                         uint32_t *out_n);

/* training.c: the object "training", of which the files go to m->training_files. */
void psplit_i_read_training(item training, psplit_i_manifest *m);

#endif
