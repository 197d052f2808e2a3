/* Capability "topolet.propose/1" of a plugin: node sets that would suit a workload and may not be among the host's
 * candidates. Up to 8 nodes with CPUs every combination of them is a candidate. On larger machines only some are, such
 * as nodes near each other; there, and only there, this is asked before score(). */
#ifndef TOPOLET_PROPOSE_H
#define TOPOLET_PROPOSE_H

#include <topolet/abi.h>

#ifdef __cplusplus
extern "C" {
#endif

#define TOPOLET_PROPOSE_ID "topolet.propose/1"

/* How many node sets one call may name. */
#define TOPOLET_PROPOSE_MAX_SETS 8u

/* Where propose() puts its answers. Owned by the host. Outside the call and its thread its functions do
 * nothing and return TOPOLET_LATE. */
typedef struct topolet_propose_sink topolet_propose_sink;
struct topolet_propose_sink {
  uint32_t struct_size;
  uint32_t reserved;
  void* context; /* the host's own */

  /* Adds these nodes, by OS index, as a candidate. Copies the set. It is ignored if it is a candidate already, or if
   * one of its nodes has no CPUs that the workload may use. Returns TOPOLET_OK; TOPOLET_INVALID for a set that cannot
   * be read or has no node, TOPOLET_OUT_OF_RANGE for one with too many words, or beyond TOPOLET_PROPOSE_MAX_SETS, which
   * drops its proposals in this decision; TOPOLET_LATE when the host has abandoned the call. [decision] */
  int32_t (*nodes)(const topolet_propose_sink* sink, topolet_set nodes);

  /* Says why propose() is about to return TOPOLET_FAILED. Copies the message, and cuts it beyond 1,024 bytes; the last
   * call counts. Returns TOPOLET_OK, or TOPOLET_LATE when the host has abandoned the call. [decision] */
  int32_t (*error)(const topolet_propose_sink* sink, topolet_str message);
};

typedef struct topolet_propose {
  uint32_t struct_size;
  uint32_t reserved;

  /* Proposes for the workload of the request, whose candidates are those that there are so far. `request` and `sink`
   * are borrowed for the call. Returns TOPOLET_OK, or TOPOLET_FAILED to propose nothing.
   * [decision] */
  int32_t (*propose)(const topolet_instance* instance, const topolet_request* request,
                     const topolet_propose_sink* sink);
} topolet_propose;

#ifdef __cplusplus
}
#endif

#endif
