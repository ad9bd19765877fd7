#include "analysis/hdf5/table_file.h"

#include <fmt/format.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <fstream>
#include <stdexcept>
#include <vector>

#include "analysis/hdf5/handle.h"
#include "analysis/hdf5/new_file.h"
#include "analysis/hdf5/row_codec.h"

namespace spes::analysis {
namespace {

[[noreturn]] void FailToWrite(const std::string& path, const std::string& cause) {
  throw std::runtime_error(
      fmt::format("output file {}: cannot be written ({}); free some space there or name another",
                  path, cause));
}

// The bytes of a value of this column, the longest text's where it has texts.
std::size_t Width(const ValueColumn& column) {
  const auto* texts = std::get_if<ValueColumn::Texts>(&column.values);
  if (texts == nullptr) return 8;
  std::size_t width = 1;
  for (const std::string& text : *texts) width = std::max(width, text.size());
  return width;
}

Handle TypeOf(const ValueColumn& column) {
  if (std::holds_alternative<ValueColumn::Texts>(column.values)) return TextType(Width(column));
  const bool whole = std::holds_alternative<ValueColumn::Wholes>(column.values);
  return Handle(H5Tcopy(whole ? H5T_NATIVE_INT64 : H5T_NATIVE_DOUBLE), H5Tclose);
}

void CopyTo(char* place, const std::string& text) { std::memcpy(place, text.data(), text.size()); }
void CopyTo(char* place, double number) { std::memcpy(place, &number, sizeof number); }
void CopyTo(char* place, std::int64_t number) { std::memcpy(place, &number, sizeof number); }

void Write(const std::string& path, const std::string& name, const ValueTable& table) {
  std::size_t row_bytes = 0;
  std::vector<std::size_t> offsets;
  for (const ValueColumn& column : table.columns) {
    offsets.push_back(row_bytes);
    row_bytes += Width(column);
  }
  const Handle type(H5Tcreate(H5T_COMPOUND, row_bytes), H5Tclose);
  std::string bytes(row_bytes * table.rows(), '\0');
  for (std::size_t c = 0; c < table.columns.size(); ++c) {
    const ValueColumn& column = table.columns[c];
    Check(H5Tinsert(type.get(), column.name.c_str(), offsets[c], TypeOf(column).get()));
    std::visit(
        [&](const auto& values) {
          for (std::size_t row = 0; row < values.size(); ++row) {
            CopyTo(bytes.data() + row * row_bytes + offsets[c], values[row]);
          }
        },
        column.values);
  }
  Handle file(H5Fcreate(path.c_str(), H5F_ACC_TRUNC, H5P_DEFAULT, H5P_DEFAULT), H5Fclose);
  const hsize_t rows = table.rows();
  const Handle space(H5Screate_simple(1, &rows, nullptr), H5Sclose);
  // The same table is the same file: no time of its making in it.
  const Handle creation(H5Pcreate(H5P_DATASET_CREATE), H5Pclose);
  Check(H5Pset_obj_track_times(creation.get(), false));
  {
    const Handle dataset(H5Dcreate2(file.get(), name.c_str(), type.get(), space.get(), H5P_DEFAULT,
                                    creation.get(), H5P_DEFAULT),
                         H5Dclose);
    Check(H5Dwrite(dataset.get(), type.get(), H5S_ALL, H5S_ALL, H5P_DEFAULT, bytes.data()));
  }
  file.Reset();
}

}  // namespace

void WriteHdf5Table(const std::string& path, const std::string& name, const ValueTable& table) {
  const QuietHdf5 quiet;
  NewFile file(path);
  try {
    Write(file.temporary_path(), name, table);
  } catch (const Hdf5Error& error) {
    FailToWrite(path, error.what());
  }
  file.MoveIntoPlace();
}

void WriteTextFile(const std::string& path, const std::string& text) {
  NewFile file(path);
  std::ofstream out(file.temporary_path(), std::ios::binary | std::ios::trunc);
  out << text;
  out.close();
  if (!out) FailToWrite(path, std::strerror(errno));
  file.MoveIntoPlace();
}

}  // namespace spes::analysis
