#include "cli.h"

#include "completion.h"

#include <assert.h>
#include <errno.h>
#include <getopt.h>
#include <inttypes.h>
#include <math.h>
#include <signal.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
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
    cli_usage(program, "there is no option -%c", optopt ? optopt : text[1]);
  else if (n_meant > 1 && name[2])
    cli_usage(program, "%s is short for several: --%s, --%s%s", name, meant[0], meant[1],
              n_meant > 2 ? " ..." : "");
  else if (n_meant == 1)
    cli_usage(program, "--%s takes no argument", meant[0]);
  else if (of_word)
    cli_usage(program, "there is no option %s; did you mean --%s %s?", name, of_word->name,
              name + 2);
  else if (near != PSPLIT_NONE)
    cli_usage(program, "there is no option %s; did you mean --%s?", name, names[near]);
  else
    cli_usage(program, "there is no option %s", name);
}

/* Where a file or a directory is to be named; false after an error line. An empty name, of a
 * variable that is not set, would else fail somewhere in the work, or mean another file. */
static bool check_name(const cli *program, int id, const char *argument) {
  for (size_t i = 0; argument && !*argument && i < program->n_options; i++) {
    const cli_option *option = &program->options[i];
    if (option->id != id || !option->argument) continue;
    if (!strstr(option->argument, "FILE") && !strstr(option->argument, "DIR")) continue;
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
        cli_usage(program, "\"%s\" begins with a dash that is not the \"-\" of options", argv[i]);
        return false;
      }
  }
  return true;
}

static void print_solvers(FILE *out) {
  size_t n;
  const psplit_method *methods = psplit_partition_methods(&n);
  for (size_t i = 0; i < n; i++)
    if (methods[i].kind & PSPLIT_METHOD_OPTION)
      fprintf(out, "%32s%-12s%s\n", "", methods[i].name, methods[i].does);
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
    const int n =
      snprintf(left, sizeof left, "  %s%c%s --%s%s%s", option->id > 255 ? "  " : "-",
               option->id > 255 ? ' ' : (char)option->id, option->id > 255 ? "" : ",", option->name,
               option->argument ? " " : "", option->argument ? option->argument : "");
    const bool solvers = strcmp(option->help, CLI_SOLVERS) == 0;
    fprintf(out, n < 30 ? "%-30s%s\n" : "%s\n                              %s\n", left,
            solvers ? "one of these (auto):" : option->help);
    if (solvers) print_solvers(out);
  }
  fputs(
    "\nExit status: 0 ok, 1 a check failed, 2 usage, 3 file, 4 malformed or invalid model,\n"
    "5 unsupported, 6 limit, 7 infeasible, 8 plugin, 70 internal error; 129, 130, 143 ended by a\n"
    "signal: 128 and its number.\n",
    out);
}

static void print_version(const cli *program, FILE *out) {
  fprintf(out, "%s %s\n", program->program, psplit_version());
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
  cli_talk_command(argc, argv);
  for (;;) {
    const int id = getopt_long(argc, argv, letters, options, NULL);
    *out_argument = optarg;
    if (id == -1)
      return check_operands(program, argc, argv) && cli_talk_log_apart(argc, argv) ? CLI_END
                                                                                   : CLI_BAD;
    if (id == ':' || id == '?') {
      bad_option(program, id, argv[optind - 1]);
      return CLI_BAD;
    }
    if (!check_name(program, id, optarg)) return CLI_BAD;
    if (id == 'q') cli_talk_quiet(); /* --quiet, whatever the command */
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
      cli_talk_verbose();
    else if (id != CLI_LOG)
      return id;
    else if (!cli_talk_log(program->program, optarg))
      exit(cli_exit_status(PSPLIT_IO)); /* no usage, and nothing has begun */
  }
}

int cli_fail(const psplit_diag *diag) {
  char text[CLI_ADVICE_BYTES];
  cli_say_line("error", cli_advice(diag, text, sizeof text), true);
  return cli_end_status(diag->code);
}

