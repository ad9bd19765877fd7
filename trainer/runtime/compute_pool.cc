#include "trainer/runtime/compute_pool.h"

#include <algorithm>
#include <stdexcept>
#include <string>
#include <system_error>
#include <utility>

namespace spes::trainer {

ComputePool::ComputePool(int threads) {
  if (threads <= 0) threads = std::max(1, static_cast<int>(std::thread::hardware_concurrency()));
  try {
    for (int i = 0; i < threads; ++i) threads_.emplace_back([this] { Work(); });
  } catch (const std::system_error& error) {
    Close();
    throw std::runtime_error("cannot start " + std::to_string(threads) +
                             " threads: " + error.what());
  }
}

ComputePool::~ComputePool() { Close(); }

void ComputePool::Close() {
  {
    const std::lock_guard lock(mutex_);
    closing_ = true;
    heap_.clear();
  }
  wake_.notify_all();
  for (std::thread& thread : threads_) thread.join();
}

std::future<void> ComputePool::Submit(sim::Time due, std::function<void()> work) {
  std::packaged_task<void()> task(std::move(work));
  std::future<void> result = task.get_future();
  {
    const std::lock_guard lock(mutex_);
    heap_.push_back({due, next_number_++, std::move(task)});
    std::push_heap(heap_.begin(), heap_.end());
  }
  wake_.notify_one();
  return result;
}

void ComputePool::Work() {
  for (;;) {
    std::unique_lock lock(mutex_);
    wake_.wait(lock, [this] { return closing_ || !heap_.empty(); });
    if (heap_.empty()) return;
    std::pop_heap(heap_.begin(), heap_.end());
    Job job = std::move(heap_.back());
    heap_.pop_back();
    lock.unlock();
    job.task();
  }
}

}  // namespace spes::trainer
