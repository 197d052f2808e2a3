// The rights of this program in the cluster, as the API server reports them.
#pragma once

#include <chrono>
#include <cstddef>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "cluster/api/api.hpp"
#include "cluster/api/trouble_log.hpp"
#include "core/base/log.hpp"

namespace topolet::api {

struct Right {
  std::string verb;
  std::string group;  ///< empty: the core's
  std::string resource;
  std::string subresource = {};
  std::string name_space = {};  ///< empty: all, or it is in none
  std::string name = {};        ///< empty: any
  /// A field selector that is always sent: whoever grants only that grants it. Older API servers do not look at it.
  std::string field = {};
  std::string field_value = {};
};

/// "create pods/binding", "update leases.coordination.k8s.io in kube-system".
std::string to_string(const Right& right);

/// Asks for some rights, with SelfSubjectAccessReviews: all of them at first, and later again, sooner while one is
/// missing. The last answer holds while the API server is away, as that forbids nothing. If the program may not even
/// ask, which a cluster as shipped allows to all, no right counts as missing. On the thread of the API; `api` must
/// outlive it.
class AccessReview {
 public:
  /// `ask_again`: the time until the next review if no right is missing.
  AccessReview(Api& api, std::vector<Right> rights, std::chrono::milliseconds ask_again, Log& log);
  ~AccessReview();
  AccessReview(const AccessReview&) = delete;
  AccessReview& operator=(const AccessReview&) = delete;

  /// `on_change` is called when missing() is another.
  void start(std::function<void()> on_change);
  /// Returns the rights that this program lacks, in words; nothing before each was answered once.
  const std::optional<std::vector<std::string>>& missing() const { return missing_; }

 private:
  void ask(std::size_t next);
  void take(std::size_t asked, const ApiAnswer& answer);
  void finish();
  void begin_after(std::chrono::milliseconds pause);

  Api& api_;
  const std::vector<Right> rights_;
  const std::chrono::milliseconds ask_again_;
  TroubleLog trouble_;
  std::function<void()> on_change_;
  std::optional<std::vector<std::string>> missing_;
  std::vector<std::string> found_;  ///< missing, of the round that is under way
  std::chrono::milliseconds pause_{0};
  std::shared_ptr<bool> is_alive_ = std::make_shared<bool>(true);
};

}  // namespace topolet::api
