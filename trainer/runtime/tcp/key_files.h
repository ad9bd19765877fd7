// What is asked of the files that let members in, and how they are written.
#pragma once

#include <chrono>
#include <string>
#include <vector>

#include "trainer/runtime/tcp/tcp_runtime.h"

namespace spes::trainer {

// From when to when a certificate is valid.
struct CertificateDates {
  std::string which;  // file and name
  std::chrono::system_clock::time_point from, until;
};

// Of the file's first certificate, which is that of the file's owner. Throws std::invalid_argument,
// one line, when it holds none.
CertificateDates DatesOf(const std::string& certificate);

// Of what this side shows and of what it believes: the certificate first, where there is one, and
// the authority that is believed longest, where there is a file of them. Throws as above.
std::vector<CertificateDates> DatesOf(const TcpSecurity& security);

// Throws std::invalid_argument, one line, when it has expired at `now` or is not valid yet; returns
// a line when it expires within 14 days, or nothing.
std::string CheckDates(const CertificateDates& dates, std::chrono::system_clock::time_point now =
                                                          std::chrono::system_clock::now());

// Throws std::invalid_argument, one line, where others than its user may replace the file of a
// private key, or others than its user and group read it; nothing where it is absent.
void CheckPrivate(const std::string& key);

// The file's only line. Throws std::invalid_argument, one line, where it cannot be read, has
// fewer than 16 characters, or where others may read it.
std::string ReadToken(const std::string& path);

// One that nobody guesses, as text without a line end.
std::string NewToken();

// There whole or not at all, also after a power cut; another one in its place is replaced.
// `secret`: for this user alone. Throws std::runtime_error, one line.
void WriteKeyFile(const std::string& path, const std::string& text, bool secret);

}  // namespace spes::trainer
