// A client of the watch socket, and what it has been told.
#pragma once

#include <grpcpp/grpcpp.h>

#include <chrono>
#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "core/watch/node_state.hpp"
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
      state_.begin(response.snapshot());
    }
    for (const watch::v1::Delta& delta : response.deltas().deltas()) {
      generations_.push_back(delta.generation());
      state_.apply(delta);
      for (const watch::v1::Event& event : delta.events()) events_.push_back(event);
    }
    whole_ = state_.whole();
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
  /// Without containers and capacities.
  const watch::v1::Snapshot& state() const { return state_.head(); }
  const std::vector<watch::v1::Event>& events() const { return events_; }
  const std::vector<std::uint64_t>& generations() const { return generations_; }
  /// All that came.
  const std::string& bytes() const { return bytes_; }
  /// Until the next read().
  const auto& capacities() const { return whole_.capacities(); }
  std::size_t containers() const { return state_.containers(); }
  /// Null if there is none in a pod of that name. Until the next read().
  const watch::v1::Container* in_pod(const std::string& pod) const {
    for (const watch::v1::Container& container : whole_.containers()) {
      if (container.pod_name() == pod) return &container;
    }
    return nullptr;
  }
  /// All containers, in one text that is the same for the same ones.
  std::string all() const {
    std::string text;
    for (const watch::v1::Container& container : whole_.containers()) text += container.SerializeAsString();
    return text;
  }

 private:
  std::unique_ptr<watch::v1::Watch::Stub> stub_;
  grpc::ClientContext context_;
  std::unique_ptr<grpc::ClientReader<watch::v1::WatchResponse>> stream_;
  int snapshots_ = 0;
  watch::NodeState state_;
  watch::v1::Snapshot whole_;
  std::vector<watch::v1::Event> events_;
  std::vector<std::uint64_t> generations_;
  std::string bytes_;
};

}  // namespace topolet::testing
