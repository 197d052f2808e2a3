#include "core/cli/deadline.hpp"

#include <fmt/format.h>
#include <sys/time.h>

namespace topolet::cli {
namespace {

/// Repeatedly, as a signal that comes just before a system call does not interrupt it.
constexpr suseconds_t kAgainUs = 100'000;

void interrupt(int /*signal*/) {}

}  // namespace

Deadline::Deadline(std::chrono::seconds allowed) : allowed_(allowed) {
  if (allowed_.count() == 0) return;
  at_ = std::chrono::steady_clock::now() + allowed_;
  struct sigaction action {};
  action.sa_handler = interrupt;
  ::sigaction(SIGALRM, &action, &before_);
  const itimerval timer{{0, kAgainUs}, {static_cast<time_t>(allowed_.count()), 0}};
  ::setitimer(ITIMER_REAL, &timer, nullptr);
}

Deadline::~Deadline() {
  if (!at_) return;
  const itimerval off{};
  ::setitimer(ITIMER_REAL, &off, nullptr);
  ::sigaction(SIGALRM, &before_, nullptr);
}

Error Deadline::error() const {
  return {Code::kDeadlineExceeded,
          fmt::format("reading the database took longer than {} s and was ended, as the database's log can only grow "
                      "meanwhile; allow more with --timeout SECONDS (0: any time), or read a copy: topolet backup FILE",
                      allowed_.count())};
}

}  // namespace topolet::cli
