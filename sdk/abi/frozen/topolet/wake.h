/* Capability "topolet.wake/1" of the host: tick() when the plugin wants it, not only at its interval. */
#ifndef TOPOLET_WAKE_H
#define TOPOLET_WAKE_H

#include <topolet/abi.h>
#include <topolet/tick.h>

#ifdef __cplusplus
extern "C" {
#endif

#define TOPOLET_WAKE_ID "topolet.wake/1"

typedef struct topolet_wake {
  uint32_t struct_size;
  uint32_t reserved;

  /* Asks for tick() of this instance to be called once more, soon: however long its interval is, when
   * TOPOLET_TICK_MIN_MS have passed since its last tick. Requests before that tick begins count as one; one that comes
   * while it runs is for another tick. The next tick after that is due an interval later. In `topolet simulate` soon is
   * within a second of the time that it plays. Has no effect for an instance without topolet.tick/1. Returns
   * TOPOLET_OK; TOPOLET_LATE after destroy(). [any-thread] */
  int32_t (*tick_soon)(const topolet_host* host);
} topolet_wake;

#ifdef __cplusplus
}
#endif

#endif
