// The coordinator's certificate while a run goes on: it expires, and it is renewed.
#pragma once

#include <chrono>
#include <functional>
#include <string>
#include <vector>

#include "trainer/runtime/tcp/key_files.h"
#include "trainer/runtime/tcp/tcp_runtime.h"

namespace spes::trainer {

// Files are looked at once a minute, dates once a day. Used from one thread.
class CertificateWatch {
 public:
  using Time = std::chrono::system_clock::time_point;
  // With one line: what kind of event, what has happened.
  using Tell = std::function<void(const std::string& kind, const std::string& line)>;

  // `renew` has the files of `security` read again for connections from now on, and throws what is
  // wrong with them. To be made before they are read for the first time. Throws
  // std::invalid_argument, one line, on a certificate whose time is over. Tells nothing yet.
  CertificateWatch(TcpSecurity security, std::function<void()> renew, Tell tell, Time now);

  // To be called often. Calls `renew` where the files have changed since they were read; where the
  // new ones are no good, those of before stay in use, and are not tried again until they change.
  // Tells of both, and of dates that are near or over ("certificate").
  void Look(Time now);

  // When the certificate that is in use expires.
  Time expires() const { return in_use_.front().until; }

 private:
  using Stamp = std::vector<std::string>;  // of each file
  Stamp StampOf() const;
  void TakeUp(Time now);
  void CheckInUse(Time now);

  TcpSecurity security_;
  std::function<void()> renew_;
  Tell tell_;
  Stamp stamp_;
  std::vector<CertificateDates> in_use_;
  Time looked_ = {}, checked_ = {};
};

}  // namespace spes::trainer
