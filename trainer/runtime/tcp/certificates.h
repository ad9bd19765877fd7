// What certificates say, as text. OpenSSL's types.
#pragma once

#include <openssl/x509.h>
#include <openssl/x509_vfy.h>

#include <chrono>
#include <optional>
#include <string>

#include "trainer/protocol/messages.h"

namespace spes::trainer {

// The subject's common name; empty where there is none.
std::string CommonName(const X509* certificate);

// "2026-01-02 03:04 UTC".
std::string Date(const ASN1_TIME* time);
std::string Date(std::chrono::system_clock::time_point time);

// Names and addresses that it is for: "a.example, 10.0.0.1".
std::string NamesOf(const X509* certificate);

// Whether it is for this name or address.
bool IsFor(X509* certificate, const std::string& host);

// A node's certificate has the common name "spes-sim node K".
std::string NodeName(NodeId node);
std::optional<NodeId> NodeOf(const X509* certificate);

// Why a check has failed, one line. `host`: that was dialled; `authority`: the file.
std::string Explain(X509_STORE_CTX* check, const std::string& host, const std::string& authority);

}  // namespace spes::trainer
