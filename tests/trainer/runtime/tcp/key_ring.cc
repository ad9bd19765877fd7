#include "tests/trainer/runtime/tcp/key_ring.h"

#include <unistd.h>

#include <chrono>
#include <filesystem>
#include <utility>

#include "trainer/runtime/tcp/keys.h"

namespace spes::trainer {

namespace {

class Scratch {
 public:
  Scratch()
      : path_(std::filesystem::temp_directory_path() / ("spes_keys_" + std::to_string(getpid()))) {}
  ~Scratch() {
    std::error_code error;
    std::filesystem::remove_all(path_, error);
  }
  std::string Make(const std::string& name, const std::string& host, int year = 0) {
    KeysConfig config{.folder = path_ / name, .hosts = {host}, .nodes = 3};
    if (host == "127.0.0.1") config.hosts = {host, "::1", "localhost"};
    using std::chrono::sys_days;
    if (year != 0) config.from = sys_days(std::chrono::year(year) / 1 / 1);
    MakeKeys(config);
    return config.folder;
  }

 private:
  std::filesystem::path path_;
};

Scratch& TheScratch() {
  static Scratch scratch;
  return scratch;
}

}  // namespace

const std::string& KeyRing::Folder() {
  static const std::string folder = TheScratch().Make("good", "127.0.0.1");
  return folder;
}
const std::string& KeyRing::Strangers() {
  static const std::string folder = TheScratch().Make("strangers", "127.0.0.1");
  return folder;
}
const std::string& KeyRing::Elsewhere() {
  static const std::string folder = TheScratch().Make("elsewhere", "trainer.example");
  return folder;
}
const std::string& KeyRing::Expired() {
  static const std::string folder = TheScratch().Make("expired", "127.0.0.1", 2000);
  return folder;
}
const std::string& KeyRing::Future() {
  static const std::string folder = TheScratch().Make("future", "127.0.0.1", 2099);
  return folder;
}

TcpSecurity KeyRing::Coordinator(std::string token, const std::string& folder) {
  TcpSecurity security;
  security.certificate = folder + "/coordinator.pem";
  security.key = folder + "/coordinator-key.pem";
  security.token = std::move(token);
  return security;
}

TcpSecurity KeyRing::Node(std::string token, const std::string& folder) {
  TcpSecurity security;
  security.authority = folder + "/authority.pem";
  security.token = std::move(token);
  return security;
}

TcpSecurity KeyRing::MutualCoordinator() {
  TcpSecurity security = Coordinator("");
  security.authority = Folder() + "/authority.pem";
  security.ask_certificate = true;
  return security;
}

TcpSecurity KeyRing::MutualNode(int node, const std::string& folder) {
  TcpSecurity security = Node("");
  security.certificate = folder + "/node-" + std::to_string(node) + ".pem";
  security.key = folder + "/node-" + std::to_string(node) + "-key.pem";
  return security;
}

}  // namespace spes::trainer