int cli_usage(const cli *program, const char *format, ...) {
  char line[512], whole[640];
  va_list args;
  va_start(args, format);
  vsnprintf(line, sizeof line, format, args);
  va_end(args);
  const size_t n = strlen(line);
  const bool asks = n && line[n - 1] == '?';
  snprintf(whole, sizeof whole, "%s%s see %s --help", line, asks ? "" : ";", program->program);
  cli_say_line("error", whole, true);
  return cli_exit_status(PSPLIT_USAGE);
}

int cli_finish(int status) {
  const bool failed_before = ferror(stdout) != 0; /* the buffer may be empty by now */
  cli_make_room();
  if ((fflush(stdout) != 0 || failed_before) && !status) {
    cli_say_line("error", "standard output cannot be written", true);
    status = cli_exit_status(PSPLIT_IO);
  }
  return cli_talk_end(status);
}

bool cli_close_text(FILE *out, char *const *text) {
  const bool failed = ferror(out);
  return fclose(out) == 0 && !failed && *text;
}

psplit_code(cli_nomem)(psplit_diag *diag) {
  snprintf(diag->message, sizeof diag->message, "out of memory");
  return diag->code = PSPLIT_NOMEM;
}

void *cli_need(void *memory) {
  if (memory) return memory;
  cli_say_line("error", "out of memory", true);
  const int status = cli_finish(cli_exit_status(PSPLIT_NOMEM));
  /* Where MPI starts, other ranks wait for this one unless the launcher sees that it was killed. */
  if (cli_rank()) raise(SIGKILL);
  exit(status);
}

bool cli_count(const cli *program, const char *name, const char *text, uint64_t low, uint64_t high,
               uint64_t *out) {
  char *end;
  errno = 0;
  const unsigned long long value = strtoull(text, &end, 10);
  if (*text >= '0' && *text <= '9' && !*end && !errno && value >= low && value <= high) {
    *out = value;
    return true;
  }
  cli_usage(program, "--%s takes a whole number from %" PRIu64 " to %" PRIu64 ", not \"%s\"", name,
            low, high, text);
  return false;
}

bool cli_count32(const cli *program, const char *name, const char *text, uint32_t low,
                 uint32_t high, uint32_t *out) {
  uint64_t count;
  if (!cli_count(program, name, text, low, high, &count)) return false;
  *out = (uint32_t)count;
  return true;
}

bool cli_real(const cli *program, const char *name, const char *text, double low, double high,
              double *out) {
  char *end;
  const double value = strtod(text, &end);
  if (*text && !*end && value >= low && value <= high) {
    *out = value;
    return true;
  }
  cli_usage(program, "--%s takes a number from %g to %g, not \"%s\"", name, low, high, text);
  return false;
}

bool cli_level(const cli *program, const char *text, int *out) {
  uint64_t count;
  if (!cli_count(program, "optimization", text, 0, 99, &count)) return false;
  *out = (int)count;
  if (count <= 2 || count == 99) return true;
  cli_usage(program, "--optimization takes 0, 1, 2 or 99, not \"%s\"", text);
  return false;
}

bool cli_range(const cli *program, const char *name, const char *text, uint32_t *out_low,
               uint32_t *out_high) {
  static const uint64_t MOST = 1u << 20;
  const char *dots = strstr(text, "..");
  char first[24];
  uint64_t low, high;
  const size_t n_digits = strspn(text, "0123456789");
  if (n_digits && strchr("-,:", text[n_digits]) && text[n_digits]) {
    cli_usage(program, "--%s takes a number or a range such as 2..4, not \"%s\"", name, text);
    return false;
  }
  const size_t n = dots ? (size_t)(dots - text) : strlen(text);
  if (n >= sizeof first) return cli_count(program, name, text, 1, MOST, &low);
  memcpy(first, text, n);
  first[n] = '\0';
  if (!cli_count(program, name, first, 1, MOST, &low) ||
      !cli_count(program, name, dots ? dots + 2 : first, low, MOST, &high))
    return false;
  *out_low = (uint32_t)low;
  *out_high = (uint32_t)high;
  return true;
}

