// The cost of a long history: for commands that read it, for the start, and for keeping it below its limit.
#include <fcntl.h>
#include <fmt/format.h>
#include <fmt/ostream.h>
#include <unistd.h>

#include <algorithm>
#include <boost/program_options.hpp>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <map>
#include <nlohmann/json.hpp>
#include <random>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include "core/base/result.hpp"
#include "core/base/unique_fd.hpp"
#include "store/retention.hpp"
#include "store/retention_pace.hpp"
#include "store/store.hpp"
#include "tests/bench/program.hpp"
#include "tests/bench/statistics.hpp"

namespace topolet::bench {
namespace {

namespace fs = std::filesystem;
namespace po = boost::program_options;
using Clock = std::chrono::steady_clock;

constexpr std::int64_t kDayMs = 24 * 60 * 60 * 1000;
constexpr std::uint32_t kCpus = 128;
constexpr std::uint32_t kNodes = 4;

double ms_since(Clock::time_point begin) {
  return std::chrono::duration<double, std::milli>(Clock::now() - begin).count();
}

template <class T>
T checked(Result<T> result) {
  if (!result) throw std::runtime_error(result.error().message);
  return *std::move(result);
}
void checked(const Status& status) {
  if (!status) throw std::runtime_error(status.error().message);
}

/// Containers that come and go on a node of 128 CPUs, each on its own time: about 60 are there at a time, half of them
/// with CPUs of their own. One in fifty is denied.
class Traffic {
 public:
  explicit Traffic(store::Store& store) : store_(store), pool_(CpuSet::range(0, kCpus - 1)) {
    store::TopologyRow machine;
    machine.generation = ++generation_;
    machine.allowed = pool_;
    for (std::uint32_t cpu = 0; cpu < kCpus; ++cpu) {
      machine.cpus.push_back({cpu, node_of(cpu), cpu / 2 * 2, node_of(cpu) * (kCpus / kNodes), node_of(cpu) / 2});
    }
    for (std::uint32_t node = 0; node < kNodes; ++node)
      machine.nodes.push_back({node, cpus_of(node), 1LL << 36, false});
    checked(store_.add(machine));
    checked(store_.add(store::SetupRow{1, generation_, 0, "1.0.0", "placement.exclusive = guaranteed-integer", "[]"}));
    record_pool(0, "started");
  }

  /// One more decision, and the end of another once enough are there.
  void step(std::int64_t at_ms) {
    if (random_() % 50 == 0) return deny(at_ms);
    if (held_.size() >= 60) end_one(at_ms);
    place(at_ms);
  }

 private:
  struct Held {
    std::int64_t decision = 0;
    CpuSet cpus;  ///< its own
  };

  static std::uint32_t node_of(std::uint32_t cpu) { return cpu / (kCpus / kNodes); }
  static CpuSet cpus_of(std::uint32_t node) {
    return CpuSet::range(node * (kCpus / kNodes), (node + 1) * (kCpus / kNodes) - 1);
  }

  store::DecidedRow row(std::int64_t at_ms, const char* event) {
    store::DecidedRow row;
    row.at_ms = at_ms;
    row.generation = ++generation_;
    row.event = event;
    const std::uint64_t app = random_() % 400;
    row.pod_uid = fmt::format("{:08x}-1f2e-4c3d-8a9b-{:012x}", ++pods_, app);
    row.pod_namespace = fmt::format("team-{}", app % 12);
    row.pod_name = fmt::format("app-{}-{:08x}", app, pods_);
    row.container = "main";
    row.sandbox_id = fmt::format("{:064x}", pods_);
    row.runtime_handler = "runc";
    row.qos = "guaranteed";
    row.cpu_request_milli = row.cpu_limit_milli = 2000;
    row.memory_request_bytes = row.memory_limit_bytes = std::int64_t{4} << 30;
    row.nodes = std::to_string(app % kNodes);
    row.mems = NodeSet{static_cast<std::uint32_t>(app % kNodes)};
    row.reason = fmt::format("numa: fits node {}; sum 100", row.nodes);
    row.verdicts = fmt::format(
        R"({{"best":[{{"nodes":"{0}","score":100,"words":[["numa","score",100,"fits one node"],["gpu","score",0,"no device"],["smt","score",50,"whole cores"]]}},{{"nodes":"0-1","score":60,"words":[["numa","score",60,"two nodes"],["gpu","score",0,"no device"],["smt","score",50,"whole cores"]]}}],"candidates":15}})",
        row.nodes);
    row.phases = R"({"queued_us":12,"decide_us":240,"plugins":{"numa":55,"gpu":20,"smt":31}})";
    row.setup = 1;
    return row;
  }

