// Faster versions of what ns-3's TcpTxBuffer does for every segment, and one that does more.
#pragma once

namespace spes::sim {

// ns-3 3.44 walks the whole window for every segment it sends, and for every segment that it sends
// again it compares the list of the window with itself at every step (inside an assertion), which
// is quadratic: minutes of CPU time after one overflow of a long, fat pipe. The file beside this
// defines three members of ns3::TcpTxBuffer anew, with the same results; the dynamic linker prefers
// the program's definitions to the library's. Were it not to, ns-3 would be slow, not wrong. A
// fourth, Update, notices what was lost when it was sent again, as Linux does.
//
// Does nothing; a call makes the linker take the file out of the library.
void LinkFastTxBuffer();

// False makes them call ns-3's own, for tests of that sameness. Not for use while a network lives.
void SetFastTxBuffer(bool fast);

// How often the versions here have done the work. For tests and benchmarks.
long FastTxBufferCalls();

}  // namespace spes::sim
