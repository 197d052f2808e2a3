#include "core/plugin/host/load.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <sys/xattr.h>
#include <unistd.h>

#include <chrono>
#include <cstdlib>
#include <filesystem>
#include <fstream>

#include "core/base/run_in_child.hpp"
#include "core/plugin/host/loaded_config.hpp"
#include "tests/plugin/plugins.hpp"

namespace topolet::plugin {
namespace {

namespace fs = std::filesystem;
using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Not;
using ::testing::SizeIs;

const fs::path kPlugins = TOPOLET_BUILT_PLUGINS;
const fs::path kBroken = TOPOLET_BROKEN_DIR;

std::string refusal(const fs::path& dir, const std::string& name) {
  const auto library = PluginLibrary::load(dir, name);
  if (library) return "loaded";
  EXPECT_THAT(library.error().message, Not(HasSubstr("\n")));
  return library.error().message;
}

std::string create_refusal(const std::string& name) {
  const auto library = PluginLibrary::load(kBroken, name);
  if (!library) return library.error().message;
  const auto policy = library->create({}, make_silent_log());
  return policy ? "created" : policy.error().message;
}

/// A plugin-dir of one's own.
class PluginDir : public ::testing::Test {
 protected:
  PluginDir() {
    std::string path = (fs::temp_directory_path() / "topolet-plugins-XXXXXX").string();
    root_ = fs::canonical(::mkdtemp(path.data()));
    dir_ = root_ / "plugins";
    fs::create_directory(dir_);
    ::chmod(dir_.c_str(), 0755);
  }
  ~PluginDir() override { fs::remove_all(root_); }

  fs::path put_numa(const fs::path& to) {
    fs::copy_file(kPlugins / "numa.so", to);
    ::chmod(to.c_str(), 0755);
    return to;
  }

