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

/* Devices that compute a stage, at most: its replicas. */
enum { PSPLIT_MOST_REPLICAS = 64 };

/* n_devices devices of preset `preset` (NULL: "cpu"), named cpu0, cpu1, ..., joined by the link
 * that stands between processes of one host.
 * Errors: USAGE (no such preset, n_devices 0), NOMEM. */
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

/* How many there are; those of the functions below are 0 .. count - 1. */
PSPLIT_API uint32_t psplit_devices_count(const psplit_devices *devices);
/* Name, owned by `devices`. */
PSPLIT_API const char *psplit_devices_name(const psplit_devices *devices, uint32_t device);
/* Memory the device offers to a stage; UINT64_MAX where the file sets no limit. */
PSPLIT_API uint64_t psplit_devices_memory_bytes(const psplit_devices *devices, uint32_t device);
/* Memory that the device's runtime needs besides weights and tensors (kernel workspaces, code). */
PSPLIT_API uint64_t psplit_devices_workspace_bytes(const psplit_devices *devices, uint32_t device);

/* How ONNX Runtime is to run a stage on a device. */
typedef struct psplit_session {
  const char *provider; /* execution provider; NULL: not said */
  uint32_t n_provider_options;
  const char *const *provider_keys, *const *provider_values;
  uint32_t n_config; /* entries of the session's configuration */
  const char *const *config_keys, *const *config_values;
  uint32_t n_threads;   /* within an operator; 0: not said */
  int32_t optimization; /* level of the graph optimiser; -1: not said */
  /* Where the provider leaves a node to the CPU, the session does not open, and the error names the
   * node; but for nodes whose names one of host_nodes is, or matches as a shell-style pattern. */
  bool assert_placement;
  uint32_t n_host_nodes;
  const char *const *host_nodes;
} psplit_session;

/* What the file says of sessions on `device`; lives as long as `devices`. */
PSPLIT_API const psplit_session *psplit_devices_session(const psplit_devices *devices,
                                                        uint32_t device);

/* Time of `work` on `device`, ns >= 0. Where work->known is false it is a lower bound. */
PSPLIT_API int64_t psplit_devices_work_ns(const psplit_devices *devices, uint32_t device,
                                          const psplit_work *work);

/* A directed connection. */
typedef struct psplit_device_link {
  double bytes_per_second; /* 0: there is no link; INFINITY between a device and itself */
  int64_t latency_ns;      /* >= 0 */
} psplit_device_link;

/* The connection that the file, or its default, gives two devices, not a way over others. */
PSPLIT_API psplit_device_link psplit_devices_link(const psplit_devices *devices, uint32_t from,
                                                  uint32_t to);

/* Time to move `bytes` from one device to another, ns: latency + bytes / bandwidth. 0 within one,
 * INT64_MAX where there is no link. */
PSPLIT_API int64_t psplit_devices_transfer_ns(const psplit_devices *devices, uint32_t from,
                                              uint32_t to, uint64_t bytes);

/* Whether the sessions of `device` are of this execution provider, with or without
 * "ExecutionProvider" behind its name, in letters of either case. */
PSPLIT_API bool psplit_devices_run(const psplit_devices *devices, uint32_t device,
                                   const char *provider);

/* Lets each device that runs `provider` support what a probe of `model` found (JSON text as
 * psplit_probe_provider gives it, docs/costs/devices.md; users may have edited it), in place of
 * what it says of itself. Errors: MALFORMED, INVALID (a key or a value that is none, or what was
 * asked about another provider or, unless `model` is NULL, a model with another number of nodes),
 * NOMEM; of `devices` some may have changed then. */
PSPLIT_API PSPLIT_MUST_USE psplit_code psplit_devices_restrict(psplit_devices *devices,
                                                               const char *provider,
                                                               const psplit_model *model,
                                                               const char *text, size_t n_bytes,
                                                               psplit_diag *diag);

/* Names of the built-in presets; NULL past the last. */
PSPLIT_API const char *psplit_device_preset_name(uint32_t index);
/* One line about a preset: what it is and where its numbers come from; NULL past the last. */
PSPLIT_API const char *psplit_device_preset_about(uint32_t index);

/* Lets every device offer a stage at most so much memory, whatever it has. */
PSPLIT_API void psplit_devices_limit_memory(psplit_devices *devices, uint64_t memory_bytes);

/* n_devices copies of the first of `devices`, named as it is with a number behind, on one host. The
 * caller owns *out_devices. Errors: USAGE (n_devices 0 or above 1024), NOMEM. */
PSPLIT_API PSPLIT_MUST_USE psplit_code psplit_devices_repeat(const psplit_devices *devices,
                                                             uint32_t n_devices, psplit_diag *diag,
                                                             psplit_devices **out_devices);

/* The same devices, between which a tensor takes as long as it and another of its size on the way
 * back; there is no link where one of the two is missing. Borrows from `devices`. The caller owns
 * *out_devices. Errors: NOMEM. */
PSPLIT_API PSPLIT_MUST_USE psplit_code psplit_devices_round_trip(const psplit_devices *devices,
                                                                 psplit_diag *diag,
                                                                 psplit_devices **out_devices);

/* Measures this machine in about a quarter of a second with one thread: its clock and its memory
 * bandwidth; the width of its vector unit, where the machine tells it, chooses the preset that the
 * clock scales. Writes a devices file of one device "cpu" (JSON text, malloc'd, NUL-terminated) to
 * *out_text, for psplit_devices_parse; the caller may cache it. Errors: NOMEM. */
PSPLIT_API PSPLIT_MUST_USE psplit_code psplit_devices_calibrate(psplit_diag *diag, char **out_text);

#ifdef __cplusplus
}
#endif
#endif
