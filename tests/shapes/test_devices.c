/* Devices: what a file may say, and times that follow from it. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
/* cmocka.h needs the four above first. */
#include <cmocka.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#include <psplit/devices.h>

static psplit_devices *parsed(const char *text) {
  psplit_diag diag = {0};
  psplit_devices *devices = NULL;
  if (psplit_devices_parse(text, strlen(text), &diag, &devices) != PSPLIT_OK)
    fail_msg("%s", diag.message);
  return devices;
}

static void times_follow_the_roofline(void **state) {
  (void)state;
  psplit_devices *devices = parsed(
    "{\"devices\": [{\"name\": \"a\", \"flops_per_second\": {\"float32\": 1e9, \"int8\": 4e9},"
    " \"memory_bandwidth\": 1e9, \"memory_bytes\": 1000, \"overhead_ns\": 7,"
    " \"efficiency\": {\"conv\": 0.5}}, {\"name\": \"b\", \"preset\": \"nvidia-a100-80gb\"}],"
    " \"links\": [{\"from\": \"a\", \"to\": \"b\", \"bytes_per_second\": 1e9, \"latency_ns\": "
    "100}]}");
  psplit_work work = {.flops = 1000,
                      .bytes_read = 100,
                      .launches = 1,
                      .data_type = 1,
                      .op_class = PSPLIT_CLASS_CONV,
                      .known = true};
  assert_int_equal(psplit_devices_work_ns(devices, 0, &work), 7 + 2000);
  work.data_type = 3;
  assert_int_equal(psplit_devices_work_ns(devices, 0, &work), 7 + 500);
  work.bytes_written = 3900; /* now bytes are what takes time */
  assert_int_equal(psplit_devices_work_ns(devices, 0, &work), 7 + 4000);
  work = (psplit_work){.op_class = PSPLIT_CLASS_VIEW, .known = true};
  assert_int_equal(psplit_devices_work_ns(devices, 0, &work), 0);
  work = (psplit_work){.flops = UINT64_MAX, .bytes_read = UINT64_MAX, .launches = UINT32_MAX};
  assert_int_equal(psplit_devices_work_ns(devices, 0, &work), INT64_MAX);
  assert_int_equal(psplit_devices_transfer_ns(devices, 0, 1, 50), 150);
  assert_int_equal(psplit_devices_transfer_ns(devices, 1, 0, 50), 150);
  assert_int_equal(psplit_devices_transfer_ns(devices, 1, 1, 50), 0);
  assert_int_equal(psplit_devices_memory_bytes(devices, 0), 1000);
  assert_string_equal(psplit_devices_name(devices, 1), "b");
  psplit_devices_destroy(devices);
}

static void topology_goes_by_host_and_rack(void **state) {
  (void)state;
  psplit_devices *devices = parsed(
    "{\"devices\": ["
    "{\"name\": \"a\", \"preset\": \"cpu\", \"host\": \"h1\", \"rack\": \"r1\"},"
    "{\"name\": \"b\", \"preset\": \"cpu\", \"host\": \"h1\", \"rack\": \"r1\"},"
    "{\"name\": \"c\", \"preset\": \"cpu\", \"host\": \"h2\", \"rack\": \"r1\"},"
    "{\"name\": \"d\", \"preset\": \"cpu\", \"host\": \"h3\", \"rack\": \"r2\"}],"
    "\"topology\": {\"same_host\": {\"latency_ns\": 1}, \"same_rack\": {\"latency_ns\": 2},"
    "\"anywhere\": {\"latency_ns\": 3}}}");
  const int expected[4][4] = {{0, 1, 2, 3}, {1, 0, 2, 3}, {2, 2, 0, 3}, {3, 3, 3, 0}};
  for (uint32_t from = 0; from < 4; from++)
    for (uint32_t to = 0; to < 4; to++)
      assert_int_equal(psplit_devices_link(devices, from, to).latency_ns, expected[from][to]);
  psplit_devices_destroy(devices);
}

