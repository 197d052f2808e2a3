// Helpers of every made-up container runtime, here and in tests: they read requests and write answers.
#pragma once

#include <cstdint>
#include <map>
#include <string>

#include "core/cri/call.hpp"
#include "core/cri/messages/lens.pb.h"

namespace topolet::simulate {

/// A request as it is sent by topolet or a simulated kubelet. Bytes that cannot be parsed give an empty message.
template <class Message>
Message read_request(const std::string& bytes) {
  Message message;
  message.ParseFromString(bytes);
  return message;
}

cri::RuntimeResponse ok_answer();
cri::RuntimeResponse ok_answer(const google::protobuf::MessageLite& message);
cri::RuntimeResponse ok_answer_with_id(const std::string& id);

/// To ListPodSandbox; by id.
cri::RuntimeResponse answer_with_sandboxes(const std::map<std::string, lens::PodSandbox>& sandboxes);

/// To ListContainers; by id. A container has a sandbox_id, the config it was made with, and a state.
template <class Container>
cri::RuntimeResponse answer_with_containers(const std::map<std::string, Container>& containers) {
  lens::ListContainersResponse response;
  for (const auto& [id, container] : containers) {
    lens::Container& listed = *response.add_containers();
    listed.set_id(id);
    listed.set_sandbox_id(container.sandbox_id);
    *listed.mutable_metadata() = container.config.metadata();
    listed.set_state(static_cast<std::int32_t>(container.state));
  }
  return ok_answer(response);
}

/// Carries out an update of a container. Fields that are zero or empty in `update` stay as they are.
void update_resources(lens::Resources& resources, const lens::Resources& update);

}  // namespace topolet::simulate
