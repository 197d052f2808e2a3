// Detection of silent nodes: an agent that has ended leaves its object as it is, and others read it as if it were true.
#pragma once

#include <chrono>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

namespace topolet::extender {

/// Values in memory. Not thread-safe. The text of a heartbeat is not interpreted, as clocks differ: a node is heard
/// when it changes. Silence is measured in time for which this process has listened, without time in which it stood
/// still or in which nothing could be heard.
class Heartbeats {
 public:
  using Time = std::chrono::steady_clock::time_point;

  /// The silence after which a node counts as silent. Agents are heard of every 45 seconds at least.
  static constexpr std::chrono::seconds kPatience{60};
  /// How often pass() is called.
  static constexpr std::chrono::seconds kLookEvery{2};

  /// A node's object was read. One without a heartbeat is another program's, and never silent. True if the node was
  /// silent until now.
  bool note(const std::string& node, const std::string& heartbeat);
  void forget(const std::string& node) { nodes_.erase(node); }
  /// Forgets all other nodes.
  void keep_only(const std::vector<std::string>& nodes);
  /// Returns the nodes that are silent from now on, in order. `can_hear`: changes of objects are received at present.
  std::vector<std::string> pass(Time now, bool can_hear);
  bool is_silent(const std::string& node) const;

 private:
  struct Node {
    std::string heartbeat;
    std::chrono::steady_clock::duration heard{};  ///< as listened_ was
    bool is_silent = false;
  };
  std::unordered_map<std::string, Node> nodes_;
  std::chrono::steady_clock::duration listened_{};
  Time last_look_{};
  bool has_looked_ = false;
};

}  // namespace topolet::extender