bool cli_choice(const cli *program, const char *name, const char *text, int *out) {
  enum { MOST = 16 };
  const char *words[MOST + 1] = {NULL};
  char row[160] = "";
  for (size_t i = 0; i < program->n_options; i++)
    if (program->options[i].name && strcmp(program->options[i].name, name) == 0)
      snprintf(row, sizeof row, "%s", program->options[i].argument);
  size_t n = 0;
  for (char *word = row; *word && n < MOST; n++) {
    char *behind = word + strcspn(word, "|");
    words[n] = word;
    const bool last = !*behind;
    *behind = '\0';
    word[strcspn(word, "[")] = '\0';
    word = last ? behind : behind + 1;
  }
  return cli_word(program, name, text, words, out);
}

bool cli_word(const cli *program, const char *name, const char *text, const char *const *words,
              int *out) {
  for (int i = 0; words[i]; i++)
    if (strcmp(words[i], text) == 0) {
      *out = i;
      return true;
    }
  char known[160] = "";
  for (size_t i = 0, n = 0; words[i] && n < sizeof known; i++)
    n += (size_t)snprintf(known + n, sizeof known - n, "%s%s", i ? ", " : "", words[i]);
  uint32_t n_words = 0;
  while (words[n_words]) n_words++;
  const uint32_t near = psplit_nearest_name(text, words, n_words);
  cli_usage(program, "--%s takes one of %s, not \"%s\"%s%s%s", name, known, text,
            near == PSPLIT_NONE ? "" : "; did you mean ", near == PSPLIT_NONE ? "" : words[near],
            near == PSPLIT_NONE ? "" : "?");
  return false;
}

bool cli_dim(const cli *program, char *text, psplit_dim_value *dims, size_t most, size_t *io_n) {
  char *equals = strrchr(text, '=');
  uint64_t value;
  if (!equals || equals == text || *io_n == most) {
    cli_usage(program, "--dim takes NAME=VALUE, not \"%s\"", text);
    return false;
  }
  if (!cli_count(program, "dim", equals + 1, 0, INT64_MAX, &value)) return false;
  *equals = '\0';
  size_t at = 0; /* what is said later counts */
  while (at < *io_n && strcmp(dims[at].name, text) != 0) at++;
  if (at == *io_n) ++*io_n;
  dims[at] = (psplit_dim_value){text, (int64_t)value};
  return true;
}

bool cli_sizes(const char *text, int64_t *sizes, uint32_t most, uint32_t *out_n) {
  uint32_t n = 0;
  while (*text) {
    char *end;
    errno = 0;
    const long long size = strtoll(text, &end, 10);
    if (*text < '0' || *text > '9' || errno || n == most) return false;
    if (*end && (*end != ',' || !end[1])) return false;
    sizes[n++] = size;
    text = end + (*end == ',');
  }
  *out_n = n;
  return true;
}

bool cli_repeated(const cli *program, const char *name, const char *text, const char **list,
                  size_t most, size_t *io_n) {
  if (*io_n == most) {
    cli_usage(program, "--%s can stand at most %zu times", name, most);
    return false;
  }
  list[(*io_n)++] = text;
  return true;
}

bool cli_is_preset(const char *name) {
  for (uint32_t i = 0; psplit_device_preset_name(i); i++)
    if (strcmp(psplit_device_preset_name(i), name) == 0) return true;
  return false;
}

