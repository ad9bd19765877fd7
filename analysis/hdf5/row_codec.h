// Rows of a table as bytes: the columns one after the other without gaps, numbers as this machine
// holds them (HDF5 notes the byte order).
#pragma once

#include <cstring>
#include <string>
#include <string_view>
#include <type_traits>

#include "analysis/hdf5/handle.h"
#include "analysis/hdf5/record_columns.h"

namespace spes::analysis {

namespace codec_internal {

struct AnyValue {
  template <class Value>
  operator Value() const;
};

// How many members an aggregate has.
template <class Row, class... Values>
constexpr std::size_t CountMembers() {
  if constexpr (requires { Row{Values{}..., AnyValue{}}; }) {
    return CountMembers<Row, Values..., AnyValue>();
  } else {
    return sizeof...(Values);
  }
}

template <class Number>
hid_t NumberType() {
  if constexpr (std::is_same_v<Number, double>) return H5T_NATIVE_DOUBLE;
  if constexpr (std::is_same_v<Number, std::int32_t>) return H5T_NATIVE_INT32;
  if constexpr (std::is_same_v<Number, std::int64_t>) return H5T_NATIVE_INT64;
  if constexpr (std::is_same_v<Number, std::uint64_t>) return H5T_NATIVE_UINT64;
}

// Calls f(column, offset in bytes) for each column in order.
template <class Row, class F>
constexpr std::size_t ForEachColumn(F f) {
  std::size_t offset = 0;
  std::apply([&](const auto&... column) { ((f(column, offset), offset += column.width), ...); },
             Table<Row>::columns);
  return offset;
}

}  // namespace codec_internal

// `text`, or where it has more than `width` bytes as much of it as fits before a closing "…"; whole
// characters only.
std::string CutText(std::string_view text, std::size_t width);

// Fixed-width UTF-8, padded with zeros; width > 0.
Handle TextType(std::size_t width);

// Bytes of one row.
template <class Row>
constexpr std::size_t RowSize() {
  return codec_internal::ForEachColumn<Row>([](const auto&, std::size_t) {});
}

// The compound type of one row.
template <class Row>
Handle RowType() {
  static_assert(codec_internal::CountMembers<Row>() ==
                    std::tuple_size_v<std::remove_const_t<decltype(Table<Row>::columns)>>,
                "every member of the record needs its column");
  Handle type(H5Tcreate(H5T_COMPOUND, RowSize<Row>()), H5Tclose);
  codec_internal::ForEachColumn<Row>(
      [&]<class Value>(const Column<Row, Value>& column, std::size_t offset) {
        if constexpr (std::is_same_v<Value, std::string>) {
          Check(H5Tinsert(type.get(), column.name, offset, TextType(column.width).get()));
        } else {
          Check(H5Tinsert(type.get(), column.name, offset, codec_internal::NumberType<Value>()));
        }
      });
  return type;
}

// Appends one row to `rows`.
template <class Row>
void EncodeRow(const Row& row, std::string* rows) {
  const std::size_t begin = rows->size();
  rows->resize(begin + RowSize<Row>(), '\0');
  codec_internal::ForEachColumn<Row>(
      [&]<class Value>(const Column<Row, Value>& column, std::size_t offset) {
        char* to = rows->data() + begin + offset;
        if constexpr (std::is_same_v<Value, std::string>) {
          const std::string text = CutText(row.*column.member, column.width);
          std::memcpy(to, text.data(), text.size());
        } else {
          std::memcpy(to, &(row.*column.member), sizeof(Value));
        }
      });
}

// The row whose RowSize<Row>() bytes begin at `bytes`.
template <class Row>
Row DecodeRow(const char* bytes) {
  Row row;
  codec_internal::ForEachColumn<Row>(
      [&]<class Value>(const Column<Row, Value>& column, std::size_t offset) {
        if constexpr (std::is_same_v<Value, std::string>) {
          (row.*column.member).assign(bytes + offset, strnlen(bytes + offset, column.width));
        } else {
          std::memcpy(&(row.*column.member), bytes + offset, sizeof(Value));
        }
      });
  return row;
}

}  // namespace spes::analysis
