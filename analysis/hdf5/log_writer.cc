#include "analysis/hdf5/log_writer.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <filesystem>
#include <limits>
#include <system_error>
#include <tuple>

#include "analysis/hdf5/handle.h"
#include "analysis/hdf5/new_file.h"
#include "analysis/hdf5/row_codec.h"
#include "analysis/host.h"
#include "analysis/version.h"

namespace spes::analysis {
namespace {

constexpr std::size_t kChunkBytes = 16 << 10;    // a small log stays small; a flush rewrites one
constexpr std::size_t kBufferBytes = 512 << 10;  // rows kept in memory before they go to HDF5
constexpr hsize_t kPageBytes = 4096;
constexpr std::size_t kStatusWidth = 16;
constexpr std::size_t kHashWidth = 64;

// A table with its rows that are not yet in the file. Not compressed: a compressed chunk that is
// flushed half full moves each time and leaves a hole that this mode never fills again.
struct TableState {
  Handle dataset, type;
  std::size_t row_bytes = 0;
  hsize_t rows_in_file = 0;
  std::string rows;  // encoded
};

template <class Row>
struct TableOf : TableState {};

template <class Row>
TableOf<Row> CreateTable(hid_t file) {
  TableOf<Row> table;
  table.type = RowType<Row>();
  table.row_bytes = RowSize<Row>();
  const hsize_t none = 0, unlimited = H5S_UNLIMITED;
  const hsize_t chunk = std::max<hsize_t>(1, kChunkBytes / table.row_bytes);
  const Handle space(H5Screate_simple(1, &none, &unlimited), H5Sclose);
  const Handle creation(H5Pcreate(H5P_DATASET_CREATE), H5Pclose);
  Check(H5Pset_chunk(creation.get(), 1, &chunk));
  table.dataset = Handle(H5Dcreate2(file, Table<Row>::name, table.type.get(), space.get(),
                                    H5P_DEFAULT, creation.get(), H5P_DEFAULT),
                         H5Dclose);
  return table;
}

void CreateAttribute(hid_t file, const char* name, hid_t type, const void* value) {
  const Handle space(H5Screate(H5S_SCALAR), H5Sclose);
  const Handle attribute(H5Acreate2(file, name, type, space.get(), H5P_DEFAULT, H5P_DEFAULT),
                         H5Aclose);
  Check(H5Awrite(attribute.get(), type, value));
}

void CreateFreeText(hid_t file, const char* name, const std::string& text) {
  const Handle type = TextType(H5T_VARIABLE);
  const char* pointer = text.c_str();
  CreateAttribute(file, name, type.get(), &pointer);
}

void CreateFixedText(hid_t file, const char* name, std::string text, std::size_t width) {
  text.resize(width, '\0');
  CreateAttribute(file, name, TextType(width).get(), text.data());
}

class Hdf5Recorder final : public Recorder {
 public:
  Hdf5Recorder(const std::string& path, const RunInfo& info) : path_(path) {
    const QuietHdf5 quiet;
    NewFile file(path);
    try {
      Create(file.temporary_path(), info);
    } catch (const Hdf5Error& error) {
      Abandon();
      throw std::runtime_error(fmt::format(
          "output file {}: cannot be written ({}); free some space there or name another", path,
          error.what()));
    }
    file.MoveIntoPlace();
  }

  ~Hdf5Recorder() override {
    try {
      if (Open()) Finish(RunStatus::kFailed, "");
    } catch (const std::exception&) {
      // The log stays as the last Flush left it; there is nobody left to tell.
    }
  }

  void Record(const StepRecord& r) override { Add(r); }
  void Record(const RoundRecord& r) override { Add(r); }
  void Record(const NodeRoundRecord& r) override { Add(r); }
  void Record(const FlowRecord& r) override { Add(r); }
  void Record(const LinkRecord& r) override { Add(r); }
  void Record(const ExpertRecord& r) override { Add(r); }
  void Record(const RoutingRecord& r) override { Add(r); }
  void Record(const EvalRecord& r) override { Add(r); }
  void Record(const MemoryRecord& r) override { Add(r); }
  void Record(const EventRecord& r) override { Add(r); }

  void Flush() override {
    Guard([&] { WriteEverything(); });
  }

