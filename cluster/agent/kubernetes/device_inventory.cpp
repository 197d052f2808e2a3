#include "cluster/agent/kubernetes/device_inventory.hpp"

#include <algorithm>
#include <map>
#include <utility>

#include "cluster/agent/socket_channel.hpp"

namespace topolet::agent {
namespace {

/// At most this many nodes have Linux kernels.
constexpr std::int64_t kMaxNodes = 1024;

/// The largest message that the kubelet's own clients accept.
constexpr int kMaxMessageBytes = 16 << 20;
/// It tells of no changes by itself.
constexpr std::chrono::milliseconds kPeriod{60'000};
/// A kubelet that is back is asked within it.
constexpr std::chrono::milliseconds kRetry{5000};
/// From refresh() until the kubelet is asked: devices are given out after the container's CPUs are.
constexpr std::chrono::milliseconds kDelay{1000};
constexpr std::chrono::milliseconds kPatience{5000};

void add_to_nodes(const v1::ContainerDevices& devices, std::int64_t DeviceCount::*field, DeviceCounts& counts) {
  for (const v1::NUMANode& node : devices.topology().nodes()) {
    if (node.id() < 0 || node.id() >= kMaxNodes) continue;
    counts[devices.resource_name()][static_cast<std::uint32_t>(node.id())].*field += devices.device_ids_size();
  }
}

std::set<std::uint32_t> nodes_of(const v1::ContainerDevices& devices) {
  std::set<std::uint32_t> nodes;
  for (const v1::NUMANode& node : devices.topology().nodes()) {
    if (node.id() >= 0 && node.id() < kMaxNodes) nodes.insert(static_cast<std::uint32_t>(node.id()));
  }
  return nodes;
}

/// Near to all of them, or to more of them than other nodes are, as a container is placed.
std::set<std::uint32_t> nodes_near_most(const v1::ContainerResources& container) {
  std::map<std::uint32_t, int> numbers;
  int most = 0;
  for (const v1::ContainerDevices& devices : container.devices()) {
    for (const std::uint32_t node : nodes_of(devices))
      most = std::max(most, numbers[node] += std::max(1, devices.device_ids_size()));
  }
  std::set<std::uint32_t> nodes;
  for (const auto& [node, number] : numbers) {
    if (number == most) nodes.insert(node);
  }
  return nodes;
}

}  // namespace

DeviceInventory::State count_devices(const v1::AllocatableResourcesResponse& allocatable,
                                     const v1::ListPodResourcesResponse& list) {
  DeviceInventory::State state;
  for (const v1::ContainerDevices& devices : allocatable.devices())
    add_to_nodes(devices, &DeviceCount::allocatable, state.counts);
  for (const v1::PodResources& pod : list.pod_resources()) {
    for (const v1::ContainerResources& container : pod.containers()) {
      if (std::set<std::uint32_t> near = nodes_near_most(container); !near.empty())
        state.near[{pod.namespace_(), pod.name()}][container.name()] = std::move(near);
      for (const v1::ContainerDevices& devices : container.devices()) {
        auto& given = state.given[{pod.namespace_(), pod.name()}][container.name()];
        given[devices.resource_name()] += devices.device_ids_size();
        // One that is no longer given out takes nothing from what is.
        if (state.counts.contains(devices.resource_name())) add_to_nodes(devices, &DeviceCount::used, state.counts);
      }
    }
  }
  return state;
}

DeviceInventory::DeviceInventory(api::HttpLoop& loop, const std::string& socket, std::function<void()> on_change,
                                 Log& log)
    : loop_(loop),
      on_change_(std::move(on_change)),
      trouble_("the kubelet does not tell which devices it gives out (" + socket + ")", log),
      stub_(v1::PodResourcesLister::NewStub(connect_to_socket(socket, kMaxMessageBytes))) {}

void DeviceInventory::refresh() {
  is_stale_ = true;
  if (!is_asking_) ask_again(kDelay);
}

void DeviceInventory::forget(const std::string& name_space, const std::string& name) {
  state_.given.erase({name_space, name});
  state_.near.erase({name_space, name});
}

void DeviceInventory::ask_again(std::chrono::milliseconds delay) {
  if (timer_) loop_.cancel(*timer_);
  timer_ = loop_.after(delay, [this] {
    timer_.reset();
    ask();
  });
}

void DeviceInventory::ask() {
  is_asking_ = true;
  is_stale_ = false;
  calls_.call<v1::AllocatableResourcesResponse>(
      kPatience, v1::AllocatableResourcesRequest(),
      [this](auto... arguments) { stub_->async()->GetAllocatableResources(std::move(arguments)...); },
      [this](Result<v1::AllocatableResourcesResponse> answer) {
        loop_.post([this, answer = std::move(answer)]() mutable { take_allocatable(std::move(answer)); });
      });
}

void DeviceInventory::take_allocatable(Result<v1::AllocatableResourcesResponse> answer) {
  if (!answer) return fail(answer.error());
  calls_.call<v1::ListPodResourcesResponse>(
      kPatience, v1::ListPodResourcesRequest(),
      [this](auto... arguments) { stub_->async()->List(std::move(arguments)...); },
      [this, allocatable = *std::move(answer)](Result<v1::ListPodResourcesResponse> list) {
        loop_.post([this, allocatable, list = std::move(list)]() mutable { take_list(allocatable, std::move(list)); });
      });
}

void DeviceInventory::take_list(const v1::AllocatableResourcesResponse& allocatable,
                                Result<v1::ListPodResourcesResponse> answer) {
  if (!answer) return fail(answer.error());
  trouble_.works();
  settle(true, count_devices(allocatable, *answer), kPeriod);
}

void DeviceInventory::fail(const Error& error) {
  const bool is_old = error.code == Code::kUnimplemented;
  trouble_.failed(is_old ? "this kubelet is too old for it (GetAllocatableResources is unknown); zones are published "
                           "without devices"
                         : error.message);
  settle(false, state_, is_old ? kPeriod : kRetry);
}

void DeviceInventory::settle(bool works, State state, std::chrono::milliseconds until_next) {
  is_asking_ = false;
  works_ = works;
  ask_again(is_stale_ ? kDelay : until_next);
  const bool is_first = !std::exchange(is_settled_, true);
  if (!is_first && state == state_) return;
  state_ = std::move(state);
  on_change_();
}

}  // namespace topolet::agent
