/* Has the entry of a plugin that was built for draft 2, which ended with `create`. */
#include "entry.h"

static int32_t create(const topolet_create_request* request, const topolet_error_sink* error,
                      const topolet_instance** instance) {
  (void)request, (void)error, (void)instance;
  return TOPOLET_FAILED;
}

const topolet_plugin_entry topolet_plugin_v1 = {
    .struct_size = offsetof(topolet_plugin_entry, vendor),
    .abi_draft = 2,
    .id = TOPOLET_STR("older-draft"),
    .version = TOPOLET_STR("1"),
    .create = create,
};
