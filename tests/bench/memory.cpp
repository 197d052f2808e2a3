#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <nlohmann/json.hpp>
#include <string>
#include <thread>
#include <utility>

#include "tests/bench/cycle_script.hpp"
#include "tests/bench/daemon_under_test.hpp"
#include "tests/bench/population.hpp"
#include "tests/bench/roles.hpp"
#include "tests/bench/sections.hpp"

namespace topolet::bench {
namespace {

/// The runtime answers it with the request's bytes, and topoletd has no part in it.
const std::string kEchoed = kServicePath + "PortForward";
constexpr std::size_t kHeldBytes = 16 << 10;
constexpr std::size_t kBigMessageBytes = 15 << 20;
constexpr std::size_t kBigAtOnce = 4;
constexpr std::size_t kStreams = 10;
constexpr std::size_t kCyclesAtOnce = 8;
constexpr std::size_t kCycleParts = 10;
constexpr std::chrono::milliseconds kLookEvery(250);
constexpr int kSteadyLooks = 4;
constexpr int kMostLooks = 40;

double mib(std::size_t kib) { return static_cast<double>(kib) / 1024; }

class Notes {
 public:
  Notes() { fmt::print("{:<52} {:>8} {:>8} {:>13}\n", "resident memory in MiB", "now", "peak", "database MiB"); }

  /// The peak is the one since the last note.
  void note(const std::string& when, const DaemonUnderTest& daemon) {
    const Resident resident = daemon.process().resident();
    daemon.process().forget_peak();
    const double database_mib = static_cast<double>(daemon.database_bytes()) / (1 << 20);
    fmt::print("{:<52} {:>8.1f} {:>8.1f} {:>13.1f}\n", when, mib(resident.now_kib), mib(resident.peak_kib),
               database_mib);
    add({{"when", when},
         {"now_kib", resident.now_kib},
         {"peak_kib", resident.peak_kib},
         {"database_bytes", daemon.database_bytes()}});
  }
  void note_each(const std::string& when, std::size_t kib) {
    fmt::print("{:<52} {:>8.2f}\n", when, mib(kib));
    add({{"when", when}, {"now_kib", kib}});
  }
  nlohmann::json json() const { return json_; }

 private:
  void add(nlohmann::json values) {
    std::fflush(stdout);
    json_.push_back(std::move(values));
  }

  nlohmann::json json_ = nlohmann::json::array();
};

void idle(const SectionOptions& options) {
  std::this_thread::sleep_for(std::chrono::duration<double>(options.idle_seconds));
}

/// How much it holds once that no longer changes, or after a long while.
std::size_t settled_kib(const Process& process) {
  std::size_t last = 0;
  int steady = 0;
  for (int look = 0; look < kMostLooks && steady < kSteadyLooks; ++look) {
    std::this_thread::sleep_for(kLookEvery);
    const std::size_t now = process.resident().now_kib;
    steady = now == last ? steady + 1 : 0;
    last = now;
  }
  return last;
}

void note_burst(const SectionOptions& options, Notes& notes) {
  DaemonUnderTest daemon(options.topoletd, {.held_calls = options.calls_at_once});
  idle(options);
  notes.note("at rest", daemon);
  Population population(daemon.client());
  const std::size_t most = options.containers.back();
  population.grow_to(most);
  notes.note(fmt::format("with {} containers", most), daemon);
  daemon.client().run({.path = kServicePath + kHeldMethod,
                       .request = std::string(kHeldBytes, 'm'),
                       .calls = options.calls_at_once,
                       .concurrency = options.calls_at_once,
                       .is_echoed = true});
  notes.note(fmt::format("after {} calls at once, 16 KiB each way", options.calls_at_once), daemon);
  idle(options);
  notes.note(fmt::format("  {} s later", options.idle_seconds), daemon);
}

void note_big_messages(const SectionOptions& options, Notes& notes) {
  DaemonUnderTest daemon(options.topoletd);
  daemon.client().run({.path = kEchoed,
                       .request = std::string(kBigMessageBytes, 'm'),
                       .calls = options.big_messages,
                       .concurrency = kBigAtOnce,
                       .is_echoed = true});
  notes.note(fmt::format("after {} calls of 15 MiB each way, {} at a time", options.big_messages, kBigAtOnce), daemon);
  idle(options);
  notes.note(fmt::format("  {} s later", options.idle_seconds), daemon);
}

void note_stalled_streams(const SectionOptions& options, Notes& notes) {
  DaemonUnderTest daemon(options.topoletd);
  const std::size_t before = settled_kib(daemon.process());
  daemon.client().open_unread_streams(kServicePath + kStreamMethod, kStreams);
  const std::size_t after = settled_kib(daemon.process());
  notes.note(fmt::format("behind {} streams that nobody reads", kStreams), daemon);
  notes.note_each("  for each of them", (after - std::min(before, after)) / kStreams);
}

void note_cycles(const SectionOptions& options, Notes& notes) {
  DaemonUnderTest daemon(options.topoletd);
  CyclePods pods(daemon.client(), {.name = "cycle"}, kCyclesAtOnce);
  const std::size_t cycles_per_pod = std::max<std::size_t>(1, options.cycles / kCycleParts / kCyclesAtOnce);
  for (std::size_t part = 1; part <= kCycleParts; ++part) {
    pods.run(kWholeLife, cycles_per_pod);
    notes.note(fmt::format("after {} containers came and went, {} at a time", part * cycles_per_pod * kCyclesAtOnce,
                           kCyclesAtOnce),
               daemon);
  }
  idle(options);
  notes.note(fmt::format("  {} s later", options.idle_seconds), daemon);
}

}  // namespace

nlohmann::json measure_memory(const SectionOptions& options) {
  Notes notes;
  note_burst(options, notes);
  note_big_messages(options, notes);
  note_stalled_streams(options, notes);
  note_cycles(options, notes);
  return notes.json();
}

}  // namespace topolet::bench
