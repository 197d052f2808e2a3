#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "core/base/text.hpp"
#include "core/cli/command.hpp"
#include "core/cli/daemon_client.hpp"
#include "core/cli/options.hpp"
#include "core/cli/output.hpp"

namespace topolet::cli {
namespace {

using control::v1::ReleaseResponse;

nlohmann::ordered_json json_of(const ReleaseResponse& released, bool cpusets) {
  nlohmann::ordered_json json = {
      {"cpusets", cpusets}, {"released", released.released()}, {"untold", nlohmann::ordered_json::array()}};
  for (const ReleaseResponse::Untold& untold : released.untold())
    json["untold"].push_back({{"container", untold.container()}, {"why", untold.why()}});
  return json;
}

void print(const ReleaseResponse& released, bool cpusets) {
  print_line(fmt::format("{} {} more than before", counted(released.released(), "container"),
                         released.released() == 1 ? "has" : "have"));
  for (const ReleaseResponse::Untold& untold : released.untold())
    print_line(fmt::format("{} does not have it yet: {}", untold.container(), untold.why()));
  print_line(cpusets ? "Until topoletd starts again, nobody is moved, and new containers are left to the runtime."
                     : "Until topoletd starts again, BestEffort containers give way to nobody.");
}

}  // namespace

void declare_release(Options& options) {
  declare_location(options);
  declare_json(options);
  options.add_options()(
      "all",
      "Take back all but the CPUs of containers: memory.high, and the CPUs that BestEffort containers "
      "were narrowed to.")(
      "cpusets", "The same, and let every container run on all CPUs of the pool, with memory of all NUMA nodes.");
}

Status release(const Invocation& invocation) {
  const bool cpusets = invocation.has("cpusets");
  if (!cpusets && !invocation.has("all")) {
    return Error{Code::kInvalidArgument,
                 "topolet release needs --all (all but the CPUs of containers) or --cpusets (these as well)"};
  }
  control::v1::ReleaseRequest request;
  request.set_cpusets(cpusets);
  auto daemon = DaemonClient::connect(invocation);
  if (!daemon) return daemon.error();
  const auto released = daemon->call(&control::v1::Control::Stub::Release, request);
  if (!released) return released.error();
  if (invocation.has("json")) {
    fmt::print("{}", to_text(json_of(*released, cpusets)));
  } else {
    print(*released, cpusets);
  }
  if (released->untold().empty()) return {};
  return Error{Code::kUnavailable, "not every container could be given back what it is to have"};
}

}  // namespace topolet::cli
