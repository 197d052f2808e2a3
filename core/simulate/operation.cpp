#include "core/simulate/operation.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <functional>
#include <limits>
#include <nlohmann/json.hpp>

#include "core/base/suggestion.hpp"
#include "core/simulate/operation_values.hpp"

namespace topolet::simulate {
namespace {

using nlohmann::json;

constexpr std::int64_t kMostSeconds = 366L * 24 * 3600;
/// A machine without a clock of its own begins in 1970.
constexpr std::int64_t kMostWallSeconds = 100 * kMostSeconds;

constexpr std::array<std::pair<OperationKind, std::string_view>, 22> kNames = {{
    {OperationKind::kOccupy, "occupy"},     {OperationKind::kVacate, "vacate"},
    {OperationKind::kRunPod, "run_pod"},    {OperationKind::kCreate, "create"},
    {OperationKind::kUpdate, "update"},     {OperationKind::kExit, "exit"},
    {OperationKind::kStop, "stop"},         {OperationKind::kRemovePod, "remove_pod"},
    {OperationKind::kOffline, "offline"},   {OperationKind::kOnline, "online"},
    {OperationKind::kDevice, "device"},     {OperationKind::kClock, "clock"},
    {OperationKind::kRuntime, "runtime"},   {OperationKind::kRestart, "restart"},
    {OperationKind::kCapacity, "capacity"}, {OperationKind::kCpuset, "cpuset"},
    {OperationKind::kStart, "start"},       {OperationKind::kSandbox, "sandbox"},
    {OperationKind::kStuck, "stuck"},       {OperationKind::kHeal, "heal"},
    {OperationKind::kLoad, "load"},         {OperationKind::kRelease, "release"},
}};

FaultedCall answer_to_of(const json& value, std::string_view key) {
  return one_of(value, key, {"create", "own-update"}) == "create" ? FaultedCall::kCreate : FaultedCall::kOwnUpdate;
}

using Reader = std::function<void(Operation&, const json&, std::string_view)>;
using Readers = std::map<std::string, Reader, std::less<>>;

void read_fields(Operation& operation, const json& object, const Readers& readers, const std::string& where) {
  for (const auto& [key, value] : object.items()) {
    const auto reader = readers.find(key);
    if (reader != readers.end()) {
      reader->second(operation, value, key);
      continue;
    }
    std::vector<std::string> known;
    for (const auto& [name, unused] : readers) known.push_back(name);
    const std::string near = suggestion(key, known);
    throw InvalidLine(fmt::format("{} has no field \"{}\"{}", where, key,
                                  near.empty() ? fmt::format("; it has {}", fmt::join(known, ", ")) : near));
  }
}

Reader amount(std::optional<std::int64_t> Resources::*field) {
  return [field](Operation& o, const json& v, std::string_view k) { o.resources.*field = amount_of(v, k); };
}

Reader text(std::string Operation::*field) {
  return [field](Operation& o, const json& v, std::string_view k) { o.*field = text_of(v, k); };
}

Readers resource_readers() {
  constexpr std::int64_t kMost = std::numeric_limits<std::int64_t>::max();
  return {{"cpu_request_milli", amount(&Resources::cpu_request_milli)},
          {"cpu_limit_milli", amount(&Resources::cpu_limit_milli)},
          {"memory_request", amount(&Resources::memory_request)},
          {"memory_limit", amount(&Resources::memory_limit)},
          {"hugepages",
           [](Operation& o, const json& v, std::string_view k) { o.resources.hugepages = huge_pages_of(v, k); }},
          {"cpu_shares", amount(&Resources::cpu_shares)},
          {"cpu_quota",
           [](Operation& o, const json& v, std::string_view k) { o.resources.cpu_quota = number_of(v, k, -1, kMost); }},
          {"cpu_period", amount(&Resources::cpu_period)},
          {"oom_score_adj", [](Operation& o, const json& v,
                               std::string_view k) { o.resources.oom_score_adj = number_of(v, k, -1000, 1000); }},
          {"memory_limit_in_bytes", [](Operation& o, const json& v, std::string_view k) {
             o.resources.memory_limit_in_bytes = std::max<std::int64_t>(0, number_of(v, k, -1, kMost));
           }}};
}

void read_resources(Operation& operation, const json& value, std::string_view key) {
  if (!value.is_object()) throw InvalidLine(fmt::format("{} must be an object", key));
  operation.has_resources = true;
  read_fields(operation, value, resource_readers(), std::string(key));
}

const Reader kUnread = [](Operation&, const json&, std::string_view) {};
const Reader kAttempt = [](Operation& o, const json& v, std::string_view k) {
  o.attempt = static_cast<std::uint32_t>(number_of(v, k, 0, std::numeric_limits<std::uint32_t>::max()));
};
const Reader kAnnotations = [](Operation& o, const json& v, std::string_view k) { o.annotations = texts_of(v, k); };
const Reader kCpus = [](Operation& o, const json& v, std::string_view k) { o.cpus = set_of<CpuSet>(v, k); };

const Reader kNode = [](Operation& o, const json& v, std::string_view k) {
  o.node = static_cast<std::uint32_t>(number_of(v, k, 0, std::numeric_limits<std::uint32_t>::max()));
};

Readers joined(Readers readers, Readers more) {
  readers.merge(more);
  return readers;
}

Readers create_readers() {
  return joined(
      resource_readers(),
      {{"pod", text(&Operation::pod)},
       {"container", text(&Operation::container)},
       {"attempt", kAttempt},
       {"annotations", kAnnotations},
       {"labels", [](Operation& o, const json& v, std::string_view k) { o.labels = texts_of(v, k); }},
       {"start", [](Operation& o, const json& v, std::string_view k) { o.starts = flag_of(v, k); }},
       {"init", [](Operation& o, const json& v, std::string_view k) { o.is_init = flag_of(v, k); }},
       {"cgroup_parent", [](Operation& o, const json& v, std::string_view k) { o.cgroup_parent = text_of(v, k); }},
       {"devices", [](Operation& o, const json& v, std::string_view k) { o.devices = list_of(v, k); }},
       {"cdi_devices", [](Operation& o, const json& v, std::string_view k) { o.cdi_devices = list_of(v, k); }},
       {"env", [](Operation& o, const json& v, std::string_view k) { o.env = env_of(v, k); }},
       {"cpuset_cpus", text(&Operation::cpuset_cpus)},
       {"cpuset_mems", text(&Operation::cpuset_mems)}});
}

Readers run_pod_readers() {
  return {{"pod", text(&Operation::pod)},
          {"name", text(&Operation::name)},
          {"namespace", text(&Operation::pod_namespace)},
          {"runtime_handler", text(&Operation::runtime_handler)},
          {"labels", [](Operation& o, const json& v, std::string_view k) { o.labels = texts_of(v, k); }},
          {"annotations", kAnnotations},
          {"attempt", kAttempt},
          {"resources", read_resources},
          {"qos", [](Operation& o, const json& v, std::string_view k) {
             o.qos = one_of(v, k, {"guaranteed", "burstable", "besteffort"});
           }}};
}

Readers capacity_readers() {
  constexpr std::int64_t kMost = std::numeric_limits<std::int64_t>::max();
  return {{"node", kNode},
          {"milli", [](Operation& o, const json& v, std::string_view k) { o.milli = number_of(v, k, -kMost, kMost); }},
          {"for_s", [](Operation& o, const json& v,
                       std::string_view k) { o.lasts = std::chrono::seconds(number_of(v, k, 0, 366L * 24 * 3600)); }},
          {"source", text(&Operation::source)}};
}

Reader permille(std::optional<std::uint32_t> Operation::*member) {
  return [member](Operation& o, const json& v, std::string_view k) {
    o.*member = static_cast<std::uint32_t>(number_of(v, k, 0, 1000));
  };
}

Readers load_readers() {
  constexpr std::int64_t kMost = std::numeric_limits<std::int64_t>::max() / 2'000'000;
  return {
      {"pod", text(&Operation::pod)},
      {"container", text(&Operation::container)},
      {"cpu_milli", [](Operation& o, const json& v, std::string_view k) { o.cpu_milli = number_of(v, k, 0, kMost); }},
      {"psi_some_permille", permille(&Operation::psi_some_permille)},
      {"memory_psi_permille", permille(&Operation::memory_psi_permille)},
      {"io_psi_permille", permille(&Operation::io_psi_permille)},
      {"throttled", [](Operation& o, const json& v, std::string_view k) { o.is_throttled = flag_of(v, k); }},
      {"memory_bytes",
       [](Operation& o, const json& v, std::string_view k) { o.memory_bytes = number_of(v, k, 0, kMost); }},
      {"node", kNode},
      {"cpu",
       [](Operation& o, const json& v, std::string_view k) {
         o.cpu = static_cast<std::uint32_t>(number_of(v, k, 0, std::numeric_limits<std::uint32_t>::max()));
       }},
      {"used_milli", [](Operation& o, const json& v, std::string_view k) { o.used_milli = number_of(v, k, 0, kMost); }},
      {"measured_for_s",
       [](Operation& o, const json& v, std::string_view k) {
         o.measured_for = std::chrono::seconds(number_of(v, k, 0, 24L * 3600));
       }},
      {"age_ms", [](Operation& o, const json& v,
                    std::string_view k) { o.age = std::chrono::milliseconds(number_of(v, k, 0, 24L * 3600 * 1000)); }},
      {"effective_milli",
       [](Operation& o, const json& v, std::string_view k) { o.effective_milli = number_of(v, k, 0, kMost); }},
      {"known", [](Operation& o, const json& v, std::string_view k) { o.known = flag_of(v, k); }}};
}

Readers readers_of(OperationKind kind) {
  const Readers container = {{"pod", text(&Operation::pod)}, {"container", text(&Operation::container)}};
  switch (kind) {
    case OperationKind::kOccupy:
    case OperationKind::kVacate:
    case OperationKind::kOffline:
    case OperationKind::kOnline:
      return {{"cpus", kCpus}};
    case OperationKind::kRunPod:
      return run_pod_readers();
    case OperationKind::kCreate:
      return create_readers();
    case OperationKind::kUpdate:
      return joined(joined(container, resource_readers()),
                    {{"cpuset_cpus", text(&Operation::cpuset_cpus)}, {"cpuset_mems", text(&Operation::cpuset_mems)}});
    case OperationKind::kExit:
      return joined(container, {{"exit_code", [](Operation& o, const json& v, std::string_view k) {
                                   o.exit_code = static_cast<std::int32_t>(number_of(v, k, -255, 255));
                                 }}});
    case OperationKind::kStop:
    case OperationKind::kStart:
      return container;
    case OperationKind::kSandbox:
      return {{"pod", text(&Operation::pod)},
              {"state", [](Operation& o, const json& v, std::string_view k) { o.sandbox = sandbox_state_of(v, k); }}};
    case OperationKind::kRemovePod:
      return {{"pod", text(&Operation::pod)}};
    case OperationKind::kDevice:
      return {{"path", text(&Operation::path)},
              {"kind", text(&Operation::device_kind)},
              {"pci", [](Operation& o, const json& v, std::string_view k) { o.pci = lower(text_of(v, k)); }},
              {"nodes", [](Operation& o, const json& v, std::string_view k) { o.nodes = set_of<NodeSet>(v, k); }}};
    case OperationKind::kClock:
      return {
          {"advance_s", [](Operation& o, const json& v,
                           std::string_view k) { o.advance = std::chrono::seconds(number_of(v, k, 0, kMostSeconds)); }},
          {"wall_s", [](Operation& o, const json& v, std::string_view k) {
             o.wall_jump = std::chrono::seconds(number_of(v, k, -kMostWallSeconds, kMostWallSeconds));
           }}};
    case OperationKind::kRuntime:
      return {{"next", [](Operation& o, const json& v, std::string_view k) { o.next = next_of(v, k); }},
              {"tells", [](Operation& o, const json& v, std::string_view k) { o.tells = tells_of(v, k); }},
              {"call", [](Operation& o, const json& v, std::string_view k) { o.answer_to = answer_to_of(v, k); }}};
    case OperationKind::kRestart:
      return {
          {"at", [](Operation& o, const json& v, std::string_view k) { o.kill_at = kill_at_of(v, k); }},
          {"calls",
           [](Operation& o, const json& v, std::string_view k) {
             o.calls = static_cast<std::uint32_t>(number_of(v, k, 1, std::numeric_limits<std::uint32_t>::max()));
           }},
          {"repeat", [](Operation& o, const json& v, std::string_view k) { o.repeat = flag_of(v, k); }},
          {"database",
           [](Operation& o, const json& v, std::string_view k) {
             o.loses_database = one_of(v, k, {"kept", "lost"}) == "lost";
           }},
          {"offline", [](Operation& o, const json& v, std::string_view k) { o.gone_cpus = set_of<CpuSet>(v, k); }},
          {"online", [](Operation& o, const json& v, std::string_view k) { o.arrived_cpus = set_of<CpuSet>(v, k); }}};
    case OperationKind::kCapacity:
      return capacity_readers();
    case OperationKind::kCpuset:
      return joined(container, {{"cpus", kCpus}, {"again", [](Operation& o, const json& v, std::string_view k) {
                                                    o.again = flag_of(v, k);
                                                  }}});
    case OperationKind::kStuck:
      return joined(container,
                    {{"ends", [](Operation& o, const json& v, std::string_view k) { o.ends = flag_of(v, k); }}});
    case OperationKind::kHeal:
      return {{"dry_run", [](Operation& o, const json& v, std::string_view k) { o.is_dry = flag_of(v, k); }}};
    case OperationKind::kRelease:
      return {{"cpusets", [](Operation& o, const json& v, std::string_view k) { o.cpusets = flag_of(v, k); }}};
    case OperationKind::kLoad:
      return load_readers();
  }
  return {};
}

std::vector<std::string> needed_by(OperationKind kind) {
  switch (kind) {
    case OperationKind::kOccupy:
    case OperationKind::kVacate:
    case OperationKind::kOffline:
    case OperationKind::kOnline:
      return {"cpus"};
    case OperationKind::kRunPod:
    case OperationKind::kRemovePod:
      return {"pod"};
    case OperationKind::kCreate:
    case OperationKind::kUpdate:
    case OperationKind::kExit:
    case OperationKind::kStop:
    case OperationKind::kStart:
    case OperationKind::kStuck:
      return {"pod", "container"};
    case OperationKind::kSandbox:
      return {"pod", "state"};
    case OperationKind::kDevice:
      return {"path"};
    case OperationKind::kClock:
      return {};
    case OperationKind::kRuntime:
      return {};
    case OperationKind::kRestart:
      return {};
    case OperationKind::kCapacity:
      return {"node"};
    case OperationKind::kCpuset:
      return {"pod", "container", "cpus"};
    case OperationKind::kHeal:
    case OperationKind::kRelease:
    case OperationKind::kLoad:
      return {};
  }
  return {};
}

OperationKind kind_of(const json& object) {
  const auto op = object.find("op");
  if (op == object.end()) throw InvalidLine("the line has no \"op\"");
  std::vector<std::string> known;
  for (const auto& [kind, name] : kNames) known.emplace_back(name);
  const std::string name = one_of(*op, "op", known);
  return std::find_if(kNames.begin(), kNames.end(), [&](const auto& entry) { return entry.second == name; })->first;
}

/// What a load line may say about one kind of thing.
struct LoadWords {
  std::vector<std::string> names;   ///< all of them are needed
  std::vector<std::string> values;  ///< one of them at least, where it is measured
  std::vector<std::string> others;
};

const std::vector<LoadWords>& load_words() {
  static const std::vector<LoadWords> kAll = {
      {{"pod", "container"},
       {"cpu_milli"},
       {"psi_some_permille", "memory_psi_permille", "io_psi_permille", "throttled", "memory_bytes"}},
      {{"node"}, {"effective_milli", "used_milli"}, {}},
      {{"cpu"}, {"effective_milli", "used_milli"}, {}},
      {{"measured_for_s"}, {}, {}}};
  return kAll;
}

void check_load(const json& object) {
  const auto has = [&object](const std::string& word) { return object.contains(word); };
  const auto is_about = [&](const LoadWords& words) {
    return std::all_of(words.names.begin(), words.names.end(), has);
  };
  const auto found = std::find_if(load_words().begin(), load_words().end(), is_about);
  if (found == load_words().end())
    throw InvalidLine(R"(load needs "pod" and "container", or "node", or "cpu", or "measured_for_s")");
  for (const LoadWords& words : load_words()) {
    for (const auto* list : {&words.names, &words.values, &words.others}) {
      for (const std::string& word : *list) {
        const auto is_own = [&word](const std::vector<std::string>& own) {
          return std::find(own.begin(), own.end(), word) != own.end();
        };
        if (has(word) && !is_own(found->names) && !is_own(found->values) && !is_own(found->others))
          throw InvalidLine(
              fmt::format("load says \"{}\" of {}, which has no such value", word, fmt::join(found->names, " and ")));
      }
    }
  }
  const bool is_measured = object.value("known", true);
  if (is_measured && !found->values.empty() && std::none_of(found->values.begin(), found->values.end(), has))
    throw InvalidLine(fmt::format("load needs \"{}\", or \"known\": false, where it is not measured any more",
                                  fmt::join(found->values, "\" or \"")));
}

Operation read(const json& object) {
  if (!object.is_object()) throw InvalidLine("the line is not a JSON object");
  Operation operation;
  operation.kind = kind_of(object);
  const std::string name(to_string(operation.kind));
  read_fields(operation, object, joined(readers_of(operation.kind), {{"op", kUnread}}), name);
  for (const std::string& needed : needed_by(operation.kind)) {
    if (!object.contains(needed)) throw InvalidLine(fmt::format("{} needs a \"{}\"", name, needed));
    // NOLINTNEXTLINE(readability-container-size-empty): it is JSON, whose empty() is not about texts
    if (object[needed] == "" && needed != "cpus")
      throw InvalidLine(fmt::format("the \"{}\" of {} is empty", needed, name));
  }
  if (operation.kind == OperationKind::kDevice && operation.pci.empty() == operation.nodes.empty()) {
    throw InvalidLine("device needs either \"pci\", an address such as 0000:65:00.0, or \"nodes\"");
  }
  if (operation.kind == OperationKind::kClock && !object.contains("advance_s") && !object.contains("wall_s"))
    throw InvalidLine("clock needs \"advance_s\", for time to pass, or \"wall_s\", by which the wall clock is set");
  if (operation.kind == OperationKind::kRuntime && !object.contains("next") && !object.contains("tells"))
    throw InvalidLine("runtime needs \"next\", its next answer, or \"tells\", how much it tells of containers");
  if (operation.kind == OperationKind::kRuntime && !object.contains("next") && object.contains("call"))
    throw InvalidLine("\"call\" of runtime is about its \"next\" answer");
  if (operation.kind == OperationKind::kRestart && !operation.kill_at) {
    for (const char* field : {"calls", "repeat"}) {
      if (!object.contains(field)) continue;
      throw InvalidLine(fmt::format(
          "\"{}\" of restart is about a call: \"at\" must be before-answer, after-answer or in-flight", field));
    }
  }
  if (operation.loses_database && operation.kill_at)
    throw InvalidLine("the \"database\" of restart is lost only with \"at\": \"now\"");
  if (operation.kill_at && (object.contains("offline") || object.contains("online")))
    throw InvalidLine("CPUs go \"offline\" or come \"online\" during a restart only with \"at\": \"now\"");
  if (operation.kind == OperationKind::kCapacity && object.contains("milli") != object.contains("for_s")) {
    throw InvalidLine(
        "capacity needs \"milli\" and \"for_s\": how much, and for how long; with neither the node's nominal "
        "capacity counts again");
  }
  if (operation.kind == OperationKind::kLoad) check_load(object);
  if (operation.name.empty()) operation.name = operation.pod;
  return operation;
}

}  // namespace

std::string_view to_string(OperationKind kind) {
  return std::find_if(kNames.begin(), kNames.end(), [&](const auto& entry) { return entry.first == kind; })->second;
}

std::vector<OperationFields> operation_fields() {
  std::vector<OperationFields> all;
  for (const auto& [kind, name] : kNames) {
    OperationFields fields{.op = std::string(name), .required = needed_by(kind), .optional = {}};
    for (const auto& [field, unused] : readers_of(kind)) {
      const bool is_required =
          std::find(fields.required.begin(), fields.required.end(), field) != fields.required.end();
      if (!is_required) fields.optional.push_back(field);
    }
    all.push_back(std::move(fields));
  }
  return all;
}

Result<Operation> parse_operation(const std::string& line) {
  try {
    return read(json::parse(line));
  } catch (const json::exception& error) {
    return Error{Code::kInvalidArgument, fmt::format("this is not JSON: {}", error.what())};
  } catch (const InvalidLine& wrong) {
    return Error{Code::kInvalidArgument, wrong.what()};
  }
}

}  // namespace topolet::simulate
