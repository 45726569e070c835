/* Problems from JSON: our own format and those of dnn-partitioning and of Piper.
 * docs/partitioning/problem.md describes them. */
#include "read_json.h"
#include "in_file.h"

#include <stdlib.h>
#include <string.h>

/* The public struct first: psplit_problem_destroy gets a pointer to it. */
typedef struct owned_problem {
  psplit_problem problem;
  psplit_i_arena arena;
} owned_problem;

psplit_code psplit_problem_parse_json(const char *text, size_t n_bytes, const char *name,
                                      psplit_diag *diag, psplit_problem **out_problem) {
  owned_problem *own = calloc(1, sizeof *own);
  if (!own) return psplit_i_nomem(diag);
  psplit_i_arena_init(&own->arena, 0);
  psplit_i_json_reader json = {.diag = diag, .arena = &own->arena, .file = name};
  psplit_i_problem_reader r = {.problem = &own->problem, .json = &json};
  psplit_i_json_item root = psplit_i_json_load(&json, text, n_bytes);
  const char *format = psplit_i_json_borrow(psplit_i_json_find(&root, "format"));
  if (strcmp(format, "psplit-problem") == 0)
    psplit_i_read_own(&r, &root);
  else if (psplit_i_json_given(psplit_i_json_find(&root, "maxFPGAs")))
    psplit_i_read_published(&r, &root);
  else if (psplit_i_json_given(psplit_i_json_find(&root, "maxDevices")))
    psplit_i_read_piper(&r, &root);
  else
    psplit_i_json_wrong(&root,
                        "neither \"format\": \"psplit-problem\" nor a dnn-partitioning problem "
                        "(\"maxFPGAs\") nor one of Piper (\"maxDevices\")");
  psplit_i_json_release(&root);
  if (json.code == PSPLIT_OK)
    *out_problem = &own->problem;
  else
    psplit_problem_destroy(&own->problem);
  return json.code;
}

psplit_code psplit_problem_read_json(const char *path, psplit_diag *diag,
                                     psplit_problem **out_problem) {
  char *text;
  size_t n;
  psplit_code code = psplit_i_text_read(path, NULL, diag, &text, &n);
  if (code != PSPLIT_OK) return code;
  code = psplit_problem_parse_json(text, n, path, diag, out_problem);
  free(text);
  return code;
}

void psplit_problem_destroy(psplit_problem *problem) {
  if (!problem) return;
  owned_problem *own = (owned_problem *)(void *)problem;
  psplit_i_arena_fini(&own->arena);
  free(own);
}
