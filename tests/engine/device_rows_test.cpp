#include "core/engine/state/device_rows.hpp"

#include <algorithm>
#include <fstream>
#include <iterator>

#include "core/engine/state/write_transition.hpp"
#include "core/topology/discover.hpp"
#include "tests/engine/full_values.hpp"
#include "tests/store/scratch.hpp"

namespace topolet::engine {
namespace {

namespace fs = std::filesystem;
using Rows = std::vector<std::vector<std::string>>;

std::shared_ptr<const topology::Topology> recorded(const std::string& file) {
  const auto machine = topology::discover({.xml_file = fs::path(TOPOLET_TEST_DATA) / "topologies" / file});
  if (!machine) throw std::runtime_error(machine.error().message);
  return *machine;
}

class DeviceRowsTest : public store::StoreTest {
 protected:
  /// One container of full_workload() on that machine.
  static Transition placed_on(std::shared_ptr<const topology::Topology> machine, std::vector<std::string> devices,
                              std::vector<std::string> cdi_devices, std::vector<std::string> used_devices = {}) {
    Transition transition;
    transition.generation = 1;
    transition.topology = machine;
    transition.machine = std::move(machine);
    Change& change = transition.changes.emplace_back();
    change.after = full_allocation(1);
    change.after->workload.devices = std::move(devices);
    change.after->workload.cdi_devices = std::move(cdi_devices);
    change.after->workload.used_devices = std::move(used_devices);
    change.audit.emplace();
    return transition;
  }

