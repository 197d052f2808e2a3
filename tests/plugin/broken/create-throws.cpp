#include <stdexcept>

#include "entry.h"

static int32_t create(const topolet_create_request*, const topolet_error_sink*, const topolet_instance**) {
  throw std::runtime_error("no such table");
}

ENTRY("create-throws", &create);
