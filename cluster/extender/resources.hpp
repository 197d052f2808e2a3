// Resources that zones have and pods request, by small numbers instead of names.
#pragma once

#include <boost/container/small_vector.hpp>
#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace topolet::extender {

/// A resource by its position in ResourceNames.
using ResourceId = std::uint32_t;
inline constexpr ResourceId kCpu = 0;     ///< in thousandths of a CPU
inline constexpr ResourceId kMemory = 1;  ///< in bytes
/// The CPUs that the kernel isolates, on nodes that publish them; kCpu are the others there.
inline constexpr ResourceId kIsolatedCpu = 2;

/// "cpu", "memory", "hugepages-2Mi", "vendor.com/gpu". A cluster has a few of them, so that they are only ever added.
class ResourceNames {
 public:
  static constexpr std::size_t kMostNames = 256;

  /// Finds a resource; nothing if no node has published it.
  std::optional<ResourceId> find(std::string_view name) const {
    for (std::size_t i = 0; i < names_.size(); ++i) {
      if (names_[i] == name) return static_cast<ResourceId>(i);
    }
    return std::nullopt;
  }
  /// Adds a resource; nothing if there are kMostNames already: somebody makes them up.
  std::optional<ResourceId> add(std::string_view name) {
    if (const auto known = find(name)) return known;
    if (names_.size() >= kMostNames) return std::nullopt;
    names_.emplace_back(name);
    return static_cast<ResourceId>(names_.size() - 1);
  }
  const std::string& name(ResourceId id) const { return names_[id]; }

 private:
  std::vector<std::string> names_ = {"cpu", "memory", "topolet.io/isolated-cpu"};
};

/// Sums of amounts up to it fit, whatever somebody has written: 8 PiB.
inline constexpr std::int64_t kMostOfAnything = std::int64_t{1} << 53U;

struct Ask {
  ResourceId resource = kCpu;
  std::int64_t amount = 0;

  friend bool operator==(const Ask&, const Ask&) = default;
};

/// Amounts by resource; what is not in it is 0. There are few of them in a zone: no memory is allocated for those.
class Amounts {
 public:
  using Asks = boost::container::small_vector<Ask, 4>;

  Amounts() = default;
  Amounts(std::initializer_list<Ask> asks) : asks_(asks) {}

  std::int64_t get(ResourceId resource) const {
    for (const Ask& ask : asks_) {
      if (ask.resource == resource) return ask.amount;
    }
    return 0;
  }
  bool has(ResourceId resource) const {
    for (const Ask& ask : asks_) {
      if (ask.resource == resource) return true;
    }
    return false;
  }
  void set(ResourceId resource, std::int64_t amount) { at(resource) = amount; }
  void add(ResourceId resource, std::int64_t amount) { at(resource) += amount; }
  void add(const Amounts& other) {
    for (const Ask& ask : other.asks_) at(ask.resource) += ask.amount;
  }
  void raise_to(const Amounts& other) {
    for (const Ask& ask : other.asks_) {
      std::int64_t& mine = at(ask.resource);
      if (mine < ask.amount) mine = ask.amount;
    }
  }
  const Asks& asks() const { return asks_; }
  bool empty() const { return asks_.empty(); }

  friend bool operator==(const Amounts&, const Amounts&) = default;

 private:
  std::int64_t& at(ResourceId resource) {
    for (Ask& ask : asks_) {
      if (ask.resource == resource) return ask.amount;
    }
    return asks_.emplace_back(Ask{resource, 0}).amount;
  }

  Asks asks_;
};

}  // namespace topolet::extender
