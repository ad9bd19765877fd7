#include "tests/architecture/rules.h"

#include <algorithm>
#include <map>
#include <set>

namespace spes::architecture {
namespace {

using Prefixes = std::vector<std::string>;

bool StartsWithAny(const std::string& text, const Prefixes& prefixes) {
  return std::ranges::any_of(prefixes,
                             [&](const std::string& prefix) { return text.starts_with(prefix); });
}

// What of ours each room may use besides itself.
const std::map<std::string, Prefixes>& OwnUses() {
  static const std::map<std::string, Prefixes> uses = {
      {"sim", {}},
      {"analysis", {}},
      {"trainer", {"sim/", "analysis/records.h", "analysis/recorder.h"}},
      {"scenarios", {"sim/", "analysis/", "trainer/"}},
      {"app", {"sim/", "analysis/", "trainer/", "scenarios/"}},
      {"tests", {"sim/", "analysis/", "trainer/", "scenarios/", "app/"}}};
  return uses;
}

struct Library {
  std::string name;
  Prefixes headers;
  Prefixes places;  // paths that may include them
  Prefixes except;  // and of these not
};

const std::vector<Library>& Libraries() {
  static const std::vector<Library> libraries = {
      {"ns-3", {"ns3/"}, {"sim/ns3/"}, {}},
      {"HDF5", {"hdf5.h", "H5", "hdf5_hl.h"}, {"analysis/hdf5/", "tests/"}, {}},
      {"LibTorch",
       {"torch/", "ATen/", "c10/"},
       {"trainer/", "tests/trainer/", "tests/golden/", "tests/bench/"},
       {"trainer/sync/", "trainer/protocol/", "trainer/wire/", "trainer/runtime/"}},
      {"asio", {"asio"}, {"trainer/runtime/tcp/", "tests/trainer/runtime/tcp/"}, {}},
      {"OpenSSL", {"openssl/"}, {"trainer/runtime/tcp/", "tests/trainer/runtime/tcp/"}, {}},
      {"sentencepiece", {"sentencepiece"}, {"trainer/data/", "tests/trainer/data/"}, {}},
      {"yaml-cpp", {"yaml-cpp/"}, {"scenarios/yaml_tree."}, {}},
      {"CLI11", {"CLI/"}, {"app/"}, {}},
      {"GoogleTest", {"gtest/", "gmock/"}, {"tests/"}, {}},
      {"Google Benchmark", {"benchmark/"}, {"tests/bench/"}, {}},
      {"Eigen", {"Eigen/"}, {""}, {}},
      {"fmt", {"fmt/"}, {""}, {}},
      {"spdlog", {"spdlog/"}, {""}, {}},
      {"nlohmann-json", {"nlohmann/"}, {""}, {}},
      {"xxhash", {"xxhash.h"}, {""}, {}},
      {"zlib", {"zlib.h"}, {""}, {}},
      {"zstd", {"zstd"}, {""}, {}},
      {"the C library and Linux",
       {"sys/",     "linux/",    "netinet/", "arpa/",     "net/",    "bits/",
        "unistd.h", "fcntl.h",   "dlfcn.h",  "pthread.h", "sched.h", "signal.h",
        "poll.h",   "termios.h", "netdb.h",  "stdlib.h",  "time.h",  "immintrin.h",
        "errno.h",  "string.h",  "stdio.h",  "execinfo.h"},
       {""},
       {}},
  };
  return libraries;
}

// Nothing for a header of the C++ library, which has neither a folder nor an extension.
const Library* LibraryOf(const std::string& header, bool* unknown) {
  *unknown = false;
  if (header.find_first_of("./") == std::string::npos) return nullptr;
  for (const Library& library : Libraries()) {
    if (StartsWithAny(header, library.headers)) return &library;
  }
  *unknown = true;
  return nullptr;
}

std::string RoomOf(const std::string& path) { return path.substr(0, path.find('/')); }

class Judge {
 public:
  explicit Judge(const SourceTree& tree) : tree_(tree) {}

  std::vector<std::string> Run() {
    for (const auto& [path, file] : tree_) {
      if (file.lines > kLongestFile) {
        Accuse(path, file.lines,
               "longer than " + std::to_string(kLongestFile) + " lines: one idea per file");
      }
      for (const Include& include : file.includes) {
        if (include.quoted) {
          Own(path, include);
        } else {
          Foreign(path, include);
        }
      }
      if (path.ends_with(".cc")) Together(path);
    }
    return offences_;
  }

 private:
  void Accuse(const std::string& path, int line, const std::string& what) {
    offences_.push_back(path + ":" + std::to_string(line) + ": " + what);
  }

  void Own(const std::string& path, const Include& include) {
    const std::string room = RoomOf(path);
    if (!tree_.contains(include.name)) {
      Accuse(path, include.line,
             "\"" + include.name + "\" is no file of ours, by its path from the root");
      return;
    }
    const auto uses = OwnUses().find(room);
    if (uses == OwnUses().end() ||
        (RoomOf(include.name) != room && !StartsWithAny(include.name, uses->second))) {
      Accuse(path, include.line, room + " may not use " + include.name);
    }
    const bool inside = path.starts_with("sim/ns3/") || path.starts_with("tests/sim/") ||
                        path.starts_with("tests/bench/");
    if (include.name.starts_with("sim/ns3/") && !inside &&
        include.name != "sim/ns3/packet_network.h" && include.name != "sim/ns3/emulation.h") {
      Accuse(path, include.line, include.name + " is private to sim/ns3");
    }
  }

  void Foreign(const std::string& path, const Include& include) {
    bool unknown;
    const Library* library = LibraryOf(include.name, &unknown);
    if (unknown) {
      Accuse(path, include.line,
             "<" + include.name + "> belongs to no library that the architecture test knows");
    } else if (library &&
               (!StartsWithAny(path, library->places) || StartsWithAny(path, library->except))) {
      Accuse(path, include.line, library->name + " has no place here (<" + include.name + ">)");
    }
  }

  // The libraries that a source file sees, through our headers too.
  void Collect(const std::string& path, std::set<std::string>* visited,
               std::set<std::string>* libraries) const {
    const auto found = tree_.find(path);
    if (found == tree_.end() || !visited->insert(path).second) return;
    for (const Include& include : found->second.includes) {
      if (include.quoted) {
        Collect(include.name, visited, libraries);
        continue;
      }
      bool unknown;
      if (const Library* library = LibraryOf(include.name, &unknown)) {
        libraries->insert(library->name);
      }
    }
  }

  void Together(const std::string& path) {
    std::set<std::string> visited, libraries;
    Collect(path, &visited, &libraries);
    if (!libraries.contains("LibTorch")) return;
    for (const char* other : {"ns-3", "fmt", "spdlog"}) {
      if (libraries.contains(other)) {
        Accuse(path, 1, std::string("sees LibTorch and ") + other + " at once");
      }
    }
  }

  const SourceTree& tree_;
  std::vector<std::string> offences_;
};

}  // namespace

std::vector<std::string> Rooms() {
  std::vector<std::string> rooms;
  for (const auto& [room, uses] : OwnUses()) rooms.push_back(room);
  return rooms;
}

std::vector<std::string> Offences(const SourceTree& tree) { return Judge(tree).Run(); }

}  // namespace spes::architecture
