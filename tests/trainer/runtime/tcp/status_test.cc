// What a run shows of itself over HTTP.
#include <gmock/gmock.h>

#include <atomic>
#include <chrono>
#include <fstream>
#include <limits>
#include <memory>
#include <nlohmann/json.hpp>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

#include "tests/trainer/runtime/tcp/metrics_check.h"
#include "tests/trainer/runtime/tcp/raw_socket.h"
#include "trainer/runtime/tcp/asio.h"
#include "trainer/runtime/tcp/status_server.h"
#include "trainer/runtime/tcp/status_text.h"

namespace spes::trainer {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Not;

constexpr double kNotANumber = std::numeric_limits<double>::quiet_NaN();

StatusReport Sample() {
  StatusReport report;
  report.program_version = "1.2.3";
  report.scenario = "four";
  report.scenario_hash = "abc";
  report.state = "training";
  report.states = {"absent", "idle", "training"};
  report.round = 3;
  report.rounds = 8;
  report.step = 12;
  report.steps = 32;
  report.run_s = 61.5;
  report.process_s = 62;
  report.tokens = 123456789012;
  report.bytes = 5 << 20;
  report.resident_bytes = 1 << 30;
  report.certificate_expires_s = 1893456000;
  report.evals = {{"gcide", 2.5}};
  TcpNodeStatus connection;
  connection.connected = true;
  connection.address = "192.0.2.7:40000";
  connection.rtt_s = 0.0123;
  connection.sent_bytes = 1000;
  connection.received_bytes = 2000;
  connection.retransmissions = 3;
  connection.reconnects = 1;
  connection.transfer_bytes = 400;
  connection.transfer_done = 100;
  report.nodes = {{"training", connection, 3, 0.75}, {"absent", TcpNodeStatus(), 0, kNotANumber}};
  report.nodes[1].connection->rtt_s = kNotANumber;
  return report;
}

// Texts that nobody should trust.
StatusReport Hostile() {
  StatusReport report = Sample();
  report.scenario = "<script>alert('1' & \"2\")</script>";
  report.evals[0].domain = "a\"}\nspes_round 99\n\\\x01\xff";
  report.nodes[0].connection->address = "\"><img src=x>";
  return report;
}

// A whole HTTP answer.
std::string Ask(const std::string& address, const std::string& request) {
  const auto colon = address.rfind(':');
  std::string host = address.substr(0, colon);
  if (host.starts_with('[')) host = host.substr(1, host.size() - 2);
  asio::ip::tcp::iostream stream(host, address.substr(colon + 1));
  stream.expires_after(std::chrono::seconds(60));
  stream << request << std::flush;
  return {std::istreambuf_iterator<char>(stream), {}};
}

std::string Get(const std::string& address, const std::string& path) {
  return Ask(address, "GET " + path + " HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n");
}

std::string Body(const std::string& answer) { return answer.substr(answer.find("\r\n\r\n") + 4); }

std::unique_ptr<StatusServer> Serve(const std::string& address, StatusReport report = Sample()) {
  return ServeStatus(address, std::make_shared<const StatusReport>(std::move(report)));
}

// Metrics but for the one that always changes.
std::string WithoutAge(const std::string& metrics) {
  const std::string name = "\nspes_report_age_seconds ";
  const std::size_t at = metrics.find(name);
  if (at == std::string::npos) return "there is no age";
  return metrics.substr(0, at) + metrics.substr(metrics.find('\n', at + 1));
}

std::string WhyNot(const std::string& address) {
  try {
    Serve(address);
  } catch (const std::invalid_argument& error) {
    return error.what();
  }
  return "";
}

TEST(MetricsCheck, NamesWhatIsWrong) {
  const std::string head = "# HELP a_total x\n# TYPE a_total counter\n";
  EXPECT_THAT(CheckMetrics(head + "a_total{l=\"v\\\"\"} 1\n").offences, ElementsAre());
  for (const std::string& bad :
       {head + "a_total 1", head, head + "a_total -1\n", head + "a_total x\n",
        head + "a_total{l=\"v} 1\n", head + "a_total{__l=\"v\"} 1\n",
        head + "a_total{l=\"\\x\"} 1\n", head + "a_total 1\na_total 1\n", head + "b 1\n",
        std::string("b 1\n"), head + "\n", head + "a_total 1\n" + head + "a_total{l=\"1\"} 1\n",
        std::string("# TYPE a gauge\na 1\n"), std::string("# HELP a \n# TYPE a gauge\na 1\n"),
        std::string("# HELP a x\n# TYPE a counter\na 1\n"),
        std::string("# HELP a_total x\n# TYPE a_total gauge\na_total 1\n"),
        std::string("# HELP a_ms x\n# TYPE a_ms gauge\na_ms 1\n"),
        head + "a_total{l=\"\xff\"} 1\n"}) {
    EXPECT_FALSE(CheckMetrics(bad).offences.empty()) << bad;
  }
}

TEST(StatusText, MetricsKeepToTheFormat) {
  const CheckedMetrics metrics = CheckMetrics(MetricsText(Sample()));
  EXPECT_THAT(metrics.offences, ElementsAre());
  const auto expect = [&metrics](const std::string& name, double value) {
    ASSERT_TRUE(metrics.samples.contains(name)) << name;
    EXPECT_EQ(metrics.samples.at(name), value) << name;
  };
  expect("spes_run_info{scenario=\"four\",hash=\"abc\"}", 1);
  expect("spes_run_state{state=\"training\"}", 1);
  expect("spes_run_state{state=\"waiting\"}", 0);
  expect("spes_round", 3);
  expect("spes_rounds_planned", 8);
  expect("spes_run_seconds", 61.5);
  expect("spes_certificate_expiration_timestamp_seconds", 1893456000);
  expect("spes_tokens_total", 123456789012);
  expect("spes_eval_loss{domain=\"gcide\"}", 2.5);
  expect("process_resident_memory_bytes", 1 << 30);
  expect("spes_node_state{node=\"0\",state=\"training\"}", 1);
  expect("spes_node_state{node=\"1\",state=\"training\"}", 0);
  expect("spes_node_state{node=\"1\",state=\"absent\"}", 1);
  expect("spes_node_info{node=\"0\",host=\"192.0.2.7\"}", 1);
  expect("spes_node_connected{node=\"1\"}", 0);
  expect("spes_node_rtt_seconds{node=\"0\"}", 0.0123);
  expect("spes_node_received_bytes_total{node=\"0\"}", 2000);
  expect("spes_node_transfer_done_bytes{node=\"0\"}", 100);
  expect("spes_node_upload_seconds{node=\"0\"}", 0.75);
  EXPECT_FALSE(metrics.samples.contains("spes_node_rtt_seconds{node=\"1\"}")) << "not known";
  EXPECT_FALSE(metrics.samples.contains("spes_node_upload_seconds{node=\"1\"}"));
}

TEST(StatusText, AReconnectBeginsNoNewTimeSeries) {
  StatusReport report = Sample();
  const auto series = [&report](const std::string& address) {
    report.nodes[0].connection->address = address;
    for (const auto& [name, value] : CheckMetrics(MetricsText(report)).samples) {
      if (name.starts_with("spes_node_info")) return name;
    }
    return std::string();
  };
  EXPECT_EQ(series("192.0.2.7:40000"), series("192.0.2.7:40001"));
  EXPECT_EQ(series("[2001:db8::7]:40000"), "spes_node_info{node=\"0\",host=\"2001:db8::7\"}");
}

TEST(StatusText, ASimulationHasNoConnections) {
  StatusReport report = Sample();
  report.certificate_expires_s.reset();
  for (NodeReport& node : report.nodes) node.connection.reset();
  const std::string text = MetricsText(report);
  EXPECT_THAT(CheckMetrics(text).offences, ElementsAre());
  EXPECT_THAT(text, Not(HasSubstr("spes_node_rtt_seconds")));
  EXPECT_THAT(text, Not(HasSubstr("spes_certificate")));
  EXPECT_THAT(StatusPage(report), Not(HasSubstr("RTT")));
  EXPECT_FALSE(nlohmann::json::parse(StatusJson(report))["nodes"][0].contains("rtt_s"));
}

TEST(StatusText, WhatComesFromElsewhereIsEscaped) {
  EXPECT_EQ(EscapeHtml("<a href=\"'&\n\x80"), "&lt;a href=&quot;&#39;&amp;??");
  EXPECT_EQ(EscapeHtml("München"), "München");
  EXPECT_EQ(EscapeLabel("a\\b\"c\nd\te\xff"), "a\\\\b\\\"c\\nd?e?");
  const std::string metrics = MetricsText(Hostile());
  const CheckedMetrics checked = CheckMetrics(metrics);
  EXPECT_THAT(checked.offences, ElementsAre());
  EXPECT_EQ(checked.samples.at("spes_round"), 3);
  EXPECT_EQ(checked.samples.size(), CheckMetrics(MetricsText(Sample())).samples.size());
  const std::string page = StatusPage(Hostile());
  EXPECT_THAT(page,
              HasSubstr("&lt;script&gt;alert(&#39;1&#39; &amp; &quot;2&quot;)&lt;/script&gt;"));
  EXPECT_THAT(page, Not(HasSubstr("<script")));
  EXPECT_THAT(page, Not(HasSubstr("<img")));
  const auto json = nlohmann::json::parse(StatusJson(Hostile()));
  EXPECT_EQ(json["scenario"], Hostile().scenario);
}

TEST(StatusText, ThePageNeedsNothingElseAndIsWhole) {
  const std::string page = StatusPage(Sample());
  for (const char* outside : {"http://", "https://", "src=", "@import", "url("}) {
    EXPECT_THAT(page, Not(HasSubstr(outside)));
  }
  EXPECT_THAT(page, HasSubstr("http-equiv=\"refresh\""));
  EXPECT_THAT(page, HasSubstr("25 % of 400 B"));
  EXPECT_THAT(page, HasSubstr("12.3 ms"));
  // Every element that is opened is closed, in order.
  std::vector<std::string> open;
  for (std::size_t at = page.find('<'); at != std::string::npos; at = page.find('<', at + 1)) {
    const std::string tag = page.substr(at + 1, page.find_first_of(" >", at) - at - 1);
    if (tag == "!DOCTYPE" || tag == "meta") continue;
    if (!tag.starts_with('/')) {
      open.push_back(tag);
      continue;
    }
    ASSERT_FALSE(open.empty()) << tag;
    EXPECT_EQ("/" + open.back(), tag);
    open.pop_back();
  }
  EXPECT_THAT(open, ElementsAre());
}

TEST(StatusServer, AnswersWithTheLatestReport) {
  const auto server = Serve("127.0.0.1:0");
  EXPECT_TRUE(server->loopback());
  EXPECT_THAT(server->address(), Not(HasSubstr(":0")));
  const std::string metrics = Get(server->address(), "/metrics");
  EXPECT_THAT(metrics, HasSubstr("HTTP/1.1 200 OK"));
  EXPECT_THAT(metrics, HasSubstr("Content-Type: text/plain; version=0.0.4; charset=utf-8"));
  EXPECT_EQ(WithoutAge(Body(metrics)), WithoutAge(MetricsText(Sample())));
  EXPECT_THAT(Get(server->address(), "/"),
              HasSubstr("Content-Security-Policy: default-src 'none'"));
  EXPECT_EQ(Body(Get(server->address(), "/")), StatusPage(Sample()));
  EXPECT_EQ(Body(Get(server->address(), "/status.json")), StatusJson(Sample()));
  EXPECT_EQ(Body(Get(server->address(), "/healthz")), "ok\n");
  auto next = std::make_shared<StatusReport>(Sample());
  next->round = 4;
  server->Publish(next);
  EXPECT_EQ(CheckMetrics(Body(Get(server->address(), "/metrics"))).samples.at("spes_round"), 4);
}

TEST(StatusServer, ARunThatReportsNothingIsNotHealthy) {
  StatusReport old = Sample();
  old.published -= kStale + std::chrono::seconds(1);
  const auto server = Serve("127.0.0.1:0", old);
  const std::string answer = Get(server->address(), "/healthz");
  EXPECT_THAT(answer, HasSubstr("HTTP/1.1 503 Service Unavailable\r\n"));
  EXPECT_THAT(Body(answer), testing::MatchesRegex("the run has reported nothing for 3[0-9]+ s\n"));
  const auto age = [&server] {
    return CheckMetrics(Body(Get(server->address(), "/metrics")))
        .samples.at("spes_report_age_seconds");
  };
  EXPECT_GE(age(), 31);
  server->Publish(std::make_shared<const StatusReport>(Sample()));
  EXPECT_EQ(Body(Get(server->address(), "/healthz")), "ok\n");
  EXPECT_LT(age(), 30);
}

TEST(StatusServer, AnswersNothingElseAndOutlivesRubbish) {
  const auto server = Serve("127.0.0.1:0");
  EXPECT_THAT(Get(server->address(), "/../etc/passwd"), HasSubstr("HTTP/1.1 404"));
  EXPECT_THAT(Ask(server->address(),
                  "POST /metrics HTTP/1.1\r\nContent-Length: 1000000\r\n"
                  "Connection: close\r\n\r\nx"),
              Not(HasSubstr("200 OK")));
  Ask(server->address(), std::string("\0\xff\x16\x03garbage\r\n\r\n", 14));
  Ask(server->address(), "GET / HTTP/1.1\r\nA: " + std::string(100000, 'x') + "\r\n\r\n");
  EXPECT_EQ(Body(Get(server->address(), "/healthz")), "ok\n");
}

TEST(StatusServer, HeadIsGetWithoutTheContent) {
  const auto server = Serve("127.0.0.1:0");
  const std::string head = Ask(server->address(), "HEAD /healthz HTTP/1.1\r\nHost: x\r\n\r\n");
  EXPECT_THAT(head, HasSubstr("Content-Length: 3\r\n"));
  EXPECT_EQ(Body(head), "");
  EXPECT_EQ(Body(Get(server->address(), "/healthz?a=b")), "ok\n");
  EXPECT_THAT(Ask(server->address(), "POST /healthz HTTP/1.1\r\n\r\n"), HasSubstr(" 405 "));
  EXPECT_THAT(Ask(server->address(), "GET\r\n\r\n"), HasSubstr(" 400 "));
}

double ResidentMiB() {
  std::ifstream file("/proc/self/statm");
  double total = 0, resident = 0;
  file >> total >> resident;
  return resident * 4096 / (1 << 20);
}

TEST(StatusServer, ARequestWithoutEndTakesNoMemory) {
  const auto server = Serve("127.0.0.1:0");
  const auto grows = [&](const std::string& first, const std::string& then) {
    RawSocket socket(server->address());
    const double before = ResidentMiB();
    socket.Say(first);
    for (std::size_t said = 0; said < 100 << 20; said += then.size()) socket.Say(then);
    return ResidentMiB() - before;
  };
  EXPECT_LE(grows("POST / HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n",
                  "100000\r\n" + std::string(1 << 20, 'x') + "\r\n"),
            30);
  EXPECT_LE(grows("GET / HTTP/1.1\r\nHost: x\r\n", "a: " + std::string(8000, 'x') + "\r\n"), 30);
}

TEST(StatusServer, WhoIsSlowIsNotWaitedForAtTheEnd) {
  auto server = Serve("127.0.0.1:0");
  RawSocket slow(server->address());
  slow.Say("GET / HTTP/1.1\r\nHost: x\r\na: ");
  EXPECT_EQ(Body(Get(server->address(), "/healthz")), "ok\n");  // the slow one is being served
  std::atomic<bool> over = false;
  std::thread drips([&] {
    while (!over) {
      slow.Say("x");
      std::this_thread::sleep_for(std::chrono::milliseconds(20));
    }
  });
  const auto begin = std::chrono::steady_clock::now();
  server.reset();
  EXPECT_LT(std::chrono::steady_clock::now() - begin, std::chrono::seconds(4));
  over = true;
  drips.join();
}

TEST(StatusServer, ThereIsRoomForSoManyAtOnce) {
  const auto server = Serve("127.0.0.1:0");
  RawSocket slow(server->address());
  slow.Say("GET / HTTP/1.1\r\n");
  std::vector<std::unique_ptr<RawSocket>> others;
  for (int i = 0; i < 40; ++i) others.push_back(std::make_unique<RawSocket>(server->address()));
  EXPECT_TRUE(others.back()->Closed()) << "there is room for 32";
  others.clear();
  std::string answer;  // until the server has seen that they are gone
  for (int i = 0; i < 1000 && answer.empty(); ++i) answer = Get(server->address(), "/healthz");
  EXPECT_THAT(answer, HasSubstr("200 OK"));
}

TEST(StatusServer, ReportsChangeWhileManyAsk) {
  const auto server = Serve("127.0.0.1:0");
  std::vector<std::thread> readers;
  std::atomic<int> wrong{0};
  for (int i = 0; i < 4; ++i) {
    readers.emplace_back([&] {
      for (int k = 0; k < 20; ++k) {
        const CheckedMetrics checked = CheckMetrics(Body(Get(server->address(), "/metrics")));
        // Both figures are of one report.
        const bool good = checked.offences.empty() && checked.samples.contains("spes_step") &&
                          checked.samples.at("spes_step") == 4 * checked.samples.at("spes_round");
        if (!good) ++wrong;
      }
    });
  }
  for (int round = 0; round < 1000; ++round) {
    auto next = std::make_shared<StatusReport>(Sample());
    next->round = round;
    next->step = 4 * round;
    server->Publish(next);
    if (round % 50 == 0) std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
  for (std::thread& reader : readers) reader.join();
  EXPECT_EQ(wrong, 0);
}

TEST(StatusServer, SaysWhyAnAddressCannotBeHad) {
  const auto server = Serve("127.0.0.1:0");
  EXPECT_EQ(WhyNot(server->address()),
            server->address() + " is taken by another program; name another port");
  EXPECT_THAT(WhyNot("127.0.0.1"), HasSubstr("HOST:PORT"));
  EXPECT_THAT(WhyNot("203.0.113.9:0"), HasSubstr("nobody can listen there"));
  EXPECT_THAT(WhyNot("no.such.host.invalid:80"), HasSubstr("no host that is known here"));
  EXPECT_FALSE(Serve("0.0.0.0:0")->loopback());
}

TEST(StatusServer, LeavesItsPortWhenItEnds) {
  std::string address;
  {
    const auto server = Serve("127.0.0.1:0");
    address = server->address();
    Get(address, "/");
  }
  EXPECT_EQ(WhyNot(address), "");
}

}  // namespace
}  // namespace spes::trainer
