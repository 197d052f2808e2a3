// Functions that handle 64 indices at a time, compared with those that handle one after the other.
#include <topolet/policy/set_words.hpp>

#include <gtest/gtest.h>
#include <topolet/policy.hpp>

#include <array>
#include <cstddef>
#include <cstdint>
#include <random>
#include <set>
#include <vector>

namespace topolet::sdk {
namespace {

using set_words::Words;

constexpr std::size_t kIndices = 200;

/// About `permille` of the indices below kIndices, as words of which the last may be zero.
Words random_words(std::mt19937_64& random, std::uint64_t permille) {
  Words words(kIndices / 64 + 1);
  for (std::size_t index = 0; index < kIndices; ++index) {
    if (random() % 1000 < permille) set_words::insert(words, index);
  }
  return words;
}

TEST(SetWords, CountsTheBitsOfAWord) {
  std::mt19937_64 random(1);
  EXPECT_EQ(set_words::count_bits(0), 0U);
  EXPECT_EQ(set_words::count_bits(~std::uint64_t{0}), 64U);
  for (int i = 0; i < 1000; ++i) {
    const std::uint64_t word = random() & random();
    std::size_t bits = 0;
    for (std::uint32_t bit = 0; bit < 64; ++bit) bits += (word >> bit) & 1U;
    ASSERT_EQ(set_words::count_bits(word), bits) << word;
  }
}

TEST(SetWords, ReadsAndAddsWordsAtAnyIndex) {
  std::mt19937_64 random(2);
  for (int i = 0; i < 100; ++i) {
    const Words from = random_words(random, 500);
    const std::size_t first = random() % (kIndices + 100);
    Words to = random_words(random, 100);
    const Words before = to;
    const std::uint64_t bits = set_words::word_at(from, first);
    set_words::unite_word(to, first, bits);
    for (std::size_t bit = 0; bit < 64; ++bit) {
      ASSERT_EQ(((bits >> bit) & 1U) != 0, set_words::contains(from, first + bit)) << first << " + " << bit;
    }
    for (std::size_t index = 0; index < kIndices + 200; ++index) {
      const bool is_added = index >= first && index < first + 64 && ((bits >> (index - first)) & 1U) != 0;
      ASSERT_EQ(set_words::contains(to, index), set_words::contains(before, index) || is_added) << first;
    }
  }
}

TEST(SetWords, ListsRangesAlsoBeyondAWord) {
  const auto list_of = [](const std::vector<std::size_t>& indices) {
    Words words = {0, 0};
    for (const std::size_t index : indices) set_words::insert(words, index);
    return set_words::to_list(words);
  };
  EXPECT_EQ(list_of({}), "");
  EXPECT_EQ(list_of({0}), "0");
  EXPECT_EQ(list_of({0, 1}), "0-1");
  EXPECT_EQ(list_of({1, 3, 5, 6}), "1,3,5-6");
  EXPECT_EQ(list_of({62, 63, 64, 65, 127, 128, 300}), "62-65,127-128,300");
}

TEST(SdkNarrowSet, CountsAsTheWholeSetDoes) {
  std::mt19937_64 random(3);
  const std::vector<Words> sets = {{}, {0, 0}, {0, 6, 0}, {1}, {0, 0, 1U}, random_words(random, 300)};
  for (const Words& narrow : sets) {
    for (const Words& other : sets) {
      const NarrowSet set(topolet_set{narrow.data(), narrow.size()});
      const topolet_set others{other.data(), other.size()};
      EXPECT_EQ(set.count_in(others), set_words::count_both(narrow, other));
      EXPECT_EQ(set.intersects(others), set_words::intersects(narrow, other));
    }
  }
  EXPECT_EQ(NarrowSet().count_in({sets.back().data(), sets.back().size()}), 0U);
}

/// A machine of which only the cores are known.
struct Cores {
  std::vector<topolet_pu> pus;
  topolet_topology topology{};

  explicit Cores(const std::vector<std::uint32_t>& core_by_cpu, std::mt19937_64& random) {
    for (std::uint32_t cpu = 0; cpu < core_by_cpu.size(); ++cpu) {
      const bool is_online = random() % 8 != 0;
      if (is_online) pus.push_back({cpu, core_by_cpu[cpu], 0, 0, 0, 0});
    }
    topology.pus = pus.data();
    topology.pu_count = static_cast<std::uint32_t>(pus.size());
    topology.pu_stride = sizeof(topolet_pu);
    topology.core_count = kIndices;
  }

  Set on_whole_cores(const Set& cpus) const {
    std::set<std::uint32_t> parts;
    for (const topolet_pu& pu : pus) {
      if (!cpus.has(pu.os_index)) parts.insert(pu.core);
    }
    Set whole;
    for (const topolet_pu& pu : pus) {
      if (cpus.has(pu.os_index) && parts.count(pu.core) == 0) whole.insert(pu.os_index);
    }
    return whole;
  }
};

/// By how siblings are numbered: side by side, in rows, and in no order at all.
std::vector<std::vector<std::uint32_t>> core_numberings(std::mt19937_64& random) {
  std::vector<std::vector<std::uint32_t>> numberings(7, std::vector<std::uint32_t>(kIndices));
  for (std::uint32_t cpu = 0; cpu < kIndices; ++cpu) {
    numberings[0][cpu] = cpu;
    numberings[1][cpu] = cpu / 2;
    numberings[2][cpu] = cpu / 8;
    numberings[3][cpu] = cpu % (kIndices / 2);
    numberings[4][cpu] = cpu % (kIndices / 4);
    numberings[5][cpu] = cpu < 40 ? cpu / 2 : cpu;  // some cores without siblings
    numberings[6][cpu] = static_cast<std::uint32_t>(random() % (kIndices / 2));
  }
  return numberings;
}

TEST(SdkCoreMap, FindsWholeCoresHoweverSiblingsAreNumbered) {
  std::mt19937_64 random(4);
  for (int round = 0; round < 20; ++round) {
    for (const std::vector<std::uint32_t>& numbering : core_numberings(random)) {
      const Cores machine(numbering, random);
      const CoreMap map(machine.topology);
      for (const std::uint64_t permille : {0, 500, 900, 1000}) {
        const Set cpus(random_words(random, permille));
        ASSERT_EQ(map.on_whole_cores(cpus.view()).to_string(), machine.on_whole_cores(cpus).to_string())
            << cpus.to_string();
      }
    }
  }
}

TEST(SdkCoreMap, FindsWholeCoresAlsoIfCpusAreNotInOrder) {
  const std::array<topolet_pu, 4> pus = {
      {{3, 0, 0, 0, 0, 0}, {1, 0, 0, 0, 0, 0}, {2, 1, 0, 0, 0, 0}, {0, 1, 0, 0, 0, 0}}};
  topolet_topology topology{};
  topology.pus = pus.data(), topology.pu_count = 4, topology.pu_stride = sizeof(topolet_pu), topology.core_count = 2;
  Set cpus;
  for (const std::uint32_t cpu : {0U, 1U, 3U}) cpus.insert(cpu);
  EXPECT_EQ(CoreMap(topology).on_whole_cores(cpus.view()).to_string(), "1,3");
}

}  // namespace
}  // namespace topolet::sdk
