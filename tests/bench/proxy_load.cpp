// proxy_load: what a call costs directly, through a byte relay, through a bare generic proxy and through topolet's, all
// in one run. Never judges a time. Exit code 0 if all was measured, 1 if something went wrong, 2 for wrong use.
#include <fmt/format.h>

#include <algorithm>
#include <boost/program_options.hpp>
#include <chrono>
#include <fstream>
#include <iostream>
#include <memory>
#include <nlohmann/json.hpp>
#include <numeric>
#include <random>
#include <string>
#include <vector>

#include "tests/bench/child.hpp"
#include "tests/bench/load_client.hpp"
#include "tests/bench/load_report.hpp"
#include "tests/bench/program.hpp"
#include "tests/bench/roles.hpp"
#include "tests/support/temp_dir.hpp"

namespace topolet::bench {
namespace {

constexpr std::size_t kFewestRounds = 3;
/// Slices of many calls at a time are longer, or their beginning and end would weigh too much.
constexpr std::size_t kSliceTurns = 10;
/// Of each way in a round.
constexpr std::size_t kSlices = 4;
const std::string kObservedMethod = "ListContainers";

struct LoadOptions {
  std::size_t calls = 0;
  double seconds = 0;
  std::uint64_t seed = 0;
  std::vector<std::size_t> concurrency;
  std::size_t message_bytes = 0;
  std::string method;
  std::string json;
};

struct Way {
  std::string name;
  std::string path;
  LoadClient* client = nullptr;
  Child* process = nullptr;  ///< null: none in between
};

/// The runtime and who stands before it.
class Stage {
 public:
  explicit Stage(const std::string& method)
      : runtime_(runtime_role(file("runtime")), file("runtime")),
        relay_(relay_role(file("relay"), file("runtime")), file("relay")),
        bare_(bare_proxy_role(file("bare"), file("runtime")), file("bare")),
        topolet_(topolet_proxy_role(file("topolet"), file("runtime")), file("topolet")),
        ways_({{"direct", kServicePath + method, &to_runtime_, nullptr},
               {"relay", kServicePath + method, &to_relay_, &relay_},
               {"bare", kServicePath + method, &to_bare_, &bare_},
               {"topolet", kServicePath + method, &to_topolet_, &topolet_},
               {"topolet observed", kServicePath + kObservedMethod, &to_topolet_, &topolet_}}) {}

  const std::vector<Way>& ways() const { return ways_; }

 private:
  std::string file(const std::string& name) const { return directory_.file(name + ".sock"); }

