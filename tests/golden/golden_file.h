// Reads golden.h5: reference values from an independent implementation (README.md beside it).
#pragma once

#include <gtest/gtest.h>
#include <hdf5.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <memory>
#include <span>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include "trainer/model/config.h"
#include "trainer/sync/world.h"

namespace spes::trainer::golden {

class GoldenFile {
 public:
  GoldenFile()
      : file_(Check(H5Fopen(SPES_SOURCE_DIR "/tests/golden/golden.h5", H5F_ACC_RDONLY, H5P_DEFAULT),
                    "golden.h5")) {}
  ~GoldenFile() { H5Fclose(file_); }
  GoldenFile(const GoldenFile&) = delete;
  GoldenFile& operator=(const GoldenFile&) = delete;

  std::vector<double> Doubles(const std::string& dataset) const {
    return Read<double>(dataset, H5T_NATIVE_DOUBLE);
  }
  std::vector<std::int64_t> Integers(const std::string& dataset) const {
    return Read<std::int64_t>(dataset, H5T_NATIVE_INT64);
  }

  // Attributes of a group: numbers (truth values as 0 and 1), and text.
  double Number(const std::string& group, const char* name) const {
    const hid_t attribute =
        Check(H5Aopen_by_name(file_, group.c_str(), name, H5P_DEFAULT, 0), name);
    const hid_t type = H5Aget_type(attribute);
    double value = 0;
    if (H5Tget_class(type) == H5T_ENUM) {
      std::int8_t truth = 0;
      H5Aread(attribute, type, &truth);
      value = truth;
    } else {
      H5Aread(attribute, H5T_NATIVE_DOUBLE, &value);
    }
    H5Tclose(type);
    H5Aclose(attribute);
    return value;
  }
  std::int64_t Integer(const std::string& group, const char* name) const {
    return static_cast<std::int64_t>(Number(group, name));
  }
  std::string Text(const std::string& group, const char* name) const {
    const hid_t attribute =
        Check(H5Aopen_by_name(file_, group.c_str(), name, H5P_DEFAULT, 0), name);
    const hid_t type = H5Aget_type(attribute);
    char* text = nullptr;
    H5Aread(attribute, type, &text);
    std::string value(text == nullptr ? "" : text);
    H5free_memory(text);
    H5Tclose(type);
    H5Aclose(attribute);
    return value;
  }

  // The model of a group "forward/…" (the group "spes" is of the model "forward/olmoe": its own
  // attribute H is the round's length).
  ModelConfig Model(const std::string& group, DType dtype = DType::kFloat64) const {
    ModelConfig c;
    c.vocabulary = Integer(group, "V");
    c.width = Integer(group, "D");
    c.layers = static_cast<int>(Integer(group, "L"));
    c.heads = static_cast<int>(Integer(group, "H"));
    c.kv_heads = static_cast<int>(Integer(group, "G"));
    c.head_width = Integer(group, "hd");
    c.experts = static_cast<int>(Integer(group, "E"));
    c.experts_per_token = static_cast<int>(Integer(group, "K"));
    c.expert_width = Integer(group, "F");
    c.norm_eps = Number(group, "eps");
    c.rope_theta = Number(group, "theta");
    c.qk_norm = Text(group, "qk_norm") == "full" ? QkNorm::kFull : QkNorm::kHead;
    c.renormalise_top_k = Number(group, "norm_topk") != 0;
    c.dtype = dtype;
    return c;
  }

