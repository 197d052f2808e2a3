#include "core/base/forked_child.hpp"

#include <sys/types.h>
#include <unistd.h>

#include <atomic>
#include <cstdlib>

namespace topolet {
namespace {

std::atomic<pid_t> g_noted_process = 0;
std::atomic<void (*)()> g_when_back = nullptr;

}  // namespace

void note_this_process(void (*when_back)()) {
  g_when_back = when_back;
  g_noted_process = ::getpid();
}

bool is_forked_child() {
  const pid_t noted = g_noted_process;
  return noted != 0 && noted != ::getpid();
}

void end_if_forked_child() {
  if (!is_forked_child()) return;
  if (void (*const when_back)() = g_when_back) when_back();
  ::_exit(EXIT_FAILURE);
}

}  // namespace topolet
