#include "scenarios/square_matrix.h"

#include "tests/scenarios/scenario_testing.h"

namespace spes::scenarios {
namespace {

std::string Error(const std::string& text) {
  const TempFolder folder;
  const std::string file = folder.Write("m.csv", text);
  const std::string message =
      ErrorOf([&] { CheckSymmetric(ReadSquareMatrix(file, "ms", 1e6), "ms"); });
  return message.starts_with(file) ? message.substr(file.size()) : message;
}

TEST(SquareMatrix, ReadsValuesByName) {
  const TempFolder folder;
  // A byte-order mark, CRLF, comments, blanks, quotes, rows in another order.
  const SquareMatrix m = ReadSquareMatrix(
      folder.Write("m.csv",
                   "\xef\xbb\xbf# made up\r\n\r\nfrom \\ to, \"a\" ,b,\"c, \"\"d\"\"\"\r\n"
                   "b,1, 2.5 ,-\r\na,,1e2,3\r\n\"c, \"\"d\"\"\",4,5,0"),
      "ms", 1e6);
  EXPECT_EQ(m.names, (std::vector<std::string>{"a", "b", "c, \"d\""}));
  using Row = std::vector<std::optional<double>>;
  EXPECT_EQ(m.values[0], (Row{std::nullopt, 100, 3}));
  EXPECT_EQ(m.values[1], (Row{1, 2.5, std::nullopt}));
  EXPECT_EQ(m.values[2], (Row{4, 5, 0}));
  EXPECT_EQ(m.places[0].line, 5);
  EXPECT_EQ(m.Find("b"), 1u);
  EXPECT_EQ(m.Find("x"), std::nullopt);
}

TEST(SquareMatrix, MustBeSquare) {
  EXPECT_EQ(Error(",a,b\na,0,1\n"),
            ": the matrix is not square: there is a column 'b' but no such row");
  EXPECT_EQ(Error(",a\na,0\nb,1\n"),
            ":3: the matrix is not square: there is a row 'b' but no such column");
  EXPECT_EQ(Error(",a,b\na,0,1\nb,1\n"),
            ":3: the matrix is not square: row 'b' has 1 values for 2 columns");
  EXPECT_EQ(Error(",a,b\na,0,1\nb,1,0,\n"),
            ":3: the matrix is not square: row 'b' has 3 values for 2 columns");
}

TEST(SquareMatrix, NamesMustBeThereOnce) {
  EXPECT_EQ(Error(",a,a\na,0,1\n"), ":1: two columns are 'a'");
  EXPECT_EQ(Error(",a,\na,0,1\n"), ":1: column 3 has no name");
  EXPECT_EQ(Error(",a,b\na,0,1\na,0,1\n"), ":3: another row is 'a' as well, in line 2");
}

TEST(SquareMatrix, RefusesJunk) {
  EXPECT_EQ(Error(""), ": is empty; a matrix has names in its first row and column");
  EXPECT_EQ(Error("# nothing\n\n"), ": is empty; a matrix has names in its first row and column");
  EXPECT_EQ(Error("a;b\n"),
            ":1: the first line must be the names of the columns after an empty cell, with commas");
  EXPECT_EQ(Error(",a,b\na,0,-5\nb,-5,0\n"),
            ":2: ms from a to b '-5' is not a number from 0 to 1000000");
  EXPECT_EQ(Error(",a,b\na,0,nan\nb,1,0\n"),
            ":2: ms from a to b 'nan' is not a number from 0 to 1000000");
  EXPECT_EQ(Error(",a,b\na,0,1 ms\nb,1,0\n"),
            ":2: ms from a to b '1 ms' is not a number from 0 to 1000000");
  EXPECT_EQ(Error(",a,b\na,0,2e6\nb,1,0\n"),
            ":2: ms from a to b '2e6' is not a number from 0 to 1000000");
  EXPECT_EQ(Error(",a,\"b\na,0,1\n"), ":1: a quote is not closed");
  EXPECT_EQ(Error(",a,\"b\" c\na,0,1\n"), ":1: 'c' follows a quoted cell; a comma must");
}

TEST(SquareMatrix, CannotBeReadFromAFolder) {
  const TempFolder folder;
  EXPECT_EQ(ErrorOf([&] { ReadSquareMatrix(folder.Path("."), "ms", 1); }),
            folder.Path(".") + ": is a folder, not a file");
}

}  // namespace
}  // namespace spes::scenarios
