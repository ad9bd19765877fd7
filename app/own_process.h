// This program once more, as a child of itself.
#pragma once

#include <sys/types.h>

#include <string>

namespace spes::app {

// In the new process after a fork, where only what is safe in a signal handler is safe. It ends
// when `parent` does, is the first of a process group, and reads nothing; what it says goes to
// `output`. Of other files and sockets of the parent nothing is open once it has become another
// program.
void SetUpChild(int output, pid_t parent);

// The same place: becomes this program with these arguments.
[[noreturn]] void BecomeRun(char* const* arguments, int text, pid_t parent);

// Of what such a process has said, the line that says why it failed: the program's own, or else the
// last.
std::string ErrorLine(const std::string& text_file);

}  // namespace spes::app
