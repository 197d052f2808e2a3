/* Is right, where the library is that it is linked to. */
#include "entry.h"

int topolet_of_another_library(void);

static const void* get_capability(const topolet_instance* instance, topolet_str id) {
  (void)instance, (void)id;
  return NULL;
}

static void destroy(const topolet_instance* instance) { (void)instance; }

static int32_t create(const topolet_create_request* request, const topolet_error_sink* error,
                      const topolet_instance** instance) {
  static const topolet_instance kInstance = {sizeof(topolet_instance), 0, NULL, get_capability, destroy};
  (void)request, (void)error;
  *instance = &kInstance;
  return topolet_of_another_library();
}

ENTRY("needs-library", create);
