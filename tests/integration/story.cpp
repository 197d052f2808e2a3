// topolet-story: a few pods come and go through topolet's socket, and at every step the ledger is compared with the
// kernel. Exit code 0 if they always agreed, 1 if not, 2 for wrong use.
#include <fmt/format.h>

#include <boost/program_options.hpp>
#include <cstdio>
#include <cstdlib>
#include <exception>
#include <iostream>
#include <string>
#include <vector>

#include "tests/integration/node.hpp"
#include "tests/integration/pod_group.hpp"
#include "tests/integration/table.hpp"

namespace topolet::integration {
namespace {

constexpr std::int64_t kMiB = 1 << 20;
constexpr std::chrono::seconds kSettleWithin(10);

struct StoryOptions {
  PodGroupOptions cast;
  bool sweep = false;
};

std::string or_dash(const std::string& list) { return list.empty() ? "-" : list; }

std::string class_name(const std::string& qos) {
  if (qos == "guaranteed") return "Guaranteed";
  return qos == "burstable" ? "Burstable" : "BestEffort";
}

class Story {
 public:
  explicit Story(PodGroup& cast) : cast_(cast) {}

  Status tell();
  const std::vector<std::string>& wrong() const { return wrong_; }

 private:
  void step(const std::string& sentence);
  Status compare();
  void print(const std::vector<ContainerReading>& readings) const;
  Status neighbours_start();
  Status guaranteed_pod_gets_a_cpu();
  Status too_much_is_refused();
  Status guaranteed_pod_leaves();
  Status everything_ends();
  Status expect_refusal(const std::string& name, const Resources& resources);

