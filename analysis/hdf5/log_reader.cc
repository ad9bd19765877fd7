#include "analysis/hdf5/log_reader.h"

#include <fmt/format.h>

#include <filesystem>
#include <stdexcept>

#include "analysis/hdf5/handle.h"
#include "analysis/hdf5/row_codec.h"
#include "analysis/version.h"

namespace spes::analysis {
namespace {

Handle OpenFile(const std::string& path) {
  const Handle access(H5Pcreate(H5P_FILE_ACCESS), H5Pclose);
  Check(H5Pset_file_locking(access.get(), true, true));
  // How often a header is read again that a writer seems to be changing. The pause doubles each
  // time from 1 ns; HDF5's own 100 would wait for ever where a header is damaged.
  Check(H5Pset_metadata_read_attempts(access.get(), 28));
  // Opens finished files too, and those that a writer holds open or has left open.
  return Handle(H5Fopen(path.c_str(), H5F_ACC_RDONLY | H5F_ACC_SWMR_READ, access.get()), H5Fclose);
}

template <class Number>
Number ReadNumber(hid_t file, const char* name, hid_t type) {
  Number value{};
  const Handle attribute(H5Aopen(file, name, H5P_DEFAULT), H5Aclose);
  Check(H5Aread(attribute.get(), type, &value));
  return value;
}

std::string ReadText(hid_t file, const char* name) {
  const Handle attribute(H5Aopen(file, name, H5P_DEFAULT), H5Aclose);
  const Handle type(H5Aget_type(attribute.get()), H5Tclose);
  if (Check(H5Tis_variable_str(type.get())) == 0) {
    std::string text(H5Tget_size(type.get()), '\0');
    Check(H5Aread(attribute.get(), TextType(text.size()).get(), text.data()));
    return text.substr(0, text.find('\0'));
  }
  char* pointer = nullptr;
  Check(H5Aread(attribute.get(), TextType(H5T_VARIABLE).get(), &pointer));
  std::string text = pointer == nullptr ? "" : pointer;
  H5free_memory(pointer);
  return text;
}

template <class Row>
void ReadTable(hid_t file, std::vector<Row>* rows) {
  if (Check(H5Lexists(file, Table<Row>::name, H5P_DEFAULT)) == 0) return;
  const Handle dataset(H5Dopen2(file, Table<Row>::name, H5P_DEFAULT), H5Dclose);
  const Handle space(H5Dget_space(dataset.get()), H5Sclose);
  const hssize_t count = Check(H5Sget_simple_extent_npoints(space.get()));
  // HDF5 leaves columns that the file lacks as they are in the buffer.
  std::string bytes;
  bytes.reserve(count * RowSize<Row>());
  for (hssize_t i = 0; i < count; ++i) EncodeRow(Row{}, &bytes);
  Check(H5Dread(dataset.get(), RowType<Row>().get(), H5S_ALL, space.get(), H5P_DEFAULT,
                bytes.data()));
  rows->reserve(count);
  for (hssize_t i = 0; i < count; ++i) {
    rows->push_back(DecodeRow<Row>(bytes.data() + i * RowSize<Row>()));
  }
}

[[noreturn]] void Refuse(const std::string& path, const std::string& why) {
  throw std::runtime_error(fmt::format("run log {}: {}", path, why));
}

// `rows`: the tables as well.
RunLog Read(const std::string& path, bool rows) {
  const QuietHdf5 quiet;
  std::error_code ignored;
  if (!std::filesystem::exists(path, ignored)) Refuse(path, "there is no such file");
  try {
    const Handle handle = OpenFile(path);
    const hid_t file = handle.get();
    if (Check(H5Aexists(file, "schema_version")) == 0) {
      Refuse(path, "is an HDF5 file, but not a run log of spes-sim");
    }
    const int schema = ReadNumber<int>(file, "schema_version", H5T_NATIVE_INT);
    if (schema > kSchemaVersion) {
      Refuse(path, fmt::format("has schema version {}; spes-sim {} reads up to {}: use a newer one",
                               schema, ProgramVersion(), kSchemaVersion));
    }
    RunLog log;
    log.info.scenario = ReadText(file, "scenario");
    log.info.scenario_hash = ReadText(file, "scenario_hash");
    log.info.seed = ReadNumber<std::uint64_t>(file, "seed", H5T_NATIVE_UINT64);
    log.info.charged = ReadText(file, "charged");
    log.status = ReadText(file, "status");
    log.world_hash = ReadText(file, "world_hash");
    log.program_version = ReadText(file, "program_version");
    log.host = ReadText(file, "host");
    if (Check(H5Aexists(file, "wall_s")) > 0) {
      log.wall_s = ReadNumber<double>(file, "wall_s", H5T_NATIVE_DOUBLE);
    }
    if (!rows) return log;
    ReadTable(file, &log.steps);
    ReadTable(file, &log.rounds);
    ReadTable(file, &log.node_rounds);
    ReadTable(file, &log.flows);
    ReadTable(file, &log.links);
    ReadTable(file, &log.experts);
    ReadTable(file, &log.routing);
    ReadTable(file, &log.evals);
    ReadTable(file, &log.memory);
    ReadTable(file, &log.events);
    return log;
  } catch (const Hdf5Error& error) {
    Refuse(path, fmt::format("cannot be read as HDF5 ({})", error.what()));
  }
}

}  // namespace

RunLog ReadRunLog(const std::string& path) { return Read(path, true); }

RunLog ReadRunLogHead(const std::string& path) { return Read(path, false); }

}  // namespace spes::analysis
