#include "core/load/load.hpp"

namespace topolet::load {
namespace {

template <class Loads, class Key>
auto recent(const Loads& loads, const Key& key) -> std::optional<typename Loads::mapped_type> {
  const auto found = loads.find(key);
  if (found == loads.end() || found->second.age > kLongestAge) return std::nullopt;
  return found->second;
}

}  // namespace

std::optional<ContainerLoad> recent_load_of(const Load& load, const std::string& container_id) {
  return recent(load.containers, container_id);
}

std::optional<NodeLoad> recent_load_of(const Load& load, std::uint32_t node) { return recent(load.nodes, node); }

}  // namespace topolet::load
