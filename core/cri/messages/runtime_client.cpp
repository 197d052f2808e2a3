#include "core/cri/messages/runtime_client.hpp"

#include <array>
#include <atomic>
#include <cstddef>
#include <utility>

namespace topolet::cri {
namespace {

constexpr std::array<const char*, 2> kServices = {"/runtime.v1.RuntimeService/", "/runtime.v1alpha2.RuntimeService/"};

Error error_naming(const std::string& what, Code code, const std::string& message) {
  return {code, what + ": " + message};
}

/// Turns an answer into `read(body)`, or into an error that names the call.
template <class T, class Read>
Result<T> read_response(const std::string& what, const RuntimeResponse& answer, const Read& read) {
  if (answer.code != Code::kOk) return error_naming(what, answer.code, answer.message);
  Result<T> result = read(answer.body);
  if (!result) return error_naming(what, result.error().code, result.error().message);
  return result;
}

}  // namespace

struct RuntimeClient::Channel : std::enable_shared_from_this<RuntimeClient::Channel> {
  struct Request {
    const char* method;
    std::string body;
    std::chrono::milliseconds timeout;
  };
  using Done = std::function<void(const RuntimeResponse&)>;

  explicit Channel(Runtime& to) : runtime(to) {}

  /// Tries the version that last worked, then the other one; the first refusal counts if neither is known.
  void call(Request request, Done done) {
    const std::size_t first = version.load();
    send(request, first,
         [self = shared_from_this(), request, first, done = std::move(done)](const RuntimeResponse& answer) {
           if (answer.code != Code::kUnimplemented) return done(answer);
           self->call_other_version(request, 1 - first, answer, done);
         });
  }

  void call_other_version(const Request& request, std::size_t other, const RuntimeResponse& refusal, const Done& done) {
    send(request, other, [self = shared_from_this(), other, refusal, done](const RuntimeResponse& answer) {
      if (answer.code == Code::kUnimplemented) return done(refusal);
      // Only a success proves that the runtime speaks this version: a lost connection says nothing.
      if (answer.code == Code::kOk) self->version.store(other);
      done(answer);
    });
  }

  void send(const Request& request, std::size_t service, Done done) {
    runtime.call(std::string(kServices[service]) + request.method, request.body, request.timeout, std::move(done));
  }

  Runtime& runtime;
  std::atomic<std::size_t> version{0};
};

RuntimeClient::RuntimeClient(Runtime& runtime, operations::DemandRules rules)
    : channel_(std::make_shared<Channel>(runtime)), rules_(rules) {}

RuntimeClient::~RuntimeClient() = default;

void RuntimeClient::update(const std::string& container_id, const operations::ContainerCpuset& set,
                           std::function<void(Status)> done) {
  std::string what = "UpdateContainerResources of container " + container_id;
  channel_->call({"UpdateContainerResources", make_update_container_resources(container_id, set), kUpdateTimeout},
                 [what = std::move(what), done = std::move(done)](const RuntimeResponse& answer) {
                   if (answer.code == Code::kOk) return done(Status());
                   done(error_naming(what, answer.code, answer.message));
                 });
}

void RuntimeClient::list_containers(std::function<void(Result<std::vector<operations::ContainerInfo>>)> done) {
  channel_->call({"ListContainers", {}, kListTimeout}, [done = std::move(done)](const RuntimeResponse& answer) {
    using Infos = std::vector<operations::ContainerInfo>;
    done(read_response<Infos>("ListContainers", answer, [](const std::string& body) -> Result<Infos> {
      auto list = read_list_containers({}, body);
      if (!list) return list.error();
      return std::move(list->containers);
    }));
  });
}

void RuntimeClient::list_sandboxes(std::function<void(Result<std::vector<operations::Sandbox>>)> done) {
  channel_->call({"ListPodSandbox", {}, kListTimeout}, [done = std::move(done)](const RuntimeResponse& answer) {
    done(read_response<std::vector<operations::Sandbox>>("ListPodSandbox", answer, read_list_pod_sandbox));
  });
}

void RuntimeClient::inspect(const std::string& container_id,
                            std::function<void(Result<operations::ContainerDetail>)> done) {
  std::string what = "ContainerStatus of container " + container_id;
  channel_->call({"ContainerStatus", make_container_status(container_id), kStatusTimeout},
                 [what = std::move(what), rules = rules_, done = std::move(done)](const RuntimeResponse& answer) {
                   done(read_response<operations::ContainerDetail>(
                       what, answer, [&rules](const std::string& body) { return read_container_status(body, rules); }));
                 });
}

}  // namespace topolet::cri
