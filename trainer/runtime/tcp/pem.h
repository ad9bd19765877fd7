// Certificates and private keys: made, and as text in PEM form. OpenSSL's types.
#pragma once

#include <openssl/evp.h>
#include <openssl/x509.h>

#include <ctime>
#include <memory>
#include <string>
#include <utility>
#include <vector>

namespace spes::trainer {

template <class T, void (*kFree)(T*)>
struct FreeOpenSsl {
  void operator()(T* p) const { kFree(p); }
};
using PrivateKey = std::unique_ptr<EVP_PKEY, FreeOpenSsl<EVP_PKEY, EVP_PKEY_free>>;
using Certificate = std::unique_ptr<X509, FreeOpenSsl<X509, X509_free>>;

// On the curve P-256. Throws std::runtime_error.
PrivateKey NewKey();

// Whose word a certificate is.
struct Signer {
  const X509* certificate;
  EVP_PKEY* key;
};

// Signed with SHA-256 by `signer`, or by its own key where that is null. `from`, `until`: seconds
// since 1970. `extensions`: OpenSSL's number of the kind, and the value as its configuration files
// have it. Throws std::runtime_error.
Certificate MakeCertificate(const std::string& common_name, EVP_PKEY* key, const Signer* signer,
                            std::time_t from, std::time_t until,
                            const std::vector<std::pair<int, std::string>>& extensions);

// Throw std::runtime_error.
std::string Pem(const X509* certificate);
std::string Pem(const EVP_PKEY* key);

// All that the file holds, at least one; a key without a passphrase. Throw std::invalid_argument,
// one line.
std::vector<Certificate> ReadCertificates(const std::string& path);
PrivateKey ReadKey(const std::string& path);

// Seconds since 1970.
std::time_t SecondsOf(const ASN1_TIME* time);

}  // namespace spes::trainer
