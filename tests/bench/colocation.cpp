// What BestEffort neighbours do to the latency of another container, on real CPUs and with a real containerd.
#include <fcntl.h>
#include <fmt/format.h>
#include <sys/prctl.h>
#include <unistd.h>

#include <algorithm>
#include <boost/program_options.hpp>
#include <chrono>
#include <csignal>
#include <cstdint>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <map>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>
#include <sstream>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

#include "tests/bench/statistics.hpp"
#include "tests/integration/node.hpp"

namespace topolet::bench {
namespace {

using Time = std::chrono::steady_clock::time_point;
using std::chrono::microseconds;
using std::chrono::seconds;

/// A request comes so often, and takes so long on an idle CPU: 5 % of one.
constexpr microseconds kPeriod{4000};
constexpr microseconds kWork{200};
constexpr std::int64_t kMiB = 1 << 20;
/// The goals of the project: not judged here.
constexpr double kMostSlowdown = 1.2;
constexpr double kLeastForBestEffort = 0.5;

// ---- What runs in the cgroups of the containers
// ----------------------------------------------------------------------

/// Becomes a process of the container that `container` is one of: in all cgroups that divide CPUs.
void join_cgroups_of(pid_t container) {
  std::ifstream lines(fmt::format("/proc/{}/cgroup", container));
  const bool is_v2 = std::filesystem::exists("/sys/fs/cgroup/cgroup.controllers");
  for (std::string line; std::getline(lines, line);) {
    const std::size_t first = line.find(':');
    const std::size_t second = line.find(':', first + 1);
    const std::string controllers = line.substr(first + 1, second - first - 1);
    if (is_v2 ? !controllers.empty() : controllers != "cpuset" && controllers.find("cpu") != 0) continue;
    const std::string path = "/sys/fs/cgroup/" + (is_v2 ? "" : controllers) + line.substr(second + 1) + "/cgroup.procs";
    if (!(std::ofstream(path) << getpid() << std::flush)) throw std::runtime_error("cannot join " + path);
  }
}

/// Counts on; the compiler must not know how far.
std::uint64_t spin(std::uint64_t rounds) {
  volatile std::uint64_t value = 1;
  for (std::uint64_t i = 0; i < rounds; ++i) value = value * 6364136223846793005U + 1442695040888963407U;
  return value;
}

std::uint64_t rounds_of(microseconds time) {
  constexpr std::uint64_t kTried = 10000;
  auto fastest = Time::duration::max();
  for (int i = 0; i < 50; ++i) {
    const Time begin = std::chrono::steady_clock::now();
    spin(kTried);
    fastest = std::min(fastest, std::chrono::steady_clock::now() - begin);
  }
  return kTried * static_cast<std::uint64_t>(std::chrono::nanoseconds(time).count()) /
         static_cast<std::uint64_t>(std::max<std::int64_t>(1, fastest.count()));
}

/// As many threads as there are CPUs, until it is killed.
[[noreturn]] void hog(pid_t container) {
  prctl(PR_SET_PDEATHSIG, SIGKILL);
  join_cgroups_of(container);
  std::vector<std::thread> threads;
  for (unsigned i = 0; i < std::thread::hardware_concurrency(); ++i)
    threads.emplace_back([] {
      for (;;) spin(1U << 20U);
    });
  for (std::thread& thread : threads) thread.join();
  std::abort();
}

/// Prints how long each request took, in nanoseconds, from when it came.
void answer_requests(pid_t container, std::uint64_t rounds, seconds how_long) {
  join_cgroups_of(container);
  std::vector<std::int64_t> took;
  const Time begin = std::chrono::steady_clock::now();
  for (Time next = begin; next < begin + how_long; next += kPeriod) {
    std::this_thread::sleep_until(next);
    spin(rounds);
    took.push_back((std::chrono::steady_clock::now() - next).count());
  }
  for (const std::int64_t one : took) fmt::print("{}\n", one);
}

// ---- Scenes
// ----------------------------------------------------------------------------------------------------------

struct Scene {
  std::string name;
  std::string what;
  bool has_hog = true;
  bool is_pinned = false;  ///< by hand, without topoletd: each container to a CPU of its own
  bool is_exclusive = false;
  std::vector<std::string> flags = {};  ///< of topoletd
  bool settles = false;                 ///< the policy measures for a minute before it does anything
};

std::vector<Scene> scenes() {
  return {
      {.name = "apart", .what = "beside the hog, each pinned by hand to a CPU of its own", .is_pinned = true},
      {.name = "alone", .what = "shares all CPUs, no hog", .has_hog = false},
      {.name = "beside", .what = "shares all CPUs with the hog, no policy"},
      {.name = "load", .what = "the same with the plugin load", .flags = {"--plugins.enable=load"}, .settles = true},
      {.name = "own-cpu", .what = "requests one whole CPU, which topolet gives it alone", .is_exclusive = true}};
}

/// Of one slice.
struct Measured {
  std::vector<double> latencies_us;
  double hog_cpus = 0;   ///< CPU time by time
  double idle_cpus = 0;  ///< that the other container did not use
  std::string hog_on;    ///< CPUs
};

struct Settings {
  seconds slice{10};
  seconds settle{90};
  int rounds = 3;
  std::string json;
  std::vector<std::string> only = {};
};

std::string own_program() { return std::filesystem::read_symlink("/proc/self/exe").string(); }

double cpu_seconds_of(pid_t process) {
  std::ifstream file(fmt::format("/proc/{}/stat", process));
  std::string text;
  std::getline(file, text);
  std::istringstream fields(text.substr(std::min(text.rfind(')'), text.size() - 1) + 2));
  std::string skipped;
  for (int i = 3; i < 14; ++i) fields >> skipped;
  double user = 0;
  double system = 0;
  fields >> user >> system;
  return (user + system) / static_cast<double>(sysconf(_SC_CLK_TCK));
}

template <class T>
T checked(Result<T> result, const std::string& what) {
  if (!result) throw std::runtime_error(what + ": " + result.error().message);
  return *std::move(result);
}
void checked(const Status& status, const std::string& what) {
  if (!status) throw std::runtime_error(what + ": " + status.error().message);
}

/// A private containerd, and a topoletd in front of it for each slice.
class Bench {
 public:
  explicit Bench(const Settings& settings)
      : settings_(settings),
        runtime_(checked(integration::PrivateRuntime::start(), "containerd")),
        direct_(runtime_->endpoint()),
        rounds_(rounds_of(kWork)) {}

