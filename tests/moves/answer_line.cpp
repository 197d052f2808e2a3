#include "tests/moves/answer_line.hpp"

#include <fmt/format.h>

#include <nlohmann/json.hpp>
#include <utility>

namespace topolet::moves {
namespace {

using nlohmann::json;

template <class Set>
Set set_in(const json& object, const char* key) {
  auto set = Set::parse(object.at(key).get<std::string>());
  if (!set) throw std::invalid_argument(set.error().message);
  return *std::move(set);
}

simulate::MovedContainer moved_of(const json& object) {
  return {object.at("pod"),
          object.at("container"),
          object.at("mode"),
          set_in<CpuSet>(object, "cpus"),
          set_in<CpuSet>(object, "withheld"),
          set_in<NodeSet>(object, "mems"),
          object.at("reason"),
          object.value("reason_code", "")};
}

}  // namespace

Result<simulate::OperationResult> parse_answer(const std::string& line) {
  try {
    const json object = json::parse(line);
    simulate::OperationResult answer;
    answer.outcome = object.at("outcome");
    answer.mode = object.at("mode");
    answer.cpus = set_in<CpuSet>(object, "cpus");
    answer.withheld = set_in<CpuSet>(object, "withheld");
    answer.mems = set_in<NodeSet>(object, "mems");
    answer.reason = object.at("reason");
    for (const json& moved : object.at("changed")) answer.changed.push_back(moved_of(moved));
    return answer;
  } catch (const std::exception& error) {
    return Error{Code::kInvalidArgument, fmt::format("not an answer of topolet simulate --json: {}", error.what())};
  }
}

}  // namespace topolet::moves