static void no_bandwidth_is_no_link(void **state) {
  (void)state;
  psplit_devices *devices = parsed(
    "{\"devices\": [{\"name\": \"a\", \"preset\": \"cpu\"}, {\"name\": \"b\", \"preset\": "
    "\"cpu\"}],"
    "\"topology\": {\"same_host\": {\"bytes_per_second\": 0}},"
    "\"links\": [{\"from\": \"a\", \"to\": \"b\", \"bytes_per_second\": 1e9, \"latency_ns\": 5,"
    " \"one_way\": true}]}");
  assert_int_equal(psplit_devices_transfer_ns(devices, 0, 1, 10), 15);
  assert_int_equal(psplit_devices_transfer_ns(devices, 1, 0, 0), INT64_MAX);
  assert_true(psplit_devices_link(devices, 1, 0).bytes_per_second <= 0);
  psplit_devices_destroy(devices);
}

static void errors_name_the_place(void **state) {
  (void)state;
#define DEVICE "\"name\": \"a\", \"preset\": \"cpu\""
  static const struct {
    const char *text, *part;
    psplit_code code;
  } cases[] = {
    {"", "it is empty", PSPLIT_MALFORMED},
    {"[", "line 1", PSPLIT_MALFORMED},
    {"[]", "file: must be an object", PSPLIT_INVALID},
    {"{}", "devices: is missing", PSPLIT_INVALID},
    {"{\"devices\": []}", "devices: must not be empty", PSPLIT_INVALID},
    {"{\"devices\": [{}]}", "devices[0].name: is missing", PSPLIT_INVALID},
    {"{\"devices\": [{\"name\": \"a\"}]}", "devices[0].flops_per_second.float32: is missing",
     PSPLIT_INVALID},
    {"{\"devices\": [{" DEVICE "}, {" DEVICE "}]}", "devices[1].name: is the name of an earlier",
     PSPLIT_INVALID},
    {"{\"devices\": [{" DEVICE ", \"memory_bytes\": -1}]}", "devices[0].memory_bytes: must be",
     PSPLIT_INVALID},
    {"{\"devices\": [{" DEVICE ", \"memory_bytes\": 1.5}]}", "devices[0].memory_bytes: must be",
     PSPLIT_INVALID},
    {"{\"devices\": [{" DEVICE ", \"memory\": 1}]}", "devices[0].memory: unknown key",
     PSPLIT_INVALID},
    {"{\"devices\": [{" DEVICE ", \"name\": \"b\"}]}", "line 1", PSPLIT_MALFORMED},
    {"{\"devices\": [{\"name\": \"a\", \"preset\": \"no\"}]}",
     "devices[0].preset: is not a known preset", PSPLIT_INVALID},
    {"{\"presets\": {\"p\": {\"name\": \"x\"}}, \"devices\": [{" DEVICE "}]}",
     "presets.p.name: unknown key", PSPLIT_INVALID},
    {"{\"presets\": {\"p\": {}}, \"devices\": [{" DEVICE "}]}",
     "presets.p.flops_per_second.float32: is missing", PSPLIT_INVALID},
    {"{\"presets\": [], \"devices\": [{" DEVICE "}]}", "presets: must be an object",
     PSPLIT_INVALID},
    {"{\"devices\": [{" DEVICE ", \"keeps_copies\": 1}]}", "devices[0].keeps_copies: must be",
     PSPLIT_INVALID},
    {"{\"devices\": [{" DEVICE ", \"efficiency\": {\"conv\": 1.5}}]}",
     "devices[0].efficiency.conv: must be a number above 0 up to 1", PSPLIT_INVALID},
    {"{\"devices\": [{" DEVICE ", \"flops_per_second\": {\"float32\": 0}}]}",
     "devices[0].flops_per_second.float32: must be", PSPLIT_INVALID},
    {"{\"devices\": [{" DEVICE ", \"product_flops_per_second\": 1e12}]}",
     "devices[0].product_flops_per_second: must be an object of rates by data type, such as "
     "{\"float32\": 1e12}, not 1e+12",
     PSPLIT_INVALID},
    {"{\"devices\": [{" DEVICE "}], \"links\": [{\"from\": \"a\", \"to\": \"x\"}]}",
     "links[0].to: must be the name of one", PSPLIT_INVALID},
    {"{\"devices\": [{" DEVICE "}], \"links\": [{\"from\": \"a\", \"to\": \"a\"}]}",
     "links[0]: joins a device to itself", PSPLIT_INVALID},
    {"{\"devices\": [{" DEVICE "}], \"topology\": {\"anywhere\": {\"bytes_per_second\": -1}}}",
     "topology.anywhere.bytes_per_second: must be a number from 0", PSPLIT_INVALID},
    {"{\"devices\": [{" DEVICE "}], \"topology\": {\"near\": {}}}", "topology.near: unknown key",
     PSPLIT_INVALID},
    {"{\"devices\": [{" DEVICE "}], \"version\": 2}", "version: must be 1", PSPLIT_INVALID},
  };
  for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
    psplit_diag diag = {0};
    psplit_devices *devices = NULL;
    const psplit_code code =
      psplit_devices_parse(cases[i].text, strlen(cases[i].text), &diag, &devices);
    if (code != cases[i].code || !strstr(diag.message, cases[i].part))
      fail_msg("%s gave %s: %s", cases[i].text, psplit_code_name(code), diag.message);
    assert_null(devices);
  }
}

