#include <topolet/adjust.h>
#include <topolet/annotations.h>
#include <topolet/events.h>
#include <topolet/log.h>
#include <topolet/pick.h>
#include <topolet/propose.h>
#include <topolet/score.h>
#include <topolet/state.h>
#include <topolet/tick.h>
#if __cplusplus >= 202002L
#include <topolet/policy.hpp>
#endif

uint32_t first_os_index(const topolet_topology* topology);
uint32_t first_os_index(const topolet_topology* topology) {
  // NOLINTNEXTLINE(bugprone-sizeof-expression): the size of the pointer is what is meant
  if (!TOPOLET_HAS(topology, pus) || topology->pu_count == 0) return TOPOLET_NONE;
  if (!TOPOLET_STRIDE_HAS(topology->pu_stride, topolet_pu, os_index)) return TOPOLET_NONE;
  return TOPOLET_AT(topolet_pu, topology->pus, topology->pu_stride, 0)->os_index;
}

static int32_t create(const topolet_create_request*, const topolet_error_sink*, const topolet_instance**) {
  return TOPOLET_FAILED;
}

extern const topolet_plugin_entry topolet_plugin_v1 = {sizeof(topolet_plugin_entry),
                                                       TOPOLET_ABI_MINOR,
                                                       TOPOLET_ABI_DRAFT,
                                                       0,
                                                       TOPOLET_STR("headers"),
                                                       TOPOLET_STR("1"),
                                                       nullptr,
                                                       0,
                                                       0,
                                                       &create,
                                                       {nullptr, 0},
                                                       {nullptr, 0},
                                                       {nullptr, 0}};
