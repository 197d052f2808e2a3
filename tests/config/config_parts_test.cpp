// FILE and FILE.d/*.conf: which files count, in which order, and what is said of mistakes in them.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>

#include <filesystem>

#include "core/config/options.hpp"
#include "tests/support/temp_dir.hpp"

namespace topolet::config {
namespace {

namespace fs = std::filesystem;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

class ConfigParts : public testing::Test {
 protected:
  ConfigParts() { fs::create_directory(parts()); }

  std::string main_file() const { return directory_.file("t.conf"); }
  std::string parts() const { return directory_.file("t.conf.d"); }
  std::string part(const std::string& name) const { return parts() + '/' + name; }
  void write_main(const std::string& text) const { directory_.write("t.conf", text); }
  void write(const std::string& name, const std::string& text) const { directory_.write("t.conf.d/" + name, text); }

  RawConfig read(std::vector<std::string> flags = {}) const {
    flags.insert(flags.end(), {"--config", main_file()});
    return read_raw(flags);
  }
  Options options(const std::vector<std::string>& flags = {}) const {
    ValidatedConfig checked = validate_config(read(flags), {});
    for (const ConfigMistake& mistake : checked.mistakes) ADD_FAILURE() << mistake.to_string();
    return checked.options;
  }
  /// With the directory of the test left out.
  std::vector<std::string> told_mistakes() const {
    std::vector<std::string> lines;
    const std::string directory = directory_.file("");
    for (const ConfigMistake& mistake : validate_config(read(), {}).mistakes) {
      std::string line = mistake.to_string();
      EXPECT_EQ(line.rfind(directory, 0), 0U) << line;
      lines.push_back(line.substr(directory.size()));
    }
    return lines;
  }

