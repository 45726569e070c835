/* A checksum of a problem, by which a checker sees that a certificate belongs to it. */
#ifndef PSPLIT_PARTITION_DIGEST_H
#define PSPLIT_PARTITION_DIGEST_H

#include <psplit/partition.h>

/* CRC-32 (ISO 3309, as in zlib), continued from `crc`; 0 to begin with. */
uint32_t psplit_i_crc32(uint32_t crc, const void *bytes, size_t n);

/* CRC-32 of the problem's numbers in decimal, each with a space behind it, in the order that
 * docs/certificates.md gives. Counts of devices, comm and overlap are not among them: programs set
 * those. */
uint32_t psplit_i_problem_digest(const psplit_problem *problem);

#endif
