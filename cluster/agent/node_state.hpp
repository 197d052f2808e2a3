// A node as the messages of the watch socket add up.
#pragma once

#include <cstddef>
#include <map>
#include <string>

#include "core/watch/watch.pb.h"

namespace topolet::agent {

/// A plain value.
class NodeState {
 public:
  void begin(const watch::v1::Snapshot& snapshot);
  void apply(const watch::v1::Delta& delta);

  /// Without containers.
  const watch::v1::Snapshot& head() const { return head_; }
  std::size_t containers() const { return containers_.size(); }
  /// With all containers.
  watch::v1::Snapshot whole() const;

 private:
  void put(const watch::v1::Container& container);

  watch::v1::Snapshot head_;
  std::map<std::string, watch::v1::Container> containers_;  ///< by their serialized keys
};

}  // namespace topolet::agent
