#include <array>

#include "plugins/load/policy.hpp"

namespace {

namespace sdk = topolet::sdk;

constexpr std::array<topolet_str, 2> kRelieve = {{TOPOLET_STR("off"), TOPOLET_STR("on")}};

constexpr std::array<topolet_option, 4> kOptions = {{
    sdk::integer_option(
        "besteffort-percent", "65", 0, 100,
        "How much of what the CPUs of the shared pool can do is for BestEffort containers and those that "
        "they give way to, together: they run on the CPUs that the others leave of it. 0: on all."),
    sdk::string_option(
        "besteffort-memory", "off",
        "How many percent of the machine's memory are for BestEffort containers and what all others request, together: "
        "the rest is shared among them in equal parts, as memory.high of their cgroups (version 2), which slows a "
        "container down rather than ends it. off, or 1 to 100."),
    sdk::integer_option(
        "pressure-percent", "25", 0, 100,
        "A container that shares CPUs, is not BestEffort, and waits for a CPU for so much of the time during 30 "
        "seconds "
        "(PSI, 'some'; not while its own quota throttles it) lacks some: BestEffort containers beside it are narrowed, "
        "and then it is moved if it may be. 0: nothing follows."),
    sdk::choice_option("relieve", "on", kRelieve,
                       "Whether a container that shares CPUs leaves a node, one a minute, that for a minute has been "
                       "able to do clearly less than its containers want, for a calmer one (on), or none does (off)."),
}};

}  // namespace

TOPOLET_PLUGIN(topolet::load_policy::Policy, "load", TOPOLET_LOAD_VERSION, kOptions);