  void write(const Transition& transition) const {
    const auto store = open();
    const Status written = engine::write(*store, transition);
    ASSERT_TRUE(written.has_value()) << store::message(written);
  }
};

TEST_F(DeviceRowsTest, TellWhichDevicesTheMachineHas) {
  write(placed_on(recorded("24em64t-2n6c2t-pci.xml"), {}, {}));
  EXPECT_EQ(rows("SELECT name, address, kind, nodes FROM topology_device ORDER BY address, name", 4),
            (Rows{{"sda", "0000:00:1f.2", "block", "0"},
                  {"0000:01:03.0", "0000:01:03.0", "display", "0"},
                  {"eth0", "0000:04:00.0", "network", "0"},
                  {"eth1", "0000:04:00.1", "network", "0"},
                  {"eth2", "0000:05:00.0", "network", "0"},
                  {"ib0", "0000:05:00.0", "network", "0"},
                  {"mlx4_0", "0000:05:00.0", "openfabrics", "0"},
                  {"0000:06:00.0", "0000:06:00.0", "3d", "0"},
                  {"0000:11:00.0", "0000:11:00.0", "3d", "1"},
                  {"0000:14:00.0", "0000:14:00.0", "3d", "1"}}));
}

TEST_F(DeviceRowsTest, TellOfGpusWithoutNamesOfTheirOwn) {
  const auto rows = device_rows(*recorded("nvidia-dgx2.xml"));
  const auto count_on = [&](const NodeSet& node) {
    return std::count_if(rows.begin(), rows.end(), [&](const auto& row) {
      return row.kind == "coprocessor" && row.nodes == node && row.name.starts_with("nvml");
    });
  };
  EXPECT_EQ(count_on({0}), 8);
  EXPECT_EQ(count_on({1}), 8);
}

TEST_F(DeviceRowsTest, TellWhichDevicesAContainerWasGiven) {
  write(placed_on(recorded("24em64t-2n6c2t-pci.xml"), {"/dev/sda", "/dev/fuse"},
                  {"vendor.com/gpu=0000:14:00.0", "nvidia.com/gpu=0"}));
  EXPECT_EQ(value("SELECT devices FROM decided"),
            R"([{"name":"/dev/sda","address":"0000:00:1f.2","nodes":"0"},{"name":"/dev/fuse","nodes":""},)"
            R"({"name":"vendor.com/gpu=0000:14:00.0","address":"0000:14:00.0","nodes":"1"},)"
            R"({"name":"nvidia.com/gpu=0","nodes":""}])");
  EXPECT_EQ(rows("SELECT decision, event, namespace, pod, container, name, address, nodes, cpus, mems "
                 "FROM container_device WHERE nodes <> ''",
                 10),
            (Rows{{"1", "placed", "default", "shop-0", "web", "/dev/sda", "0000:00:1f.2", "0", "4,74", "4"},
                  {"1", "placed", "default", "shop-0", "web", "vendor.com/gpu=0000:14:00.0", "0000:14:00.0", "1",
                   "4,74", "4"}}));
}

TEST_F(DeviceRowsTest, TellAlsoWhichDevicesPluginsSayThatItUses) {
  write(placed_on(recorded("24em64t-2n6c2t-pci.xml"), {"/dev/sda"}, {}, {"0000:00:1f.2", "0000:14:00.0"}));
  EXPECT_EQ(value("SELECT devices FROM decided"), R"([{"name":"/dev/sda","address":"0000:00:1f.2","nodes":"0"},)"
                                                  R"({"name":"0000:14:00.0","address":"0000:14:00.0","nodes":"1"}])")
      << "each once";
}

TEST_F(DeviceRowsTest, AreEmptyWhereNothingWasAskedFor) {
  write(placed_on(recorded("24em64t-2n6c2t-pci.xml"), {}, {}));
  EXPECT_EQ(value("SELECT devices FROM decided"), "");
  EXPECT_EQ(value("SELECT count(*) FROM container_device"), "0");
}

TEST_F(DeviceRowsTest, NameDevicesOfAMachineThatIsNotKnown) {
  Transition transition = placed_on(nullptr, {"/dev/sda"}, {"odd\xff=\"1\""});
  write(transition);
  EXPECT_EQ(rows("SELECT name, nodes FROM container_device", 2),
            (Rows{{"/dev/sda", ""}, {"odd\xef\xbf\xbd=\"1\"", ""}}));
}

TEST_F(DeviceRowsTest, AreWrittenAgainWhenADeviceIsGone) {
  auto machine = std::make_shared<topology::Topology>(*recorded("24em64t-2n6c2t-pci.xml"));
  Transition transition;
  transition.topology = machine;
  write(transition);
  write(transition);
  EXPECT_EQ(value("SELECT count(*) FROM topology"), "1");
  machine->os_devices.pop_back();
  write(transition);
  EXPECT_EQ(value("SELECT count(*) FROM topology"), "2");
  EXPECT_EQ(column("SELECT count(*) FROM topology_device GROUP BY topology"), "10,9");
}

TEST_F(DeviceRowsTest, TellOfADeviceOnceThatIsListedTwice) {
  auto machine = std::make_shared<topology::Topology>(*recorded("24em64t-2n6c2t-pci.xml"));
  machine->os_devices.push_back(machine->os_devices.front());
  Transition transition;
  transition.topology = machine;
  write(transition);
  EXPECT_EQ(value("SELECT count(*) FROM topology_device"), "10");
}

TEST_F(DeviceRowsTest, NeverHaveValuesOfTheEnvironment) {
  Transition transition = placed_on(recorded("24em64t-2n6c2t-pci.xml"), {"/dev/sda"}, {"vendor.com/gpu=0"});
  transition.changes[0].after->workload.env = {{"NVIDIA_VISIBLE_DEVICES", "GPU-0123-of-the-environment"},
                                               {"TOKEN", "known-to-nobody"}};
  RecordedEvent& denied = transition.recorded_events.emplace_back();
  denied.audit.event = AuditEvent::kDenied;
  denied.decision = 2;
  denied.subject = transition.changes[0].after;
  write(transition);
  EXPECT_EQ(value("SELECT count(*) FROM container_device"), "4");
  for (const auto& entry : fs::directory_iterator(directory())) {
    std::ifstream stream(entry.path(), std::ios::binary);
    const std::string bytes{std::istreambuf_iterator<char>(stream), {}};
    for (const char* value : {"GPU-0123-of-the-environment", "known-to-nobody"}) {
      EXPECT_EQ(bytes.find(value), std::string::npos) << entry.path() << " has " << value;
    }
  }
}

}  // namespace
}  // namespace topolet::engine
