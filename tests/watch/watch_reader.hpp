// A client of the watch socket, and what it has been told.
#pragma once

#include <grpcpp/grpcpp.h>

#include <chrono>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "core/watch/watch.grpc.pb.h"

namespace topolet::testing {

inline std::unique_ptr<watch::v1::Watch::Stub> watch_stub(const std::string& socket) {
  grpc::ChannelArguments arguments;
  arguments.SetInt(GRPC_ARG_USE_LOCAL_SUBCHANNEL_POOL, 1);
  arguments.SetInt(GRPC_ARG_ENABLE_RETRIES, 0);
  return watch::v1::Watch::NewStub(
      grpc::CreateCustomChannel("unix://" + socket, grpc::InsecureChannelCredentials(), arguments));
}

/// Puts together what the stream tells, as any reader of it would.
class WatchReader {
 public:
  explicit WatchReader(const std::string& socket) : stub_(watch_stub(socket)) {
    context_.set_deadline(std::chrono::system_clock::now() + std::chrono::seconds(60));
    stream_ = stub_->Watch(&context_, {});
  }

  /// Reads one message. False at the end.
  bool read() {
    watch::v1::WatchResponse response;
    if (!stream_->Read(&response)) return false;
    bytes_ += response.SerializeAsString();
    if (response.has_snapshot()) {
      ++snapshots_;
      state_ = response.snapshot();
      for (const watch::v1::Container& container : state_.containers()) put(container);
      state_.clear_containers();
    }
    for (const watch::v1::Delta& delta : response.deltas().deltas()) take(delta);
    return true;
  }
  /// Reads until it is so. False if the stream ends before.
  bool read_until(const std::function<bool()>& is_so) {
    while (!is_so()) {
      if (!read()) return false;
    }
    return true;
  }
  grpc::Status finish() { return stream_->Finish(); }
  void cancel() { context_.TryCancel(); }

  int snapshots() const { return snapshots_; }
  /// Without containers.
  const watch::v1::Snapshot& state() const { return state_; }
  const std::vector<watch::v1::Event>& events() const { return events_; }
  const std::vector<std::uint64_t>& generations() const { return generations_; }
  /// All that came.
  const std::string& bytes() const { return bytes_; }
  std::size_t containers() const { return containers_.size(); }
  /// Null if there is none in a pod of that name.
  const watch::v1::Container* in_pod(const std::string& pod) const {
    for (const auto& [key, container] : containers_) {
      if (container.pod_name() == pod) return &container;
    }
    return nullptr;
  }
  /// All containers, in one text that is the same for the same ones.
  std::string all() const {
    std::string text;
    for (const auto& [key, container] : containers_) text += container.SerializeAsString();
    return text;
  }

 private:
  void put(const watch::v1::Container& container) { containers_[container.key().SerializeAsString()] = container; }
  void take(const watch::v1::Delta& delta) {
    generations_.push_back(delta.generation());
    state_.set_generation(delta.generation());
    for (const watch::v1::Container& container : delta.changed()) put(container);
    for (const watch::v1::ContainerKey& key : delta.ended()) containers_.erase(key.SerializeAsString());
    if (delta.has_cpus()) *state_.mutable_cpus() = delta.cpus();
    if (delta.has_machine()) *state_.mutable_machine() = delta.machine();
    if (delta.has_reconciled()) state_.set_reconciled(delta.reconciled());
    if (delta.has_plugins()) *state_.mutable_plugins() = delta.plugins().plugins();
    for (const watch::v1::Event& event : delta.events()) events_.push_back(event);
  }

  std::unique_ptr<watch::v1::Watch::Stub> stub_;
  grpc::ClientContext context_;
  std::unique_ptr<grpc::ClientReader<watch::v1::WatchResponse>> stream_;
  int snapshots_ = 0;
  watch::v1::Snapshot state_;
  std::map<std::string, watch::v1::Container> containers_;
  std::vector<watch::v1::Event> events_;
  std::vector<std::uint64_t> generations_;
  std::string bytes_;
};

}  // namespace topolet::testing
