/* One source, many plugins, each odd in one way: -DCASE_... picks it. plugins.py says what the host
 * must answer to each. */
#include <psplit/plugin.h>

#define STRING_(text) #text
#define STRING(text) STRING_(text)

#ifdef CASE_NO_LIST
enum { HAS_LIST = 0 };
#else
enum { HAS_LIST = 1 };
#endif
#ifdef CASE_RETURNS_NULL
enum { IS_THERE = 0 };
#else
enum { IS_THERE = 1 };
#endif

#ifndef PASS_NAME
#define PASS_NAME odd
#endif

#if !defined(CASE_NO_RUN)
static int run(const psplit_plugin_host *host, psplit_plugin_planner *planner,
               const psplit_plugin_value *values) {
  (void)host;
  (void)values;
  (void)planner;
#if defined(CASE_TEARS)
  const uint32_t ends[] = {0, host->n_nodes(planner) - 1};
  host->must_group(planner, ends, 2);
  if (host->group(planner, ends, 2)) return 9; /* it knows better */
#elif defined(CASE_FAILS)
  host->fail(planner, "the moon is\nfull");
  return 3;
#elif defined(CASE_WILD)
  /* Ids out of range, everywhere. */
  const uint32_t *ids;
  const uint32_t bad[] = {UINT32_MAX, 1u << 30, host->n_nodes(planner)};
  int64_t number = 7;
  for (int i = 0; i < 3; i++) {
    if (*host->node_name(planner, bad[i]) || host->node_inputs(planner, bad[i], &ids) ||
        host->node_outputs(planner, bad[i], &ids) || *host->stage_device(planner, bad[i]) ||
        host->attr_int(planner, bad[i], "axis", &number) || number != 7 ||
        host->node_ns(planner, bad[i], 0) ||
        host->group_of(planner, bad[i]) != PSPLIT_PLUGIN_NONE || host->pin(planner, bad[i], 0) ||
        host->pin(planner, 0, bad[i]) ||
        (bad[i] != PSPLIT_PLUGIN_NONE && host->note(planner, bad[i], "no")))
      return 1;
    host->set_cost(planner, bad[i], 0, 5);
    host->set_cost(planner, 0, bad[i] == UINT32_MAX ? 0 : bad[i], -5);
  }
  host->keep_together(planner, bad, 3);
  host->must_group(planner, bad, 3);
  host->forbid_cut(planner, UINT32_MAX);
  if (*host->value_name(planner, UINT32_MAX) || host->value_consumers(planner, UINT32_MAX, &ids) ||
      host->value_dim(planner, UINT32_MAX, 0) != -1 || host->value_rank(planner, UINT32_MAX) != -1)
    return 2;
#elif defined(CASE_PINS)
  for (uint32_t n = 0; n < host->n_nodes(planner); n++)
    if (!host->pin(planner, n, n < 2 ? 0 : 1)) return 1;
#elif defined(CASE_NOTES)
  if (!host->note(planner, 2, "slow on Tuesdays, </script><b>always</b>") ||
      !host->note(planner, PSPLIT_PLUGIN_NONE, "two\nlines") || host->note(planner, 2, NULL))
    return 1;
#elif defined(CASE_FORBIDS)
  for (uint32_t v = 0; v < host->n_values(planner); v++) host->forbid_cut(planner, v);
#else
  if (host->abi != PSPLIT_PLUGIN_ABI || host->struct_size < sizeof *host) return 1;
#endif
  return 0;
}
#endif

#if defined(CASE_BAD_DEFAULT)
static const psplit_plugin_option OPTIONS[] = {{"n", PSPLIT_PLUGIN_INT, "20", 0, 10, "a number"}};
#elif defined(CASE_HALF_OPTION)
static const psplit_plugin_option OPTIONS[] = {{NULL, PSPLIT_PLUGIN_INT, "2", 0, 10, "a number"}};
#elif defined(CASE_NO_FALLBACK)
static const psplit_plugin_option OPTIONS[] = {{"n", PSPLIT_PLUGIN_INT, NULL, 0, 10, "a number"}};
#elif defined(CASE_OPTION_TYPE)
static const psplit_plugin_option OPTIONS[] = {{"n", 4, "2", 0, 10, "a number"}};
#endif

/* What a later version of the header may look like. */
typedef struct longer_pass {
  psplit_plugin_pass now;
  void *later;
} longer_pass;

static const longer_pass PASS = {
  .now =
    {
#if defined(CASE_SHORT_PASS)
      .struct_size = offsetof(psplit_plugin_pass, run),
#elif defined(CASE_LONGER) || defined(CASE_FUTURE)
      .struct_size = sizeof PASS,
#else
      .struct_size = sizeof(psplit_plugin_pass),
#endif
#if defined(CASE_ODD_NAME)
      .name = "odd_name",
#elif !defined(CASE_NULL_NAME)
      .name = STRING(PASS_NAME),
#endif
      .help = "an odd pass",
#if defined(CASE_BAD_DEFAULT) || defined(CASE_HALF_OPTION) || defined(CASE_NO_FALLBACK) || \
  defined(CASE_OPTION_TYPE)
      .options = OPTIONS,
      .n_options = 1,
#elif defined(CASE_MANY_OPTIONS)
      .n_options = 17,
#elif defined(CASE_NO_OPTIONS)
      .n_options = 1,
#endif
#if !defined(CASE_NO_RUN)
      .run = run,
#endif
    },
#if defined(CASE_FUTURE)
  .later = (void *)&PASS,
#endif
};

#if defined(CASE_NULL_PASS)
static const psplit_plugin_pass *const PASSES[] = {NULL, &PASS.now};
#else
static const psplit_plugin_pass *const PASSES[] = {&PASS.now, &PASS.now};
#endif

static const struct longer_plugin {
  psplit_plugin now;
  void *later;
} LONGER = {
  .now =
    {
#if defined(CASE_OLDER_ABI)
      .abi = PSPLIT_PLUGIN_ABI - 1,
#elif defined(CASE_NEWER_ABI)
      .abi = PSPLIT_PLUGIN_ABI + 1,
#else
      .abi = PSPLIT_PLUGIN_ABI,
#endif
#if defined(CASE_SHORT)
      .struct_size = offsetof(psplit_plugin, passes),
#elif defined(CASE_FUTURE_PLUGIN)
      .struct_size = sizeof LONGER,
#else
      .struct_size = sizeof(psplit_plugin),
#endif
#if defined(CASE_SANITIZED)
      .sanitizer = "other",
#else
      .sanitizer = PSPLIT_PLUGIN_SANITIZER,
#endif
      .name = "odd",
      .version = "1",
      .passes = HAS_LIST ? PASSES : NULL,
#if defined(CASE_TWICE)
      .n_passes = 2,
#elif defined(CASE_NO_PASSES)
      .n_passes = 0,
#elif defined(CASE_MANY_PASSES)
      .n_passes = 257,
#else
      .n_passes = 1,
#endif
    },
#if defined(CASE_FUTURE_PLUGIN)
  .later = (void *)&LONGER,
#endif
};

#if defined(CASE_NO_SYMBOL)
PSPLIT_PLUGIN_EXPORT const psplit_plugin *another_name(void);
const psplit_plugin *another_name(void) { return &LONGER.now; }
#else
const psplit_plugin *psplit_plugin_query(void) { return IS_THERE ? &LONGER.now : NULL; }
#endif
