/* Devices and links: what a node costs in time, and what it costs to send a tensor.
 *
 * The model is a roofline (Williams, Waterman, Patterson, "Roofline: an insightful visual
 * performance model", CACM 52(4), 2009) with a launch overhead. A node takes
 *
 *   overhead + max(flops / (peak(dtype) * efficiency(class)), bytes / memory bandwidth)
 *
 * All times are integers of nanoseconds, >= 0, and stop at INT64_MAX. */
#ifndef PSPLIT_DEVICES_H
#define PSPLIT_DEVICES_H

#include <psplit/model.h>
#include <psplit/work.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef struct psplit_devices psplit_devices;

/* Maximum number of replicas of a stage. */
enum { PSPLIT_MOST_REPLICAS = 64 };

/* n_devices devices of preset `preset` (NULL: "cpu"), named cpu0, cpu1, ..., with the link between
 * processes of one host. Errors: USAGE (no such preset, n_devices 0), NOMEM. */
PSPLIT_API PSPLIT_MUST_USE psplit_code psplit_devices_preset(const char *preset, uint32_t n_devices,
                                                             psplit_diag *diag,
                                                             psplit_devices **out_devices);

/* Reads a devices file (docs/devices.schema.json) from n_bytes of JSON. Strict: an unknown key, a
 * duplicate or a number out of range is an error that names its path (`devices[1].memory_bytes`).
 * Errors: MALFORMED (not JSON), INVALID, NOMEM. The caller owns *out_devices. */
PSPLIT_API PSPLIT_MUST_USE psplit_code psplit_devices_parse(const char *text, size_t n_bytes,
                                                            psplit_diag *diag,
                                                            psplit_devices **out_devices);

/* Frees; NULL is fine. */
PSPLIT_API void psplit_devices_destroy(psplit_devices *devices);

/* Number of devices; the functions below take 0 .. count - 1. */
PSPLIT_API uint32_t psplit_devices_count(const psplit_devices *devices);
/* Name, owned by `devices`. */
PSPLIT_API const char *psplit_devices_name(const psplit_devices *devices, uint32_t device);
/* Memory available to a stage on the device; UINT64_MAX if the file sets no limit. */
PSPLIT_API uint64_t psplit_devices_memory_bytes(const psplit_devices *devices, uint32_t device);
/* Memory that the device's runtime needs besides weights and tensors (kernel workspaces, code). */
PSPLIT_API uint64_t psplit_devices_workspace_bytes(const psplit_devices *devices, uint32_t device);

/* Configuration of ONNX Runtime for a stage on a device. */
typedef struct psplit_session {
  const char *provider; /* execution provider; NULL: unspecified */
  uint32_t n_provider_options;
  const char *const *provider_keys, *const *provider_values;
  uint32_t n_config; /* entries of the session's configuration */
  const char *const *config_keys, *const *config_values;
  uint32_t n_threads;   /* within an operator; 0: unspecified */
  int32_t optimization; /* level of the graph optimiser; -1: unspecified */
  /* Fail to open the session if the provider leaves a node to the CPU; the error names the node.
   * Exempt are nodes whose names equal one of host_nodes or match it as a shell pattern. */
  bool assert_placement;
  uint32_t n_host_nodes;
  const char *const *host_nodes;
} psplit_session;

/* Session configuration of `device`; lives as long as `devices`. */
PSPLIT_API const psplit_session *psplit_devices_session(const psplit_devices *devices,
                                                        uint32_t device);

/* Time of `work` on `device`, ns >= 0. A lower bound if work->known is false. */
PSPLIT_API int64_t psplit_devices_work_ns(const psplit_devices *devices, uint32_t device,
                                          const psplit_work *work);

/* A directed connection. */
typedef struct psplit_device_link {
  double bytes_per_second; /* 0: no link; INFINITY */
  int64_t latency_ns;      /* >= 0 */
} psplit_device_link;

/* The direct link between two devices, from the file or its default. */
PSPLIT_API psplit_device_link psplit_devices_link(const psplit_devices *devices, uint32_t from,
                                                  uint32_t to);

/* Transfer time of `bytes` from one device to another, ns: latency + bytes / bandwidth. 0 within a
 * device, INT64_MAX if there is no link. */
PSPLIT_API int64_t psplit_devices_transfer_ns(const psplit_devices *devices, uint32_t from,
                                              uint32_t to, uint64_t bytes);

/* Whether sessions of `device` use this execution provider, with or without the suffix
 * "ExecutionProvider", case-insensitively. */
PSPLIT_API bool psplit_devices_run(const psplit_devices *devices, uint32_t device,
                                   const char *provider);

/* Restricts each device that runs `provider` to the operators that a probe of `model` found (JSON
 * of psplit_probe_provider, docs/costs/devices.md; users may have edited it), replacing its own
 * declaration. Errors: MALFORMED, INVALID (an invalid key or value, a probe of another provider or,
 * unless `model` is NULL, of a model with another number of nodes), NOMEM; some of `devices` may
 * have changed then. */
PSPLIT_API PSPLIT_MUST_USE psplit_code psplit_devices_restrict(psplit_devices *devices,
                                                               const char *provider,
                                                               const psplit_model *model,
                                                               const char *text, size_t n_bytes,
                                                               psplit_diag *diag);

/* Names of the built-in presets; NULL past the last. */
PSPLIT_API const char *psplit_device_preset_name(uint32_t index);
/* One line that describes a preset and the source of its numbers; NULL past the last. */
PSPLIT_API const char *psplit_device_preset_about(uint32_t index);

/* Limits the memory of every device to memory_bytes. */
PSPLIT_API void psplit_devices_limit_memory(psplit_devices *devices, uint64_t memory_bytes);

/* n_devices copies of the first of `devices`, with numbers appended to its name, on one host. The
 * caller owns *out_devices. Errors: USAGE (n_devices 0 or above 1024), NOMEM. */
PSPLIT_API PSPLIT_MUST_USE psplit_code psplit_devices_repeat(const psplit_devices *devices,
                                                             uint32_t n_devices, psplit_diag *diag,
                                                             psplit_devices **out_devices);

/* The same devices with the transfer time of a round trip: a tensor there and one of its size back;
 * no link if either direction is missing. Refers to `devices`. The caller owns *out_devices.
 * Errors: NOMEM. */
PSPLIT_API PSPLIT_MUST_USE psplit_code psplit_devices_round_trip(const psplit_devices *devices,
                                                                 psplit_diag *diag,
                                                                 psplit_devices **out_devices);

/* Measures clock rate and memory bandwidth of this machine, with one thread, in about a quarter of
 * a second. The width of its vector unit, if it can be detected, selects the preset that is scaled
 * by the clock rate. Writes a devices file with one device "cpu" (JSON text, malloc'd,
 * NUL-terminated) to *out_text, for psplit_devices_parse; the caller may cache it. Errors:
 * NOMEM. */
PSPLIT_API PSPLIT_MUST_USE psplit_code psplit_devices_calibrate(psplit_diag *diag, char **out_text);

#ifdef __cplusplus
}
#endif
#endif
