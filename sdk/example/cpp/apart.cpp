// Keeps containers of one name, the replicas of a service, on different NUMA nodes: a node counts for less the more of
// them it has already.
#include <topolet/policy.hpp>

#include <charconv>

namespace {

using namespace topolet::sdk;

class Apart {
 public:
  explicit Apart(const Options& options) {
    const std::string_view points = options["points"];
    std::from_chars(points.data(), points.data() + points.size(), points_);
  }

  void score(const topolet_request& request, Scores& scores) const {
    const std::string_view name = text(request.workload->container_name);
    for (std::size_t i = 0; i < candidates(request).size(); ++i) {
      const int twins = twins_on(candidates(request)[i].cpus, name, *request.ledger);
      scores.score(i, std::max(-points_ * twins, TOPOLET_SCORE_MIN),
                   std::to_string(twins) + " more called " + std::string(name) + " run there");
    }
  }

 private:
  static int twins_on(topolet_set cpus, std::string_view name, const topolet_ledger& ledger) {
    int twins = 0;
    for (const topolet_ledger_entry& entry : entries(ledger)) {
      if (text(entry.container_name) == name && size_of_both(entry.cpus, cpus) > 0) ++twins;
    }
    return twins;
  }

  std::int32_t points_ = 0;
};

constexpr std::array<topolet_option, 1> kOptions = {{
    {TOPOLET_STR("points"), TOPOLET_OPTION_INTEGER, 0, TOPOLET_STR("10"), {}, 1, 100, TOPOLET_STR("What each costs.")},
}};

}  // namespace

TOPOLET_PLUGIN(Apart, "apart", "1.0", kOptions);
