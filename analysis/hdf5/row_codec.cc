#include "analysis/hdf5/row_codec.h"

namespace spes::analysis {

std::string CutText(std::string_view text, std::size_t width) {
  constexpr std::string_view kMark = "…";
  if (text.size() <= width) return std::string(text);
  std::size_t end = width - kMark.size();
  // Bytes 10xxxxxx continue a character: step back to where one begins.
  while (end > 0 && (static_cast<unsigned char>(text[end]) & 0xC0) == 0x80) --end;
  return std::string(text.substr(0, end)).append(kMark);
}

Handle TextType(std::size_t width) {
  Handle type(H5Tcopy(H5T_C_S1), H5Tclose);
  Check(H5Tset_size(type.get(), width));
  Check(H5Tset_cset(type.get(), H5T_CSET_UTF8));
  Check(H5Tset_strpad(type.get(), H5T_STR_NULLPAD));
  return type;
}

}  // namespace spes::analysis
