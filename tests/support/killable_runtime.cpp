// A runtime in a process of its own, to be killed: killable_runtime SOCKET. "Version" is answered; any other call gets
// one message and then waits for ever. Writes "ready" and then each call's path to stdout, a line each.
#include <unistd.h>

#include <cstdio>

#include "tests/support/recording_runtime.hpp"

namespace topolet::testing {
namespace {

void say(const std::string& line) {
  std::puts(line.c_str());
  std::fflush(stdout);
}

int serve(const char* socket) {
  RecordingRuntime runtime(socket);
  runtime.handle("Version", RecordingRuntime::answer("version"));
  runtime.handle_others([](ServerCall& exchange) {
    exchange.read();
    exchange.write("first");
    say(exchange.path());
    exchange.wait_for_cancellation();
    return grpc::Status::OK;
  });
  say("ready");
  while (true) ::pause();
}

}  // namespace
}  // namespace topolet::testing

int main(int argc, char** argv) { return argc == 2 ? topolet::testing::serve(argv[1]) : 2; }
