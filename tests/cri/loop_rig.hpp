// An event loop with the server that its queue belongs to.
#pragma once

#include <grpcpp/grpcpp.h>

#include <functional>
#include <future>
#include <memory>

#include "core/cri/wire/event_loop.hpp"

namespace topolet::testing {

class LoopRig {
 public:
  LoopRig() { loop.start(); }
  ~LoopRig() {
    loop.close();
    server_->Shutdown();
    loop.wait_until_idle();
    loop.join();
  }
  LoopRig(const LoopRig&) = delete;
  LoopRig& operator=(const LoopRig&) = delete;

  /// Runs `work` on the loop's thread and waits for it.
  void run(const std::function<void()>& work) {
    std::promise<void> done;
    loop.post([&] {
      work();
      done.set_value();
    });
    done.get_future().wait();
  }

 private:
  grpc::ServerBuilder builder_;

 public:
  cri::EventLoop loop{builder_.AddCompletionQueue()};

 private:
  std::unique_ptr<grpc::Server> server_ = builder_.BuildAndStart();
};

}  // namespace topolet::testing
