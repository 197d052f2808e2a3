#include "tests/fuzz/extender_request_properties.hpp"

#include <algorithm>
#include <nlohmann/json.hpp>
#include <vector>

#include "cluster/extender/rank.hpp"
#include "cluster/extender/wire.hpp"

namespace topolet {
namespace {

using nlohmann::json;

bool is_printable(const std::string& text) {
  return std::all_of(text.begin(), text.end(), [](unsigned char c) { return c >= ' ' && c != 0x7f; });
}

/// A node that has room, and one that is not known.
extender::ZoneBook book_with(const std::string& known_name) {
  extender::ZoneBook book;
  extender::NodeZones node;
  node.name = known_name;
  for (std::uint32_t i = 0; i < 3; ++i) {
    extender::Zone zone;
    zone.os_index = i;
    zone.available = {{extender::kCpu, 8000}, {extender::kMemory, std::int64_t{1} << 34U}};
    zone.allocatable = zone.available;
    node.zones.push_back(zone);
  }
  book.set_node(std::move(node));
  return book;
}

std::string judge_answers(const extender::ExtenderArgs& args) {
  const json pod = json::parse(args.pod_json, nullptr, false);
  if (!pod.is_object()) return "the pod of a request that was read is no JSON object";
  extender::ZoneBook book = book_with(args.node_names.empty() ? "n1" : std::string(args.node_names.front()));
  const auto demand = extender::read_demand(api::read_pod(pod), {}, book.names());
  if (!demand) return is_printable(demand.error().message) ? "" : "an error is not printable";
  const extender::FilterResult result = extender::filter_nodes(book, *demand, args.node_names);
  const json filtered = json::parse(extender::filter_result_text(result), nullptr, false);
  const json scored =
      json::parse(extender::priorities_text(extender::score_nodes(book, *demand, args.node_names)), nullptr, false);
  if (filtered.is_discarded() || scored.is_discarded()) return "an answer is no JSON";
  std::vector<std::string> asked(args.node_names.begin(), args.node_names.end());
  std::vector<std::string> scored_names;
  for (const json& score : scored) {
    scored_names.push_back(score.at("Host"));
    if (score.at("Score") < 0 || score.at("Score") > 10) return "a score is not between 0 and 10";
  }
  if (asked != scored_names) return "not the nodes that were asked for are scored";
  for (const std::string& name : asked) {
    const json& passing = filtered.at("NodeNames");
    const bool passes = std::find(passing.begin(), passing.end(), name) != passing.end();
    if (!passes && !filtered.at("FailedAndUnresolvableNodes").contains(name)) return "a node is lost";
  }
  return "";
}

/// Pods are promised zones of the node until no more fit.
std::string judge_promises(const json& object) {
  extender::ZoneBook book;
  extender::NodeZones node = extender::read_node_zones(object, book.names());
  const std::string name = node.name;
  // Every object of the API server has one.
  if (name.empty()) return "";
  std::vector<std::int64_t> available;
  for (const extender::Zone& zone : node.zones) available.push_back(zone.available.get(extender::kCpu));
  book.set_node(std::move(node));
  for (int i = 0; i < 20; ++i) {
    extender::Demand demand;
    demand.uid = std::to_string(i) + "-uid-of-a-pod";
    demand.policy = i % 2 == 0 ? extender::ZonePolicy::kFewest : extender::ZonePolicy::kSingle;
    demand.containers.push_back({"main", extender::ContainerDemand::Kind::kMain, {{extender::kCpu, 1000 + 500 * i}}});
    std::vector<std::int64_t> before;
    if (const auto view = book.view(name)) {
      for (const extender::Amounts& free : view->free) before.push_back(free.get(extender::kCpu));
    }
    const auto reserved = book.reserve(name, demand, {});
    if (!reserved) {
      if (!is_printable(reserved.error().message)) return "an error is not printable";
      continue;
    }
    if (!extender::read_zone_annotation(reserved->annotation)) return "an annotation is not read as it was written";
    const auto view = book.view(name);
    for (std::size_t zone = 0; zone < available.size(); ++zone) {
      const std::int64_t free = view->free[zone].get(extender::kCpu);
      // For a container on several zones, each zone keeps all that it may take.
      if (demand.policy == extender::ZonePolicy::kSingle && free < std::min<std::int64_t>(0, before[zone]))
        return "more is promised than there is";
    }
  }
  return "";
}

}  // namespace

TextJudgement judge_extender_request(const std::string& text) {
  TextJudgement judgement;
  const auto args = extender::read_extender_args(text);
  if (args) {
    judgement = {true, judge_answers(*args)};
  } else if (!is_printable(args.error().message)) {
    judgement.violation = "an error is not printable";
  }
  const auto binding = extender::read_binding_args(text);
  if (binding) {
    judgement.accepted = true;
    for (const std::string& part : {binding->name, binding->name_space, binding->uid, binding->node}) {
      if (part.empty() || part.find('/') != std::string::npos) judgement.violation = "a part of a binding is no name";
    }
  } else if (!is_printable(binding.error().message)) {
    judgement.violation = "an error is not printable";
  }
  const json object = json::parse(text, nullptr, false);
  if (!object.is_discarded() && judgement.violation.empty()) judgement.violation = judge_promises(object);
  if (args && object.is_discarded()) judgement.violation = "a request that is no JSON was read";
  extender::read_zone_annotation(text);
  return judgement;
}

}  // namespace topolet
