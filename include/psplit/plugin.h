/* Writing a pass of your own: docs/plugin-abi.md.
 *
 * A plugin is a shared object that exports one function, `psplit_plugin_query`, which returns a
 * description of its passes. The description is data; nothing of the plugin runs before a pipeline
 * names one of its passes. This header is plain C, needs no other header of the library, and a
 * plugin links with nothing: the host hands each pass a table of functions.
 *
 *   cc -shared -fPIC $(pkg-config --cflags psplit) mine.c -o mine.so
 *   onnx-pipeline-split MODEL -k 2 -o DIR --load-pass-plugin ./mine.so \
 *     --passes infer-shapes,cost,mark,attach,fuse,mine,coarsen,partition,replicate */
#ifndef PSPLIT_PLUGIN_H
#define PSPLIT_PLUGIN_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Incremented if the meaning of a field changes. New fields are appended to structs without
 * incrementing it: `struct_size` says how much of a struct the other side knows. */
#define PSPLIT_PLUGIN_ABI 1u

/* The null id. Nodes, values and stages are numbered from 0. */
#define PSPLIT_PLUGIN_NONE UINT32_MAX

/* A plugin built with a sanitizer can only be loaded into a host built with the same one. */
#if defined(__has_feature)
#if __has_feature(address_sanitizer)
#define PSPLIT_PLUGIN_SANITIZER "address"
#elif __has_feature(thread_sanitizer)
#define PSPLIT_PLUGIN_SANITIZER "thread"
#elif __has_feature(memory_sanitizer)
#define PSPLIT_PLUGIN_SANITIZER "memory"
#endif
#endif
#ifndef PSPLIT_PLUGIN_SANITIZER
#if defined(__SANITIZE_ADDRESS__)
#define PSPLIT_PLUGIN_SANITIZER "address"
#elif defined(__SANITIZE_THREAD__)
#define PSPLIT_PLUGIN_SANITIZER "thread"
#else
#define PSPLIT_PLUGIN_SANITIZER "none"
#endif
#endif

#if defined(_WIN32)
#define PSPLIT_PLUGIN_EXPORT __declspec(dllexport)
#else
#define PSPLIT_PLUGIN_EXPORT __attribute__((visibility("default")))
#endif

/* State that a pass works on; valid during its run. */
typedef struct psplit_plugin_planner psplit_plugin_planner;

/* Interface of the host. Returned strings and arrays belong to the host and live until the pass
 * returns. An id out of range yields "", 0, false or NONE, like an absent entity. */
