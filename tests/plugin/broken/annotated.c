/* Says that it reads the annotations that its option names, in ways that are right and wrong. */
#include <topolet/annotations.h>

#include "entry.h"

#define LONGEST "a23456789-123456789-123456789-123456789-123456789-123456789-123"

static topolet_annotations g_annotations;
static int g_says_nothing;

static int32_t score(const topolet_instance* instance, const topolet_request* request, const topolet_score_sink* sink) {
  (void)instance, (void)request, (void)sink;
  return TOPOLET_OK;
}

static const void* get_capability(const topolet_instance* instance, topolet_str id) {
  static const topolet_score kScore = {sizeof(topolet_score), 0, score};
  (void)instance;
  if (topolet_str_is(id, TOPOLET_SCORE_ID)) return &kScore;
  return topolet_str_is(id, TOPOLET_ANNOTATIONS_ID) && !g_says_nothing ? &g_annotations : NULL;
}

static void destroy(const topolet_instance* instance) { (void)instance; }

static int32_t create(const topolet_create_request* request, const topolet_error_sink* error,
                      const topolet_instance** instance) {
  static const topolet_instance kInstance = {sizeof(topolet_instance), 0, NULL, get_capability, destroy};
  static const topolet_str kTenant[] = {TOPOLET_STR("tenant"), TOPOLET_STR(LONGEST)};
  static const topolet_str kPrefixed[] = {TOPOLET_STR("topolet.io/tenant")};
  static const topolet_str kTooLong[] = {TOPOLET_STR(LONGEST "4")};
  static const topolet_str kEmpty[] = {{NULL, 0}};
  static const topolet_str kNowhere[] = {{NULL, 3}};
  static const topolet_kv kTaking[] = {{TOPOLET_STR("tenant"), {NULL, 0}}, {TOPOLET_STR("landlord"), {NULL, 0}}};
  static const topolet_kv kTakingNull[] = {{TOPOLET_STR("tenant"), {NULL, 3}}};
  static topolet_str many[TOPOLET_ANNOTATIONS_MAX_NAMES + 1];
  const topolet_str names = request->options.items[0].value;
  (void)error;
  for (size_t i = 0; i < sizeof(many) / sizeof(many[0]); ++i) many[i] = kTenant[0];
  g_says_nothing = topolet_str_is(names, "unsaid");
  g_annotations.struct_size = topolet_str_is(names, "unsized") ? 0 : sizeof(g_annotations);
  g_annotations.names.count = 1;
  g_annotations.names.items = kTenant;
  if (topolet_str_is(names, "none")) g_annotations.names.count = 0;
  if (topolet_str_is(names, "longest")) g_annotations.names.count = 2;
  if (topolet_str_is(names, "prefixed")) g_annotations.names.items = kPrefixed;
  if (topolet_str_is(names, "too-long")) g_annotations.names.items = kTooLong;
  if (topolet_str_is(names, "empty")) g_annotations.names.items = kEmpty;
  if (topolet_str_is(names, "nowhere")) g_annotations.names.items = kNowhere;
  if (topolet_str_is(names, "no-items")) g_annotations.names.items = NULL;
  if (topolet_str_is(names, "too-many")) {
    g_annotations.names.items = many;
    g_annotations.names.count = sizeof(many) / sizeof(many[0]);
  }
  g_annotations.taking.count = 0;
  g_annotations.taking.items = kTaking;
  if (topolet_str_is(names, "taking")) g_annotations.taking.count = 1;
  if (topolet_str_is(names, "before-taking")) {
    g_annotations.struct_size = offsetof(topolet_annotations, taking);
    g_annotations.taking.count = 1;
  }
  if (topolet_str_is(names, "taking-other")) g_annotations.taking.count = 2;
  if (topolet_str_is(names, "taking-too-many")) g_annotations.taking.count = TOPOLET_ANNOTATIONS_MAX_NAMES + 1;
  if (topolet_str_is(names, "taking-null")) {
    g_annotations.taking.items = kTakingNull;
    g_annotations.taking.count = 1;
  }
  if (topolet_str_is(names, "taking-nowhere")) {
    g_annotations.taking.items = NULL;
    g_annotations.taking.count = 1;
  }
  *instance = &kInstance;
  return TOPOLET_OK;
}

static const topolet_option kOptions[] = {{TOPOLET_STR("names"),
                                           TOPOLET_OPTION_STRING,
                                           0,
                                           TOPOLET_STR("tenant"),
                                           {NULL, 0},
                                           0,
                                           0,
                                           TOPOLET_STR("Which names, or what is wrong with them.")}};

ENTRY_WITH_OPTIONS("annotated", kOptions, 1, create);
