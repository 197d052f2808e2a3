#include "entry.h"

static int32_t create(const topolet_create_request* request, const topolet_error_sink* error,
                      const topolet_instance** instance) {
  (void)request, (void)error, (void)instance;
  return TOPOLET_FAILED;
}

const topolet_plugin_entry topolet_plugin_v1 = {
    .struct_size = sizeof(topolet_plugin_entry),
    .abi_draft = TOPOLET_ABI_DRAFT + 1,
    .id = TOPOLET_STR("other-draft"),
    .create = create,
};
