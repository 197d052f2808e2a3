// Problems that only the agent can see: why the cluster does not know this node as it is, and mistakes in its setup.
#pragma once

#include <string>
#include <vector>

#include "cluster/agent/kubernetes/publisher.hpp"
#include "core/base/illness.hpp"

namespace topolet::agent {

/// Troubles are empty where there is none.
struct OwnFacts {
  std::string node_name = {};
  std::vector<std::string> missing_rights = {};
  Publisher::Counts topology = {};
  bool is_late = false;  ///< whatever is not known yet should be by now
  bool hears_topoletd = true;
  bool knows_pods = true;
  std::string pods_trouble = {};
  bool knows_object = true;  ///< whether there is one, and what is in it
  std::string object_trouble = {};
  bool knows_devices = true;  ///< the kubelet has told them, or is known not to
  std::string devices_trouble = {};
  std::string token_trouble = {};
};

/// An API server that is away forbids nothing.
std::vector<Illness> own_illnesses(const OwnFacts& facts);

}  // namespace topolet::agent
