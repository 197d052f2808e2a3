#include "entry.h"

static int32_t create(const topolet_create_request* request, const topolet_error_sink* error,
                      const topolet_instance** instance) {
  (void)request, (void)error, (void)instance;
  return TOPOLET_FAILED;
}

const topolet_plugin_entry topolet_plugin_v1 = {
    sizeof(topolet_plugin_entry),
    TOPOLET_ABI_MINOR,
    TOPOLET_ABI_DRAFT,
    0,
    {NULL, 0},
    TOPOLET_STR("1"),
    NULL,
    0,
    0,
    create,
    {NULL, 0},
    {NULL, 0},
    {NULL, 0},
};
