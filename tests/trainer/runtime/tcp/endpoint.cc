#include "tests/trainer/runtime/tcp/endpoint.h"

namespace spes::trainer {

void Endpoint::Start() {
  thread_ = std::thread([this] {
    std::exception_ptr thrown;
    try {
      runtime->Run({}, [this] {
        std::deque<std::function<void()>> todo;
        {
          const std::lock_guard lock(mutex_);
          todo.swap(todo_);
        }
        for (auto& f : todo) f();
      });
    } catch (...) {
      thrown = std::current_exception();
    }
    Note([&] {
      error = thrown;
      ended = true;
    });
  });
}

bool Endpoint::UntilEvent(const std::string& kind, std::size_t count) {
  const auto until = std::chrono::steady_clock::now() + kPatience;
  while (std::chrono::steady_clock::now() < until) {
    if (Events(kind).size() >= count) return true;
  }
  return false;
}

TcpOptions QuickOptions() {
  TcpOptions options;
  options.chunk_bytes = 16 << 10;
  options.beat_every = Seconds(0.2);
  options.dead_after = Seconds(2);
  options.give_up_after = Seconds(4);
  options.handshake_time = Seconds(2);
  return options;
}

TcpSecurity NoTls(std::string token) {
  TcpSecurity security;
  security.tls = false;
  security.token = std::move(token);
  return security;
}

TcpScenario SomeScenario() {
  return {"1234", "model: small\n", [](const std::string& ours, const std::string& theirs) {
            return "the coordinator has " + ours + ", the node " + theirs;
          }};
}

TcpServeConfig TestServer::Config(int nodes) {
  TcpServeConfig config;
  config.address = "127.0.0.1:0";
  config.nodes = nodes;
  config.security = NoTls();
  config.options = QuickOptions();
  config.scenario = SomeScenario();
  return config;
}

TestServer::TestServer(TcpServeConfig config, std::shared_ptr<const BlockTable> table) {
  runtime = ServeTcp(std::move(config), std::move(table), pool, recorder);
  address_ = server().address();
  server().Connect(
      [this](NodeId from, const Message& message) {
        Note([&] { got.emplace_back(from, message); });
      },
      [this](NodeId node, const std::string& why) { Note([&] { lost.emplace_back(node, why); }); });
  Start();
}

TcpJoinConfig TestNode::Config(const std::string& address, std::optional<NodeId> node) {
  TcpJoinConfig config;
  config.address = address;
  config.node = node;
  config.security = NoTls();
  config.options = QuickOptions();
  config.scenario = SomeScenario();
  return config;
}

TestNode::TestNode(TcpJoinConfig config, std::shared_ptr<const BlockTable> table) {
  const std::atomic<bool> stop = false;
  runtime = JoinTcp(std::move(config), std::move(table), pool, recorder, stop,
                    [this](const std::string& why) { waited.push_back(why); });
  client().Connect(
      [this](NodeId from, const Message& message) {
        Note([&] { got.emplace_back(from, message); });
      },
      [this](const std::string& why) { Note([&] { renewed.push_back(why); }); });
  Start();
}

std::string WhyNot(TcpJoinConfig config, std::shared_ptr<const BlockTable> table) {
  constexpr int kTries = 20;
  ComputePool pool(1);
  MemoryRecorder recorder;
  std::atomic<bool> stop = false;
  std::string why;
  int tries = 0;
  try {
    JoinTcp(std::move(config), std::move(table), pool, recorder, stop,
            [&](const std::string& text) {
              if (++tries < kTries) return;
              why = "goes on trying: " + text;
              stop = true;
            });
  } catch (const std::invalid_argument& error) {
    why = error.what();
  }
  return why;
}

}  // namespace spes::trainer
