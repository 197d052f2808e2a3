// proxy_memory: how much memory topolet's proxy holds at rest, under bursts, after them and behind readers that stall.
// Judges nothing. Exit code 0 if all was measured, 1 if something went wrong, 2 for wrong use.
#include <fmt/format.h>

#include <boost/program_options.hpp>
#include <chrono>
#include <fstream>
#include <iostream>
#include <nlohmann/json.hpp>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

#include "tests/bench/child.hpp"
#include "tests/bench/load_client.hpp"
#include "tests/bench/program.hpp"
#include "tests/bench/roles.hpp"
#include "tests/support/temp_dir.hpp"

namespace topolet::bench {
namespace {

constexpr std::size_t kHeldBytes = 16 << 10;
constexpr std::size_t kBigBytes = 15 << 20;
constexpr std::size_t kBigAtOnce = 4;
constexpr std::size_t kCycleBytes = 2048;
constexpr std::size_t kCyclesAtOnce = 8;
constexpr std::size_t kCycleParts = 5;
constexpr std::chrono::milliseconds kLookEvery(250);
constexpr int kSteadyLooks = 4;
constexpr int kMostLooks = 120;
const std::string kMethodPath = kServicePath + "ListPodSandbox";

struct MemoryOptions {
  std::size_t calls_at_once = 0;
  std::size_t big_messages = 0;
  std::size_t streams = 0;
  std::size_t cycles = 0;
  double idle_seconds = 0;
  std::string json;
};

/// The runtime, topolet's proxy and a client.
struct Stage {
  explicit Stage(std::size_t held_calls)
      : runtime(runtime_role(directory.file("runtime.sock"), held_calls), directory.file("runtime.sock")),
        proxy(topolet_proxy_role(directory.file("topolet.sock"), directory.file("runtime.sock")),
              directory.file("topolet.sock")),
        client(directory.file("topolet.sock")) {
    client.run({kMethodPath, kCycleBytes, 1, 1});
  }

  TempDir directory;
  Child runtime;
  Child proxy;
  LoadClient client;
};

class Notes {
 public:
  explicit Notes(const MemoryOptions& options) : options_(options) {
    fmt::print("topolet's proxy, resident memory in MiB (build type {})\n{:<48} {:>8} {:>8}\n", TOPOLET_BUILD_TYPE,
               "when", "now", "peak");
  }

  /// The peak is the one since the last note.
  void note(const std::string& when, const Child& proxy) {
    const Resident resident = proxy.resident();
    proxy.forget_peak();
    fmt::print("{:<48} {:>8.1f} {:>8.1f}\n", when, mib(resident.now_kib), mib(resident.peak_kib));
    add(when, {{"now_kib", resident.now_kib}, {"peak_kib", resident.peak_kib}});
  }
  void note_each(const std::string& when, std::size_t kib) {
    fmt::print("{:<48} {:>8.2f}\n", when, mib(kib));
    add(when, {{"now_kib", kib}});
  }
  void write() const {
    if (options_.json.empty()) return;
    if (!(std::ofstream(options_.json) << json_.dump(2) << '\n')) {
      throw std::runtime_error("cannot write " + options_.json);
    }
  }

 private:
  static double mib(std::size_t kib) { return static_cast<double>(kib) / 1024; }
  void add(const std::string& when, nlohmann::json values) {
    std::fflush(stdout);
    values["when"] = when;
    json_.push_back(std::move(values));
  }

  const MemoryOptions& options_;
  nlohmann::json json_ = nlohmann::json::array();
};

void idle(const MemoryOptions& options) {
  std::this_thread::sleep_for(std::chrono::duration<double>(options.idle_seconds));
}

/// How much it holds once that no longer changes, or after a long while.
std::size_t settled_kib(const Child& proxy) {
  std::size_t last = 0;
  int steady = 0;
  for (int look = 0; look < kMostLooks && steady < kSteadyLooks; ++look) {
    std::this_thread::sleep_for(kLookEvery);
    const std::size_t now = proxy.resident().now_kib;
    steady = now == last ? steady + 1 : 0;
    last = now;
  }
  return last;
}

void note_burst(const MemoryOptions& options, Notes& notes) {
  Stage stage(options.calls_at_once);
  notes.note("at rest", stage.proxy);
  stage.client.run({kServicePath + kHeldMethod, kHeldBytes, options.calls_at_once, options.calls_at_once});
  notes.note(fmt::format("after {} calls at once, 16 KiB each way", options.calls_at_once), stage.proxy);
  idle(options);
  notes.note(fmt::format("  {} s later", options.idle_seconds), stage.proxy);
}

void note_big_messages(const MemoryOptions& options, Notes& notes) {
  Stage stage(1);
  stage.client.run({kMethodPath, kBigBytes, options.big_messages, kBigAtOnce});
  notes.note(fmt::format("after {} calls of 15 MiB each way, {} at a time", options.big_messages, kBigAtOnce),
             stage.proxy);
  idle(options);
  notes.note(fmt::format("  {} s later", options.idle_seconds), stage.proxy);
}

void note_stalled_streams(const MemoryOptions& options, Notes& notes) {
  Stage stage(1);
  const std::size_t before = stage.proxy.resident().now_kib;
  stage.client.open_unread_streams(kServicePath + kStreamMethod, options.streams);
  const std::size_t after = settled_kib(stage.proxy);
  notes.note(fmt::format("behind {} streams that nobody reads", options.streams), stage.proxy);
  notes.note_each("  for each of them", (after - std::min(before, after)) / options.streams);
}

void note_cycles(const MemoryOptions& options, Notes& notes) {
  Stage stage(1);
  for (std::size_t part = 1; part <= kCycleParts; ++part) {
    stage.client.run({kMethodPath, kCycleBytes, options.cycles / kCycleParts, kCyclesAtOnce});
    notes.note(fmt::format("after {} calls, {} at a time", options.cycles / kCycleParts * part, kCyclesAtOnce),
               stage.proxy);
  }
}

/// False if only the help was asked for.
bool read_options(const std::vector<std::string>& arguments, MemoryOptions& options) {
  namespace po = boost::program_options;
  po::options_description all("proxy_memory: how much memory topolet's proxy holds");
  auto add = all.add_options();
  add("help,h", "this text");
  add("calls-at-once", po::value(&options.calls_at_once)->default_value(1000), "held by the runtime until all came");
  add("big-messages", po::value(&options.big_messages)->default_value(40), "calls with 15 MiB each way");
  add("streams", po::value(&options.streams)->default_value(10), "that the runtime fills and nobody reads");
  add("cycles", po::value(&options.cycles)->default_value(20000), "small calls, to see that nothing grows");
  add("idle-seconds", po::value(&options.idle_seconds)->default_value(10), "before memory must be back");
  add("json", po::value(&options.json), "a file for the figures");
  po::variables_map values;
  po::store(po::command_line_parser(arguments).options(all).run(), values);
  po::notify(values);
  if (values.count("help") != 0) std::cout << all;
  return values.count("help") == 0;
}

void measure(const std::vector<std::string>& arguments) {
  MemoryOptions options;
  if (!read_options(arguments, options)) return;
  Notes notes(options);
  note_burst(options, notes);
  note_big_messages(options, notes);
  note_stalled_streams(options, notes);
  note_cycles(options, notes);
  notes.write();
}

}  // namespace
}  // namespace topolet::bench

int main(int argc, char** argv) {
  return topolet::bench::run_program("proxy_memory", argc, argv, &topolet::bench::measure);
}
