// Tables of a study, as text and as HDF5.
#include "analysis/value_table.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <hdf5.h>

#include <cmath>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <limits>

#include "analysis/hdf5/handle.h"
#include "analysis/hdf5/table_file.h"
#include "tests/analysis/scratch.h"

namespace spes::analysis {
namespace {

using ::testing::HasSubstr;

constexpr double kNan = std::numeric_limits<double>::quiet_NaN();

ValueTable Sample() {
  return {{{"name", ValueColumn::Texts{"a", "zürich, \"x\""}},
           {"seed", ValueColumn::Wholes{1, -(std::int64_t{1} << 62)}},
           {"loss", ValueColumn::Numbers{0.1, kNan}}}};
}

std::string Bytes(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), {}};
}

TEST(ValueTable, AColumnOfTextsIsOfNumbersWhereAllAre) {
  using Wholes = ValueColumn::Wholes;
  using Numbers = ValueColumn::Numbers;
  using Texts = ValueColumn::Texts;
  EXPECT_EQ(std::get<Wholes>(ColumnOfTexts("c", {"5", "-10"}).values), (Wholes{5, -10}));
  EXPECT_EQ(std::get<Numbers>(ColumnOfTexts("c", {"5", "1e-3"}).values), (Numbers{5, 1e-3}));
  EXPECT_TRUE(std::isnan(std::get<Numbers>(ColumnOfTexts("c", {"5", ""}).values)[1]));
  EXPECT_EQ(std::get<Texts>(ColumnOfTexts("c", {"5", "5 ms"}).values), (Texts{"5", "5 ms"}));
  EXPECT_EQ(std::get<Texts>(ColumnOfTexts("c", {"", ""}).values), (Texts{"", ""}));
}

TEST(ValueTable, CsvQuotesWhatNeedsItAndKeepsEveryDigit) {
  EXPECT_EQ(ToCsv(Sample()),
            "name,seed,loss\n"
            "a,1,0.1\n"
            "\"zürich, \"\"x\"\"\",-4611686018427387904,nan\n");
  EXPECT_EQ(ToCsv({}), "\n");
}

TEST(ValueTable, AnHdf5TableHoldsTheSame) {
  const Scratch scratch;
  const std::string path = scratch / "table.h5";
  WriteHdf5Table(path, "runs", Sample());
  const Handle file(H5Fopen(path.c_str(), H5F_ACC_RDONLY, H5P_DEFAULT), H5Fclose);
  const Handle dataset(H5Dopen2(file.get(), "runs", H5P_DEFAULT), H5Dclose);
  struct Row {
    char name[16];
    std::int64_t seed;
    double loss;
  } rows[2];
  const Handle text(H5Tcopy(H5T_C_S1), H5Tclose);
  H5Tset_size(text.get(), sizeof rows[0].name);
  H5Tset_cset(text.get(), H5T_CSET_UTF8);
  H5Tset_strpad(text.get(), H5T_STR_NULLPAD);
  const Handle type(H5Tcreate(H5T_COMPOUND, sizeof(Row)), H5Tclose);
  H5Tinsert(type.get(), "name", HOFFSET(Row, name), text.get());
  H5Tinsert(type.get(), "seed", HOFFSET(Row, seed), H5T_NATIVE_INT64);
  H5Tinsert(type.get(), "loss", HOFFSET(Row, loss), H5T_NATIVE_DOUBLE);
  ASSERT_GE(H5Dread(dataset.get(), type.get(), H5S_ALL, H5S_ALL, H5P_DEFAULT, rows), 0);
  EXPECT_STREQ(rows[0].name, "a");
  EXPECT_STREQ(rows[1].name, "zürich, \"x\"");
  EXPECT_EQ(rows[1].seed, -(std::int64_t{1} << 62));
  EXPECT_EQ(rows[0].loss, 0.1);
  EXPECT_TRUE(std::isnan(rows[1].loss));
}

TEST(ValueTable, TheSameTableIsTheSameFile) {
  const Scratch scratch;
  WriteHdf5Table(scratch / "a.h5", "runs", Sample());
  WriteHdf5Table(scratch / "b.h5", "runs", Sample());
  EXPECT_EQ(Bytes(scratch / "a.h5"), Bytes(scratch / "b.h5"));
  WriteHdf5Table(scratch / "a.h5", "runs", {{{"name", ValueColumn::Texts{}}}});
  EXPECT_NE(Bytes(scratch / "a.h5"), Bytes(scratch / "b.h5"));
}

TEST(ValueTable, FilesThatCannotBeWrittenAreNamed) {
  const Scratch scratch;
  for (const std::string name : {"absent/table.h5", "."}) {
    const auto hdf5 = [&] { WriteHdf5Table(scratch / name, "runs", Sample()); };
    const auto text = [&] { WriteTextFile(scratch / name, "x"); };
    EXPECT_THAT(Message<std::invalid_argument>(hdf5), HasSubstr(scratch / name));
    EXPECT_THAT(Message<std::invalid_argument>(text), HasSubstr(scratch / name));
  }
  WriteTextFile(scratch / "table.csv", "old");
  WriteTextFile(scratch / "table.csv", "a,b\n");
  EXPECT_EQ(Bytes(scratch / "table.csv"), "a,b\n");
  int files = 0;
  for ([[maybe_unused]] const auto& entry : std::filesystem::directory_iterator(scratch / "")) {
    ++files;
  }
  EXPECT_EQ(files, 1);
}

}  // namespace
}  // namespace spes::analysis
