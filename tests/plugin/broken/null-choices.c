#include "entry.h"

static int32_t create(const topolet_create_request* request, const topolet_error_sink* error,
                      const topolet_instance** instance) {
  (void)request, (void)error, (void)instance;
  return TOPOLET_FAILED;
}

static const topolet_option kOptions[] = {
    {TOPOLET_STR("kind"), TOPOLET_OPTION_CHOICE, 0, TOPOLET_STR("a"), {NULL, 2}, 0, 0, TOPOLET_STR("Which kind.")}};

ENTRY_WITH_OPTIONS("null-choices", kOptions, 1, create);
