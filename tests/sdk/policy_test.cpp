#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <topolet/policy.hpp>

#include <array>
#include <optional>
#include <stdexcept>
#include <string>
#include <vector>

namespace topolet::sdk {
namespace {

using ::testing::ElementsAre;

TEST(SdkSet, ReadsAndWritesSparseIndices) {
  Set set;
  EXPECT_TRUE(set.empty());
  EXPECT_EQ(set.to_string(), "");
  for (const std::uint32_t index : {0U, 1U, 2U, 64U, 130U}) set.insert(index);
  EXPECT_EQ(set.to_string(), "0-2,64,130");
  EXPECT_THAT(set.indices(), ElementsAre(0, 1, 2, 64, 130));
  EXPECT_EQ(set.size(), 5U);
  EXPECT_EQ(Set(set.view()).to_string(), "0-2,64,130");
}

TEST(SdkSet, CombinesSetsOfDifferentLength) {
  Set small;
  small.insert(1);
  small.insert(2);
  Set large;
  large.insert(2);
  large.insert(200);
  EXPECT_EQ((small & large).to_string(), "2");
  EXPECT_EQ((large & small).to_string(), "2");
  EXPECT_EQ((small | large).to_string(), "1-2,200");
  EXPECT_EQ((large - small).to_string(), "200");
  EXPECT_EQ((small - large).to_string(), "1");
  EXPECT_EQ(size_of_both(small.view(), large.view()), 1U);
  EXPECT_FALSE(small == large);
  EXPECT_TRUE(large - large == Set()) << "zero words at the end mean nothing";
}

/// Nodes 0 and 1 with CPUs, of these sizes, and node 2 without CPUs.
std::array<topolet_node, 3> nodes_of_sizes(std::int64_t first, std::int64_t second) {
  std::array<topolet_node, 3> nodes{};
  for (std::uint32_t i = 0; i < 3; ++i) nodes[i].os_index = i;
  nodes[0].memory_bytes = first;
  nodes[1].memory_bytes = second;
  nodes[2].memory_bytes = 1 << 20;
  nodes[2].memory_only = 1;
  return nodes;
}

NodesWithoutMemory without_memory(const std::array<topolet_node, 3>& nodes) {
  topolet_topology topology{};
  topology.struct_size = sizeof(topology);
  topology.nodes = nodes.data();
  topology.node_count = 3;
  topology.node_stride = sizeof(topolet_node);
  return NodesWithoutMemory(topology);
}

TEST(SdkNodesWithoutMemory, AreThoseWithCpusWhoseSizeIsNotTold) {
  const NodesWithoutMemory one = without_memory(nodes_of_sizes(1 << 20, 0));
  EXPECT_EQ(one.nodes().to_string(), "1");
  Set both;
  both.insert(0);
  both.insert(1);
  EXPECT_EQ(one.count_in(both.view(), false), 1U);
  EXPECT_EQ(one.count_in(both.view(), true), 2U) << "CPUs outside any node are one more";
  EXPECT_EQ(one.count_in({}, true), 1U);
}

TEST(SdkNodesWithoutMemory, AreNoneWhereAllNodesHaveSomeOrNoSizeIsKnown) {
  for (const std::int64_t bytes : {1 << 20, 0}) {
    const NodesWithoutMemory none = without_memory(nodes_of_sizes(bytes, bytes));
    EXPECT_TRUE(none.nodes().empty());
    EXPECT_EQ(none.sizes_are_known(), bytes > 0);
    EXPECT_EQ(none.count_in({}, true), bytes > 0 ? 1U : 0U);
  }
}

TEST(SdkSettings, FindsTheLastValueOfAKeyEvenIfItIsEmpty) {
  const std::array<topolet_kv, 2> pairs = {
      {{TOPOLET_STR("smt"), TOPOLET_STR("share")}, {TOPOLET_STR("smt"), TOPOLET_STR("")}}};
  EXPECT_EQ(find_value({pairs.data(), 1}, "smt"), "share");
  EXPECT_EQ(find_value({pairs.data(), 2}, "smt"), "");
  EXPECT_EQ(find_value({pairs.data(), 2}, "sm"), std::nullopt);
  EXPECT_EQ(value_of({pairs.data(), 2}, "sm"), "");
}

TEST(SdkSettings, SaysWhichValuesAnAnnotationMayHave) {
  const topolet_kv pair = {TOPOLET_STR("smt"), TOPOLET_STR("of\nf")};
  EXPECT_EQ(setting_error({&pair, 1}, "smt", {"isolate", "share"}),
            "annotation topolet.io/smt = 'of?f': it must be one of 'isolate', 'share'");
  EXPECT_EQ(setting_error({&pair, 1}, "smt", {"of\nf"}), "");
  EXPECT_EQ(setting_error({&pair, 1}, "cpu-profile", {"heavy"}), "") << "it is not set";
  EXPECT_EQ(printable(std::string(70, 'x')), std::string(64, 'x') + "...");
}

TEST(SdkReasons, CountAndNameThings) {
  EXPECT_EQ(counted(0, "CPU") + ", " + counted(1, "CPU") + ", " + counted(2, "CPU"), "0 CPUs, 1 CPU, 2 CPUs");
  Set set;
  EXPECT_EQ(node_names(set.view()), "the CPUs outside any node");
  set.insert(3);
  EXPECT_EQ(cpu_names(set) + ", " + node_names(set.view()), "CPU 3, node 3");
  set.insert(64);
  EXPECT_EQ(cpu_names(set) + ", " + node_names(set.view()), "CPUs 3,64, nodes 3,64");
}

TEST(SdkTopology, CountsThreadsPerCoreAsTheKubeletDoes) {
  std::vector<topolet_pu> pus(5);
  for (std::uint32_t i = 0; i < pus.size(); ++i) pus[i] = {i, i / 2, 0, 0, 0, 0};
  topolet_topology topology{};
  EXPECT_EQ(threads_per_core(topology), 1U) << "no CPU";
  topology.pus = pus.data(), topology.pu_count = 4, topology.pu_stride = sizeof(topolet_pu), topology.core_count = 2;
  EXPECT_EQ(threads_per_core(topology), 2U);
  topology.pu_count = 5;
  EXPECT_EQ(threads_per_core(topology), 1U) << "a CPU of unknown core is a core, and the average is rounded down";
}

TEST(SdkCoreMap, FindsWholeCoresOfUnequalSize) {
  // Cores of two threads and of one, numbered as they come, and a CPU of unknown core.
  const std::array<topolet_pu, 5> pus = {
      {{0, 1, 0, 0, 0, 0}, {1, 0, 0, 0, 0, 0}, {2, 1, 0, 0, 0, 0}, {4, 2, 0, 0, 0, 0}, {70, TOPOLET_NONE, 0, 0, 0, 0}}};
  topolet_topology topology{};
  topology.pus = pus.data(), topology.pu_count = 5, topology.pu_stride = sizeof(topolet_pu), topology.core_count = 3;
  const CoreMap map(topology);
  EXPECT_EQ(map.core_count(), 4U);
  EXPECT_EQ(map.core_of(2), map.core_of(0));
  EXPECT_EQ(map.core_of(3), TOPOLET_NONE) << "it is not online";
  EXPECT_EQ(map.threads_of(map.core_of(0)), 2U);
  EXPECT_EQ(map.most_threads(), 2U);
  EXPECT_TRUE(map.sizes_differ());
  Set cpus;
  for (const std::uint32_t cpu : {0U, 1U, 3U, 70U}) cpus.insert(cpu);
  EXPECT_EQ(map.on_whole_cores(cpus.view()).to_string(), "1,70") << "0 lacks its sibling, 3 is not online";
  cpus.insert(2);
  EXPECT_EQ(map.on_whole_cores(cpus.view()).to_string(), "0-2,70");
  EXPECT_EQ(map.lowest_of_each_core(cpus.view()).to_string(), "0-1,70");
}

TEST(SdkOptionTable, MakesRowsOfEachType) {
  static constexpr std::array<topolet_str, 2> kColours = {{TOPOLET_STR("red"), TOPOLET_STR("green")}};
  constexpr topolet_option kChoice = choice_option("colour", "red", kColours, "Which colour.");
  EXPECT_EQ(text(kChoice.name), "colour");
  EXPECT_EQ(kChoice.type, TOPOLET_OPTION_CHOICE);
  EXPECT_EQ(text(kChoice.allowed.items[1]), "green");
  EXPECT_EQ(text(kChoice.help), "Which colour.");
  constexpr topolet_option kNumber = integer_option("most", "10", 1, 100, "How many.");
  EXPECT_EQ(kNumber.type, TOPOLET_OPTION_INTEGER);
  EXPECT_EQ(kNumber.maximum, 100);
  EXPECT_EQ(text(bool_option("pair", "Whether.").default_value), "false");
  EXPECT_EQ(string_option("path", "/", "Where.").type, TOPOLET_OPTION_STRING);
}

TEST(SdkScores, GivesVerdictsByPositionAndSaysNothingOfEmptyOnes) {
  std::vector<std::string> heard;
  topolet_score_sink sink{};
  sink.struct_size = sizeof(sink);
  sink.context = &heard;
  sink.set = [](const topolet_score_sink* to, std::uint32_t candidate, std::int32_t kind, std::int32_t score,
                topolet_str reason) -> std::int32_t {
    static_cast<std::vector<std::string>*>(to->context)
        ->push_back(std::to_string(candidate) + " " + std::to_string(kind) + " " + std::to_string(score) + " " +
                    std::string(text(reason)));
    return TOPOLET_OK;
  };
  Scores(sink).give({{TOPOLET_VERDICT_SCORE, -7, "near"},
                     {},
                     {TOPOLET_VERDICT_REJECT, 0, "full"},
                     {TOPOLET_VERDICT_ABSTAIN, 0, "no matter"},
                     {TOPOLET_VERDICT_SCORE, 0}});
  EXPECT_THAT(heard, ElementsAre("0 2 -7 near", "2 1 0 full", "3 0 0 no matter", "4 2 0 "));
}

struct ReadsNone {
  static constexpr std::array<topolet_str, 0> kAnnotations = {};
  explicit ReadsNone(const Options&) {}
  void notify(const topolet_event&) const {}
};
static_assert(AnnotatedPolicy<ReadsNone>);

struct Picky {
  explicit Picky(const Options& options) {
    if (options["mood"] == "bad") throw std::runtime_error("not in that mood");
  }
  void pick(const topolet_pick_request& request, Picks& picks) const {
    if (request.candidate == 7) throw 7;
    picks.order({3, 1});
    picks.reason("taste");
  }
};

/// Keeps what a plugin says.
struct Heard {
  std::vector<std::uint32_t> order;
  std::string reason, error;

