#include "trainer/runtime/tcp/secrets.h"

#include <openssl/crypto.h>
#include <openssl/evp.h>
#include <openssl/hmac.h>
#include <openssl/rand.h>

#include <stdexcept>

namespace spes::trainer {

void FillRandom(std::span<std::byte> bytes) {
  if (RAND_bytes(reinterpret_cast<unsigned char*>(bytes.data()), static_cast<int>(bytes.size())) !=
      1) {
    throw std::runtime_error("the system has no random numbers");
  }
}

Nonce RandomNonce() {
  Nonce nonce;
  FillRandom(nonce);
  return nonce;
}

Digest Hmac(std::string_view key, std::string_view text) {
  Digest digest;
  unsigned int size = 0;
  if (!HMAC(EVP_sha256(), key.data(), static_cast<int>(key.size()),
            reinterpret_cast<const unsigned char*>(text.data()), text.size(),
            reinterpret_cast<unsigned char*>(digest.data()), &size) ||
      size != digest.size()) {
    throw std::runtime_error("HMAC-SHA256 cannot be computed");
  }
  return digest;
}

bool SameDigest(const Digest& a, const Digest& b) {
  return CRYPTO_memcmp(a.data(), b.data(), a.size()) == 0;
}

std::string Hexadecimal(std::span<const std::byte> bytes) {
  static constexpr char kDigits[] = "0123456789abcdef";
  std::string text;
  for (const std::byte b : bytes) {
    text += kDigits[std::to_integer<int>(b) >> 4];
    text += kDigits[std::to_integer<int>(b) & 15];
  }
  return text;
}

}  // namespace spes::trainer
