#include "trainer/checkpoint/journal.h"

#include <fmt/format.h>

#include <stdexcept>
#include <utility>

#include "trainer/checkpoint/coordinator_file.h"

namespace spes::trainer {
namespace {

Retention Checked(const Retention& retention) {
  Validate(retention);
  return retention;
}

}  // namespace

Journal::Journal(std::string folder, Retention retention, FileSystem& files)
    : retention_(Checked(retention)), folder_(std::move(folder), ".safetensors", files) {}

void Journal::Write(const CoordinatorState& state) {
  folder_.RemoveAfter(state.round);
  WriteCoordinatorState(state, folder_.FileOf(state.round), folder_.files());
  folder_.Apply(retention_);
}

std::vector<std::int32_t> Journal::Rounds() const { return folder_.Rounds(); }

CoordinatorState Journal::Read(std::int32_t round, std::shared_ptr<const BlockTable> table) const {
  const std::string path = folder_.FileOf(round);
  CoordinatorState state = ReadCoordinatorState(path, std::move(table));
  if (state.round != round) {
    throw std::invalid_argument(
        fmt::format("{}: holds round {}; has it been renamed?", path, state.round));
  }
  return state;
}

std::optional<CoordinatorState> Journal::Newest(const std::shared_ptr<const BlockTable>& table,
                                                std::vector<std::string>& warnings) const {
  for (const std::int32_t round : Rounds()) {
    try {
      return Read(round, table);
    } catch (const DamagedFile& e) {
      warnings.push_back(e.what());
    }
  }
  return {};
}

}  // namespace spes::trainer