/* A name that is no file may have been meant for a preset. */
static psplit_code add_presets(const char *name, psplit_diag *diag) {
  enum { MOST = 64 };
  const char *presets[MOST];
  uint32_t n_presets = 0;
  size_t n = strlen(diag->message);
  if (strchr(name, '/') || strchr(name, '.')) return diag->code;
  while (n_presets < MOST && (presets[n_presets] = psplit_device_preset_name(n_presets)))
    n_presets++;
  const uint32_t near = psplit_nearest_name(name, presets, n_presets);
  if (near != PSPLIT_NONE)
    n += (size_t)snprintf(diag->message + n, sizeof diag->message - n,
                          "; did you mean the preset %s?", presets[near]);
  for (uint32_t i = 0; i < n_presets && n < sizeof diag->message; i++)
    n += (size_t)snprintf(diag->message + n, sizeof diag->message - n, "%s%s",
                          i                     ? ", "
                          : near == PSPLIT_NONE ? "; presets are "
                                                : " presets are ",
                          presets[i]);
  return diag->code;
}

bool cli_is_file(const char *devices) {
  return strcmp(devices, "cpu") != 0 && !cli_is_preset(devices);
}

psplit_code cli_devices_read(const char *name, uint64_t max_bytes, bool or_stdin, psplit_diag *diag,
                             char **out_text, size_t *out_n) {
  if (!name || !cli_is_file(name)) return PSPLIT_OK;
  const psplit_code code = cli_read_file(name, max_bytes, or_stdin, diag, out_text, out_n);
  return code == PSPLIT_IO ? add_presets(name, diag) : code;
}

psplit_code cli_devices(const char *name, const char *text, size_t n, uint32_t *io_n_stages,
                        psplit_diag *diag, psplit_devices **out_devices) {
  if (!name) return PSPLIT_OK;
  psplit_code code;
  if (strcmp(name, "cpu") == 0) {
    code = cli_this_machine(*io_n_stages ? *io_n_stages : 1, diag, out_devices);
  } else if (cli_is_preset(name)) {
    code = psplit_devices_preset(name, *io_n_stages ? *io_n_stages : 1, diag, out_devices);
  } else {
    psplit_diag why = {0};
    code = psplit_devices_parse(text, n, &why, out_devices);
    if (code != PSPLIT_OK) {
      diag->code = code;
      snprintf(diag->message, sizeof diag->message, "%.300s: %.600s", name, why.message);
    }
  }
  if (code == PSPLIT_OK && !*io_n_stages) *io_n_stages = psplit_devices_count(*out_devices);
  return code;
}

bool cli_size(const cli *program, const char *name, const char *text, uint64_t high,
              uint64_t *out) {
  static const struct {
    const char *name;
    uint64_t bytes;
  } UNITS[] = {{"", 1},
               {"B", 1},
               {"kB", 1000},
               {"MB", 1000000},
               {"GB", 1000000000},
               {"TB", 1000000000000},
               {"KiB", 1u << 10},
               {"MiB", 1u << 20},
               {"GiB", 1u << 30},
               {"TiB", UINT64_C(1) << 40}};
  char *end;
  errno = 0;
  const unsigned long long count = strtoull(text, &end, 10);
  for (size_t i = 0; *text >= '0' && *text <= '9' && !errno && i < sizeof UNITS / sizeof *UNITS;
       i++) {
    if (strcmp(end, UNITS[i].name) != 0 || !count || count > high / UNITS[i].bytes) continue;
    *out = count * UNITS[i].bytes;
    return true;
  }
  cli_usage(program,
            "--%s takes bytes, such as 1000000, 500MB or 1GiB, from 1 to %" PRIu64 ", not \"%s\"",
            name, high, text);
  return false;
}

bool cli_mebibytes(const cli *program, const char *name, const char *text, uint64_t *out_bytes) {
  uint64_t count;
  if (!cli_count(program, name, text, 1, UINT64_MAX >> 20, &count)) return false;
  *out_bytes = count << 20;
  return true;
}

bool cli_max_text(const cli *program, const char *argument, uint64_t *out_bytes) {
  return cli_mebibytes(program, "max-text", argument, out_bytes);
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
