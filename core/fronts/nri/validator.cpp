#include "core/fronts/nri/validator.hpp"

#include <fmt/format.h>

#include <atomic>
#include <memory>
#include <utility>

#include "core/base/log.hpp"
#include "core/fronts/nri/nri.pb.h"

namespace topolet::nri {
namespace {

// Fields that plugins own, by NRI's numbers.
constexpr std::int32_t kCpusetCpus = 21;
constexpr std::int32_t kCpusetMems = 22;

/// The plugins that set something, for people.
std::string describe_plugins(const operations::ForeignCpuset& found) {
  const std::string cpus = found.cpus_plugin.value_or("");
  const std::string mems = found.mems_plugin.value_or("");
  const bool are_two = !cpus.empty() && !mems.empty() && cpus != mems;
  return are_two ? fmt::format("plugins '{}' and '{}'", cpus, mems)
                 : fmt::format("plugin '{}'", cpus.empty() ? mems : cpus);
}

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

std::string make_refusal(const std::string& reason) {
  lens::ValidateResponse response;
  response.set_reject(true);
  response.set_reason(reason);
  return response.SerializeAsString();
}

void Validator::validate(Session& session, const std::string& payload, const Answer& answer) const {
  Result<std::optional<operations::ForeignCpuset>> found = read_foreign_cpuset(payload, session.full_name());
  if (!found) log_.warn("NRI: {}; the container is created as other plugins have it", found.error().message);
  if (!found || !*found) return answer(std::string());
  const auto is_answered = std::make_shared<std::atomic<bool>>(false);
  const auto respond = [answer, is_answered](const std::optional<std::string>& refusal) {
    if (!is_answered->exchange(true)) answer(refusal ? make_refusal(*refusal) : std::string());
  };
  session.after(session.request_timeout() / 2, [this, respond, is_answered, plugins = describe_plugins(**found)] {
    if (*is_answered) return;
    log_.warn("NRI: topoletd is too busy to judge in time what {} sets of a container's cpuset", plugins);
    respond(when_late_);
  });
  judge_(**std::move(found), respond);
}

}  // namespace topolet::nri
