// HDF5 identifiers with an owner, and the one place where HDF5's error codes become exceptions.
#pragma once

#include <hdf5.h>

#include <stdexcept>
#include <string>
#include <utility>

namespace spes::analysis {

// An HDF5 call failed. what(): one line, HDF5's innermost cause; for a failed read or write what
// the operating system said ("No space left on device").
class Hdf5Error : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

// Takes the cause from the calling thread's HDF5 error stack.
[[noreturn]] void ThrowHdf5Error();

// Passes on what an HDF5 call returned; throws Hdf5Error where that is negative.
template <class Result>
Result Check(Result result) {
  if (result < 0) ThrowHdf5Error();
  return result;
}

// While it lives, HDF5 prints nothing to stderr from this thread. Where the first one comes before
// any HDF5 call, HDF5 does nothing when the program ends either: it would close what is still open,
// and crashes on a file that it failed to write.
class QuietHdf5 {
 public:
  QuietHdf5();
  ~QuietHdf5();
  QuietHdf5(const QuietHdf5&) = delete;
  QuietHdf5& operator=(const QuietHdf5&) = delete;

 private:
  H5E_auto2_t print_ = nullptr;
  void* data_ = nullptr;
};

// Owns one HDF5 identifier and closes it with the function given.
class Handle {
 public:
  using Close = herr_t (*)(hid_t);

  Handle() = default;
  // Throws Hdf5Error where `id` is what a failed call returned.
  Handle(hid_t id, Close close) : id_(Check(id)), close_(close) {}
  Handle(Handle&& other) noexcept
      : id_(std::exchange(other.id_, H5I_INVALID_HID)), close_(other.close_) {}
  Handle& operator=(Handle&& other) noexcept {
    std::swap(id_, other.id_);
    std::swap(close_, other.close_);
    return *this;
  }
  ~Handle() {
    if (id_ >= 0) close_(id_);
  }

  hid_t get() const { return id_; }
  // Leaves it open for ever.
  void Abandon() { id_ = H5I_INVALID_HID; }
  // Closes now. Throws Hdf5Error; the identifier is given up either way.
  void Reset() {
    if (id_ >= 0) Check(close_(std::exchange(id_, H5I_INVALID_HID)));
  }

 private:
  hid_t id_ = H5I_INVALID_HID;
  Close close_ = nullptr;
};

}  // namespace spes::analysis
