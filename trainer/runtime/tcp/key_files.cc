#include "trainer/runtime/tcp/key_files.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <openssl/x509.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstddef>
#include <cstring>
#include <fstream>
#include <stdexcept>

#include "trainer/checkpoint/atomic_file.h"
#include "trainer/runtime/tcp/certificates.h"
#include "trainer/runtime/tcp/pem.h"
#include "trainer/runtime/tcp/secrets.h"

namespace spes::trainer {

namespace {

constexpr std::size_t kTokenBytes = 32;
constexpr std::size_t kMinToken = 16;  // characters
constexpr std::chrono::hours kSoon{14 * 24};

// New files have this mode from their first moment on, and nothing that was there is written into.
class FilesOfMode final : public FileSystem {
 public:
  explicit FilesOfMode(mode_t mode) : mode_(mode) {}
  int Open(const std::string& path, int flags) override {
    if ((flags & O_CREAT) == 0) return FileSystem::Open(path, flags);
    unlink(path.c_str());
    return open(path.c_str(), flags | O_EXCL, mode_);
  }

 private:
  mode_t mode_;
};

CertificateDates DatesIn(const std::string& file, const X509* certificate) {
  using std::chrono::system_clock;
  return {fmt::format("{}: the certificate \"{}\"", file, CommonName(certificate)),
          system_clock::from_time_t(SecondsOf(X509_get0_notBefore(certificate))),
          system_clock::from_time_t(SecondsOf(X509_get0_notAfter(certificate)))};
}

}  // namespace

CertificateDates DatesOf(const std::string& certificate) {
  const auto read = ReadCertificates(certificate);
  return DatesIn(certificate, read.front().get());
}

std::vector<CertificateDates> DatesOf(const TcpSecurity& security) {
  std::vector<CertificateDates> all;
  if (!security.certificate.empty()) all.push_back(DatesOf(security.certificate));
  if (security.authority.empty()) return all;
  std::vector<CertificateDates> authorities;
  for (const Certificate& each : ReadCertificates(security.authority)) {
    authorities.push_back(DatesIn(security.authority, each.get()));
  }
  all.push_back(*std::max_element(authorities.begin(), authorities.end(),
                                  [](const auto& a, const auto& b) { return a.until < b.until; }));
  return all;
}

std::string CheckDates(const CertificateDates& dates, std::chrono::system_clock::time_point now) {
  if (dates.until < now) {
    throw std::invalid_argument(
        fmt::format("{} expired on {}: make a new one", dates.which, Date(dates.until)));
  }
  if (dates.from > now) {
    throw std::invalid_argument(fmt::format("{} is not valid before {}; is the clock right?",
                                            dates.which, Date(dates.from)));
  }
  if (dates.until >= now + kSoon) return "";
  return fmt::format("{} expires on {}", dates.which, Date(dates.until));
}

void CheckPrivate(const std::string& key) {
  struct stat status {};
  if (stat(key.c_str(), &status) == 0 && (status.st_mode & 027)) {
    throw std::invalid_argument(
        fmt::format("{}: others may read or replace this key: chmod 600 it", key));
  }
}

std::string ReadToken(const std::string& path) {
  struct stat status {};
  std::ifstream file(path);
  if (!file || stat(path.c_str(), &status) != 0) {
    throw std::invalid_argument(
        fmt::format("{}: cannot be read as the token: {}", path, std::strerror(errno)));
  }
  if (status.st_mode & 077) {
    throw std::invalid_argument(fmt::format("{}: others may use this token: chmod 600 it", path));
  }
  std::string token;
  std::getline(file, token);
  if (token.ends_with('\r')) token.pop_back();
  if (token.size() < kMinToken) {
    throw std::invalid_argument(fmt::format(
        "{}: a token of {} characters can be guessed: {} at least", path, token.size(), kMinToken));
  }
  return token;
}

std::string NewToken() {
  std::array<std::byte, kTokenBytes> token;
  FillRandom(token);
  return Hexadecimal(token);
}

void WriteKeyFile(const std::string& path, const std::string& text, bool secret) {
  FilesOfMode files(secret ? 0600 : 0644);
  AtomicFile file(path, files);
  file.Write(text.data(), text.size());
  file.Commit();
}

}  // namespace spes::trainer
