#include "core/base/end_process.hpp"

#include <unistd.h>

/// The leak sanitizer's, where it is linked: it looks for leaks in an exit handler otherwise.
extern "C" [[gnu::weak]] void __lsan_do_leak_check();  // NOLINT(bugprone-reserved-identifier)

namespace topolet {

void end_process(int status) {
  if (&__lsan_do_leak_check != nullptr) __lsan_do_leak_check();
  ::_exit(status);
}

}  // namespace topolet
