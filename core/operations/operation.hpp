// Operations: the engine's tasks as typed values, whichever front end they came by.
//
// The room core/operations, namespace topolet::operations: the language between the engine and its front ends. It knows
// no transport. It may include core/base, and of core/placement the plain values in workload.hpp and placement.hpp.
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "core/base/result.hpp"
#include "core/operations/container.hpp"
#include "core/operations/container_cpuset.hpp"
#include "core/placement/placement.hpp"
#include "core/placement/workload.hpp"

namespace topolet::operations {

/// Who tells the containers that have to leave CPUs before a new container may run on them.
enum class Neighbours : std::uint8_t {
  kByUs,      ///< the engine, by ContainerRuntime, before it admits the new container
  kInAnswer,  ///< the front, with the answer to the create: see Admission::neighbours
};

/// The smaller set of a container that has to leave CPUs.
struct NeighbourUpdate {
  std::string container_id;
  ContainerCpuset set;

  friend bool operator==(const NeighbourUpdate&, const NeighbourUpdate&) = default;
};

/// How a container is to be created.
struct Admission {
  std::optional<ContainerCpuset> set = {};       ///< none: as it was asked for
  placement::AddedFields added = {};             ///< what is added to its request
  std::vector<NeighbourUpdate> neighbours = {};  ///< empty but for fronts of the kind kInAnswer
};

/// The end of an operation that was admitted.
struct Outcome {
  enum class Kind : std::uint8_t {
    kDone,
    kRefused,  ///< nothing was done
    kUnknown,  ///< nobody can tell whether it was done
  };
  Kind kind = Kind::kUnknown;
  std::string id = {};  ///< kDone: of the container or sandbox that was created
  // The answer's code and message. An answer that cannot be read is kUnknown with the code kOk.
  Code code = Code::kOk;
  std::string message = {};

  bool is_done() const { return kind == Kind::kDone; }
};

/// Runs once, on a thread of the front's, and must not block.
using OnOutcome = std::function<void(const Outcome&)>;

/// Something that a client of the front wants done, held until the engine says how it goes on. Any thread may call any
/// function. The order is: admitted once and, after the outcome, answer() once; or pass() once; or reject() once, at
/// any time before answer(). An operation that is dropped without an answer is answered UNAVAILABLE.
class Operation {
 public:
  Operation() = default;
  virtual ~Operation() = default;
  Operation(const Operation&) = delete;
  Operation& operator=(const Operation&) = delete;

  virtual std::chrono::steady_clock::time_point arrived() const = 0;
  /// True once the client has cancelled, gone away or run out of time.
  virtual bool cancelled() const = 0;
  /// Set where the runtime waits for the engine, and changes no container meanwhile: for how long others may be waited
  /// for before it is admitted or rejected. None: for as long as the engine likes.
  virtual std::optional<std::chrono::milliseconds> patience() const { return std::nullopt; }

  /// Has it done as it was asked for, and answers the client with what becomes of it.
  virtual void pass() = 0;
  /// Answers the client with what became of it. Where nothing has, after it has expired, the client is told so.
  virtual void answer() = 0;
  /// Answers the client with an error of our own.
  virtual void reject(const Error& error) = 0;
};

/// Asks for a new container.
class CreateOperation : public Operation {
 public:
  virtual const placement::Workload& workload() const = 0;
  /// The id that the container is to have; empty where that is known with the outcome only. A front that knows it need
  /// not know which attempt it is: the engine counts them.
  virtual std::string container_id() const { return {}; }
  virtual Neighbours neighbours() const = 0;
  virtual void admit(const Admission& admission, OnOutcome on_outcome) = 0;
};

/// Asks for new resources of a container.
class UpdateOperation : public Operation {
 public:
  virtual const ResourceUpdate& update() const = 0;
  /// With `set` in place of the CPUs, memory nodes and quota that were asked for.
  virtual void admit(const ContainerCpuset& set, OnOutcome on_outcome) = 0;
};

/// Asks for something to be done to one container or sandbox that exists.
class TargetOperation : public Operation {
 public:
  /// As the client said it: runtimes take prefixes of ids, too.
  virtual const std::string& target() const = 0;
  /// A start: the process that is made, is in the container's cgroup, and waits for the start to be admitted. The
  /// runtime changes no container before that, so that where containers run is written past it. 0: none is made yet.
  virtual std::int64_t waiting_process() const { return 0; }
  virtual void admit(OnOutcome on_outcome) = 0;
};

/// Asks for a new sandbox.
class RunSandboxOperation : public Operation {
 public:
  virtual const Sandbox& sandbox() const = 0;  ///< without an id
  virtual void admit(OnOutcome on_outcome) = 0;
};

/// Says that a container has ended.
struct ExitSeen {
  std::string container_id;
  std::optional<std::int32_t> exit_code = {};  ///< most of those who say it do not know it

  friend bool operator==(const ExitSeen&, const ExitSeen&) = default;
};

/// Takes the operations of a front, and what it sees. Any thread may call any function.
class OperationHandler {
 public:
  virtual ~OperationHandler() = default;

  virtual void create(std::shared_ptr<CreateOperation> operation) = 0;
  virtual void update(std::shared_ptr<UpdateOperation> operation) = 0;
  virtual void start(std::shared_ptr<TargetOperation> operation) = 0;
  virtual void stop(std::shared_ptr<TargetOperation> operation) = 0;
  virtual void remove(std::shared_ptr<TargetOperation> operation) = 0;
  virtual void run_sandbox(std::shared_ptr<RunSandboxOperation> operation) = 0;
  virtual void stop_sandbox(std::shared_ptr<TargetOperation> operation) = 0;
  virtual void remove_sandbox(std::shared_ptr<TargetOperation> operation) = 0;

  virtual void on_exits(std::vector<ExitSeen> exits) = 0;
  /// An update that the engine has sent by ContainerRuntime passes the front on its way, and can still be changed:
  /// `tell`, once and on any thread, is told what the container is to have by now; without CPUs: it stays where it is.
  virtual void on_own_update(std::string container_id, ContainerCpuset sent,
                             std::function<void(const ContainerCpuset&)> tell) = 0;
  /// The runtime can be reached again.
  virtual void on_connected() = 0;

  /// False if clients are to read every container's CFS quota as the runtime tells it.
  virtual bool shows_quotas() const = 0;
  /// None where a client is to read the container's CFS quota as the runtime tells it.
  virtual std::optional<CfsQuota> quota_to_show(const std::string& container_id) const = 0;
};

}  // namespace topolet::operations
