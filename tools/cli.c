/* Options from a table, and --help. */
#include "cli.h"

#include "completion.h"

#include <assert.h>
#include <getopt.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { MAX_OPTIONS = 128 };

/* An option that takes this word, "--format" for "html"; NULL: there is none, or several. */
static const cli_option *option_of_word(const cli *program, const char *word) {
  const cli_option *found = NULL;
  const size_t n = strlen(word);
  for (size_t i = 0; i < program->n_options; i++) {
    const cli_option *option = &program->options[i];
    const char *row = option->name && option->argument ? option->argument : "";
    for (const char *at = strstr(row, word); at && n > 1; at = strstr(at + 1, word)) {
      if ((at != row && at[-1] != '|') || (at[n] && at[n] != '|')) continue;
      if (found) return NULL;
      found = option;
      break;
    }
  }
  return found;
}

/* Says what is wrong with the option `text`, of which getopt_long said `id`. */
static void bad_option(const cli *program, int id, const char *text) {
  const char *names[MAX_OPTIONS], *meant[MAX_OPTIONS];
  uint32_t n = 0, n_meant = 0;
  const bool is_long = strncmp(text, "--", 2) == 0;
  char name[64];
  snprintf(name, sizeof name, "%.*s", (int)strcspn(text, "="), text);
  for (size_t i = 0; is_long && i < program->n_options; i++) {
    const cli_option *option = &program->options[i];
    if (!option->name) continue;
    names[n++] = option->name;
    if (strncmp(option->name, name + 2, strlen(name + 2)) == 0) meant[n_meant++] = option->name;
  }
  const uint32_t near = is_long ? psplit_nearest_name(name + 2, names, n) : PSPLIT_NONE;
  const cli_option *of_word = is_long ? option_of_word(program, name + 2) : NULL;
  if (id == ':')
    cli_usage(program, n_meant == 1 ? "--%s needs an argument" : "%s needs an argument",
              n_meant == 1 ? meant[0] : text);
  else if (!is_long)
    cli_usage(program, "unknown option -%c", optopt ? optopt : text[1]);
  else if (n_meant > 1 && name[2])
    cli_usage(program, "%s is short for several: --%s, --%s%s", name, meant[0], meant[1],
              n_meant > 2 ? " ..." : "");
  else if (n_meant == 1)
    cli_usage(program, "--%s takes no argument", meant[0]);
  else if (of_word)
    cli_usage(program, "unknown option %s; did you mean --%s %s?", name, of_word->name, name + 2);
  else if (near != PSPLIT_NONE)
    cli_usage(program, "unknown option %s; did you mean --%s?", name, names[near]);
  else
    cli_usage(program, "unknown option %s", name);
}

/* False after an error line where an option's argument is empty, for example an unset variable.
 * Otherwise it would fail later without the option's name, or name another file. */
static bool check_argument(const cli *program, int id, const char *argument) {
  for (size_t i = 0; argument && !*argument && i < program->n_options; i++) {
    const cli_option *option = &program->options[i];
    if (option->id != id || !option->argument) continue;
    cli_usage(program, "--%s takes %s, not \"\"", option->name, option->argument);
    return false;
  }
  return true;
}

/* Word processors and pages make one dash of two, and variables that are not set an operand without
 * a character; false after an error line. */
static bool check_operands(const cli *program, int argc, char **argv) {
  static const char *const DASHES[] = {"\xe2\x80\x90", "\xe2\x80\x91", "\xe2\x80\x92",
                                       "\xe2\x80\x93", "\xe2\x80\x94", "\xe2\x88\x92"};
  for (int i = optind; i < argc; i++) {
    if (!argv[i][0]) {
      cli_usage(program, "\"\" names no file or directory");
      return false;
    }
    for (size_t d = 0; d < sizeof DASHES / sizeof *DASHES; d++)
      if (strncmp(argv[i], DASHES[d], strlen(DASHES[d])) == 0 && access(argv[i], F_OK) != 0) {
        cli_usage(program, "\"%s\" begins with a dash other than the ASCII \"-\" of options",
                  argv[i]);
        return false;
      }
  }
  return true;
}

/* Of --help: where texts begin, and where lines end. */
enum { HELP_TEXT = 30, HELP_METHOD = 32, HELP_METHOD_TEXT = 44, HELP_COLUMNS = 100 };

/* How much of a word of n columns, longer than a line, stands in the `room` columns that are left:
 * up to behind its last "]" there, or else its last "|". */
static size_t part_of_word(const char *word, size_t n, size_t room) {
  for (const char *end = "]|"; *end; end++)
    for (size_t i = n > room ? room : 0; i > 0; i--)
      if (word[i - 1] == *end) return i;
  return n;
}

/* Ends the line, and those that follow, with `text`, broken between words: the line has `column`
 * columns already, others begin at column `indent`. */
static void print_text(FILE *out, size_t column, size_t indent, const char *text) {
  const size_t room = HELP_COLUMNS - indent;
  fprintf(out, "%*s", (int)(indent > column ? indent - column : 0), "");
  if (column < indent) column = indent;
  while (*text) {
    const size_t spaces = strspn(text, " "), all = strcspn(text + spaces, " ");
    const bool begins = column + spaces + (all > room ? 1 : all) > HELP_COLUMNS;
    if (begins) fprintf(out, "\n%*s", (int)indent, "");
    if (begins) column = indent;
    const size_t blanks = begins ? 0 : spaces;
    const size_t n =
      all > room ? part_of_word(text + spaces, all, HELP_COLUMNS - column - blanks) : all;
    fprintf(out, "%*s%.*s", (int)blanks, "", (int)n, text + spaces);
    text += spaces + n;
    column += blanks + n;
  }
  fputc('\n', out);
}

