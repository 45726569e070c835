/* What a stage process may say that makes no sense, and what becomes of it; TAP:
 *
 *   lies PATH    PATH: of this program, which is also the process that lies
 *
 * Each lie is named and costs the run it was told in, and the process; nothing is written past a
 * buffer (sanitizers look, tests/sanitize.sh), and the next process is asked as ever. */
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#include "frames.h"
#include "process.h"

enum { FLOAT = 1, STRING = 8, N_NOISE = 150 };
enum { MAGIC = 0x70736c74 };

/* An answer with one tensor, as the truth would be; then what is false in it. */
typedef struct reply {
  psplit_i_frame head;
  int64_t row[3], dims[40]; /* type, bytes, rank */
  size_t n_dims, n_data;
  unsigned char data[64];
} reply;

static void numbers(reply *r) {
  r->head =
    (psplit_i_frame){.magic = MAGIC, .kind = PSPLIT_I_FRAME_OUTPUTS, .number = 1, .n_tensors = 1};
  r->row[0] = FLOAT;
  r->row[1] = (int64_t)(r->n_data = 12);
  r->row[2] = (int64_t)(r->n_dims = 1);
  r->dims[0] = 3;
}
/* Two strings of one byte. */
static void strings(reply *r) {
  static const uint64_t LENGTHS[2] = {1, 1};
  numbers(r);
  r->row[0] = STRING;
  r->row[1] = (int64_t)(r->n_data = 18);
  r->dims[0] = 2;
  memcpy(r->data, LENGTHS, sizeof LENGTHS);
}

/* A failure with advice; its text is as long as a row. */
static void failure(reply *r) {
  static const char TEXT[] = "it is broken.\0x\0(none)\0";
  _Static_assert(sizeof TEXT == sizeof r->row, "");
  r->head = (psplit_i_frame){.magic = MAGIC,
                             .kind = PSPLIT_I_FRAME_FAILURE,
                             .number = 1,
                             .n_text = sizeof r->row,
                             .code = PSPLIT_UNSUPPORTED,
                             .subject = PSPLIT_SUBJECT_INLINE_IF,
                             .hint = PSPLIT_HINT_INPUT_SHAPE};
  memcpy(r->row, TEXT, sizeof r->row);
}
static bool is_failure(const psplit_diag *diag) {
  return diag->code == PSPLIT_UNSUPPORTED && strcmp(diag->message, "it is broken.") == 0 &&
         diag->subject == PSPLIT_SUBJECT_INLINE_IF && diag->hint == PSPLIT_HINT_INPUT_SHAPE &&
         diag->n_hint_arguments == 3 && strcmp(psplit_hint_argument(diag, 0), "x") == 0 &&
         strcmp(psplit_hint_argument(diag, 1), "(none)") == 0;
}

static void magic(reply *r) { r->head.magic++; }
static void kind(reply *r) { r->head.kind = PSPLIT_I_FRAME_RUN; }
static void wild_kind(reply *r) { r->head.kind = 0xffffffff; }
static void number(reply *r) { r->head.number = 77; }
static void no_tensors(reply *r) { r->head.n_tensors = 0; }
static void many_tensors(reply *r) { r->head.n_tensors = 0x80000000; }
static void long_text(reply *r) { r->head.n_text = (uint64_t)1 << 40; }
static void failure_code(reply *r) {
  r->head.kind = PSPLIT_I_FRAME_FAILURE;
  r->head.n_tensors = 0;
  r->head.code = -3;
}
static void failure_text(reply *r) {
  r->head.kind = PSPLIT_I_FRAME_FAILURE;
  r->head.n_tensors = 0;
  r->head.code = PSPLIT_INVALID;
  r->head.n_text = PSPLIT_DIAG_BYTES + PSPLIT_HINT_BYTES + 1;
}
static void failure_hint(reply *r) {
  r->head.kind = PSPLIT_I_FRAME_FAILURE;
  r->head.n_tensors = 0;
  r->head.code = PSPLIT_INVALID;
  r->head.hint = PSPLIT_N_HINTS;
}
static void failure_subject(reply *r) {
  failure_hint(r);
  r->head.hint = 0;
  r->head.subject = 0x80000000;
}
static void failure_tensors(reply *r) {
  r->head.kind = PSPLIT_I_FRAME_FAILURE;
  r->head.code = PSPLIT_INVALID;
}
static void type(reply *r) { r->row[0] = 99; }
static void no_type(reply *r) { r->row[0] = 0; }
static void wide_type(reply *r) { r->row[0] = ((int64_t)1 << 32) + FLOAT; }
static void rank(reply *r) {
  r->row[2] = (int64_t)(r->n_dims = 40);
  for (size_t i = 0; i < r->n_dims; i++) r->dims[i] = 1;
}
static void negative_rank(reply *r) { r->row[2] = -1; }
static void negative_dim(reply *r) { r->dims[0] = -3; }
static void wide_dims(reply *r) {
  r->row[2] = (int64_t)(r->n_dims = 2);
  r->dims[0] = r->dims[1] = (int64_t)1 << 32;
  r->row[1] = 0; /* what the product is, modulo 2^64 */
}
static void fewer_bytes(reply *r) { r->row[1] = 8; }
static void more_bytes(reply *r) { r->row[1] = 64; }
static void negative_bytes(reply *r) { r->row[1] = -12; }
static void many_strings(reply *r) { r->dims[0] = (int64_t)1 << 40; }
static void long_string(reply *r) { r->data[0] = 9; }
static void wild_string(reply *r) { memset(r->data, 0xff, 8); }
static void none(reply *r) { (void)r; }

