/* A library that says it is ONNX Runtime and answers with nothing where it must not: what HOSTILE
 * names. */
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#define EXPORT __attribute__((visibility("default")))

enum { N_ENTRIES = 512, GET_ERROR_MESSAGE = 2, CREATE_ENV = 3 };

static int told(const char *what) {
  const char *how = getenv("HOSTILE");
  return how && strcmp(how, what) == 0;
}

typedef void (*entry)(void);
static entry table[N_ENTRIES];

static void *nothing(void) { return NULL; }
static const char *line(void) { return "cannot do that \n"; }
static void *something(void) { return table; }
static int sound(void) { return 0; }

static const char *get_version(void) {
  if (told("no version")) return NULL;
  if (told("turning version")) return "1.2\xe2\x80\xae.3\x1b[31m\n";
  return "1.17.0";
}

/* All entries answer 0, an error of nothing or success with nothing, but what is told. */
static const void *get_api(uint32_t version) {
  (void)version;
  if (told("no API") || told("turning version")) return NULL;
  for (size_t i = 0; i < N_ENTRIES; i++) table[i] = (entry)sound;
  if (told("no entries")) memset(table, 0, sizeof table);
  if (told("one entry too few")) table[CREATE_ENV] = NULL;
  if (told("an error without a message")) {
    table[CREATE_ENV] = (entry)something;
    table[GET_ERROR_MESSAGE] = (entry)nothing;
  }
  if (told("an error that ends a line")) {
    table[CREATE_ENV] = (entry)something;
    table[GET_ERROR_MESSAGE] = (entry)line;
  }
  return table;
}

typedef struct base {
  const void *(*get_api)(uint32_t);
  const char *(*get_version)(void);
} base;

EXPORT const base *OrtGetApiBase(void);
const base *OrtGetApiBase(void) {
  static const base BASE = {get_api, get_version}, EMPTY = {0};
  if (told("no base")) return NULL;
  return told("no functions") ? &EMPTY : &BASE;
}
