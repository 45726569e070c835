/* Fuzz target: what is written for people and programs about a model: text, JSON, DOT, the page.
 * Whatever the names in the model are: text has no byte that a terminal acts on, JSON is JSON that
 * says the names, DOT has nothing but its own words outside of strings, and the page has the tags
 * of its template and no others. */
#include <jansson.h>
#include <psplit/view.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "splits.h"

static void wrong(const char *what, const char *text) {
  fprintf(stderr, "%s\n%s\n", what, text);
  abort();
}

/* Bytes of a printable character of UTF-8 at `s`, which ends with NUL; 0: it is none. No character
 * that changes the order in which others are read is one. */
static size_t printable(const unsigned char *s) {
  if (*s < 0x80) return *s >= 0x20 && *s != 0x7f;
  const size_t n = *s >= 0xf0 ? 4 : *s >= 0xe0 ? 3 : *s >= 0xc2 ? 2 : 0;
  uint32_t point = *s & (0xffu >> (n + 1));
  for (size_t i = 1; i < n; i++) {
    if (s[i] >> 6 != 2) return 0;
    point = point << 6 | (s[i] & 0x3f);
  }
  static const uint32_t least[] = {0, 0, 0x80, 0x800, 0x10000};
  if (!n || point < least[n] || point > 0x10ffff || (point >= 0xd800 && point < 0xe000)) return 0;
  const bool turns = (point >= 0x202a && point <= 0x202e) || (point >= 0x2066 && point <= 0x2069);
  return point < 0xa0 || turns ? 0 : n;
}

static void check_text(const char *text) {
  for (const unsigned char *s = (const unsigned char *)text; *s;) {
    const size_t n = *s == '\n' ? 1 : printable(s);
    if (!n) wrong("a byte of the text is not printable", text);
    s += n;
  }
}

/* Outside of strings DOT has words, numbers and these. */
static void check_dot(const char *text) {
  bool in_string = false;
  for (const unsigned char *s = (const unsigned char *)text; *s;) {
    const size_t n = *s == '\n' ? !in_string : printable(s);
    if (!n || (!in_string && *s >= 0x80)) wrong("a byte of the DOT file", text);
    if (*s == '"')
      in_string = !in_string;
    else if (in_string && *s == '\\' && strchr("\"\\nlr", s[1]))
      s++;
    else if (in_string && *s == '\\')
      wrong("an escape in the DOT file", text);
    s += n;
  }
  if (in_string) wrong("the DOT file ends in a string", text);
}

/* JSON in text[n], as another parser reads it. */
static json_t *check_json(const char *text, size_t n) {
  json_error_t error;
  json_t *root = json_loadb(text, n, JSON_REJECT_DUPLICATES | JSON_ALLOW_NUL, &error);
  if (!root) wrong(error.text, text);
  return root;
}

static bool is_utf8(const char *text) {
  json_t *string = json_string(text);
  json_decref(string);
  return string != NULL;
}

static void check_operators(const char *text, size_t n, const psplit_snapshot *s) {
  json_t *root = check_json(text, n);
  const json_t *list = json_object_get(root, "operators");
  if (json_array_size(list) != s->n_nodes) wrong("operators are missing", text);
  for (size_t i = 0; i < s->n_nodes; i++) {
    const char *name = json_string_value(json_object_get(json_array_get(list, i), "name"));
    if (!name || (is_utf8(s->nodes[i].name) && strcmp(name, s->nodes[i].name) != 0))
      wrong("an operator has another name", text);
  }
  json_decref(root);
}

/* The page is the template around two titles and the data, in which no '<' stands. */
static void check_page(const char *text, size_t n) {
  static const char before[] = "<script type=\"application/json\" id=\"data\">";
  static size_t usual; /* how many '<' there are in every page */
  const char *data = strstr(text, before), *end = data ? strstr(data, "</script>") : NULL;
  if (!end || strlen(text) != n) wrong("the page has no data", text);
  data += strlen(before);
  json_decref(check_json(data, (size_t)(end - data)));
  size_t n_less = 0;
  for (const char *s = text; (s = strchr(s, '<')); s++) n_less++;
  if (usual && n_less != usual) wrong("the page has a tag that is not of its template", text);
  usual = n_less;
}

static void view(const psplit_snapshot *s, psplit_view_format format, psplit_view_level level,
                 const char *title) {
  psplit_view_options options;
  psplit_diag diag = {0};
  char *text = NULL;
  size_t n;
  psplit_view_options_init(&options);
  options.format = format;
  options.level = level;
  options.title = title;
  options.fold = true;
  const psplit_code code = psplit_view(&s, 1, &options, &diag, &text, &n);
  if (code == PSPLIT_OK) {
    if (format == PSPLIT_VIEW_TEXT) check_text(text);
    if (format == PSPLIT_VIEW_DOT) check_dot(text);
    if (format == PSPLIT_VIEW_HTML) check_page(text, n);
    if (format == PSPLIT_VIEW_JSON && level == PSPLIT_VIEW_OPERATORS) check_operators(text, n, s);
    if (format == PSPLIT_VIEW_JSON && level != PSPLIT_VIEW_OPERATORS)
      json_decref(check_json(text, n));
  } else if (code != PSPLIT_USAGE && code != PSPLIT_UNSUPPORTED) {
    fuzz_fail("view", &diag);
  }
  free(text);
}

static void view_all(const psplit_snapshot *s, const char *title) {
  for (int level = PSPLIT_VIEW_OPERATORS; level <= PSPLIT_VIEW_PATTERNS; level++) {
    view(s, PSPLIT_VIEW_TEXT, (psplit_view_level)level, title);
    view(s, PSPLIT_VIEW_JSON, (psplit_view_level)level, title);
    view(s, PSPLIT_VIEW_DOT, (psplit_view_level)level, title);
  }
  if (psplit_view_has(PSPLIT_VIEW_HTML)) view(s, PSPLIT_VIEW_HTML, PSPLIT_VIEW_OPERATORS, title);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n) {
  const int fd = fuzz_file(data, n);
  const uint32_t choice = fuzz_hash(data, n);
  psplit_diag diag = {0};
  psplit_model *model = fuzz_open(fd, NULL, 0, &diag);
  psplit_planner_options options;
  psplit_planner *planner = NULL;
  psplit_snapshot *snapshot = NULL;
  fuzz_planner_options(&options, 1 + choice / 8 % 3);
  options.allow_invalid = true;
  options.ignore_annotations = true;
  if (model && psplit_planner_create(model, &options, &diag, &planner) == PSPLIT_OK &&
      (choice % 8 == 0 || fuzz_plan(planner))) {
    fuzz_must(psplit_snapshot_take(planner, &diag, &snapshot) == PSPLIT_OK, "snapshot", &diag);
    char title[17] = {0}; /* bytes of the input, whatever they are */
    memcpy(title, data + n / 2, n - n / 2 < 16 ? n - n / 2 : 16);
    view_all(snapshot, title);
  }
  psplit_snapshot_destroy(snapshot);
  psplit_planner_destroy(planner);
  psplit_model_close(model);
  close(fd);
  return 0;
}
