// The updates that topolet sends by the CRI come back to its NRI plugin as events, before the runtime carries them out.
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

  /// Returns the update under way that comes back as this event, once for each; none where it is somebody else's.
  std::optional<operations::ContainerCpuset> take(const operations::ResourceUpdate& event);

 private:
  struct UnderWay {
    std::string container_id;
    operations::ContainerCpuset set;
    bool has_come_back = false;
  };
  /// Outlives this, as answers may.
  struct State {
    Mutex mutex;
    std::list<UnderWay> updates TOPOLET_GUARDED_BY(mutex);
  };

  operations::ContainerRuntime& runtime_;
  const std::shared_ptr<State> state_ = std::make_shared<State>();
};

}  // namespace topolet::nri