  Measured measure(const Scene& scene) {
    integration::Daemon daemon(runtime_->directory(), runtime_->endpoint());
    // It would give containers that it finds pinned the CPUs that it has for them.
    if (!scene.is_pinned) checked(daemon.start(scene.flags), "topoletd");
    integration::CriClient topolet(daemon.endpoint());
    integration::CriClient& client = scene.is_pinned ? direct_ : topolet;
    const auto wanted =
        scene.is_exclusive ? integration::guaranteed(1000, 64 * kMiB) : integration::burstable(500, 64 * kMiB);
    Running web(client, direct_, runtime_->cgroups(), "web", wanted, scene.is_pinned ? "0" : "");
    Measured measured;
    if (!scene.has_hog) {
      measured.latencies_us = latencies_of(web.process(), settings_.slice);
      return measured;
    }
    Running batch(client, direct_, runtime_->cgroups(), "batch", integration::besteffort(), scene.is_pinned ? "1" : "");
    auto hogs = checked(integration::Child::start({own_program(), "--hog", std::to_string(batch.process())},
                                                  runtime_->directory() / "hog.log"),
                        "the hog");
    // BestEffort containers keep two CPUs at least.
    const bool may_give_way = std::thread::hardware_concurrency() > 2;
    if (scene.settles && may_give_way && settings_.settle.count() > 0)
      static_cast<void>(latencies_of(web.process(), settings_.settle));
    const double before = cpu_seconds_of(hogs.pid());
    const Time began = std::chrono::steady_clock::now();
    measured.latencies_us = latencies_of(web.process(), settings_.slice);
    const double time = std::chrono::duration<double>(std::chrono::steady_clock::now() - began).count();
    measured.hog_cpus = (cpu_seconds_of(hogs.pid()) - before) / time;
    measured.hog_on = allowed_on(batch.process());
    const double used = std::chrono::duration<double>(kWork) / std::chrono::duration<double>(kPeriod);
    measured.idle_cpus = static_cast<double>(std::thread::hardware_concurrency()) - used;
    hogs.end(SIGKILL);
    return measured;
  }

