#include "entry.h"

static int32_t create(const topolet_create_request* request, const topolet_error_sink* error,
                      const topolet_instance** instance) {
  static const topolet_str kWhy = TOPOLET_STR("the table of kinds\nis empty");
  (void)request, (void)instance;
  error->set(error, kWhy);
  return TOPOLET_FAILED;
}

ENTRY("create-fails", create);
