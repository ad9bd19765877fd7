// A coordinator or a node on a thread of its own, for tests to talk to.
#pragma once

#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <deque>
#include <exception>
#include <functional>
#include <future>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "tests/trainer/protocol/memory_recorder.h"
#include "trainer/runtime/tcp/tcp_runtime.h"

namespace spes::trainer {

inline constexpr std::chrono::seconds kPatience{60};

// What both kinds have in common. All but the constructor's work happens on the loop's thread.
class Endpoint {
 public:
  explicit Endpoint(int threads = 1) : pool(threads) {}
  virtual ~Endpoint() { Halt(); }

  // Runs `f` on the loop's thread and returns what it does.
  template <class F>
  auto Get(F f) -> decltype(f()) {
    auto task = std::make_shared<std::packaged_task<decltype(f())()>>(std::move(f));
    auto result = task->get_future();
    {
      const std::lock_guard lock(mutex_);
      todo_.push_back([task] { (*task)(); });
    }
    if (result.wait_for(kPatience) != std::future_status::ready) {
      throw std::runtime_error("the loop does not answer");
    }
    return result.get();
  }

  // Until `f`, called with the lock, is true. False when that does not happen.
  bool Until(const std::function<bool()>& f) {
    std::unique_lock lock(mutex_);
    return changed_.wait_for(lock, kPatience, f);
  }
  bool UntilGot(std::size_t messages) {
    return Until([this, messages] { return got.size() >= messages; });
  }
  bool UntilEvent(const std::string& kind, std::size_t count = 1);

  void Send(NodeId to, Message message) {
    Get([&] {
      runtime->Send(to, std::move(message), 0, [this] {
        const std::lock_guard lock(mutex_);
        ++delivered;
        changed_.notify_all();
      });
    });
  }

  // Ends the loop without a word to anyone; what Run has thrown is in `error`.
  void Halt() {
    if (!thread_.joinable()) return;
    runtime->Stop();
    thread_.join();
  }
  // Ends the loop and closes as Close does.
  void Finish(Seconds d) {
    Halt();
    runtime->Close(d);
  }

  std::vector<std::string> Events(const std::string& kind) {
    return Get([this, kind] { return recorder.Events(kind); });
  }
  TcpNodeStatus StatusOf(NodeId node) {
    return Get([this, node] { return runtime->StatusOf(node); });
  }

  ComputePool pool;
  MemoryRecorder recorder;
  std::unique_ptr<TcpRuntime> runtime;
  // Guarded by the lock of Until.
  std::vector<std::pair<NodeId, Message>> got;
  std::vector<std::pair<NodeId, std::string>> lost;
  std::vector<std::string> renewed;
  int delivered = 0;
  bool ended = false;
  std::exception_ptr error;

 protected:
  void Note(const std::function<void()>& f) {
    const std::lock_guard lock(mutex_);
    f();
    changed_.notify_all();
  }
  void Start();

  std::mutex mutex_;
  std::condition_variable changed_;

 private:
  std::deque<std::function<void()>> todo_;
  std::thread thread_;
};

// Quick to notice, so that tests are; no TLS.
TcpOptions QuickOptions();
TcpSecurity NoTls(std::string token = "");
TcpScenario SomeScenario();

class TestServer : public Endpoint {
 public:
  static TcpServeConfig Config(int nodes);
  TestServer(TcpServeConfig config, std::shared_ptr<const BlockTable> table);
  ~TestServer() override { Halt(); }
  TcpServer& server() { return static_cast<TcpServer&>(*runtime); }
  const std::string& address() const { return address_; }

 private:
  std::string address_;
};

class TestNode : public Endpoint {
 public:
  static TcpJoinConfig Config(const std::string& address, std::optional<NodeId> node = {});
  TestNode(TcpJoinConfig config, std::shared_ptr<const BlockTable> table);
  ~TestNode() override { Halt(); }
  TcpClient& client() { return static_cast<TcpClient&>(*runtime); }

  std::vector<std::string> waited;
};

// What JoinTcp throws; empty: nothing.
std::string WhyNot(TcpJoinConfig config, std::shared_ptr<const BlockTable> table);

}  // namespace spes::trainer
