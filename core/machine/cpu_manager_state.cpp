#include "core/machine/cpu_manager_state.hpp"

#include <fmt/format.h>

#include <nlohmann/json.hpp>
#include <string>
#include <utility>

#include "core/base/index_set.hpp"
#include "core/base/log.hpp"
#include "core/base/read_file.hpp"
#include "core/base/text.hpp"

namespace topolet::machine {
namespace {

using Json = nlohmann::json;

constexpr std::size_t kMaxBytes = std::size_t{16} << 20;
constexpr std::size_t kLongestShown = 100;

Error unreadable(const std::string& what) { return {Code::kInvalidArgument, what}; }

Status add_containers(const std::string& pod_uid, const Json& containers, engine::KubeletCpus& all) {
  const std::string pod = printable(pod_uid, kLongestShown);
  if (!containers.is_object()) return unreadable(fmt::format("entry '{}' is not about the containers of a pod", pod));
  for (const auto& [name, list] : containers.items()) {
    Result<CpuSet> cpus = unreadable("");
    if (list.is_string()) cpus = CpuSet::parse(list.get_ref<const std::string&>());
    if (!cpus) {
      return unreadable(
          fmt::format("container '{}' of pod '{}' has no list of CPUs", printable(name, kLongestShown), pod));
    }
    if (!cpus->empty()) all[{pod_uid, name}] = *std::move(cpus);
  }
  return {};
}

}  // namespace

Result<engine::KubeletCpus> parse_cpu_manager_state(std::string_view json) {
  const Json state = Json::parse(json, nullptr, /*allow_exceptions=*/false);
  if (!state.is_object()) return unreadable("it is not a JSON object");
  const auto policy = state.find("policyName");
  if (policy == state.end() || !policy->is_string()) return unreadable("'policyName' is not the name of a policy");
  engine::KubeletCpus all;
  const auto entries = state.find("entries");
  if (*policy != "static" || entries == state.end() || entries->is_null()) return all;
  if (!entries->is_object()) return unreadable("'entries' is not an object");
  for (const auto& [pod_uid, containers] : entries->items()) {
    if (Status added = add_containers(pod_uid, containers, all); !added) return added.error();
  }
  return all;
}

bool is_cpu_manager_static(const std::filesystem::path& file) {
  const Result<std::string> text = read_file(file, kMaxBytes);
  const Json state = text ? Json::parse(*text, nullptr, /*allow_exceptions=*/false) : Json();
  return state.is_object() && state.value("policyName", Json()) == "static";
}

engine::KubeletCpus read_cpu_manager_state(const std::filesystem::path& file, Log& log) {
  const Result<std::string> text = read_file(file, kMaxBytes);
  if (!text && text.error().code == Code::kNotFound) return {};
  Result<engine::KubeletCpus> cpus = text ? parse_cpu_manager_state(*text) : Result<engine::KubeletCpus>(text.error());
  if (cpus) return *std::move(cpus);
  log.warn(
      "the kubelet's CPU manager state {} is ignored: {}; containers that have exclusive CPUs from the kubelet may be "
      "taken for ones that share CPUs (daemon.cpu-manager-state)",
      file.string(), cpus.error().message);
  return {};
}

}  // namespace topolet::machine
