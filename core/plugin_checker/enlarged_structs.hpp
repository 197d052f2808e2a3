// The structs that a host of a later minor version would show: longer than the header's, with bytes behind the known
// fields that no plugin of this version may read.
#pragma once

#include <topolet/abi.h>
#include <topolet/adjust.h>
#include <topolet/events.h>
#include <topolet/pick.h>
#include <topolet/tick.h>

#include <cstddef>
#include <cstdint>
#include <new>

#include "core/plugin/guard/lent_block.hpp"

namespace topolet::plugin_checker {

/// Whether enumerators are those of this version, or ones that only a later version knows.
enum class ShownValues : std::uint8_t { kKnown, kUnknown };

/// Copies structs into longer ones, which are read-only once they are sealed. Owns the copies; what they point to
/// besides stays borrowed.
class EnlargedStructs {
 public:
  static constexpr std::uint32_t kExcessBytes = 40;
  static constexpr unsigned char kPoison = 0xa5;

  explicit EnlargedStructs(ShownValues values = ShownValues::kKnown) : values_(values) {}
  EnlargedStructs(const EnlargedStructs&) = delete;
  EnlargedStructs& operator=(const EnlargedStructs&) = delete;

  const topolet_request* enlarge(const topolet_request* request);
  const topolet_pick_request* enlarge(const topolet_pick_request* request);
  const topolet_adjust_request* enlarge(const topolet_adjust_request* request);
  const topolet_event* enlarge(const topolet_event* event);
  const topolet_tick_request* enlarge(const topolet_tick_request* request);

  /// A sink, a host: one struct that points to nothing that grows.
  template <class T>
  T* enlarge_flat(const T* one) {
    T* copy = new (allocate(sizeof(T) + kExcessBytes)) T(*one);
    copy->struct_size = static_cast<std::uint32_t>(sizeof(T) + kExcessBytes);
    return copy;
  }

  /// All is copied; from now on a write is a crash.
  void seal() { block_.seal(); }

 private:
  const topolet_topology* enlarge(const topolet_topology* topology);
  const topolet_ledger* enlarge(const topolet_ledger* ledger);
  const topolet_load* enlarge_load(const topolet_load* load, const topolet_topology& topology,
                                   const topolet_ledger& ledger);
  const topolet_workload* enlarge(const topolet_workload* workload);
  const topolet_demand* enlarge(const topolet_demand* demand);

  template <class T>
  void enlarge_array(const T*& items, std::uint32_t count, std::uint32_t& stride) {
    enlarge_array(items, count, stride, [](T&) {});
  }

  template <class T, class Change>
  void enlarge_array(const T*& items, std::uint32_t count, std::uint32_t& stride, Change change) {
    const auto grown_stride = static_cast<std::uint32_t>(sizeof(T) + kExcessBytes);
    unsigned char* copies = allocate(std::size_t{grown_stride} * count);
    for (std::uint32_t i = 0; i < count; ++i) {
      change(*new (copies + std::size_t{grown_stride} * i) T(*TOPOLET_AT(T, items, stride, i)));
    }
    items = TOPOLET_AT(T, copies, grown_stride, 0);
    stride = grown_stride;
  }

  unsigned char* allocate(std::size_t bytes);

  /// Replaces an enumerator by one that no version has yet, where such are to be shown.
  void replace(std::int32_t& enumerator) const {
    if (values_ == ShownValues::kUnknown) enumerator = kUnknownEnumerator;
  }

  /// Adds a flag that no version has yet, likewise.
  void add_flag(std::uint32_t& flags) const {
    if (values_ == ShownValues::kUnknown) flags |= kUnknownFlag;
  }

  static constexpr std::int32_t kUnknownEnumerator = 4711;
  static constexpr std::uint32_t kUnknownFlag = 1U << 31U;

  ShownValues values_;
  plugin::LentBlock block_{{.guard = plugin::LentGuard::kReadOnly}};
};

}  // namespace topolet::plugin_checker
