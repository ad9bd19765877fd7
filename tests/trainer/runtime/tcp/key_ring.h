// Keys that tests share, made once in each process.
#pragma once

#include <string>

#include "trainer/runtime/tcp/tcp_runtime.h"

namespace spes::trainer {

class KeyRing {
 public:
  // Of a group on 127.0.0.1, ::1 and localhost with 3 nodes.
  static const std::string& Folder();
  // Of another authority.
  static const std::string& Strangers();
  // Made for some other host.
  static const std::string& Elsewhere();
  // Its certificates expired in 2001.
  static const std::string& Expired();
  // Valid from 2099 on.
  static const std::string& Future();

  static TcpSecurity Coordinator(std::string token, const std::string& folder = Folder());
  static TcpSecurity Node(std::string token, const std::string& folder = Folder());
  static TcpSecurity MutualCoordinator();
  static TcpSecurity MutualNode(int node, const std::string& folder = Folder());
};

}  // namespace spes::trainer
