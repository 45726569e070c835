/* The options of onnx-pipeline-run that say how ONNX Runtime runs the stages: its sessions. */
#ifndef PSPLIT_TOOLS_ORT_OPTIONS_H
#define PSPLIT_TOOLS_ORT_OPTIONS_H

#include <psplit/run.h>

#include "cli.h"

enum {
  OPT_DEVICES = 4000,
  OPT_PROVIDER,
  OPT_PROVIDER_OPTION,
  OPT_CONFIG,
  OPT_THREADS,
  OPT_LEVEL,
  OPT_ASSERT_PLACEMENT,
  OPT_STAGE_REPLICAS,
  OPT_PROBE,
};

/* Rows of an option table. */
#define ORT_OPTIONS                                                                              \
  {OPT_DEVICES, "devices", "FILE", "take session settings from the \"session\" of each device"}, \
    {OPT_PROVIDER, "provider", "[STAGE=]NAME", "execution provider; default: CPU"},              \
    {OPT_PROVIDER_OPTION, "provider-option", "[STAGE=]KEY=VALUE",                                \
     "an option of the provider (repeatable)"},                                                  \
    {OPT_ASSERT_PLACEMENT, "assert-placement", NULL,                                             \
     "fail if a provider leaves a node of its stage to the CPU"},                                \
    {OPT_PROBE, "probe", "PROVIDER=FILE",                                                        \
     "the file of onnx-pipeline-split --probe: allow shape arithmetic on the CPU"},              \
    {OPT_CONFIG, "session-config", "[STAGE=]KEY=VALUE",                                          \
     "a session configuration entry (repeatable)"},                                              \
  {                                                                                              \
    OPT_THREADS, "threads", "[STAGE=]N", "threads of each stage, or of STAGE; default: 1"        \
  }
#define ORT_REPLICAS_OPTION                                                    \
  {                                                                            \
    OPT_STAGE_REPLICAS, "replicas", "[STAGE=]N",                               \
      "replicas of the stage, each working on its own micro-batch; default: 1" \
  }
#define ORT_LEVEL_OPTION                                  \
  {                                                       \
    OPT_LEVEL, "optimization", "[STAGE=]LEVEL",           \
      "graph optimization level, 0, 1, 2 or 99 (default)" \
  }

typedef struct ort_setting {
  int id;
  uint32_t stage, replica; /* PSPLIT_NONE: all */
  char *key;               /* of KEY=VALUE; allocated */
  const char *value;
  uint32_t number; /* of OPT_THREADS, OPT_LEVEL and OPT_STAGE_REPLICAS */
} ort_setting;

typedef struct ort_settings {
  const char *devices_file;
  uint64_t max_text_bytes; /* of it; 0: the default */
  const char *probe;       /* PROVIDER=FILE; NULL: not given */
  bool assert_placement;   /* providers run all of their stages, or sessions do not open */
  bool no_replicas;        /* whatever is planned */
  bool trains;             /* the default level is 1 then, else 99 */
  psplit_devices *devices;
  ort_setting *list; /* [n_list] */
  size_t n_list;
  uint32_t *n_replicas; /* [n_stages], made by ort_settings_apply, like: */
  psplit_session
    *stages; /* [n_sessions] of stages, or of all replicas where options tell some apart */
  size_t n_sessions;
  const char **texts; /* keys and values that they point to */
} ort_settings;

/* Takes one of these options; false after an error line, or where `id` is none of them. */
bool ort_option(const cli *program, ort_settings *s, int id, const char *argument);

/* Threads and level for all stages, for what has none. */
void ort_settings_all(const ort_settings *s, psplit_session *out);

/* Makes s->stages. What is said for one stage goes before what is said for all, and this before the
 * devices file. Errors: USAGE (no such stage, a device that the file has not), those of reading. */
PSPLIT_MUST_USE psplit_code ort_settings_apply(ort_settings *s,
                                               const psplit_pipeline_info *pipeline,
                                               psplit_diag *diag);
/* The same for a whole model: what is said for all stages. Errors: USAGE (something is said for a
 * stage or a device, of which it has none). */
PSPLIT_MUST_USE psplit_code ort_settings_apply_whole(ort_settings *s, psplit_diag *diag);
/* Refuses an option that is for stages, where a whole model runs. Returns USAGE. */
PSPLIT_MUST_USE psplit_code ort_fail_whole(const char *option, psplit_diag *diag);
/* Whether the output `path` is none of the files of the split in `directory`. Errors: IO, NOMEM. */
PSPLIT_MUST_USE psplit_code ort_check_unread(const char *path, const char *directory,
                                             const psplit_pipeline_info *pipeline,
                                             psplit_diag *diag);
/* Frees what that made, and no more. */
void ort_settings_drop(ort_settings *s);
void ort_settings_fini(ort_settings *s);

#endif
