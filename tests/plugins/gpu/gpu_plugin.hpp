// The plugin, called through its C ABI on a made-up machine, with no files but those that a test writes.
#pragma once

#include <gtest/gtest.h>
#include <topolet/testing.hpp>

#include <cstdint>
#include <string>

#include "tests/plugins/gpu/fake_files.hpp"

namespace topolet::gpu {

using sdk::testing::Container;
using sdk::testing::FakeHost;
using sdk::testing::Ledger;
using sdk::testing::Machine;
using sdk::testing::Plugin;
using sdk::testing::Request;
using sdk::testing::set_of;
using sdk::testing::Verdict;

class GpuPluginTest : public ::testing::Test {
 protected:
  /// The plugin reads only what a test writes.
  Plugin::Values options(const Plugin::Values& more = {}) const {
    Plugin::Values values = {{"sysfs-root", files_.path("sys")},
                             {"proc-root", files_.path("proc")},
                             {"dev-root", files_.path("dev")},
                             {"cdi-dirs", files_.path("etc/cdi")}};
    values.insert(values.end(), more.begin(), more.end());
    return values;
  }

  void gpu(std::uint32_t number, const std::string& address, const sdk::Set& nodes, const std::string& bridge = {}) {
    machine_.device({.name = "nvml" + std::to_string(number),
                     .address = address,
                     .nodes = nodes,
                     .info = {{"NVIDIAUUID", "GPU-" + std::to_string(number)}},
                     .bridge = bridge});
  }

  static Container with(const std::string& gpus) { return {.env = {{"NVIDIA_VISIBLE_DEVICES", gpus}}}; }

  Verdict verdict(const Container& container, const sdk::Set& nodes, const Plugin::Values& more = {},
                  std::uint32_t exclusive = 0) {
    Request request(machine_, ledger_, container, exclusive);
    request.candidate(nodes);
    return Plugin(topolet_plugin_v1, host_, options(more)).score(request)[request.position(nodes)];
  }

  explicit GpuPluginTest(const char* synthetic = "pack:2 numa:2 core:2 pu:1") : machine_(synthetic) {}

  Machine machine_;
  Ledger ledger_{machine_};
  FakeHost host_;
  FakeFiles files_;
};

}  // namespace topolet::gpu