  fs::path root_;
  fs::path dir_;
};

TEST_F(PluginDir, TellsWhichLibraryAPluginLacksAndTheWayOut) {
  const fs::path library = dir_ / fs::path(TOPOLET_ANOTHER_LIBRARY).filename();
  fs::copy_file(kBroken / "needs-library.so", dir_ / "needs-library.so");
  fs::copy_file(TOPOLET_ANOTHER_LIBRARY, library);
  // In processes of their own: a loader that has found a library once does not look for it again.
  const auto refusal_of_another_process = [this] {
    return run_in_child(std::chrono::minutes(1), [this](const Progress&) { return refusal(dir_, "needs-library"); })
        .text;
  };
  EXPECT_EQ(refusal_of_another_process(), "loaded");
  fs::remove(library);
  EXPECT_EQ(
      refusal_of_another_process(),
      "plugin needs-library: cannot load " + (dir_ / "needs-library.so").string() +
          ": it is linked to the library libtopolet-another.so, which the loader cannot open here (No such file or "
          "directory); install that library, or link what the plugin needs into it statically");
}

TEST_F(PluginDir, LoadsAPluginAndReadsWhatItSaysOfItself) {
  const fs::path file = put_numa(dir_ / "numa.so");
  const auto library = PluginLibrary::load(dir_, "numa");
  ASSERT_TRUE(library) << library.error().message;
  EXPECT_EQ(library->id(), "numa");
  EXPECT_EQ(library->version(), "0.1.0");
  EXPECT_EQ(library->path(), file);
  ASSERT_THAT(library->options(), SizeIs(14));
  EXPECT_EQ(library->options()[2].name(), "numa.strategy");
  EXPECT_THAT(library->options()[2].defaults, ElementsAre("packed"));
  EXPECT_THAT(library->options()[2].allowed, ElementsAre("packed", "spread", "roomy"));
}

TEST_F(PluginDir, FollowsALinkThatStaysInside) {
  put_numa(dir_ / "numa-1.so");
  fs::create_symlink("numa-1.so", dir_ / "numa.so");
  EXPECT_EQ(refusal(dir_, "numa"), "loaded");
}

TEST_F(PluginDir, RefusesALinkThatLeadsOut) {
  put_numa(root_ / "numa.so");
  fs::create_symlink(root_ / "numa.so", dir_ / "numa.so");
  EXPECT_THAT(refusal(dir_, "numa"), AllOf(HasSubstr("plugin numa: "),
                                           HasSubstr("leads out of plugin-dir to " + (root_ / "numa.so").string())));
}

TEST_F(PluginDir, RefusesASiblingDirectoryThatOnlyBeginsTheSame) {
  fs::create_directory(root_ / "plugins-of-others");
  put_numa(root_ / "plugins-of-others" / "numa.so");
  fs::create_symlink(root_ / "plugins-of-others" / "numa.so", dir_ / "numa.so");
  EXPECT_THAT(refusal(dir_, "numa"), HasSubstr("leads out of plugin-dir"));
}

TEST_F(PluginDir, RefusesNamesThatCannotBeEnabled) {
  put_numa(dir_ / "1x.so");
  for (const char* name : {"../numa", "", "NUMA", "a/b", "-x", "1x"}) {
    EXPECT_THAT(refusal(dir_, name), HasSubstr("is not a plugin's name: at most 64 lower-case letters")) << name;
  }
  put_numa(dir_ / "daemon.so");
  EXPECT_THAT(refusal(dir_, "daemon"), HasSubstr("the configuration has a section of that name"));
  for (const char* name : {"audit", "store", "topolet-numa"}) {
    put_numa(dir_ / (std::string(name) + ".so"));
    EXPECT_THAT(refusal(dir_, name), HasSubstr("it is reserved for topolet itself")) << name;
  }
}

TEST_F(PluginDir, NamesThePluginsThereAreWhenOneIsMissing) {
  put_numa(dir_ / "numa.so");
  EXPECT_THAT(refusal(dir_, "nuna"),
              AllOf(HasSubstr("plugin nuna: "), HasSubstr("No such file"), HasSubstr("there are: numa")));
  EXPECT_THAT(refusal(root_ / "nowhere", "numa"), HasSubstr("plugin-dir " + (root_ / "nowhere").string()));
}

TEST_F(PluginDir, RefusesAFileThatOthersCanWrite) {
  const fs::path file = put_numa(dir_ / "numa.so");
  ::chmod(file.c_str(), 0757);
  EXPECT_THAT(refusal(dir_, "numa"), HasSubstr(file.string() + " is writable by others (mode 0757"));
}

TEST_F(PluginDir, RefusesADirectoryThatOthersCanWrite) {
  put_numa(dir_ / "numa.so");
  ::chmod(dir_.c_str(), 01777);
  EXPECT_THAT(refusal(dir_, "numa"), HasSubstr(dir_.string() + " is writable by others (mode 1777"));
}

TEST_F(PluginDir, RefusesAnInnerDirectoryThatOthersCanWrite) {
  fs::create_directory(dir_ / "inner");
  put_numa(dir_ / "inner" / "numa.so");
  fs::create_symlink("inner/numa.so", dir_ / "numa.so");
  ::chmod((dir_ / "inner").c_str(), 0777);
  EXPECT_THAT(refusal(dir_, "numa"), HasSubstr("inner is writable by others"));
}

TEST_F(PluginDir, LetsOnlyRootsAndItsOwnGroupWrite) {
  const fs::path file = put_numa(dir_ / "numa.so");
  ::chmod(file.c_str(), 0775);
  EXPECT_EQ(refusal(dir_, "numa"), "loaded");
  if (::geteuid() != 0) GTEST_SKIP() << "only root can give files away";
  ASSERT_EQ(::chown(file.c_str(), 0, 54321), 0);
  EXPECT_THAT(refusal(dir_, "numa"), HasSubstr("writable by others (mode 0775, group 54321)"));
}

TEST_F(PluginDir, RefusesADirectoryThatAForeignGroupCanWrite) {
  if (::geteuid() != 0) GTEST_SKIP() << "only root can give directories away";
  put_numa(dir_ / "numa.so");
  ASSERT_EQ(::chown(dir_.c_str(), 0, 54321), 0);
  EXPECT_EQ(refusal(dir_, "numa"), "loaded");
  ::chmod(dir_.c_str(), 0775);
  EXPECT_THAT(refusal(dir_, "numa"), HasSubstr(dir_.string() + " is writable by others (mode 0775, group 54321)"));
}

TEST_F(PluginDir, RefusesAFileThatAnAccessListLetsOthersWrite) {
  const fs::path file = put_numa(dir_ / "numa.so");
  struct Entry {
    std::uint16_t tag, permissions;
    std::uint32_t who;
  };
  // As the kernel keeps it: owner, user 54321, group, mask, others.
  const struct {
    std::uint32_t version = 2;
    Entry entries[5] = {{1, 7, ~0U}, {2, 6, 54321}, {4, 5, ~0U}, {16, 7, ~0U}, {32, 5, ~0U}};
  } list;
  if (::setxattr(file.c_str(), "system.posix_acl_access", &list, sizeof list, 0) != 0) {
    GTEST_SKIP() << "this file system keeps no access lists";
  }
  EXPECT_THAT(refusal(dir_, "numa"), HasSubstr(file.string() + " is writable by others (mode 0775"));
  ::chmod(file.c_str(), 0755);
  EXPECT_EQ(refusal(dir_, "numa"), "loaded");
}

TEST_F(PluginDir, RefusesAForeignOwner) {
  if (::geteuid() != 0) GTEST_SKIP() << "only root can give files away";
  const fs::path file = put_numa(dir_ / "numa.so");
  ASSERT_EQ(::chown(file.c_str(), 54321, 0), 0);
  EXPECT_THAT(refusal(dir_, "numa"), HasSubstr(file.string() + " is owned by user 54321"));
  ASSERT_EQ(::chown(file.c_str(), 0, 0), 0);
  ASSERT_EQ(::chown(dir_.c_str(), 54321, 0), 0);
  EXPECT_THAT(refusal(dir_, "numa"), HasSubstr(dir_.string() + " is owned by user 54321"));
}

TEST_F(PluginDir, RefusesAFileThatIsCutOff) {
  const fs::path file = put_numa(dir_ / "numa.so");
  fs::resize_file(file, fs::file_size(file) / 2);
  EXPECT_THAT(refusal(dir_, "numa"), HasSubstr(file.string() + " is truncated"));
}

TEST_F(PluginDir, RefusesWhatIsNoRegularFile) {
  fs::create_directory(dir_ / "dir.so");
  ::mkfifo((dir_ / "fifo.so").c_str(), 0600);
  EXPECT_THAT(refusal(dir_, "dir"), HasSubstr("is not a regular file"));
  EXPECT_THAT(refusal(dir_, "fifo"), HasSubstr("is not a regular file"));
}

TEST_F(PluginDir, RefusesWhatIsNoElfFileForThisMachine) {
  std::ofstream(dir_ / "text.so") << "#!/bin/sh\necho I am a plugin, believe me\n";
  std::ofstream(dir_ / "short.so") << "\177ELF";
  EXPECT_THAT(refusal(dir_, "text"), HasSubstr("text.so is not an ELF file"));
  EXPECT_THAT(refusal(dir_, "short"), HasSubstr("short.so is not an ELF file"));

  const fs::path foreign = put_numa(dir_ / "foreign.so");
  std::fstream file(foreign, std::ios::in | std::ios::out | std::ios::binary);
  file.seekp(18).put('\x15').put('\0');  // e_machine = PowerPC 64
  file.close();
  EXPECT_THAT(refusal(dir_, "foreign"), HasSubstr("is for another architecture (ELF machine 21"));

  const fs::path narrow = put_numa(dir_ / "narrow.so");
  std::fstream(narrow, std::ios::in | std::ios::out | std::ios::binary).seekp(4).put('\1');  // EI_CLASS = 32 bits
  EXPECT_THAT(refusal(dir_, "narrow"), HasSubstr("is for another architecture"));
}

TEST(PluginLibrary, RefusesAnUndefinedSymbolByItsName) {
  EXPECT_EQ(refusal(kBroken, "undefined"), "plugin undefined: cannot load " + (kBroken / "undefined.so").string() +
                                               ": undefined symbol: topolet_no_such_function");
}

TEST(PluginLibrary, RefusesALibraryWithoutTheEntry) {
  EXPECT_EQ(refusal(kBroken, "no-symbol"),
            "plugin no-symbol: " + (kBroken / "no-symbol.so").string() + " does not export topolet_plugin_v1");
}

TEST(PluginLibrary, RefusesAnEntryWithoutCreate) {
  EXPECT_THAT(refusal(kBroken, "no-create"), HasSubstr("no-create.so has no create function in its topolet_plugin_v1"));
}

TEST(PluginLibrary, RefusesOptionsThatClash) {
  EXPECT_EQ(refusal(kBroken, "option-twice"), "plugin option-twice: option depth is declared twice");
}

TEST(PluginLibrary, RefusesAnotherAbi) {
  EXPECT_THAT(refusal(kBroken, "other-major"), HasSubstr("is built for ABI major 2; this topolet loads major 1"));
  EXPECT_THAT(refusal(kBroken, "other-draft"),
              HasSubstr("is built for draft 4 of the ABI; this topolet loads draft 3"));
  EXPECT_THAT(refusal(kBroken, "older-draft"),
              HasSubstr("is built for draft 2 of the ABI; this topolet loads draft 3"));
  EXPECT_THAT(refusal(kBroken, "older-draft"), HasSubstr("rebuild it with the SDK of this topolet"));
}

TEST(PluginLibrary, RefusesAFileWithoutItsIdsName) {
  EXPECT_THAT(refusal(kBroken, "other-id"),
              HasSubstr("has the id 'somebody-else'; its file must be called somebody-else.so"));
}

TEST(PluginLibrary, RefusesABadOptionTable) {
  EXPECT_EQ(refusal(kBroken, "bad-default"),
            "plugin bad-default: the default of option depth: '10' is out of range; it must be between 0 and 9");
}

TEST(PluginLibrary, RefusesTablesThatLeadNowhere) {
  EXPECT_EQ(refusal(kBroken, "no-id"),
            "plugin no-id: " + (kBroken / "no-id.so").string() + " has no id; it is to be the file's name without .so");
  EXPECT_EQ(refusal(kBroken, "null-choices"),
            "plugin null-choices: the list of allowed values of option kind is null, with a count of 2");
  EXPECT_EQ(
      refusal(kBroken, "null-version"),
      "plugin null-version: the version of " + (kBroken / "null-version.so").string() + " is null, with a length of 7");
}

TEST(PluginLibrary, RefusesAPluginThatCannotBeCreated) {
  EXPECT_EQ(create_refusal("create-fails"), "plugin create-fails: create failed: the table of kinds is empty");
  EXPECT_EQ(create_refusal("create-throws"), "plugin create-throws: create threw: no such table");
  EXPECT_EQ(create_refusal("create-gives-nothing"), "plugin create-gives-nothing: create returned no instance");
  EXPECT_EQ(create_refusal("unsized-instance"),
            "unsized-instance: the instance from create has a struct_size of 0; it must be at least 32");
  EXPECT_EQ(create_refusal("unsized-score"),
            "unsized-score: its capability topolet.score/1 has a struct_size of 0; it must be at least 16");
}

TEST(PluginLibrary, RefusesAPluginWhoseAnnotationsHaveNoNames) {
  const auto library = PluginLibrary::load(kBroken, "annotated");
  ASSERT_TRUE(library) << library.error().message;
  const std::map<std::string, std::string> faults = {
      {"unsized", "has a struct_size of 0; it must be at least 24"},
      {"prefixed", "gives the name 'topolet.io/tenant'; it must be the name of an annotation without topolet.io/"},
      {"too-long", "it must be the name of an annotation without topolet.io/: 1 to 63 letters, digits"},
      {"empty", "gives the name ''"},
      {"nowhere", "gives a name that is null, with a length of "},
      {"no-items", "gives names at no address"},
      {"too-many", "gives 65 names; at most 64 are allowed"},
      {"taking-other", "marks the name 'landlord' as taking, which is none of its names"},
      {"taking-nowhere", "marks names at no address as taking"},
      {"taking-null", "marks a value as taking that is null, with a length of "},
      {"taking-too-many", "marks 65 names as taking; at most 64 are allowed"}};
  for (const auto& [names, fault] : faults) {
    const auto made = library->create({{"names", names}}, make_silent_log());
    ASSERT_FALSE(made) << names;
    EXPECT_THAT(made.error().message, HasSubstr("annotated: its capability topolet.annotations/1 ")) << names;
    EXPECT_THAT(made.error().message, HasSubstr(fault)) << names;
  }
}

TEST(PluginLibrary, RefusesStructsThatTheRulesForbid) {
  const auto library = PluginLibrary::load(kBroken, "misshapen");
  ASSERT_TRUE(library) << library.error().message;
  const std::map<std::string, std::string> faults = {
      {"reserved-instance", "has 7 in its field `reserved`, which must be 0"},
      {"reserved", "topolet.score/1 has 7 in its field `reserved`, which must be 0"},
      {"odd-size", "topolet.score/1 has a struct_size of 20, which cannot be: it is a multiple of 8, at most 4096"},
      {"huge", "topolet.score/1 has a struct_size of 4104, which cannot be"},
      {"inconstant", "get_capability gave two answers for topolet.score/1; it must always give the same"}};
  for (const auto& [how, fault] : faults) {
    const auto made = library->create({{"how", how}}, make_silent_log());
    ASSERT_FALSE(made) << how;
    EXPECT_THAT(made.error().message, HasSubstr(fault)) << how;
  }
  EXPECT_TRUE(library->create({{"how", "soundly"}}, make_silent_log()));
}

TEST(PluginLibrary, RefusesUnknownOptionsAndBadValues) {
  const auto library = PluginLibrary::load(kPlugins, "numa");
  ASSERT_TRUE(library) << library.error().message;
  const auto unknown = library->create({{"stratgy", "packed"}}, make_silent_log());
  ASSERT_FALSE(unknown);
  EXPECT_EQ(unknown.error().message, "plugin numa: has no option stratgy");
  const auto bad = library->create({{"strategy", "loose"}}, make_silent_log());
  ASSERT_FALSE(bad);
  EXPECT_EQ(bad.error().message, "plugin numa: option strategy: 'loose' is not packed, spread or roomy");
}

TEST(LoadConfig, ReportsEveryRefusedPluginAndLoadsTheOthers) {
  config::RawConfig raw;
  raw.entries = {{"daemon", "plugin-dir", kBroken.string()}};
  for (const char* name : {"nonsense", "no-symbol", "nowhere", "throws"}) {
    raw.entries.push_back({"plugins", "enable", name});
  }
  const LoadedLibraries loaded = load_config(std::move(raw)).plugins;
  ASSERT_THAT(loaded.libraries, SizeIs(2));
  EXPECT_EQ(loaded.libraries[0].id(), "nonsense");
  EXPECT_EQ(loaded.libraries[1].id(), "throws");
  ASSERT_THAT(loaded.errors, SizeIs(2));
  EXPECT_THAT(loaded.errors[0].message, HasSubstr("plugin no-symbol: "));
  EXPECT_THAT(loaded.errors[1].message, HasSubstr("plugin nowhere: "));
}

}  // namespace
}  // namespace topolet::plugin
