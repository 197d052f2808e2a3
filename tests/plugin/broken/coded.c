/* Has codes for its reasons, and names them in score and pick as its option says: rightly or wrongly. It asks for other
 * containers to be placed anew in the same way. */
#include <topolet/codes.h>

#include "entry.h"

#define LONGEST "a23456789-123456789-123456789-123456789-123456789-123456789-1234"

static topolet_str g_answer;
static char g_text[32];
static topolet_codes g_codes;

static const topolet_str kReason = TOPOLET_STR("because");
static const topolet_str kFull = TOPOLET_STR("full");
static const topolet_str kFarAway = TOPOLET_STR("far-away");

static int answers(const char* text) { return topolet_str_is(g_answer, text); }
static int32_t expect(int as_expected) { return as_expected ? TOPOLET_OK : 43; }

static int32_t score(const topolet_instance* instance, const topolet_request* request, const topolet_score_sink* sink) {
  static const topolet_str kUnknown = TOPOLET_STR("unknown");
  const topolet_str nothing = {NULL, 1};
  (void)instance;
  if (answers("unknown")) return expect(sink->code(sink, 0, kUnknown) == TOPOLET_UNKNOWN);
  if (answers("null")) return expect(sink->code(sink, 0, nothing) == TOPOLET_INVALID);
  if (answers("no-candidate")) return expect(sink->code(sink, request->candidate_count, kFull) == TOPOLET_UNKNOWN);
  if (answers("twice")) {
    sink->code(sink, 0, kFull);
    return expect(sink->code(sink, 0, kFull) == TOPOLET_DUPLICATE);
  }
  if (sink->code(sink, 0, kFull) != TOPOLET_OK) return 43;
  sink->set(sink, 0, TOPOLET_VERDICT_REJECT, 0, kReason);
  sink->set(sink, 1, TOPOLET_VERDICT_SCORE, 5, kReason);
  return sink->code(sink, 1, kFarAway);
}

static int32_t pick(const topolet_instance* instance, const topolet_pick_request* request,
                    const topolet_pick_sink* sink) {
  (void)instance;
  if (answers("replace")) {
    if (sink->replace(sink, 0, 4, kReason) != TOPOLET_UNSUPPORTED) return 43;
    return sink->replace(sink, 0, TOPOLET_REPLACE_OTHER_NODES | TOPOLET_REPLACE_NOW, kReason);
  }
  if (answers("replace-twice")) {
    sink->replace(sink, 0, 0, kReason);
    return expect(sink->replace(sink, 0, 0, kReason) == TOPOLET_DUPLICATE);
  }
  if (answers("replace-unknown"))
    return expect(sink->replace(sink, request->request->ledger->entry_count, 0, kReason) == TOPOLET_UNKNOWN);
  if (answers("replace-foreign")) return expect(sink->replace(sink, 0, 0, kReason) == TOPOLET_UNKNOWN);
  if (answers("pick-unknown")) return expect(sink->code(sink, kReason) == TOPOLET_UNKNOWN);
  if (request->chosen.count > 0) sink->reject(sink, kReason);
  return sink->code(sink, kFull);
}

static const void* get_capability(const topolet_instance* instance, topolet_str id) {
  static const topolet_score kScore = {sizeof(topolet_score), 0, score};
  static const topolet_pick kPick = {sizeof(topolet_pick), 0, pick};
  (void)instance;
  if (topolet_str_is(id, TOPOLET_SCORE_ID)) return &kScore;
  if (topolet_str_is(id, TOPOLET_PICK_ID)) return &kPick;
  return topolet_str_is(id, TOPOLET_CODES_ID) ? &g_codes : NULL;
}

static void destroy(const topolet_instance* instance) { (void)instance; }

static int32_t create(const topolet_create_request* request, const topolet_error_sink* error,
                      const topolet_instance** instance) {
  static const topolet_instance kInstance = {sizeof(topolet_instance), 0, NULL, get_capability, destroy};
  static const topolet_kv kCodes[] = {{TOPOLET_STR("full"), TOPOLET_STR("It is full.")},
                                      {TOPOLET_STR("far-away"), TOPOLET_STR("It is far away.")},
                                      {TOPOLET_STR(LONGEST), TOPOLET_STR("The longest.")}};
  static const topolet_kv kUpper[] = {{TOPOLET_STR("Full"), TOPOLET_STR("It is full.")}};
  static const topolet_kv kDashes[] = {{TOPOLET_STR("far--away"), TOPOLET_STR("It is far away.")}};
  static const topolet_kv kDash[] = {{TOPOLET_STR("far-"), TOPOLET_STR("It is far away.")}};
  static const topolet_kv kTooLong[] = {{TOPOLET_STR(LONGEST "5"), TOPOLET_STR("Too long.")}};
  static const topolet_kv kNoHelp[] = {{TOPOLET_STR("full"), {NULL, 0}}};
  static topolet_kv many[TOPOLET_CODES_MAX + 1];
  const topolet_str answer = request->options.items[0].value;
  (void)error;
  g_answer.len = answer.len < sizeof(g_text) ? answer.len : sizeof(g_text);
  memcpy(g_text, answer.ptr, g_answer.len);
  g_answer.ptr = g_text;
  for (size_t i = 0; i < sizeof(many) / sizeof(many[0]); ++i) many[i] = kCodes[0];
  g_codes.struct_size = sizeof(g_codes);
  g_codes.codes.count = 1;
  g_codes.codes.items = kCodes;
  if (answers("upper")) g_codes.codes.items = kUpper;
  if (answers("dashes")) g_codes.codes.items = kDashes;
  if (answers("dash")) g_codes.codes.items = kDash;
  if (answers("too-long")) g_codes.codes.items = kTooLong;
  if (answers("no-help")) g_codes.codes.items = kNoHelp;
  if (answers("no-items")) g_codes.codes.items = NULL;
  if (g_codes.codes.items == kCodes) g_codes.codes.count = sizeof(kCodes) / sizeof(kCodes[0]);
  if (answers("same")) g_codes.codes.items = many;
  if (answers("too-many")) {
    g_codes.codes.items = many;
    g_codes.codes.count = sizeof(many) / sizeof(many[0]);
  }
  *instance = &kInstance;
  return TOPOLET_OK;
}

static const topolet_option kOptions[] = {
    {TOPOLET_STR("answer"), TOPOLET_OPTION_STRING, 0, {NULL, 0}, {NULL, 0}, 0, 0, TOPOLET_STR("What it does.")}};

ENTRY_WITH_OPTIONS("coded", kOptions, 1, create);
