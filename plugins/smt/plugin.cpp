#include <array>

#include "plugins/smt/policy.hpp"

namespace {

constexpr std::array<topolet_str, 3> kIsolate = {
    {TOPOLET_STR("off"), TOPOLET_STR("annotated"), TOPOLET_STR("exclusive")}};
constexpr std::array<topolet_str, 2> kRound = {{TOPOLET_STR("deny"), TOPOLET_STR("idle-sibling")}};

constexpr std::array<topolet_option, 3> kOptions = {{
    {TOPOLET_STR("isolate-siblings"),
     TOPOLET_OPTION_CHOICE,
     0,
     TOPOLET_STR("annotated"),
     {kIsolate.data(), kIsolate.size()},
     0,
     0,
     TOPOLET_STR("Whose sibling threads are kept free of others: nobody's, annotated containers', or those of all with "
                 "CPUs of their own.")},
    {TOPOLET_STR("round"),
     TOPOLET_OPTION_CHOICE,
     0,
     TOPOLET_STR("idle-sibling"),
     {kRound.data(), kRound.size()},
     0,
     0,
     TOPOLET_STR(
         "With numa.full-pcpus-only, a request that does not fill its last core: is denied, or a sibling idles.")},
    {TOPOLET_STR("pair"),
     TOPOLET_OPTION_BOOL,
     0,
     TOPOLET_STR("false"),
     {nullptr, 0},
     0,
     0,
     TOPOLET_STR("Keep heavy containers on cores of their own and light ones beside them (topolet.io/cpu-profile).")},
}};

class SmtPlugin : public topolet::smt::Policy {
 public:
  explicit SmtPlugin(const topolet::sdk::Options& options) : Policy(topolet::smt::read_options(options)) {}
};

}  // namespace

TOPOLET_PLUGIN(SmtPlugin, "smt", TOPOLET_SMT_VERSION, kOptions);
