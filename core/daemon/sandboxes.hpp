// The pod sandboxes the daemon knows, mirrored in the store.
#pragma once

#include <map>
#include <string>
#include <utility>
#include <vector>

#include "core/cri/requests.hpp"
#include "core/daemon/journal.hpp"
#include "store/store.hpp"

namespace topolet {

/// One thread.
class Sandboxes {
 public:
  Sandboxes(Journal& journal, std::vector<std::string> placed_handlers)
      : journal_(journal), placed_handlers_(std::move(placed_handlers)) {}

  void load(const std::vector<PodRow>& rows);
  /// Keeps what is known already and a list of sandboxes does not tell: annotations and nodes.
  void put(const Sandbox& sandbox);
  void remove(const std::string& sandbox_id);

  /// By id or its beginning, as Ledger::find_by_container(). Null if the sandbox is not known.
  const Sandbox* find(const std::string& sandbox_id) const;
  /// The nodes of the candidate that the pod's first container was given; empty if that is not decided.
  NodeSet nodes_of_pod(const std::string& pod_uid, const std::string& sandbox_id) const;
  void set_nodes_of_pod(const std::string& pod_uid, const std::string& sandbox_id, const NodeSet& nodes);
  /// Whether containers of this handler are placed; the others are foreign.
  bool places(const std::string& runtime_handler) const;
  std::vector<std::string> ids() const;

 private:
  struct Known {
    Sandbox sandbox;
    NodeSet nodes;
  };
  void write(const Known& known);

  Journal& journal_;
  std::vector<std::string> placed_handlers_;
  std::map<std::string, Known> by_id_;
};

}  // namespace topolet
