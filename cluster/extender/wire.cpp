#include "cluster/extender/wire.hpp"

#include <fmt/format.h>
#include <simdjson.h>

#include <algorithm>
#include <nlohmann/json.hpp>

namespace topolet::extender {
namespace {

namespace dom = simdjson::dom;

/// The parser keeps its memory, up to what usual bodies need.
constexpr std::size_t kKeptBytes = 4 << 20;

Error wrong(const std::string& what) { return {Code::kInvalidArgument, "the request is wrong: " + what}; }

/// Valid until the next body is read on this thread.
Result<dom::object> parse_object(const std::string& body) {
  thread_local dom::parser parser;
  if (parser.capacity() > kKeptBytes && body.size() <= kKeptBytes) parser = dom::parser();
  dom::object object;
  if (const auto error = parser.parse(body).get(object); error)
    return wrong(fmt::format("it is no JSON object ({})", simdjson::error_message(error)));
  return object;
}

/// Returns the text; empty if it is missing or is not a text.
std::string_view text_in(const dom::object& object, std::string_view key) {
  std::string_view text;
  return object.at_key(key).get(text) ? std::string_view() : text;
}

bool is_plain(char c) { return c >= ' ' && c <= '~' && c != '"' && c != '\\'; }

void append_text(std::string& out, std::string_view text) {
  if (std::all_of(text.begin(), text.end(), is_plain)) {
    out += '"';
    out += text;
    out += '"';
  } else {
    out += nlohmann::json(std::string(text)).dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
  }
}

template <class Items, class Append>
void append_list(std::string& out, char begin, char end, const Items& items, Append append) {
  out += begin;
  bool is_first = true;
  for (const auto& item : items) {
    if (!is_first) out += ',';
    is_first = false;
    append(item);
  }
  out += end;
}

std::string version_of(const dom::object& pod) {
  dom::object metadata;
  if (pod.at_key("metadata").get(metadata)) return {};
  return fmt::format("{} {}", text_in(metadata, "uid"), text_in(metadata, "resourceVersion"));
}

/// Returns the uid of a MetaPod or of a complete Pod.
std::string uid_of(const dom::object& pod) {
  if (const std::string_view uid = text_in(pod, "UID"); !uid.empty()) return std::string(uid);
  dom::object metadata;
  return pod.at_key("metadata").get(metadata) ? std::string() : std::string(text_in(metadata, "uid"));
}

Result<NodeVictims> read_victims(std::string_view node, const dom::element& element) {
  NodeVictims victims{std::string(node), {}, 0};
  dom::object object;
  dom::array pods;
  if (element.get(object) || object.at_key("Pods").get(pods))
    return wrong(fmt::format("the victims on {} are no list of Pods", node));
  for (const dom::element entry : pods) {
    dom::object pod;
    std::string uid = entry.get(pod) ? std::string() : uid_of(pod);
    if (uid.empty()) return wrong(fmt::format("a victim on {} has no UID", node));
    victims.uids.push_back(std::move(uid));
  }
  std::int64_t violations = 0;
  if (!object.at_key("NumPDBViolations").get(violations)) victims.budget_violations = violations;
  return victims;
}

void append_names(std::string& out, const std::vector<std::pair<std::string_view, std::string>>& refused) {
  append_list(out, '{', '}', refused, [&](const auto& entry) {
    append_text(out, entry.first);
    out += ':';
    append_text(out, entry.second);
  });
}

}  // namespace

Result<ExtenderArgs> read_extender_args(const std::string& body) {
  const Result<dom::object> object = parse_object(body);
  if (!object) return object.error();
  ExtenderArgs args;
  dom::object pod;
  if (object->at_key("Pod").get(pod)) return wrong("it has no Pod");
  dom::array names;
  if (object->at_key("NodeNames").get(names)) {
    dom::object nodes;
    const bool has_nodes = !object->at_key("Nodes").get(nodes);
    return wrong(has_nodes ? "it has whole nodes and no NodeNames; set nodeCacheCapable: true for this extender in the "
                             "scheduler's configuration"
                           : "it has no NodeNames");
  }
  args.node_names.reserve(names.size());
  for (const dom::element name : names) {
    std::string_view text;
    if (name.get(text)) return wrong("a name in NodeNames is no text");
    args.node_names.push_back(text);
  }
  args.pod_json = simdjson::to_string(pod);
  args.pod_version = version_of(pod);
  return args;
}

Result<PreemptionArgs> read_preemption_args(const std::string& body) {
  const Result<dom::object> object = parse_object(body);
  if (!object) return object.error();
  PreemptionArgs args;
  dom::object pod;
  if (object->at_key("Pod").get(pod)) return wrong("it has no Pod");
  dom::object nodes;
  if (object->at_key("NodeNameToMetaVictims").get(nodes) && object->at_key("NodeNameToVictims").get(nodes))
    return wrong("it has no NodeNameToMetaVictims");
  for (const auto& [name, victims] : nodes) {
    Result<NodeVictims> read = read_victims(name, victims);
    if (!read) return read.error();
    args.nodes.push_back(*std::move(read));
  }
  args.pod_json = simdjson::to_string(pod);
  args.pod_version = version_of(pod);
  return args;
}

Result<BindingArgs> read_binding_args(const std::string& body) {
  const Result<dom::object> object = parse_object(body);
  if (!object) return object.error();
  BindingArgs args;
  args.name = text_in(*object, "PodName");
  args.name_space = text_in(*object, "PodNamespace");
  args.uid = text_in(*object, "PodUID");
  args.node = text_in(*object, "Node");
  for (const auto& [key, value] : {std::pair("PodName", &args.name),
                                   {"PodNamespace", &args.name_space},
                                   {"PodUID", &args.uid},
                                   {"Node", &args.node}}) {
    if (value->empty()) return wrong(fmt::format("it has no {}", key));
    // They become parts of paths.
    if (value->size() > 253 || value->find_first_of("/?#%") != std::string::npos || value->front() == '.')
      return wrong(fmt::format("its {} is no name", key));
  }
  return args;
}

std::string filter_result_text(const FilterResult& result) {
  std::string out = "{\"Nodes\":null,\"NodeNames\":";
  append_list(out, '[', ']', result.node_names, [&](std::string_view name) { append_text(out, name); });
  out += ",\"FailedNodes\":";
  if (result.failed.empty()) {
    out += "null";
  } else {
    append_names(out, result.failed);
  }
  out += ",\"FailedAndUnresolvableNodes\":";
  append_names(out, result.unresolvable);
  return out + ",\"Error\":\"\"}";
}

std::string filter_error_text(std::string_view error) {
  std::string out =
      "{\"Nodes\":null,\"NodeNames\":null,\"FailedNodes\":null,\"FailedAndUnresolvableNodes\":null,\"Error\":";
  append_text(out, error);
  return out + '}';
}

std::string priorities_text(const std::vector<std::pair<std::string_view, int>>& scores) {
  std::string out;
  append_list(out, '[', ']', scores, [&](const auto& score) {
    out += "{\"Host\":";
    append_text(out, score.first);
    out += fmt::format(",\"Score\":{}}}", score.second);
  });
  return out;
}

std::string preemption_result_text(const std::vector<NodeVictims>& nodes) {
  std::string out = "{\"NodeNameToMetaVictims\":";
  append_list(out, '{', '}', nodes, [&](const NodeVictims& victims) {
    append_text(out, victims.node);
    out += ":{\"Pods\":";
    append_list(out, '[', ']', victims.uids, [&](const std::string& uid) {
      out += "{\"UID\":";
      append_text(out, uid);
      out += '}';
    });
    out += fmt::format(",\"NumPDBViolations\":{}}}", victims.budget_violations);
  });
  return out + '}';
}

std::string binding_result_text(std::string_view error) {
  std::string out = "{\"Error\":";
  append_text(out, error);
  return out + '}';
}

}  // namespace topolet::extender