static const struct lie {
  const char *name;
  void (*truth)(reply *), (*change)(reply *);
  const char *word; /* in what is said of it; NULL: it is no lie */
} LIES[] = {
  {"numbers", numbers, none, NULL},
  {"strings", strings, none, NULL},
  {"a failure with advice", failure, none, NULL},
  {"another magic number", numbers, magic, "malformed message"},
  {"another kind", numbers, kind, "expected \"outputs\", got 3 (run)"},
  {"a kind that is none", numbers, wild_kind, "(unknown)"},
  {"another run", numbers, number, "about run 77"},
  {"no tensors", numbers, no_tensors, "it has 0 tensors, not 1"},
  {"two milliards of tensors", numbers, many_tensors, "tensors, not 1"},
  {"a long text", numbers, long_text, "its text has"},
  {"a failure without a reason", numbers, failure_code, "a failure with code -3"},
  {"a failure of many words", numbers, failure_text, "its text has"},
  {"a failure with a hint that is none", numbers, failure_hint,
   "a failure with subject 0 and hint"},
  {"a failure about nothing known", numbers, failure_subject, "a failure with subject 2147483648"},
  {"a failure with tensors", numbers, failure_tensors, "it has 1 tensors, not 0"},
  {"another type", numbers, type, "data type 99"},
  {"no type, with bytes", numbers, no_type, "data type 0"},
  {"a type beyond 32 bits", numbers, wide_type, "data type"},
  {"a high rank", numbers, rank, "rank 40"},
  {"a negative rank", numbers, negative_rank, "rank -1"},
  {"a negative dimension", numbers, negative_dim, "not its shape's"},
  {"a shape that overflows", numbers, wide_dims, "not its shape's"},
  {"fewer bytes than the shape has", numbers, fewer_bytes, "not its shape's"},
  {"more bytes than the shape has", numbers, more_bytes, "not its shape's"},
  {"negative bytes", numbers, negative_bytes, "not its shape's"},
  {"more strings than bytes", strings, many_strings, "strings in 18 bytes"},
  {"a string beyond the end", strings, long_string, "strings is too short"},
  {"a string of 2^64 bytes", strings, wild_string, "strings is too short"},
};
enum { N_LIES = sizeof LIES / sizeof *LIES };

static void put(const void *bytes, size_t n) {
  if (send(PSPLIT_I_PROCESS_FD, bytes, n, MSG_NOSIGNAL) < 0) _exit(0);
}

static void get(void *bytes, size_t n) {
  if (recv(PSPLIT_I_PROCESS_FD, bytes, n, MSG_WAITALL) != (ssize_t)n) _exit(0);
}

static uint32_t next_random(uint64_t *state) {
  *state = *state * 6364136223846793005U + 1442695040888963407U;
  return (uint32_t)(*state >> 33);
}

/* The process: says that it has opened what it was told to, and to the first run what it is to say.
 * From N_LIES on: the truth with bytes changed. */
