// The updates that topolet sends by the CRI come back to its NRI plugin as events, before the runtime carries them out.
// They are sent without CPUs, which are told only when they come back: what waits in the runtime for its turn cannot
// bring a container anywhere, should topoletd be gone by then.
#pragma once

#include <functional>
#include <list>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "core/base/mutex.hpp"
#include "core/operations/runtime.hpp"

namespace topolet::nri {

/// Passes everything on to another ContainerRuntime, and knows which updates of its own are under way there. Any
/// thread.
class OwnUpdates final : public operations::ContainerRuntime {
 public:
  /// `runtime` must outlive this.
  explicit OwnUpdates(operations::ContainerRuntime& runtime) : runtime_(runtime) {}

  void update(const std::string& container_id, const operations::ContainerCpuset& set,
              std::function<void(Status)> done) override;
  void list_containers(std::function<void(Result<std::vector<operations::ContainerInfo>>)> done) override {
    runtime_.list_containers(std::move(done));
  }
  void list_sandboxes(std::function<void(Result<std::vector<operations::Sandbox>>)> done) override {
    runtime_.list_sandboxes(std::move(done));
  }
  void inspect(const std::string& container_id,
               std::function<void(Result<operations::ContainerDetail>)> done) override {
    runtime_.inspect(container_id, std::move(done));
  }

  /// From now on the runtime asks topolet about updates, or does not: then they are sent whole.
  void set_asked(bool is_asked);

  /// Returns the update under way that comes back as this event, once for each; none where it is somebody else's. What
  /// it is to set must be told in the answer.
  std::optional<operations::ContainerCpuset> take(const operations::ResourceUpdate& event);

 private:
  struct UnderWay {
    std::string container_id;
    operations::ContainerCpuset set;
    bool is_whole = false;  ///< it was sent with its CPUs
    bool has_come_back = false;
  };
  /// Outlives this, as answers may.
  struct State {
    Mutex mutex;
    std::list<UnderWay> updates TOPOLET_GUARDED_BY(mutex);
    bool is_asked TOPOLET_GUARDED_BY(mutex) = false;
  };

  static bool is_same(const UnderWay& update, const operations::ResourceUpdate& event);

  operations::ContainerRuntime& runtime_;
  const std::shared_ptr<State> state_ = std::make_shared<State>();
};

}  // namespace topolet::nri
