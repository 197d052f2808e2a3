// The Node object that this node's NodeResourceTopology belongs to, and goes with.
#pragma once

#include <functional>
#include <string>

#include "cluster/api/api.hpp"
#include "cluster/api/trouble_log.hpp"
#include "core/base/log.hpp"
#include "core/base/result.hpp"

namespace topolet::agent {

/// On the loop's thread. A Node that is deleted and registered again is another one, with another uid: what belongs to
/// the first is deleted as often as it is written. So its uid is asked again whenever it may be another one.
class NodeOwner {
 public:
  NodeOwner(std::string node_name, api::Api& api, Log& log);
  NodeOwner(const NodeOwner&) = delete;
  NodeOwner& operator=(const NodeOwner&) = delete;

  /// Returns true if ask() must be called before uid() is used.
  bool is_due() const { return is_due_; }
  /// Makes ask() due, since the uid may have changed.
  void doubt() { is_due_ = true; }
  /// Makes ask() due if the uid was never read, or long ago.
  void doubt_what_is_old();
  /// Asks for the uid. OK: uid() may be relied on, and is empty if this program may not read Nodes. NOT_FOUND: there is
  /// no such Node. UNAVAILABLE: it could not be read, and stays due.
  void ask(std::function<void(const Status&)> then);
  const std::string& uid() const { return uid_; }
  /// Returns true if the Node existed when it was last read.
  bool is_there() const { return is_there_; }

 private:
  Status take(const api::ApiAnswer& answer);

  const std::string node_name_;
  api::Api& api_;
  Log& log_;
  api::TroubleLog missing_;
  api::TroubleLog unreadable_;
  std::string uid_;
  bool is_due_ = true;
  bool is_there_ = false;
  api::Api::Clock::time_point told_{};
};

}  // namespace topolet::agent
