// floods: what bad clients cost topoletd, and the good ones beside them. Judges no figure but, with --most-mib, the
// memory. Exit status 0 if all was measured, 1 if something went wrong, 2 for wrong use.
#include <fmt/format.h>

#include <algorithm>
#include <atomic>
#include <boost/program_options.hpp>
#include <chrono>
#include <fstream>
#include <iostream>
#include <memory>
#include <nlohmann/json.hpp>
#include <string>
#include <thread>
#include <vector>

#include "tests/bench/bad_clients.hpp"
#include "tests/bench/daemon_under_test.hpp"
#include "tests/bench/program.hpp"
#include "tests/bench/roles.hpp"

namespace topolet::bench {
namespace {

namespace po = boost::program_options;
using Clock = std::chrono::steady_clock;
using Milliseconds = std::chrono::duration<double, std::milli>;

constexpr std::chrono::milliseconds kCallEvery(5);
constexpr std::chrono::seconds kDeadline(5);
constexpr std::chrono::milliseconds kBigCallEvery(500);
constexpr std::chrono::milliseconds kLookEvery(2);
constexpr std::size_t kBigCallBytes = 16 << 20;

struct FloodOptions {
  Topoletd topoletd;
  std::vector<std::string> kinds;
  double seconds = 0;
  std::size_t connections = 0;
  std::size_t processes = 0;
  std::size_t max_memory_mib = 0;
  double most_mib = 0;
  std::string json;
};

/// Runs in a thread of its own until the end of its life.
class Background {
 public:
  virtual ~Background() = default;
  void stop() {
    stop_ = true;
    if (thread_.joinable()) thread_.join();
  }

 protected:
  template <class Step>
  void start(Step step) {
    thread_ = std::thread([this, step] {
      while (!stop_) step();
    });
  }

 private:
  std::atomic<bool> stop_ = false;
  std::thread thread_;
};

/// Calls again and again, one at a time, and notes how long each took.
class GoodClient final : public Background {
 public:
  GoodClient(std::string socket, std::string method, std::size_t bytes, std::chrono::milliseconds period)
      : socket_(std::move(socket)), path_(kServicePath + method), request_(bytes, 'g'), period_(period) {
    start([this] { call(); });
  }
  ~GoodClient() override { stop(); }

  std::vector<double>& times_ms() { return times_ms_; }
  std::size_t failures() const { return failures_; }

 private:
  void call() {
    auto began = Clock::now();
    try {
      if (client_ == nullptr) {
        client_ = std::make_unique<LoadClient>(socket_, kDeadline);
        // The kubelet's connections are old, and have had many calls.
        for (int i = 0; i < 20; ++i) client_->call(kServicePath + "Version", {});
        began = Clock::now();
      }
      client_->call(path_, request_);
    } catch (const std::exception& error) {
      if (failures_++ == 0) fmt::print(stderr, "  a good client's call failed: {}\n", error.what());
      client_.reset();
    }
    times_ms_.push_back(Milliseconds(Clock::now() - began).count());
    std::this_thread::sleep_until(began + period_);
  }

  const std::string socket_;
  const std::string path_;
  const std::string request_;
  const std::chrono::milliseconds period_;
  std::unique_ptr<LoadClient> client_;
  std::vector<double> times_ms_;
  std::size_t failures_ = 0;
};

/// The most memory of a process, and the longest time that it was over a limit.
class MemoryWatch final : public Background {
 public:
  MemoryWatch(pid_t pid, std::size_t limit_kib)
      : file_(fmt::format("/proc/{}/statm", pid)), limit_kib_(limit_kib), within_(Clock::now()) {
    start([this] { look(); });
  }
  ~MemoryWatch() override { stop(); }

  std::size_t most_kib() const { return most_kib_; }
  double longest_over_ms() const { return longest_over_ms_; }

 private:
  void look() {
    std::ifstream in(file_);
    std::size_t total = 0;
    std::size_t pages = 0;
    in >> total >> pages;
    const std::size_t kib = pages * 4;
    most_kib_ = std::max(most_kib_, kib);
    const auto now = Clock::now();
    if (kib <= limit_kib_) within_ = now;
    longest_over_ms_ = std::max(longest_over_ms_, Milliseconds(now - within_).count());
    std::this_thread::sleep_for(kLookEvery);
  }