typedef struct psplit_plugin_host {
  size_t struct_size;  /* of the host's table: fields at or beyond it are absent */
  uint32_t abi;        /* PSPLIT_PLUGIN_ABI of the host */
  const char *version; /* of the library, "X.Y.Z" */

  /* The graph: operators and the values between them. */
  uint32_t (*n_nodes)(const psplit_plugin_planner *planner);
  uint32_t (*n_values)(const psplit_plugin_planner *planner);
  uint32_t (*n_stages)(const psplit_plugin_planner *planner);
  const uint32_t *(*topological_order)(
    const psplit_plugin_planner *planner); /* [n_nodes] node ids */
  const char *(*node_name)(const psplit_plugin_planner *planner,
                           uint32_t node); /* "" for most nodes */
  const char *(*node_op_type)(const psplit_plugin_planner *planner, uint32_t node);
  const char *(*node_domain)(const psplit_plugin_planner *planner,
                             uint32_t node); /* "" is the standard's */
  /* Value ids; NONE for an omitted one. Captures are outer values that the node's bodies read. */
  uint32_t (*node_inputs)(const psplit_plugin_planner *planner, uint32_t node,
                          const uint32_t **out);
  uint32_t (*node_outputs)(const psplit_plugin_planner *planner, uint32_t node,
                           const uint32_t **out);
  uint32_t (*node_captures)(const psplit_plugin_planner *planner, uint32_t node,
                            const uint32_t **out);
  /* A constant expression: copied to every stage that needs its result; not a member of any
   * group. */
  bool (*node_is_constant)(const psplit_plugin_planner *planner, uint32_t node);
  const char *(*value_name)(const psplit_plugin_planner *planner, uint32_t value);
  uint32_t (*value_producer)(const psplit_plugin_planner *planner, uint32_t value); /* or NONE */
  uint32_t (*value_consumers)(const psplit_plugin_planner *planner, uint32_t value,
                              const uint32_t **out);
  bool (*value_is_constant)(const psplit_plugin_planner *planner, uint32_t value); /* weights too */
  bool (*value_is_input)(const psplit_plugin_planner *planner, uint32_t value);
  bool (*value_is_output)(const psplit_plugin_planner *planner, uint32_t value);

  /* Attributes by name and type; false (and *out untouched) if the node has no such attribute. */
  bool (*attr_int)(const psplit_plugin_planner *planner, uint32_t node, const char *name,
                   int64_t *out);
  bool (*attr_float)(const psplit_plugin_planner *planner, uint32_t node, const char *name,
                     float *out);
  bool (*attr_string)(const psplit_plugin_planner *planner, uint32_t node, const char *name,
                      const char **out, size_t *out_n); /* not NUL-terminated */
  bool (*attr_ints)(const psplit_plugin_planner *planner, uint32_t node, const char *name,
                    const int64_t **out, size_t *out_n);

  /* Shapes: element type as in TensorProto.DataType (0 unknown), rank (-1 unknown), a dimension (-1
   * for a symbol without a value), and bytes (false if unknown). */
  int32_t (*value_dtype)(const psplit_plugin_planner *planner, uint32_t value);
  int32_t (*value_rank)(const psplit_plugin_planner *planner, uint32_t value);
  int64_t (*value_dim)(const psplit_plugin_planner *planner, uint32_t value, uint32_t axis);
  bool (*value_bytes)(const psplit_plugin_planner *planner, uint32_t value, uint64_t *out);

  /* Costs, on the device of a stage. */
  const char *(*stage_device)(const psplit_plugin_planner *planner, uint32_t stage);
  int64_t (*node_ns)(const psplit_plugin_planner *planner, uint32_t node, uint32_t stage);

  /* Groups: convex sets of nodes that share a stage and run as one. `group` returns false, and
   * changes nothing, if merging the groups of the nodes would violate convexity or combine pins to
   * two stages. `must_group` does not report this: the host rejects the pass after it has run. */
  uint32_t (*group_of)(const psplit_plugin_planner *planner, uint32_t node);
  bool (*group)(psplit_plugin_planner *planner, const uint32_t *nodes, size_t n);
  void (*must_group)(psplit_plugin_planner *planner, const uint32_t *nodes, size_t n);

  /* Requires a common stage without forming a group. */
  void (*keep_together)(psplit_plugin_planner *planner, const uint32_t *nodes, size_t n);
  /* No stage boundary may send the value. */
  void (*forbid_cut)(psplit_plugin_planner *planner, uint32_t value);
  /* Sets the time of a node, >= 0, on devices identical to that of `stage`; NONE: on all. */
  void (*set_cost)(psplit_plugin_planner *planner, uint32_t node, uint32_t stage, int64_t ns);
  /* False if its group is pinned to another stage, and for constants. */
  bool (*pin)(psplit_plugin_planner *planner, uint32_t node, uint32_t stage);
  /* `note` attaches a line to the node, or with PSPLIT_PLUGIN_NONE to the model, for
   * onnx-pipeline-inspect; `say` prints one to the user. Copied. */
  bool (*note)(psplit_plugin_planner *planner, uint32_t node, const char *text);
  void (*say)(psplit_plugin_planner *planner, const char *text);
  /* Reason for the pass to return a non-zero value. Copied. */
  void (*fail)(psplit_plugin_planner *planner, const char *text);
} psplit_plugin_host;

typedef enum psplit_plugin_type {
  PSPLIT_PLUGIN_INT = 0,
  PSPLIT_PLUGIN_REAL = 1,
  PSPLIT_PLUGIN_TEXT = 2,
  PSPLIT_PLUGIN_BOOL = 3
} psplit_plugin_type;

/* An option of a pass: `pass:name=value` in a pipeline. */
typedef struct psplit_plugin_option {
  const char *name;
  int32_t type;         /* psplit_plugin_type */
  const char *fallback; /* default value, as text */
  double low, high;     /* range of a number */
  const char *help;
} psplit_plugin_option;

typedef union psplit_plugin_value {
  int64_t integer;
  double real;
  const char *text;
  bool boolean;
} psplit_plugin_value;

typedef struct psplit_plugin_pass {
  size_t struct_size; /* sizeof(psplit_plugin_pass) */
  const char *name;   /* lower-case letters, digits and '-' */
  const char *help;   /* one line */
  const psplit_plugin_option *options;
  size_t n_options; /* <= 16 */
  /* values[n_options] in the order of `options`. Returns 0; any other value ends the run. */
  int (*run)(const psplit_plugin_host *host, psplit_plugin_planner *planner,
             const psplit_plugin_value *values);
} psplit_plugin_pass;

typedef struct psplit_plugin {
  uint32_t abi;          /* PSPLIT_PLUGIN_ABI */
  size_t struct_size;    /* sizeof(psplit_plugin) */
  const char *sanitizer; /* PSPLIT_PLUGIN_SANITIZER */
  const char *name;
  const char *version;
  const psplit_plugin_pass *const *passes;
  size_t n_passes;
} psplit_plugin;

/* The function that a plugin exports. */
PSPLIT_PLUGIN_EXPORT const psplit_plugin *psplit_plugin_query(void);

/* Defines it for the passes at the given addresses; no semicolon after it. */
#define PSPLIT_PLUGIN_OF(name_, version_, ...)                                \
  const psplit_plugin *psplit_plugin_query(void) {                            \
    static const psplit_plugin_pass *const passes[] = {__VA_ARGS__};          \
    static const psplit_plugin plugin = {                                     \
      PSPLIT_PLUGIN_ABI, sizeof plugin, PSPLIT_PLUGIN_SANITIZER,       name_, \
      version_,          passes,        sizeof passes / sizeof *passes};      \
    return &plugin;                                                           \
  }

#ifdef __cplusplus
}
#endif
#endif
