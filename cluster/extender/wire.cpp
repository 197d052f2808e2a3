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

/// Empty where it is missing or is no text.
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
  dom::object metadata;
  if (!pod.at_key("metadata").get(metadata))
    args.pod_version = fmt::format("{} {}", text_in(metadata, "uid"), text_in(metadata, "resourceVersion"));
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
  out += ",\"FailedNodes\":null,\"FailedAndUnresolvableNodes\":";
  append_list(out, '{', '}', result.unresolvable, [&](const auto& refused) {
    append_text(out, refused.first);
    out += ':';
    append_text(out, refused.second);
  });
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

std::string binding_result_text(std::string_view error) {
  std::string out = "{\"Error\":";
  append_text(out, error);
  return out + '}';
}

}  // namespace topolet::extender
