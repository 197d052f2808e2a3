#include <absl/synchronization/mutex.h>
#include <grpcpp/generic/async_generic_service.h>
#include <grpcpp/generic/generic_stub.h>
#include <grpcpp/grpcpp.h>

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "core/cri/wire/upstream.hpp"
#include "tests/bench/roles.hpp"

namespace topolet::bench {
namespace {

/// State that all calls share.
struct Desk {
  grpc::AsyncGenericService service;
  std::unique_ptr<grpc::ServerCompletionQueue> queue;
  std::unique_ptr<grpc::GenericStub> runtime;
};

/// So many calls are waited for at a time, so that none that comes has to wait for one of these.
constexpr int kWaiting = 128;

/// The gRPC objects of one call.
struct Exchange {
  grpc::GenericServerContext context;
  grpc::GenericServerAsyncReaderWriter stream{&context};
  grpc::ClientContext upstream_context;
  std::unique_ptr<grpc::GenericClientAsyncResponseReader> reader;
};

/// Relays one call after another, as long as the process runs; only gRPC allocates anything.
class RelayedCall {
 public:
  explicit RelayedCall(Desk& desk) : desk_(desk) { wait(); }

  void on_event(bool ok) {
    switch (step_) {
      case Step::kArriving:
        return ok ? read() : wait();
      case Step::kReading:
        return ok ? ask() : refuse();
      case Step::kAsking:
        return answer();
      case Step::kAnswering:
        return wait();
    }
  }

 private:
  enum class Step { kArriving, kReading, kAsking, kAnswering };

  void wait() {
    step_ = Step::kArriving;
    exchange_.emplace();
    desk_.service.RequestCall(&exchange_->context, &exchange_->stream, desk_.queue.get(), desk_.queue.get(), this);
  }
  void read() {
    step_ = Step::kReading;
    exchange_->stream.Read(&message_, this);
  }
  void ask() {
    step_ = Step::kAsking;
    exchange_->reader = desk_.runtime->PrepareUnaryCall(&exchange_->upstream_context, exchange_->context.method(),
                                                        message_, desk_.queue.get());
    exchange_->reader->StartCall();
    exchange_->reader->Finish(&message_, &status_, this);
  }
  /// The client left before it sent its request.
  void refuse() {
    status_ = grpc::Status::CANCELLED;
    answer();
  }
  void answer() {
    step_ = Step::kAnswering;
    if (status_.ok()) {
      exchange_->stream.WriteAndFinish(message_, grpc::WriteOptions(), status_, this);
    } else {
      exchange_->stream.Finish(status_, this);
    }
  }

  Desk& desk_;
  Step step_ = Step::kArriving;
  std::optional<Exchange> exchange_;
  grpc::ByteBuffer message_;
  grpc::Status status_;
};

std::unique_ptr<grpc::GenericStub> connect(const std::string& runtime) {
  grpc::ChannelArguments arguments;
  cri::set_common_arguments({}, [&](const char* key, int value) { arguments.SetInt(key, value); });
  arguments.SetInt(GRPC_ARG_ENABLE_RETRIES, 0);
  arguments.SetInt(GRPC_ARG_SERVICE_CONFIG_DISABLE_RESOLUTION, 1);
  return std::make_unique<grpc::GenericStub>(
      grpc::CreateCustomChannel("unix://" + runtime, grpc::InsecureChannelCredentials(), arguments));
}

}  // namespace

void run_bare_proxy(const std::string& listen, const std::string& runtime) {
  absl::SetMutexDeadlockDetectionMode(absl::OnDeadlockCycle::kIgnore);
  Desk desk;
  desk.runtime = connect(runtime);
  grpc::ServerBuilder builder;
  cri::set_common_arguments({}, [&](const char* key, int value) { builder.AddChannelArgument(key, value); });
  builder.RegisterAsyncGenericService(&desk.service);
  builder.AddListeningPort("unix://" + listen, grpc::InsecureServerCredentials());
  desk.queue = builder.AddCompletionQueue();
  const std::unique_ptr<grpc::Server> server = builder.BuildAndStart();
  std::vector<std::unique_ptr<RelayedCall>> calls;
  for (int i = 0; i < kWaiting; ++i) calls.push_back(std::make_unique<RelayedCall>(desk));
  void* tag = nullptr;
  for (bool ok = false; desk.queue->Next(&tag, &ok);) static_cast<RelayedCall*>(tag)->on_event(ok);
}

}  // namespace topolet::bench
