/* Inside of psplit_devices: what the model of devices and the reader of their file share. */
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

/* Links between processes of one host, machines of one rack, and others, where nothing else is
 * said. */
extern const psplit_device_link psplit_i_default_links[PSPLIT_I_N_PLACES];

/* n zeroed devices without links; NULL when out of memory. */
psplit_devices *psplit_i_devices_create(uint32_t n);

/* Whether two devices take the same times and hold as much. */
bool psplit_i_devices_same(const psplit_devices *devices, uint32_t a, uint32_t b);
bool psplit_i_devices_all_same(const psplit_devices *devices);
/* Whether tensors take the same between any two of the first n: from each to those behind it, or
 * either way. O(n^2). */
bool psplit_i_devices_links_alike(const psplit_devices *devices, uint32_t n, bool either_way);
/* Whether they and all links between them are: then no order of them is better than another. */
bool psplit_i_devices_alike(const psplit_devices *devices);

/* n devices, of which i is pick[i] of `devices`, from which the result borrows; one may come more
 * than once. NULL when out of memory. */
psplit_devices *psplit_i_devices_pick(const psplit_devices *devices, const uint32_t *pick,
                                      uint32_t n);

/* Whether it makes no difference which of two devices stands where. O(devices). */
bool psplit_i_devices_swappable(const psplit_devices *devices, uint32_t a, uint32_t b);

/* Gives each pair the one of links[PSPLIT_I_N_PLACES] that their hosts and racks ask for. Devices
 * without a host stand on one host; hosts without a rack in one rack. */
void psplit_i_devices_connect(psplit_devices *devices, const psplit_device_link *links);

/* Time of a node on a device, ns: kernels of ONNX Runtime where the device runs these on a CPU
 * (keeps_copies), else the roofline. Rounded up; not past INT64_MAX. */
int64_t psplit_i_kernel_ns(const psplit_i_device_model *model, const psplit_work *work,
                           const psplit_i_kernel *kernel);

/* Time to move `bytes` over a link, ns: latency + bytes / bandwidth, rounded up; INT64_MAX where
 * there is none. */
int64_t psplit_i_link_ns(const psplit_device_link *link, uint64_t bytes);

#endif
