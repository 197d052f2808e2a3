// The runtime's list of its pods and containers, which it sends to a plugin that has just registered.
#pragma once

#include <string>

namespace topolet::nri {

struct Synchronized {
  std::string answer;
  bool is_last = true;  ///< no further part follows
};

/// Without a word that more may come, the runtime would not send what does not fit into one message, and give up.
Synchronized answer_synchronize(const std::string& payload);

}  // namespace topolet::nri
