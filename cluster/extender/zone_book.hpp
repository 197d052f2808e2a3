// The zones of all nodes, less what was promised to pods that their nodes do not count yet.
#pragma once

#include <chrono>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "cluster/extender/choose.hpp"
#include "cluster/extender/demand.hpp"
#include "cluster/extender/kept_zones.hpp"
#include "cluster/extender/node_zones.hpp"
#include "core/base/result.hpp"

namespace topolet::extender {

/// Amounts promised to a pod on a node, from before it is bound until the node's object counts it.
struct Promise {
  std::uint64_t number = 0;
  enum class State : std::uint8_t {
    kBinding,  ///< the API server was asked, and has not answered
    kInDoubt,  ///< it was asked and did not answer: the pod may be bound here, now or soon
    kBound,
  };
  std::string uid;
  std::string name;
  std::string name_space;
  std::string node;
  State state = State::kBinding;
  std::chrono::steady_clock::time_point since{};         ///< the beginning of this state
  std::chrono::steady_clock::time_point looked{};        ///< when it was asked after, or this state began
  bool is_overdue = false;                               ///< bound for long, and not counted by its node
  std::vector<std::pair<std::uint32_t, Amounts>> taken;  ///< by zone's os_index
  std::string annotation;                                ///< what is written to the pod
  std::uint64_t term = 0;                                ///< in which it was made
};

/// The pod's annotation topolet.io/zone, parsed.
struct ZoneAnnotation {
  std::string text;
  std::string node;
  std::vector<std::pair<std::string, std::vector<std::uint32_t>>> containers;
  std::vector<std::string> of_pool = {};  ///< as in Choice
};
/// Returns the requests of a container on a node, with its CPUs from the source that its annotation says. `node`: null
/// if nothing is known of it.
Amounts asks_on(const NodeZones* node, const Demand& demand, const ContainerDemand& container,
                const ZoneAnnotation& annotation);
/// Parses the annotation; nothing if it is of another version or of another shape.
std::optional<ZoneAnnotation> read_zone_annotation(const std::string& text);
std::string zone_annotation_text(const NodeZones& node, const Choice& choice);

/// Why a pod may fit on a node that did not.
enum class Growth : std::uint8_t {
  kMore,  ///< a zone has more, or the node is relied on again, or enforces something else
  kNew,   ///< it has begun to publish its zones
};

/// Values in memory, changed by what happens; knows no clock, no thread and no network. Not thread-safe.
class ZoneBook {
 public:
  using Time = std::chrono::steady_clock::time_point;

  /// The interval at which the API server is asked about a promise that its node does not count: the pod may be gone.
  /// Earlier requests to the API server are over by then.
  static constexpr std::chrono::seconds kLookEvery{10};
  /// The time after which a node that does not count a promise is not relied on.
  static constexpr std::chrono::seconds kPatience{60};

  /// Takes a node's current object, and ignores one that is older than the known one. Promises that it acknowledges
  /// end.
  void set_node(NodeZones node);
  void remove_node(const std::string& name);
  /// Sets whether the node's agent has fallen silent: then nothing is chosen there.
  void set_silent(const std::string& name, bool is_silent);
  /// Forgets all other nodes.
  void keep_only(const std::vector<std::string>& names);
  ResourceNames& names() { return names_; }
  /// All that nodes have had, each once.
  const std::vector<NodeRules>& rules() const { return rules_; }
  std::size_t node_count() const { return nodes_.size(); }

  /// NOT_FOUND where nothing is known of the node; FAILED_PRECONDITION where it does not fit.
  Result<Choice> choose(std::string_view node, const Demand& demand) const;
  /// How good choose() would be.
  Result<Fit> fit(std::string_view node, const Demand& demand) const;
  /// Checks whether choose() would succeed.
  Status check(std::string_view node, const Demand& demand) const;
  bool knows(std::string_view node) const { return find(node) != nullptr; }

