#include <fmt/format.h>

#include <chrono>
#include <filesystem>
#include <map>
#include <memory>
#include <nlohmann/json.hpp>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include "tests/bench/child.hpp"
#include "tests/bench/kubelet_requests.hpp"
#include "tests/bench/load_client.hpp"
#include "tests/bench/roles.hpp"
#include "tests/bench/rounds.hpp"
#include "tests/bench/sections.hpp"
#include "tests/bench/statistics.hpp"
#include "tests/bench/ways.hpp"

namespace topolet::bench {
namespace {

constexpr std::size_t kWarmUps = 3;
/// The one that scripts/private-runtime puts into its containerd.
constexpr char kImage[] = "topolet.io/story:1";

/// Creates containers in one pod, which it made itself. Removes the pod in the end.
class Creator {
 public:
  Creator(std::string name, const std::string& socket, std::unique_ptr<Child> proxy, const std::string& cgroup_root);
  ~Creator();
  Creator(const Creator&) = delete;
  Creator& operator=(const Creator&) = delete;

  const std::string& name() const { return name_; }
  /// Milliseconds.
  double create();
  void remove();

 private:
  const std::string name_;
  const std::unique_ptr<Child> proxy_;
  LoadClient client_;
  PodSpec pod_;
  std::string sandbox_id_;
  std::string container_id_;
  int created_ = 0;
};

Creator::Creator(std::string name, const std::string& socket, std::unique_ptr<Child> proxy,
                 const std::string& cgroup_root)
    : name_(std::move(name)),
      proxy_(std::move(proxy)),
      client_(socket),
      pod_{.name = "bench-" + name_, .cgroup_root = cgroup_root, .host_network = true} {
  sandbox_id_ = id_in(client_.call(kServicePath + "RunPodSandbox", run_sandbox_request(pod_)));
}

Creator::~Creator() {
  try {
    client_.call(kServicePath + "StopPodSandbox", id_request(sandbox_id_));
    client_.call(kServicePath + "RemovePodSandbox", id_request(sandbox_id_));
  } catch (const std::exception& error) {
    fmt::print(stderr, "{}: the pod is left in containerd: {}\n", name_, error.what());
  }
}

double Creator::create() {
  const ContainerSpec spec{.name = fmt::format("container-{}", created_++), .image = kImage, .sleeps = true};
  const std::string request = create_request(pod_, sandbox_id_, spec);
  const auto begin = std::chrono::steady_clock::now();
  const std::string response = client_.call(kServicePath + "CreateContainer", request);
  const double ms = std::chrono::duration<double, std::milli>(std::chrono::steady_clock::now() - begin).count();
  container_id_ = id_in(response);
  return ms;
}

void Creator::remove() { client_.call(kServicePath + "RemoveContainer", id_request(container_id_)); }

/// All in front of the same containerd; topoletd on this machine, where the containers are.
std::vector<std::unique_ptr<Creator>> make_creators(const SectionOptions& options, const TempDir& directory) {
  const std::string& containerd = options.containerd;
  const std::string cgroup_root = "/" + std::filesystem::path(containerd).parent_path().filename().string();
  std::vector<std::unique_ptr<Creator>> creators;
  const auto add = [&](const std::string& name, const std::string& socket, std::unique_ptr<Child> proxy) {
    creators.push_back(std::make_unique<Creator>(name, socket, std::move(proxy), cgroup_root));
  };
  add(kDirect, containerd, nullptr);
  const std::string relay = directory.file("relay.sock");
  add(kRelay, relay, std::make_unique<Child>(relay_role(relay, containerd), relay));
  const std::string bare = directory.file("bare.sock");
  add(kBare, bare, std::make_unique<Child>(bare_proxy_role(bare, containerd), bare));
  DaemonOptions daemon{.topoletd = options.topoletd, .directory = directory.file("topolet"), .runtime = containerd};
  daemon.topoletd.machine.clear();
  add(kTopolet, daemon.socket(), start_topoletd(daemon));
  return creators;
}

using Milliseconds = std::map<std::string, std::vector<double>>;

void create_by_all(std::vector<std::unique_ptr<Creator>>& creators, std::mt19937_64& random, Milliseconds& ms) {
  run_in_turns(creators, 1, random, [&](auto& creator) { ms[creator->name()].push_back(creator->create()); });
  for (const auto& creator : creators) creator->remove();
}

nlohmann::json report_difference(const Milliseconds& ms, const std::string& way, const std::string& to,
                                 std::uint64_t seed) {
  const Interval added = median_difference(ms.at(way), ms.at(to), seed);
  fmt::print("{:<18} {:+.2f} [{:+.2f}, {:+.2f}]\n", way + " - " + to, added.middle, added.low, added.high);
  return {{"way", way}, {"to", to}, {"added_ms", {{"low", added.low}, {"middle", added.middle}, {"high", added.high}}}};
}

nlohmann::json report(const Milliseconds& ms, std::uint64_t seed) {
  nlohmann::json json = {{"creates", ms.at(kDirect).size()}};
  fmt::print("CreateContainer in a real containerd, {} by each way\n{:<18} {:>8} {:>8}\n", ms.at(kDirect).size(), "way",
             "p50 ms", "p99 ms");
  for (const std::string& way : {kDirect, kRelay, kBare, kTopolet}) {
    const std::vector<double>& all = ms.at(way);
    fmt::print("{:<18} {:>8.2f} {:>8.2f}\n", way, median(all), quantile(all, 0.99));
    json["ways"].push_back({{"way", way}, {"p50_ms", median(all)}, {"p99_ms", quantile(all, 0.99)}, {"ms", all}});
  }
  fmt::print("median of the paired differences in ms [95 % interval]\n");
  for (const auto& [way, to] : {std::pair(kTopolet, kBare), std::pair(kTopolet, kDirect), std::pair(kBare, kDirect)}) {
    json["differences"].push_back(report_difference(ms, way, to, seed));
  }
  return json;
}

}  // namespace

nlohmann::json measure_containerd(const SectionOptions& options) {
  const TempDir directory;
  std::mt19937_64 random(options.seed);
  auto creators = make_creators(options, directory);
  Milliseconds warm_up;
  for (std::size_t i = 0; i < kWarmUps; ++i) create_by_all(creators, random, warm_up);
  Milliseconds ms;
  run_rounds(options.seconds, [&] { create_by_all(creators, random, ms); });
  return report(ms, options.seed);
}

}  // namespace topolet::bench
