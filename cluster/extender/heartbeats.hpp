// Which nodes are heard of: an agent that has ended leaves its object as it is, and others read it as if it were true.
#pragma once

#include <chrono>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

namespace topolet::extender {

/// Values in memory. Not thread-safe. What a heartbeat says is not read, as clocks differ: that it changes is what
/// counts, by how long this process has listened meanwhile. Time in which it stood still, or in which nothing could be
/// heard, is not silence.
class Heartbeats {
 public:
  using Time = std::chrono::steady_clock::time_point;

  /// After which a node is silent. Agents are heard of every 45 seconds at least.
  static constexpr std::chrono::seconds kPatience{60};
  /// How often pass() is called.
  static constexpr std::chrono::seconds kLookEvery{2};

  /// A node's object was read. One without a heartbeat is another program's, and never silent. True if the node was
  /// silent until now.
  bool note(const std::string& node, const std::string& heartbeat);
  void forget(const std::string& node) { nodes_.erase(node); }
  /// All there are: others are forgotten.
  void keep_only(const std::vector<std::string>& nodes);
  /// Those that are silent from now on, in order. `can_hear`: changes of objects are told at present.
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
