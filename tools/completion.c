#include "completion.h"

#include <ctype.h>
#include <stdlib.h>
#include <string.h>

/* What an argument can be, by its name in the table: words of it in small letters, names that the
 * library knows, files. Nothing is offered of what has parts, such as NAME=VALUE. */
typedef struct argument_kind {
  bool files, directories;
  char words[1024]; /* with spaces between them */
} argument_kind;

static void add_word(argument_kind *kind, const char *word, size_t n) {
  const size_t used = strlen(kind->words);
  if (used + n + 2 > sizeof kind->words) return;
  snprintf(kind->words + used, sizeof kind->words - used, "%s%.*s", used ? " " : "", (int)n, word);
}

static void add_solvers(argument_kind *kind) {
  size_t n;
  const psplit_method *methods = psplit_partition_methods(&n);
  for (size_t i = 0; i < n; i++)
    if (methods[i].kind & PSPLIT_METHOD_OPTION)
      add_word(kind, methods[i].name, strlen(methods[i].name));
}

static void add_presets(argument_kind *kind) {
  const char *name;
  for (uint32_t i = 0; (name = psplit_device_preset_name(i)); i++)
    add_word(kind, name, strlen(name));
  if (!strstr(kind->words, "cpu ")) add_word(kind, "cpu", 3);
}

/* Each begins a line of what --help-passes prints. */
static void add_passes(argument_kind *kind) {
  char *help = psplit_passes_help();
  for (const char *line = help; line && *line; line += *line == '\n') {
    if (*line != ' ' && *line != '\n') add_word(kind, line, strcspn(line, " \n"));
    line += strcspn(line, "\n");
  }
  free(help);
}

static void add_alternative(argument_kind *kind, const char *text, size_t n) {
  static const char *const FILES[] = {"FILE", "MODEL", "POLICY.onnx", NULL};
  for (size_t i = 0; FILES[i]; i++)
    if (strlen(FILES[i]) == n && strncmp(FILES[i], text, n) == 0) kind->files = true;
  if (n == 3 && strncmp(text, "DIR", n) == 0) kind->directories = true;
  if (n == 4 && strncmp(text, "PASS", n) == 0) add_passes(kind);
  if (n == 6 && strncmp(text, "PRESET", n) == 0) add_presets(kind);
  if (n == 6 && strncmp(text, "SOLVER", n) == 0) add_solvers(kind);
  for (size_t i = 0; i < n; i++)
    if (isupper((unsigned char)text[i])) return;
  add_word(kind, text, n);
}

static argument_kind kind_of(const char *argument) {
  static const char PREFIX[] = "[NAME=]";
  argument_kind kind = {0};
  if (strncmp(argument, PREFIX, sizeof PREFIX - 1) == 0) argument += sizeof PREFIX - 1;
  if (strchr(argument, '=')) return kind;
  for (const char *text = argument; *text; text += *text == '|') {
    const size_t n = strcspn(text, "|");
    const size_t bracket = strcspn(text, "[");
    add_alternative(&kind, text, bracket < n ? bracket : n);
    text += n;
  }
  return kind;
}

/* A C name from that of the program. */
static void print_function(const cli *program, FILE *out) {
  fputc('_', out);
  for (const char *c = program->program; *c; c++) fputc(*c == '-' ? '_' : *c, out);
}

static bool has_letter(const cli_option *option) { return option->id <= 255; }

