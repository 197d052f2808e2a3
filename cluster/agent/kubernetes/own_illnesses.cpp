#include "cluster/agent/kubernetes/own_illnesses.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <utility>

namespace topolet::agent {
namespace {

class OwnIllnesses {
 public:
  explicit OwnIllnesses(const OwnFacts& facts) : facts_(facts), topology_(facts.topology) {}

  std::vector<Illness> find() && {
    add_what_may_not_be();
    add_what_is_not_known();
    add_what_others_do();
    // These warnings describe topoletd, so they are left out while it cannot be reached.
    for (const auto& [code, sentence] : topology_.setup_warnings)
      if (facts_.hears_topoletd) add(code.c_str(), sentence);
    return std::move(found_);
  }

 private:
  void add(const char* code, std::string sentence, Severity severity = Severity::kWarning) {
    found_.push_back({code, severity, "node " + facts_.node_name, std::move(sentence)});
  }

  void add_what_may_not_be() {
    if (!facts_.missing_rights.empty()) {
      add(illness::kMayNotPublish,
          fmt::format("topolet-agent may not {}, and so not publish this node: deploy/kubernetes/rbac.yaml grants it",
                      fmt::join(facts_.missing_rights, ", ")));
    } else if (topology_.is_refused) {
      add(illness::kMayNotPublish, "the API server refuses the NodeResourceTopology: " + topology_.trouble);
    } else if (!topology_.trouble.empty()) {
      add(illness::kNotPublished, "its NodeResourceTopology is not up to date: " + topology_.trouble);
    }
  }

  void add_unknown(const std::string& what, const std::string& trouble) {
    add(illness::kNotPublished, trouble.empty() ? what : fmt::format("{}: {}", what, trouble),
        facts_.is_late ? Severity::kWarning : Severity::kNotice);
  }

  void add_what_is_not_known() {
    if (!facts_.knows_pods) add_unknown("nothing is published before its pods were listed", facts_.pods_trouble);
    if (!facts_.knows_object)
      add_unknown(
          "nothing is published before its NodeResourceTopology, a kind that deploy/kubernetes/crd.yaml has, was read",
          facts_.object_trouble);
    if (!facts_.knows_devices) add_unknown("nothing is published before the kubelet told its devices", "");
    if (topology_.has_node == false)
      add_unknown(
          "nothing is published without a Node of this name: it has not registered yet, was deleted, or "
          "--node-name of topolet-agent is wrong",
          "");
  }

  void add_what_others_do() {
    if (!topology_.other_writer.empty()) {
      add(illness::kOtherWriter,
          fmt::format("{} has changed its NodeResourceTopology within ten minutes: two programs write it, and "
                      "schedulers cannot rely on it; stop the other one on this node, such as nfd-topology-updater or "
                      "koordlet's",
                      topology_.other_writer));
    }
    if (facts_.knows_devices && !facts_.devices_trouble.empty()) {
      add(illness::kDevicesUnknown,
          fmt::format("the kubelet does not tell which devices it gives out: {}; zones are published without what it "
                      "has not told. Let topolet-agent run as root, or with --pod-resources none",
                      facts_.devices_trouble),
          facts_.is_late ? Severity::kWarning : Severity::kNotice);
    }
    if (!facts_.token_trouble.empty())
      add(illness::kTokenNotRenewed, "the agent's token cannot be renewed: " + facts_.token_trouble);
  }

  const OwnFacts& facts_;
  const Publisher::Counts& topology_;
  std::vector<Illness> found_;
};

}  // namespace

std::vector<Illness> own_illnesses(const OwnFacts& facts) { return OwnIllnesses(facts).find(); }

}  // namespace topolet::agent