  void Finish(RunStatus status, const std::string& world_hash) override {
    if (!Open() && status == RunStatus::kFailed) return;
    Guard([&] {
      WriteEverything();
      // On the disk before the log says that it is complete.
      if (fsync(FileDescriptor()) != 0) throw std::system_error(errno, std::generic_category());
      SetText("world_hash", world_hash, kHashWidth);
      const std::chrono::duration<double> wall = std::chrono::steady_clock::now() - begin_;
      SetNumber("wall_s", wall.count());
      SetText("status", Name(status), kStatusWidth);
      Check(H5Fflush(file_.get(), H5F_SCOPE_LOCAL));
      Close();
    });
  }

 private:
  void Create(const std::string& path, const RunInfo& info) {
    // SWMR needs the file format of 1.10; a later one would shut older readers out.
    const Handle access(H5Pcreate(H5P_FILE_ACCESS), H5Pclose);
    Check(H5Pset_libver_bounds(access.get(), H5F_LIBVER_V110, H5F_LIBVER_V110));
    Check(H5Pset_file_locking(access.get(), true, true));
    // Rows go to the file at once. From a cache they would go there in a flush, and one that cannot
    // write them goes on all the same and writes the tables' new lengths. (A table's own setting
    // would be lost at the start of this mode.)
    Check(H5Pset_cache(access.get(), 0, 0, 0, 0));
    // Attributes stay in the root's header: one that is rewritten there is one write, in place.
    const Handle creation(H5Pcreate(H5P_FILE_CREATE), H5Pclose);
    Check(H5Pset_attr_phase_change(creation.get(), 64, 0));
    // A kill tears a write that crosses a page of the operating system, and a torn header loses its
    // table. In pages, HDF5 lets nothing cross that is not longer than one; of what is rewritten
    // only the index of a table with more than 8000 chunks (130 MB) is.
    Check(H5Pset_file_space_strategy(creation.get(), H5F_FSPACE_STRATEGY_PAGE, false, 1));
    Check(H5Pset_file_space_page_size(creation.get(), kPageBytes));
    file_ = Handle(H5Fcreate(path.c_str(), H5F_ACC_TRUNC, creation.get(), access.get()), H5Fclose);

    const hid_t file = file_.get();
    CreateAttribute(file, "schema_version", H5T_NATIVE_INT, &kSchemaVersion);
    CreateFreeText(file, "program_version", ProgramVersion());
    CreateFreeText(file, "scenario", info.scenario);
    CreateFreeText(file, "scenario_hash", info.scenario_hash);
    CreateAttribute(file, "seed", H5T_NATIVE_UINT64, &info.seed);
    CreateFreeText(file, "host", HostDescription());
    CreateFreeText(file, "charged", info.charged);
    CreateFixedText(file, "status", Name(RunStatus::kRunning), kStatusWidth);
    CreateFixedText(file, "world_hash", "", kHashWidth);
    const double unknown = std::numeric_limits<double>::quiet_NaN();
    CreateAttribute(file, "wall_s", H5T_NATIVE_DOUBLE, &unknown);
    std::apply(
        [&]<class... Row>(TableOf<Row>&... table) { ((table = CreateTable<Row>(file)), ...); },
        tables_);
    Check(H5Fstart_swmr_write(file));
  }

  bool Open() const { return file_.get() >= 0; }

  std::string Sentence(const std::string& cause) const {
    return fmt::format(
        "run log {}: cannot be written ({}); it holds everything up to its last flush; free some "
        "space there or choose another output file",
        path_, cause);
  }

  // Runs `action`; where it fails, closes the log in good order and says so in one line.
  template <class Action>
  void Guard(Action action) {
    const QuietHdf5 quiet;
    if (!Open()) throw std::runtime_error(fmt::format("run log {}: is already closed", path_));
    try {
      action();
    } catch (const Hdf5Error& error) {
      GiveUp(false);
      throw std::runtime_error(Sentence(error.what()));
    } catch (const std::system_error& error) {
      GiveUp(true);
      throw std::runtime_error(Sentence(error.code().message()));
    }
  }

