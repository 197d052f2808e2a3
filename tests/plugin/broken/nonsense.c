/* Gives the wrong answer that its option names, and says what it was told for it. */
#include "entry.h"

static topolet_str g_answer;
static char g_text[32];

static int32_t score(const topolet_instance* instance, const topolet_request* request, const topolet_score_sink* sink) {
  static const topolet_str kReason = TOPOLET_STR("because");
  const uint32_t first = 0;
  (void)instance;
  if (topolet_str_is(g_answer, "score-too-high")) return sink->set(sink, first, TOPOLET_VERDICT_SCORE, 101, kReason);
  if (topolet_str_is(g_answer, "score-too-low")) return sink->set(sink, first, TOPOLET_VERDICT_SCORE, -101, kReason);
  if (topolet_str_is(g_answer, "unknown-kind")) return sink->set(sink, first, 3, 1, kReason);
  if (topolet_str_is(g_answer, "unknown-candidate")) {
    return sink->set(sink, request->candidate_count, TOPOLET_VERDICT_SCORE, 1, kReason);
  }
  if (topolet_str_is(g_answer, "twice")) {
    sink->set(sink, first, TOPOLET_VERDICT_SCORE, 1, kReason);
    sink->set(sink, first, TOPOLET_VERDICT_SCORE, 1, kReason);
    return TOPOLET_OK;
  }
  if (topolet_str_is(g_answer, "fails")) {
    sink->error(sink, kReason);
    return TOPOLET_FAILED;
  }
  if (topolet_str_is(g_answer, "none-in-time")) {
    while (sink->error(sink, kReason) != TOPOLET_LATE) {
    }
  }
  if (topolet_str_is(g_answer, "odd-status")) return 42;
  return TOPOLET_OK;
}

static int32_t propose(const topolet_instance* instance, const topolet_request* request,
                       const topolet_propose_sink* sink) {
  static const uint64_t kWords[1] = {3};
  const topolet_set both = {kWords, 1};
  (void)instance, (void)request;
  if (topolet_str_is(g_answer, "proposes")) return sink->nodes(sink, both);
  if (topolet_str_is(g_answer, "proposes-nothing")) {
    const topolet_set nothing = {NULL, 0};
    return sink->nodes(sink, nothing) == TOPOLET_INVALID ? TOPOLET_OK : 43;
  }
  if (topolet_str_is(g_answer, "proposes-on-and-on")) {
    for (uint32_t i = 0; i < TOPOLET_PROPOSE_MAX_SETS; ++i) sink->nodes(sink, both);
    return sink->nodes(sink, both) == TOPOLET_OUT_OF_RANGE ? TOPOLET_OK : 43;
  }
  return TOPOLET_OK;
}

static int32_t pick(const topolet_instance* instance, const topolet_pick_request* request,
                    const topolet_pick_sink* sink) {
  static const uint64_t kWords[2000] = {1};
  static const uint32_t kOrder[3] = {1, 70000, 1};
  (void)instance, (void)request;
  if (topolet_str_is(g_answer, "huge-set")) {
    const topolet_set huge = {kWords, 2000};
    return sink->narrow(sink, huge) == TOPOLET_OUT_OF_RANGE ? TOPOLET_OK : 43;
  }
  if (topolet_str_is(g_answer, "null-set")) {
    const topolet_set null_set = {NULL, 1};
    return sink->withhold(sink, null_set) == TOPOLET_INVALID ? TOPOLET_OK : 43;
  }
  if (topolet_str_is(g_answer, "foreign-set")) {
    const topolet_set foreign = {kWords, 1000};
    return sink->narrow(sink, foreign);
  }
  if (topolet_str_is(g_answer, "two-narrowings")) {
    const topolet_set one = {kWords, 1};
    sink->narrow(sink, one);
    sink->narrow(sink, one);
    return TOPOLET_OK;
  }
  if (topolet_str_is(g_answer, "two-withholdings")) {
    const topolet_set one = {kWords, 1};
    sink->withhold(sink, one);
    sink->withhold(sink, one);
    return TOPOLET_OK;
  }
  if (topolet_str_is(g_answer, "shares") || topolet_str_is(g_answer, "endless-shares")) {
    const topolet_set first = {kWords, 1};
    const uint32_t shares = topolet_str_is(g_answer, "shares") ? 2 : TOPOLET_PICK_MAX_SHARES + 1;
    for (uint32_t i = 0; i < shares; ++i) sink->at_least(sink, first, i + 1);
    return TOPOLET_OK;
  }
  if (topolet_str_is(g_answer, "rejects")) {
    static const topolet_str kWhy = TOPOLET_STR("not\nthese");
    return sink->reject(sink, kWhy);
  }
  if (topolet_str_is(g_answer, "rejects-silently")) {
    static const topolet_str kNothing = {NULL, 0};
    return sink->reject(sink, kNothing) == TOPOLET_INVALID ? TOPOLET_OK : 43;
  }
  if (topolet_str_is(g_answer, "order-far"))
    return sink->order(sink, kOrder, 2) == TOPOLET_OUT_OF_RANGE ? TOPOLET_OK : 43;
  if (topolet_str_is(g_answer, "order-twice")) {
    const uint32_t same[2] = {1, 1};
    return sink->order(sink, same, 2) == TOPOLET_DUPLICATE ? TOPOLET_OK : 43;
  }
  return TOPOLET_OK;
}

static const void* get_capability(const topolet_instance* instance, topolet_str id) {
  static const topolet_score kScore = {sizeof(topolet_score), 0, score};
  static const topolet_propose kPropose = {sizeof(topolet_propose), 0, propose};
  static const topolet_pick kPick = {sizeof(topolet_pick), 0, pick};
  (void)instance;
  if (topolet_str_is(id, TOPOLET_SCORE_ID)) return &kScore;
  if (topolet_str_is(id, TOPOLET_PROPOSE_ID)) return &kPropose;
  if (topolet_str_is(id, TOPOLET_PICK_ID)) return &kPick;
  return NULL;
}

static void destroy(const topolet_instance* instance) { (void)instance; }

static int32_t create(const topolet_create_request* request, const topolet_error_sink* error,
                      const topolet_instance** instance) {
  static const topolet_instance kInstance = {sizeof(topolet_instance), 0, NULL, get_capability, destroy};
  const topolet_str answer = request->options.items[0].value;
  (void)error;
  /* Option values are borrowed for the call only. */
  g_answer.len = answer.len < sizeof(g_text) ? answer.len : sizeof(g_text);
  memcpy(g_text, answer.ptr, g_answer.len);
  g_answer.ptr = g_text;
  *instance = &kInstance;
  return TOPOLET_OK;
}

static const topolet_option kOptions[] = {
    {TOPOLET_STR("answer"), TOPOLET_OPTION_STRING, 0, {NULL, 0}, {NULL, 0}, 0, 0, TOPOLET_STR("Which wrong answer.")}};

ENTRY_WITH_OPTIONS("nonsense", kOptions, 1, create);