 private:
  /// A pod with one container, as long as it lives.
  class Running {
   public:
    Running(integration::CriClient& client, integration::CriClient& direct, const integration::CgroupNaming& cgroups,
            const std::string& name, const integration::Resources& resources, const std::string& cpus)
        : client_(client), pod_{name, "uid-" + name, resources, cgroups, {}, {}} {
      checked(client.run(pod_), name);
      id_ = checked(client.create(pod_, {.image = integration::kImage, .cpuset_cpus = cpus}), name);
      checked(client.start(id_), name);
      process_ = checked(direct.inspect(id_), name).pid;
    }
    ~Running() {
      static_cast<void>(client_.stop(id_, seconds(0)));
      static_cast<void>(client_.stop(pod_));
      static_cast<void>(client_.remove(pod_));
    }
    Running(const Running&) = delete;
    Running& operator=(const Running&) = delete;

    pid_t process() const { return process_; }

   private:
    integration::CriClient& client_;
    integration::Pod pod_;
    std::string id_;
    pid_t process_ = 0;
  };

  std::vector<double> latencies_of(pid_t container, seconds how_long) const {
    const auto answered =
        checked(integration::run_to_end({own_program(), "--answer", std::to_string(container), "--work",
                                         std::to_string(rounds_), "--seconds", std::to_string(how_long.count())}),
                "the latency loop");
    if (answered.exit_code != 0)
      throw std::runtime_error(fmt::format("the latency loop ended with {}", answered.exit_code));
    std::vector<double> all;
    std::istringstream lines(answered.out);
    for (double ns = 0; lines >> ns;) all.push_back(ns / 1000);
    if (all.empty()) throw std::runtime_error("the latency loop measured nothing: " + answered.out);
    return all;
  }

  static std::string allowed_on(pid_t process) {
    std::ifstream lines(fmt::format("/proc/{}/status", process));
    constexpr std::string_view kKey = "Cpus_allowed_list:\t";
    for (std::string line; std::getline(lines, line);) {
      if (line.rfind(kKey, 0) == 0) return line.substr(kKey.size());
    }
    return "";
  }

