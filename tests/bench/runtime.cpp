#include <absl/synchronization/mutex.h>
#include <grpcpp/alarm.h>
#include <grpcpp/generic/async_generic_service.h>
#include <grpcpp/grpcpp.h>

#include <array>
#include <chrono>
#include <deque>
#include <map>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "tests/bench/judge.hpp"
#include "tests/bench/load_client.hpp"
#include "tests/bench/roles.hpp"
#include "tests/support/cri.pb.h"
#include "tests/support/dice.hpp"
#include "tests/support/memory_runtime.hpp"

namespace topolet::bench {
namespace {

using testing::MemoryRuntime;

/// Above every PID that a kernel gives: nobody finds a process there.
constexpr std::int64_t kFirstPid = 1 << 23;
/// That the kubelet gives the containers of Guaranteed pods, and no others.
constexpr std::int64_t kGuaranteedOomScoreAdj = -997;
constexpr std::string_view kUpdateMethod = "UpdateContainerResources";
/// So many calls are waited for at a time; gRPC queues those above it.
constexpr int kWaiting = 128;

/// How many whole CPUs a Guaranteed container asks for; 0 for any other.
std::size_t whole_cpus(const runtime::v1::LinuxContainerResources& resources) {
  const std::int64_t period = resources.cpu_period();
  const std::int64_t quota = resources.cpu_quota();
  const bool is_guaranteed = resources.oom_score_adj() == kGuaranteedOomScoreAdj;
  if (!is_guaranteed || period <= 0 || quota <= 0 || quota % period != 0) return 0;
  return static_cast<std::size_t>(quota / period);
}

ObservedContainer::State state_after(MemoryRuntime::Change change, const MemoryRuntime::Container& container) {
  if (change == MemoryRuntime::Change::kRemoved) return ObservedContainer::State::kRemoved;
  if (container.is_running()) return ObservedContainer::State::kRunning;
  return container.listed.state() == runtime::v1::CONTAINER_CREATED ? ObservedContainer::State::kCreated
                                                                    : ObservedContainer::State::kExited;
}

/// State that all calls share.
struct Desk {
  explicit Desk(const RuntimeOptions& asked) : options(asked) {}
  void tell_judge(MemoryRuntime::Change change, const MemoryRuntime::Container& container);

  const RuntimeOptions options;
  grpc::AsyncGenericService service;
  std::unique_ptr<grpc::ServerCompletionQueue> queue;
  Judge judge;
  MemoryRuntime memory{{.has_long_ids = true,
                        .first_pid = kFirstPid,
                        .on_change = [this](MemoryRuntime::Change change, const MemoryRuntime::Container& container) {
                          if (options.judges) tell_judge(change, container);
                        }}};
  testing::Dice dice{options.seed};
  grpc::ByteBuffer pushed;
  grpc::ByteBuffer big;
  std::vector<class ServedCall*> held;
  /// By the container's id, the one that is carried out first. None of the queues is empty.
  std::map<std::string, std::deque<class ServedCall*>> updates;
};

void Desk::tell_judge(MemoryRuntime::Change change, const MemoryRuntime::Container& container) {
  static constexpr std::array<const char*, 5> kWords = {"created", "started", "stopped", "updated", "removed"};
  const runtime::v1::PodSandbox& sandbox = memory.sandboxes().at(container.listed.pod_sandbox_id());
  judge.observe(kWords.at(static_cast<std::size_t>(change)),
                {.id = container.listed.id(),
                 .name = sandbox.metadata().name() + "/" + container.listed.metadata().name(),
                 .state = state_after(change, container),
                 .cpus = container.cpus(),
                 .whole_cpus = whole_cpus(container.resources)});
}

std::string verdict(const Judge& judge) {
  return nlohmann::json{
      {"alone", judge.alone_count()}, {"overlaps", judge.overlap_count()}, {"first", judge.first_report()}}
      .dump();
}

/// The gRPC objects of one call.
struct Exchange {
  grpc::GenericServerContext context;
  grpc::GenericServerAsyncReaderWriter stream{&context};
};

/// Serves one call after another, as long as the process runs.
class ServedCall {
 public:
  explicit ServedCall(Desk& desk) : desk_(desk) { wait(); }
  void on_event(bool ok);
  void answer(const grpc::Status& status);

 private:
  enum class Step { kArriving, kReading, kPushing, kUpdating, kUpdated, kLeaving };

  void wait();
  void on_arrived();
  void on_request();
  void push();
  void hold();
  void queue_update();
  void begin_update();
  void carry_out_update();
  void answer_update();
  void wait_until(std::chrono::system_clock::time_point moment);
  void end() {
    step_ = Step::kLeaving;
    exchange_->stream.Finish(grpc::Status(), this);
  }
  std::string_view method() const;

