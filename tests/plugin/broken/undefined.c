#include "entry.h"

int32_t topolet_no_such_function(void);

static int32_t create(const topolet_create_request* request, const topolet_error_sink* error,
                      const topolet_instance** instance) {
  (void)request, (void)error, (void)instance;
  return topolet_no_such_function();
}

ENTRY("undefined", create);
