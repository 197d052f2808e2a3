#include "entry.h"

static int32_t create(const topolet_create_request* request, const topolet_error_sink* error,
                      const topolet_instance** instance) {
  (void)request, (void)error, (void)instance;
  return TOPOLET_FAILED;
}

static const topolet_option kOptions[] = {
    {TOPOLET_STR("depth"), TOPOLET_OPTION_INTEGER, 0, TOPOLET_STR("1"), {NULL, 0}, 0, 9, TOPOLET_STR("How deep.")},
    {TOPOLET_STR("depth"), TOPOLET_OPTION_STRING, 0, TOPOLET_STR("1"), {NULL, 0}, 0, 0, TOPOLET_STR("How far.")}};

ENTRY_WITH_OPTIONS("option-twice", kOptions, 2, create);
