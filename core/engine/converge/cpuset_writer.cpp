#include "core/engine/converge/cpuset_writer.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <string_view>
#include <utility>

#include "core/base/log.hpp"
#include "core/engine/converge/cpuset_files.hpp"
#include "core/engine/converge/memory_high.hpp"
#include "core/engine/converge/nested_cpusets.hpp"
#include "core/placement/unified_value.hpp"

namespace topolet::engine {
namespace {

/// Returns false for what says nothing about the content of an update.
bool is_refusal(Code code) {
  return code != Code::kNotFound && code != Code::kUnavailable && code != Code::kDeadlineExceeded &&
         code != Code::kCancelled;
}

bool is_part_of_name(char character) {
  return std::isalnum(static_cast<unsigned char>(character)) != 0 || character == '-' || character == '_';
}

/// Returns true where `text` has `word`, and not within a longer one. A '/' before it may belong to a path.
bool has_word(std::string_view text, std::string_view word, bool may_follow_slash) {
  for (std::size_t at = text.find(word); at != std::string_view::npos; at = text.find(word, at + 1)) {
    const std::size_t end = at + word.size();
    const bool begins = at == 0 || !(is_part_of_name(text[at - 1]) || (text[at - 1] == '/' && !may_follow_slash));
    if (begins && (end == text.size() || !is_part_of_name(text[end]))) return true;
  }
  return false;
}

/// Returns true if a refusal is about the files, or about the field of the request that has them.
bool names_files(std::string_view refusal, const SharedStringMap& files) {
  if (has_word(refusal, "unified", false)) return true;
  return std::any_of(files.begin(), files.end(),
                     [refusal](const auto& file) { return has_word(refusal, file.first, true); });
}

ContainerCpuset without_files(ContainerCpuset target) {
  target.unified = {};
  return target;
}

}  // namespace

void CpusetWriter::write(const std::string& container_id, const ContainerCpuset& target,
                         std::function<void(WriteResult)> done) {
  if (deps_.log.should_log(spdlog::level::debug))
    deps_.log.debug("container {}: setting its CPUs to {}", container_id, target.cpus.to_string());
  if (const auto cgroup = cgroup_with_nested(container_id)) {
    return write_around_nested(container_id, target, *cgroup, std::move(done));
  }
  tell_runtime(container_id, target, [this, container_id, target, done = std::move(done)](const Status& status) {
    written(container_id, target, status, done);
  });
}

void CpusetWriter::update(const std::string& container_id, const ContainerCpuset& target,
                          std::function<void(Status)> done) {
  deps_.runtime.update(container_id, target, [this, done = std::move(done)](const Status& status) {
    deps_.loop.post([status, done] { done(status); });
  });
}

void CpusetWriter::tell_runtime(const std::string& container_id, const ContainerCpuset& target,
                                std::function<void(Status)> done) {
  if (target.unified.empty()) return update(container_id, target, std::move(done));
  if (refuses_files()) {
    lift_in_kernel(container_id, target);
    return update(container_id, without_files(target), std::move(done));
  }
  update(container_id, target, [this, container_id, target, done = std::move(done)](const Status& status) {
    if (status || !is_refusal(status.error().code)) return done(status);
    tell_without_files(container_id, target, status.error(), done);
  });
}

/// Nobody stays on CPUs that it is to leave because the runtime, or the kernel, refuses a file of its cgroup.
void CpusetWriter::tell_without_files(const std::string& container_id, const ContainerCpuset& target,
                                      const Error& refused, std::function<void(Status)> done) {
  update(container_id, without_files(target),
         [this, container_id, target, refused, done = std::move(done)](const Status& status) {
           if (!status) return done(refused);
           if (!names_files(refused.message, target.unified)) return tell_files_again(container_id, target, done);
           note_files_refused(container_id, target, refused);
           done(status);
         });
}

/// The runtime may have refused the CPUs, and taken them a moment later: it has them now, and refuses the files or not.
void CpusetWriter::tell_files_again(const std::string& container_id, const ContainerCpuset& target,
                                    std::function<void(Status)> done) {
  update(container_id, target, [this, container_id, target, done = std::move(done)](const Status& status) {
    if (status || !is_refusal(status.error().code)) return done(status);
    note_files_refused(container_id, target, status.error());
    done({});
  });
}

void CpusetWriter::note_files_refused(const std::string& container_id, const ContainerCpuset& target,
                                      const Error& refused) {
  if (!refuses_files()) {
    deps_.log.warn(
        "container {}: the runtime takes its CPUs, but not files of its cgroup such as memory.high, which are set for "
        "nobody in the next hour: {}",
        container_id, refused.message);
    refused_ = {refused.message, deps_.clock.steady() + kFilesRefusedFor};
  }
  lift_in_kernel(container_id, target);
}

/// What others have set stays.
void CpusetWriter::lift_in_kernel(const std::string& container_id, const ContainerCpuset& target) const {
  const auto high = target.unified.find(std::string(placement::kMemoryHigh));
  if (high == target.unified.end() || high->second != placement::kNoLimit) return;
  if (!marked_memory_high(container_id)) return;
  const Status lifted = lift_memory_high(*cgroup_of(container_id));
  if (!lifted) deps_.log.warn("container {} keeps its memory.high: {}", container_id, lifted.error().message);
}

void CpusetWriter::mark_memory_high(const std::string& container_id, std::int64_t bytes) const {
  const auto cgroup = has_v1_cpusets() ? std::nullopt : cgroup_of(container_id);
  const Status marked = cgroup ? engine::mark_memory_high(*cgroup, bytes) : Status();
  if (!marked) deps_.log.debug("container {}: {}", container_id, marked.error().message);
}

std::optional<std::int64_t> CpusetWriter::marked_memory_high(const std::string& container_id) const {
  const auto cgroup = has_v1_cpusets() ? std::nullopt : cgroup_of(container_id);
  return cgroup ? engine::marked_memory_high(*cgroup) : std::nullopt;
}

/// Writes the cpuset in two steps if the cgroups below have to go to CPUs that the container does not have yet: it gets
/// these before it leaves any.
void CpusetWriter::write_around_nested(const std::string& container_id, const ContainerCpuset& target,
                                       const std::filesystem::path& cgroup, std::function<void(WriteResult)> done) {
  const CpuSet before = read_cpus(cgroup).value_or(CpuSet());
  const bool is_in_the_way = !nested_cpus(cgroup).is_subset_of(target.cpus);
  if (!is_in_the_way || target.cpus.is_subset_of(before)) {
    return narrow_and_tell(container_id, target, cgroup, before, std::move(done));
  }
  tell_runtime(container_id, {before | target.cpus, target.mems},
               [this, container_id, target, cgroup, before, done = std::move(done)](const Status&) {
                 narrow_and_tell(container_id, target, cgroup, before, done);
               });
}

void CpusetWriter::narrow_and_tell(const std::string& container_id, const ContainerCpuset& target,
                                   const std::filesystem::path& cgroup, const CpuSet& before,
                                   std::function<void(WriteResult)> done) {
  const Status narrowed = narrow_nested(cgroup, target.cpus);
  tell_runtime(container_id, target,
               [this, container_id, target, cgroup, before, narrowed, done = std::move(done)](const Status& status) {
                 if (status) {
                   const Status widened = widen_nested(cgroup, before & target.cpus, target.cpus);
                   if (!widened) deps_.log.debug("container {}: {}", container_id, widened.error().message);
                   return written(container_id, target, status, done);
                 }
                 Error why = status.error();
                 if (!narrowed) why.message += "; of the cgroups inside it, " + narrowed.error().message;
                 written(container_id, target, why, done);
               });
}

Status CpusetWriter::write_in_kernel(const std::string& container_id, const CpuSet& cpus) {
  const auto cgroup = cgroup_of(container_id);
  if (!cgroup) return Error{Code::kUnavailable, "the cgroup of container " + container_id + " cannot be seen"};
  const CpuSet before = read_cpus(*cgroup).value_or(CpuSet());
  if (const auto nested = cgroup_with_nested(container_id); nested && !nested_cpus(*nested).is_subset_of(cpus)) {
    // Those below go to CPUs that the container has by then.
    if (Status widened = write_cpus(*cgroup, before | cpus); !widened) return widened;
    if (Status narrowed = narrow_nested(*cgroup, cpus); !narrowed) return narrowed;
  }
  if (Status written = write_cpus(*cgroup, cpus); !written) return written;
  return check_kernel(container_id, {cpus, {}});
}

void CpusetWriter::written(const std::string& container_id, const ContainerCpuset& target, const Status& status,
                           const std::function<void(WriteResult)>& done) {
  if (status && pids_.count(container_id) != 0) return done(verify_written(container_id, target));
  inspect(container_id, [this, container_id, target, status, done](const Result<operations::ContainerDetail>& detail) {
    if (!detail && detail.error().code == Code::kNotFound) return done({WriteResult::Kind::kGone});
    if (detail && detail->info.state == operations::ContainerState::kExited) return done({WriteResult::Kind::kExited});
    if (!status) return done({WriteResult::Kind::kFailed, status.error()});
    if (!detail) return done({WriteResult::Kind::kFailed, detail.error()});
    if (detail->info.state == operations::ContainerState::kCreated) return done({WriteResult::Kind::kNotStarted});
    done(verify_written(container_id, target));
  });
}

WriteResult CpusetWriter::verify_written(const std::string& container_id, const ContainerCpuset& target) const {
  Status matches = check_kernel(container_id, target);
  if (!matches) {
    const Result<std::size_t> moved = deps_.kernel.bring_back(pids_.at(container_id));
    if (!moved) return {WriteResult::Kind::kFailed, moved.error()};
    if (*moved > 0) {
      deps_.log.info("container {}: put {} of its processes back into their own cgroup, which had lost all its CPUs",
                     container_id, *moved);
      matches = check_kernel(container_id, target);
    }
  }
  if (matches) return {WriteResult::Kind::kVerified};
  return {WriteResult::Kind::kElsewhere, matches.error()};
}

void CpusetWriter::list(
    std::function<void(Result<std::vector<operations::Sandbox>>, Result<std::vector<operations::ContainerInfo>>)>
        done) {
  deps_.runtime.list_containers([this, done = std::move(done)](
                                    const Result<std::vector<operations::ContainerInfo>>& containers) {
    deps_.runtime.list_sandboxes([this, done, containers](const Result<std::vector<operations::Sandbox>>& sandboxes) {
      deps_.loop.post([done, containers, sandboxes] { done(sandboxes, containers); });
    });
  });
}

void CpusetWriter::inspect(const std::string& container_id,
                           std::function<void(Result<operations::ContainerDetail>)> done) {
  deps_.runtime.inspect(
      container_id, [this, container_id, done = std::move(done)](const Result<operations::ContainerDetail>& detail) {
        deps_.loop.post([this, container_id, done, detail] {
          if (detail && detail->info.state == operations::ContainerState::kRunning && detail->pid > 0) {
            pids_[container_id] = detail->pid;
          } else {
            pids_.erase(container_id);
          }
          done(detail ? completed(*detail) : detail);
        });
      });
}

/// With what the kernel tells in place of the runtime.
operations::ContainerDetail CpusetWriter::completed(operations::ContainerDetail detail) const {
  const auto pid = pids_.find(detail.info.id);
  if (pid == pids_.end() || (detail.keeps_updates && operations::tells_all(detail.told))) return detail;
  const std::size_t cpus = deps_.kernel.effective_cpus(pid->second).value_or(CpuSet()).size();
  complete(detail, deps_.kernel.resources_of(pid->second, detail.info.id), cpus, deps_.demand_rules);
  return detail;
}

std::optional<CpuSet> CpusetWriter::kernel_cpus(const std::string& container_id) const {
  const auto known = pids_.find(container_id);
  return known == pids_.end() ? std::nullopt : deps_.kernel.effective_cpus(known->second);
}

bool CpusetWriter::is_where(const std::string& container_id, const ContainerCpuset& target) const {
  return container_cpus(container_id) == target.cpus && check_kernel(container_id, target);
}

bool CpusetWriter::is_narrower(const std::string& container_id, const ContainerCpuset& target) const {
  const std::optional<CpuSet> effective = kernel_cpus(container_id);
  return effective && *effective != target.cpus && effective->is_subset_of(target.cpus);
}

std::optional<std::int64_t> CpusetWriter::process_of(const std::string& container_id) const {
  const auto known = pids_.find(container_id);
  return known == pids_.end() ? std::nullopt : std::optional(known->second);
}

std::optional<std::filesystem::path> CpusetWriter::cgroup_of(const std::string& container_id) const {
  const auto known = pids_.find(container_id);
  return known == pids_.end() ? std::nullopt : deps_.kernel.container_directory(known->second, container_id);
}

bool CpusetWriter::has_v1_cpusets() const {
  const auto hierarchy = deps_.kernel.hierarchy();
  return hierarchy && hierarchy->is_v1;
}

std::optional<std::int64_t> CpusetWriter::memory_on(const std::string& container_id, const NodeSet& nodes) const {
  const auto known = pids_.find(container_id);
  const auto by_node = known == pids_.end() ? std::nullopt : deps_.kernel.memory_of(known->second, container_id);
  if (!by_node) return std::nullopt;
  std::int64_t bytes = 0;
  for (const auto& [node, amount] : *by_node) bytes += nodes.contains(node) ? amount : 0;
  return bytes;
}

/// Only in cgroup v1 do those below bound it.
std::optional<std::filesystem::path> CpusetWriter::cgroup_with_nested(const std::string& container_id) const {
  const auto hierarchy = deps_.kernel.hierarchy();
  if (!hierarchy || !hierarchy->is_v1) return std::nullopt;
  auto cgroup = cgroup_of(container_id);
  return cgroup && !child_cgroups(*cgroup).empty() ? cgroup : std::nullopt;
}

std::optional<CpuSet> CpusetWriter::container_cpus(const std::string& container_id) const {
  const auto cgroup = cgroup_of(container_id);
  if (!cgroup) return kernel_cpus(container_id);
  const bool is_v1 = deps_.kernel.hierarchy()->is_v1;
  const auto cpus = read_cpu_list(*cgroup / (is_v1 ? "cpuset.effective_cpus" : "cpuset.cpus.effective"));
  return cpus && !cpus->empty() ? cpus : kernel_cpus(container_id);
}

std::optional<CpuSet> CpusetWriter::configured_cpus(const std::string& container_id) const {
  const auto known = pids_.find(container_id);
  return known == pids_.end() ? std::nullopt : deps_.kernel.configured_cpus(known->second, container_id);
}

CpuSet CpusetWriter::pinned_by_nested(const std::string& container_id) const {
  const auto cgroup = cgroup_with_nested(container_id);
  return cgroup ? nested_cpus(*cgroup) : CpuSet();
}

std::vector<std::string> CpusetWriter::cgroups_of(const std::string& container_id) const {
  const auto pid = pids_.find(container_id);
  return pid == pids_.end() ? std::vector<std::string>() : deps_.kernel.cgroups_of(pid->second);
}

Status CpusetWriter::check_kernel(const std::string& container_id, const ContainerCpuset& target) const {
  const std::optional<CpuSet> effective = kernel_cpus(container_id);
  if (!effective || effective->is_subset_of(target.cpus)) return {};
  return Error{Code::kInternal, fmt::format("the kernel lets process {} run on CPUs {} instead of {}",
                                            pids_.at(container_id), effective->to_string(), target.cpus.to_string())};
}

}  // namespace topolet::engine
