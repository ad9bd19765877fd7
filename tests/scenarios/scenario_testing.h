// What the tests of scenarios share.
#pragma once

#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <stdexcept>
#include <string>
#include <vector>

#include "scenarios/reader.h"

namespace spes::scenarios {

// A folder of its own for the test, which is removed afterwards.
class TempFolder {
 public:
  TempFolder() {
    std::string pattern = (std::filesystem::temp_directory_path() / "scenarios_XXXXXX").string();
    if (mkdtemp(pattern.data()) == nullptr) throw std::runtime_error("no temporary folder");
    path_ = pattern;
  }
  ~TempFolder() {
    std::error_code ignored;
    std::filesystem::remove_all(path_, ignored);
  }
  TempFolder(const TempFolder&) = delete;
  TempFolder& operator=(const TempFolder&) = delete;

  std::string Path(const std::string& name) const { return (path_ / name).string(); }

  // The path of a file with this text.
  std::string Write(const std::string& name, const std::string& text) const {
    const std::filesystem::path file = path_ / name;
    std::filesystem::create_directories(file.parent_path());
    std::ofstream(file, std::ios::binary) << text;
    return file.string();
  }

 private:
  std::filesystem::path path_;
};

// The message of the std::invalid_argument that f throws, or what happened instead.
template <class F>
std::string ErrorOf(F f) {
  try {
    f();
  } catch (const std::invalid_argument& e) {
    return e.what();
  }
  return "no error";
}

// Four lines, valid: the synthetic language on two nodes.
inline const std::string kSmall =
    "nodes: {count: 2}\n"
    "model: {experts: 4}\n"
    "data: {domains: [{name: toy, synthetic: true, synthetic_tokens: 1000}]}\n"
    "sync: {every: 5}\n";

// kSmall with one of its four sections replaced.
inline std::string With(const std::string& section, const std::string& text) {
  std::string out;
  std::istringstream in(kSmall);
  for (std::string line; std::getline(in, line);) {
    out += (line.starts_with(section + ":") ? section + ": " + text : line) + "\n";
  }
  return out;
}

inline Scenario Parse(const std::string& text, const std::vector<std::string>& overrides = {}) {
  return ParseScenario(text, "s.yaml", overrides);
}

inline std::string ParseError(const std::string& text,
                              const std::vector<std::string>& overrides = {}) {
  return ErrorOf([&] { Parse(text, overrides); });
}

// Sets an environment variable for the life of the object.
class Environment {
 public:
  Environment(const char* name, const std::string& value) : name_(name) {
    if (const char* old = std::getenv(name)) {
      had_ = true;
      old_ = old;
    }
    setenv(name, value.c_str(), 1);
  }
  ~Environment() {
    if (had_) {
      setenv(name_, old_.c_str(), 1);
    } else {
      unsetenv(name_);
    }
  }
  Environment(const Environment&) = delete;
  Environment& operator=(const Environment&) = delete;

 private:
  const char* name_;
  bool had_ = false;
  std::string old_;
};

}  // namespace spes::scenarios
