// A relay between a node and its coordinator that cuts, holds and damages what passes.
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <list>
#include <mutex>
#include <string>
#include <thread>

namespace spes::trainer {

class Proxy {
 public:
  // To "127.0.0.1:PORT".
  explicit Proxy(const std::string& target);
  ~Proxy();
  Proxy(const Proxy&) = delete;
  Proxy& operator=(const Proxy&) = delete;

  std::string address() const;

  // All connections that are there.
  void CutAll();
  // Once so many bytes have passed from the nodes on (in all, from the beginning): `cut` of the
  // connections that are there, the one that carries the byte first.
  void CutAfter(std::int64_t bytes, int cut);
  // One bit of the byte that comes after so many from the nodes.
  void DamageAfter(std::int64_t bytes);
  // Nothing passes any more, nothing is closed; new connections are taken and left alone.
  void Hold(bool hold) { hold_ = hold; }
  // Only on the busiest connection that is there.
  void HoldBusiest() { hold_busiest_ = true; }
  // New connections are closed at once.
  void Refuse(bool refuse) { refuse_ = refuse; }

  std::int64_t up_bytes() const { return up_bytes_; }
  std::int64_t down_bytes() const { return down_bytes_; }
  int connections() const { return connections_; }  // so far

 private:
  struct Way {
    int from = -1, to = -1;
    std::string waiting;  // read, not written yet
    std::int64_t bytes = 0;
  };
  struct Pair {
    Way up, down;
    bool held = false;
  };

  void Run();
  void Accept();
  // False: the pair is over.
  bool Move(Way& way, bool up);
  static void Close(Pair& pair);

  std::uint16_t target_;
  int listener_;
  std::uint16_t port_ = 0;
  std::mutex mutex_;
  std::list<Pair> pairs_;
  std::atomic<std::int64_t> up_bytes_ = 0, down_bytes_ = 0;
  std::atomic<int> connections_ = 0;
  std::atomic<bool> hold_ = false, refuse_ = false, hold_busiest_ = false, stop_ = false;
  std::int64_t cut_after_ = -1, damage_after_ = -1;
  int cut_ = 0;
  std::thread thread_;
};

}  // namespace spes::trainer