  const std::string file_;
  const std::size_t limit_kib_;
  Clock::time_point within_;
  std::size_t most_kib_ = 0;
  double longest_over_ms_ = 0;
};

double quantile(std::vector<double>& sorted, double part) {
  return sorted.empty() ? 0 : sorted[static_cast<std::size_t>(part * static_cast<double>(sorted.size() - 1))];
}

nlohmann::json describe(GoodClient& client) {
  std::vector<double>& times = client.times_ms();
  std::sort(times.begin(), times.end());
  return {{"calls", times.size()},
          {"failures", client.failures()},
          {"p50_ms", quantile(times, 0.5)},
          {"p99_ms", quantile(times, 0.99)},
          {"longest_ms", quantile(times, 1)}};
}

std::size_t lines_of(const std::string& file) {
  std::ifstream in(file);
  return static_cast<std::size_t>(std::count(std::istreambuf_iterator<char>(in), {}, '\n'));
}

nlohmann::json measure_kind(const FloodOptions& options, const std::string& kind) {
  DaemonUnderTest daemon(options.topoletd, {}, {fmt::format("--daemon.max-memory-mib={}", options.max_memory_mib)});
  MemoryWatch memory(daemon.process().pid(), options.max_memory_mib << 10);
  GoodClient good(daemon.socket(), "Version", 0, kCallEvery);
  GoodClient big(daemon.socket(), "PortForward", kBigCallBytes, kBigCallEvery);
  std::vector<std::unique_ptr<Child>> bad;
  if (kind != "none") {
    for (std::size_t i = 0; i < options.processes; ++i) {
      bad.push_back(std::make_unique<Child>(
          bad_clients_role(daemon.socket(), kind, options.connections / options.processes), daemon.socket()));
    }
  }
  std::this_thread::sleep_for(std::chrono::duration<double>(options.seconds));
  big.stop();
  good.stop();
  const auto cpu = daemon.process().cpu_time();
  memory.stop();
  bad.clear();
  nlohmann::json result = {{"kind", kind},
                           {"most_mib", static_cast<double>(memory.most_kib()) / 1024},
                           {"longest_over_ms", memory.longest_over_ms()},
                           {"cpu_s", std::chrono::duration<double>(cpu).count()},
                           {"log_lines", lines_of(daemon.log())},
                           {"good", describe(good)},
                           {"big", describe(big)}};
  return result;
}

void print_row(const nlohmann::json& row) {
  const auto number = [](const nlohmann::json& value) { return value.get<double>(); };
  fmt::print(
      "{:<21} {:>8.0f} {:>8.0f} {:>7} {:>5} {:>8.1f} {:>8.1f} {:>8.1f} {:>5} {:>5} {:>8.0f} {:>8.0f} {:>6.1f} {:>5}\n",
      row["kind"].get<std::string>(), number(row["most_mib"]), number(row["longest_over_ms"]),
      row["good"]["calls"].get<int>(), row["good"]["failures"].get<int>(), number(row["good"]["p50_ms"]),
      number(row["good"]["p99_ms"]), number(row["good"]["longest_ms"]), row["big"]["calls"].get<int>(),
      row["big"]["failures"].get<int>(), number(row["big"]["p50_ms"]), number(row["big"]["longest_ms"]),
      number(row["cpu_s"]), row["log_lines"].get<int>());
  std::fflush(stdout);
}

po::options_description describe(FloodOptions& options) {
  po::options_description all("floods: what bad clients cost topoletd and the good clients beside them");
  auto add = all.add_options();
  std::vector<std::string> kinds = bad_client_kinds();
  kinds.insert(kinds.begin(), "none");
  add("help,h", "this text");
  add("kinds", po::value(&options.kinds)->multitoken()->default_value(kinds, fmt::format("{}", fmt::join(kinds, " "))),
      "what the bad clients do, one after the other");
  add("seconds", po::value(&options.seconds)->default_value(5), "for each kind");
  add("connections", po::value(&options.connections)->default_value(60), "of bad clients at a time");
  add("processes", po::value(&options.processes)->default_value(4), "that hold them");
  add("max-memory-mib", po::value(&options.max_memory_mib)->default_value(512), "as in topoletd's configuration");
  add("most-mib", po::value(&options.most_mib)->default_value(0), "more memory than that is an error; 0: none is");
  add("json", po::value(&options.json), "a file for the figures");
  add("topoletd", po::value(&options.topoletd.program)->default_value(TOPOLET_DAEMON), "the program to measure");
  add("plugin-dir", po::value(&options.topoletd.plugin_dir)->default_value(TOPOLET_PLUGIN_DIR), "its plugins");
  return all;
}

void measure(const std::vector<std::string>& arguments) {
  FloodOptions options;
  const po::options_description all = describe(options);
  po::variables_map values;
  po::store(po::command_line_parser(arguments).options(all).run(), values);
  po::notify(values);
  if (values.count("help") != 0) {
    std::cout << all;
    return;
  }
  if (options.processes == 0) throw po::error("--processes must be 1 or more");
  fmt::print("{:<21} {:>8} {:>8} {:>7} {:>5} {:>8} {:>8} {:>8} {:>5} {:>5} {:>8} {:>8} {:>6} {:>5}\n", "bad clients",
             "most MiB", "over ms", "calls", "fail", "p50 ms", "p99 ms", "max ms", "big", "fail", "p50 ms", "max ms",
             "CPU s", "log");
  nlohmann::json json = nlohmann::json::array();
  for (const std::string& kind : options.kinds) {
    print_row(json.emplace_back(measure_kind(options, kind)));
    if (options.most_mib > 0 && json.back()["most_mib"] > options.most_mib) {
      throw std::runtime_error(fmt::format("topoletd had more than {} MiB with {}", options.most_mib, kind));
    }
  }
  if (!options.json.empty() && !(std::ofstream(options.json) << json.dump(2) << '\n')) {
    throw std::runtime_error("cannot write " + options.json);
  }
}

}  // namespace
}  // namespace topolet::bench

int main(int argc, char** argv) { return topolet::bench::run_program("floods", argc, argv, &topolet::bench::measure); }
