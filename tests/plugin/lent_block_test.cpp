#include "core/plugin/guard/lent_block.hpp"

#include <gtest/gtest.h>
#include <sys/mman.h>
#include <unistd.h>

#include <array>
#include <cstring>
#include <functional>
#include <string>
#include <thread>

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

TEST(LentBlock, FindsPagesThatAreGoneBeforeItIsSealedAgain) {
  const ChildEnd end = run_in_child(std::chrono::minutes(1), [](const Progress&) {
    record_crashes_to(-1);
    LentBlock block;
    const auto* lent = block.copy_struct(std::uint64_t{7});
    block.seal();
    EXPECT_EQ(::munmap(const_cast<std::uint64_t*>(lent), 4096), 0);
    static_cast<void>(block.copy_struct(std::uint64_t{8}));
    block.seal();
    return std::string(block.is_intact() ? "intact" : "not intact");
  });
  EXPECT_EQ(end.kind, ChildEnd::Kind::kReturned) << end.text;
  EXPECT_EQ(end.text, "not intact");
}

/// What is found of what a plugin does, in a process whose crash handler notes writes. `deed`: to the first
/// page of the block.
std::string found_in_noting_block(const std::function<void(void* page)>& deed) {
  const ChildEnd end = run_in_child(std::chrono::minutes(1), [&deed](const Progress&) {
    record_crashes_to(-1);
    LentBlock block;
    const auto* lent = block.copy_struct(std::uint64_t{7});
    const topolet_str text = block.copy(std::string(12'000, 'x'));
    block.seal();
    deed(const_cast<std::uint64_t*>(lent));
    const auto name = [](LentState state) {
      return std::string(state == LentState::kIntact ? "intact" : state == LentState::kWritten ? "written" : "gone");
    };
    std::string found = name(block.check());
    found += ", " + name(block.check_all());
    block.clear();
    const auto* again = block.copy_struct(std::uint64_t{8});
    block.seal();
    if (*again != 8 || block.check_all() != LentState::kIntact) found += "; of no use any more";
    return found + (text.len == 12'000 ? "" : "?");
  });
  EXPECT_EQ(end.kind, ChildEnd::Kind::kReturned) << end.text;
  return end.text;
}

TEST(LentBlock, FindsANotedWriteWithoutComparingAll) {
  const auto writes = [](std::size_t at) {
    return [at](void* page) { static_cast<volatile unsigned char*>(page)[at] = 'y'; };
  };
  EXPECT_EQ(found_in_noting_block([](void*) {}), "intact, intact");
  EXPECT_EQ(found_in_noting_block(writes(0)), "written, written");
  EXPECT_EQ(found_in_noting_block(writes(5'001)), "written, written") << "not at the beginning of a page";
  EXPECT_EQ(found_in_noting_block([](void* page) {
              volatile std::uint64_t* word = static_cast<std::uint64_t*>(page);
              *word = *word;
            }),
            "written, written")
      << "the same as is there";
  EXPECT_EQ(found_in_noting_block([](void* page) {
              std::thread([page] { static_cast<unsigned char*>(page)[1] = 1; }).join();
              std::thread([page] { static_cast<unsigned char*>(page)[2] = 2; }).join();
            }),
            "written, written")
      << "by threads";
}

TEST(LentBlock, LetsNobodyMakeItsPagesWritable) {
  EXPECT_EQ(found_in_noting_block([](void* page) {
              EXPECT_NE(::mprotect(page, 4096, PROT_READ | PROT_WRITE), 0);
              EXPECT_EQ(::mprotect(page, 4096, PROT_READ), 0);
            }),
            "intact, intact");
  EXPECT_EQ(found_in_noting_block([](void* page) {
              std::array<int, 2> ends{};
              EXPECT_EQ(::pipe(ends.data()), 0);
              EXPECT_EQ(::write(ends[1], "x", 1), 1);
              EXPECT_NE(::read(ends[0], page, 1), 1) << "the kernel writes no more than others";
            }),
            "intact, intact");
}

TEST(LentBlock, FindsPagesThatAreGoneOrOthers) {
  EXPECT_EQ(found_in_noting_block([](void* page) { EXPECT_EQ(::munmap(page, 4096), 0); }), "gone, gone");
  EXPECT_EQ(found_in_noting_block([](void* page) { EXPECT_EQ(::mprotect(page, 4096, PROT_NONE), 0); }), "gone, gone");
  const auto maps_other = [](std::uint64_t first) {
    return [first](void* page) {
      constexpr int kFlags = MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED;
      EXPECT_EQ(::mmap(page, 4096, PROT_READ | PROT_WRITE, kFlags, -1, 0), page);
      *static_cast<std::uint64_t*>(page) = first;
    };
  };
  EXPECT_EQ(found_in_noting_block(maps_other(0)), "written, written");
  EXPECT_EQ(found_in_noting_block(maps_other(7)), "intact, written") << "all is compared between decisions only";
}

TEST(LentBlock, StillCrashesWhereSomebodyRunsItAsCode) {
  const ChildEnd end = run_in_child(std::chrono::minutes(1), [](const Progress&) {
    record_crashes_to(-1);
    LentBlock block;
    const auto* lent = block.copy_struct(std::uint64_t{0xc3});
    block.seal();
    reinterpret_cast<void (*)()>(const_cast<std::uint64_t*>(lent))();  // NOLINT
    return std::string("it ran");
  });
  EXPECT_EQ(end.kind, ChildEnd::Kind::kCrashed);
  EXPECT_EQ(end.text, "SIGSEGV");
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

TEST(LentBlock, LetsNobodyMakeUnwritablePagesWritable) {
  LentBlock block({.guard = LentGuard::kUnwritable});
  const auto* lent = block.copy_struct(std::uint64_t{7});
  block.seal();
  EXPECT_NE(::mprotect(const_cast<std::uint64_t*>(lent), 4096, PROT_READ | PROT_WRITE), 0);
  EXPECT_EQ(block.check_once(), LentState::kIntact);
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

class LentBlockToCrashOn : public ::testing::TestWithParam<LentGuard> {};

TEST_P(LentBlockToCrashOn, IsReadOnly) {
  LentBlock block({.guard = GetParam()});
  const auto* lent = block.copy_struct(std::uint64_t{7});
  block.seal();
  EXPECT_TRUE(is_read_only_lent(lent));
  EXPECT_FALSE(is_read_only_lent(&block));
  const ChildEnd end = run_in_child(std::chrono::minutes(1), [lent](const Progress&) {
    record_crashes_to(-1);
    write_to(lent);
    return std::string("it could be written to");
  });
  EXPECT_EQ(end.kind, ChildEnd::Kind::kCrashed);
  EXPECT_EQ(end.text, "SIGSEGV");
  block.clear();
  EXPECT_EQ(*block.copy_struct(std::uint64_t{9}), 9U);
}

INSTANTIATE_TEST_SUITE_P(Both, LentBlockToCrashOn, ::testing::Values(LentGuard::kReadOnly, LentGuard::kUnwritable));

}  // namespace
}  // namespace topolet::plugin
