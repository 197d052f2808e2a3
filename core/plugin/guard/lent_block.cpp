#include "core/plugin/guard/lent_block.hpp"

#include <algorithm>
#include <cstring>
#include <iterator>
#include <utility>

namespace topolet::plugin {
namespace {

constexpr std::size_t kFirstChunkBytes = 16 << 10;
constexpr std::size_t kLargestStepBytes = 1 << 20;

/// Whether it may be lent again: something may have been written there since it was looked at.
bool is_undamaged(const LentChunk& chunk) {
  return !chunk.pages.is_mapped_twice() || chunk.pages.noted_state(chunk.pages.size()) == LentState::kIntact;
}

}  // namespace

std::optional<LentChunk> LentPool::take(std::size_t bytes) {
  MutexLock lock(mutex_);
  const auto found = std::find_if(spare_.begin(), spare_.end(),
                                  [bytes](const LentChunk& chunk) { return chunk.pages.size() >= bytes; });
  if (found == spare_.end()) return std::nullopt;
  LentChunk chunk = std::move(*found);
  spare_.erase(found);
  bytes_ -= chunk.pages.size();
  return chunk;
}

void LentPool::give_back(LentChunk chunk) {
  MutexLock lock(mutex_);
  const std::size_t bytes = chunk.pages.size();
  if (bytes_ + bytes > kMostBytes) return;
  bytes_ += bytes;
  const auto larger = std::find_if(spare_.begin(), spare_.end(),
                                   [bytes](const LentChunk& other) { return other.pages.size() >= bytes; });
  spare_.insert(larger, std::move(chunk));
}

LentBlock::~LentBlock() {
  if (!is_intact()) leave_chunks();
  leave_damaged_chunks();
  if (memory_.pool == nullptr) return;
  for (UsedChunk& used : chunks_) memory_.pool->give_back(std::move(used.chunk));
}

void LentBlock::leave_chunks() {
  for (UsedChunk& used : chunks_) used.chunk.pages.leave();
  chunks_.clear();
}

void LentBlock::leave_damaged_chunks() {
  for (UsedChunk& used : chunks_) {
    if (!is_undamaged(used.chunk)) used.chunk.pages.leave();
  }
  std::erase_if(chunks_, [](const UsedChunk& used) { return used.chunk.pages.data() == nullptr; });
}

topolet_str LentBlock::copy(std::string_view text) {
  if (text.empty()) return {"", 0};
  const Array<char> copied = make_array<char>(text.size());
  std::memcpy(copied.own, text.data(), text.size());
  return {copied.lent, text.size()};
}

topolet_strs LentBlock::copy(const std::vector<std::string>& strings) {
  const Array<topolet_str> copied = make_array<topolet_str>(strings.size());
  for (std::size_t i = 0; i < strings.size(); ++i) copied.own[i] = copy(strings[i]);
  return {copied.lent, strings.size()};
}

topolet_set LentBlock::copy_words(const set_words::Words& words) {
  const Array<std::uint64_t> copied = make_array<std::uint64_t>(words.size());
  std::copy(words.begin(), words.end(), copied.own);
  return {copied.lent, words.size()};
}

LentBlock::Place LentBlock::allocate(std::size_t bytes, std::size_t alignment) {
  for (; current_ < chunks_.size(); ++current_) {
    UsedChunk& filling = chunks_[current_];
    const std::size_t at = (filling.used + alignment - 1) / alignment * alignment;
    if (at + bytes > filling.chunk.pages.size()) continue;
    filling.used = at + bytes;
    return {filling.chunk.own() + at, filling.chunk.pages.data() + at};
  }
  UsedChunk& fresh = add_chunk(bytes);
  fresh.used = bytes;
  return {fresh.chunk.own(), fresh.chunk.pages.data()};
}

LentBlock::UsedChunk& LentBlock::add_chunk(std::size_t least_bytes) {
  const std::size_t last = chunks_.empty() ? 0 : chunks_.back().chunk.pages.size();
  const std::size_t bytes =
      std::max({least_bytes, kFirstChunkBytes, std::min(2 * last, std::max(last, kLargestStepBytes))});
  return chunks_.emplace_back(UsedChunk{.chunk = new_chunk(bytes)});
}

LentChunk LentBlock::new_chunk(std::size_t bytes) {
  while (memory_.pool != nullptr) {
    std::optional<LentChunk> spare = memory_.pool->take(bytes);
    if (!spare) break;
    if (is_undamaged(*spare)) return *std::move(spare);
    spare->pages.leave();
  }
  if (memory_.guard != LentGuard::kReadOnly) {
    const OnWrite on_write = memory_.guard == LentGuard::kFound ? OnWrite::kNote : OnWrite::kCrash;
    if (std::optional<LentPages> pages = LentPages::mapped_twice(bytes, on_write)) return {*std::move(pages), nullptr};
  }
  LentPages pages(bytes);
  if (memory_.guard != LentGuard::kFound) return {std::move(pages), nullptr};
  // The bytes between the elements are never set, and are compared as well: they are zero, as in new pages.
  auto copy = std::make_unique<std::byte[]>(pages.size());
  return {std::move(pages), std::move(copy)};
}

void LentBlock::seal() {
  for (UsedChunk& used : chunks_) {
    LentChunk& chunk = used.chunk;
    const std::size_t added = std::exchange(used.sealed, used.used);
    if (chunk.pages.is_mapped_twice()) {
      if (const LentState state = state_of(used, Thoroughness::kQuick); is_intact()) state_ = state;
    } else if (chunk.copy == nullptr) {
      chunk.pages.forbid_writing();
      used.checksum = chunk.pages.checksum(used.used);
    } else if (added < used.used && !chunk.pages.write(added, chunk.copy.get() + added, used.used - added)) {
      state_ = LentState::kGone;
    }
  }
}

LentState LentBlock::check() const {
  if (is_intact()) state_ = look(Thoroughness::kQuick);
  return state_;
}

LentState LentBlock::check_all() const {
  if (is_intact()) state_ = look(Thoroughness::kFull);
  return state_;
}

LentState LentBlock::check_once() const { return look(Thoroughness::kFull); }

LentState LentBlock::look(Thoroughness thoroughness) const {
  for (const UsedChunk& used : chunks_) {
    if (const LentState state = state_of(used, thoroughness); state != LentState::kIntact) return state;
  }
  return LentState::kIntact;
}

LentState LentBlock::state_of(const UsedChunk& used, Thoroughness thoroughness) const {
  const LentPages& pages = used.chunk.pages;
  if (pages.is_mapped_twice()) {
    return thoroughness == Thoroughness::kQuick ? pages.noted_state(used.sealed) : pages.compared_state(used.sealed);
  }
  if (used.chunk.copy != nullptr) return pages.state_beside(used.chunk.copy.get(), used.sealed);
  const auto sum = pages.checksum(used.sealed);
  if (sum == used.checksum) return LentState::kIntact;
  return sum ? LentState::kWritten : LentState::kGone;
}

void LentBlock::clear() {
  if (!is_intact()) {
    leave_chunks();
    state_ = LentState::kIntact;
  }
  leave_damaged_chunks();
  for (UsedChunk& used : chunks_) {
    const LentChunk& chunk = used.chunk;
    if (chunk.copy == nullptr && !chunk.pages.is_mapped_twice()) used.chunk.pages.allow_writing();
    used.used = used.sealed = 0;
  }
  current_ = 0;
}

std::size_t LentBlock::used_bytes() const {
  std::size_t bytes = 0;
  for (const UsedChunk& used : chunks_) bytes += used.used;
  return bytes;
}

}  // namespace topolet::plugin