  TempDir directory_;
};

TEST_F(ConfigParts, CountBeforeTheFileAndInTheOrderOfTheBytesOfTheirNames) {
  write_main("[daemon]\nkeep-mib = 100\nmax-connections = 100\nmax-memory-mib = 200\n");
  write("a.conf", "[daemon]\nkeep-mib = 101\nlog-level = debug\n");
  write("Z.conf", "[daemon]\nkeep-mib = 102\nmax-connections = 102\n");
  write("\xC3\xA9.conf", "[daemon]\nlog-level = warn\n");
  EXPECT_THAT(read().files, ElementsAre(main_file(), part("Z.conf"), part("a.conf"), part("\xC3\xA9.conf")));
  const Options read = options();
  EXPECT_EQ(read.daemon.retention.keep_bytes, 101 << 20);
  EXPECT_EQ(read.daemon.max_connections, 102U);
  EXPECT_EQ(read.daemon.max_memory_bytes, 200U << 20);
  EXPECT_EQ(read.daemon.log_level, "warn");
  EXPECT_EQ(options({"--daemon.log-level=error"}).daemon.log_level, "error") << "the command line counts before all";
}

TEST_F(ConfigParts, ReplaceAllLinesOfAKeyThatMayStandSeveralTimes) {
  write_main("[placement]\nreserved-namespaces = a\nreserved-namespaces = b\nannotations = all\n");
  write("1.conf", "[placement]\nreserved-namespaces = c\nannotations = cpus\nannotations = smt\n");
  write("2.conf", "[placement]\nreserved-namespaces = b\nreserved-namespaces = d\n");
  EXPECT_THAT(options().placement.rules.reserved_namespaces, ElementsAre("b", "d"));
  EXPECT_THAT(*options().placement.rules.annotations, ElementsAre("cpus", "smt"));
  EXPECT_THAT(options({"--placement.reserved-namespaces=e"}).placement.rules.reserved_namespaces, ElementsAre("e"));
}

TEST_F(ConfigParts, SayWhichPluginsAreEnabled) {
  write_main("[plugins]\nenable = numa\nenable = smt\n");
  write("1.conf", "[plugins]\nenable = gpu\n");
  EXPECT_THAT(enabled_plugins(read()).enabled, ElementsAre("gpu"));
  EXPECT_THAT(enabled_plugins(read({"--plugins.enable=numa"})).enabled, ElementsAre("numa"));
}

TEST_F(ConfigParts, LeaveTheRestOfTheFileAlone) {
  write_main("[placement]\nhandlers = runc\n");
  write("1.conf", "[placement]\nforeign-handlers = kata\n");
  EXPECT_THAT(told_mistakes(), ElementsAre(HasSubstr("t.conf:2: placement.handlers and placement.foreign-handlers")));
  write_main("[placement]\nreserved-cpus = 0\n");
  EXPECT_THAT(read().entries.front().value, "0");
}

TEST_F(ConfigParts, AreThoseWhoseNamesEndInConfAndBeginWithNoDot) {
  write_main("[daemon]\nlog-level = info\n");
  for (const char* name : {"x.conf~", ".x.conf.swp", "x.conf.dpkg-old", "x.conf.dpkg-dist", ".#x.conf", ".x.conf",
                           "x.CONF", "#x.conf#", "x.conf.bak", "README"})
    write(name, "[daemon]\nlog-level = nonsense\n");
  fs::create_directory(part("sub"));
  write("sub/y.conf", "[daemon]\nlog-level = nonsense\n");
  const RawConfig raw = read();
  EXPECT_THAT(raw.files, ElementsAre(main_file()));
  EXPECT_EQ(raw.ignored.size(), 11U);
  EXPECT_THAT(told_mistakes(), IsEmpty());
}

TEST_F(ConfigParts, MayBeLinksAsThoseOfAMountedConfigMap) {
  fs::create_directory(part("..2026"));
  write("..2026/x.conf", "[daemon]\nlog-level = debug\n");
  fs::create_directory_symlink("..2026", part("..data"));
  fs::create_symlink("..data/x.conf", part("x.conf"));
  fs::create_symlink("/dev/null", part("y.conf"));
  EXPECT_EQ(options().daemon.log_level, "debug");
  fs::rename(parts(), directory_.file("elsewhere"));
  fs::create_directory_symlink("elsewhere", parts());
  EXPECT_EQ(options().daemon.log_level, "debug") << "their directory may be a link as well";
}

TEST_F(ConfigParts, ThatCannotBeReadAreMistakes) {
  write_main("");
  fs::create_directory(part("a.conf"));
  fs::create_symlink("nowhere", part("b.conf"));
  ASSERT_EQ(::mkfifo(part("c.conf").c_str(), 0600), 0);
  write("d.conf", std::string((1 << 20) + 1, '#'));
  EXPECT_THAT(told_mistakes(), ElementsAre("t.conf.d/a.conf: cannot read the configuration: Is a directory",
                                           "t.conf.d/b.conf: cannot read the configuration: No such file or directory",
                                           "t.conf.d/c.conf: cannot read the configuration: it is not a regular file",
                                           HasSubstr("t.conf.d/d.conf: cannot read the configuration: ")));
}

TEST_F(ConfigParts, CannotBeReadFromWhatIsNoDirectory) {
  fs::remove(parts());
  EXPECT_THAT(told_mistakes(), ElementsAre(HasSubstr("t.conf: cannot read the configuration: No such file")));
  write_main("");
  EXPECT_THAT(told_mistakes(), IsEmpty());
  directory_.write("t.conf.d", "");
  EXPECT_THAT(told_mistakes(), ElementsAre("t.conf.d: cannot read the configuration: Not a directory"));
  fs::remove(parts());
  fs::create_symlink("nowhere", parts());
  EXPECT_THAT(told_mistakes(), ElementsAre("t.conf.d: cannot read the configuration: No such file or directory"));
}

TEST_F(ConfigParts, AreEnoughWithoutTheFile) {
  EXPECT_THAT(told_mistakes(), ElementsAre("t.conf: cannot read the configuration: No such file or directory"));
  write("x.conf~", "");
  EXPECT_THAT(told_mistakes(), ElementsAre("t.conf: cannot read the configuration: No such file or directory"));
  write("x.conf", "[daemon]\nlog-level = debug\n");
  EXPECT_EQ(options().daemon.log_level, "debug");
  EXPECT_THAT(read().files, ElementsAre(part("x.conf")));
}

TEST_F(ConfigParts, AreNamedWithTheLineOfAMistake) {
  write_main("[daemon]\nlog-level = nonsense\nkeep = 1d\nkeep = 2d\n[no-such]\n");
  write("1.conf", "log-level = debug\n[daemon\n[placement]\nexclusive = nonsense\nno-such = 1\n");
  write("2.conf", "[daemon]\nlog-level = info\nkeep = 1d\n\nkeep = 1d\n[nowhere]\nx = y\n");
  EXPECT_THAT(told_mistakes(), ElementsAre(HasSubstr("t.conf:2: daemon.log-level: 'nonsense'"),
                                           "t.conf:4: daemon.keep is already set in line 3",
                                           HasSubstr("t.conf:5: unknown section [no-such]"),
                                           HasSubstr("t.conf.d/1.conf:1: 'log-level' stands before any [section]"),
                                           HasSubstr("t.conf.d/1.conf:2: '[daemon' has no closing ]"),
                                           HasSubstr("t.conf.d/1.conf:4: placement.exclusive: 'nonsense'"),
                                           HasSubstr("t.conf.d/1.conf:5: unknown key placement.no-such"),
                                           "t.conf.d/2.conf:5: daemon.keep is already set in line 3",
                                           HasSubstr("t.conf.d/2.conf:6: unknown section [nowhere]")));
}

TEST_F(ConfigParts, BeginOutsideOfAnySection) {
  write_main("[daemon]\n");
  write("1.conf", "log-level = debug\n");
  EXPECT_THAT(told_mistakes(), ElementsAre(HasSubstr("t.conf.d/1.conf:1: 'log-level' stands before any [section]")));
}

TEST_F(ConfigParts, MayContradictOneAnotherButNotThemselves) {
  write_main("[placement]\nannotations = all\nannotations = cpus\n");
  write("1.conf", "[placement]\nannotations = none\n");
  write("2.conf", "[placement]\nannotations = smt\nannotations = smt\n");
  EXPECT_THAT(told_mistakes(), ElementsAre(HasSubstr("t.conf:2: placement.annotations = all contradicts the others"),
                                           "t.conf.d/2.conf:3: placement.annotations = smt is already set in line 2"));
}

TEST_F(ConfigParts, CountForWhatAReloadCannotChange) {
  write_main("[daemon]\nkeep = 1d\n");
  const RawConfig before = read();
  write("1.conf", "[daemon]\nkeep = 1d\nlog-level = debug\n");
  EXPECT_THAT(keys_needing_restart(before, read()), IsEmpty()) << "it says the same";
  write("1.conf", "[daemon]\nkeep = 2d\n");
  EXPECT_THAT(keys_needing_restart(before, read()), ElementsAre("daemon.keep"));
  fs::remove(part("1.conf"));
  EXPECT_THAT(keys_needing_restart(before, read()), IsEmpty());
}

}  // namespace
}  // namespace topolet::config