static void print_solvers(FILE *out) {
  size_t n;
  const psplit_method *methods = psplit_partition_methods(&n);
  for (size_t i = 0; i < n; i++) {
    if (!(methods[i].kind & PSPLIT_METHOD_OPTION)) continue;
    const int columns = fprintf(out, "%*s%s ", HELP_METHOD, "", methods[i].name);
    print_text(out, columns > 0 ? (size_t)columns : 0, HELP_METHOD_TEXT, methods[i].does);
  }
}

static void print_help(const cli *program, FILE *out) {
  fprintf(out, "Usage: %s %s\n\n%s\n", program->program, program->synopsis, program->about);
  for (size_t i = 0; i < program->n_options; i++) {
    const cli_option *option = &program->options[i];
    if (!option->name) {
      fprintf(out, "\n%s\n", option->help);
      continue;
    }
    char left[64];
    int n =
      snprintf(left, sizeof left, "  %s%c%s --%s%s%s", option->id > 255 ? "  " : "-",
               option->id > 255 ? ' ' : (char)option->id, option->id > 255 ? "" : ",", option->name,
               option->argument ? " " : "", option->argument ? option->argument : "");
    const bool solvers = strcmp(option->help, CLI_SOLVERS) == 0;
    fputs(left, out);
    if (n >= HELP_TEXT) {
      fputc('\n', out);
      n = 0;
    }
    print_text(out, (size_t)n, HELP_TEXT, solvers ? "one of these (auto):" : option->help);
    if (solvers) print_solvers(out);
  }
  fputs(
    "\nExit status: 0 ok, 1 a check failed, 2 usage, 3 file, 4 malformed or invalid model,\n"
    "5 unsupported, 6 limit, 7 infeasible, 8 plugin, 70 internal error, 128 + N ended by signal "
    "N.\n",
    out);
}

static void print_version(const cli *program, FILE *out) {
  fprintf(out, "%s %s\n", program->program, psplit_version());
}

const char *cli_option_name(const cli *program, int id) {
  size_t at = 0;
  while (program->options[at].id != id) at++;
  return program->options[at].name;
}

int cli_next(const cli *program, int argc, char **argv, const char **out_argument) {
  struct option options[MAX_OPTIONS + 1] = {0};
  char letters[2 * MAX_OPTIONS + 2] = ":";
  size_t n_letters = 1, n = 0;
  assert(program->n_options <= MAX_OPTIONS); /* an option beyond them would be unknown */
  for (size_t i = 0; i < program->n_options && n < MAX_OPTIONS; i++) {
    const cli_option *option = &program->options[i];
    if (!option->name) continue;
    options[n++] = (struct option){option->name, option->argument ? required_argument : no_argument,
                                   NULL, option->id};
    if (option->id > 255) continue;
    letters[n_letters++] = (char)option->id;
    if (option->argument) letters[n_letters++] = ':';
  }
  opterr = 0;
  cli_heed_signals();
  cli_logging_command(argc, argv);
  for (;;) {
    const int id = getopt_long(argc, argv, letters, options, NULL);
    *out_argument = optarg;
    if (id == -1)
      return check_operands(program, argc, argv) && cli_logging_apart(argc, argv) ? CLI_END
                                                                                  : CLI_BAD;
    if (id == ':' || id == '?') {
      bad_option(program, id, argv[optind - 1]);
      return CLI_BAD;
    }
    if (!check_argument(program, id, optarg)) return CLI_BAD;
    if (id == 'q') cli_logging_quiet(); /* --quiet, whatever the command */
    if (id == CLI_COMPLETION) {
      int shell;
      if (!cli_choice(program, "completion", optarg, &shell)) return CLI_BAD;
      completion_print(program, optarg, stdout);
      exit(cli_finish(0));
    }
    if (id == 'h' || id == 'V') {
      (id == 'h' ? print_help : print_version)(program, stdout);
      exit(cli_finish(0));
    }
    if (id == CLI_VERBOSE)
      cli_logging_verbose();
    else if (id != CLI_LOG)
      return id;
    else if (!cli_logging_file(program->program, optarg))
      exit(cli_exit_status(PSPLIT_IO)); /* no usage, and nothing has begun */
  }
}

static void show(void *user, psplit_severity severity, const char *line) {
  const bool *quiet = user;
  if (severity == PSPLIT_PROGRESS)
    cli_doing("%s", line);
  else
    cli_say_line(severity == PSPLIT_WARNING ? "warning" : "note", line, !*quiet);
}

static void show_advice(void *user, psplit_severity severity, const psplit_diag *advice) {
  char line[CLI_ADVICE_BYTES];
  show(user, severity, cli_advice(advice, line, sizeof line));
}

void cli_quiet(void *user, psplit_severity severity, const char *line) {
  (void)user;
  if (severity == PSPLIT_PROGRESS) cli_doing("%s", line);
}

psplit_logger cli_sink(const bool *quiet) {
  return (psplit_logger){.emit = show, .user = (void *)(uintptr_t)quiet, .advise = show_advice};
}
