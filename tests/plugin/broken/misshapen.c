/* Gives structs that the rules of the ABI forbid: `how` says which rule is broken. */
#include "entry.h"

static char g_text[32];
static topolet_str g_how = {g_text, 0};

static int32_t score(const topolet_instance* instance, const topolet_request* request, const topolet_score_sink* sink) {
  (void)instance, (void)request, (void)sink;
  return TOPOLET_OK;
}

static const void* get_capability(const topolet_instance* instance, topolet_str id) {
  static topolet_score sound = {sizeof(topolet_score), 0, score};
  static topolet_score other = {sizeof(topolet_score), 0, score};
  static int times;
  (void)instance;
  if (!topolet_str_is(id, TOPOLET_SCORE_ID)) return NULL;
  sound.reserved = topolet_str_is(g_how, "reserved") ? 7 : 0;
  sound.struct_size = sizeof(topolet_score);
  if (topolet_str_is(g_how, "odd-size")) sound.struct_size = sizeof(topolet_score) + 4;
  if (topolet_str_is(g_how, "huge")) sound.struct_size = TOPOLET_STRUCT_MAX + 8;
  return topolet_str_is(g_how, "inconstant") && ++times % 2 == 0 ? &other : &sound;
}

static void destroy(const topolet_instance* instance) { (void)instance; }

static int32_t create(const topolet_create_request* request, const topolet_error_sink* error,
                      const topolet_instance** instance) {
  static topolet_instance made = {sizeof(topolet_instance), 0, NULL, get_capability, destroy};
  const topolet_str how = request->options.items[0].value;
  (void)error;
  g_how.len = how.len < sizeof(g_text) ? how.len : sizeof(g_text);
  memcpy(g_text, how.ptr, g_how.len);
  made.reserved = topolet_str_is(g_how, "reserved-instance") ? 7 : 0;
  *instance = &made;
  return TOPOLET_OK;
}

static const topolet_option kOptions[] = {
    {TOPOLET_STR("how"), TOPOLET_OPTION_STRING, 0, {NULL, 0}, {NULL, 0}, 0, 0, TOPOLET_STR("Which rule is broken.")}};

ENTRY_WITH_OPTIONS("misshapen", kOptions, 1, create);