  PodGroup& cast_;
  int steps_ = 0;
  CpuSet pool_;
  std::vector<std::string> wrong_;
};

void Story::step(const std::string& sentence) {
  fmt::print("\n{}\n", wrap(fmt::format("Step {}. ", ++steps_), sentence));
}

void Story::print(const std::vector<ContainerReading>& readings) const {
  std::vector<std::vector<std::string>> places = {
      {"POD", "CLASS", "MODE", "CPUS", "MEMS", "KERNEL: CPUS", "MEMS", "AGREE"}};
  std::vector<std::vector<std::string>> reasons = {{"POD", "WHY"}};
  for (const ContainerReading& reading : readings) {
    places.push_back({reading.pod, class_name(reading.qos), or_dash(reading.ledger.mode),
                      or_dash(reading.ledger.cpus.to_string()), or_dash(reading.ledger.mems.to_string()),
                      reading.kernel.cpus.to_string(), reading.kernel.mems.to_string(),
                      disagreements({reading}).empty() ? "yes" : "NO"});
    reasons.push_back({reading.pod, or_dash(reading.ledger.reason)});
  }
  fmt::print("{}\n{}", format_table(places), format_table(reasons));
}

// One look is enough: what a call brings about holds when it returns.
Status Story::compare() {
  const auto looked = cast_.read_all();
  if (!looked) return looked.error();
  const std::vector<ContainerReading>& readings = *looked;
  print(readings);
  for (const std::string& sentence : disagreements(readings)) {
    fmt::print("{}", wrap("  WRONG: ", sentence));
    wrong_.push_back(fmt::format("step {}: {}", steps_, sentence));
  }
  return {};
}

Status Story::neighbours_start() {
  step("A Burstable pod (web) and a BestEffort pod (batch) start. Both run in the pool, on every CPU that is in it.");
  if (Status done = cast_.start_pod("web", burstable(250, 64 * kMiB)); !done) return done;
  if (Status done = cast_.start_pod("batch", besteffort()); !done) return done;
  if (Status done = compare(); !done) return done;
  const auto readings = cast_.read_all();
  if (!readings) return readings.error();
  pool_ = readings->front().kernel.cpus;
  return {};
}

Status Story::expect_refusal(const std::string& name, const Resources& resources) {
  const Status entered = cast_.start_pod(name, resources);
  if (entered) {
    wrong_.push_back(fmt::format("step {}: {} was placed, although too few CPUs are free", steps_, name));
    return compare();
  }
  fmt::print("{}", wrap("  The answer:        ", entered.error().message));
  const auto reason = cast_.denial(name);
  if (!reason) return reason.error();
  fmt::print("{}\n", wrap("  The database says: ", or_dash(*reason)));
  if (reason->empty()) wrong_.push_back(fmt::format("step {}: {} was refused without a reason", steps_, name));
  return compare();
}

Status Story::guaranteed_pod_gets_a_cpu() {
  if (pool_.size() < 2) {
    step(
        "A Guaranteed pod (trader) asks for a whole CPU. This machine has only one to give, and the pool keeps it: the "
        "pod is refused.");
    return expect_refusal("trader", guaranteed(1000, 64 * kMiB));
  }
  step("A Guaranteed pod (trader) asks for one whole CPU. It gets one alone; the others leave that CPU first.");
  if (Status done = cast_.start_pod("trader", guaranteed(1000, 64 * kMiB)); !done) return done;
  return compare();
}

Status Story::too_much_is_refused() {
  step(
      fmt::format("Another Guaranteed pod (greedy) asks for {} whole CPUs, all that the pool began with. They are not "
                  "there: it is refused, and nobody else is moved.",
                  pool_.size()));
  return expect_refusal("greedy", guaranteed(static_cast<std::int64_t>(pool_.size()) * 1000, 64 * kMiB));
}

Status Story::guaranteed_pod_leaves() {
  if (pool_.size() < 2) return {};
  step("The Guaranteed pod ends. Its CPU goes back to the pool, and the others may use it again.");
  if (Status done = cast_.end_pod("trader"); !done) return done;
  const bool whole_again = wait_until(
      [&] {
        const auto readings = cast_.read_all();
        return readings && !readings->empty() && readings->front().kernel.cpus == pool_ &&
               readings->back().kernel.cpus == pool_;
      },
      kSettleWithin);
  if (!whole_again)
    wrong_.push_back(fmt::format("step {}: the pool did not become {} again", steps_, pool_.to_string()));
  return compare();
}

Status Story::everything_ends() {
  step("All pods end. The ledger holds nothing any more.");
  if (Status done = cast_.end_pod("web"); !done) return done;
  if (Status done = cast_.end_pod("batch"); !done) return done;
  if (Status done = cast_.end_pod("greedy"); !done) return done;
  const auto held = cast_.held();
  if (!held) return held.error();
  fmt::print("  Rows in current_placements: {}\n", held->size());
  for (const PlacementRow& row : *held) {
    if (row.pod != "web" && row.pod != "batch" && row.pod != "trader" && row.pod != "greedy") continue;
    wrong_.push_back(fmt::format("step {}: {} still holds CPUs {}", steps_, row.pod, row.cpus.to_string()));
  }
  return {};
}

Status Story::tell() {
  if (Status done = neighbours_start(); !done) return done;
  if (Status done = guaranteed_pod_gets_a_cpu(); !done) return done;
  if (Status done = too_much_is_refused(); !done) return done;
  if (Status done = guaranteed_pod_leaves(); !done) return done;
  return everything_ends();
}

int end_with(const Story& story, const Status& told) {
  if (!told) {
    fmt::print("\nThe story broke off: {}\n", told.error().message);
    return 1;
  }
  if (story.wrong().empty()) {
    fmt::print("\nKernel and ledger agreed at every step.\n");
    return 0;
  }
  fmt::print("\nKernel and ledger did not agree:\n");
  for (const std::string& sentence : story.wrong()) fmt::print("  {}\n", sentence);
  return 1;
}

StoryOptions read_options(int argc, char** argv) {
  namespace po = boost::program_options;
  StoryOptions options;
  PodGroupOptions& cast = options.cast;
  po::options_description described("topolet-story: plays a few pods through topolet and compares ledger and kernel");
  described.add_options()("help", "this text")("socket", po::value(&cast.endpoint)->required(), "unix:///… of topolet")(
      "state-db", po::value(&cast.state_db)->default_value("/var/lib/topolet/state.db"), "topolet's database")(
      "image", po::value(&cast.image)->default_value(kImage), "image of the containers")(
      "owner", po::value(&cast.owner)->default_value("by-hand"), "label by which the pods are found again")(
      "cgroup-root", po::value(&cast.cgroups.root)->default_value("/"), "parent of the cgroup kubepods")(
      "sweep", po::bool_switch(&options.sweep), "only remove the pods with that owner label");
  po::variables_map values;
  po::store(po::parse_command_line(argc, argv, described), values);
  if (values.count("help") != 0) {
    std::cout << described;
    std::exit(0);
  }
  po::notify(values);
  return options;
}

int run(StoryOptions options) {
  CriClient client(options.cast.endpoint);
  const auto version = client.version();
  if (!version) {
    fmt::print(stderr, "{}: {}\n", options.cast.endpoint, version.error().message);
    return 1;
  }
  const auto image = client.has_image(options.cast.image);
  if (!options.sweep && image && !*image) {
    fmt::print(stderr, "the runtime has no image {}; scripts/private-runtime image FILE makes one to import\n",
               options.cast.image);
    return 1;
  }
  const auto systemd = client.uses_systemd_cgroups();
  options.cast.cgroups.systemd = systemd && *systemd;
  PodGroup cast(options.cast);
  if (options.sweep) return cast.clear() ? 0 : 1;
  fmt::print("Through {}: {} {}\n", options.cast.endpoint, version->runtime_name(), version->runtime_version());
  Story story(cast);
  const Status told = story.tell();
  if (!told) (void)cast.clear();
  return end_with(story, told);
}

}  // namespace
}  // namespace topolet::integration

int main(int argc, char** argv) {
  std::setvbuf(stdout, nullptr, _IOLBF, 0);
  try {
    return topolet::integration::run(topolet::integration::read_options(argc, argv));
  } catch (const std::exception& error) {
    std::cerr << "topolet-story: " << error.what() << "; see --help\n";
    return 2;
  }
}