  TempDir directory_;
  Child runtime_;
  Child relay_;
  Child bare_;
  Child topolet_;
  LoadClient to_runtime_{file("runtime")};
  LoadClient to_relay_{file("relay")};
  LoadClient to_bare_{file("bare")};
  LoadClient to_topolet_{file("topolet")};
  std::vector<Way> ways_;
};

Level empty_level(const LoadOptions& options, std::size_t concurrency) {
  Level level;
  level.concurrency = concurrency;
  level.calls_per_round = kSlices * std::max(options.calls, kSliceTurns * concurrency);
  return level;
}

/// One way in one round.
struct Sums {
  std::vector<double> latencies_us = {};
  double cpu_us = 0;
};

void run_slice(const Way& way, const Load& load, Sums& sums) {
  const auto cpu_time = [&way] {
    return way.process == nullptr ? std::chrono::nanoseconds(0) : way.process->cpu_time();
  };
  const auto before = cpu_time();
  const std::vector<double> latencies_us = way.client->run(load);
  sums.cpu_us += std::chrono::duration<double, std::micro>(cpu_time() - before).count();
  // The first of each place began together with all the others.
  sums.latencies_us.insert(sums.latencies_us.end(),
                           latencies_us.begin() + static_cast<std::ptrdiff_t>(load.concurrency), latencies_us.end());
}

/// Short slices of the ways in turn, in an order of their own, so that what else the machine does hits all of them.
void run_level(const std::vector<Way>& ways, const LoadOptions& options, std::mt19937_64& random, Level& level) {
  Load load{{}, options.message_bytes, level.calls_per_round / kSlices, level.concurrency};
  std::vector<std::size_t> order(ways.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  std::vector<Sums> sums(ways.size());
  for (std::size_t slice = 0; slice < kSlices; ++slice) {
    std::shuffle(order.begin(), order.end(), random);
    for (const std::size_t i : order) {
      load.path = ways[i].path;
      run_slice(ways[i], load, sums[i]);
    }
  }
  for (std::size_t i = 0; i < ways.size(); ++i) {
    const double cpu_us = sums[i].cpu_us / static_cast<double>(level.calls_per_round);
    level.add_round(ways[i].name, ways[i].process != nullptr, sums[i].latencies_us, cpu_us);
  }
}

void warm_up(const std::vector<Way>& ways, const LoadOptions& options) {
  const std::size_t most = *std::max_element(options.concurrency.begin(), options.concurrency.end());
  for (const Way& way : ways) way.client->run({way.path, options.message_bytes, options.calls + most, most});
}

/// Every round has new processes: two of the same program can differ by more than the ways do, for as long as they
/// live.
std::vector<Level> run_rounds(const LoadOptions& options) {
  std::mt19937_64 random(options.seed);
  std::vector<Level> levels;
  for (const std::size_t concurrency : options.concurrency) levels.push_back(empty_level(options, concurrency));
  const auto end = std::chrono::steady_clock::now() + std::chrono::duration<double>(options.seconds);
  for (std::size_t round = 0; round < kFewestRounds || std::chrono::steady_clock::now() < end; ++round) {
    const Stage stage(options.method);
    warm_up(stage.ways(), options);
    for (Level& level : levels) run_level(stage.ways(), options, random, level);
  }
  return levels;
}

void report(const LoadOptions& options, const std::vector<Level>& levels) {
  fmt::print("{}, {} bytes there and back, seed {}, build type {}\n", options.method, options.message_bytes,
             options.seed, TOPOLET_BUILD_TYPE);
  nlohmann::json json = {{"method", options.method},
                         {"message_bytes", options.message_bytes},
                         {"seed", options.seed},
                         {"build_type", TOPOLET_BUILD_TYPE},
                         {"levels", nlohmann::json::array()}};
  for (const Level& level : levels) {
    print(level, options.seed);
    json["levels"].push_back(to_json(level, options.seed));
  }
  if (!options.json.empty() && !(std::ofstream(options.json) << json.dump(2) << '\n')) {
    throw std::runtime_error("cannot write " + options.json);
  }
}

/// False if only the help was asked for.
bool read_options(const std::vector<std::string>& arguments, LoadOptions& options) {
  namespace po = boost::program_options;
  po::options_description all("proxy_load: what a call costs directly, through a relay, a bare proxy and topolet");
  auto add = all.add_options();
  add("help,h", "this text");
  add("calls", po::value(&options.calls)->default_value(100), "calls in a slice; at least 10 times the concurrency");
  add("seconds", po::value(&options.seconds)->default_value(30), "how long to measure; at least three rounds");
  add("seed", po::value(&options.seed)->default_value(1), "of the order of the slices and of the intervals");
  add("concurrency", po::value(&options.concurrency)->multitoken()->default_value({1, 8, 64}, "1 8 64"),
      "calls under way at a time");
  add("message-bytes", po::value(&options.message_bytes)->default_value(2048), "of request and answer");
  add("method", po::value(&options.method)->default_value("ListPodSandbox"), "of the runtime service");
  add("json", po::value(&options.json), "a file for the figures");
  po::variables_map values;
  po::store(po::command_line_parser(arguments).options(all).run(), values);
  po::notify(values);
  if (values.count("help") != 0) std::cout << all;
  const bool sensible =
      std::all_of(options.concurrency.begin(), options.concurrency.end(), [](auto c) { return c > 0; });
  if (!sensible) throw po::error("--concurrency must be 1 or more");
  return values.count("help") == 0;
}

void measure(const std::vector<std::string>& arguments) {
  LoadOptions options;
  if (!read_options(arguments, options)) return;
  report(options, run_rounds(options));
}

}  // namespace
}  // namespace topolet::bench

int main(int argc, char** argv) {
  return topolet::bench::run_program("proxy_load", argc, argv, &topolet::bench::measure);
}
