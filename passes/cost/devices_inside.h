/* Inside of psplit_devices: declarations that the model of devices and the reader of their file
 * share. */
#ifndef PSPLIT_PASSES_DEVICES_INSIDE_H
#define PSPLIT_PASSES_DEVICES_INSIDE_H

#include "base.h"
#include "device_presets.h"
#include "work.h"

enum { PSPLIT_I_MAX_DEVICES = 1024, PSPLIT_I_N_PLACES = 3 };

typedef struct psplit_i_device {
  const char *name, *host, *rack;
  psplit_i_device_model model;
  psplit_session session;
} psplit_i_device;

struct psplit_devices {
  uint32_t n;
  psplit_i_device *devices;
  psplit_device_link *links; /* [n * n], from-major */
  psplit_i_arena arena;      /* holds all strings */
};

/* Default links between processes of one host, between machines of one rack, and between other
 * machines. */
extern const psplit_device_link psplit_i_default_links[PSPLIT_I_N_PLACES];

/* n zeroed devices without links; NULL if out of memory. */
psplit_devices *psplit_i_devices_create(uint32_t n);

/* Whether two devices have the same times and memory. */
bool psplit_i_devices_same(const psplit_devices *devices, uint32_t a, uint32_t b);
bool psplit_i_devices_all_same(const psplit_devices *devices);
/* Whether all links between the first n devices are equal: those from each to later ones, or in
 * both directions (either_way). O(n^2). */
bool psplit_i_devices_links_alike(const psplit_devices *devices, uint32_t n, bool either_way);
/* Whether all devices and all links between them are equal, so that their order does not matter. */
bool psplit_i_devices_alike(const psplit_devices *devices);

/* n devices, of which number i is pick[i] of `devices`; a device may be picked more than once. The
 * result borrows from `devices`. NULL if out of memory. */
psplit_devices *psplit_i_devices_pick(const psplit_devices *devices, const uint32_t *pick,
                                      uint32_t n);

/* Whether exchanging two devices makes no difference. O(devices). */
bool psplit_i_devices_swappable(const psplit_devices *devices, uint32_t a, uint32_t b);

/* Gives each pair of devices one of links[PSPLIT_I_N_PLACES], by their hosts and racks. Devices
 * without a host are on one host, and hosts without a rack in one rack. */
void psplit_i_devices_connect(psplit_devices *devices, const psplit_device_link *links);

/* Time of a node on a device, ns: of ONNX Runtime's kernels on a CPU if the device runs these
 * (keeps_copies), else by the roofline. Rounded up; at most INT64_MAX. */
int64_t psplit_i_kernel_ns(const psplit_i_device_model *model, const psplit_work *work,
                           const psplit_i_kernel *kernel);

/* Time to move `bytes` over a link, ns: latency + bytes / bandwidth, rounded up; INT64_MAX if there
 * is no link. */
int64_t psplit_i_link_ns(const psplit_device_link *link, uint64_t bytes);

#endif
