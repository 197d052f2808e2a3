// Several workers at once, as long as it lives.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "tests/integration/pod_worker.hpp"

namespace topolet::integration {

class Churn {
 public:
  Churn(WorkerContext& workplace, const std::vector<WorkerKind>& workers, std::uint32_t seed);
  /// Waits for nothing that topoletd would have to answer.
  ~Churn();
  Churn(const Churn&) = delete;
  Churn& operator=(const Churn&) = delete;

  /// Waits until some worker has called again.
  bool is_busy() const;
  /// Every worker ends what it has begun; topoletd must serve.
  void end();

  Tally tally() const;                        ///< after the end
  std::vector<std::string> failures() const;  ///< after the end

 private:
  WorkerContext& workplace_;
  std::vector<std::unique_ptr<PodWorker>> workers_;
  std::vector<std::thread> threads_;
};

}  // namespace topolet::integration
