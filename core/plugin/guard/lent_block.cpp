#include "core/plugin/guard/lent_block.hpp"

#include <algorithm>
#include <cstring>
#include <iterator>

namespace topolet::plugin {
namespace {

constexpr std::size_t kFirstChunkBytes = 16 << 10;
constexpr std::size_t kLargestStepBytes = 1 << 20;

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
  if (memory_.pool == nullptr) return;
  for (UsedChunk& used : chunks_) memory_.pool->give_back(std::move(used.chunk));
}

void LentBlock::leave_chunks() {
  for (UsedChunk& used : chunks_) used.chunk.pages.leave();
  chunks_.clear();
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
    return {filling.own() + at, filling.chunk.pages.data() + at};
  }
  UsedChunk& fresh = add_chunk(bytes);
  fresh.used = bytes;
  return {fresh.own(), fresh.chunk.pages.data()};
}

LentBlock::UsedChunk& LentBlock::add_chunk(std::size_t least_bytes) {
  const std::size_t last = chunks_.empty() ? 0 : chunks_.back().chunk.pages.size();
  const std::size_t bytes =
      std::max({least_bytes, kFirstChunkBytes, std::min(2 * last, std::max(last, kLargestStepBytes))});
  if (memory_.pool != nullptr) {
    if (std::optional<LentChunk> spare = memory_.pool->take(bytes)) {
      return chunks_.emplace_back(UsedChunk{.chunk = *std::move(spare)});
    }
  }
  LentPages pages(bytes);
  std::unique_ptr<std::byte[]> own;
  // The bytes between the elements are never set, and are compared as well: they are zero, as in new pages.
  if (memory_.guard == LentGuard::kCompared) own = std::make_unique<std::byte[]>(pages.size());
  return chunks_.emplace_back(UsedChunk{.chunk = {std::move(pages), std::move(own)}});
}

void LentBlock::seal() {
  for (UsedChunk& used : chunks_) {
    LentChunk& chunk = used.chunk;
    if (chunk.own == nullptr) {
      chunk.pages.forbid_writing();
      used.checksum = chunk.pages.checksum(used.used);
    } else if (used.sealed < used.used &&
               !chunk.pages.write(used.sealed, chunk.own.get() + used.sealed, used.used - used.sealed)) {
      state_ = LentState::kGone;
    }
    used.sealed = used.used;
  }
}

LentState LentBlock::check() const {
  if (is_intact()) state_ = check_once();
  return state_;
}

LentState LentBlock::check_once() const {
  for (const UsedChunk& used : chunks_) {
    const LentChunk& chunk = used.chunk;
    LentState state = LentState::kIntact;
    if (chunk.own != nullptr) {
      state = chunk.pages.state_beside(chunk.own.get(), used.sealed);
    } else if (const auto sum = chunk.pages.checksum(used.sealed); sum != used.checksum) {
      state = sum ? LentState::kWritten : LentState::kGone;
    }
    if (state != LentState::kIntact) return state;
  }
  return LentState::kIntact;
}

void LentBlock::clear() {
  if (!is_intact()) {
    leave_chunks();
    state_ = LentState::kIntact;
  }
  for (UsedChunk& used : chunks_) {
    if (used.chunk.own == nullptr) used.chunk.pages.allow_writing();
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
