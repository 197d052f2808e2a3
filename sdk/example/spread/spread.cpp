// Keeps the replicas of a service on different NUMA nodes: each pod with the same value of a label that has CPUs on a
// node lowers the node's score.
#include <topolet/policy.hpp>

#include <algorithm>
#include <charconv>
#include <set>

namespace {

using namespace topolet::sdk;

class Spread {
 public:
  // It reads no topolet.io annotation.
  static constexpr std::array<topolet_str, 0> kAnnotations = {};

  explicit Spread(const Options& options) : label_(options["label"]) {
    const std::string_view points = options["points"];
    std::from_chars(points.data(), points.data() + points.size(), points_);
  }

  void score(const topolet_request& request, Scores& scores) const {
    const std::string_view service = value_of(request.workload->pod_labels, label_);
    if (service.empty()) return;
    for (std::size_t i = 0; i < candidates(request).size(); ++i) {
      const auto replicas = static_cast<int>(replicas_on(candidates(request)[i].cpus, service, request));
      scores.score(i, std::max(-points_ * replicas, TOPOLET_SCORE_MIN),
                   "other pods with " + label_ + "=" + printable(service) + " here: " + std::to_string(replicas));
    }
  }

 private:
  // The ledger has the containers that are being created at this moment, too, so that two replicas that come at once
  // are not put on the same node.
  std::size_t replicas_on(topolet_set cpus, std::string_view service, const topolet_request& request) const {
    const topolet_workload& own = *request.workload;
    std::set<std::string_view> pods;
    for (const topolet_ledger_entry& entry : entries(*request.ledger)) {
      if (text(entry.pod_uid) == text(own.pod_uid) || text(entry.pod_namespace) != text(own.pod_namespace)) continue;
      if (value_of(entry.pod_labels, label_) == service && size_of_both(entry.cpus, cpus) > 0)
        pods.insert(text(entry.pod_uid));
    }
    return pods.size();
  }

  std::string label_;
  std::int32_t points_ = 0;
};

constexpr std::array<topolet_option, 2> kOptions = {{
    string_option("label", "app", "The label whose value the pods of a service share."),
    integer_option("points", "10", 1, 100, "What each other pod of the service on a node takes off its score."),
}};

}  // namespace

TOPOLET_PLUGIN(Spread, "spread", "1.0", kOptions);
