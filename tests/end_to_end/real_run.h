// Runs over real connections, process by process.
#pragma once

#include <gtest/gtest.h>

#include <memory>
#include <string>

#include "analysis/hdf5/log_reader.h"
#include "tests/end_to_end/background.h"
#include "tests/end_to_end/program.h"

namespace spes::end_to_end {

// tiny.yaml is there.
class RealRunTest : public ProgramTest {
 protected:
  RealRunTest() { Write("tiny.yaml", TinyScenario()); }

  // Of the world at the end of a run with these options.
  std::string HashOf(const std::string& options, const std::string& log) const {
    const Outcome outcome = Run("tiny.yaml --output " + log + " " + options);
    EXPECT_EQ(outcome.code, 0) << outcome.err;
    return analysis::ReadRunLogHead(Path(log)).world_hash;
  }
  std::unique_ptr<Background> Start(const std::string& options, const std::string& text) const {
    return std::make_unique<Background>(folder.string(), "tiny.yaml " + options, text);
  }
  // What stands behind `words` in a line of the file `text`, once that is there.
  std::string Said(const std::string& text, const std::string& words) const {
    for (int i = 0; i < 3000; ++i) {
      const std::string said = Read(text);
      const std::size_t at = said.find(words);
      if (at != std::string::npos && said.find('\n', at) != std::string::npos) {
        return said.substr(at + words.size(), said.find('\n', at) - at - words.size());
      }
      std::this_thread::sleep_for(std::chrono::milliseconds(10));
    }
    ADD_FAILURE() << "it does not say \"" << words << "\": " << Read(text);
    return "";
  }
  // Where a coordinator that was started with port 0 listens.
  std::string AddressFrom(const std::string& text) const { return Said(text, "listening on "); }
};

}  // namespace spes::end_to_end
