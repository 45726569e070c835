/* What submits prompts and what takes them through the pipeline share: the sequences that come of
 * them, in the lists that they are in. */
#ifndef PSPLIT_GENERATE_SEQUENCES_INSIDE_H
#define PSPLIT_GENERATE_SEQUENCES_INSIDE_H

#include "sequences.h"

/* A prompt and what has come of it. */
typedef struct psplit_i_sequence {
  struct psplit_i_sequence *next; /* in the list that it is in */
  uint64_t id, slot;
  int64_t *tokens; /* [n_tokens] those of the prompt first; room for `capacity` */
  uint64_t n_prompt, n_tokens, capacity;
  uint64_t n_past; /* tokens whose state is kept */
  uint64_t max_new;
  psplit_i_tensor **same; /* [n_needed] inputs that stay the same; NULL: the others */
  char **files;           /* [n_needed] that the prompt names for them; NULL: none, or no others */
  bool encoded;           /* there is nothing to encode, or it is done */
  int64_t asked_ns, admitted_ns, first_ns, last_ns;
  void (*token)(void *user, uint64_t id, uint64_t index, int64_t token);
  void (*end)(void *user, const psplit_generation *generation);
  void *user;
} psplit_i_sequence;

typedef struct psplit_i_sequence_list {
  psplit_i_sequence *first, **end; /* end: where the next one is hung */
  uint32_t n;
} psplit_i_sequence_list;

struct psplit_i_sequences {
  psplit_i_sequences_options options;
  pthread_mutex_t mutex;
  pthread_cond_t changed;
  psplit_i_sequence_list waiting; /* for a slot */
  psplit_i_sequence_list ready;   /* for their next step */
  psplit_i_sequence_list under_way;
  uint64_t *free_slots; /* [n_free] */
  uint32_t n_free;
  bool closed, over;
  uint64_t n_ids;
  psplit_i_feed *feeds; /* [n_needed]; of inputs that stay the same */
  bool *is_fed;         /* [n_needed] */
  bool *is_made;        /* [n_needed] of these: made of the tokens, unless a prompt names a file */
  uint32_t *like;       /* [n_needed] the input of another phase that gives this one, or itself */
  psplit_generator_stats stats;
  int64_t began_ns, ended_ns;
};

/* With the mutex held, or once nobody else is left: at the end of a list; the first out of it, or
 * NULL. */
void psplit_i_sequences_append(psplit_i_sequence_list *list, psplit_i_sequence *sequence);
psplit_i_sequence *psplit_i_sequences_take(psplit_i_sequence_list *list);

/* Counts the end of one that is in no list, and tells of it. `failure` may be NULL. With no lock
 * held. */
void psplit_i_sequence_tell_end(psplit_i_sequences *sequences, psplit_i_sequence *sequence,
                                psplit_generation_end end, const psplit_diag *failure);

void psplit_i_sequence_free_files(char **files, uint32_t n); /* NULL is fine */
/* n_needed as the manifest has it. */
void psplit_i_sequence_destroy(psplit_i_sequence *sequence, uint32_t n_needed); /* NULL is fine */

#endif
