/* What becomes of a command that a signal is to end: SIGINT, SIGTERM, SIGHUP. Whatever it does
 * then, its exit status is 128 and the number of the signal, and one line says why. */
#ifndef PSPLIT_TOOLS_INTERRUPT_H
#define PSPLIT_TOOLS_INTERRUPT_H

#include <psplit/base.h>

/* From here on such a signal ends the command at once, with status and line: where no work is under
 * way. What cli_next() does first; later calls do nothing. */
void cli_heed_signals(void);
/* Calls `handler` for what users and terminals end programs with; not for a hang-up under nohup. */
void cli_on_interrupt(void (*handler)(int));
/* In such a handler of a program that may wait for what never comes: the process ends within a
 * second, and at once where this is called for the second time, with status 128 +
 * `number`. Calls within 50 ms are one: launchers and terminals tell the same. */
void cli_leave_now(int number);
/* Only the second of these: where what is under way has to end, however long it takes. */
void cli_leave_again(int number);
/* A flag for `cancel` of the library's options: from here on such a signal sets it, and then ends
 * the program as cli_leave_now() says, unless the call ends before. */
const volatile int *cli_cancel(void);
/* Signals end the program at once again, as before; CANCELLED if one came meanwhile. */
PSPLIT_MUST_USE psplit_code cli_cancel_no_more(psplit_diag *diag);
/* The number of the signal that set that flag, or 0. */
int cli_cancelled_by(void);

#endif
