// The state of a node, added up from the messages of the watch socket, for its sender and its readers.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <string>

#include "core/watch/watch.pb.h"

namespace topolet::watch {

/// A plain value.
class NodeState {
 public:
  void begin(const v1::Snapshot& snapshot);
  void apply(const v1::Delta& delta);
  /// Returns the delta that makes this state that of `next`, except the fields that name the sender.
  v1::Delta difference_to(const v1::Snapshot& next) const;
  /// Somebody else tells it from now on: what names `teller` does so here.
  void set_teller(const v1::Snapshot& teller);

  /// Without containers and capacities.
  const v1::Snapshot& head() const { return head_; }
  std::size_t containers() const { return containers_.size(); }
  /// With all of them.
  v1::Snapshot whole() const;

 private:
  void put(const v1::Container& container);

  v1::Snapshot head_;
  std::map<std::string, v1::Container> containers_;   ///< by their serialized keys
  std::map<std::uint32_t, v1::Capacity> capacities_;  ///< by OS index of the node
};

}  // namespace topolet::watch
