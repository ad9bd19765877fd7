#include "trainer/runtime/tcp/certificates.h"

#include <fmt/format.h>
#include <openssl/x509v3.h>

#include <charconv>
#include <ctime>
#include <memory>
#include <string_view>

#include "trainer/wire/printable.h"

namespace spes::trainer {

namespace {

constexpr std::string_view kNode = "spes-sim node ";

std::string TextOf(const GENERAL_NAME* name) {
  int type = 0;
  const auto* value = static_cast<const ASN1_STRING*>(GENERAL_NAME_get0_value(name, &type));
  const unsigned char* data = ASN1_STRING_get0_data(value);
  const int length = ASN1_STRING_length(value);
  if (type == GEN_DNS) {
    return Printable({reinterpret_cast<const char*>(data), static_cast<std::size_t>(length)});
  }
  if (type == GEN_IPADD && length == 4) {
    return fmt::format("{}.{}.{}.{}", data[0], data[1], data[2], data[3]);
  }
  if (type == GEN_IPADD && length == 16) {
    std::string text;
    for (int i = 0; i < 16; i += 2) {
      text += fmt::format("{}{:x}", i > 0 ? ":" : "", data[i] << 8 | data[i + 1]);
    }
    return text;
  }
  return "";
}

std::string Text(const std::tm& date) {
  return fmt::format("{:04}-{:02}-{:02} {:02}:{:02} UTC", date.tm_year + 1900, date.tm_mon + 1,
                     date.tm_mday, date.tm_hour, date.tm_min);
}

}  // namespace

std::string Date(const ASN1_TIME* time) {
  std::tm date{};
  return ASN1_TIME_to_tm(time, &date) ? Text(date) : "an unreadable date";
}

std::string Date(std::chrono::system_clock::time_point time) {
  const std::time_t seconds = std::chrono::system_clock::to_time_t(time);
  std::tm date{};
  return gmtime_r(&seconds, &date) ? Text(date) : "an unreadable date";
}

std::string CommonName(const X509* certificate) {
  char text[256];
  const int length = X509_NAME_get_text_by_NID(X509_get_subject_name(certificate), NID_commonName,
                                               text, sizeof(text));
  return length > 0 ? Printable({text, static_cast<std::size_t>(length)}) : std::string();
}

std::string NamesOf(const X509* certificate) {
  const std::unique_ptr<GENERAL_NAMES, void (*)(GENERAL_NAMES*)> names(
      static_cast<GENERAL_NAMES*>(
          X509_get_ext_d2i(certificate, NID_subject_alt_name, nullptr, nullptr)),
      GENERAL_NAMES_free);
  std::string all;
  for (int i = 0; i < sk_GENERAL_NAME_num(names.get()); ++i) {
    const std::string name = TextOf(sk_GENERAL_NAME_value(names.get(), i));
    if (!name.empty()) all += (all.empty() ? "" : ", ") + name;
  }
  return all.empty() ? "no host" : all;
}

bool IsFor(X509* certificate, const std::string& host) {
  return X509_check_ip_asc(certificate, host.c_str(), 0) == 1 ||
         X509_check_host(certificate, host.data(), host.size(),
                         X509_CHECK_FLAG_NO_PARTIAL_WILDCARDS, nullptr) == 1;
}

std::string NodeName(NodeId node) { return fmt::format("{}{}", kNode, node); }

std::optional<NodeId> NodeOf(const X509* certificate) {
  const std::string name = CommonName(certificate);
  if (!name.starts_with(kNode)) return std::nullopt;
  NodeId node = 0;
  const char* end = name.data() + name.size();
  const auto result = std::from_chars(name.data() + kNode.size(), end, node);
  if (result.ec != std::errc() || result.ptr != end || node < 0) return std::nullopt;
  return node;
}

std::string Explain(X509_STORE_CTX* check, const std::string& host, const std::string& authority) {
  const int error = X509_STORE_CTX_get_error(check);
  const X509* certificate = X509_STORE_CTX_get_current_cert(check);
  if (!certificate) return X509_verify_cert_error_string(error);
  const std::string which = fmt::format("the certificate \"{}\"", CommonName(certificate));
  switch (error) {
    case X509_V_ERR_CERT_HAS_EXPIRED:
      return fmt::format("{} expired on {}", which, Date(X509_get0_notAfter(certificate)));
    case X509_V_ERR_CERT_NOT_YET_VALID:
      return fmt::format("{} is not valid before {}; is the clock right?", which,
                         Date(X509_get0_notBefore(certificate)));
    case X509_V_ERR_HOSTNAME_MISMATCH:
    case X509_V_ERR_IP_ADDRESS_MISMATCH:
      return fmt::format("{} is for {}, not for {}", which, NamesOf(certificate), host);
    case X509_V_ERR_UNABLE_TO_GET_ISSUER_CERT:
    case X509_V_ERR_UNABLE_TO_GET_ISSUER_CERT_LOCALLY:
    case X509_V_ERR_UNABLE_TO_VERIFY_LEAF_SIGNATURE:
    case X509_V_ERR_DEPTH_ZERO_SELF_SIGNED_CERT:
    case X509_V_ERR_SELF_SIGNED_CERT_IN_CHAIN:
    case X509_V_ERR_CERT_SIGNATURE_FAILURE:
      return fmt::format(
          "{} was signed by an authority that is not {}", which,
          authority.empty() ? std::string("one the system knows") : "that of " + authority);
    default:
      return fmt::format("{}: {}", which, X509_verify_cert_error_string(error));
  }
}

}  // namespace spes::trainer
