#include "analysis/hdf5/handle.h"

namespace spes::analysis {
namespace {

// HDF5 walks its stack from the innermost error outwards: the first is the cause.
herr_t KeepFirst(unsigned, const H5E_error2_t* error, void* text) {
  auto& cause = *static_cast<std::string*>(text);
  if (cause.empty() && error->desc != nullptr) cause = error->desc;
  return 0;
}

}  // namespace

void ThrowHdf5Error() {
  std::string cause;
  H5Ewalk2(H5E_DEFAULT, H5E_WALK_UPWARD, KeepFirst, &cause);
  // A failed read or write lists many details (over two lines); errno's text says it all.
  const std::string label = "error message = '";
  if (const std::size_t begin = cause.find(label); begin != std::string::npos) {
    cause = cause.substr(begin + label.size());
    cause = cause.substr(0, cause.find('\''));
  }
  throw Hdf5Error(cause.empty() ? "HDF5 gave no cause" : cause);
}

QuietHdf5::QuietHdf5() {
  static const herr_t once = H5dont_atexit();
  static_cast<void>(once);
  H5Eget_auto2(H5E_DEFAULT, &print_, &data_);
  H5Eset_auto2(H5E_DEFAULT, nullptr, nullptr);
}

QuietHdf5::~QuietHdf5() { H5Eset_auto2(H5E_DEFAULT, print_, data_); }

}  // namespace spes::analysis
