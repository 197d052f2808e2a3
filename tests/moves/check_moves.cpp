// Checks what `topolet simulate` printed: whether each container that was moved was moved as topolet promises.
//
//   topolet simulate --topology T --workload W --json FLAGS… > ANSWERS
//   check_moves --topology T --workload W --answers ANSWERS FLAGS…
//
// FLAGS are those of topoletd, such as --placement.heal=all. Exit status: 0 no fault, 1 some, 2 usage error.
#include <fmt/format.h>

#include <boost/program_options.hpp>
#include <cstdio>
#include <exception>
#include <fstream>
#include <iostream>
#include <stdexcept>
#include <string>
#include <vector>

#include "core/base/file_exists.hpp"
#include "core/topology/discover.hpp"
#include "tests/moves/answer_line.hpp"
#include "tests/moves/move_judge.hpp"

namespace topolet::moves {
namespace {

namespace po = boost::program_options;

template <class Value>
Value require(Result<Value> value, const std::string& where) {
  if (!value) throw std::runtime_error(where + ": " + value.error().message);
  return *std::move(value);
}

std::ifstream open(const std::string& path) {
  std::ifstream file(path);
  if (!file) throw std::runtime_error("cannot read " + path);
  return file;
}

bool is_empty(const std::string& line) { return line.find_first_not_of(" \t\r") == std::string::npos; }

/// The next line that is not empty.
bool next_line(std::istream& in, std::string& line) {
  while (std::getline(in, line)) {
    if (!is_empty(line)) return true;
  }
  return false;
}

std::shared_ptr<const topology::Topology> machine_of(const std::string& name) {
  const bool is_file = file_exists(name);
  return require(topology::discover(is_file ? topology::DiscoverOptions{.xml_file = name}
                                            : topology::DiscoverOptions{.synthetic = name}),
                 name);
}

/// Every line of the workload is answered, also one that is not valid.
void judge_all(std::istream& workload, std::istream& answers, MoveJudge& judge) {
  std::string asked;
  std::string answered;
  while (next_line(workload, asked)) {
    if (!next_line(answers, answered)) throw std::runtime_error("there are fewer answers than operations");
    const auto operation = simulate::parse_operation(asked);
    if (!operation) continue;
    judge.observe(*operation, require(parse_answer(answered), "answer " + std::to_string(judge.operations() + 1)));
  }
}

int check(const std::vector<std::string>& arguments) {
  po::options_description description;
  description.add_options()("topology", po::value<std::string>()->required())(
      "workload", po::value<std::string>()->required())("answers", po::value<std::string>()->required());
  const po::parsed_options parsed = po::command_line_parser(arguments).options(description).allow_unregistered().run();
  po::variables_map values;
  po::store(parsed, values);
  po::notify(values);
  const auto flags = po::collect_unrecognized(parsed.options, po::include_positional);
  MoveJudge judge(machine_of(values["topology"].as<std::string>()), MoveRules::from_flags(flags));
  std::ifstream workload = open(values["workload"].as<std::string>());
  std::ifstream answers = open(values["answers"].as<std::string>());
  judge_all(workload, answers, judge);
  for (const std::string& fault : judge.faults()) fmt::print("{}\n", fault);
  for (const auto& [kind, count] : judge.moves()) fmt::print("moves, {}: {}\n", kind, count);
  fmt::print("operations: {}, faults: {}\n", judge.operations(), judge.faults().size());
  return judge.faults().empty() ? 0 : 1;
}

}  // namespace
}  // namespace topolet::moves

int main(int argc, char** argv) {
  try {
    return topolet::moves::check({argv + 1, argv + argc});
  } catch (const std::exception& error) {
    fmt::print(stderr, "check_moves: {}\n", error.what());
    return 2;
  }
}