  void deny(std::int64_t at_ms) {
    store::DecidedRow denied = row(at_ms, "denied");
    denied.holds = false;
    denied.reason_code = "too-few-free-cpus";
    checked(store_.add(denied));
  }

  void place(std::int64_t at_ms) {
    store::DecidedRow placed = row(at_ms, "placed");
    const bool exclusive = random_() % 2 == 0 && pool_.size() > 8;
    if (exclusive) {
      for (int i = 0; i < 2; ++i) {
        const auto cpu = std::next(pool_.begin(), static_cast<std::ptrdiff_t>(random_() % pool_.size()));
        placed.cpus.insert(*cpu);
        pool_.erase(*cpu);
      }
      placed.mode = "exclusive";
      placed.held_cpus = {{"exclusive", placed.cpus}};
    } else {
      placed.mode = "shared";
      placed.within = cpus_of(static_cast<std::uint32_t>(random_() % kNodes));
      placed.cpus = placed.within & pool_;
    }
    const std::int64_t decision = checked(store_.add(placed));
    checked(store_.put_allocation(decision, {{"state", "bound"},
                                             {"container_id", placed.sandbox_id},
                                             {"cpus", placed.cpus.to_string()},
                                             {"pending_since_ms", at_ms}}));
    if (exclusive) record_pool(at_ms, "placed", decision);
    checked(store_.add(store::OutcomeRow{decision, at_ms + 20, "bound", placed.sandbox_id, 0, "",
                                         R"({"write_us":180,"neighbours_us":900,"runtime_us":15000})"}));
    held_.push_back({decision, exclusive ? placed.cpus : CpuSet()});
  }

  /// Most live for a short time, few for days.
  void end_one(std::int64_t at_ms) {
    const std::size_t which = random_() % 10 == 0 ? random_() % held_.size() : held_.size() - 1 - random_() % 10;
    const Held held = held_[which];
    held_.erase(held_.begin() + static_cast<std::ptrdiff_t>(which));
    checked(store_.add(store::EndedRow{held.decision, at_ms, ++generation_, "exited"}));
    if (held.cpus.empty()) return;
    pool_ |= held.cpus;
    record_pool(at_ms, "ended", held.decision);
  }

  void record_pool(std::int64_t at_ms, const char* cause, std::optional<std::int64_t> decision = {}) {
    checked(store_.add(store::PoolRow{generation_, at_ms, pool_, {}, {}, decision, cause}));
    checked(store_.set_generation(generation_));
  }

