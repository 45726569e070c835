#include "address.h"

#include <arpa/inet.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cli.h"

/* A numeric address with its port. */
static psplit_code resolve(const char *text, psplit_diag *diag, struct addrinfo **out) {
  const struct addrinfo wanted = {.ai_flags = AI_NUMERICHOST | AI_NUMERICSERV | AI_PASSIVE,
                                  .ai_socktype = SOCK_STREAM};
  const char *colon = strrchr(text, ':');
  char host[64];
  const size_t n = colon ? (size_t)(colon - text) : 0;
  const bool brackets = n > 2 && text[0] == '[' && text[n - 1] == ']';
  const char *port = colon ? colon + 1 : "";
  /* More would be taken modulo 65536. */
  bool good = n && n < sizeof host && *port && strspn(port, "0123456789") == strlen(port) &&
              strtoul(port, NULL, 10) <= UINT16_MAX;
  if (good) {
    snprintf(host, sizeof host, "%.*s", (int)(brackets ? n - 2 : n), text + brackets);
    good = getaddrinfo(host, port, &wanted, out) == 0;
  }
  if (good) return PSPLIT_OK;
  return psplit_diag_fail(diag, PSPLIT_USAGE,
                          "\"%s\" is not ADDRESS:PORT with numbers, such as 127.0.0.1:8000", text);
}

static bool is_loopback(const struct sockaddr *address) {
  if (address->sa_family == AF_INET6)
    return IN6_IS_ADDR_LOOPBACK(&((const struct sockaddr_in6 *)(const void *)address)->sin6_addr);
  const struct sockaddr_in *v4 = (const void *)address;
  return ntohl(v4->sin_addr.s_addr) >> 24 == IN_LOOPBACKNET;
}

psplit_code serve_address_resolve(const char *where, bool admin, psplit_diag *diag,
                                  struct addrinfo **out) {
  struct addrinfo *address = NULL;
  const psplit_code code = resolve(where, diag, &address);
  if (code != PSPLIT_OK) return code;
  if (admin && !is_loopback(address->ai_addr)) {
    freeaddrinfo(address);
    return psplit_diag_fail(
      diag, PSPLIT_USAGE, "%s: the address for reloading must be on the loopback interface", where);
  }
  *out = address;
  return PSPLIT_OK;
}
