/* What becomes of a command that a signal is to end: SIGINT, SIGTERM, SIGHUP (but under nohup).
 * Whatever it does then, one line says why, and its exit status is 128 and the number of the
 * signal. A second one ends it at once; two within 50 ms are one: launchers and terminals tell the
 * same. */
#ifndef PSPLIT_TOOLS_INTERRUPT_H
#define PSPLIT_TOOLS_INTERRUPT_H

#include <psplit/base.h>

typedef enum cli_ending {
  CLI_ENDS_AT_ONCE, /* no work is under way */
  CLI_ENDS_SOON,    /* the flag is set; what does not heed it is left within the second */
  CLI_ENDS_BEHIND,  /* the flag is set; what ends then takes as long as that takes */
  CLI_ENDS_WHOLE    /* all goes on to its end, and then the status tells */
} cli_ending;

/* The first: what cli_next() does; later calls do nothing. */
void cli_heed_signals(void);
/* From here on; returns the flag, for `cancel` of the library's options. No signal that comes
 * meanwhile is lost; with CLI_ENDS_WHOLE the flag is no longer set by one that came before. */
const volatile int *cli_ends(cli_ending how);
/* Sets the flag as a signal does, but there was none: nobody waits for what is under way. */
void cli_cancel_own(void);
/* CLI_ENDS_AT_ONCE again; CANCELLED if a signal has come. */
PSPLIT_MUST_USE psplit_code cli_cancel_no_more(psplit_diag *diag);
/* The number of the signal that came last, or 0. */
int cli_ended_by(void);
/* The exit status: of a failure behind a signal, that of the signal; with CLI_ENDS_WHOLE of
 * CANCELLED alone. */
int cli_end_status(psplit_code code);

#endif
