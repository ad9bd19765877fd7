// Threads for the real work.
#pragma once

#include <condition_variable>
#include <cstdint>
#include <functional>
#include <future>
#include <mutex>
#include <thread>
#include <vector>

#include "sim/units.h"

namespace spes::trainer {

// Runs jobs on a fixed number of threads, those needed soonest first. Thread-safe.
class ComputePool {
 public:
  // 0 threads: one per core. Throws std::runtime_error when the system does not give as many.
  explicit ComputePool(int threads);
  // Drops jobs that have not begun (their futures report a broken promise) and waits for the
  // others.
  ~ComputePool();

  ComputePool(const ComputePool&) = delete;
  ComputePool& operator=(const ComputePool&) = delete;

  int threads() const { return static_cast<int>(threads_.size()); }

  // `due`: when the result is needed; earlier ones run first, equal ones in order of submission.
  // The future carries an exception of `work`.
  std::future<void> Submit(sim::Time due, std::function<void()> work);

 private:
  struct Job {
    sim::Time due;
    std::uint64_t number;
    std::packaged_task<void()> task;
    bool operator<(const Job& other) const {  // a heap has its largest in front
      return due != other.due ? due > other.due : number > other.number;
    }
  };
  void Work();
  void Close();

  std::mutex mutex_;
  std::condition_variable wake_;
  std::vector<Job> heap_;  // std::push_heap order
  std::uint64_t next_number_ = 0;
  bool closing_ = false;
  std::vector<std::thread> threads_;
};

}  // namespace spes::trainer
