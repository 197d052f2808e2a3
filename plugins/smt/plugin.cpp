#include <array>

#include "plugins/smt/policy.hpp"

namespace {

namespace sdk = topolet::sdk;

constexpr std::array<topolet_str, 3> kIsolateSiblings = {
    {TOPOLET_STR("off"), TOPOLET_STR("annotated"), TOPOLET_STR("exclusive")}};
constexpr std::array<topolet_str, 2> kRound = {{TOPOLET_STR("deny"), TOPOLET_STR("idle-sibling")}};

constexpr std::array<topolet_str, 3> kPair = {{TOPOLET_STR("false"), TOPOLET_STR("true"), TOPOLET_STR("measured")}};

constexpr std::array<topolet_option, 3> kOptions = {{
    sdk::choice_option(
        "isolate-siblings", "annotated", kIsolateSiblings,
        "Which containers' sibling threads are kept idle: none (off), those of containers annotated topolet.io/smt = "
        "isolate (annotated), or those of all containers with exclusive CPUs (exclusive)."),
    sdk::choice_option(
        "round", "idle-sibling", kRound,
        "What to do under numa.full-pcpus-only with a request that does not fill its last core: deny it (deny), or "
        "give it the whole core and keep the other threads idle (idle-sibling)."),
    sdk::choice_option(
        "pair", "false", kPair,
        "Whether heavy containers are kept on cores of their own and light ones on the sibling threads: as their "
        "annotation topolet.io/cpu-profile says (true), or, without it, as containers of the same namespace, owner and "
        "name were measured to be (measured)."),
}};

class SmtPlugin : public topolet::smt::Policy {
 public:
  SmtPlugin(const sdk::Options& options, const sdk::Host& host) : Policy(topolet::smt::read_options(options), host) {
    if (options["round"] == "deny" && options.configured("numa.full-pcpus-only") != "true")
      host.log(TOPOLET_LOG_WARN,
               "round = deny has no effect without numa.full-pcpus-only = true: requests need not fill their cores");
  }
};

}  // namespace

TOPOLET_PLUGIN(SmtPlugin, "smt", TOPOLET_SMT_VERSION, kOptions);
