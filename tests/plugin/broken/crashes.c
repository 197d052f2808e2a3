/* Ends the process in the way that its option names, or does nothing. */
#define _POSIX_C_SOURCE 200809L
#include <signal.h>
#include <stdlib.h>

#include "entry.h"

static char g_how[16];

static int is(const char* how) { return strcmp(g_how, how) == 0; }

/* Deep enough for any stack; volatile, so that nobody makes a loop of it. */
static int overflow(volatile int depth) {
  volatile char room[4096];
  room[0] = (char)depth;
  return depth == -1 ? 0 : overflow(depth + 1) + room[0];
}

static int32_t score(const topolet_instance* instance, const topolet_request* request, const topolet_score_sink* sink) {
  (void)instance, (void)request, (void)sink;
  if (is("segv")) raise(SIGSEGV);
  /* NOLINTNEXTLINE(clang-analyzer-core.NullDereference): that is how it crashes */
  if (is("null")) *(volatile int*)NULL = 1;
  if (is("abort")) abort();
  if (is("overflow")) return overflow(0);
  return TOPOLET_OK;
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
  const topolet_str how = request->options.items[0].value;
  (void)error;
  memset(g_how, 0, sizeof(g_how));
  memcpy(g_how, how.ptr, how.len < sizeof(g_how) ? how.len : sizeof(g_how) - 1);
  if (is("create")) abort();
  *instance = &kInstance;
  return TOPOLET_OK;
}

static const topolet_option kOptions[] = {{TOPOLET_STR("how"),
                                           TOPOLET_OPTION_STRING,
                                           0,
                                           TOPOLET_STR("not"),
                                           {NULL, 0},
                                           0,
                                           0,
                                           TOPOLET_STR("How it crashes.")}};

ENTRY_WITH_OPTIONS("crashes", kOptions, 1, create);
