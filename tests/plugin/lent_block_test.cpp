#include "core/plugin/call/lent_block.hpp"

#include <gtest/gtest.h>

#include <cstring>
#include <string>

#include "core/base/run_in_child.hpp"

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

TEST(LentBlock, FindsAndUndoesAWrite) {
  LentBlock block;
  const auto* first = block.copy_struct(std::uint64_t{7});
  const topolet_str text = block.copy(std::string(100'000, 'x'));
  block.seal();
  EXPECT_FALSE(block.repair());
  write_to(first);
  EXPECT_TRUE(block.repair());
  EXPECT_EQ(*first, 7U);
  EXPECT_FALSE(block.repair());
  write_to(text.ptr + text.len - 1);
  EXPECT_TRUE(block.repair());
  EXPECT_EQ(text.ptr[text.len - 1], 'x');
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
  EXPECT_TRUE(block.repair()) << "by a plugin that has kept the address";
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
