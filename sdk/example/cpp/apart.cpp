// Keeps containers of the same name, the replicas of a service, on different NUMA nodes: each container of that name
// that already runs on a node lowers the node's score.
#include <topolet/policy.hpp>

#include <charconv>

namespace {

using namespace topolet::sdk;

class Apart {
 public:
  // It reads no topolet.io annotation.
  static constexpr std::array<topolet_str, 0> kAnnotations = {};

  explicit Apart(const Options& options) {
    const std::string_view points = options["points"];
    std::from_chars(points.data(), points.data() + points.size(), points_);
  }

  void score(const topolet_request& request, Scores& scores) const {
    const std::string_view name = text(request.workload->container_name);
    for (std::size_t i = 0; i < candidates(request).size(); ++i) {
      const int replicas = replicas_on(candidates(request)[i].cpus, name, *request.ledger);
      scores.score(i, std::max(-points_ * replicas, TOPOLET_SCORE_MIN),
                   "other containers named " + std::string(name) + " on these nodes: " + std::to_string(replicas));
    }
  }

 private:
  static int replicas_on(topolet_set cpus, std::string_view name, const topolet_ledger& ledger) {
    int replicas = 0;
    for (const topolet_ledger_entry& entry : entries(ledger)) {
      if (text(entry.container_name) == name && size_of_both(entry.cpus, cpus) > 0) ++replicas;
    }
    return replicas;
  }

  std::int32_t points_ = 0;
};

constexpr std::array<topolet_option, 1> kOptions = {{
    integer_option("points", "10", 1, 100, "What each container of the same name on a node takes off its score."),
}};

}  // namespace

TOPOLET_PLUGIN(Apart, "apart", "1.0", kOptions);
