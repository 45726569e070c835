#include "prompt_line.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "cli.h"
#include "json_tree.h"

typedef psplit_i_json_value json;

static psplit_code bad(psplit_diag *diag, const char *what) {
  return psplit_diag_fail(diag, PSPLIT_MALFORMED, "%s", what);
}

static psplit_code take_tokens(const json *list, psplit_diag *diag, prompt_ids *out) {
  static const char NO_TOKENS[] = "has \"prompt_ids\" that are no numbers of tokens";
  if (list->kind != PSPLIT_I_JSON_ARRAY) return bad(diag, "has no list as \"prompt_ids\"");
  if (!list->n) return bad(diag, NO_TOKENS);
  out->tokens = malloc(list->n * sizeof *out->tokens);
  if (!out->tokens) return cli_nomem(diag);
  for (; out->n < list->n; out->n++) {
    const json *token = &list->children[out->n];
    /* Where a token is negative, Gather counts from the vocabulary's end. */
    if (token->kind != PSPLIT_I_JSON_INTEGER || token->integer < 0) return bad(diag, NO_TOKENS);
    out->tokens[out->n] = token->integer;
  }
  return PSPLIT_OK;
}

static psplit_code take_count(const json *count, psplit_diag *diag, prompt_ids *out) {
  if (count->kind != PSPLIT_I_JSON_INTEGER || count->integer < 1)
    return bad(diag, "has a \"max_new_tokens\" that is no number above 0");
  out->max_new = (uint64_t)count->integer;
  return PSPLIT_OK;
}

/* The file of an input. */
static psplit_code take_input(const json *file, psplit_diag *diag, prompt_ids *out) {
  if (file->kind != PSPLIT_I_JSON_STRING) return bad(diag, "names an input's file by no string");
  char *name = strdup(file->key), *path = strdup(file->text);
  psplit_feed_file *grown = cli_grow((void *)(uintptr_t)out->inputs, out->n_inputs, sizeof *grown);
  if (grown) out->inputs = grown;
  if (!grown || !name || !path) {
    free(name);
    free(path);
    return cli_nomem(diag);
  }
  grown[out->n_inputs++] = (psplit_feed_file){name, path};
  return PSPLIT_OK;
}

static psplit_code take_member(const json *member, psplit_diag *diag, prompt_ids *out) {
  if (strcmp(member->key, "prompt_ids") == 0) return take_tokens(member, diag, out);
  if (strcmp(member->key, "max_new_tokens") == 0) return take_count(member, diag, out);
  return take_input(member, diag, out);
}

static psplit_code take_object(const char *text, size_t n, psplit_i_arena *arena, psplit_diag *diag,
                               prompt_ids *out) {
  psplit_i_json_place place = {0};
  const json *root = NULL;
  psplit_code code = psplit_i_json_parse(text, n, arena, &place, &root);
  if (code == PSPLIT_NOMEM) return cli_nomem(diag);
  if (code != PSPLIT_OK)
    return psplit_diag_fail(diag, PSPLIT_MALFORMED, "is no JSON object: %s",
                            code == PSPLIT_LIMIT ? "too many values" : place.what);
  for (uint32_t i = 0; i < root->n && code == PSPLIT_OK; i++)
    code = take_member(&root->children[i], diag, out);
  if (code == PSPLIT_OK && !out->tokens) code = bad(diag, "has no \"prompt_ids\"");
  return code;
}

psplit_code prompt_line_parse(const char *text, size_t n, psplit_diag *diag, prompt_ids *out) {
  psplit_i_arena arena;
  *out = (prompt_ids){0};
  if (strlen(text) != n) return bad(diag, "has a NUL");
  if (text[strspn(text, " \t\r\n")] != '{')
    return prompts_parse(text, &out->tokens, &out->n)
             ? PSPLIT_OK
             : bad(diag, "is no list of numbers of tokens");
  psplit_i_arena_init(&arena, 0);
  const psplit_code code = take_object(text, n, &arena, diag, out);
  psplit_i_arena_fini(&arena);
  if (code != PSPLIT_OK) prompt_ids_fini(out);
  return code;
}
