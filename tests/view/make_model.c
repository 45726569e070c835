/* The model text of golden cases, from standard input, to an ONNX file: make_model OUT.onnx
 *
 *   input NAME DIMS        a float tensor; DIMS are numbers and symbols joined by ',', "-" for a
 *                          scalar
 *   output NAME
 *   weight NAME DIMS       a float initializer of zeros
 *   configuration NAME N   of N devices
 *   node NAME OP INPUTS OUTPUTS [CONFIGURATION=STAGE]
 *
 * INPUTS and OUTPUTS are names joined by ','; "-" is no name at all. In names, \xNN is a byte. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "build.h"

enum { LINE_BYTES = 4096 };

static void bad(const char *line) {
  fprintf(stderr, "make_model: %s\n", line);
  exit(1);
}

/* Puts bytes in place of their escapes; "-" is empty. */
static char *name_of(char *word) {
  if (!word) bad("a word is missing");
  if (strcmp(word, "-") == 0) *word = '\0';
  char *out = word;
  for (const char *in = word; *in; out++) {
    if (in[0] == '\\' && in[1] == 'x') {
      const char digits[] = {in[2], in[3], '\0'};
      *out = (char)strtol(digits, NULL, 16);
      in += 4;
    } else {
      *out = *in++;
    }
  }
  *out = '\0';
  return word;
}

static pb value_info(char *name, char *dims) {
  pb info = {0}, type = {0}, tensor = {0}, shape = {0};
  pb_string(&info, 1, name_of(name));
  pb_int(&tensor, 1, 1);
  for (char *dim; dims && strcmp(dims, "-") != 0 && (dim = strsep(&dims, ","));) {
    pb message = {0};
    char *end;
    const long number = strtol(dim, &end, 10);
    if (*dim && !*end)
      pb_int(&message, 1, number);
    else
      pb_string(&message, 2, name_of(dim));
    pb_message(&shape, 1, &message);
  }
  if (dims || shape.n) pb_message(&tensor, 2, &shape);
  pb_message(&type, 1, &tensor);
  pb_message(&info, 2, &type);
  return info;
}

static pb weight(char *name, char *dims) {
  int64_t sizes[8];
  unsigned n = 0;
  int64_t elements = 1;
  for (char *dim; dims && (dim = strsep(&dims, ",")) && n < 8; n++)
    elements *= sizes[n] = strtol(dim, NULL, 10);
  pb tensor = make_tensor(name_of(name), 1, n, sizes);
  char *zeros = calloc((size_t)elements + 1, 4);
  if (!zeros) bad("out of memory");
  pb_bytes(&tensor, 9, zeros, (size_t)elements * 4);
  free(zeros);
  return tensor;
}

static pb node(char *name, const char *op, char *inputs, char *outputs, char *placed) {
  pb message = {0};
  for (char *each; inputs && strcmp(inputs, "-") != 0 && (each = strsep(&inputs, ","));)
    pb_string(&message, 1, name_of(each));
  for (char *each; outputs && (each = strsep(&outputs, ","));)
    pb_string(&message, 2, name_of(each));
  if (strcmp(name, "-") != 0) pb_string(&message, 3, name_of(name));
  pb_string(&message, 4, op);
  if (placed) {
    pb entry = {0};
    pb_string(&entry, 1, strsep(&placed, "="));
    if (placed) pb_int(&entry, 3, strtol(placed, NULL, 10));
    pb_message(&message, 10, &entry);
  }
  return message;
}

int main(int argc, char **argv) {
  char line[LINE_BYTES];
  pb graph = {0}, configurations = {0};
  if (argc != 2) bad("usage: make_model OUT.onnx < TEXT");
  while (fgets(line, sizeof line, stdin)) {
    line[strcspn(line, "\n")] = '\0';
    char *rest = line, *words[6] = {0};
    for (size_t n = 0; rest && n < 6; n++) words[n] = strsep(&rest, " ");
    if (!*words[0] || *words[0] == '#') continue;
    if (strcmp(words[0], "input") == 0 || strcmp(words[0], "output") == 0) {
      pb info = value_info(words[1], words[2]);
      pb_message(&graph, *words[0] == 'i' ? 11 : 12, &info);
    } else if (strcmp(words[0], "weight") == 0) {
      pb tensor = weight(words[1], words[2]);
      pb_message(&graph, 5, &tensor);
    } else if (strcmp(words[0], "configuration") == 0 && words[2]) {
      pb message = {0};
      pb_string(&message, 1, words[1]);
      pb_int(&message, 2, strtol(words[2], NULL, 10));
      pb_message(&configurations, 26, &message);
    } else if (strcmp(words[0], "node") == 0 && words[4]) {
      pb message = node(words[1], words[2], words[3], words[4], words[5]);
      pb_message(&graph, 1, &message);
    } else {
      bad(words[0]);
    }
  }
  pb model = make_model(&graph);
  psplit_i_text_add(&model, configurations.bytes, configurations.n);
  write_file(argv[1], model.bytes, model.n);
  psplit_i_text_fini(&model);
  psplit_i_text_fini(&configurations);
  return 0;
}
