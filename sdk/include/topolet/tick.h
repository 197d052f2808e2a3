/* Capability "topolet.tick/1" of a plugin: it is called periodically and may ask for containers to be placed again. */
#ifndef TOPOLET_TICK_H
#define TOPOLET_TICK_H

#include <topolet/abi.h>

#ifdef __cplusplus
extern "C" {
#endif

#define TOPOLET_TICK_ID "topolet.tick/1"

/* Bounds of topolet_tick.interval_ms: a tenth of a second to a day. */
#define TOPOLET_TICK_MIN_MS 100u
#define TOPOLET_TICK_MAX_MS 86400000u

typedef struct topolet_tick_request {
  uint32_t struct_size;
  uint32_t reserved;
  uint64_t now_ms;                  /* of a monotonic clock that begins anywhere, also after a restart */
  const topolet_topology* topology; /* borrowed for the call, as is this struct */
  const topolet_ledger* ledger;     /* borrowed for the call */
  const topolet_load* load;         /* borrowed for the call; null: nothing is measured */
  int64_t unix_ms; /* of the wall clock, since 1970 in UTC, which somebody may set; a plugin needs no other clock */
} topolet_tick_request;

#define TOPOLET_REPLACE_OTHER_NODES 1u /* it may leave the nodes that it is on */
#define TOPOLET_REPLACE_NOW 2u         /* at once, not when the host next finds time to move containers */

/* Where tick() puts its requests. Owned by the host. Outside the call and its thread its functions do
 * nothing and return TOPOLET_LATE. */
typedef struct topolet_tick_sink topolet_tick_sink;
struct topolet_tick_sink {
  uint32_t struct_size;
  uint32_t reserved;
  void* context; /* the host's own */

  /* Asks for the container at this position of ledger->entries to be placed again, once a tick. Without
   * TOPOLET_REPLACE_OTHER_NODES in `flags` it stays inside the nodes it is on. The request is not binding: all plugins
   * are asked again, and the container stays where it is unless they choose another place. `reason` is for people; it
   * is copied, and cut beyond 1,024 bytes. Returns TOPOLET_OK; TOPOLET_UNKNOWN (no such entry, or one that topolet does
   * not place), TOPOLET_DUPLICATE or TOPOLET_INVALID for a wrong request, which is dropped while the others stand;
   * TOPOLET_UNSUPPORTED for a flag that the host does not know; TOPOLET_LATE when the host has abandoned the call.
   * [event] */
  int32_t (*replace)(const topolet_tick_sink* sink, uint32_t entry, uint32_t flags, topolet_str reason);

  /* Says why tick() is about to return TOPOLET_FAILED. Copies the message, and cuts it beyond 1,024 bytes; the last
   * call counts. Returns TOPOLET_OK, or TOPOLET_LATE when the host has abandoned the call. [event] */
  int32_t (*error)(const topolet_tick_sink* sink, topolet_str message);
};

typedef struct topolet_tick {
  uint32_t struct_size;
  /* At least this long between two ticks, and often up to a second longer. Read once, after create(). */
  uint32_t interval_ms;

  /* Called between decisions. `request` and `sink` are borrowed for the call. Saved state may be written. Returns
   * TOPOLET_OK, or TOPOLET_FAILED to drop its requests. [event] */
  int32_t (*tick)(const topolet_instance* instance, const topolet_tick_request* request, const topolet_tick_sink* sink);
} topolet_tick;

#ifdef __cplusplus
}
#endif

#endif
