#include "core/cri/messages/lens.hpp"

namespace topolet::cri {

Error unparsable(Code code, std::string_view message_name) {
  return {code, std::string(message_name) +
                    " cannot be parsed: it is damaged, or is not that message of the Container Runtime Interface v1"};
}

}  // namespace topolet::cri
