#include "scenarios/path_matrix.h"

#include "tests/scenarios/scenario_testing.h"

namespace spes::scenarios {
namespace {

using std::chrono::milliseconds;

TEST(PathList, TheOneThatComesWithTheProgramIsWhole) {
  const std::vector<NetworkPath> paths =
      ReadPathList(SPES_SOURCE_DIR "/scenarios/networks/wan_regions.csv", {});
  std::vector<std::string> sites;
  for (const NetworkPath& p : paths) {
    if (p.a == p.b) sites.push_back(p.a);
  }
  EXPECT_EQ(paths.size(), sites.size() * (sites.size() + 1) / 2);
  EXPECT_EQ(paths[1].a, "oregon");
  EXPECT_EQ(paths[1].b, "virginia");
  EXPECT_EQ(paths[1].rtt, milliseconds(67));
  EXPECT_DOUBLE_EQ(paths[1].bps, 0.79e9);
}

TEST(PathList, RefusesJunk) {
  const TempFolder folder;
  const auto error = [&](const std::string& text) {
    const std::string file = folder.Write("m.csv", text);
    const std::string message = ErrorOf([&] { ReadPathList(file, {}); });
    return message.starts_with(file) ? message.substr(file.size()) : message;
  };
  const std::string head = "# a comment\r\na,b,rtt_ms,gbps\r\n\r\n";
  EXPECT_EQ(error(head + "x,y,1,1\r\n"), "no error");
  EXPECT_EQ(error(head), ":2: holds no path between sites");
  EXPECT_EQ(error(""), ": is empty; its first line must be a,b,rtt_ms,gbps");
  EXPECT_EQ(error("\xef\xbb\xbf" + head + "x,y,1,1"), "no error");
  EXPECT_EQ(error(head + "x;y;1;1\n"),
            ":4: 'x;y;1;1' is not two sites, a round trip and a rate: a,b,rtt_ms,gbps");
  EXPECT_EQ(error("x,y,1,1\n"), ":1: the first line must be a,b,rtt_ms,gbps, not 'x,y,1,1'");
  EXPECT_EQ(error(head + "x,y,1\n"),
            ":4: 'x,y,1' is not two sites, a round trip and a rate: a,b,rtt_ms,gbps");
  EXPECT_EQ(error(head + "x,,1,1\n"),
            ":4: 'x,,1,1' is not two sites, a round trip and a rate: a,b,rtt_ms,gbps");
  EXPECT_EQ(error(head + "x,y,1,1,1\n"),
            ":4: 'x,y,1,1,1' is not two sites, a round trip and a rate: a,b,rtt_ms,gbps");
  EXPECT_EQ(error(head + "x,y,-1,1\n"), ":4: rtt_ms '-1' is not a number from 0 to 10000000");
  EXPECT_EQ(error(head + "x,y,nan,1\n"), ":4: rtt_ms 'nan' is not a number from 0 to 10000000");
  EXPECT_EQ(error(head + "x,y,1,fast\n"), ":4: gbps 'fast' is not a number from 0 to 1000000");
  EXPECT_EQ(error(head + "x,y,1,-2\n"), ":4: gbps '-2' is not a number from 0 to 1000000");
  EXPECT_EQ(error(head + "x,y,1,0\n"), ":4: a rate of 0 gbps carries nothing");
  EXPECT_EQ(error(head + "x,y,1,1\ny,x,1,1\n"), "no error");
  EXPECT_EQ(error(head + "x,y,1,1\nx,x,1,1\ny,x,2,1\n"), ":6: y and x have other values in line 4");
  EXPECT_EQ(error(head + "x,y,1,1\nx,y,1,3\n"), ":5: x and y have other values in line 4");
  const std::string none = folder.Path("none.csv");
  EXPECT_EQ(ErrorOf([&] { ReadPathList(none, {}); }),
            none + ": cannot be read: No such file or directory");
}

TEST(PathList, PathsHaveTheRest) {
  const TempFolder folder;
  NetworkPath rest;
  rest.loss = 0.2;
  rest.loss_burst = 5;
  rest.queue_bdp = 3;
  const NetworkPath path =
      ReadPathList(folder.Write("m.csv", "a,b,rtt_ms,gbps\n\"x, \"\"y\"\"\",z,1,1\n"), rest).at(0);
  EXPECT_EQ(path.a, "x, \"y\"");
  EXPECT_EQ(path.loss, 0.2);
  EXPECT_EQ(path.loss_burst, 5);
  EXPECT_EQ(path.queue_bdp, 3);
}

class PathMatrices : public testing::Test {
 protected:
  std::vector<NetworkPath> Read(const std::string& latencies, const std::string& rates = {}) {
    const std::string l = folder_.Write("l.csv", latencies);
    const std::string r = rates.empty() ? "" : folder_.Write("r.csv", rates);
    NetworkPath rest;
    rest.bps = 30e6;
    rest.loss = 0.25;
    return ReadPathMatrices(l, r, rest);
  }

