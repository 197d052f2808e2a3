// Arrays of the ABI's structs in memory that is lent.
#pragma once

#include <topolet/abi.h>

#include <cstddef>
#include <cstdint>
#include <vector>

#include "core/plugin/guard/lent_block.hpp"

namespace topolet::plugin {

template <class T>
std::uint32_t count_of(const std::vector<T>& items) {
  return static_cast<std::uint32_t>(items.size());
}

/// An array with what `to_abi` makes of each item.
template <class T, class Items, class ToAbi>
const T* copy_each(LentBlock& block, const Items& items, ToAbi to_abi) {
  const LentBlock::Array<T> copied = block.make_array<T>(items.size());
  std::size_t i = 0;
  for (const auto& item : items) copied.own[i++] = to_abi(item);
  return copied.lent;
}

}  // namespace topolet::plugin