static int tell(unsigned what) {
  psplit_i_frame head;
  static char rest[1 << 16];
  get(&head, sizeof head);
  get(rest, (size_t)head.n_text);
  put(&(psplit_i_frame){.magic = MAGIC, .kind = PSPLIT_I_FRAME_OPENED}, sizeof head);
  get(&head, sizeof head);
  reply r = {.n_dims = 0};
  LIES[what < N_LIES ? what : what % 2].truth(&r);
  r.head.number = head.number;
  if (what < N_LIES) LIES[what].change(&r);
  unsigned char all[sizeof r];
  size_t n = 0;
  const struct {
    const void *bytes;
    size_t n;
  } PARTS[] = {{&r.head, sizeof r.head},
               {r.row, sizeof r.row},
               {r.dims, r.n_dims * sizeof *r.dims},
               {r.data, r.n_data}};
  for (size_t i = 0; i < sizeof PARTS / sizeof *PARTS; i++) {
    memcpy(all + n, PARTS[i].bytes, PARTS[i].n);
    n += PARTS[i].n;
  }
  uint64_t random = what;
  if (what >= N_LIES)
    for (uint32_t i = next_random(&random) % 4; i + 1; i--)
      all[next_random(&random) % n] = (unsigned char)next_random(&random);
  put(all, n);
  shutdown(PSPLIT_I_PROCESS_FD, SHUT_WR);
  /* Not to go with anything unread: what was said would be lost. */
  while (recv(PSPLIT_I_PROCESS_FD, rest, sizeof rest, 0) > 0) continue;
  return 0;
}

static int n_checks, n_bad;
static void check(bool good, const char *name, const char *message) {
  n_checks++;
  n_bad += !good;
  printf("%sok %d - %s\n", good ? "" : "not ", n_checks, name);
  if (!good) printf("# %s\n", message);
}

/* A run of a process that lies; what it comes to. */
static psplit_code ask(const psplit_i_ort *ort, const char *path, unsigned what,
                       psplit_diag *diag) {
  static const int64_t DIMS[1] = {1};
  static const char *const NAMES[1] = {"x"};
  static const psplit_i_session_options SESSION = {.n_threads = 1};
  char number[16];
  const char *const command[] = {path, "tell", number, NULL};
  const psplit_i_process_options options = {.ort = ort,
                                            .command = command,
                                            .path = "none",
                                            .session = &SESSION,
                                            .input_names = NAMES,
                                            .output_names = NAMES,
                                            .n_inputs = 1,
                                            .n_outputs = 1};
  psplit_i_process *process = NULL;
  psplit_i_tensor *input = NULL, *output = NULL;
  snprintf(number, sizeof number, "%u", what);
  psplit_code code = psplit_i_process_create(&options, diag, &process);
  if (code == PSPLIT_OK) code = psplit_i_tensor_create(ort, FLOAT, DIMS, 1, diag, &input);
  if (code == PSPLIT_OK) code = psplit_i_process_open(process, diag);
  if (code == PSPLIT_OK) code = psplit_i_process_run(process, &input, &output, 0, diag);
  psplit_i_tensor_release(input);
  psplit_i_tensor_release(output);
  psplit_i_process_destroy(process);
  return code;
}

int main(int argc, char **argv) {
  psplit_i_ort ort = {0};
  psplit_diag diag = {0};
  if (argc > 2 && strcmp(argv[1], "tell") == 0) return tell((unsigned)atoi(argv[2]));
  if (argc != 2) return 2;
  if (psplit_i_ort_open(NULL, &diag, &ort) != PSPLIT_OK) {
    printf("Bail out! %s\n", diag.message);
    return 1;
  }
  for (unsigned i = 0; i < N_LIES; i++) {
    diag = (psplit_diag){0};
    const psplit_code code = ask(&ort, argv[1], i, &diag);
    const bool good = LIES[i].truth == failure ? is_failure(&diag)
                      : LIES[i].word
                        ? code == PSPLIT_PLUGIN && strstr(diag.message, LIES[i].word) &&
                            strstr(diag.message, "ended twice")
                        : code == PSPLIT_OK;
    check(good, LIES[i].name, diag.message);
  }
  int n_kept = 0, n_refused = 0;
  for (unsigned i = 0; i < N_NOISE; i++) {
    diag = (psplit_diag){0};
    if (ask(&ort, argv[1], N_LIES + i, &diag) == PSPLIT_OK)
      n_kept++;
    else
      n_refused += *diag.message != '\0';
  }
  check(n_kept + n_refused == N_NOISE && n_refused > N_NOISE / 4, "noise", "");
  printf("# noise: %d taken for an answer, %d refused\n1..%d\n", n_kept, n_refused, n_checks);
  psplit_i_ort_close(&ort);
  return n_bad != 0;
}
