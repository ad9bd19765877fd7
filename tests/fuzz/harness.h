// Whatever reads what others have written, as functions of one input. A fuzzer looks for inputs
// that break their promises (./dev fuzz), and the ordinary tests repeat what it has found: inputs
// worth keeping are files in corpus/<name>/.
//
// Another harness is a file fuzz_<name>.cc that defines its function, a line in kHarnesses, a
// folder in corpus/ and its name in CMakeLists.txt.
#pragma once

#include <cstddef>
#include <span>

namespace spes::fuzz {

// True where the input is what the code under test takes, false where that refuses it as it should.
// Throws where a promise is broken, whatever the input.
using Run = bool(std::span<const std::byte> input);

Run FuzzHandshake;
Run FuzzJournal;
Run FuzzWire;

struct Harness {
  const char* name;
  Run* run;
};
inline constexpr Harness kHarnesses[] = {
    {"handshake", FuzzHandshake},
    {"journal", FuzzJournal},
    {"wire", FuzzWire},
};

}  // namespace spes::fuzz