  template <class Row>
  void Add(const Row& row) {
    TableState& table = std::get<TableOf<Row>>(tables_);
    EncodeRow(row, &table.rows);
    if (table.rows.size() >= kBufferBytes || !Open()) Guard([&] { Append(&table); });
  }

  void WriteEverything() {
    std::apply([&](auto&... table) { (Append(&table), ...); }, tables_);
    Check(H5Fflush(file_.get(), H5F_SCOPE_LOCAL));
  }

  void Append(TableState* table) {
    const hsize_t count = table->rows.size() / table->row_bytes;
    if (count == 0) return;
    Reserve(table->rows.size() + kChunkBytes);
    const hsize_t end = table->rows_in_file + count;
    Check(H5Dset_extent(table->dataset.get(), &end));
    const Handle rows(H5Screate_simple(1, &count, nullptr), H5Sclose);
    const Handle place(H5Dget_space(table->dataset.get()), H5Sclose);
    Check(H5Sselect_hyperslab(place.get(), H5S_SELECT_SET, &table->rows_in_file, nullptr, &count,
                              nullptr));
    Check(H5Dwrite(table->dataset.get(), table->type.get(), rows.get(), place.get(), H5P_DEFAULT,
                   table->rows.data()));
    table->rows_in_file = end;
    table->rows.clear();
  }

  // HDF5 does not get over a failed write, so the space for what it is about to write is taken
  // first. Throws std::system_error when there is none.
  void Reserve(std::size_t bytes) {
    hsize_t size = 0;
    Check(H5Fget_filesize(file_.get(), &size));
    reserved_ = ReserveSpace(FileDescriptor(), reserved_, size + bytes);
  }

  void SetText(const char* name, std::string text, std::size_t width) {
    text.resize(width, '\0');
    const Handle attribute(H5Aopen(file_.get(), name, H5P_DEFAULT), H5Aclose);
    Check(H5Awrite(attribute.get(), TextType(width).get(), text.data()));
  }

  void SetNumber(const char* name, double value) {
    const Handle attribute(H5Aopen(file_.get(), name, H5P_DEFAULT), H5Aclose);
    Check(H5Awrite(attribute.get(), H5T_NATIVE_DOUBLE, &value));
  }

  int FileDescriptor() const {
    void* descriptor = nullptr;
    Check(H5Fget_vfd_handle(file_.get(), H5P_DEFAULT, &descriptor));
    return *static_cast<int*>(descriptor);
  }

  void Close() {
    std::apply([](auto&... table) { ((table.dataset = Handle()), ...); }, tables_);
    file_.Reset();
  }

  // `sound`: HDF5 itself has not failed.
  void GiveUp(bool sound) noexcept {
    try {
      SetText("status", Name(RunStatus::kFailed), kStatusWidth);
      if (sound) {
        Check(H5Fflush(file_.get(), H5F_SCOPE_LOCAL));
        Close();
        return;
      }
      // Over what is there already, which may work where growing does not.
      const Handle root(H5Gopen2(file_.get(), "/", H5P_DEFAULT), H5Gclose);
      Check(H5Gflush(root.get()));
    } catch (const std::exception&) {
    }
    Abandon();
  }

  // After a failed write HDF5 can neither close the file nor forget it. Not touched any more, the
  // file is as after a kill: whole up to the last flush.
  void Abandon() {
    std::apply([](auto&... table) { (table.dataset.Abandon(), ...); }, tables_);
    file_.Abandon();
  }

  std::string path_;
  std::chrono::steady_clock::time_point begin_ = std::chrono::steady_clock::now();
  Handle file_;
  std::uint64_t reserved_ = 0;  // bytes from the file's start
  std::tuple<TableOf<StepRecord>, TableOf<RoundRecord>, TableOf<NodeRoundRecord>,
             TableOf<FlowRecord>, TableOf<LinkRecord>, TableOf<ExpertRecord>,
             TableOf<RoutingRecord>, TableOf<EvalRecord>, TableOf<MemoryRecord>,
             TableOf<EventRecord>>
      tables_;
};

}  // namespace

std::unique_ptr<Recorder> MakeHdf5Recorder(const std::string& path, const RunInfo& info) {
  return std::make_unique<Hdf5Recorder>(path, info);
}

}  // namespace spes::analysis
