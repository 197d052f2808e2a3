#include <absl/synchronization/mutex.h>
#include <grpcpp/generic/async_generic_service.h>
#include <grpcpp/generic/generic_stub.h>
#include <grpcpp/grpcpp.h>

#include <memory>
#include <string>

#include "core/cri/wire/upstream.hpp"
#include "tests/bench/roles.hpp"

namespace topolet::bench {
namespace {

/// What the calls share.
struct Desk {
  grpc::AsyncGenericService service;
  std::unique_ptr<grpc::ServerCompletionQueue> queue;
  std::unique_ptr<grpc::GenericStub> runtime;
};

/// Owns itself from its construction, when it waits for a call, until it has answered it.
class RelayedCall {
 public:
  explicit RelayedCall(Desk& desk) : desk_(desk) {
    desk_.service.RequestCall(&context_, &stream_, desk_.queue.get(), desk_.queue.get(), this);
  }

  void on_event(bool ok) {
    switch (step_) {
      case Step::kArriving:
        return ok ? read() : end();
      case Step::kReading:
        return ok ? ask() : end();
      case Step::kAsking:
        return answer();
      case Step::kAnswering:
        return end();
    }
  }

 private:
  enum class Step { kArriving, kReading, kAsking, kAnswering };

  void read() {
    new RelayedCall(desk_);
    step_ = Step::kReading;
    stream_.Read(&message_, this);
  }
  void ask() {
    step_ = Step::kAsking;
    reader_ = desk_.runtime->PrepareUnaryCall(&upstream_context_, context_.method(), message_, desk_.queue.get());
    reader_->StartCall();
    reader_->Finish(&message_, &status_, this);
  }
  void answer() {
    step_ = Step::kAnswering;
    if (status_.ok()) {
      stream_.WriteAndFinish(message_, grpc::WriteOptions(), status_, this);
    } else {
      stream_.Finish(status_, this);
    }
  }
  void end() { delete this; }

  Desk& desk_;
  Step step_ = Step::kArriving;
  grpc::GenericServerContext context_;
  grpc::GenericServerAsyncReaderWriter stream_{&context_};
  grpc::ClientContext upstream_context_;
  std::unique_ptr<grpc::GenericClientAsyncResponseReader> reader_;
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
  new RelayedCall(desk);
  void* tag = nullptr;
  for (bool ok = false; desk.queue->Next(&tag, &ok);) static_cast<RelayedCall*>(tag)->on_event(ok);
}

}  // namespace topolet::bench
