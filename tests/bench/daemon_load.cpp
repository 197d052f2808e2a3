// daemon_load: what topoletd costs as it is shipped, beside no proxy, a byte relay, a bare generic proxy and other
// proxies. Never judges a time. Exit status 0 if all was measured, 1 if something went wrong, 2 for wrong use.
#include <fmt/format.h>

#include <algorithm>
#include <boost/program_options.hpp>
#include <fstream>
#include <iostream>
#include <nlohmann/json.hpp>
#include <sstream>
#include <string>
#include <vector>

#include "tests/bench/made_up_machine.hpp"
#include "tests/bench/program.hpp"
#include "tests/bench/roles.hpp"
#include "tests/bench/sections.hpp"

namespace topolet::bench {
namespace {

namespace po = boost::program_options;

constexpr char kMachine[] = "pack:2 numa:1(memory=1099511627776) core:48 pu:2";

struct ProgramOptions {
  SectionOptions section;
  std::vector<std::string> sections;
  std::vector<std::string> peers;
  std::string serve_runtime;
  std::string json;
};

using Measure = nlohmann::json (*)(const SectionOptions&);

const std::vector<std::pair<std::string, Measure>> kSections = {
    {"calls", &measure_calls},   {"creates", &measure_creates}, {"neighbours", &measure_neighbours},
    {"memory", &measure_memory}, {"start", &measure_start},     {"containerd", &measure_containerd},
};

/// NAME=SOCKET@PID
Peer parse_peer(const std::string& text) {
  const auto equals = text.find('=');
  const auto at = text.rfind('@');
  if (equals == std::string::npos || at == std::string::npos || at < equals) {
    throw po::error("--peer must be NAME=SOCKET@PID, not " + text);
  }
  return {.name = text.substr(0, equals),
          .socket = text.substr(equals + 1, at - equals - 1),
          .pid = std::atoi(text.c_str() + at + 1)};
}

std::vector<std::string> split(const std::string& text) {
  std::vector<std::string> words;
  std::istringstream in(text);
  for (std::string word; std::getline(in, word, ',');) words.push_back(word);
  return words;
}

std::string section_list(const po::variables_map& values) {
  return values.count("containerd") != 0 ? "containerd" : values["sections"].as<std::string>();
}

po::options_description describe(ProgramOptions& options) {
  SectionOptions& section = options.section;
  po::options_description all("daemon_load: what topoletd costs, beside other ways to a container runtime");
  auto add = all.add_options();
  add("help,h", "this text");
  add("sections", po::value<std::string>()->default_value("calls,creates,neighbours,memory,start"),
      "what to measure, in this order");
  add("seconds", po::value(&section.seconds)->default_value(60),
      "for each section that compares; at least 3 rounds; 0: 1 round");
  add("concurrency", po::value(&section.concurrency)->multitoken()->default_value({1, 8, 64}, "1 8 64"),
      "calls under way at a time");
  add("containers", po::value(&section.containers)->multitoken()->default_value({0, 100, 500}, "0 100 500"),
      "how many are known, for calls");
  add("calls", po::value(&section.calls)->default_value(100), "in a slice; more at high concurrency");
  add("cycles", po::value(&section.cycles)->default_value(20000), "for memory: containers that come and go");
  add("calls-at-once", po::value(&section.calls_at_once)->default_value(1000), "for memory: held until all came");
  add("big-messages", po::value(&section.big_messages)->default_value(40), "for memory: calls with 15 MiB each way");
  add("idle-seconds", po::value(&section.idle_seconds)->default_value(10), "for memory: before it must be back");
  add("starts", po::value(&section.starts)->default_value(10), "for start: how often");
  add("peer", po::value(&options.peers)->composing(),
      "NAME=SOCKET@PID: a proxy that you have started in front of a runtime of --serve-runtime");
  add("serve-runtime", po::value(&options.serve_runtime),
      "SOCKET: do nothing but run an in-memory container runtime there, in the foreground");
  add("containerd", po::value(&section.containerd),
      "SOCKET: measure only creates, and in a real containerd that scripts/private-runtime has started");
  add("json", po::value(&options.json), "a file for the figures");
  add("seed", po::value(&section.seed)->default_value(1), "of the order of the slices and of the intervals");
  add("topoletd", po::value(&section.topoletd.program)->default_value(TOPOLET_DAEMON), "the program to measure");
  add("plugin-dir", po::value(&section.topoletd.plugin_dir)->default_value(TOPOLET_PLUGIN_DIR), "its plugins");
  return all;
}

/// False if only the help was asked for.
bool read_options(const std::vector<std::string>& arguments, ProgramOptions& options) {
  const po::options_description all = describe(options);
  po::variables_map values;
  po::store(po::command_line_parser(arguments).options(all).run(), values);
  po::notify(values);
  if (values.count("help") != 0) {
    std::cout << all;
    return false;
  }
  options.sections = split(section_list(values));
  for (const std::string& peer : options.peers) options.section.peers.push_back(parse_peer(peer));
  const bool wants_containerd = std::count(options.sections.begin(), options.sections.end(), "containerd") != 0;
  if (wants_containerd && options.section.containerd.empty()) throw po::error("containerd needs --containerd SOCKET");
  const auto& concurrency = options.section.concurrency;
  if (std::count(concurrency.begin(), concurrency.end(), 0U) != 0) throw po::error("--concurrency must be 1 or more");
  std::sort(options.section.containers.begin(), options.section.containers.end());
  return true;
}

Measure section_named(const std::string& name) {
  for (const auto& [known, measure] : kSections) {
    if (known == name) return measure;
  }
  throw po::error("there is no section " + name);
}

nlohmann::json measure_sections(const ProgramOptions& options) {
  std::vector<Measure> measures;
  for (const std::string& name : options.sections) measures.push_back(section_named(name));
  const SectionOptions& section = options.section;
  fmt::print("topoletd's machine: {}; build type {}, seed {}\n",
             section.topoletd.machine.empty() ? "this one" : section.topoletd.machine, TOPOLET_BUILD_TYPE,
             section.seed);
  nlohmann::json json = {
      {"machine", section.topoletd.machine}, {"build_type", TOPOLET_BUILD_TYPE}, {"seed", section.seed}};
  for (std::size_t i = 0; i < measures.size(); ++i) {
    fmt::print("\n== {} ==\n", options.sections[i]);
    std::fflush(stdout);
    json[options.sections[i]] = measures[i](section);
    std::fflush(stdout);
  }
  return json;
}

void measure(const std::vector<std::string>& arguments) {
  ProgramOptions options;
  if (!read_options(arguments, options)) return;
  if (!options.serve_runtime.empty()) return run_runtime(options.serve_runtime, {});
  if (options.section.containerd.empty() && can_enter_machine(kMachine)) options.section.topoletd.machine = kMachine;
  const nlohmann::json json = measure_sections(options);
  if (!options.json.empty() && !(std::ofstream(options.json) << json.dump(2) << '\n')) {
    throw std::runtime_error("cannot write " + options.json);
  }
}

}  // namespace
}  // namespace topolet::bench

int main(int argc, char** argv) {
  return topolet::bench::run_program("daemon_load", argc, argv, &topolet::bench::measure);
}
