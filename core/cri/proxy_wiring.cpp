#include "core/cri/proxy_wiring.hpp"

#include <vector>

namespace topolet {

std::size_t Unread::cancel_older_than(std::chrono::milliseconds age) {
  const auto before = std::chrono::steady_clock::now() - age;
  std::vector<std::shared_ptr<Inbound>> old;
  {
    MutexLock lock(mutex_);
    for (const auto& [call, since] : since_) {
      if (since < before) old.push_back(call);
    }
  }
  for (const std::shared_ptr<Inbound>& call : old) call->context.TryCancel();
  return old.size();
}

}  // namespace topolet
