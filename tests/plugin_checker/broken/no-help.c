/* Says nothing of what its option does, and fails without a reason for one of its choices. */
#include "tests/plugin/broken/entry.h"

static const void* get_capability(const topolet_instance* instance, topolet_str id) {
  (void)instance, (void)id;
  return NULL;
}

static void destroy(const topolet_instance* instance) { (void)instance; }

static int32_t create(const topolet_create_request* request, const topolet_error_sink* error,
                      const topolet_instance** instance) {
  static const topolet_instance kInstance = {sizeof(topolet_instance), 0, NULL, get_capability, destroy};
  (void)error;
  /* Trusts that its one option is always there. */
  if (topolet_str_is(request->options.items[0].value, "slow")) return TOPOLET_FAILED;
  *instance = &kInstance;
  return TOPOLET_OK;
}

static const topolet_str kSpeeds[] = {TOPOLET_STR("fast"), TOPOLET_STR("slow")};
static const topolet_option kOptions[] = {
    {TOPOLET_STR("speed"), TOPOLET_OPTION_CHOICE, 0, TOPOLET_STR("fast"), {kSpeeds, 2}, 0, 0, {NULL, 0}}};

ENTRY_WITH_OPTIONS("no-help", kOptions, 1, create);
