/* Capability "topolet.score/1" of a plugin: its opinion on each candidate of a decision. */
#ifndef TOPOLET_SCORE_H
#define TOPOLET_SCORE_H

#include <topolet/abi.h>

#ifdef __cplusplus
extern "C" {
#endif

#define TOPOLET_SCORE_ID "topolet.score/1"

typedef enum topolet_verdict_kind {
  TOPOLET_VERDICT_ABSTAIN = 0, /* no opinion; the verdict on candidates that are not set */
  TOPOLET_VERDICT_REJECT = 1,  /* must not be used */
  TOPOLET_VERDICT_SCORE = 2    /* how good it is */
} topolet_verdict_kind;

/* Scores range from -100 to 100: 100 is almost a requirement, 10 a mild preference, 0 none.
 *
 * The total of a candidate is the sum over all plugins of weight * score, in 64 bits, with weights from 0 to 1,000. An
 * abstention adds nothing. One rejection excludes a candidate, whatever its total and the plugin's weight. The greatest
 * total comes first; of equals the one with the fewest nodes (CPUs outside any node count as one), then the smallest
 * distance, then the fewest usable CPUs, then the lowest position. If no plugin scores any candidate, the last
 * candidate comes first: the machine, unless `candidates` are only some of those that there are.
 *
 * With TOPOLET_REQUEST_STAYS a plugin's rejection excludes nothing. Candidates are ranked by their distance from the
 * nodes where the container was or should be, then by how many plugins reject them (each counts once, whatever its
 * weight), then by total and as above; where nobody scores, the machine does not come first.
 *
 * Where something of a plugin's pick is dropped for a candidate, what its score added to the total there, if more than
 * 0, is taken off, once, and the candidates are ranked anew. The scores and rejections of a plugin that loses its vote
 * before adjust() are taken back from all candidates.
 *
 * Where only one plugin can have its way - an order, an environment variable, an annotation - or several together leave
 * too little - narrowings, memory nodes, withheld CPUs - the one of more weight comes first, of equals the one whose id
 * is first in the alphabet. In which order plugins are enabled never matters. VOTES.md has all of this in a table. */
#define TOPOLET_SCORE_MIN (-100)
#define TOPOLET_SCORE_MAX 100

/* Where score() puts its answers. Owned by the host. Outside the call and its thread its functions do
 * nothing and return TOPOLET_LATE. */
typedef struct topolet_score_sink topolet_score_sink;
struct topolet_score_sink {
  uint32_t struct_size;
  uint32_t reserved;
  void* context; /* the host's own */

  /* Sets the verdict on the candidate at this position, once. `score` counts for TOPOLET_VERDICT_SCORE only. `reason`
   * is for people: what was looked at and found; it is copied, and cut beyond 1,024 bytes. Returns TOPOLET_OK;
   * TOPOLET_UNKNOWN, TOPOLET_DUPLICATE, TOPOLET_OUT_OF_RANGE or TOPOLET_INVALID for a wrong answer, which costs the
   * plugin its vote in this decision; TOPOLET_UNSUPPORTED for a kind that the host does not know, which is an
   * abstention; TOPOLET_LATE when the host has abandoned the call. [decision] */
  int32_t (*set)(const topolet_score_sink* sink, uint32_t candidate, int32_t kind, int32_t score, topolet_str reason);

  /* Says why score() is about to return TOPOLET_FAILED. Copies the message, and cuts it beyond 1,024 bytes; the last
   * call counts. Returns TOPOLET_OK, or TOPOLET_LATE when the host has abandoned the call. [decision] */
  int32_t (*error)(const topolet_score_sink* sink, topolet_str message);

  /* Says by which code of its topolet.codes/1 the plugin gives this candidate its verdict, once; before or after set().
   * Returns what set() does; TOPOLET_UNKNOWN also for a code that it does not have. [decision] */
  int32_t (*code)(const topolet_score_sink* sink, uint32_t candidate, topolet_str code);
};

typedef struct topolet_score {
  uint32_t struct_size;
  uint32_t reserved;

  /* Scores all candidates of the request. Candidates it does not set are abstained from. `request` and `sink` are
   * borrowed for the call. Returns TOPOLET_OK, or TOPOLET_FAILED to give up its vote in this decision.
   * [decision] */
  int32_t (*score)(const topolet_instance* instance, const topolet_request* request, const topolet_score_sink* sink);
} topolet_score;

#ifdef __cplusplus
}
#endif

#endif