  store::Store& store_;
  CpuSet pool_;
  std::vector<Held> held_;
  std::mt19937_64 random_{1};
  std::uint64_t generation_ = 0;
  std::uint64_t pods_ = 0;
};

std::unique_ptr<store::Store> open_store(const fs::path& directory, store::RetentionLimits limits = {}) {
  return checked(store::Store::open(
      {.directory = directory, .boot_id = "bench", .now_ms = 1, .durability = {}, .retention = limits}));
}

std::int64_t now_ms() {
  return std::chrono::duration_cast<std::chrono::milliseconds>(std::chrono::system_clock::now().time_since_epoch())
      .count();
}

/// The history of 30 days up to now.
void record_month(const fs::path& directory, std::int64_t decisions) {
  const auto store = open_store(directory);
  const std::int64_t begin = now_ms() - 30 * kDayMs;
  checked(store->begin());
  Traffic traffic(*store);
  for (std::int64_t i = 0; i < decisions; ++i) {
    traffic.step(begin + i * 30 * kDayMs / decisions);
    if (i % 500 != 499) continue;
    checked(store->commit());
    checked(store->begin());
  }
  checked(store->commit());
}

void forget_cached(const fs::path& file) {
  const UniqueFd descriptor(::open(file.c_str(), O_RDONLY | O_CLOEXEC));
  if (!descriptor || ::fsync(descriptor.get()) != 0) return;
  ::posix_fadvise(descriptor.get(), 0, 0, POSIX_FADV_DONTNEED);
}

std::int64_t lines_of(const fs::path& file) {
  std::ifstream stream(file);
  return std::count(std::istreambuf_iterator<char>(stream), {}, '\n');
}

nlohmann::json measure_commands(const fs::path& directory, std::int64_t decisions, int rounds) {
  const auto begin = Clock::now();
  const fs::path file = directory / "state.db";
  if (!fs::exists(file)) record_month(directory, decisions);
  fmt::print("{} decisions of 30 days, {} MiB, recorded in {:.0f} s\n", decisions, fs::file_size(file) >> 20,
             ms_since(begin) / 1000);
  std::fflush(stdout);
  forget_cached(file);
  const auto opening = Clock::now();
  open_store(directory).reset();
  const double open_ms = ms_since(opening);
  fmt::print("the store opens in {:.1f} ms, its file not cached\n\n{:<58} {:>8} {:>8} {:>7}\n", open_ms, "warm; ms for",
             "p50", "longest", "lines");
  const fs::path answer = directory / "answer";
  nlohmann::json json = {{"decisions", decisions}, {"open_cold_ms", open_ms}};
  for (const std::string& line :
       std::vector<std::string>{"cpu 5",
                                "cpu 5 --at 10d",
                                "at 10d",
                                "at 1h",
                                "nodes",
                                "ps",
                                "ps --node 1",
                                "ps --namespace team-3",
                                "moves --since 2h",

                                "denials",
                                "denials --by reason",
                                "audit --limit 3",
                                "audit --since 1h",
                                "audit --pod app-17 --limit 20",
                                "audit --event denied --limit 20",
                                "audit --namespace team-3 --limit 20",
                                "audit --cpu 5 --limit 20",
                                "audit --reason too-few-free-cpus --limit 20",
                                "audit --plugin numa --limit 20",
                                "audit --node 1 --since 1d",
                                "explain --decision 500000",
                                "query 'SELECT * FROM current_placements'",
                                "query 'SELECT * FROM held_at(strftime(\"%s\", \"now\", \"-5 days\") * 1000)'"}) {
    const std::string command =
        fmt::format("'{}' {} --state-dir '{}' > '{}' 2>&1", TOPOLET_COMMAND, line, directory.string(), answer.string());
    std::vector<double> times;
    bool failed = false;
    for (int round = 0; round <= rounds; ++round) {
      const auto start = Clock::now();
      const int code = std::system(command.c_str());
      failed = failed || WEXITSTATUS(code) > 1;
      if (round > 0) times.push_back(ms_since(start));
    }
    fmt::print("{:<58} {:>8.1f} {:>8.1f} {:>7}{}\n", "topolet " + line, median(times), quantile(times, 1),
               lines_of(answer), failed ? "  failed" : "");
    std::fflush(stdout);
    json["commands"][line] = times;
  }
  return json;
}

/// So many decisions as come in an hour, each written in a transaction of its own as in topoletd, with the retention
/// passes that its writer makes between. Faster than in topoletd, where there is more time for them.
nlohmann::json measure_retention(const fs::path& directory, std::int64_t decisions, std::int64_t keep_mib) {
  const auto store = open_store(directory, {.keep_bytes = keep_mib << 20});
  const fs::path file = directory / "state.db";
  const std::int64_t begin = now_ms();
  constexpr int kPerSecond = 200;
  Traffic traffic(*store);
  store::RetentionPace pace;
  std::uintmax_t largest = 0;
  std::vector<double> slices;
  std::int64_t deleted = 0;
  for (std::int64_t i = 0; i < decisions; ++i) {
    const std::int64_t at = begin + i * 1000 / kPerSecond;
    checked(store->begin());
    traffic.step(at);
    checked(store->commit());
    const auto start = Clock::now();
    const store::RetentionPass done = checked(store->run_retention_pass(
        {at, std::chrono::steady_clock::time_point(std::chrono::milliseconds(at))}, pace.rows()));
    const auto took = Clock::now() - start;
    pace.note(done, took);
    slices.push_back(std::chrono::duration<double, std::milli>(took).count());
    deleted += done.deleted;
    if (i % 100 != 0) continue;
    std::error_code none;
    const auto log = fs::file_size(file.string() + "-wal", none);
    largest = std::max(largest, fs::file_size(file) + (none ? 0 : log));
  }
  const double percent = 100.0 * static_cast<double>(largest) / static_cast<double>(keep_mib << 20);
  fmt::print(
      "\n{} decisions with keep-mib = {}: file and log at most {:.1f} MiB ({:.1f} %); {} decisions and pool versions "
      "deleted; a retention pass p50 {:.2f} ms, p99 {:.2f} ms, longest {:.1f} ms\n",
      decisions, keep_mib, static_cast<double>(largest) / (1 << 20), percent, deleted, median(slices),
      quantile(slices, 0.99), quantile(slices, 1));
  return {{"decisions", decisions},
          {"keep_mib", keep_mib},
          {"largest_bytes", largest},
          {"slice_p99_ms", quantile(slices, 0.99)},
          {"slice_longest_ms", quantile(slices, 1)}};
}

void measure(const std::vector<std::string>& arguments) {
  po::options_description options("history: what a long history costs");
  options.add_options()("help", "Show this.")("decisions", po::value<std::int64_t>()->default_value(1'000'000),
                                              "How many decisions the commands read.")(
      "rounds", po::value<int>()->default_value(5), "How often each command runs.")(
      "retention-decisions", po::value<std::int64_t>()->default_value(720'000),
      "How many decisions come while the database is kept below its limit: an hour at 200 in a second.")(
      "keep-mib", po::value<std::int64_t>()->default_value(128), "That limit.")(
      "directory", po::value<std::string>(),
      "Where the databases go, and stay, so that the next run finds the first of them; a temporary directory unless "
      "given.")("json", po::value<std::string>(), "Also write the figures into this file.");
  po::variables_map values;
  po::store(po::command_line_parser(arguments).options(options).run(), values);
  if (values.count("help") != 0) return void(std::printf("%s\n", fmt::format("{}", fmt::streamed(options)).c_str()));
  std::string scratch = (fs::temp_directory_path() / "topolet-history-XXXXXX").string();
  const bool stays = values.count("directory") != 0;
  const fs::path directory =
      stays ? fs::path(values["directory"].as<std::string>()) : fs::path(::mkdtemp(scratch.data()));
  nlohmann::json json;
  json["commands"] =
      measure_commands(directory / "month", values["decisions"].as<std::int64_t>(), values["rounds"].as<int>());
  json["retention"] = measure_retention(directory / "hour", values["retention-decisions"].as<std::int64_t>(),
                                        values["keep-mib"].as<std::int64_t>());
  if (values.count("json") != 0) std::ofstream(values["json"].as<std::string>()) << json.dump(2) << '\n';
  if (!stays) fs::remove_all(directory);
}

}  // namespace
}  // namespace topolet::bench

int main(int argc, char** argv) { return topolet::bench::run_program("history", argc, argv, topolet::bench::measure); }
