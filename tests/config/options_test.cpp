#include "core/config/options.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <sstream>

namespace topolet::config {
namespace {

using std::chrono::milliseconds;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

const std::vector<PluginSection> kNuma = {
    {"numa",
     {{"numa", "policy", OptionType::kString, {"best-effort"}, {"none", "best-effort", "restricted"}, "How strictly."},
      {"numa", "strict", OptionType::kBool, {"false"}, {}, "Whether."},
      {"numa", "width", OptionType::kInt, {"2"}, {}, "How wide."}}}};

RawConfig raw_of(const std::string& text, std::vector<std::string> arguments = {}) {
  arguments.insert(arguments.end(), {"--config", "t.conf"});
  return read_raw(arguments, [&text](const auto&) { return Result<std::string>(text); });
}

Options options_of(const std::string& text, const std::vector<std::string>& arguments = {},
                   const std::vector<PluginSection>& sections = {}) {
  ValidatedConfig checked = validate_config(raw_of(text, arguments), sections);
  for (const ConfigMistake& mistake : checked.mistakes) ADD_FAILURE() << mistake.to_string();
  return checked.options;
}

std::vector<std::string> mistakes_of(const std::string& text, const std::vector<std::string>& arguments = {},
                                     const std::vector<PluginSection>& sections = {}) {
  std::vector<std::string> lines;
  for (const ConfigMistake& mistake : validate_config(raw_of(text, arguments), sections).mistakes) {
    lines.push_back(mistake.to_string());
  }
  return lines;
}

TEST(Options, SayThatAPluginMustBeEnabledForItsFlags) {
  EXPECT_THAT(mistakes_of("", {"--numa.width=1"}), ElementsAre(HasSubstr("unknown option --numa.width (the options")));
  EXPECT_THAT(mistakes_of("", {"--numa.width=1"}), ElementsAre(HasSubstr("--plugins.enable=numa")));
}

TEST(Options, TakeAPluginsOwnWeightWhereNoneIsGiven) {
  std::vector<PluginSection> sections = kNuma;
  sections[0].default_weight = 4;
  EXPECT_EQ(options_of("[plugins]\nenable = numa\n", {}, sections).plugins[0].weight, 4);
  EXPECT_EQ(options_of("[plugins]\nenable = numa\nweight.numa = 2\n", {}, sections).plugins[0].weight, 2);
  EXPECT_EQ(options_of("[plugins]\nenable = numa\n", {}, kNuma).plugins[0].weight, 1);
  EXPECT_THAT(help_text(sections), HasSubstr("--plugins.weight.numa NUMBER (=4)"));
}

TEST(Options, HaveDefaults) {
  const Options options = options_of("");
  EXPECT_EQ(options.daemon.listen, "/run/topolet/topolet.sock");
  EXPECT_EQ(options.daemon.runtime, "/run/containerd/containerd.sock");
  EXPECT_EQ(options.daemon.image, "/run/containerd/containerd.sock");
  EXPECT_EQ(options.daemon.state_dir, "/var/lib/topolet");
  EXPECT_EQ(options.daemon.plugin_dir, TOPOLET_PLUGIN_DIR);
  EXPECT_EQ(options.daemon.log_level, "info");
  EXPECT_EQ(options.daemon.durability, store::Durability::kNormal);
  EXPECT_TRUE(options.placement.reserved_cpus.empty());
  EXPECT_FALSE(options.placement.allowed_cpus.has_value());
  EXPECT_EQ(options.placement.rules.min_shared_cpus, 1U);
  EXPECT_EQ(options.placement.rules.exclusive, placement::ExclusiveRule::kGuaranteedInteger);
  EXPECT_THAT(options.placement.rules.reserved_namespaces, ElementsAre("kube-system"));
  EXPECT_THAT(options.placement.rules.exclusive_namespaces, IsEmpty());
  EXPECT_EQ(options.placement.rules.when_full, placement::WhenFull::kDeny);
  EXPECT_EQ(options.placement.rules.isolated, placement::IsolatedRule::kAnnotated);
  EXPECT_FALSE(options.placement.rules.annotations.has_value()) << "all";
  EXPECT_EQ(options.placement.rules.crash_hold, milliseconds(300000));
  EXPECT_FALSE(options.placement.rules.memory_migrate);
  EXPECT_EQ(options.placement.rules.heal, placement::HealRule::kShared);
  EXPECT_EQ(options.placement.rules.make_room, placement::MakeRoomRule::kAll);
  EXPECT_EQ(options.placement.rules.move_memory_bytes, std::uint64_t{256} << 20);
  EXPECT_EQ(options.placement.pending_timeout, milliseconds(240000));
  EXPECT_EQ(options.placement.deadline, milliseconds(50));
  EXPECT_EQ(options.placement.decision_time, milliseconds(200));
  EXPECT_EQ(options.placement.plugin_timeout, milliseconds(10000));
  EXPECT_FALSE(options.placement.handlers.only.has_value());
  EXPECT_THAT(options.placement.handlers.foreign,
              ElementsAre("kata*", "*firecracker*", "*qemu*", "*clh*", "*-vm", "runhcs*", "urunc*"));
  EXPECT_THAT(options.plugins, IsEmpty());
}

TEST(Options, AreReadFromTheFile) {
  const Options options = options_of(
      "[daemon]\nlisten = /l.sock\nruntime = unix:///r.sock\nimage = /i.sock\nnode-name = n1\ncpu-manager-state = "
      "/c\nstate-dir = "
      "/s\nplugin-dir = /p\n"
      "log-level = debug\ndurability = full\nmax-connections = 9\nmax-memory-mib = 200\nmax-message-mib = "
      "17\nmax-metadata-mib = 2\n"
      "[placement]\nreserved-cpus = 0-1\nallowed-cpus = 0-7\nmin-shared-cpus = 2\nexclusive = never\n"
      "annotations = cpus\nannotations = smt\ncrash-hold = 0\nmemory-migrate = true\n"
      "heal = all\nmake-room = node\nmove-memory = 1Gi\n"
      "reserved-namespaces = a\nreserved-namespaces = b\nexclusive-namespaces = db\nexclusive-namespaces = "
      "t-*\nwhen-full = share\nisolated = prefer\npending-timeout = 1m30s\ndeadline-ms = 7\n"
      "decision-ms = 600000\n"
      "plugin-timeout = 3s\n"
      "handlers = youki\n"
      "[plugins]\nenable = numa\nweight.numa = 3\non-failure.numa = closed\nrequired.numa = true\n"
      "[numa]\npolicy = restricted\n",
      {}, kNuma);
  EXPECT_EQ(options.daemon.listen, "/l.sock");
  EXPECT_EQ(options.daemon.runtime, "/r.sock");
  EXPECT_EQ(options.daemon.image, "/i.sock");
  EXPECT_EQ(options.placement.rules.node_name, "n1");
  EXPECT_EQ(options.daemon.cpu_manager_state, "/c");
  EXPECT_EQ(options.daemon.state_dir, "/s");
  EXPECT_EQ(options.daemon.plugin_dir, "/p");
  EXPECT_EQ(options.daemon.log_level, "debug");
  EXPECT_EQ(options.daemon.durability, store::Durability::kFull);
  EXPECT_EQ(options.daemon.max_connections, 9U);
  EXPECT_EQ(options.daemon.max_memory_bytes, std::size_t{200} << 20);
  EXPECT_EQ(options.daemon.max_message_bytes, 17 << 20);
  EXPECT_EQ(options.daemon.max_metadata_bytes, 2 << 20);
  EXPECT_EQ(options.placement.reserved_cpus, (CpuSet{0, 1}));
  EXPECT_EQ(options.placement.allowed_cpus, CpuSet::range(0, 7));
  EXPECT_EQ(options.placement.rules.min_shared_cpus, 2U);
  EXPECT_EQ(options.placement.rules.exclusive, placement::ExclusiveRule::kNever);
  EXPECT_THAT(options.placement.rules.reserved_namespaces, ElementsAre("a", "b"));
  EXPECT_THAT(options.placement.rules.exclusive_namespaces, ElementsAre("db", "t-*"));
  EXPECT_EQ(options.placement.rules.when_full, placement::WhenFull::kShare);
  EXPECT_EQ(options.placement.rules.isolated, placement::IsolatedRule::kPrefer);
  EXPECT_THAT(options.placement.rules.annotations.value(), ElementsAre("cpus", "smt"));
  EXPECT_EQ(options.placement.rules.crash_hold, milliseconds(0));
  EXPECT_TRUE(options.placement.rules.memory_migrate);
  EXPECT_EQ(options.placement.rules.heal, placement::HealRule::kAll);
  EXPECT_EQ(options.placement.rules.make_room, placement::MakeRoomRule::kNode);
  EXPECT_EQ(options.placement.rules.move_memory_bytes, std::uint64_t{1} << 30);
  EXPECT_EQ(options.placement.pending_timeout, milliseconds(90000));
  EXPECT_EQ(options.placement.deadline, milliseconds(7));
  EXPECT_EQ(options.placement.decision_time, milliseconds(600000));
  EXPECT_EQ(options.placement.plugin_timeout, milliseconds(3000));
  EXPECT_THAT(options.placement.handlers.only.value(), ElementsAre("youki"));
  ASSERT_EQ(options.plugins.size(), 1U);
  EXPECT_EQ(options.plugins[0].name, "numa");
  EXPECT_EQ(options.plugins[0].weight, 3);
  EXPECT_TRUE(options.plugins[0].fail_closed);
  EXPECT_TRUE(options.plugins[0].required);
  EXPECT_EQ(options.plugins[0].values, (OptionValues{{"policy", "restricted"}, {"strict", "false"}, {"width", "2"}}));
}

TEST(Options, SayHowContainersCome) {
  EXPECT_EQ(options_of("").daemon.front, Front::kCri);
  EXPECT_EQ(options_of("").daemon.listen, "/run/topolet/topolet.sock");
  const Options over_nri = options_of("[daemon]\nfront = nri\n");
  EXPECT_EQ(over_nri.daemon.front, Front::kNri);
  EXPECT_EQ(over_nri.daemon.listen, "") << "the kubelet does not connect";
}

TEST(Options, RefuseWhatTheFrontNriCannotDo) {
  EXPECT_THAT(mistakes_of("[daemon]\nfront = nri\n[nri]\nsocket = none\n"),
              ElementsAre(HasSubstr("daemon.front = nri needs the runtime's NRI socket")));
  EXPECT_THAT(mistakes_of("[daemon]\nfront = nri\n[placement]\nexclusive-quota = drop\n"),
              ElementsAre(HasSubstr("placement.exclusive-quota = drop needs daemon.front = cri")));
  EXPECT_THAT(mistakes_of("[daemon]\nfront = cri\n[placement]\nexclusive-quota = drop\n"), IsEmpty());
}

TEST(Options, SayWhatIsDoneWhereAnNriPluginSetsCpus) {
  const Options by_default = options_of("");
  EXPECT_EQ(by_default.nri.socket, "/var/run/nri/nri.sock");
  EXPECT_EQ(by_default.nri.guard, NriGuard::kWarn);
  const Options set = options_of("[nri]\nsocket = none\nguard = deny\n");
  EXPECT_EQ(set.nri.socket, "");
  EXPECT_EQ(set.nri.guard, NriGuard::kDeny);
  EXPECT_EQ(options_of("[nri]\nguard = off\n").nri.guard, NriGuard::kOff);
}

TEST(Options, GiveADecisionFourTimesTheTimeOfACallUnlessItIsSet) {
  const auto decision_time = [](const std::string& placement) {
    return options_of("[placement]\n" + placement).placement.decision_time;
  };
  EXPECT_EQ(decision_time("deadline-ms = 5000\n"), milliseconds(20000));
  EXPECT_EQ(decision_time("deadline-ms = 5\n"), milliseconds(200));
  EXPECT_EQ(decision_time("deadline-ms = 5000\ndecision-ms = 200\n"), milliseconds(200));
  EXPECT_THAT(mistakes_of("[placement]\ndecision-ms = 0\n"),
              ElementsAre("t.conf:2: placement.decision-ms: '0' is out of range; it must be between 1 and 600000"));
}

TEST(Options, KnowWhoGetsCpusOfItsOwnAndThatNoAnnotationMayBeUsed) {
  const Options options = options_of("[placement]\nexclusive = annotated\nannotations = none\n");
  EXPECT_EQ(options.placement.rules.exclusive, placement::ExclusiveRule::kAnnotated);
  EXPECT_THAT(options.placement.rules.annotations.value(), IsEmpty());
}

TEST(Options, SayWhoseContainersAreNotPlaced) {
  EXPECT_THAT(
      options_of("[placement]\nforeign-handlers = my-*\nforeign-handlers = default\n").placement.handlers.foreign,
      ElementsAre("my-*", "default"));
  EXPECT_THAT(options_of("[placement]\nforeign-handlers = none\n").placement.handlers.foreign, IsEmpty());
}

TEST(Mistakes, NameHandlersThatNobodyHas) {
  const auto lines = [](const std::string& line) { return mistakes_of("[placement]\n" + line + "\n"); };
  EXPECT_THAT(lines("handlers = none"), ElementsAre(HasSubstr("write foreign-handlers = *")));
  EXPECT_THAT(lines("handlers = \"runc\""), ElementsAre(HasSubstr("without quotes")));
  EXPECT_THAT(lines("handlers = 'runc'"), ElementsAre(HasSubstr("without quotes")));
  EXPECT_THAT(lines("handlers = kata*"), ElementsAre(HasSubstr("is not the name of a runtime handler")));
  EXPECT_THAT(lines("handlers = a, b"), ElementsAre(HasSubstr("one line for each")));
  EXPECT_THAT(lines("foreign-handlers = \"kata*\""), ElementsAre(HasSubstr("without quotes")));
  EXPECT_THAT(lines("foreign-handlers ="), ElementsAre(HasSubstr("is not the name of a runtime handler")));
  EXPECT_THAT(lines("foreign-handlers = kata[0-9]"), ElementsAre(HasSubstr("is not the name of a runtime handler")));
  EXPECT_THAT(lines("foreign-handlers = none\nforeign-handlers = kata"), ElementsAre(HasSubstr("contradicts")));
  EXPECT_THAT(lines("handlers = runc\nforeign-handlers = kata"),
              ElementsAre(HasSubstr("placement.handlers and placement.foreign-handlers are both set")));
}

TEST(Mistakes, NameNodesThatCannotBe) {
  const auto lines = [](const std::string& name) { return mistakes_of("[daemon]\nnode-name = " + name + "\n"); };
  for (const char* right : {"", "n1", "1", "ip-10-0-0-1.eu-west-1.compute.internal"})
    EXPECT_THAT(lines(right), IsEmpty());
  const std::string label(63, 'a');
  EXPECT_THAT(lines(label + "." + label + "." + label + "." + label), ElementsAre(HasSubstr("daemon.node-name: ")));
  for (const char* wrong : {"N1", "n_1", "n1.", ".n1", "-n1", "n1-", "n..1", "n 1", "n1,n2", "*"}) {
    EXPECT_THAT(lines(wrong), ElementsAre(HasSubstr("is not the name of a node, which has lower-case letters")))
        << wrong;
  }
}

TEST(Mistakes, NameNamespacesThatNobodyHas) {
  const auto lines = [](const std::string& value) {
    return mistakes_of("[placement]\nexclusive-namespaces = " + value + "\n");
  };
  for (const char* right : {"none", "*", "db", "trading-*", "*-gpu"}) EXPECT_THAT(lines(right), IsEmpty()) << right;
  for (const char* wrong : {"", "Db", "a b", "a,b", "\"db\"", "db_1", "-db", "[ab]", "d?"}) {
    EXPECT_THAT(lines(wrong), ElementsAre(HasSubstr("and in which * is any text"))) << wrong;
  }
  EXPECT_THAT(lines("none\nexclusive-namespaces = db"), ElementsAre(HasSubstr("contradicts")));
}

TEST(Mistakes, NameQuotesWhereAWordIsAsked) {
  EXPECT_THAT(mistakes_of("[daemon]\nnode-name = \"n1\"\n"), ElementsAre(HasSubstr("without quotes")));
  EXPECT_THAT(mistakes_of("[placement]\nannotations = 'cpus'\n"), ElementsAre(HasSubstr("without quotes")));
}

TEST(Flags, WinOverTheFile) {
  const Options options = options_of(
      "[daemon]\nlisten = /file\n[placement]\nhandlers = a\nhandlers = b\n[plugins]\nenable = x\n[numa]\nwidth = 1\n",
      {"--daemon.listen=/flag", "--placement.handlers=c", "--plugins.enable=numa", "--numa.width=9"}, kNuma);
  EXPECT_EQ(options.daemon.listen, "/flag");
  EXPECT_THAT(options.placement.handlers.only.value(), ElementsAre("c"));
  ASSERT_EQ(options.plugins.size(), 1U);
  EXPECT_EQ(options.plugins[0].values.find("width")->second, "9");
}

TEST(EnabledPlugins, IsKnownBeforeThePluginsAre) {
  const EnabledPlugins choice = enabled_plugins(raw_of(
      "[daemon]\nplugin-dir = /p\n[plugins]\nenable = gpu\nenable = ../x\nenable = numa\nenable = gpu\n[gpu]\na=b\n"));
  EXPECT_EQ(choice.plugin_dir, "/p");
  EXPECT_THAT(choice.enabled, ElementsAre("gpu", "numa"));
  EXPECT_EQ(enabled_plugins(raw_of("")).plugin_dir, TOPOLET_PLUGIN_DIR);
}

TEST(Mistakes, AreAllReportedAtOnceInTheOrderOfTheFile) {
  EXPECT_THAT(
      mistakes_of("listen = /x\n"
                  "[daemon]\n"
                  "lisen = /x\n"
                  "no equals sign\n"
                  "runtime = tcp://far\n"
                  "log-level = loud\n"
                  "[placment]\n"
                  "x = 1\n"
                  "[placement]\n"
                  "reserved-cpus = 3-1\n"
                  "pending-timeout = soon\n"
                  "min-shared-cpus = -1\n"
                  "deadline-ms = 10\n"
                  "deadline-ms = 20\n"
                  "policy = none\n"
                  "[plugins]\n"
                  "enable = numa\n"
                  "enable = numa\n"
                  "weight.gpu = 4\n"
                  "weight.numa = 1001\n"
                  "on-failure.gpu = open\n"
                  "[numa]\n"
                  "polcy = none\n"
                  "policy = loose\n",
                  {"--daemon.lissen=/x", "--listen=/x", "--daemon.image=x"}, kNuma),
      ElementsAre(
          "t.conf:1: 'listen' stands before any [section]; did you mean daemon.listen?",
          "t.conf:3: unknown key daemon.lisen; did you mean daemon.listen?",
          "t.conf:4: 'no equals sign' has no '='; write key = value",
          "t.conf:5: daemon.runtime: 'tcp://far' is not the address of a unix socket; write unix:///absolute/path",
          "t.conf:6: daemon.log-level: 'loud' is not trace, debug, info, warn, error or off",
          "t.conf:7: unknown section [placment]; did you mean placement? (the section of a plugin is known once the "
          "plugin "
          "is enabled: enable = placment in [plugins])",
          "t.conf:10: placement.reserved-cpus: '3-1' is not a CPU list such as 0-3,8, or none: cannot read '3-1' in "
          "the "
          "list '3-1': the range runs backwards",
          "t.conf:11: placement.pending-timeout: 'soon' is not a duration such as 30s, 5m, 4m30s, 30d or 500ms",
          "t.conf:12: placement.min-shared-cpus: '-1' is out of range; it must be between 0 and 65535",
          "t.conf:14: placement.deadline-ms is already set in line 13",
          "t.conf:15: unknown key placement.policy; did you mean numa.policy?",
          "t.conf:18: plugins.enable = numa is already set in line 17",
          "t.conf:19: plugins.weight.gpu: the plugin 'gpu' is not enabled; add enable = gpu to [plugins], or remove "
          "this line",
          "t.conf:20: plugins.weight.numa: '1001' is out of range; it must be between 0 and 1000",
          "t.conf:21: plugins.on-failure.gpu: the plugin 'gpu' is not enabled; add enable = gpu to [plugins], or "
          "remove "
          "this line",
          "t.conf:23: unknown key numa.polcy; did you mean numa.policy?",
          "t.conf:24: numa.policy: 'loose' is not none, best-effort or restricted",
          "command line: unknown option --daemon.lissen; did you mean --daemon.listen?",
          "command line: unknown option --listen; did you mean --daemon.listen?",
          "command line: daemon.image: 'x' is not the address of a unix socket; write unix:///absolute/path"));
}

TEST(Mistakes, NameNoKeyThatIsFar) {
  EXPECT_THAT(mistakes_of("[daemon]\nqqqqqqqqqqqqqqqq = 1\n"),
              ElementsAre("t.conf:2: unknown key daemon.qqqqqqqqqqqqqqqq"));
}

TEST(Mistakes, NameThePluginThatIsMeant) {
  EXPECT_THAT(mistakes_of("[plugins]\nenable = numa\nweight.nuam = 2\n", {}, kNuma),
              ElementsAre("t.conf:3: unknown key plugins.weight.nuam; did you mean plugins.weight.numa?"));
  EXPECT_THAT(mistakes_of("[Placement]\n"),
              ElementsAre("t.conf:1: unknown section [Placement]; did you mean placement?"));
}

TEST(Mistakes, AreValuesThatContradictEachOther) {
  const std::string text = "[placement]\nannotations = cpus\nannotations = none\n";
  EXPECT_THAT(mistakes_of(text), ElementsAre("t.conf:3: placement.annotations = none contradicts the others; remove "
                                             "it, or all the others"));
  EXPECT_THAT(mistakes_of("[placement]\nannotations = all\n", {"--placement.annotations=cpus"}), IsEmpty());
}

TEST(Mistakes, InASectionOfADisabledPluginAreOneMistake) {
  EXPECT_THAT(mistakes_of("[gpu]\naffinity = require\nkeep-free = true\n"),
              ElementsAre(HasSubstr("t.conf:1: unknown section [gpu]")));
}

TEST(Mistakes, OfAPluginThatCouldNotBeLoadedAreNotGuessed) {
  EXPECT_THAT(mistakes_of("[plugins]\nenable = gpu\nweight.gpu = 2\n[gpu]\naffinity = require\n"), IsEmpty());
}

TEST(Mistakes, IncludeAPluginNameThatIsNone) {
  EXPECT_THAT(mistakes_of("[plugins]\nenable = ../../evil\n"),
              ElementsAre(HasSubstr("t.conf:2: plugins.enable: '../../evil' is not a plugin's name")));
}

TEST(Mistakes, IncludeAFlagGivenTwice) {
  EXPECT_THAT(mistakes_of("", {"--daemon.listen=/a", "--daemon.listen=/b"}),
              ElementsAre("command line: daemon.listen is given twice"));
}

TEST(Options, SurviveAPluginThatNamesAnOptionTwice) {
  const OptionSpec width{"x", "width", OptionType::kInt, {"2"}};
  const Options options = options_of("[plugins]\nenable = x\n[x]\nwidth = 3\n", {}, {{"x", {width, width}}});
  EXPECT_EQ(options.plugins.at(0).values.find("width")->second, "3");
}

TEST(Help, ExplainsEveryOptionWithItsDefault) {
  const std::string help = help_text(kNuma);
  for (const OptionSpec& spec : core_options({"numa"})) EXPECT_THAT(help, HasSubstr("--" + spec.name() + " "));
  for (const char* part :
       {"--config FILE (=/etc/topolet/topolet.conf)", "--check-config", "--help", "--version",
        "[daemon]:", "[placement]:", "[plugins]:", "[numa]:", "--numa.policy WORD (=best-effort)",
        "One of: none, best-effort,", "--numa.strict BOOL (=false)", "--placement.pending-timeout DURATION (=4m)",
        "(=kata*, *firecracker*, ", "--plugins.weight.numa NUMBER (=1)"}) {
    EXPECT_THAT(help, HasSubstr(part));
  }
}

TEST(Help, FitsIntoAHundredColumns) {
  std::istringstream lines(help_text(kNuma));
  for (std::string line; std::getline(lines, line);) EXPECT_LE(line.size(), 100U) << line;
}

TEST(Help, ShowsWeightAndOnFailureWithoutAnyPlugin) {
  EXPECT_THAT(help_text({}), HasSubstr("--plugins.on-failure.NAME WORD (=open)"));
}

}  // namespace
}  // namespace topolet::config
