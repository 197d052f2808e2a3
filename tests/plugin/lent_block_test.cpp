#include "core/plugin/guard/lent_block.hpp"

#include <gtest/gtest.h>
#include <sys/mman.h>

#include <cstring>
#include <string>

#include "core/base/run_in_child.hpp"
#include "core/plugin/guard/crash_mark.hpp"

namespace topolet::plugin {
namespace {

/// As a plugin does it that knows no const.
template <class T>
void write_to(const T* lent) {
  auto* bytes = reinterpret_cast<unsigned char*>(const_cast<T*>(lent));  // NOLINT
  bytes[0] ^= 0xffU;
}

TEST(LentBlock, CopiesWhatItLends) {
  LentBlock block;
  const std::string text = "text";
  const CpuSet set{1, 70};
  const topolet_str lent_text = block.copy(text);
  const topolet_set lent_set = block.copy(set);
  const auto* lent_struct = block.copy_struct(topolet_kv{lent_text, lent_text});
  block.seal();
  EXPECT_EQ(std::string(lent_text.ptr, lent_text.len), "text");
  EXPECT_NE(lent_text.ptr, text.data());
  ASSERT_EQ(lent_set.count, 2U);
  EXPECT_NE(lent_set.words, set.words().data());
  EXPECT_EQ(lent_set.words[0], 2U);
  EXPECT_EQ(lent_set.words[1], 64U);
  EXPECT_EQ(lent_struct->value.ptr, lent_text.ptr);
}

TEST(LentBlock, FindsAWriteAndThenTakesOtherMemory) {
  LentBlock block;
  const auto* first = block.copy_struct(std::uint64_t{7});
  const topolet_str text = block.copy(std::string(100'000, 'x'));
  block.seal();
  EXPECT_EQ(block.check(), LentState::kIntact);
  write_to(text.ptr + text.len - 1);
  EXPECT_EQ(block.check_once(), LentState::kWritten);
  EXPECT_EQ(block.check(), LentState::kWritten);
  write_to(text.ptr + text.len - 1);
  EXPECT_EQ(block.check(), LentState::kWritten) << "it does not come back";
  block.clear();
  const auto* other = block.copy_struct(std::uint64_t{8});
  block.seal();
  EXPECT_NE(other, first);
  EXPECT_EQ(block.check(), LentState::kIntact);
  write_to(first);
  EXPECT_EQ(block.check(), LentState::kIntact) << "what was written to is still mapped, and nobody's";
}

TEST(LentBlock, FindsPagesThatAreGoneOrProtected) {
  const ChildEnd end = run_in_child(std::chrono::minutes(1), [](const Progress&) {
    record_crashes_to(-1);
    std::string found;
    for (const int protection : {PROT_NONE, PROT_READ, -1}) {
      LentBlock block;
      const auto* lent = block.copy_struct(std::uint64_t{7});
      block.seal();
      auto* page = const_cast<std::uint64_t*>(lent);
      EXPECT_EQ(protection < 0 ? ::munmap(page, 4096) : ::mprotect(page, 4096, protection), 0);
      found += block.check() == LentState::kGone ? "gone " : "there ";
    }
    LentBlock sealed_again;
    const auto* lent = sealed_again.copy_struct(std::uint64_t{7});
    sealed_again.seal();
    EXPECT_EQ(::mprotect(const_cast<std::uint64_t*>(lent), 4096, PROT_READ), 0);
    static_cast<void>(sealed_again.copy_struct(std::uint64_t{8}));
    sealed_again.seal();
    return found + (sealed_again.is_intact() ? "intact" : "not intact");
  });
  EXPECT_EQ(end.kind, ChildEnd::Kind::kReturned) << end.text;
  EXPECT_EQ(end.text, "gone gone gone not intact");
}

TEST(LentBlock, FindsAWriteToReadOnlyPagesThatWereMadeWritable) {
  LentBlock block({.guard = LentGuard::kReadOnly});
  const auto* lent = block.copy_struct(std::uint64_t{7});
  block.seal();
  EXPECT_EQ(block.check_once(), LentState::kIntact);
  ASSERT_EQ(::mprotect(const_cast<std::uint64_t*>(lent), 4096, PROT_READ | PROT_WRITE), 0);
  write_to(lent);
  EXPECT_EQ(block.check_once(), LentState::kWritten);
}

TEST(LentBlock, ShowsNothingOfWhatItHeldBefore) {
  LentBlock block;
  const auto* before = block.copy_struct(std::uint64_t{7});
  block.seal();
  block.clear();
  const auto* after = block.copy_struct(std::uint64_t{8});
  block.seal();
  EXPECT_EQ(before, after) << "the memory is used again";
  EXPECT_EQ(*after, 8U);
  write_to(before);
  EXPECT_EQ(block.check(), LentState::kWritten) << "by a plugin that has kept the address";
}

TEST(LentBlock, LendsItsMemoryAgainUnlessACallMayStillBeInside) {
  const auto pool = std::make_shared<LentPool>();
  const auto address_of_new = [&pool](bool retired) {
    LentBlock block({.pool = pool});
    const auto* lent = block.copy_struct(std::uint64_t{1});
    block.seal();
    if (retired) block.retire();
    return static_cast<const void*>(lent);
  };
  const void* first = address_of_new(false);
  EXPECT_EQ(address_of_new(true), first);
  EXPECT_FALSE(pool->take(1)) << "the retired memory is lent to nobody";
}

TEST(LentBlock, IsReadOnlyWhereItIsToBe) {
  LentBlock block({.guard = LentGuard::kReadOnly});
  const auto* lent = block.copy_struct(std::uint64_t{7});
  EXPECT_FALSE(is_read_only_lent(lent));
  block.seal();
  EXPECT_TRUE(is_read_only_lent(lent));
  EXPECT_FALSE(is_read_only_lent(&block));
  const ChildEnd end = run_in_child(std::chrono::minutes(1), [lent](const Progress&) {
    write_to(lent);
    return std::string("it could be written to");
  });
  EXPECT_EQ(end.kind, ChildEnd::Kind::kCrashed);
  EXPECT_EQ(end.text, "SIGSEGV");
  block.clear();
  EXPECT_FALSE(is_read_only_lent(lent));
  EXPECT_EQ(*block.copy_struct(std::uint64_t{9}), 9U);
}

}  // namespace
}  // namespace topolet::plugin
