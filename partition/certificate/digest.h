/* A checksum of a problem, by which the checker verifies that a certificate belongs to it. */
#ifndef PSPLIT_PARTITION_DIGEST_H
#define PSPLIT_PARTITION_DIGEST_H

#include <psplit/partition.h>

/* CRC-32 (ISO 3309, as in zlib), continued from `crc`, which is 0 at the beginning. */
uint32_t psplit_i_crc32(uint32_t crc, const void *bytes, size_t n);

/* CRC-32 of the problem's numbers in decimal, each followed by a space, in the order of
 * docs/certificates.md. It does not include counts of devices, comm and overlap, which programs
 * set. */
uint32_t psplit_i_problem_digest(const psplit_problem *problem);

#endif
