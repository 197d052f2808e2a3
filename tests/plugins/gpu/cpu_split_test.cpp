// Which CPUs the plugin asks for.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

#include "tests/plugins/gpu/gpu_plugin.hpp"

namespace topolet::gpu {
namespace {

using sdk::testing::set_of;
using ::testing::StartsWith;

/// "5 of 0-3, 1 of 4-7".
std::string text_of(const sdk::testing::Picked& picked) {
  std::string text;
  for (const sdk::testing::Share& minimum : picked.at_least) {
    text += (text.empty() ? "" : ", ") + std::to_string(minimum.count) + " of " + minimum.cpus.to_string();
  }
  return text;
}

/// Two packages of two nodes of two cores of two threads; four CPUs to a node.
class GpuCpuSplit : public GpuPluginTest {
 protected:
  GpuCpuSplit() : GpuPluginTest("pack:2 numa:2 core:2 pu:2") {}

  sdk::testing::Picked picked(const Container& container, const sdk::Set& nodes, std::size_t exclusive,
                              const sdk::Set& chosen, const Plugin::Values& more = {}, std::uint32_t flags = 0) {
    Request request(machine_, ledger_, container, static_cast<std::uint32_t>(exclusive));
    request.candidate(nodes).flags(flags);
    return Plugin(topolet_plugin_v1, host_, options(more)).pick(request, request.position(nodes), chosen);
  }

  std::string minimums(const Container& container, const sdk::Set& nodes, std::uint32_t exclusive,
                       std::uint32_t flags = 0) {
    return text_of(picked(container, nodes, exclusive, {}, {}, flags));
  }

  sdk::testing::Picked judged(const Container& container, const sdk::Set& nodes, const sdk::Set& chosen,
                              const char* affinity) {
    return picked(container, nodes, chosen.size(), chosen, {{"affinity", affinity}});
  }

