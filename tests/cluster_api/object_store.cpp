#include "tests/cluster_api/object_store.hpp"

#include <fmt/chrono.h>
#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <ctime>
#include <stdexcept>
#include <string_view>

namespace topolet::testing {
namespace {

std::vector<std::string> split_text(std::string_view text, char separator) {
  std::vector<std::string> parts;
  while (true) {
    const std::size_t end = text.find(separator);
    parts.emplace_back(text.substr(0, end));
    if (end == std::string_view::npos) return parts;
    text.remove_prefix(end + 1);
  }
}

/// "pods" of "/api/v1/pods", and "/api/v1" before it.
std::string resource_of(const Collection& collection) { return collection.path.substr(collection.path.rfind('/') + 1); }
std::string root_of(const Collection& collection) { return collection.path.substr(0, collection.path.rfind('/')); }

/// "v1", or "topology.node.k8s.io/v1alpha2".
std::string api_version_of(const Collection& collection) {
  const std::string root = root_of(collection);
  return root.substr(root.find('/', 1) + 1);
}

/// As messages name it: "pods", or "leases.coordination.k8s.io".
std::string qualified_resource(const Collection& collection) {
  const std::string version = api_version_of(collection);
  const std::size_t group_end = version.find('/');
  return resource_of(collection) + (group_end == std::string::npos ? "" : '.' + version.substr(0, group_end));
}

std::string named_object(const ObjectStore::Location& location) {
  return fmt::format("{} \"{}\"", qualified_resource(location.collection()), location.name);
}

bool is_object_name(const std::string& name) {
  const auto is_inner = [](char c) { return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == '-' || c == '.'; };
  return !name.empty() && name.size() <= 253 && std::all_of(name.begin(), name.end(), is_inner) &&
         name.front() != '-' && name.front() != '.' && name.back() != '-' && name.back() != '.';
}

std::string key_of(const std::string& name_space, const std::string& name) { return name_space + '/' + name; }

std::string timestamp(std::chrono::milliseconds wall_time) {
  const std::time_t seconds = std::chrono::floor<std::chrono::seconds>(wall_time).count();
  return fmt::format("{:%Y-%m-%dT%H:%M:%SZ}", fmt::gmtime(seconds));
}

std::string encode_hex(const std::string& text) {
  std::string hex;
  for (const unsigned char byte : text) hex += fmt::format("{:02x}", byte);
  return hex;
}

std::optional<std::string> decode_hex(const std::string& hex) {
  std::string text;
  if (hex.size() % 2 != 0) return std::nullopt;
  for (std::size_t i = 0; i < hex.size(); i += 2) {
    unsigned byte = 0;
    const char* const begin = hex.data() + i;
    if (std::from_chars(begin, begin + 2, byte, 16).ptr != begin + 2) return std::nullopt;
    text += static_cast<char>(byte);
  }
  return text;
}

Answer refused(unsigned code, const std::string& message, const std::string& reason = "") {
  return {code, status_object(code, message, reason)};
}

Answer not_found(const ObjectStore::Location& location) { return refused(404, named_object(location) + " not found"); }

Answer invalid(const ObjectStore::Location& location, const std::string& message) {
  return refused(422, named_object(location) + " is invalid: " + message);
}

Answer conflict(const ObjectStore::Location& location, const std::string& message) {
  return refused(409, named_object(location) + ": " + message, "Conflict");
}

const char* reason_of(unsigned code) {
  switch (code) {
    case 400:
      return "BadRequest";
    case 401:
      return "Unauthorized";
    case 403:
      return "Forbidden";
    case 404:
      return "NotFound";
    case 405:
      return "MethodNotAllowed";
    case 409:
      return "Conflict";
    case 410:
      return "Expired";
    case 415:
      return "UnsupportedMediaType";
    case 422:
      return "Invalid";
    case 429:
      return "TooManyRequests";
    case 500:
      return "InternalError";
    case 503:
      return "ServiceUnavailable";
    case 504:
      return "Timeout";
    default:
      return "";
  }
}

/// The objects as they were at that resourceVersion.
std::map<std::string, const Json*> objects_at(const ObjectStore::Kept& kept, std::uint64_t resource_version) {
  std::map<std::string, const Json*> objects;
  for (const Version& version : kept.history) {
    if (version.resource_version > resource_version) break;
    const std::string key = key_of(metadata_text(version.object, "namespace"), metadata_text(version.object, "name"));
    if (version.type == ChangeType::kDeleted) {
      objects.erase(key);
    } else {
      objects[key] = &version.object;
    }
  }
  return objects;
}

struct ListPosition {
  std::uint64_t resource_version = 0;
  std::string last_key;  ///< of the pages before; empty: there are none
};

std::optional<ListPosition> parse_continue(const std::string& token) {
  const std::string text = decode_hex(token).value_or("");
  const std::size_t end = text.find(':');
  const auto resource_version = parse_number(text.substr(0, end));
  if (end == std::string::npos || !resource_version) return std::nullopt;
  return ListPosition{*resource_version, text.substr(end + 1)};
}

Json list_item(const Collection& collection, Json object) {
  if (!collection.is_custom) {
    object.erase("apiVersion");
    object.erase("kind");
  }
  return object;
}

}  // namespace

Json status_object(unsigned code, const std::string& message, std::string reason) {
  if (reason.empty()) reason = reason_of(code);
  return {{"kind", "Status"},    {"apiVersion", "v1"}, {"metadata", Json::object()},
          {"status", "Failure"}, {"message", message}, {"reason", reason},
          {"code", code}};
}

std::optional<std::uint64_t> parse_number(const std::string& text) {
  std::uint64_t number = 0;
  const char* const end = text.data() + text.size();
  const auto [rest, failed] = std::from_chars(text.data(), end, number);
  if (failed != std::errc() || rest != end) return std::nullopt;
  return number;
}

std::string field_text(const Json& object, const std::string& field) {
  const Json* value = &object;
  for (const std::string& part : split_text(field, '.')) {
    if (!value->is_object() || !value->contains(part)) return "";
    value = &value->at(part);
  }
  if (value->is_string()) return value->get<std::string>();
  return value->is_null() ? "" : value->dump();
}

std::string metadata_text(const Json& object, const char* field) {
  return field_text(object, std::string("metadata.") + field);
}

FieldSelector::FieldSelector(const std::string& text, const Collection& collection, std::string& error) {
  if (text.empty()) return;
  for (const std::string& part : split_text(text, ',')) {
    const std::size_t equals = part.find('=');
    if (equals == std::string::npos || equals == 0) {
      error = "'" + part + "' is no field selector";
      return;
    }
    Term term{part.substr(0, equals), part.substr(equals + 1), part[equals - 1] != '!'};
    if (!term.is_equal) term.field.pop_back();
    if (!term.value.empty() && term.value.front() == '=') term.value.erase(0, 1);
    const bool is_known = term.field == "metadata.name" || term.field == "metadata.namespace" ||
                          collection.selectable_fields.count(term.field) > 0;
    if (!is_known) error = "field label not supported: " + term.field;
    terms_.push_back(std::move(term));
  }
}

bool FieldSelector::matches(const Json& object) const {
  return std::all_of(terms_.begin(), terms_.end(),
                     [&](const Term& term) { return (field_text(object, term.field) == term.value) == term.is_equal; });
}

bool ObjectStore::Location::contains(const Json& object) const {
  return (name_space.empty() || metadata_text(object, "namespace") == name_space) &&
         (name.empty() || metadata_text(object, "name") == name);
}

void ObjectStore::add(Collection collection) {
  Kept& kept = kept_[collection.path];
  kept.is_served = true;
  kept.collection = std::move(collection);
}

void ObjectStore::drop(const std::string& path) {
  const auto found = kept_.find(path);
  if (found == kept_.end()) return;
  Kept& kept = found->second;
  kept.is_served = false;
  while (!kept.objects.empty()) {
    const Json object = kept.objects.begin()->second;
    erase({&kept, metadata_text(object, "namespace"), metadata_text(object, "name")}, Json());
  }
}

std::optional<ObjectStore::Location> ObjectStore::locate(const std::string& path) {
  for (auto& [collection_path, kept] : kept_) {
    const std::string root = root_of(kept.collection) + '/';
    if (!kept.is_served || path.compare(0, root.size(), root) != 0) continue;
    std::vector<std::string> parts = split_text(std::string_view(path).substr(root.size()), '/');
    if (std::any_of(parts.begin(), parts.end(), [](const std::string& part) { return part.empty(); })) continue;
    Location location{&kept, "", ""};
    const bool has_name_space = kept.collection.is_namespaced && parts.size() >= 3 && parts[0] == "namespaces";
    if (has_name_space) {
      location.name_space = parts[1];
      parts.erase(parts.begin(), parts.begin() + 2);
    }
    if (parts[0] != resource_of(kept.collection) || parts.size() > 2) continue;
    if (parts.size() == 2 && kept.collection.is_namespaced && !has_name_space) continue;
    if (parts.size() == 2) location.name = parts[1];
    return location;
  }
  return std::nullopt;
}

Answer ObjectStore::read(const Location& location) const {
  const auto found = location.kept->objects.find(key_of(location.name_space, location.name));
  if (found == location.kept->objects.end()) return not_found(location);
  return {200, found->second};
}

Answer ObjectStore::expired(std::uint64_t resource_version) const {
  return refused(410, fmt::format("resource version {} is too old, the oldest is {}", resource_version, compacted_));
}

Answer ObjectStore::list(const Location& location, const Query& query) const {
  const auto parameter = [&](const char* name) {
    const auto found = query.find(name);
    return found == query.end() ? "" : found->second;
  };
  const Collection& collection = location.collection();
  std::string error;
  const FieldSelector selector(parameter("fieldSelector"), collection, error);
  if (!error.empty()) return refused(400, error);
  const auto limit = parse_number(parameter("limit").empty() ? "0" : parameter("limit"));
  if (!limit) return refused(400, "limit is not a number");
  ListPosition position{resource_version_, ""};
  if (const std::string token = parameter("continue"); !token.empty()) {
    const auto parsed = parse_continue(token);
    if (!parsed) return refused(400, "continue key is not valid");
    if (is_expired(parsed->resource_version)) return expired(parsed->resource_version);
    position = *parsed;
  }

  Json metadata = {{"resourceVersion", std::to_string(position.resource_version)}};
  Json items = Json::array();
  std::string last_key;
  std::uint64_t left_out = 0;
  for (const auto& [key, object] : objects_at(*location.kept, position.resource_version)) {
    const bool is_before = !position.last_key.empty() && key <= position.last_key;
    if (is_before || !location.contains(*object) || !selector.matches(*object)) continue;
    if (*limit > 0 && items.size() == *limit) {
      ++left_out;
      continue;
    }
    items.push_back(list_item(collection, *object));
    last_key = key;
  }
  if (left_out > 0) {
    metadata["continue"] = encode_hex(fmt::format("{}:{}", position.resource_version, last_key));
    if (selector.is_empty()) metadata["remainingItemCount"] = left_out;
  }
  return {200,
          {{"kind", collection.kind + "List"},
           {"apiVersion", api_version_of(collection)},
           {"metadata", metadata},
           {"items", items}}};
}

namespace {

/// Returns the reason why an object cannot be written at a location whatever is stored there; nullopt: none.
std::optional<Answer> object_mistake(const ObjectStore::Location& location, const Json& object) {
  const Collection& collection = location.collection();
  if (!object.is_object()) return refused(400, "the body is not a JSON object");
  for (const char* field : {"metadata", "spec", "status"}) {
    if (object.contains(field) && !object.at(field).is_object())
      return refused(400, std::string(field) + " is no object");
  }
  if (field_text(object, "apiVersion") != api_version_of(collection) || field_text(object, "kind") != collection.kind) {
    return refused(
        400, "apiVersion and kind are not those of the path: " + api_version_of(collection) + ' ' + collection.kind);
  }
  const std::string name_space = metadata_text(object, "namespace");
  if (!name_space.empty() && name_space != location.name_space) {
    return refused(400, "the namespace of the object is not that of the path");
  }
  if (metadata_text(object, "name") != location.name)
    return refused(400, "the name of the object is not that of the path");
  if (!is_object_name(location.name)) return invalid(location, "metadata.name: not a DNS subdomain");
  const std::string mistake = collection.validate ? collection.validate(object) : "";
  if (!mistake.empty()) return invalid(location, mistake);
  return std::nullopt;
}

}  // namespace

Answer ObjectStore::create(const Location& location, Json object) {
  if (!object.is_object()) return refused(400, "the body is not a JSON object");
  if (location.collection().is_namespaced && location.name_space.empty()) {
    return refused(405, "objects are created in a namespace");
  }
  Location own = location;
  own.name = metadata_text(object, "name");
  const std::string prefix = metadata_text(object, "generateName");
  if (own.name.empty() && !prefix.empty()) {
    own.name = fmt::format("{}{:05x}", prefix, ++made_uids_);
    object["metadata"]["name"] = own.name;
  }
  if (own.name.empty()) return invalid(own, "metadata.name: Required value");
  if (location.collection().is_namespaced && object["metadata"].is_object() &&
      metadata_text(object, "namespace").empty()) {
    object["metadata"]["namespace"] = own.name_space;
  }
  if (auto mistake = object_mistake(own, object)) return *std::move(mistake);
  if (!metadata_text(object, "resourceVersion").empty()) return refused(400, "resourceVersion is not for new objects");
  if (read(own).code == 200) return refused(409, named_object(own) + " already exists", "AlreadyExists");
  object["metadata"].erase("uid");
  object["metadata"].erase("creationTimestamp");
  return {201, store(own, std::move(object))};
}

Answer ObjectStore::replace(const Location& location, Json object) {
  if (auto mistake = object_mistake(location, object)) return *std::move(mistake);
  const Answer current = read(location);
  if (current.code != 200) return current;
  if (metadata_text(object, "resourceVersion").empty() && !location.collection().allows_unconditional_update) {
    return invalid(location, "metadata.resourceVersion: must be specified for an update");
  }
  return update(location, current.body, std::move(object));
}

Answer ObjectStore::merge_patch(const Location& location, const Json& patch) {
  const Answer current = read(location);
  if (current.code != 200) return current;
  if (!patch.is_object()) return refused(400, "the patch is not a JSON object");
  Json object = current.body;
  object.merge_patch(patch);
  if (auto mistake = object_mistake(location, object)) return *std::move(mistake);
  return update(location, current.body, std::move(object));
}

/// An object that is as it was stays the version it is, and no watch hears of it.
Answer ObjectStore::update(const Location& location, const Json& current, Json object) {
  for (const char* precondition : {"uid", "resourceVersion"}) {
    const std::string wanted = metadata_text(object, precondition);
    if (wanted.empty() || wanted == metadata_text(current, precondition)) continue;
    return conflict(location, std::string("the stored object has another ") + precondition + "; read it again");
  }
  for (const char* field : {"namespace", "uid", "resourceVersion", "creationTimestamp"}) {
    if (current.at("metadata").contains(field)) object["metadata"][field] = current.at("metadata").at(field);
  }
  if (object == current) return {200, current};
  return {200, store(location, std::move(object))};
}

Answer ObjectStore::bind(const Location& location, const Json& binding) {
  const Answer current = read(location);
  if (current.code != 200) return current;
  const std::string node = field_text(binding, "target.name");
  if (node.empty()) return invalid(location, "target.name: Required value");
  const std::string uid = metadata_text(binding, "uid");
  if (!uid.empty() && uid != metadata_text(current.body, "uid"))
    return conflict(location, "Precondition failed: another uid");
  if (!metadata_text(current.body, "deletionTimestamp").empty())
    return conflict(location, "it is being deleted, cannot be assigned to a host");
  if (const std::string has = field_text(current.body, "spec.nodeName"); !has.empty())
    return conflict(location, "it is already assigned to node \"" + has + '"');
  Json pod = current.body;
  pod["spec"]["nodeName"] = node;
  if (binding["metadata"].contains("annotations"))
    pod["metadata"]["annotations"].update(binding["metadata"]["annotations"]);
  store(location, std::move(pod));
  return {201, {{"kind", "Status"}, {"apiVersion", "v1"}, {"status", "Success"}, {"code", 201}}};
}

Answer ObjectStore::erase(const Location& location, const Json& options) {
  const Answer current = read(location);
  if (current.code != 200) return current;
  for (const char* precondition : {"uid", "resourceVersion"}) {
    const std::string wanted = field_text(options, std::string("preconditions.") + precondition);
    if (!wanted.empty() && wanted != metadata_text(current.body, precondition)) {
      return conflict(location, std::string("the stored object has another ") + precondition);
    }
  }
  Json last = current.body;
  last["metadata"]["resourceVersion"] = std::to_string(++resource_version_);
  location.kept->objects.erase(key_of(location.name_space, location.name));
  location.kept->history.push_back({ChangeType::kDeleted, last, current.body, resource_version_, clock_.steady()});
  return {200, {{"kind", "Status"}, {"apiVersion", "v1"}, {"metadata", Json::object()}, {"status", "Success"}}};
}

const Json& ObjectStore::put(const Location& location, Json object) {
  Location own = location;
  if (own.name.empty()) own.name = metadata_text(object, "name");
  if (location.collection().is_namespaced) {
    if (own.name_space.empty()) own.name_space = metadata_text(object, "namespace");
    if (own.name_space.empty()) throw std::invalid_argument(own.name + " has no namespace");
    object["metadata"]["namespace"] = own.name_space;
  }
  if (own.name.empty()) throw std::invalid_argument("an object without a name");
  const auto& objects = own.kept->objects;
  if (const auto found = objects.find(key_of(own.name_space, own.name)); found != objects.end()) {
    for (const char* field : {"uid", "creationTimestamp"}) {
      if (metadata_text(object, field).empty()) object["metadata"][field] = found->second.at("metadata").at(field);
    }
  }
  return store(own, std::move(object));
}

const Json& ObjectStore::store(const Location& location, Json object) {
  object.emplace("apiVersion", api_version_of(location.collection()));
  object.emplace("kind", location.collection().kind);
  Json& metadata = object["metadata"];
  // The counter comes first, as a uid's first eight digits are what topolet tells pods apart by.
  if (!metadata.contains("uid")) metadata["uid"] = fmt::format("{:08x}-0000-4000-8000-000000000000", ++made_uids_);
  metadata.emplace("creationTimestamp", timestamp(clock_.wall()));
  metadata["resourceVersion"] = std::to_string(++resource_version_);
  const std::string key = key_of(location.name_space, location.name);
  const auto found = location.kept->objects.find(key);
  const bool is_new = found == location.kept->objects.end();
  Version version{is_new ? ChangeType::kAdded : ChangeType::kModified, object, std::nullopt, resource_version_,
                  clock_.steady()};
  if (!is_new) version.previous = found->second;
  location.kept->history.push_back(std::move(version));
  return location.kept->objects[key] = std::move(object);
}

}  // namespace topolet::testing
