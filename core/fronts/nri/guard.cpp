#include "core/fronts/nri/guard.hpp"

#include <fmt/format.h>

#include <atomic>
#include <chrono>
#include <memory>
#include <utility>

#include "core/base/log.hpp"
#include "core/fronts/nri/nri.pb.h"

namespace topolet::nri {
namespace {

// Fields that plugins own, by NRI's numbers.
constexpr std::int32_t kCpusetCpus = 21;
constexpr std::int32_t kCpusetMems = 22;

constexpr const char* kName = "topolet-guard";
/// Validators are asked after all others, in this order among themselves.
constexpr const char* kIndex = "99";

/// Of containerd and CRI-O, unless they are configured otherwise.
constexpr std::chrono::milliseconds kUsualPatience{2000};

/// The plugins that set something, for people.
std::string describe_plugins(const operations::ForeignCpuset& found) {
  const std::string cpus = found.cpus_plugin.value_or("");
  const std::string mems = found.mems_plugin.value_or("");
  const bool are_two = !cpus.empty() && !mems.empty() && cpus != mems;
  return are_two ? fmt::format("plugins '{}' and '{}'", cpus, mems)
                 : fmt::format("plugin '{}'", cpus.empty() ? mems : cpus);
}

std::string full_name() { return fmt::format("{}-{}", kIndex, kName); }

std::optional<std::string> owner_of(const lens::Owners& owners, const std::string& container_id, std::int32_t field,
                                    const std::string& own) {
  for (const lens::ContainerOwners& container : owners.containers()) {
    if (container.container_id() != container_id) continue;
    for (const lens::FieldOwner& owner : container.fields().simple()) {
      if (owner.field() == field && owner.plugin() != own) return owner.plugin();
    }
  }
  return std::nullopt;
}

}  // namespace

Result<std::optional<operations::ForeignCpuset>> read_foreign_cpuset(const std::string& payload,
                                                                     const std::string& own) {
  lens::ValidateRequest request;
  if (!request.ParseFromString(payload))
    return Error{Code::kInvalidArgument, "the runtime's ValidateContainerAdjustment cannot be read"};
  const lens::Container& container = request.container();
  const lens::Cpu& cpu = request.adjustment().linux().resources().cpu();
  operations::ForeignCpuset found{.container_id = container.id(),
                                  .sandbox_id = container.sandbox_id(),
                                  .pod_uid = request.pod().uid(),
                                  .pod_namespace = request.pod().pod_namespace(),
                                  .pod_name = request.pod().name(),
                                  .container = container.name(),
                                  .cpus_plugin = owner_of(request.owners(), container.id(), kCpusetCpus, own),
                                  .cpus = CpuSet::parse(cpu.cpus()).value_or({}),
                                  .mems_plugin = owner_of(request.owners(), container.id(), kCpusetMems, own),
                                  .mems = NodeSet::parse(cpu.mems()).value_or({})};
  if (!found.cpus_plugin && !found.mems_plugin) return std::optional<operations::ForeignCpuset>();
  return std::optional<operations::ForeignCpuset>(std::move(found));
}

Guard::Guard(std::filesystem::path socket, Judge judge, std::optional<std::string> when_late, Log& log)
    : judge_(std::move(judge)),
      when_late_(std::move(when_late)),
      log_(log),
      session_(
          {std::move(socket), kName, kIndex, {Event::kValidateContainerAdjustment}},
          [this](const std::string& method, const std::string& payload, const Answer& answer) {
            on_call(method, payload, answer);
          },
          log) {}

void Guard::on_call(const std::string& method, const std::string& payload, const Answer& answer) {
  if (method == "Synchronize") {
    lens::SynchronizeRequest request;
    lens::SynchronizeResponse response;
    // Without this the runtime would not send what does not fit into one message, and give up.
    response.set_more(request.ParseFromString(payload) && request.more());
    return answer(response.SerializeAsString());
  }
  if (method != "ValidateContainerAdjustment") return answer(std::string());
  Result<std::optional<operations::ForeignCpuset>> found = read_foreign_cpuset(payload, full_name());
  if (!found) log_.warn("NRI: {}; the container is created as other plugins have it", found.error().message);
  if (!found || !*found) return answer(std::string());
  const auto is_answered = std::make_shared<std::atomic<bool>>(false);
  const auto respond = [answer, is_answered](const std::optional<std::string>& refusal) {
    if (is_answered->exchange(true)) return;
    lens::ValidateResponse response;
    response.set_reject(refusal.has_value());
    if (refusal) response.set_reason(*refusal);
    answer(response.SerializeAsString());
  };
  session_.after(patience(), [this, respond, is_answered, plugins = describe_plugins(**found)] {
    if (*is_answered) return;
    log_.warn("NRI: topoletd is too busy to judge in time what {} sets of a container's cpuset", plugins);
    respond(when_late_);
  });
  judge_(**std::move(found), respond);
}

std::chrono::milliseconds Guard::patience() const {
  const std::optional<RuntimeFacts> runtime = session_.state().runtime;
  const bool is_told = runtime && runtime->request_timeout.count() > 0;
  return (is_told ? runtime->request_timeout : kUsualPatience) / 2;
}

}  // namespace topolet::nri
