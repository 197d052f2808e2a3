#include "tests/bench/quality_machine.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <stdexcept>

#include "tests/bench/quality_sections.hpp"

namespace topolet::bench {
namespace {

using ::testing::HasSubstr;
using ::testing::ThrowsMessage;

MachineOptions two_nodes() {
  return {.topology = "pack:2 numa:1 core:4 pu:1",
          .plugin_dir = TOPOLET_BUILT_PLUGINS,
          .plugins = {"numa"},
          .settings = {},
          .gpus_per_node = 0};
}

Arrival with_cpus(std::int64_t milli_cpus, std::optional<std::uint32_t> gpu = std::nullopt) {
  Arrival arrival;
  arrival.milli_cpus = milli_cpus;
  arrival.gpu = gpu;
  return arrival;
}

TEST(QualityMachine, KnowsWhatIsFree) {
  QualityMachine machine(two_nodes());
  EXPECT_EQ(machine.free().to_string(), "0-7");
  EXPECT_EQ(machine.admit(0, with_cpus(3000)).cpus.to_string(), "0-2");
  machine.admit(1, with_cpus(500));  // shared: its CPUs are free for others
  EXPECT_EQ(machine.free().to_string(), "3-7");
  EXPECT_EQ(machine.pods().size(), 2U);
  machine.end(0);
  EXPECT_EQ(machine.free().to_string(), "0-7");
}

TEST(QualityMachine, FollowsPodsThatAreMoved) {
  MachineOptions options = two_nodes();
  options.plugins.clear();
  QualityMachine machine(options);
  machine.admit(0, with_cpus(500));
  EXPECT_EQ(machine.pods().at(0).cpus.to_string(), "0-7");
  machine.admit(1, with_cpus(2000));
  EXPECT_EQ(machine.pods().at(0).cpus.to_string(), "2-7");
}

TEST(QualityMachine, SeesWhereAPodRunsBesideItsHome) {
  MachineOptions options = two_nodes();
  options.settings = {"numa.shared-home=soft"};
  options.shared_may_burst = true;
  QualityMachine machine(options);
  const CpuSet home = machine.admit(0, with_cpus(500)).cpus;
  ASSERT_EQ(home.size(), 4U);
  machine.tell_load(0, 4000, 500);
  machine.pass(std::chrono::seconds(20));
  EXPECT_EQ(machine.pods().at(0).cpus, home);
  EXPECT_GT(machine.pods().at(0).runs_on.size(), home.size());
}

TEST(QualityMachine, ForgetsAPodThatIsDenied) {
  QualityMachine machine(two_nodes());
  EXPECT_TRUE(machine.admit(0, with_cpus(9000)).is_denied);
  EXPECT_TRUE(machine.pods().empty());
  machine.end(0);
  EXPECT_FALSE(machine.admit(1, with_cpus(1000)).is_denied);
}

TEST(QualityMachine, PlacesPodsBesideTheirGpus) {
  MachineOptions options = two_nodes();
  options.plugins.push_back("gpu");
  options.gpus_per_node = 2;
  QualityMachine machine(options);
  EXPECT_EQ(machine.gpus(), 4U);
  EXPECT_EQ(machine.cpus_beside_gpu(3).to_string(), "4-7");
  EXPECT_EQ(machine.admit(0, with_cpus(2000, 3)).cpus.to_string(), "4-5");
}

TEST(QualityMachine, NamesMistakesOfTheSettings) {
  MachineOptions options = two_nodes();
  options.settings = {"numa.strategy=fullest"};
  EXPECT_THAT([&] { QualityMachine{options}; }, ThrowsMessage<std::runtime_error>(HasSubstr("strategy")));
}

double figure(const Figures& figures, const std::string& name) {
  for (const Figure& candidate : figures) {
    if (candidate.name == name) return candidate.value;
  }
  throw std::logic_error("there is no figure " + name);
}

Scene full_scene(const char* pod_sizes) {
  Scene scene;
  scene.machine = two_nodes();
  scene.churn.pods = 60;
  scene.churn.sizes = *parse_sizes(pod_sizes);
  return scene;
}

TEST(QualitySections, CountNoPodInOneNodeThatCouldNotBe) {
  const Figures figures = measure_nodes(full_scene("3"), 1);
  EXPECT_EQ(figure(figures, "in one node"), 1);
  EXPECT_EQ(figure(figures, "oracle"), 1);
  EXPECT_EQ(figure(figures, "kubelet"), 1);
  EXPECT_EQ(figure(figures, "denied"), 0);
  EXPECT_EQ(figure(figures, "pods"), 58);
}

TEST(QualitySections, RefusePodsThatCannotBeJudged) {
  EXPECT_THAT([] { measure_nodes(full_scene("2,5"), 1); }, ThrowsMessage<std::runtime_error>(HasSubstr("5")));
  EXPECT_THAT([] { measure_nodes(full_scene("0.5"), 1); }, ThrowsMessage<std::runtime_error>(HasSubstr("0.5")));
  EXPECT_THAT([] { measure_caches(full_scene("2"), 1); }, ThrowsMessage<std::runtime_error>(HasSubstr("no L3")));
}

TEST(QualitySections, SayHowUnevenlySharedPodsAreSpread) {
  Scene scene = full_scene("0.5");
  scene.churn.pods = 1;
  EXPECT_DOUBLE_EQ(figure(measure_shared(scene, 1), "max/mean, end"), 2);  // on one of two nodes
  scene.machine.plugins.clear();
  EXPECT_DOUBLE_EQ(figure(measure_shared(scene, 1), "max/mean, end"), 1);  // on all CPUs
}

TEST(QualitySections, CountGpuPodsBesideTheirGpu) {
  Scene scene = full_scene("1");
  scene.machine.plugins.push_back("gpu");
  scene.machine.gpus_per_node = 1;
  scene.churn.fill_percent = 50;
  scene.churn.gpu_pods_percent = 50;
  scene.churn.gpu_sizes = scene.churn.sizes;
  const Figures figures = measure_gpus(scene, 1);
  EXPECT_GT(figure(figures, "GPU pods"), 10);
  EXPECT_EQ(figure(figures, "local"), figure(figures, "had room"));
  EXPECT_EQ(figure(figures, "with moves"), 1);
}

TEST(QualityMachine, PlacesBothContainersOfAPod) {
  QualityMachine machine(two_nodes());
  Arrival pod = with_cpus(2000);
  pod.beside_milli_cpus = 1000;
  machine.admit(0, pod);
  EXPECT_EQ(machine.pods().at(0).cpus.to_string(), "0-1");
  EXPECT_EQ(machine.pods().at(0).beside.to_string(), "2");
  EXPECT_EQ(machine.free().to_string(), "3-7");
  pod.milli_cpus = 5000;
  pod.beside_milli_cpus = 9000;
  EXPECT_TRUE(machine.admit(1, pod).is_denied) << "if one of them is";
  EXPECT_EQ(machine.free().to_string(), "3-7");
}

TEST(QualitySections, CountPodsThatAreInOneNode) {
  Scene scene = full_scene("1,2");
  scene.churn.fill_percent = 60;
  scene.churn.beside_sizes = *parse_sizes("1");
  const Figures figures = measure_pods(scene, 1);
  EXPECT_EQ(figure(figures, "pods in one node"), 1);
  EXPECT_EQ(figure(figures, "nodes in common"), 1);
  scene.churn.fill_percent = 100;
  scene.churn.sizes = *parse_sizes("3");
  scene.churn.beside_sizes = *parse_sizes("2");
  EXPECT_EQ(figure(measure_pods(scene, 1), "pods in one node"), 0) << "five CPUs on nodes of four";
}

TEST(QualitySections, CountNodesInCommon) {
  Scene scene = full_scene("5");
  scene.churn.fill_percent = 100;
  scene.churn.beside_sizes = *parse_sizes("1");
  EXPECT_DOUBLE_EQ(figure(measure_pods(scene, 1), "nodes in common"), 0.5) << "an app on two nodes, and one beside it";
}

}  // namespace
}  // namespace topolet::bench