  void take(const sdk::Set& cpus) { ledger_.place_exclusive({.pod_uid = "other"}, cpus); }
};

TEST_F(GpuCpuSplit, PrefersLocalCpusAndThenTheNearest) {
  gpu(0, "0000:41:00.0", set_of({1}));
  machine_.distances({10, 12, 20, 20, 12, 10, 20, 20, 20, 20, 10, 12, 20, 20, 12, 10});
  EXPECT_EQ(minimums(with("0"), set_of({0, 1, 2}), 6), "6 of 4-7, 6 of 0-3");
  EXPECT_EQ(minimums(with("0"), set_of({2, 3}), 6), "") << "none is nearer";
  EXPECT_EQ(minimums(with("0"), set_of({1}), 3), "") << "one node";
  EXPECT_EQ(minimums(with("0"), set_of({0, 1}), 0), "") << "shared";
  EXPECT_EQ(minimums({}, set_of({0, 1}), 6), "") << "no device";
}

TEST_F(GpuCpuSplit, SplitsInProportionToTheDevicesOfANodeInWholeCores) {
  gpu(0, "0000:41:00.0", set_of({0}));
  gpu(1, "0000:81:00.0", set_of({1}));
  gpu(2, "0000:82:00.0", set_of({1}));
  EXPECT_EQ(minimums(with("0,1"), set_of({0, 1}), 4), "2 of 0-3, 2 of 4-7");
  EXPECT_EQ(minimums(with("0,1,2"), set_of({0, 1}), 6), "4 of 4-7, 2 of 0-3");
  EXPECT_EQ(minimums(with("0,1"), set_of({0, 1, 2}), 3), "1 of 0-3, 1 of 4-7, 3 of 0-7");
  EXPECT_EQ(minimums(with("0,1,2"), set_of({0, 1}), 1), "1 of 4-7") << "where most devices are";
}

TEST_F(GpuCpuSplit, UsesWholeCoresIfNumaDoes) {
  gpu(0, "0000:41:00.0", set_of({0}));
  gpu(1, "0000:81:00.0", set_of({1}));
  take(set_of({0}));
  const std::uint32_t whole = TOPOLET_REQUEST_WHOLE_CORES;
  EXPECT_EQ(minimums(with("0"), set_of({0, 1}), 6), "6 of 1-3");
  EXPECT_EQ(minimums(with("0"), set_of({0, 1}), 6, whole), "6 of 2-3");
  EXPECT_EQ(minimums(with("0,1"), set_of({0, 1}), 4, whole), "2 of 4-7, 2 of 2-3");
  EXPECT_EQ(minimums(with("0,1"), set_of({0, 1}), 3, whole), "2 of 4-7, 1 of 2-3");
  EXPECT_EQ(minimums(with("0,1"), set_of({0, 1}), 2, whole), "2 of 4-7") << "one core is on one node";
}

TEST_F(GpuCpuSplit, RejectsChosenCpusThatAreLocalToFewerDevices) {
  gpu(0, "0000:41:00.0", set_of({1}));
  const auto both = set_of({0, 1});
  EXPECT_EQ(judged(with("0"), both, set_of({0, 1}), "require").rejected,
            "affinity = require: with CPUs 0-1 no GPU is local, though 1 could be");
  EXPECT_EQ(judged(with("0"), both, set_of({0, 4}), "require").rejected, "");
  EXPECT_EQ(judged(with("0"), both, set_of({0, 1}), "prefer").rejected, "");
  EXPECT_EQ(judged(with("0"), both, set_of({0, 1}), "prefer").unmet,
            "with CPUs 0-1 no GPU is local, though 1 could be");
  take(machine_.cpus_of(set_of({1})));
  EXPECT_EQ(judged(with("0"), both, set_of({0, 1}), "prefer").unmet, "") << "it could not be better";
}

TEST_F(GpuCpuSplit, ScoresByTheShareOfLocalCpus) {
  gpu(0, "0000:41:00.0", set_of({1}));
  take(set_of({4, 5, 6}));
  const Verdict wide = verdict(with("0"), set_of({0, 1}), {}, 4);
  EXPECT_THAT(wide.reason, StartsWith("nodes 0-1: 1 of 1 GPU is local to 1 of 4 CPUs; "));
  EXPECT_EQ(wide.score, 25) << "a quarter at 100, the others half as much";
  EXPECT_EQ(verdict(with("0"), set_of({0, 1}), {}, 1).score, 99);
}

TEST_F(GpuCpuSplit, KeepsAsManyCpusAsPossibleOffTheNodesOfGpus) {
  gpu(0, "0000:41:00.0", set_of({0}));
  gpu(1, "0000:81:00.0", set_of({2}));
  gpu(2, "0000:c1:00.0", set_of({3}));
  take(set_of({0, 8, 9}));
  const Plugin::Values keep = {{"keep-free", "true"}};
  const auto minimums = [&](const sdk::Set& nodes, std::size_t exclusive, const Plugin::Values& more) {
    return text_of(picked({}, nodes, exclusive, {}, more));
  };
  EXPECT_EQ(minimums(set_of({0, 1}), 6, keep), "6 of 4-7");
  EXPECT_EQ(minimums(set_of({0, 1}), 6, {}), "");
  EXPECT_EQ(minimums(set_of({0, 2}), 4, keep), "4 of 1-3") << "all on one node, if not all away";
  EXPECT_EQ(minimums(set_of({0, 1, 2, 3}), 4, keep), "4 of 4-7");
  EXPECT_EQ(minimums(set_of({0, 1, 2, 3}), 6, keep), "6 of 4-7, 6 of 4-7,10-11") << "the fullest that holds the rest";
  EXPECT_EQ(minimums(set_of({0, 1, 2, 3}), 10, keep), "10 of 4-7, 10 of 4-7,12-15, 10 of 4-7,10-15");
  EXPECT_EQ(text_of(picked(with("1"), set_of({1, 2}), 4, {}, keep)), "4 of 10-11");
}

TEST_F(GpuCpuSplit, PrefersNodesWhereMostCpusAreOffTheNodesOfGpus) {
  gpu(0, "0000:41:00.0", set_of({0}));
  gpu(1, "0000:81:00.0", set_of({2}));
  gpu(2, "0000:c1:00.0", set_of({3}));
  const Plugin::Values keep = {{"keep-free", "true"}};
  EXPECT_EQ(verdict({}, set_of({0, 1}), keep, 5).reason,
            "nodes 0-1: 4 of 5 CPUs can be kept away from the GPUs of nodes 0,2-3");
  EXPECT_EQ(verdict({}, set_of({0, 1}), keep, 5).score, -1);
  EXPECT_EQ(verdict({}, set_of({2, 3}), keep, 5).score, -4);
  EXPECT_EQ(verdict({}, set_of({2, 3}), keep, 5).reason,
            "nodes 2-3: nothing can be kept away from the GPUs of nodes 0,2-3");
  EXPECT_EQ(verdict({}, set_of({0, 1}), keep, 4).score, 0) << "all of it fits";
  EXPECT_EQ(verdict({.cpu_request_milli = 5000}, set_of({0, 1}), keep).reason,
            "nodes 0-1: part of the container can be kept away from the GPUs of nodes 0,2-3");
  take(machine_.cpus_of(set_of({1})));
  EXPECT_EQ(verdict({}, set_of({0, 1}), keep, 5).kind, TOPOLET_VERDICT_ABSTAIN);
  EXPECT_EQ(verdict({}, set_of({0, 1}), keep, 5).reason, "nothing can be kept away from the GPUs of nodes 0,2-3");
}

}  // namespace
}  // namespace topolet::gpu
