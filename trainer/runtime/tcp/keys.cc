#include "trainer/runtime/tcp/keys.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <openssl/asn1.h>
#include <openssl/bio.h>
#include <openssl/ec.h>
#include <openssl/err.h>
#include <openssl/evp.h>
#include <openssl/pem.h>
#include <openssl/x509.h>
#include <openssl/x509v3.h>
#include <sys/stat.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <memory>
#include <stdexcept>
#include <string_view>

#include "trainer/runtime/tcp/certificates.h"
#include "trainer/runtime/tcp/secrets.h"

namespace spes::trainer {

namespace {

constexpr int kMaxDays = 36500;
constexpr std::size_t kTokenBytes = 32;
constexpr std::size_t kMinToken = 16;  // characters
constexpr std::chrono::hours kSoon{14 * 24};

template <class T, void (*kFree)(T*)>
struct Free {
  void operator()(T* p) const { kFree(p); }
};
using Key = std::unique_ptr<EVP_PKEY, Free<EVP_PKEY, EVP_PKEY_free>>;
using Certificate = std::unique_ptr<X509, Free<X509, X509_free>>;

void Check(bool good, const char* what) {
  if (good) return;
  const char* reason = ERR_reason_error_string(ERR_peek_last_error());
  throw std::runtime_error(fmt::format("{}: {}", what, reason ? reason : "OpenSSL fails"));
}

struct Signer {
  const X509* certificate;
  EVP_PKEY* key;
};

void Extend(X509* certificate, const X509* issuer, int kind, const std::string& value) {
  X509V3_CTX context;
  X509V3_set_ctx_nodb(&context);
  X509V3_set_ctx(&context, const_cast<X509*>(issuer), certificate, nullptr, nullptr, 0);
  const std::unique_ptr<X509_EXTENSION, Free<X509_EXTENSION, X509_EXTENSION_free>> extension(
      X509V3_EXT_conf_nid(nullptr, &context, kind, value.c_str()));
  Check(extension && X509_add_ext(certificate, extension.get(), -1) == 1, "a certificate");
}

// `signer`: null: itself.
Certificate Make(const KeysConfig& config, const std::string& name, EVP_PKEY* key,
                 const Signer* signer, const std::vector<std::pair<int, std::string>>& extensions) {
  Certificate certificate(X509_new());
  X509* x = certificate.get();
  Check(x && X509_set_version(x, X509_VERSION_3) == 1, "a certificate");
  std::array<std::byte, 16> serial;
  FillRandom(serial);
  serial[0] &= std::byte{0x7f};
  const std::unique_ptr<BIGNUM, Free<BIGNUM, BN_free>> number(
      BN_bin2bn(reinterpret_cast<const unsigned char*>(serial.data()),
                static_cast<int>(serial.size()), nullptr));
  Check(BN_to_ASN1_INTEGER(number.get(), X509_get_serialNumber(x)) != nullptr, "a certificate");
  const std::time_t from = std::chrono::system_clock::to_time_t(config.from);
  const std::time_t until = from + std::time_t{86400} * config.days;
  Check(ASN1_TIME_set(X509_getm_notBefore(x), from) && ASN1_TIME_set(X509_getm_notAfter(x), until),
        "a certificate's dates");
  X509_NAME* subject = X509_get_subject_name(x);
  Check(X509_NAME_add_entry_by_NID(subject, NID_commonName, MBSTRING_UTF8,
                                   reinterpret_cast<const unsigned char*>(name.data()),
                                   static_cast<int>(name.size()), -1, 0) == 1,
        "a certificate's name");
  const X509* issuer = signer ? signer->certificate : x;
  Check(X509_set_issuer_name(x, X509_get_subject_name(issuer)) == 1 && X509_set_pubkey(x, key) == 1,
        "a certificate");
  for (const auto& [kind, value] : extensions) Extend(x, issuer, kind, value);
  Check(X509_sign(x, signer ? signer->key : key, EVP_sha256()) > 0, "a certificate's signature");
  return certificate;
}

Key NewKey() {
  Key key(EVP_EC_gen("P-256"));
  Check(key != nullptr, "a key");
  return key;
}

template <class F>
std::string Pem(F write) {
  const std::unique_ptr<BIO, Free<BIO, BIO_free_all>> memory(BIO_new(BIO_s_mem()));
  Check(memory && write(memory.get()) == 1, "PEM");
  char* data = nullptr;
  const long size = BIO_get_mem_data(memory.get(), &data);
  return {data, static_cast<std::size_t>(size)};
}

std::string Text(const Certificate& certificate) {
  return Pem([&](BIO* out) { return PEM_write_bio_X509(out, certificate.get()); });
}

std::string Text(const Key& key) {
  return Pem([&](BIO* out) {
    return PEM_write_bio_PKCS8PrivateKey(out, key.get(), nullptr, nullptr, 0, nullptr, nullptr);
  });
}

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
    const std::unique_ptr<ASN1_OCTET_STRING, Free<ASN1_OCTET_STRING, ASN1_OCTET_STRING_free>>
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

struct File {
  std::string path, text;
  mode_t mode;
};

void Write(const File& file) {
  const int fd = open(file.path.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, file.mode);
  bool good = fd >= 0 && write(fd, file.text.data(), file.text.size()) ==
                             static_cast<ssize_t>(file.text.size());
  int error = errno;
  if (fd >= 0 && close(fd) != 0 && good) {
    good = false;
    error = errno;
  }
  if (!good) {
    throw std::runtime_error(
        fmt::format("{}: cannot be written: {}", file.path, std::strerror(error)));
  }
}

}  // namespace

std::vector<std::string> MakeKeys(const KeysConfig& config) {
  if (config.hosts.empty()) {
    throw std::invalid_argument("name at least one host that the coordinator is dialled by");
  }
  if (config.nodes < 0) throw std::invalid_argument("a number of nodes below 0");
  if (config.days < 1 || config.days > kMaxDays) {
    throw std::invalid_argument(
        fmt::format("certificates for {} days: it must be from 1 to {}", config.days, kMaxDays));
  }
  const std::string hosts = AlternativeNames(config.hosts);

  const std::string usage = "critical,digitalSignature";
  std::vector<File> files;
  const auto add = [&](const std::string& name, std::string text, bool secret) {
    files.push_back(
        {config.folder + "/" + name, std::move(text), static_cast<mode_t>(secret ? 0600 : 0644)});
  };
  const Key authority_key = NewKey();
  const Certificate authority = Make(config, "spes-sim authority", authority_key.get(), nullptr,
                                     {{NID_basic_constraints, "critical,CA:TRUE,pathlen:0"},
                                      {NID_key_usage, "critical,keyCertSign,cRLSign"},
                                      {NID_subject_key_identifier, "hash"}});
  const Signer signer{authority.get(), authority_key.get()};
  add("authority.pem", Text(authority), false);
  const auto member = [&](const std::string& file, const std::string& name,
                          std::vector<std::pair<int, std::string>> extensions) {
    const Key key = NewKey();
    extensions.insert(extensions.end(), {{NID_basic_constraints, "critical,CA:FALSE"},
                                         {NID_key_usage, usage},
                                         {NID_authority_key_identifier, "keyid"}});
    add(file + ".pem", Text(Make(config, name, key.get(), &signer, extensions)), false);
    add(file + "-key.pem", Text(key), true);
  };
  member("coordinator", "spes-sim coordinator",
         {{NID_subject_alt_name, hosts}, {NID_ext_key_usage, "serverAuth"}});
  for (NodeId node = 0; node < config.nodes; ++node) {
    member(fmt::format("node-{}", node), NodeName(node), {{NID_ext_key_usage, "clientAuth"}});
  }
  std::array<std::byte, kTokenBytes> token;
  FillRandom(token);
  add("token", Hexadecimal(token) + "\n", true);

  std::error_code error;
  std::filesystem::create_directories(config.folder, error);
  if (error) {
    throw std::runtime_error(fmt::format("{}: cannot be made: {}", config.folder, error.message()));
  }
  for (const File& file : files) {
    if (std::filesystem::exists(file.path, error)) {
      throw std::invalid_argument(fmt::format(
          "{} exists already: name another folder, or remove {}", file.path, config.folder));
    }
  }
  std::vector<std::string> paths;
  for (const File& file : files) {
    Write(file);
    paths.push_back(file.path);
  }
  return paths;
}

std::string CheckDates(const std::string& certificate, std::chrono::system_clock::time_point now) {
  const std::unique_ptr<BIO, Free<BIO, BIO_free_all>> file(BIO_new_file(certificate.c_str(), "r"));
  const Certificate read(file ? PEM_read_bio_X509(file.get(), nullptr, nullptr, nullptr) : nullptr);
  ERR_clear_error();
  if (!read) {
    throw std::invalid_argument(fmt::format("{}: no certificate in PEM form", certificate));
  }
  const X509* x = read.get();
  const auto is_before = [](const ASN1_TIME* time, std::chrono::system_clock::time_point at) {
    return ASN1_TIME_cmp_time_t(time, std::chrono::system_clock::to_time_t(at)) < 0;
  };
  const std::string which = fmt::format("{}: the certificate \"{}\"", certificate, CommonName(x));
  if (is_before(X509_get0_notAfter(x), now)) {
    throw std::invalid_argument(
        fmt::format("{} expired on {}: make new keys", which, Date(X509_get0_notAfter(x))));
  }
  if (!is_before(X509_get0_notBefore(x), now + std::chrono::seconds(1))) {
    throw std::invalid_argument(fmt::format("{} is not valid before {}; is the clock right?", which,
                                            Date(X509_get0_notBefore(x))));
  }
  if (!is_before(X509_get0_notAfter(x), now + kSoon)) return "";
  return fmt::format("{} expires on {}", which, Date(X509_get0_notAfter(x)));
}

void CheckPrivate(const std::string& key) {
  struct stat status {};
  if (stat(key.c_str(), &status) == 0 && (status.st_mode & 007)) {
    throw std::invalid_argument(fmt::format("{}: anyone may use this key: chmod 600 it", key));
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

}  // namespace spes::trainer
