#include "entry.h"

static int32_t create(const topolet_create_request* request, const topolet_error_sink* error,
                      const topolet_instance** instance) {
  (void)request, (void)error, (void)instance;
  return TOPOLET_FAILED;
}

ENTRY("somebody-else", create);