/* Tensor cores do products, and nothing else; float32 ones too, where they have TF32. */
static void products_have_peaks_of_their_own(void **state) {
  (void)state;
  psplit_devices *devices = parsed(
    "{\"presets\": {\"mine\": {\"preset\": \"nvidia-a100-80gb\", \"overhead_ns\": 0},"
    " \"next\": {\"preset\": \"mine\", \"flops_per_second\": {\"float32\": 1e12},"
    " \"product_flops_per_second\": {\"float16\": 4e12}}},"
    " \"devices\": [{\"name\": \"a\", \"preset\": \"mine\", \"efficiency\": {\"matmul\": 1,"
    " \"elementwise\": 1}}, {\"name\": \"b\", \"preset\": \"next\", \"efficiency\":"
    " {\"matmul\": 1, \"elementwise\": 1}}]}");
  psplit_work work = {.flops = UINT64_C(312000000000),
                      .launches = 1,
                      .data_type = 1,
                      .op_class = PSPLIT_CLASS_MATMUL};
  assert_int_equal(psplit_devices_work_ns(devices, 0, &work), 2000000);   /* TF32: 156 T */
  assert_int_equal(psplit_devices_work_ns(devices, 1, &work), 312000000); /* as the file says */
  work.data_type = 10;
  assert_int_equal(psplit_devices_work_ns(devices, 0, &work), 1000000);
  assert_int_equal(psplit_devices_work_ns(devices, 1, &work), 78000000);
  work.op_class = PSPLIT_CLASS_ELEMENTWISE;
  assert_int_equal(psplit_devices_work_ns(devices, 0, &work), 16000000); /* 19.5 T */
  assert_int_equal(psplit_devices_work_ns(devices, 1, &work), 312000000);
  psplit_devices_destroy(devices);
}

