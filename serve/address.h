/* Addresses to listen at. */
#ifndef PSPLIT_SERVE_ADDRESS_H
#define PSPLIT_SERVE_ADDRESS_H

#include <netdb.h>
#include <psplit/base.h>

/* ADDRESS:PORT in numbers, [ADDRESS]:PORT for IPv6; `admin`: of the loopback. The caller frees
 * *out by freeaddrinfo. Errors: USAGE. */
PSPLIT_MUST_USE psplit_code serve_address_resolve(const char *where, bool admin, psplit_diag *diag,
                                                  struct addrinfo **out);

#endif
