#include "trainer/runtime/tcp/certificate_watch.h"

#include <fmt/format.h>
#include <sys/stat.h>

#include <stdexcept>
#include <utility>

#include "trainer/runtime/tcp/certificates.h"

namespace spes::trainer {

namespace {

constexpr std::chrono::minutes kLookEvery{1};
constexpr std::chrono::hours kCheckEvery{24};

// Also where the clock was set back.
bool IsOver(CertificateWatch::Time since, std::chrono::seconds d, CertificateWatch::Time now) {
  return now - since >= d || now < since;
}

}  // namespace

CertificateWatch::CertificateWatch(TcpSecurity security, std::function<void()> renew, Tell tell,
                                   Time now)
    : security_(std::move(security)),
      renew_(std::move(renew)),
      tell_(std::move(tell)),
      stamp_(StampOf()),
      in_use_(DatesOf(security_)) {
  for (const CertificateDates& dates : in_use_) CheckDates(dates, now);
}

CertificateWatch::Stamp CertificateWatch::StampOf() const {
  Stamp stamp;
  for (const std::string& file : {security_.certificate, security_.key, security_.authority}) {
    struct stat status {};
    const bool there = stat(file.c_str(), &status) == 0;
    stamp.push_back(there ? fmt::format("{} {} {}", status.st_mtim.tv_sec, status.st_mtim.tv_nsec,
                                        status.st_ino)
                          : "");
  }
  return stamp;
}

void CertificateWatch::Look(Time now) {
  if (!IsOver(looked_, kLookEvery, now)) return;
  looked_ = now;
  if (Stamp stamp = StampOf(); stamp != stamp_) {
    stamp_ = std::move(stamp);
    TakeUp(now);
  }
  if (IsOver(checked_, kCheckEvery, now)) CheckInUse(now);
}

void CertificateWatch::TakeUp(Time now) {
  try {
    std::vector<CertificateDates> read = DatesOf(security_);
    for (const CertificateDates& dates : read) CheckDates(dates, now);
    renew_();
    in_use_ = std::move(read);
  } catch (const std::exception& error) {
    return tell_("certificate", fmt::format("{}; what was read before stays in use", error.what()));
  }
  tell_("new certificate", fmt::format("{} is in use for connections from now on and expires on {}",
                                       in_use_.front().which, Date(in_use_.front().until)));
  CheckInUse(now);
}

void CertificateWatch::CheckInUse(Time now) {
  checked_ = now;
  for (const CertificateDates& dates : in_use_) {
    std::string line;
    try {
      line = CheckDates(dates, now);
    } catch (const std::invalid_argument& error) {
      line = error.what();
    }
    if (!line.empty()) tell_("certificate", line);
  }
}

}  // namespace spes::trainer