  const Settings settings_;
  const std::unique_ptr<integration::PrivateRuntime> runtime_;
  integration::CriClient direct_;
  const std::uint64_t rounds_;
};

// ---- Report
// ----------------------------------------------------------------------------------------------------------

using Slices = std::map<std::string, std::vector<Measured>>;

std::vector<double> p99s(const std::vector<Measured>& slices) {
  std::vector<double> all;
  for (const Measured& slice : slices) all.push_back(quantile(slice.latencies_us, 0.99));
  return all;
}

/// How much of what was idle BestEffort got; nothing without a hog.
std::optional<double> share_of_idle(const std::vector<Measured>& slices) {
  std::vector<double> shares;
  for (const Measured& slice : slices) {
    if (slice.idle_cpus > 0) shares.push_back(slice.hog_cpus / slice.idle_cpus);
  }
  if (shares.empty()) return std::nullopt;
  return median(shares);
}

std::size_t directories_in(const std::string& directory, const std::string& prefix) {
  std::size_t count = 0;
  std::error_code ignored;
  for (const auto& entry : std::filesystem::directory_iterator(directory, ignored)) {
    const std::string name = entry.path().filename().string();
    if (name.rfind(prefix, 0) == 0 && name.size() > prefix.size() && std::isdigit(name[prefix.size()]) != 0) ++count;
  }
  return count;
}

/// What a machine like this one does not show.
std::vector<std::string> not_measured() {
  std::vector<std::string> all;
  std::ifstream file("/sys/devices/system/cpu/cpu0/topology/thread_siblings_list");
  std::string siblings;
  std::getline(file, siblings);
  if (siblings.find_first_of(",-") == std::string::npos) all.emplace_back("sibling threads (each core has one)");
  if (directories_in("/sys/devices/system/node", "node") < 2) all.emplace_back("NUMA nodes and sockets (there is one)");
  if (std::thread::hardware_concurrency() <= 2)
    all.emplace_back("BestEffort containers that give way (they keep two CPUs at least, and there are no more)");
  return all;
}

nlohmann::json report(const Slices& slices) {
  nlohmann::json json;
  fmt::print("{:<9} {:>10} {:>10} {:>22} {:>16} {:>8}  {}\n", "scene", "p50 us", "p99 us", "p99 / apart",
             "idle that BE got", "BE on", "what");
  for (const Scene& scene : scenes()) {
    const auto found = slices.find(scene.name);
    if (found == slices.end()) continue;
    std::vector<double> all;
    for (const Measured& slice : found->second)
      all.insert(all.end(), slice.latencies_us.begin(), slice.latencies_us.end());
    const std::vector<double> own = p99s(found->second);
    const auto apart = slices.find("apart");
    const Interval ratio = apart == slices.end() ? Interval{} : median_ratio(own, p99s(apart->second), 1);
    const std::optional<double> idle = share_of_idle(found->second);
    fmt::print("{:<9} {:>10.0f} {:>10.0f} {:>22} {:>16} {:>8}  {}\n", scene.name, median(all), median(own),
               fmt::format("{:.2f} [{:.2f}, {:.2f}]", ratio.middle, ratio.low, ratio.high),
               idle ? fmt::format("{:.0f} %", *idle * 100) : "-", found->second.back().hog_on, scene.what);
    json["scenes"].push_back({{"scene", scene.name},
                              {"requests", all.size()},
                              {"p50_us", median(all)},
                              {"p99_us", median(own)},
                              {"p99_to_apart", ratio.middle},
                              {"besteffort_of_idle", idle ? nlohmann::json(*idle) : nlohmann::json()}});
  }
  fmt::print("goals of the project: p99 / apart at most {:.1f} while BestEffort gets {:.0f} % of what was idle\n",
             kMostSlowdown, kLeastForBestEffort * 100);
  for (const std::string& what : not_measured()) {
    fmt::print("not measured on this machine: {}\n", what);
    json["not_measured"].push_back(what);
  }
  return json;
}

void measure(const Settings& settings) {
  if (const std::string why = integration::why_no_containers(); !why.empty()) {
    fmt::print("left out: {}\n", why);
    return;
  }
  if (std::thread::hardware_concurrency() < 2) {
    fmt::print("left out: with one CPU nobody can be apart\n");
    return;
  }
  fmt::print("{} CPUs; a request of {} us every {} us; slices of {} s, {} rounds\n",
             std::thread::hardware_concurrency(), kWork.count(), kPeriod.count(), settings.slice.count(),
             settings.rounds);
  std::fflush(stdout);
  Bench bench(settings);
  Slices slices;
  for (int round = 0; round < settings.rounds; ++round) {
    for (const Scene& scene : scenes()) {
      const bool is_chosen = settings.only.empty() ||
                             std::find(settings.only.begin(), settings.only.end(), scene.name) != settings.only.end();
      if (!is_chosen) continue;
      try {
        slices[scene.name].push_back(bench.measure(scene));
      } catch (const std::exception& error) {
        throw std::runtime_error(fmt::format("scene {}: {}", scene.name, error.what()));
      }
    }
  }
  const nlohmann::json json = report(slices);
  if (!settings.json.empty()) std::ofstream(settings.json) << json.dump(1) << '\n';
}

int run(int argc, char** argv) {
  namespace po = boost::program_options;
  Settings settings;
  std::int64_t slice = 0;
  std::int64_t settle = 0;
  po::options_description options("Options");
  options.add_options()("help", "print this text and exit")("seconds", po::value(&slice)->default_value(10),
                                                            "how long each scene is measured in a round")(
      "rounds", po::value(&settings.rounds)->default_value(3), "how often each scene is measured")(
      "settle", po::value(&settle)->default_value(90), "seconds before a policy by load is measured")(
      "scenes", po::value(&settings.only)->multitoken(), "only these")("json", po::value(&settings.json), "a file");
  po::options_description roles;
  pid_t container = 0;
  std::uint64_t work = 0;
  roles.add(options).add_options()("hog", po::value(&container))("answer", po::value(&container))("work",
                                                                                                  po::value(&work));
  po::variables_map given;
  po::store(po::parse_command_line(argc, argv, roles), given);
  po::notify(given);
  if (given.count("help") > 0) {
    std::ostringstream text;
    text << options;
    fmt::print("usage: colocation [options]\n\n{}", text.str());
    return 0;
  }
  if (given.count("hog") > 0) hog(container);
  if (given.count("answer") > 0) {
    answer_requests(container, work, seconds(slice));
    return 0;
  }
  settings.slice = seconds(slice);
  settings.settle = seconds(settle);
  measure(settings);
  return 0;
}

}  // namespace
}  // namespace topolet::bench

int main(int argc, char** argv) {
  try {
    return topolet::bench::run(argc, argv);
  } catch (const boost::program_options::error& error) {
    fmt::print(stderr, "colocation: {}; see --help\n", error.what());
    return 2;
  } catch (const std::exception& error) {
    fmt::print(stderr, "colocation: {}\n", error.what());
    return 1;
  }
}
