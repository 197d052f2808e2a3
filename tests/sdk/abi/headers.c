#include <topolet/adjust.h>
#include <topolet/annotations.h>
#include <topolet/events.h>
#include <topolet/log.h>
#include <topolet/pick.h>
#include <topolet/propose.h>
#include <topolet/score.h>
#include <topolet/state.h>
#include <topolet/tick.h>

_Static_assert(sizeof(topolet_set) == 2 * sizeof(void*), "views are frozen");

/* The macros and readers, used as a plugin in C uses them. */
static uint32_t first_os_index(const topolet_topology* topology) {
  /* NOLINTNEXTLINE(bugprone-sizeof-expression,clang-analyzer-core.NullDereference): a pointer is measured, never run */
  if (!TOPOLET_HAS(topology, pus) || topology->pu_count == 0) return TOPOLET_NONE;
  if (!TOPOLET_STRIDE_HAS(topology->pu_stride, topolet_pu, os_index)) return TOPOLET_NONE;
  return TOPOLET_AT(topolet_pu, topology->pus, topology->pu_stride, 0)->os_index;
}

static int32_t create(const topolet_create_request* request, const topolet_error_sink* error,
                      const topolet_instance** instance) {
  static const topolet_str kWhy = TOPOLET_STR("only here to be compiled");
  (void)instance;
  (void)request->host->get_capability(request->host, kWhy);
  (void)first_os_index(0);
  return error->set(error, kWhy);
}

static const topolet_option kOptions[] = {{
    .name = TOPOLET_STR("depth"),
    .type = TOPOLET_OPTION_INTEGER,
    .default_value = TOPOLET_STR("1"),
    .minimum = 0,
    .maximum = 9,
    .help = TOPOLET_STR("How deep."),
}};

const topolet_plugin_entry topolet_plugin_v1 = {
    .struct_size = sizeof(topolet_plugin_entry),
    .abi_minor = TOPOLET_ABI_MINOR,
    .abi_draft = TOPOLET_ABI_DRAFT,
    .id = TOPOLET_STR("headers"),
    .version = TOPOLET_STR("1"),
    .options = kOptions,
    .option_count = 1,
    .option_stride = sizeof(topolet_option),
    .create = create,
};
