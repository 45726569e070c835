/* Why: where two tensors of one type cross, a port that holds the other one is told: nothing else
 * about the files is wrong then, and they run. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
/* cmocka.h needs the four above first. */
#include <cmocka.h>
#include <psplit/verify.h>

#include "edited_two.h"
#include "scratch.h"

static const char TWO[] =
  "<ir_version: 8, opset_import: [\"\": 17]>\n"
  "main (float[2,8] x) => (float[2,8] y) {\n"
  "  [a] a = Neg (x)\n"
  "  [b] b = Tanh (x)\n"
  "  [y] y = Sub (a, b)\n"
  "}\n";

static const char *const PINS[] = {"[ab]=0", "y=1"};

#define IS(code, says, ...)     \
  {                             \
    code, says, { __VA_ARGS__ } \
  }
#define EDIT(file, from, to) \
  { file, from, to, NULL }
/* Two texts of a file change places; neither holds the other. */
#define SWAP(file, one, other) EDIT(file, one, "@"), EDIT(file, other, one), EDIT(file, "@", other)

static const edited_split BY_SEND_AND_RECV[] = {
  IS(PSPLIT_OK, "", EDIT(0, "", "")),
  IS(PSPLIT_MISMATCH, "stage 1: \"a\" does not come out of input \"a.recv0\"",
     SWAP(1, "(\"a.recv0\")", "(\"b.recv0\")")),
  IS(PSPLIT_MISMATCH, "does not come out of input \"a.recv0\"",
     SWAP(MANIFEST, "\"a.recv0\"", "\"b.recv0\"")),
  IS(PSPLIT_MISMATCH, "output \"a.send1\" does not send \"a\" to 1",
     SWAP(0, "\"a.send1\" = ", "\"b.send1\" = ")),
  IS(PSPLIT_MISMATCH, "stage 0: output 0 is \"a.send1\", not \"b.send1\"",
     SWAP(MANIFEST, "\"a.send1\"", "\"b.send1\"")),
  IS(PSPLIT_MISMATCH, "", SWAP(0, "8]> (a)", "8]> (b)")),
  IS(PSPLIT_MISMATCH, "", SWAP(1, "a = psplit.Recv", "b = psplit.Recv")),
  IS(PSPLIT_MISMATCH, "", SWAP(0, "tag = 0", "tag = 1")),
  IS(PSPLIT_MISMATCH, "", SWAP(1, "tag = 0", "tag = 1")),
  IS(PSPLIT_MISMATCH, "", SWAP(MANIFEST, "\"tag\": 0", "\"tag\": 1")),
};

static const edited_split BY_NAME[] = {
  IS(PSPLIT_OK, "", EDIT(0, "", "")),
  IS(PSPLIT_MISMATCH, "",
     SWAP(MANIFEST, "{\"name\": \"a\", \"tensor\": \"a\", \"to\"",
          "{\"name\": \"b\", \"tensor\": \"b\", \"to\"")),
  IS(PSPLIT_MISMATCH, "",
     EDIT(MANIFEST, "{\"name\": \"a\", \"tensor\": \"a\", \"from\"",
          "{\"name\": \"b\", \"tensor\": \"a\", \"@\""),
     EDIT(MANIFEST, "{\"name\": \"b\", \"tensor\": \"b\", \"from\"",
          "{\"name\": \"a\", \"tensor\": \"b\", \"from\""),
     EDIT(MANIFEST, "\"@\"", "\"from\"")),
  IS(PSPLIT_MISMATCH, "", SWAP(0, "Neg", "Tanh")),
};

static void over_send_and_recv(void **state) {
  (void)state;
  split_in_two(TWO, PINS, 2, PSPLIT_BOUNDARY_SENDRECV);
  each_is_told(BY_SEND_AND_RECV, sizeof BY_SEND_AND_RECV / sizeof *BY_SEND_AND_RECV, true);
  forget();
}

static void by_name(void **state) {
  (void)state;
  split_in_two(TWO, PINS, 2, PSPLIT_BOUNDARY_IO);
  each_is_told(BY_NAME, sizeof BY_NAME / sizeof *BY_NAME, true);
  forget();
}

int main(void) {
#define TEST(name) cmocka_unit_test_setup_teardown(name, enter_scratch, leave_scratch)
  const struct CMUnitTest tests[] = {TEST(over_send_and_recv), TEST(by_name)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