  // Files are named without their folder.
  std::string Error(const std::string& latencies, const std::string& rates = {}) {
    std::string message = ErrorOf([&] { Read(latencies, rates); });
    const std::string folder = folder_.Path("");
    for (std::size_t at; (at = message.find(folder)) != std::string::npos;) {
      message.erase(at, folder.size());
    }
    return message;
  }

  TempFolder folder_;
};

TEST_F(PathMatrices, LatenciesAlone) {
  const std::vector<NetworkPath> paths = Read("ms,a,b,c\na,0,10,20.5\nb,10,3,-\nc,20.5,,\n");
  ASSERT_EQ(paths.size(), 3u);
  EXPECT_EQ(paths[0].a + paths[0].b, "ab");
  EXPECT_EQ(paths[0].rtt, milliseconds(10));
  EXPECT_EQ(paths[0].bps, 30e6);
  EXPECT_FALSE(paths[0].bps_back);
  EXPECT_EQ(paths[0].loss, 0.25);
  EXPECT_EQ(paths[1].a + paths[1].b, "ac");
  EXPECT_EQ(paths[1].rtt, std::chrono::microseconds(20500));
  EXPECT_EQ(paths[2].a + paths[2].b, "bb") << "within a site";
  EXPECT_EQ(paths[2].rtt, milliseconds(3));
  EXPECT_EQ(paths[2].bps, 100e9);
}

TEST_F(PathMatrices, RatesOfBothDirections) {
  const std::vector<NetworkPath> paths =
      Read(",a,b\na,,10\nb,10,\n", ",b,a\nb,-,700\na,500.5,2000\n");
  ASSERT_EQ(paths.size(), 2u);
  EXPECT_EQ(paths[0].a + paths[0].b, "aa");
  EXPECT_EQ(paths[0].bps, 2e9);
  EXPECT_EQ(paths[0].rtt, milliseconds(0));
  EXPECT_EQ(paths[1].a + paths[1].b, "ab");
  EXPECT_EQ(paths[1].bps, 500.5e6);
  EXPECT_EQ(paths[1].bps_back, 700e6);
}

TEST_F(PathMatrices, LatenciesMustBeSymmetric) {
  EXPECT_EQ(Error(",a,b\na,0,10\nb,11,0\n"),
            "l.csv:3: the matrix is not symmetric: ms from b to a is 11, but 10 the other way in "
            "line 2");
  EXPECT_EQ(
      Error(",a,b\na,0,-\nb,11,0\n"),
      "l.csv:3: the matrix is not symmetric: ms from b to a is 11, but blank the other way in "
      "line 2");
}

TEST_F(PathMatrices, TheTwoFilesMustFit) {
  const std::string l = ",a,b\na,0,10\nb,10,0\n";
  EXPECT_EQ(Error(l, ",a,c\na,,5\nc,5,\n"), "r.csv: has the site 'c', which is not in l.csv");
  EXPECT_EQ(Error(l, ",a\na,5\n"), "l.csv: has the site 'b', which is not in r.csv");
  EXPECT_EQ(Error(l, ",a,b\na,,5\nb,-,\n"),
            "r.csv:3: there is no rate from b to a, but a round trip in l.csv");
  EXPECT_EQ(Error(",a,b,c\na,,5,-\nb,5,,5\nc,-,5,\n", ",a,b,c\na,,1,1\nb,1,,1\nc,-,1,\n"),
            "r.csv:2: there is a rate from a to c, but no round trip in l.csv");
  EXPECT_EQ(
      Error(l, ",a,b\na,,0\nb,5,\n"),
      "r.csv:2: a rate of 0 Mbps from a to b carries nothing; leave it blank where there is no "
      "path");
  EXPECT_EQ(Error(",a,b\na,,\nb,,\n"), "l.csv: holds no path between sites");
}

}  // namespace
}  // namespace spes::scenarios