  Desk& desk_;
  std::optional<Exchange> exchange_;
  grpc::ByteBuffer message_;
  Step step_ = Step::kArriving;
  std::size_t pushed_ = 0;
  // Used by updates only:
  std::optional<grpc::Alarm> alarm_;
  std::string container_id_;
  std::chrono::system_clock::time_point answered_at_;
  grpc::Status updated_;
};

void ServedCall::wait() {
  step_ = Step::kArriving;
  pushed_ = 0;
  exchange_.emplace();
  desk_.service.RequestCall(&exchange_->context, &exchange_->stream, desk_.queue.get(), desk_.queue.get(), this);
}

void ServedCall::on_event(bool ok) {
  if (step_ == Step::kLeaving) {
    wait();
  } else if (!ok) {
    end();
  } else if (step_ == Step::kArriving) {
    on_arrived();
  } else if (step_ == Step::kReading) {
    on_request();
  } else if (step_ == Step::kUpdating) {
    carry_out_update();
  } else if (step_ == Step::kUpdated) {
    answer_update();
  } else {
    push();
  }
}

void ServedCall::on_arrived() {
  step_ = Step::kReading;
  exchange_->stream.Read(&message_, this);
}

/// Without "/runtime.v1.RuntimeService/"; what another service is asked for is not known by its whole path.
std::string_view ServedCall::method() const {
  std::string_view path = exchange_->context.method();
  if (path.starts_with(kServicePath)) path.remove_prefix(kServicePath.size());
  return path;
}

void ServedCall::on_request() {
  const std::string_view named = method();
  if (named == kStreamMethod) return push();
  if (named == kHeldMethod) return hold();
  if (named == kBigMethod) {
    message_ = desk_.big;
    return answer(grpc::Status());
  }
  if (named == kVerdictMethod) {
    message_ = to_buffer(verdict(desk_.judge));
    return answer(grpc::Status());
  }
  if (named == kCountUpdates) {
    message_ = to_buffer(std::to_string(desk_.memory.updates()));
    return answer(grpc::Status());
  }
  if (named == kUpdateMethod && desk_.options.update_time.count() > 0) return queue_update();
  answer(desk_.memory.serve(named, message_));
}

void ServedCall::answer(const grpc::Status& status) {
  step_ = Step::kLeaving;
  if (status.ok()) {
    exchange_->stream.WriteAndFinish(message_, grpc::WriteOptions(), status, this);
  } else {
    exchange_->stream.Finish(status, this);
  }
}

void ServedCall::push() {
  if (pushed_++ == kPushedMessages) return end();
  step_ = Step::kPushing;
  exchange_->stream.Write(desk_.pushed, this);
}

void ServedCall::hold() {
  desk_.held.push_back(this);
  if (desk_.held.size() < desk_.options.held_calls) return;
  for (ServedCall* call : desk_.held) call->answer(grpc::Status());
  desk_.held.clear();
}

void ServedCall::queue_update() {
  runtime::v1::UpdateContainerResourcesRequest request;
  request.ParseFromString(to_bytes(message_));
  container_id_ = request.container_id();
  desk_.judge.note(container_id_, "update to CPUs " + request.linux().cpuset_cpus() + " arrived");
  std::deque<ServedCall*>& queue = desk_.updates[container_id_];
  queue.push_back(this);
  if (queue.size() == 1) begin_update();
}

void ServedCall::begin_update() {
  step_ = Step::kUpdating;
  const auto now = std::chrono::system_clock::now();
  answered_at_ = now + desk_.options.update_time;
  wait_until(now + desk_.dice.up_to(desk_.options.update_time));
}

void ServedCall::carry_out_update() {
  step_ = Step::kUpdated;
  updated_ = desk_.memory.serve(kUpdateMethod, message_);
  wait_until(answered_at_);
}

void ServedCall::answer_update() {
  desk_.judge.note(container_id_, "update answered");
  const auto queue = desk_.updates.find(container_id_);
  queue->second.pop_front();
  if (queue->second.empty()) {
    desk_.updates.erase(queue);
  } else {
    queue->second.front()->begin_update();
  }
  answer(updated_);
}

void ServedCall::wait_until(std::chrono::system_clock::time_point moment) {
  alarm_.emplace();
  alarm_->Set(desk_.queue.get(), moment, this);
}

}  // namespace

void run_runtime(const std::string& listen, const RuntimeOptions& options) {
  absl::SetMutexDeadlockDetectionMode(absl::OnDeadlockCycle::kIgnore);
  Desk desk(options);
  desk.pushed = to_buffer(std::string(kPushedBytes, 'p'));
  desk.big = to_buffer(std::string(kBigBytes, 'b'));
  grpc::ServerBuilder builder;
  builder.SetMaxReceiveMessageSize(-1);
  builder.AddChannelArgument(GRPC_ARG_HTTP2_BDP_PROBE, 0);
  // As much as containerd takes.
  builder.AddChannelArgument(GRPC_ARG_MAX_METADATA_SIZE, 16 << 20);
  builder.AddChannelArgument(GRPC_ARG_ENABLE_CHANNELZ, 0);
  builder.RegisterAsyncGenericService(&desk.service);
  builder.AddListeningPort("unix://" + listen, grpc::InsecureServerCredentials());
  desk.queue = builder.AddCompletionQueue();
  const std::unique_ptr<grpc::Server> server = builder.BuildAndStart();
  std::vector<std::unique_ptr<ServedCall>> calls;
  // At least as many as are held at a time, or the last of them would never come.
  for (std::size_t i = 0; i < kWaiting + options.held_calls; ++i) calls.push_back(std::make_unique<ServedCall>(desk));
  void* tag = nullptr;
  for (bool ok = false; desk.queue->Next(&tag, &ok);) static_cast<ServedCall*>(tag)->on_event(ok);
}

}  // namespace topolet::bench
