#include <array>

#include "plugins/gpu/policy.hpp"

namespace {

constexpr std::array<topolet_str, 2> kAffinity = {{TOPOLET_STR("prefer"), TOPOLET_STR("require")}};

constexpr std::array<topolet_option, 3> kOptions = {{
    {TOPOLET_STR("affinity"),
     TOPOLET_OPTION_CHOICE,
     0,
     TOPOLET_STR("prefer"),
     {kAffinity.data(), kAffinity.size()},
     0,
     0,
     TOPOLET_STR("Whether a container should be, or must be, on the nodes of its devices.")},
    {TOPOLET_STR("keep-free"),
     TOPOLET_OPTION_BOOL,
     0,
     TOPOLET_STR("false"),
     {nullptr, 0},
     0,
     0,
     TOPOLET_STR("Whether containers without devices are kept off the nodes that have some.")},
    {TOPOLET_STR("kinds"),
     TOPOLET_OPTION_STRING,
     0,
     TOPOLET_STR("gpu coprocessor openfabrics"),
     {nullptr, 0},
     0,
     0,
     TOPOLET_STR("Kinds of devices that count, by space: gpu, network, openfabrics, block, coprocessor.")},
}};

}  // namespace

TOPOLET_PLUGIN(topolet::gpu::Policy, "gpu", TOPOLET_GPU_VERSION, kOptions);
