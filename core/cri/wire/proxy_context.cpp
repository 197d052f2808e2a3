#include "core/cri/wire/proxy_context.hpp"

#include <vector>

namespace topolet::cri {

std::size_t UnreadResponses::cancel_older_than(std::chrono::milliseconds age) {
  const auto before = std::chrono::steady_clock::now() - age;
  std::vector<std::shared_ptr<IncomingCall>> old;
  {
    MutexLock lock(mutex_);
    for (const auto& [call, since] : since_) {
      if (since < before) old.push_back(call);
    }
  }
  for (const std::shared_ptr<IncomingCall>& call : old) call->context.TryCancel();
  return old.size();
}

}  // namespace topolet::cri
