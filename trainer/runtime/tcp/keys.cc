#include "trainer/runtime/tcp/keys.h"

#include <fmt/format.h>
#include <openssl/err.h>
#include <openssl/x509v3.h>

#include <algorithm>
#include <ctime>
#include <filesystem>
#include <memory>
#include <stdexcept>
#include <string_view>
#include <utility>

#include "trainer/runtime/tcp/certificates.h"
#include "trainer/runtime/tcp/key_files.h"
#include "trainer/runtime/tcp/pem.h"

namespace spes::trainer {

namespace {

namespace fs = std::filesystem;

constexpr int kMaxDays = 36500;
constexpr int kAuthorityDays = 3650;
constexpr std::time_t kDay = 86400;
constexpr const char* kAuthority = "authority";
constexpr const char* kCoordinator = "coordinator";
constexpr const char* kToken = "token";

// "DNS:a.example,IP:10.0.0.1".
std::string AlternativeNames(const std::vector<std::string>& hosts) {
  std::string all;
  for (const std::string& host : hosts) {
    constexpr std::string_view kAllowed =
        "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789.-_:";
    if (host.empty() || host.find_first_not_of(kAllowed) != std::string::npos) {
      throw std::invalid_argument(
          fmt::format("\"{}\" is no name or address of a host (without a port)", host));
    }
    const std::unique_ptr<ASN1_OCTET_STRING, FreeOpenSsl<ASN1_OCTET_STRING, ASN1_OCTET_STRING_free>>
        address(a2i_IPADDRESS(host.c_str()));
    if (!address && host.find(':') != std::string::npos) {
      throw std::invalid_argument(
          fmt::format("\"{}\" is no name or address of a host (without a port)", host));
    }
    all += fmt::format("{}{}:{}", all.empty() ? "" : ",", address ? "IP" : "DNS", host);
  }
  ERR_clear_error();
  return all;
}

// Looks first, then makes everything, then writes.
class KeyMaker {
 public:
  explicit KeyMaker(const KeysConfig& config)
      : config_(config),
        from_(std::chrono::system_clock::to_time_t(config.from)),
        until_(from_ + kDay * config.days) {}

  Keys Make() {
    Check();
    Look();
    if (!missing_.empty() || token_is_missing_) Sign();
    Write();
    for (const std::string& path : keys_.kept) {
      if (path.ends_with(".pem") && !path.ends_with("-key.pem")) Warn(path);
    }
    return std::move(keys_);
  }

 private:
  struct File {
    std::string path, text;
    bool secret;
  };

  std::string Path(const std::string& name) const {
    return (fs::path(config_.folder) / name).string();
  }
  std::string CertificateOf(const std::string& name) const { return Path(name + ".pem"); }
  std::string KeyOf(const std::string& name) const { return Path(name + "-key.pem"); }

  void Check() {
    if (config_.nodes < 0) throw std::invalid_argument("a number of nodes below 0");
    if (config_.days < 1 || config_.days > kMaxDays) {
      throw std::invalid_argument(
          fmt::format("certificates for {} days: it must be from 1 to {}", config_.days, kMaxDays));
    }
    hosts_ = AlternativeNames(config_.hosts);
  }

  // What is there, and whether the rest can be made.
  void Look() {
    const bool certificate = fs::exists(CertificateOf(kAuthority));
    const bool key = fs::exists(KeyOf(kAuthority));
    if (key && !certificate) {
      throw std::invalid_argument(
          fmt::format("{} is there, but not {}: bring it back, or name another folder",
                      KeyOf(kAuthority), CertificateOf(kAuthority)));
    }
    founds_ = !certificate;
    if (certificate) keys_.kept.push_back(CertificateOf(kAuthority));
    if (key) keys_.kept.push_back(KeyOf(kAuthority));
    LookFor(kCoordinator);
    for (int node = 0; node < config_.nodes; ++node) LookFor(fmt::format("node-{}", node));
    token_is_missing_ = !fs::exists(Path(kToken));
    if (!token_is_missing_) keys_.kept.push_back(Path(kToken));

    const auto is_missing = [this](const char* name) {
      return std::find(missing_.begin(), missing_.end(), name) != missing_.end();
    };
    if (is_missing(kCoordinator)) {
      if (config_.hosts.empty()) {
        throw std::invalid_argument(
            fmt::format("{} is to be made: name at least one host that the coordinator is dialled "
                        "by (--host)",
                        CertificateOf(kCoordinator)));
      }
    } else {
      CheckHosts();
    }
    if (founds_ || key || (missing_.empty() && !token_is_missing_)) return;
    throw std::invalid_argument(fmt::format(
        "{} is missing, and only who has {} can make it: bring that key here, or name another "
        "folder to make new keys for all",
        missing_.empty() ? Path(kToken) : CertificateOf(missing_.front()), KeyOf(kAuthority)));
  }

