// The objects that the apiserver of the tests keeps, and what it answers to reads and writes of them. It knows neither
// connections nor threads: the server calls it under its mutex.
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <map>
#include <nlohmann/json.hpp>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "core/base/clock.hpp"

namespace topolet::testing {

using Json = nlohmann::json;
/// The query of a request's target, decoded: {"watch", "1"}.
using Query = std::map<std::string, std::string>;

/// One kind of objects, and where they are served.
struct Collection {
  /// Where all of them are listed: "/api/v1/pods". Those of one namespace are below
  /// "/api/v1/namespaces/NAMESPACE/pods", one of them is "/api/v1/namespaces/NAMESPACE/pods/NAME"; without namespaces,
  /// "/api/v1/nodes/NAME".
  std::string path{};
  std::string kind{};  ///< "Pod"; a list's is "PodList"
  bool is_namespaced = false;
  /// Items of a list carry apiVersion and kind only if this is true, as those of custom resources do.
  bool is_custom = false;
  /// True: a PUT without metadata.resourceVersion replaces the object whatever its version. False: it is 422 Invalid.
  bool allows_unconditional_update = true;
  /// Fields that fieldSelector may name, beside metadata.name and metadata.namespace; anything else is 400 BadRequest.
  std::set<std::string> selectable_fields{};
  /// Says what is wrong with an object, for 422 Invalid; empty if nothing is.
  std::function<std::string(const Json&)> validate{};
};

/// Pods, nodes, events, leases and NodeResourceTopologies, with the fields that Kubernetes lets one select by. Events
/// must be in the namespace of what they are about, and zones of a NodeResourceTopology must have what its schema
/// requires.
std::vector<Collection> default_collections();

/// The kind of event by which a watch learns of a version.
enum class ChangeType { kAdded, kModified, kDeleted };

/// One version of an object as it was stored; a deletion has the object's last content with a resourceVersion of its
/// own.
struct Version {
  ChangeType type = ChangeType::kAdded;
  Json object;
  std::optional<Json> previous;  ///< what it replaced or deleted
  std::uint64_t resource_version = 0;
  std::chrono::steady_clock::time_point time;
};

/// An object of kind Status with "status": "Failure". `reason` is Kubernetes' word for the code where it is empty.
Json status_object(unsigned code, const std::string& message, std::string reason = "");

struct Answer {
  unsigned code = 200;
  Json body;
};

class FieldSelector {
 public:
  /// "spec.nodeName=n1,status.phase!=Succeeded". Sets `error` where the collection has no such field.
  FieldSelector(const std::string& text, const Collection& collection, std::string& error);
  bool matches(const Json& object) const;
  bool is_empty() const { return terms_.empty(); }

 private:
  struct Term {
    std::string field;
    std::string value;
    bool is_equal = true;
  };
  std::vector<Term> terms_;
};

/// Not thread-safe.
class ObjectStore {
 public:
  struct Kept {
    Collection collection;
    bool is_served = true;
    std::map<std::string, Json> objects;  ///< by NAMESPACE/NAME
    std::vector<Version> history;         ///< in the order of resource_version
  };
  /// The place that a path names. `kept` is valid as long as the store.
  struct Location {
    Kept* kept = nullptr;
    std::string name_space;  ///< empty: all, or none
    std::string name;        ///< empty: the collection

    bool contains(const Json& object) const;
    const Collection& collection() const { return kept->collection; }
  };

  explicit ObjectStore(Clock clock = {}) : clock_(std::move(clock)) {}

  void add(Collection collection);
  /// As if its CustomResourceDefinition were deleted: its paths are unknown, until it is added again.
  void drop(const std::string& path);
  /// Empty where nothing is served at this path.
  std::optional<Location> locate(const std::string& path);

  Answer read(const Location& location) const;
  /// Honours fieldSelector, limit and continue; a list that is continued is of the resourceVersion at which it began.
  Answer list(const Location& location, const Query& query) const;
  Answer create(const Location& location, Json object);
  Answer replace(const Location& location, Json object);
  Answer merge_patch(const Location& location, const Json& patch);
  /// A pod's subresource binding: sets spec.nodeName, and adds the annotations, in one write. 409 if the pod has a node
  /// already, is being deleted, or has another uid than the binding says.
  Answer bind(const Location& location, const Json& binding);
  /// Honours the preconditions uid and resourceVersion of the body, if there is one.
  Answer erase(const Location& location, const Json& options);

  /// Creates or replaces, always as a new version. Without a name, or a namespace where one is needed, it is a
  /// std::invalid_argument; nothing else is checked.
  const Json& put(const Location& location, Json object);

  std::uint64_t resource_version() const { return resource_version_; }
  /// Forgets what was before: every resourceVersion handed out until now has expired.
  void compact() { compacted_ = ++resource_version_; }
  bool is_expired(std::uint64_t resource_version) const { return resource_version < compacted_; }
  Answer expired(std::uint64_t resource_version) const;

 private:
  const Json& store(const Location& location, Json object);
  Answer update(const Location& location, const Json& current, Json object);

  Clock clock_;
  std::map<std::string, Kept> kept_;  ///< by path
  std::uint64_t resource_version_ = 100;
  std::uint64_t compacted_ = 0;
  std::uint32_t made_uids_ = 0;
};

/// nullopt where `text` is not a decimal number.
std::optional<std::uint64_t> parse_number(const std::string& text);

/// "spec.nodeName" of an object as field selectors compare it; empty if it has none.
std::string field_text(const Json& object, const std::string& field);
/// metadata.FIELD of an object; empty if it has none.
std::string metadata_text(const Json& object, const char* field);

}  // namespace topolet::testing
