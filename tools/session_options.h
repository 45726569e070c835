/* The options of onnx-pipeline-run that say how the sessions of the stages are run. */
#ifndef PSPLIT_TOOLS_SESSION_OPTIONS_H
#define PSPLIT_TOOLS_SESSION_OPTIONS_H

#include "cli.h"
#include "runtime.h"

enum {
  OPT_DEVICES = 4000,
  OPT_PROVIDER,
  OPT_PROVIDER_OPTION,
  OPT_CONFIG,
  OPT_THREADS,
  OPT_LEVEL,
};

/* Rows of an option table. */
#define SESSION_OPTIONS                                                                            \
  {OPT_DEVICES, "devices", "FILE", "devices of the stages, by name: what their \"session\" says"}, \
    {OPT_PROVIDER, "provider", "[STAGE=]NAME", "execution provider; default: CPU"},                \
    {OPT_PROVIDER_OPTION, "provider-option", "[STAGE=]KEY=VALUE",                                  \
     "one of its options (repeatable)"},                                                           \
    {OPT_CONFIG, "session-config", "[STAGE=]KEY=VALUE",                                            \
     "a configuration entry of the sessions (repeatable)"},                                        \
    {OPT_THREADS, "threads", "[STAGE=]N", "in each stage, or in this one; default: 1"}, {          \
    OPT_LEVEL, "optimization", "[STAGE=]LEVEL",                                                    \
      "0, 1, 2 or 99 (default): of ONNX Runtime's graph optimiser"                                 \
  }

typedef struct session_setting {
  int id;
  uint32_t stage; /* PSPLIT_NONE: all */
  char *key;      /* of KEY=VALUE; allocated */
  const char *value;
  uint32_t number; /* of OPT_THREADS and OPT_LEVEL */
} session_setting;

typedef struct session_settings {
  const char *devices_file;
  uint64_t max_text_bytes; /* of it; 0: the default */
  psplit_devices *devices;
  PSPLIT_VEC(session_setting) list;
  psplit_i_session_options *stages; /* [n_stages], made by session_settings_apply */
  const char **texts;               /* keys and values that they point to */
} session_settings;

/* Takes one of these options; false after an error line, or where `id` is none of them. */
bool session_option(const cli *program, session_settings *s, int id, const char *argument);

/* Threads and level for all stages, for what has none. */
void session_settings_all(const session_settings *s, psplit_i_session_options *out);

/* Makes s->stages. What is said for one stage goes before what is said for all, and this before the
 * devices file. Errors: USAGE (no such stage, a device that the file has not), those of reading. */
PSPLIT_MUST_USE psplit_code session_settings_apply(session_settings *s,
                                                   const psplit_i_manifest *manifest,
                                                   psplit_diag *diag);
void session_settings_fini(session_settings *s);

#endif
