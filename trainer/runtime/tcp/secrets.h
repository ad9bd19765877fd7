// Random numbers that nobody guesses, and proofs that a secret is known.
#pragma once

#include <array>
#include <cstddef>
#include <span>
#include <string>
#include <string_view>

namespace spes::trainer {

using Digest = std::array<std::byte, 32>;  // of SHA-256
using Nonce = std::array<std::byte, 32>;

// From the system's generator. Throws std::runtime_error when it fails.
void FillRandom(std::span<std::byte> bytes);
Nonce RandomNonce();

// HMAC-SHA256 (RFC 2104).
Digest Hmac(std::string_view key, std::string_view text);

// In a time that does not tell where they differ.
bool SameDigest(const Digest& a, const Digest& b);

std::string Hexadecimal(std::span<const std::byte> bytes);

}  // namespace spes::trainer
