#include "trainer/runtime/tcp/pem.h"

#include <fmt/format.h>
#include <openssl/asn1.h>
#include <openssl/bio.h>
#include <openssl/ec.h>
#include <openssl/err.h>
#include <openssl/pem.h>
#include <openssl/x509v3.h>

#include <array>
#include <cstddef>
#include <stdexcept>

#include "trainer/runtime/tcp/secrets.h"

namespace spes::trainer {

namespace {

using Bio = std::unique_ptr<BIO, FreeOpenSsl<BIO, BIO_free_all>>;

void Check(bool good, const char* what) {
  if (good) return;
  const char* reason = ERR_reason_error_string(ERR_peek_last_error());
  throw std::runtime_error(fmt::format("{}: {}", what, reason ? reason : "OpenSSL fails"));
}

void Extend(X509* certificate, const X509* issuer, int kind, const std::string& value) {
  X509V3_CTX context;
  X509V3_set_ctx_nodb(&context);
  X509V3_set_ctx(&context, const_cast<X509*>(issuer), certificate, nullptr, nullptr, 0);
  const std::unique_ptr<X509_EXTENSION, FreeOpenSsl<X509_EXTENSION, X509_EXTENSION_free>> extension(
      X509V3_EXT_conf_nid(nullptr, &context, kind, value.c_str()));
  Check(extension && X509_add_ext(certificate, extension.get(), -1) == 1, "a certificate");
}

template <class F>
std::string Text(F write) {
  const Bio memory(BIO_new(BIO_s_mem()));
  Check(memory && write(memory.get()) == 1, "PEM");
  char* data = nullptr;
  const long size = BIO_get_mem_data(memory.get(), &data);
  return {data, static_cast<std::size_t>(size)};
}

// Nobody is there to type one.
int NoPassphrase(char*, int, int, void*) { return 0; }

}  // namespace

PrivateKey NewKey() {
  PrivateKey key(EVP_EC_gen("P-256"));
  Check(key != nullptr, "a key");
  return key;
}

Certificate MakeCertificate(const std::string& common_name, EVP_PKEY* key, const Signer* signer,
                            std::time_t from, std::time_t until,
                            const std::vector<std::pair<int, std::string>>& extensions) {
  Certificate certificate(X509_new());
  X509* x = certificate.get();
  Check(x && X509_set_version(x, X509_VERSION_3) == 1, "a certificate");
  std::array<std::byte, 16> serial;
  FillRandom(serial);
  serial[0] &= std::byte{0x7f};
  const std::unique_ptr<BIGNUM, FreeOpenSsl<BIGNUM, BN_free>> number(
      BN_bin2bn(reinterpret_cast<const unsigned char*>(serial.data()),
                static_cast<int>(serial.size()), nullptr));
  Check(BN_to_ASN1_INTEGER(number.get(), X509_get_serialNumber(x)) != nullptr, "a certificate");
  Check(ASN1_TIME_set(X509_getm_notBefore(x), from) && ASN1_TIME_set(X509_getm_notAfter(x), until),
        "a certificate's dates");
  X509_NAME* subject = X509_get_subject_name(x);
  Check(X509_NAME_add_entry_by_NID(subject, NID_commonName, MBSTRING_UTF8,
                                   reinterpret_cast<const unsigned char*>(common_name.data()),
                                   static_cast<int>(common_name.size()), -1, 0) == 1,
        "a certificate's name");
  const X509* issuer = signer ? signer->certificate : x;
  Check(X509_set_issuer_name(x, X509_get_subject_name(issuer)) == 1 && X509_set_pubkey(x, key) == 1,
        "a certificate");
  for (const auto& [kind, value] : extensions) Extend(x, issuer, kind, value);
  Check(X509_sign(x, signer ? signer->key : key, EVP_sha256()) > 0, "a certificate's signature");
  return certificate;
}

std::string Pem(const X509* certificate) {
  return Text([&](BIO* out) { return PEM_write_bio_X509(out, certificate); });
}

std::string Pem(const EVP_PKEY* key) {
  return Text([&](BIO* out) {
    return PEM_write_bio_PKCS8PrivateKey(out, key, nullptr, nullptr, 0, nullptr, nullptr);
  });
}

std::vector<Certificate> ReadCertificates(const std::string& path) {
  const Bio file(BIO_new_file(path.c_str(), "r"));
  std::vector<Certificate> all;
  while (file) {
    Certificate next(PEM_read_bio_X509(file.get(), nullptr, NoPassphrase, nullptr));
    if (!next) break;
    all.push_back(std::move(next));
  }
  ERR_clear_error();
  if (all.empty()) {
    throw std::invalid_argument(fmt::format("{}: no certificate in PEM form", path));
  }
  return all;
}

PrivateKey ReadKey(const std::string& path) {
  const Bio file(BIO_new_file(path.c_str(), "r"));
  PrivateKey key(file ? PEM_read_bio_PrivateKey(file.get(), nullptr, NoPassphrase, nullptr)
                      : nullptr);
  ERR_clear_error();
  if (!key) {
    throw std::invalid_argument(fmt::format("{}: no key in PEM form without a passphrase", path));
  }
  return key;
}

std::time_t SecondsOf(const ASN1_TIME* time) {
  std::tm date{};
  Check(ASN1_TIME_to_tm(time, &date) == 1, "a certificate's date");
  return timegm(&date);
}

}  // namespace spes::trainer
