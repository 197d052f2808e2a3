// Properties that hold for the lens on any bytes at all, checked against the complete CRI's generated parser.
#pragma once

#include <string>

namespace topolet {

/// How the two parsers judged the bytes. The lens may accept more: it does not look into the parts it has no use for,
/// and does not insist on UTF-8. It must never accept less.
struct Judgement {
  bool full_accepts = false;
  bool lens_accepts = false;
  bool placeable = false;  ///< the reader found all it needs
  std::string violation;   ///< what is wrong; empty if all is well
};

/// A CreateContainerRequest: both parsers read the same values, and a patch behind the original bytes changes the
/// cpuset fields and nothing else.
Judgement judge_create_container(const std::string& bytes);
/// The same of an UpdateContainerResourcesRequest.
Judgement judge_update_container_resources(const std::string& bytes);
/// A ListContainersResponse: both parsers read the same values.
Judgement judge_list_containers(const std::string& bytes);
/// A ContainerStatusResponse: both parsers read the same status; its `info` may hold anything.
Judgement judge_container_status(const std::string& bytes);

/// The complete parser writes a line for every string that is not UTF-8; fuzzing makes many.
void silence_protobuf();

}  // namespace topolet
