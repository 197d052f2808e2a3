// What is measured, made up.
#pragma once

#include <topolet/testing.hpp>

#include <vector>

namespace topolet::load_policy {

/// What the CPUs of a node can do, how old that is, and how much of them is used.
struct NodeCapacity {
  std::int64_t effective_milli;
  std::int64_t age_ms;
  std::int64_t used_milli = -1;
};

/// Of a machine and the containers of a ledger, in their order.
class Loads {
 public:
  Loads(const std::vector<NodeCapacity>& nodes, std::vector<topolet_entry_load> entries, std::int64_t measured_ms = -1)
      : entries_(std::move(entries)) {
    for (const NodeCapacity& node : nodes) nodes_.push_back({node.effective_milli, node.age_ms, node.used_milli});
    view_.struct_size = sizeof(view_);
    view_.nodes = nodes_.empty() ? nullptr : nodes_.data();
    view_.entries = entries_.empty() ? nullptr : entries_.data();
    view_.node_stride = sizeof(topolet_node_load);
    view_.pu_stride = sizeof(topolet_pu_load);
    view_.entry_stride = sizeof(topolet_entry_load);
    view_.measured_ms = measured_ms;
  }
  Loads(const Loads&) = delete;
  Loads& operator=(const Loads&) = delete;

  const topolet_load& view() const { return view_; }

 private:
  std::vector<topolet_node_load> nodes_;
  std::vector<topolet_entry_load> entries_;
  topolet_load view_{};
};

inline topolet_entry_load used(std::int64_t milli, std::int64_t age_ms = 0) { return {milli, age_ms, -1, 0}; }
inline topolet_entry_load not_measured() { return {-1, -1, -1, 0}; }

}  // namespace topolet::load_policy