  // The values of all blocks of `table` out of a group that holds them under the names of the
  // README ("spes/init", "forward/olmoe/param", "forward/olmoe/grad"). Version 0.
  World ReadWorld(const std::string& group, std::shared_ptr<const BlockTable> table) const {
    World world;
    for (BlockId id = 0; id < table->size(); ++id) {
      Buffer buffer = table->Allocate(id);
      for (const BlockPart& part : (*table)[id].parts) {
        const std::vector<double> values = Part(group, (*table)[id], part);
        for (std::size_t i = 0; i < values.size(); ++i) {
          const std::size_t at = static_cast<std::size_t>(part.offset) + i;
          if (table->dtype() == DType::kFloat32) {
            buffer.as<float>()[at] = static_cast<float>(values[i]);
          } else {
            buffer.as<double>()[at] = values[i];
          }
        }
      }
      world.blocks.push_back({0, std::make_shared<const Buffer>(std::move(buffer))});
    }
    world.table = std::move(table);
    return world;
  }

 private:
  static hid_t Check(hid_t id, const std::string& what) {
    if (id < 0) throw std::runtime_error("golden.h5: cannot open " + what);
    return id;
  }

  template <class T>
  std::vector<T> Read(const std::string& name, hid_t type) const {
    const hid_t dataset = Check(H5Dopen2(file_, name.c_str(), H5P_DEFAULT), name);
    const hid_t space = H5Dget_space(dataset);
    std::vector<T> values(static_cast<std::size_t>(H5Sget_simple_extent_npoints(space)));
    const herr_t status = H5Dread(dataset, type, H5S_ALL, H5S_ALL, H5P_DEFAULT, values.data());
    H5Sclose(space);
    H5Dclose(dataset);
    if (status < 0) throw std::runtime_error("golden.h5: cannot read " + name);
    return values;
  }

  // One tensor; the file stacks the experts of a layer, [E, F, D].
  std::vector<double> Part(const std::string& group, const BlockSpec& block,
                           const BlockPart& part) const {
    std::string path = part.name;
    if (block.kind == BlockKind::kExpert) {
      path = "layers." + std::to_string(block.layer) + part.name.substr(part.name.rfind('.'));
    }
    std::replace(path.begin(), path.end(), '.', '/');
    std::vector<double> values = Doubles(group + "/" + path);
    const std::size_t elements = static_cast<std::size_t>(part.elements);
    if (block.kind == BlockKind::kExpert) {
      const auto first = values.begin() + block.expert * part.elements;
      values = std::vector<double>(first, first + part.elements);
    }
    if (values.size() != elements) throw std::runtime_error("golden.h5: size of " + part.name);
    return values;
  }

  hid_t file_;
};

// The largest difference over the largest value of `expected`.
inline double RelativeError(std::span<const double> actual, std::span<const double> expected) {
  if (actual.size() != expected.size()) return INFINITY;
  double difference = 0, size = 0;
  for (std::size_t i = 0; i < expected.size(); ++i) {
    if (!std::isfinite(actual[i])) return INFINITY;
    difference = std::max(difference, std::abs(actual[i] - expected[i]));
    size = std::max(size, std::abs(expected[i]));
  }
  return size > 0 ? difference / size : difference;
}

// The values of one part as float64.
inline std::vector<double> PartValues(const World& world, BlockId id, const BlockPart& part) {
  const Buffer& data = *world.blocks[static_cast<std::size_t>(id)].data;
  std::vector<double> values;
  for (std::int64_t i = part.offset; i < part.offset + part.elements; ++i) {
    const std::size_t at = static_cast<std::size_t>(i);
    values.push_back(world.table->dtype() == DType::kFloat32
                         ? static_cast<double>(data.as<float>()[at])
                         : data.as<double>()[at]);
  }
  return values;
}

// Every part of every block within `tolerance`, relative to the part's largest value.
inline void ExpectWorldsNear(const World& actual, const World& expected, double tolerance) {
  ASSERT_EQ(actual.table->size(), expected.table->size());
  for (BlockId id = 0; id < expected.table->size(); ++id) {
    for (const BlockPart& part : (*expected.table)[id].parts) {
      EXPECT_LE(RelativeError(PartValues(actual, id, part), PartValues(expected, id, part)),
                tolerance)
          << part.name;
    }
  }
}

}  // namespace spes::trainer::golden