  void LookFor(const std::string& member) {
    const std::string certificate = CertificateOf(member), key = KeyOf(member);
    const bool has_certificate = fs::exists(certificate), has_key = fs::exists(key);
    if (has_certificate != has_key) {
      throw std::invalid_argument(
          fmt::format("{} is there, but not {}: bring that back, or remove this to have both made",
                      has_key ? key : certificate, has_key ? certificate : key));
    }
    if (!has_certificate) return missing_.push_back(member);
    if (founds_) {
      throw std::invalid_argument(fmt::format(
          "{} is there, but not {}, the authority that signed it: bring it back, or name another "
          "folder to make new keys for all",
          certificate, CertificateOf(kAuthority)));
    }
    keys_.kept.insert(keys_.kept.end(), {certificate, key});
  }

  void CheckHosts() const {
    const auto kept = ReadCertificates(CertificateOf(kCoordinator));
    for (const std::string& host : config_.hosts) {
      if (IsFor(kept.front().get(), host)) continue;
      throw std::invalid_argument(fmt::format(
          "{} is for {}, not for {}: remove coordinator.pem and coordinator-key.pem to have them "
          "made for every --host given",
          CertificateOf(kCoordinator), NamesOf(kept.front().get()), host));
    }
  }

  void Add(const std::string& path, std::string text, bool secret) {
    files_.push_back({path, std::move(text), secret});
  }

  void Sign() {
    if (founds_) {
      Found();
    } else if (!missing_.empty()) {
      TakeUp();
    }
    for (const std::string& member : missing_) SignMember(member);
    if (token_is_missing_) Add(Path(kToken), NewToken() + "\n", true);
  }

  void Found() {
    key_ = NewKey();
    const std::time_t until = from_ + kDay * std::max(kAuthorityDays, config_.days);
    authority_ = MakeCertificate("spes-sim authority", key_.get(), nullptr, from_ - kDay, until,
                                 {{NID_basic_constraints, "critical,CA:TRUE,pathlen:0"},
                                  {NID_key_usage, "critical,keyCertSign,cRLSign"},
                                  {NID_subject_key_identifier, "hash"}});
    Add(CertificateOf(kAuthority), Pem(authority_.get()), false);
    Add(KeyOf(kAuthority), Pem(key_.get()), true);
  }

  void TakeUp() {
    const std::string certificate = CertificateOf(kAuthority), key = KeyOf(kAuthority);
    CheckPrivate(key);
    authority_ = std::move(ReadCertificates(certificate).front());
    key_ = ReadKey(key);
    if (X509_check_private_key(authority_.get(), key_.get()) != 1) {
      ERR_clear_error();
      throw std::invalid_argument(fmt::format("{}: not the key of {}", key, certificate));
    }
    CheckDates(DatesOf(certificate), config_.from);
    const ASN1_TIME* end = X509_get0_notAfter(authority_.get());
    const std::time_t left = SecondsOf(end) - from_;
    if (left < until_ - from_) {
      throw std::invalid_argument(
          fmt::format("{} expires on {}, and nothing that it signs may be valid for longer: --days "
                      "{} at most, or name another folder to make new keys for all",
                      certificate, Date(end), left / kDay));
    }
  }

  void SignMember(const std::string& member) {
    const Signer signer{authority_.get(), key_.get()};
    std::vector<std::pair<int, std::string>> extensions = {
        {NID_basic_constraints, "critical,CA:FALSE"},
        {NID_key_usage, "critical,digitalSignature"},
        {NID_authority_key_identifier, "keyid"}};
    std::string name = "spes-sim coordinator";
    if (member == kCoordinator) {
      extensions.insert(extensions.end(),
                        {{NID_subject_alt_name, hosts_}, {NID_ext_key_usage, "serverAuth"}});
    } else {
      name = NodeName(std::stoi(member.substr(member.find('-') + 1)));
      extensions.emplace_back(NID_ext_key_usage, "clientAuth");
    }
    const PrivateKey key = NewKey();
    const Certificate certificate =
        MakeCertificate(name, key.get(), &signer, from_ - kDay, until_, extensions);
    Add(CertificateOf(member), Pem(certificate.get()), false);
    Add(KeyOf(member), Pem(key.get()), true);
  }

  void Write() {
    std::error_code error;
    const bool created = fs::create_directories(config_.folder, error);
    if (error) {
      throw std::runtime_error(
          fmt::format("{}: cannot be made: {}", config_.folder, error.message()));
    }
    try {
      for (const File& file : files_) {
        keys_.made.push_back(file.path);
        WriteKeyFile(file.path, file.text, file.secret);
      }
    } catch (...) {
      for (const std::string& path : keys_.made) fs::remove(path, error);
      if (created) fs::remove(config_.folder, error);
      throw;
    }
  }

  void Warn(const std::string& certificate) {
    std::string line;
    try {
      line = CheckDates(DatesOf(certificate), config_.from);
    } catch (const std::invalid_argument& failed) {
      line = failed.what();
    }
    if (!line.empty()) keys_.warnings.push_back(line);
  }

  const KeysConfig& config_;
  std::time_t from_, until_;  // of members
  std::string hosts_;
  std::vector<std::string> missing_;  // members
  bool token_is_missing_ = false;
  bool founds_ = false;  // a new group
  Certificate authority_;
  PrivateKey key_;
  std::vector<File> files_;
  Keys keys_;
};

}  // namespace

Keys MakeKeys(const KeysConfig& config) { return KeyMaker(config).Make(); }

}  // namespace spes::trainer
