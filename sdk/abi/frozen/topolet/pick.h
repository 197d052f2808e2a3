/* Capability "topolet.pick/1" of a plugin: which CPUs of a candidate are used. Asked for every container that gets a
 * CPU set, about the best candidate; if what comes out cannot be used there, about the next one, and so on. For each of
 * them:
 *
 * 1. TOPOLET_PICK_CHOOSE: every plugin once, all about the same CPUs, the candidate's `usable`.
 * 2. TOPOLET_PICK_ORDER, for exclusive containers: about what is left of these, one plugin after the other, the higher
 *    weight first, then the id, until one has an order. Where plugins have divided the CPUs with at_least(), that
 *    one is asked again for each part, with the `count` to be taken of it.
 * 3. TOPOLET_PICK_REVIEW: every plugin once, about the CPUs that were chosen.
 *
 * If a review rejects them, the three are gone through once more without the choices of some plugins: see reject().
 * What else a plugin says in a stage is checked as ever, and has no effect. */
#ifndef TOPOLET_PICK_H
#define TOPOLET_PICK_H

#include <topolet/abi.h>
#include <topolet/tick.h>

#ifdef __cplusplus
extern "C" {
#endif

#define TOPOLET_PICK_ID "topolet.pick/1"
#define TOPOLET_PICK_MAX_SHARES 1024 /* of at_least in one answer */

/* Which part of the answer takes effect. Stages that are newer than the plugin's abi_minor are not asked. */
typedef enum topolet_pick_stage {
  TOPOLET_PICK_CHOOSE = 0, /* narrow() and at_least() */
  TOPOLET_PICK_ORDER = 1,  /* order(); `usable` is what choosing has left, or a part of it */
  TOPOLET_PICK_REVIEW =
      2 /* withhold(), unmet(), reject(), replace() and soften(); `chosen` is what was chosen of `usable` */
} topolet_pick_stage;

typedef struct topolet_pick_request {
  uint32_t struct_size;
  uint32_t candidate;             /* position of the candidate in request->candidates */
  const topolet_request* request; /* borrowed for the call, as is this struct */
  topolet_set usable;             /* CPUs that may be taken (exclusive) or are shared there (not exclusive) */
  topolet_set chosen;             /* TOPOLET_PICK_REVIEW: the CPUs that the container will get; empty before */
  uint32_t count;                 /* how many CPUs of `usable` are to be taken; 0 if not exclusive */
  int32_t stage;                  /* topolet_pick_stage */
} topolet_pick_request;

/* Where pick() puts its answer. Owned by the host. Outside the call and its thread its functions do nothing and return
 * TOPOLET_LATE. Each setter at most once a call, unless its comment says otherwise. Setters copy. They return
 * TOPOLET_OK; TOPOLET_INVALID, TOPOLET_OUT_OF_RANGE, TOPOLET_DUPLICATE or TOPOLET_UNKNOWN for a wrong answer, which
 * costs the plugin its vote in this decision; TOPOLET_LATE when the host has abandoned the call. To name a CPU that is
 * not in `usable` costs the vote as well, except in order(). */
typedef struct topolet_pick_sink topolet_pick_sink;
struct topolet_pick_sink {
  uint32_t struct_size;
  uint32_t reserved;
  void* context; /* the host's own */

  /* Use only these CPUs, a part of `usable` that is not empty. Narrowings of several plugins intersect; one that would
   * leave too few CPUs is dropped. Nobody can widen. [decision] */
  int32_t (*narrow)(const topolet_pick_sink* sink, topolet_set cpus);

  /* Withhold these CPUs of `usable` as well: nobody runs on them (idle siblings).
   * [decision] */
  int32_t (*withhold)(const topolet_pick_sink* sink, topolet_set cpus);

  /* The CPUs to take first, by OS index, each once; the others follow in the host's order, and those that are not in
   * `usable` are skipped. Of several plugins with an order the one of more weight wins, of equals the first by id: see
   * score.h. [decision] */
  int32_t (*order)(const topolet_pick_sink* sink, const uint32_t* os_indices, size_t count);

  /* Why, for people. Copied, and cut beyond 1,024 bytes; the last call counts. [decision] */
  int32_t (*reason)(const topolet_pick_sink* sink, topolet_str reason);

  /* Says why pick() is about to return TOPOLET_FAILED. Copies the message, and cuts it beyond 1,024 bytes; the last
   * call counts. [decision] */
  int32_t (*error)(const topolet_pick_sink* sink, topolet_str message);

  /* A goal of the policy that cannot be met here, as text. It is audited; if the plugin is required, the candidate is
   * not used. Not empty; cut beyond 1,024 bytes; the last call counts. [decision] */
  int32_t (*unmet)(const topolet_pick_sink* sink, topolet_str what);

  /* Take `count` or more of these CPUs, a part of `usable`, as far as there are as many and the container gets as many.
   * For exclusive containers; ignored for others. May be called several times; earlier calls come first. Plugins with
   * more weight come before others. It is applied after every `narrow` and before `order`. [decision] */
  int32_t (*at_least)(const topolet_pick_sink* sink, topolet_set cpus, uint32_t count);

  /* Rejects the chosen CPUs for this reason, which is not empty. The host chooses once more without those picks of
   * other plugins that are not required; if the result is rejected, too, it goes on to the next candidate. Cut beyond
   * 1,024 bytes. [decision]
   */
  int32_t (*reject)(const topolet_pick_sink* sink, topolet_str reason);

  /* Says by which code of its topolet.codes/1 the plugin answers so: it goes with what reason(), unmet() and reject()
   * say. TOPOLET_UNKNOWN for a code that it does not have. [decision] */
  int32_t (*code)(const topolet_pick_sink* sink, topolet_str code);

  /* Asks for the container at this position of request->ledger->entries, which shares CPUs, to be placed anew together
   * with this one: all plugins are asked about it with the ledger as it is with the chosen CPUs, and both are committed
   * at once, so that a group can make room for its new member. `flags` as of topolet_tick_sink.replace, where
   * TOPOLET_REPLACE_NOW changes nothing. May be called for several entries, once for each; TOPOLET_PICK_REVIEW only,
   * ignored in other stages. The request is not binding: a container that may not move, or for which the plugins choose
   * no other place, stays where it is. `reason` is for people; it is copied, and cut beyond 1,024 bytes. Returns
   * TOPOLET_UNKNOWN for no such entry, or one of TOPOLET_MODE_FOREIGN; TOPOLET_UNSUPPORTED for a flag that the host
   * does not know: then nothing is asked for, and it is no fault. [decision] */
  int32_t (*replace)(const topolet_pick_sink* sink, uint32_t entry, uint32_t flags, topolet_str reason);

  /* Lets the container, which shares CPUs, run on CPUs of other nodes as well, while nearly all that the chosen ones
   * can do is used and the nearest nodes have some to spare. Its memory stays, and so does the place that it is booked
   * on. Ignored for exclusive containers, where a plugin has narrowed the CPUs, for one with devices or bound memory,
   * and where the kubelet has said where it runs. TOPOLET_PICK_REVIEW only, ignored in other stages. [decision] */
  int32_t (*soften)(const topolet_pick_sink* sink);
};

typedef struct topolet_pick {
  uint32_t struct_size;
  uint32_t reserved;

  /* Answers for the candidate that won. Setting nothing means no preference. `request` and `sink` are borrowed for the
   * call. Returns TOPOLET_OK, or TOPOLET_FAILED to give up its vote.
   * [decision] */
  int32_t (*pick)(const topolet_instance* instance, const topolet_pick_request* request, const topolet_pick_sink* sink);
} topolet_pick;

#ifdef __cplusplus
}
#endif

#endif
