#include "core/cri/wire/heap_trimmer.hpp"

#include <gtest/gtest.h>

#include <memory>
#include <vector>

#include "core/base/resident_memory.hpp"

namespace topolet::cri {
namespace {

constexpr std::size_t kMebibyte = 1 << 20;

TEST(HeapTrimmer, GivesBackWhatWasFreedBetweenPiecesInUse) {
#if defined(__has_feature)
#if __has_feature(address_sanitizer) || __has_feature(thread_sanitizer)
  GTEST_SKIP() << "the sanitizers' allocators keep what is freed";
#endif
#endif
  HeapTrimmer memory;
  memory.trim_if_worthwhile(resident_bytes());
  const std::size_t before = resident_bytes();
  EXPECT_FALSE(memory.trim_if_worthwhile(before)) << "nothing was freed since";
  std::vector<std::unique_ptr<std::vector<char>>> pieces;
  for (int i = 0; i < 8192; ++i) pieces.push_back(std::make_unique<std::vector<char>>(8192, 'x'));
  const std::size_t full = resident_bytes();
  ASSERT_GT(full, before + 40 * kMebibyte);
  for (std::size_t i = 0; i < pieces.size(); ++i) {
    if (i % 16 != 0) pieces[i].reset();
  }
  EXPECT_FALSE(memory.trim_if_worthwhile(full)) << "it still grew at the last look";
  EXPECT_TRUE(memory.trim_if_worthwhile(full));
  EXPECT_LT(resident_bytes(), before + 20 * kMebibyte);
  EXPECT_FALSE(memory.trim_if_worthwhile(resident_bytes())) << "it was given back";
}

TEST(HeapTrimmer, LeavesALittleAlone) {
  HeapTrimmer memory;
  memory.trim_if_worthwhile(resident_bytes());
  std::make_unique<std::vector<char>>(kMebibyte, 'x').reset();
  EXPECT_FALSE(memory.trim_if_worthwhile(resident_bytes()));
}

}  // namespace
}  // namespace topolet::cri
