// The containers that a way knows, made through it as a kubelet makes them.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "tests/bench/kubelet_requests.hpp"
#include "tests/bench/load_client.hpp"

namespace topolet::bench {

/// Pods of five containers that run.
class Population {
 public:
  explicit Population(LoadClient& client) : client_(client) {}

  /// Makes pods and containers until there are `containers`, a multiple of five.
  void grow_to(std::size_t containers, Kind kind = Kind::kShared);
  /// Stops and removes all of them.
  void clear();

  std::size_t size() const { return container_ids_.size(); }
  /// Returns the id of some container; empty if there is none.
  std::string any_id() const { return container_ids_.empty() ? std::string() : container_ids_.back(); }

 private:
  void add_pod(Kind kind);
  void end(const std::vector<std::string>& ids, const std::string& stop, const std::string& remove);

  LoadClient& client_;
  std::vector<std::string> sandbox_ids_;
  std::vector<std::string> container_ids_;
};

}  // namespace topolet::bench
