// The allocations of a ledger in the order of their keys, at little cost for copies that plans are made on.
#pragma once

#include <algorithm>
#include <cstddef>
#include <iterator>
#include <memory>
#include <utility>
#include <vector>

#include "core/engine/state/allocation.hpp"

namespace topolet::engine {

/// A plain value, read like a map from the key of an allocation's workload to the allocation. One thread, together with
/// all that it shares with.
class Allocations {
  using Shared = std::shared_ptr<Allocation>;

 public:
  class Iterator {
   public:
    using value_type = std::pair<const placement::ContainerKey&, const Allocation&>;
    using difference_type = std::ptrdiff_t;
    using reference = value_type;
    using iterator_category = std::input_iterator_tag;
    /// What `->` gives: the value, as long as the expression lasts.
    class pointer {
     public:
      explicit pointer(value_type value) : value_(value) {}
      const value_type* operator->() const { return &value_; }

     private:
      value_type value_;
    };

    Iterator() = default;
    explicit Iterator(std::vector<Shared>::const_iterator at) : at_(at) {}
    reference operator*() const { return {(*at_)->workload.key, **at_}; }
    pointer operator->() const { return pointer(**this); }
    Iterator& operator++() {
      ++at_;
      return *this;
    }
    Iterator operator++(int) { return Iterator(at_++); }
    friend bool operator==(const Iterator&, const Iterator&) = default;

   private:
    std::vector<Shared>::const_iterator at_;
  };

  Allocations() = default;
  /// Copies each of them.
  Allocations(const Allocations& other) {
    all_.reserve(other.all_.size());
    for (const Shared& allocation : other.all_) all_.push_back(std::make_shared<Allocation>(*allocation));
  }
  Allocations& operator=(const Allocations& other) { return *this = Allocations(other); }
  Allocations(Allocations&&) noexcept = default;
  Allocations& operator=(Allocations&&) noexcept = default;
  ~Allocations() = default;

  /// Returns a copy that copies none of them until one of the two changes it.
  Allocations share() const {
    Allocations copy;
    copy.all_ = all_;
    return copy;
  }

  Iterator begin() const { return Iterator(all_.begin()); }
  Iterator end() const { return Iterator(all_.end()); }
  std::size_t size() const { return all_.size(); }
  bool empty() const { return all_.empty(); }

  /// Null if there is none of this key. It stays at its address until it is erased, unless it is replaced while another
  /// copy shares it.
  const Allocation* find(const placement::ContainerKey& key) const {
    const auto at = at_or_after(key);
    return is_of(at, key) ? at->get() : nullptr;
  }
  /// The first that does not come before this key.
  Iterator lower_bound(const placement::ContainerKey& key) const { return Iterator(at_or_after(key)); }

  /// Adds it, or puts it in the place of the one with its key.
  void put(Allocation allocation) {
    const auto at = all_.begin() + (at_or_after(allocation.workload.key) - all_.cbegin());
    if (!is_of(at, allocation.workload.key)) {
      all_.insert(at, std::make_shared<Allocation>(std::move(allocation)));
    } else if (at->use_count() > 1) {
      *at = std::make_shared<Allocation>(std::move(allocation));
    } else {
      **at = std::move(allocation);
    }
  }
  void erase(const placement::ContainerKey& key) {
    if (const auto at = at_or_after(key); is_of(at, key)) all_.erase(at);
  }

  friend bool operator==(const Allocations& a, const Allocations& b) {
    return std::equal(a.all_.begin(), a.all_.end(), b.all_.begin(), b.all_.end(),
                      [](const Shared& one, const Shared& other) { return one == other || *one == *other; });
  }

 private:
  std::vector<Shared>::const_iterator at_or_after(const placement::ContainerKey& key) const {
    return std::lower_bound(all_.begin(), all_.end(), key,
                            [](const Shared& allocation, const placement::ContainerKey& wanted) {
                              return allocation->workload.key < wanted;
                            });
  }
  bool is_of(std::vector<Shared>::const_iterator at, const placement::ContainerKey& key) const {
    return at != all_.end() && (*at)->workload.key == key;
  }

  std::vector<Shared> all_;
};

}  // namespace topolet::engine