static void presets_are_usable(void **state) {
  (void)state;
  uint32_t n = 0;
  for (const char *name; (name = psplit_device_preset_name(n)); n++) {
    psplit_diag diag = {0};
    psplit_devices *devices;
    assert_int_equal(psplit_devices_preset(name, 2, &diag, &devices), PSPLIT_OK);
    assert_non_null(psplit_device_preset_about(n));
    const psplit_work work = {.flops = 1000000, .bytes_read = 1000000, .launches = 1};
    for (int type = 0; type < 30; type++) {
      psplit_work typed = work;
      typed.data_type = type;
      const int64_t ns = psplit_devices_work_ns(devices, 1, &typed);
      assert_true(ns > 0 && ns < 1000000000);
    }
    for (int product = 0; product < 2; product++) { /* two bytes are as fast in either form */
      psplit_work half = {.flops = UINT64_C(1000000000000), .launches = 1, .data_type = 10};
      half.op_class = product ? PSPLIT_CLASS_MATMUL : PSPLIT_CLASS_ELEMENTWISE;
      const int64_t ns = psplit_devices_work_ns(devices, 1, &half);
      half.data_type = 16;
      assert_int_equal(psplit_devices_work_ns(devices, 1, &half), ns);
    }
    psplit_devices_destroy(devices);
  }
  assert_true(n > 5);
  psplit_diag diag = {0};
  psplit_devices *devices = NULL;
  assert_int_equal(psplit_devices_preset("none", 1, &diag, &devices), PSPLIT_USAGE);
  assert_int_equal(psplit_devices_preset(NULL, 0, &diag, &devices), PSPLIT_USAGE);
  assert_int_equal(psplit_devices_preset(NULL, 3, &diag, &devices), PSPLIT_OK);
  assert_string_equal(psplit_devices_name(devices, 2), "cpu2");
  psplit_devices_destroy(devices);
}

static void calibration_is_a_devices_file(void **state) {
  (void)state;
  psplit_diag diag = {0};
  char *text;
  assert_int_equal(psplit_devices_calibrate(&diag, &text), PSPLIT_OK);
  psplit_devices *one = parsed(text), *three = NULL;
  assert_int_equal(psplit_devices_count(one), 1);
  assert_int_equal(psplit_devices_repeat(one, 3, &diag, &three), PSPLIT_OK);
  assert_int_equal(psplit_devices_count(three), 3);
  assert_string_equal(psplit_devices_name(three, 2), "cpu2");
  assert_true(psplit_devices_transfer_ns(three, 0, 2, 1 << 20) > 0);
  psplit_devices_destroy(three);
  psplit_devices_destroy(one);
  free(text);
}

static void *spin(void *user) {
  atomic_bool *stop = user;
  while (!atomic_load(stop)) {
  }
  return NULL;
}

/* A machine's rate, beside threads that never rest. */
static double calibrated(int n_others) {
  enum { MOST_OTHERS = 16 };
  psplit_diag diag = {0};
  char *text;
  pthread_t others[MOST_OTHERS];
  atomic_bool stop = false;
  assert_true(n_others <= MOST_OTHERS);
  for (int i = 0; i < n_others; i++)
    assert_int_equal(pthread_create(&others[i], NULL, spin, &stop), 0);
  const psplit_code code = psplit_devices_calibrate(&diag, &text);
  atomic_store(&stop, true);
  for (int i = 0; i < n_others; i++) pthread_join(others[i], NULL);
  assert_int_equal(code, PSPLIT_OK);
  const char *at = strstr(text, "\"float32\":");
  assert_non_null(at);
  const double rate = strtod(at + strlen("\"float32\":"), NULL);
  assert_true(rate > 0);
  free(text);
  return rate;
}

/* What a machine can do does not depend on who else is at work. Its clock does, and where cores
 * share their units, others take some of them: one of a few tries has to show it. */
static void calibration_does_not_mind_others(void **state) {
  enum { MOST_TRIES = 5, N_OTHERS = 16 };
  (void)state;
  for (int tries = 1;; tries++) {
    const double alone = calibrated(0), beside = calibrated(N_OTHERS);
    if (beside >= 0.6 * alone && beside <= 1.7 * alone) return;
    if (tries == MOST_TRIES) fail_msg("%g alone, %g beside others", alone, beside);
  }
}

int main(void) {
  const struct CMUnitTest tests[] = {
    cmocka_unit_test(times_follow_the_roofline),
    cmocka_unit_test(topology_goes_by_host_and_rack),
    cmocka_unit_test(no_bandwidth_is_no_link),
    cmocka_unit_test(errors_name_the_place),
    cmocka_unit_test(products_have_peaks_of_their_own),
    cmocka_unit_test(presets_are_usable),
    cmocka_unit_test(calibration_is_a_devices_file),
    cmocka_unit_test(calibration_does_not_mind_others),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
