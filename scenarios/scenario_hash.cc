#include "scenarios/scenario_hash.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdint>
#include <filesystem>
#include <fstream>
#include <memory>
#include <stdexcept>
#include <system_error>
#include <utility>
#include <vector>

#include "scenarios/catalogue.h"
#include "scenarios/describe.h"
#include "scenarios/printer.h"

#define XXH_INLINE_ALL
#include <xxhash.h>

namespace spes::scenarios {

namespace {

std::string Hex(XXH128_hash_t hash) {
  return fmt::format("{:016x}{:016x}", hash.high64, hash.low64);
}

constexpr std::uint64_t kWhole = std::uint64_t{1} << 30;  // larger files are sampled
constexpr std::uint64_t kPieces = 1024, kPiece = 64 << 10;

std::string FileDigest(const std::string& file) {
  const auto fail = [&] { throw std::runtime_error(fmt::format("{}: cannot be read", file)); };
  std::error_code error;
  const std::uint64_t size = std::filesystem::file_size(file, error);
  std::ifstream in(file, std::ios::binary);
  if (error || !in) fail();
  const std::unique_ptr<XXH3_state_t, XXH_errorcode (*)(XXH3_state_t*)> state(XXH3_createState(),
                                                                              XXH3_freeState);
  XXH3_128bits_reset(state.get());
  XXH3_128bits_update(state.get(), &size, sizeof(size));
  std::vector<char> buffer(kPiece);
  const auto add = [&](std::uint64_t length) {
    in.read(buffer.data(), static_cast<std::streamsize>(length));
    if (!in) fail();
    XXH3_128bits_update(state.get(), buffer.data(), length);
  };
  if (size <= kWhole) {
    for (std::uint64_t at = 0; at < size; at += kPiece) add(std::min(kPiece, size - at));
  } else {
    for (std::uint64_t i = 0; i < kPieces; ++i) {
      in.seekg(static_cast<std::streamoff>((size - kPiece) / (kPieces - 1) * i));
      add(kPiece);
    }
  }
  return Hex(XXH3_128bits_digest(state.get()));
}

// Puts digests in the place of the names of files.
class ByContent : public Visitor {
 public:
  explicit ByContent(FileDigests& known) : known_(known) {}

  void OnValue(const Field& field, const Value& value) override {
    if (field.unit != Unit::kInputFile) return;
    if (auto* const* file = std::get_if<std::string*>(&value)) {
      if (!(*file)->empty()) **file = Digest(**file);
    } else {
      for (std::string& file : *std::get<std::vector<std::string>*>(value)) file = Digest(file);
    }
  }
  void OnSection(const Field&, const Section& section) override { section.visit(*this); }
  void OnList(const Field&, const List& list) override {
    for (std::size_t i = 0; i < list.size(); ++i) list.visit(i, *this);
  }

 private:
  std::string Digest(const std::string& file) {
    std::string& digest = known_[file];
    if (digest.empty()) digest = FileDigest(file);
    return digest;
  }

  FileDigests& known_;
};

}  // namespace

ScenarioIdentity IdentityOf(const Scenario& scenario, FileDigests& known) {
  Scenario same = scenario;
  same.name.clear();
  same.output = {};
  same.transport = {};
  same.workers = 0;
  same.devices.clear();
  same.nodes.devices_per_node = 1;
  if (same.nodes.compute.kind == trainer::ComputeCost::kMeasured) {
    same.nodes.compute.step_time = trainer::CostConfig{}.step_time;
  }
  ResolveCorpora(same.data);
  for (trainer::DomainConfig& domain : same.data.domains) domain.corpus.clear();
  ByContent visitor(known);
  Describe(same, visitor);
  std::string text = PrintScenario(same);
  std::string hash = Hex(XXH3_128bits(text.data(), text.size()));
  return {std::move(text), std::move(hash)};
}

ScenarioIdentity IdentityOf(const Scenario& scenario) {
  FileDigests none;
  return IdentityOf(scenario, none);
}

std::string ScenarioHash(const Scenario& scenario) { return IdentityOf(scenario).hash; }

}  // namespace spes::scenarios
