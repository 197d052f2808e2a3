// Containers leave nodes that cannot give them what they use, one a minute and node, and never come back.
#pragma once

#include <topolet/policy.hpp>

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "plugins/load/classes.hpp"
#include "plugins/load/node_use.hpp"
#include "plugins/load/options.hpp"

namespace topolet::load_policy {

constexpr std::uint32_t kTickMs = 5000;
/// For so long a node must be pressed before a container leaves it, and so long after that before the next one does.
constexpr std::uint64_t kPressedMs = 60000;
/// For so long a container must lack CPUs before it is moved.
constexpr std::uint64_t kWaitsMs = 30000;
/// BestEffort containers that have so few CPUs are not narrowed further.
constexpr std::size_t kLeastForBestEffort = 2;
/// A container is asked to leave once in so long, whether it did or not.
constexpr std::uint64_t kAskedAgainMs = 600000;
/// In permille. The least part of what its containers want that a node must be able to do; how much of its shared CPUs
/// must be used before containers leave; how much of those of another node may be used when one has come; and by how
/// much this must be less than what was used of the node that it left.
constexpr std::int64_t kLeastEffective = 700;
constexpr std::int64_t kFull = 900;
constexpr std::int64_t kCalm = 800;
constexpr std::int64_t kClearlyLess = 200;
/// What an idle container uses does not relieve a node.
constexpr std::int64_t kIdleMilli = 50;
/// So many containers are remembered.
constexpr std::size_t kMostLeft = 1000;

/// What is known of a container that was asked to leave.
struct Left {
  sdk::Set nodes;               ///< by OS index: those that it has left; it does not return there
  std::int64_t used_milli = 0;  ///< when it was asked
};

/// Of the saved state: "left/ID" are the nodes that the container with this id has left, "used/ID" what it used then.
class Relief {
 public:
  Relief(const sdk::Host& host, const PolicyOptions& options) : host_(host), options_(options) {}

  void tick(const topolet_tick_request& request, sdk::Wishes& wishes);
  void notify(const topolet_event& event);
  Left left_by(std::string_view container_id) const;

 private:
  struct Asked {
    std::uint64_t at_ms = 0;
    sdk::Set node;       ///< OS index of the node that it is to leave
    sdk::Set node_cpus;  ///< the CPUs of that
  };
  struct Move {
    std::size_t entry = 0;
    std::size_t to = 0;
    std::int64_t used_milli = 0;
    Class which = Class::kLs;
    std::int64_t after_permille = 0;
  };

  void note_waiting(const topolet_tick_request& request, const Measured& measured);
  void relieve_waiting(const topolet_tick_request& request, const Measured& measured, std::vector<NodeUse>& uses,
                       sdk::Wishes& wishes);
  bool was_just_asked(const NodeUse& from, std::uint64_t now_ms) const;
  bool are_others_first(const topolet_ledger& ledger, const topolet_ledger_entry& waiting) const;
  void note_pressed(const std::vector<NodeUse>& uses, std::uint64_t now_ms);
  void forget_gone(const topolet_ledger& ledger);
  std::optional<Move> best_move(std::size_t from, const topolet_tick_request& request, const Measured& measured,
                                const std::vector<NodeUse>& uses) const;
  std::optional<Move> move_of(std::size_t entry, std::size_t from, const topolet_tick_request& request,
                              std::int64_t used_milli, const std::vector<NodeUse>& uses) const;
  bool may_be_asked(const topolet_ledger_entry& entry, const topolet_node& node, std::uint64_t now_ms) const;
  bool ask(const Move& move, const NodeUse& from, const topolet_tick_request& request, const NodeUse& to,
           const std::string& why, sdk::Wishes& wishes);

  const sdk::Host host_;
  const PolicyOptions options_;
  std::map<std::uint32_t, std::uint64_t> pressed_since_;  ///< by OS index of the node
  std::map<std::uint32_t, std::uint64_t> asked_of_;       ///< by OS index: when a container was asked to leave last
  std::map<std::string, std::uint64_t> waits_since_;      ///< by the runtime's id: of containers that lack CPUs
  std::map<std::string, Asked> asked_;                    ///< by the runtime's id
};

}  // namespace topolet::load_policy