  /// A promise, and the annotation to write to the pod.
  struct Reserved {
    std::uint64_t promise = 0;
    std::string annotation = {};  ///< empty: none of its containers has CPUs of its own there, and nothing is promised
    bool is_again = false;        ///< it was promised before, so that an earlier attempt may have bound the pod
  };
  /// Chooses as choose() does, and keeps the zones free for the pod. A promise that the pod already has on this node in
  /// this term is made again. ABORTED while the pod is being bound there.
  Result<Reserved> reserve(const std::string& node, const Demand& demand, Time now);
  /// The pod is bound to the node: its promises on other nodes are void.
  void confirm(std::uint64_t promise, Time now);
  /// The pod may be bound there, or may be soon, by this attempt or an earlier one.
  void doubt(std::uint64_t promise, Time now);
  void release(std::uint64_t promise);
  /// A pod that was found bound, with the zones that its annotation gives it; nothing changes if its node counts it
  /// already, or if there is a promise for it.
  void remember(const Demand& demand, const ZoneAnnotation& annotation, Time now);
  /// Begins a term. Another replica may have promised zones since, so all promises are forgotten but those that this
  /// one has asked for and has no answer to: they may still come true, but are not a reason any more to ask for them
  /// again.
  void begin_term();

  /// Zones kept for pods for which others are evicted. A pod that is bound does not need its own any more.
  KeptZones& kept() { return kept_; }
  const KeptZones& kept() const { return kept_; }

  /// Returns the promises to ask the API server about.
  std::vector<Promise> due(Time now) const;
  /// The pod is alive and bound there: asked after again. After kPatience its node is stale. One whose object never
  /// tells of the pods that it counts is stale from then on, and is taken to have counted this one.
  void keep_waiting(const Promise& due, Time now);
  /// The pod is not there any more. Nothing is dropped that has changed since it was due.
  void drop(const Promise& due);

  /// Nodes on which a pod may fit that did not, since this was asked last.
  std::map<std::string, Growth> take_grown();

  struct NodeView {
    const NodeZones& zones;
    const std::vector<Amounts>& free;
    bool is_stale = false;  ///< or silent
  };
  /// The room that a pod may count on there, for planning with the ends of other pods.
  struct NodeRoom {
    NodeZones zones;
    std::vector<Amounts> free;
    std::vector<bool> has_promises;
    bool has_cpus = false;
    bool is_stale = false;
    bool is_silent = false;
  };
  std::optional<NodeRoom> node_room(std::string_view node, const Demand& demand) const;
  /// The promises made to the pod on the node; null if there is none.
  const Promise* promise_of(std::string_view node, const std::string& uid) const;
  std::optional<NodeView> view(std::string_view node) const;
  std::vector<std::string> node_names() const;
  std::vector<Promise> promises() const;
  std::size_t promise_count() const { return promises_.size(); }
  std::size_t stale_nodes() const;

 private:
  struct Node {
    NodeZones zones;
    bool is_published = false;  ///< false: only promised on
    std::vector<Amounts> free;
    std::vector<std::int64_t> free_cpu;  ///< by zone, as the next
    std::vector<bool> has_promises;
    bool has_cpus = false;
    bool is_stale = false;
    bool is_silent = false;
    bool never_acknowledges = false;  ///< pods that were bound to it, as it turned out
    std::vector<std::uint64_t> promises;
  };
  struct TextHash {
    using is_transparent = void;
    std::size_t operator()(std::string_view text) const { return std::hash<std::string_view>()(text); }
  };
  using Nodes = std::unordered_map<std::string, std::unique_ptr<Node>, TextHash, std::equal_to<>>;

  static FreeZones free_zones(const Node& node) {
    return {node.zones, node.free, node.free_cpu, node.has_promises, node.has_cpus, node.is_stale, node.is_silent};
  }
  /// Calls `look` with what the demand may count on: where something is kept there for others, less that.
  template <class Look>
  auto look_for(const Node& node, const Demand& demand, Look look) const;
  const Node* find(std::string_view node) const;
  std::uint64_t add(Promise promise);
  /// Finds a promise as it was when it was due; null if it has changed.
  Promise* find_due(const Promise& due);
  /// Other promises of the pod, wherever they are.
  void release_others(const std::string& uid, std::uint64_t but);
  /// Finds a promise of this term. 0: there is none.
  std::uint64_t find_promise(const std::string& uid, const std::string& node) const;
  void remove(std::uint64_t number);
  void recount(Node& node);
  void note_rules(const NodeRules& rules);
  void drop_if_empty(const std::string& name);

  /// More are nobody's: what is missing is taken for the usual ones where pods are read.
  static constexpr std::size_t kMostRules = 64;

  ResourceNames names_;
  std::vector<NodeRules> rules_;
  Nodes nodes_;
  KeptZones kept_;
  std::map<std::string, Growth> grown_;
  std::map<std::uint64_t, Promise> promises_;  ///< by number, the oldest first
  std::uint64_t last_promise_ = 0;
  std::uint64_t term_ = 0;
};

}  // namespace topolet::extender
