// The messages of one life of the daemon. When the daemon is killed, all of it is over at once.
#pragma once

#include <chrono>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <utility>

#include "core/cri/call.hpp"
#include "tests/support/dice.hpp"
#include "tests/support/trace.hpp"
#include "tests/support/virtual_time.hpp"

namespace topolet::testing {

/// Everything that the daemon says goes through it. It may be cut at any message, which then is the first one that does
/// not arrive: the daemon has decided and stored by then, and is killed before it could say so.
class Wire {
 public:
  explicit Wire(Dice& dice) : dice_(dice) {}

  bool delivers(std::string_view method);
  bool is_cut() const { return cut_; }
  void cut() { cut_ = true; }
  void set_reliable(bool reliable = true) { reliable_ = reliable; }

 private:
  Dice& dice_;
  bool reliable_ = false;
  bool cut_ = false;
};

struct DaemonLife {
  VirtualTime& time;
  Trace& trace;
  cri::Runtime& runtime;
  std::shared_ptr<Wire> wire;
};

/// The daemon's own calls.
class DaemonRuntime final : public cri::Runtime {
 public:
  explicit DaemonRuntime(DaemonLife life) : life_(std::move(life)) {}
  void call(std::string path, std::string request, std::chrono::milliseconds timeout,
            std::function<void(const cri::RuntimeResponse&)> done) override;

 private:
  DaemonLife life_;
};

/// A call of the kubelet's. The kubelet is answered once, later: by the daemon, by the call's time being out, or with
/// UNAVAILABLE when the daemon drops the call or dies.
class KubeletCall final : public cri::Call, public std::enable_shared_from_this<KubeletCall> {
 public:
  using Answered = std::function<void(const cri::RuntimeResponse&)>;

  static std::shared_ptr<KubeletCall> make(std::string method, std::string request, std::chrono::milliseconds timeout,
                                           DaemonLife life, Answered answered);
  KubeletCall(std::string method, std::string request, std::chrono::milliseconds deadline, DaemonLife life,
              Answered answered);
  ~KubeletCall() override;
  KubeletCall(const KubeletCall&) = delete;
  KubeletCall& operator=(const KubeletCall&) = delete;

  const std::string& path() const override { return path_; }
  std::string_view method() const override;
  const std::string& request() const override { return request_; }
  bool cancelled() const override { return life_.time.now() >= deadline_; }
  void forward(std::string patch, std::function<void(const cri::RuntimeResponse&)> on_response) override;
  void finish() override;
  void reject(const Error& error) override;

 private:
  void send_answer(const cri::RuntimeResponse& answer);

  const std::string path_;
  const std::string request_;
  const std::chrono::milliseconds deadline_;
  DaemonLife life_;
  Answered answered_;  ///< empty once called
  cri::RuntimeResponse from_runtime_;
};

}  // namespace topolet::testing