  template <class Sink>
  static Heard& of(const Sink* sink) {
    return *static_cast<Heard*>(sink->context);
  }
  topolet_pick_sink pick_sink() {
    topolet_pick_sink sink{};
    sink.struct_size = sizeof(sink);
    sink.context = this;
    sink.order = [](const topolet_pick_sink* to, const std::uint32_t* cpus, std::size_t count) -> std::int32_t {
      of(to).order.assign(cpus, cpus + count);
      return TOPOLET_OK;
    };
    sink.reason = [](const topolet_pick_sink* to, topolet_str why) -> std::int32_t {
      of(to).reason = text(why);
      return TOPOLET_OK;
    };
    sink.error = [](const topolet_pick_sink* to, topolet_str why) -> std::int32_t {
      of(to).error = text(why);
      return TOPOLET_OK;
    };
    return sink;
  }
  topolet_error_sink error_sink() {
    return {sizeof(topolet_error_sink), 0, this, [](const topolet_error_sink* to, topolet_str why) -> std::int32_t {
              of(to).error = text(why);
              return TOPOLET_OK;
            }};
  }
};

TEST(SdkPlugin, AnswersThroughTheCInterfaceWhatTheClassSays) {
  Heard heard;
  const topolet_create_request create{sizeof(create), 0, nullptr, {nullptr, 0}, {nullptr, 0}, nullptr, 0, 0};
  const topolet_error_sink errors = heard.error_sink();
  const topolet_instance* instance = nullptr;
  ASSERT_EQ(detail::create<Picky>(&create, &errors, &instance), TOPOLET_OK);
  EXPECT_EQ(instance->get_capability(instance, borrow(TOPOLET_SCORE_ID)), nullptr);
  EXPECT_EQ(instance->get_capability(instance, borrow("topolet.fly/1")), nullptr);
  EXPECT_EQ(instance->get_capability(instance, borrow(TOPOLET_ANNOTATIONS_ID)), nullptr) << "it does not say";
  const auto* pick = static_cast<const topolet_pick*>(instance->get_capability(instance, borrow(TOPOLET_PICK_ID)));
  ASSERT_NE(pick, nullptr);

  const topolet_pick_sink sink = heard.pick_sink();
  topolet_pick_request request{};
  EXPECT_EQ(pick->pick(instance, &request, &sink), TOPOLET_OK);
  EXPECT_THAT(heard.order, ElementsAre(3, 1));
  EXPECT_EQ(heard.reason, "taste");

  request.candidate = 7;
  EXPECT_EQ(pick->pick(instance, &request, &sink), TOPOLET_THREW);
  EXPECT_EQ(heard.error, "something that is not a std::exception");
  instance->destroy(instance);
}

TEST(SdkPlugin, SaysWhyItsConstructorThrew) {
  Heard heard;
  const topolet_kv mood = {TOPOLET_STR("mood"), TOPOLET_STR("bad")};
  const topolet_create_request create{sizeof(create), 0, nullptr, {&mood, 1}, {nullptr, 0}, nullptr, 0, 0};
  const topolet_error_sink errors = heard.error_sink();
  const topolet_instance* instance = nullptr;
  EXPECT_EQ(detail::create<Picky>(&create, &errors, &instance), TOPOLET_FAILED);
  EXPECT_EQ(instance, nullptr);
  EXPECT_EQ(heard.error, "not in that mood");
}

}  // namespace
}  // namespace topolet::sdk
