#include <absl/synchronization/mutex.h>
#include <grpcpp/generic/async_generic_service.h>
#include <grpcpp/grpcpp.h>

#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "tests/bench/container_store.hpp"
#include "tests/bench/roles.hpp"

namespace topolet::bench {
namespace {

/// So many calls are waited for at a time; gRPC queues those above it.
constexpr int kWaiting = 128;

/// What the calls share.
struct Desk {
  grpc::AsyncGenericService service;
  std::unique_ptr<grpc::ServerCompletionQueue> queue;
  ContainerStore store;
  grpc::ByteBuffer pushed;
  grpc::ByteBuffer big;
  std::size_t held_calls = 0;
  std::vector<class ServedCall*> held;
};

/// What gRPC needs for one call.
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
  enum class Step { kArriving, kReading, kPushing, kLeaving };

  void wait();
  void on_arrived();
  void on_request();
  void push();
  void hold();
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
  answer(desk_.store.serve(named, message_));
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
  if (desk_.held.size() < desk_.held_calls) return;
  for (ServedCall* call : desk_.held) call->answer(grpc::Status());
  desk_.held.clear();
}

}  // namespace

void run_runtime(const std::string& listen, std::size_t held_calls) {
  absl::SetMutexDeadlockDetectionMode(absl::OnDeadlockCycle::kIgnore);
  Desk desk;
  desk.held_calls = held_calls;
  const grpc::Slice slice(std::string(kPushedBytes, 'p'));
  desk.pushed = grpc::ByteBuffer(&slice, 1);
  const grpc::Slice big(std::string(kBigBytes, 'b'));
  desk.big = grpc::ByteBuffer(&big, 1);
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
  for (std::size_t i = 0; i < kWaiting + held_calls; ++i) calls.push_back(std::make_unique<ServedCall>(desk));
  void* tag = nullptr;
  for (bool ok = false; desk.queue->Next(&tag, &ok);) static_cast<ServedCall*>(tag)->on_event(ok);
}

}  // namespace topolet::bench