static void print_bash(const cli *program, FILE *out) {
  print_function(program, out);
  /* "--name=word" comes as three words. */
  fputs(
    "() {\n"
    "  local word=${COMP_WORDS[COMP_CWORD]} option=${COMP_WORDS[COMP_CWORD - 1]}\n"
    "  if [[ $word == '=' ]]; then\n"
    "    word=\n"
    "  elif [[ $option == '=' ]]; then\n"
    "    option=${COMP_WORDS[COMP_CWORD - 2]}\n"
    "  fi\n"
    "  COMPREPLY=()\n"
    "  case $option in\n",
    out);
  for (size_t i = 0; i < program->n_options; i++) {
    const cli_option *option = &program->options[i];
    if (!option->name || !option->argument) continue;
    const argument_kind kind = kind_of(option->argument);
    fputs("    ", out);
    if (has_letter(option)) fprintf(out, "-%c | ", option->id);
    fprintf(out, "--%s) ", option->name);
    if (*kind.words) {
      if (kind.files) fputs("compopt -o filenames; ", out);
      fprintf(out, "mapfile -t COMPREPLY < <(compgen %s-W '%s' -- \"$word\"); ",
              kind.files ? "-f " : "", kind.words);
    }
    if (kind.directories)
      fputs("compopt -o dirnames +o default; ", out);
    else if (!kind.files)
      fputs("compopt +o default; ", out);
    fputs("return ;;\n", out);
  }
  fputs("  esac\n  [[ $word == -* ]] && mapfile -t COMPREPLY < <(compgen -W '", out);
  for (size_t i = 0; i < program->n_options; i++)
    if (program->options[i].name) fprintf(out, "--%s ", program->options[i].name);
  fputs("' -- \"$word\")\n  return 0\n}\ncomplete -o default -F ", out);
  print_function(program, out);
  fprintf(out, " %s\n", program->program);
}

/* What is said of the option, up to its first semicolon, between single quotes: without what the
 * shell's syntax has in `except`, and `quote` for a quote. */
static void print_about(const cli_option *option, const char *except, const char *quote,
                        FILE *out) {
  const bool solvers = strcmp(option->help, CLI_SOLVERS) == 0;
  for (const char *c = solvers ? "how to search" : option->help; *c && *c != ';'; c++)
    if (*c == '\'')
      fputs(quote, out);
    else
      fputc(strchr(except, *c) ? ' ' : *c, out);
}

static void print_zsh_row(const cli_option *option, bool is_long, FILE *out) {
  fputs("  '", out);
  if (strstr(option->help, "repeatable"))
    fputc('*', out);
  else if (has_letter(option))
    fprintf(out, "(-%c --%s)", option->id, option->name);
  if (is_long)
    fprintf(out, "--%s%s[", option->name, option->argument ? "=" : "");
  else
    fprintf(out, "-%c%s[", option->id, option->argument ? "+" : "");
  print_about(option, "[]:\\", "'\\''", out);
  fputc(']', out);
  if (option->argument) {
    const argument_kind kind = kind_of(option->argument);
    fputc(':', out);
    for (const char *c = option->argument; *c; c++) fputc(strchr(":'\\", *c) ? ' ' : *c, out);
    fputc(':', out);
    if (kind.files && *kind.words) /* a plain colon would end what is said of the argument */
      fprintf(out, "{_alternative \"words\\:word\\:(%s)\" \"files\\:file\\:_files\"}", kind.words);
    else if (*kind.words)
      fprintf(out, "(%s)", kind.words);
    else if (kind.files || kind.directories)
      fputs(kind.files ? "_files" : "_files -/", out);
  }
  fputs("' \\\n", out);
}

static void print_zsh(const cli *program, FILE *out) {
  fprintf(out, "#compdef %s\n_arguments -s -S \\\n", program->program);
  for (size_t i = 0; i < program->n_options; i++) {
    const cli_option *option = &program->options[i];
    if (!option->name) continue;
    if (has_letter(option)) print_zsh_row(option, false, out);
    print_zsh_row(option, true, out);
  }
  fputs("  '*:file:_files'\n", out);
}

static void print_fish(const cli *program, FILE *out) {
  for (size_t i = 0; i < program->n_options; i++) {
    const cli_option *option = &program->options[i];
    if (!option->name) continue;
    fprintf(out, "complete -c %s", program->program);
    if (has_letter(option)) fprintf(out, " -s %c", option->id);
    fprintf(out, " -l %s", option->name);
    if (option->argument) {
      const argument_kind kind = kind_of(option->argument);
      fputs(kind.files ? " -r -F" : " -x", out);
      if (*kind.words) fprintf(out, " -a '%s'", kind.words);
      if (kind.directories) fputs(" -a '(__fish_complete_directories)'", out);
    }
    fputs(" -d '", out);
    print_about(option, "\\", "\\'", out);
    fputs("'\n", out);
  }
}

void completion_print(const cli *program, const char *shell, FILE *out) {
  if (strcmp(shell, "bash") == 0)
    print_bash(program, out);
  else if (strcmp(shell, "zsh") == 0)
    print_zsh(program, out);
  else
    print_fish(program, out);
}
