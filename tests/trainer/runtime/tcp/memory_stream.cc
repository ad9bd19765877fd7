#include "tests/trainer/runtime/tcp/memory_stream.h"

#include <algorithm>
#include <cstring>
#include <utility>

namespace spes::trainer {

void MemoryEnd::Say(std::string_view bytes) {
  said_.append(bytes);
  WakeUp(true);
}

void MemoryEnd::Finish() {
  finished_ = true;
  WakeUp(true);
}

void MemoryEnd::WakeUp(bool good) {
  for (auto& f : std::exchange(waiting_, {})) {
    asio::post(io_, [f = std::move(f), good] { f(good); });
  }
}

MemoryStream::MemoryStream(std::shared_ptr<MemoryEnd> end, const std::string& host)
    : end_(std::move(end)) {
  address_ = "127.0.0.1:1";
  host_ = host;
  end_->exists_ = true;
}

IoResult MemoryStream::Read(InPieces pieces) {
  MemoryEnd& end = *end_;
  const std::size_t all = std::min(end.said_.size() - end.read_, end.most_);
  if (all == 0) {
    if (end.finished_) throw StreamError("the other side has closed the connection");
    return {0, Wait::kReadable};
  }
  std::size_t done = 0;
  for (const auto piece : pieces) {
    const std::size_t size = std::min(all - done, piece.size());
    std::memcpy(piece.data(), end.said_.data() + end.read_, size);
    end.read_ += size;
    done += size;
    if (done == all) break;
  }
  return {done, Wait::kNothing};
}

IoResult MemoryStream::Write(OutPieces pieces) {
  std::size_t done = 0;
  for (const auto piece : pieces) {
    const std::size_t size = std::min(end_->most_ - done, piece.size());
    end_->written_.append(reinterpret_cast<const char*>(piece.data()), size);
    done += size;
    if (done == end_->most_) break;
  }
  return {done, Wait::kNothing};
}

void MemoryStream::When(Wait wait, std::function<void(bool)> f) {
  const bool readable = end_->finished_ || end_->read_ < end_->said_.size();
  end_->waiting_.push_back(std::move(f));
  if (wait == Wait::kWritable || readable) end_->WakeUp(true);
}

bool MemoryStream::Discard() noexcept {
  end_->read_ = end_->said_.size();
  return !end_->finished_;
}

void MemoryStream::Close() noexcept {
  end_->closed_ = true;
  end_->WakeUp(false);
}

}  // namespace spes::trainer
