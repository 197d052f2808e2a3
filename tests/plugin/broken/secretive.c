/* Has two secret options, and fails to be created with a quote of them if its third says so. */
#include <stdio.h>

#include "entry.h"

static int32_t score(const topolet_instance* instance, const topolet_request* request, const topolet_score_sink* sink) {
  const topolet_str reason = TOPOLET_STR("no secret");
  (void)instance, (void)request;
  return sink->set(sink, 0, TOPOLET_VERDICT_SCORE, 1, reason);
}

static const void* get_capability(const topolet_instance* instance, topolet_str id) {
  static const topolet_score kScore = {sizeof(topolet_score), 0, score};
  (void)instance;
  return topolet_str_is(id, TOPOLET_SCORE_ID) ? &kScore : NULL;
}

static void destroy(const topolet_instance* instance) { (void)instance; }

static int32_t create(const topolet_create_request* request, const topolet_error_sink* error,
                      const topolet_instance** instance) {
  static const topolet_instance kInstance = {sizeof(topolet_instance), 0, NULL, get_capability, destroy};
  const topolet_kv* options = request->options.items;
  char text[256];
  if (topolet_str_is(options[2].value, "true")) {
    const int length =
        snprintf(text, sizeof(text), "the service knows neither %.*s nor %.*s", (int)options[0].value.len,
                 options[0].value.ptr, (int)options[1].value.len, options[1].value.ptr);
    const topolet_str message = {text, (size_t)length};
    error->set(error, message);
    return TOPOLET_FAILED;
  }
  *instance = &kInstance;
  return TOPOLET_OK;
}

static const topolet_option kOptions[] = {{TOPOLET_STR("token"),
                                           TOPOLET_OPTION_STRING,
                                           TOPOLET_OPTION_SECRET,
                                           {NULL, 0},
                                           {NULL, 0},
                                           0,
                                           0,
                                           TOPOLET_STR("Lets it in.")},
                                          {TOPOLET_STR("pin"),
                                           TOPOLET_OPTION_INTEGER,
                                           TOPOLET_OPTION_SECRET,
                                           TOPOLET_STR("1"),
                                           {NULL, 0},
                                           1,
                                           99999,
                                           TOPOLET_STR("Lets it in as well.")},
                                          {TOPOLET_STR("quote"),
                                           TOPOLET_OPTION_BOOL,
                                           0,
                                           TOPOLET_STR("false"),
                                           {NULL, 0},
                                           0,
                                           0,
                                           TOPOLET_STR("Fails, and says why.")}};

ENTRY_WITH_OPTIONS("secretive", kOptions, 3, create);
