// Source of the format: Prometheus, "Text-based format", version 0.0.4.
#include <fmt/format.h>

#include <cmath>

#include "trainer/runtime/tcp/status_text.h"
#include "trainer/wire/printable.h"

namespace spes::trainer {

namespace {

// Name and value of one label; names are ours.
std::string Label(std::string_view name, std::string_view value) {
  return fmt::format("{}=\"{}\"", name, EscapeLabel(value));
}

// Without the port, which is another one after every reconnect: "HOST:PORT", "[IPV6]:PORT".
std::string_view HostOf(std::string_view address) {
  address = address.substr(0, address.rfind(':'));
  if (address.starts_with('[') && address.ends_with(']')) {
    address = address.substr(1, address.size() - 2);
  }
  return address;
}

class Writer {
 public:
  // What follows are samples of this metric.
  void Metric(std::string_view name, std::string_view type, std::string_view help) {
    name_ = name;
    head_ = fmt::format("# HELP {} {}\n# TYPE {} {}\n", name, help, name, type);
  }
  void Sample(std::string_view labels, double value) {
    if (std::isnan(value)) return;
    const std::string number =
        std::isinf(value) ? (value > 0 ? "+Inf" : "-Inf") : fmt::format("{:.15g}", value);
    Line(labels, number);
  }
  void Sample(std::string_view labels, std::int64_t value) { Line(labels, std::to_string(value)); }
  void Sample(std::string_view labels, std::int32_t value) { Line(labels, std::to_string(value)); }
  void Sample(std::string_view labels, bool value) { Line(labels, value ? "1" : "0"); }

  std::string text;

 private:
  // A metric without samples is left away, head and all.
  void Line(std::string_view labels, const std::string& number) {
    text += std::exchange(head_, {});
    text += labels.empty() ? fmt::format("{} {}\n", name_, number)
                           : fmt::format("{}{{{}}} {}\n", name_, labels, number);
  }

  std::string name_, head_;
};

void RunMetrics(const StatusReport& r, Writer& w) {
  w.Metric("spes_build_info", "gauge", "The program.");
  w.Sample(Label("version", r.program_version), true);
  w.Metric("spes_run_info", "gauge", "The scenario of the run.");
  w.Sample(Label("scenario", r.scenario) + "," + Label("hash", r.scenario_hash), true);
  w.Metric("spes_run_state", "gauge", "1 for the state that the run is in.");
  for (const char* state : kRunStates) w.Sample(Label("state", state), r.state == state);
  w.Metric("spes_round", "gauge", "The last round that was published.");
  w.Sample("", r.round);
  w.Metric("spes_rounds_planned", "gauge", "Rounds of the whole run.");
  w.Sample("", r.rounds);
  w.Metric("spes_step", "gauge", "Steps of each node in published rounds.");
  w.Sample("", r.step);
  w.Metric("spes_steps_planned", "gauge", "Steps of each node in the whole run.");
  w.Sample("", r.steps);
  w.Metric("spes_run_seconds", "gauge", "The clock of the run; a resumed run goes on with it.");
  w.Sample("", r.run_s);
  w.Metric("spes_process_seconds", "gauge", "Wall time since the coordinator's process began.");
  w.Sample("", r.process_s);
  w.Metric("spes_report_age_seconds", "gauge",
           "Time since the coordinator has reported these figures; it does so every second.");
  w.Sample("", r.age_s());
  w.Metric("spes_certificate_expiration_timestamp_seconds", "gauge",
           "When the coordinator's certificate expires, since 1970.");
  if (r.certificate_expires_s) w.Sample("", *r.certificate_expires_s);
  w.Metric("spes_tokens_total", "counter", "Tokens that all nodes have trained on.");
  w.Sample("", r.tokens);
  w.Metric("spes_published_bytes_total", "counter",
           "Bytes up and down of published rounds, all nodes.");
  w.Sample("", r.bytes);
  w.Metric("spes_eval_loss", "gauge", "Latest held-out loss, nats per token.");
  for (const EvalReport& eval : r.evals) w.Sample(Label("domain", eval.domain), eval.loss);
  w.Metric("process_resident_memory_bytes", "gauge", "Resident memory of the coordinator.");
  w.Sample("", r.resident_bytes);
}

void NodeMetrics(const StatusReport& r, Writer& w) {
  // All samples of a metric stand together.
  const auto each = [&r](auto sample) {
    for (std::size_t node = 0; node < r.nodes.size(); ++node) {
      sample(Label("node", std::to_string(node)), r.nodes[node]);
    }
  };
  const auto each_connection = [&each](auto sample) {
    each([&sample](const std::string& label, const NodeReport& node) {
      if (node.connection) sample(label, *node.connection);
    });
  };
  w.Metric("spes_node_state", "gauge", "1 for the state that the node is in.");
  each([&](const std::string& label, const NodeReport& node) {
    for (const std::string& state : r.states) {
      w.Sample(label + "," + Label("state", state), node.state == state);
    }
  });
  w.Metric("spes_node_last_round", "gauge", "The last round that the node's result was part of.");
  each([&](const std::string& label, const NodeReport& node) { w.Sample(label, node.last_round); });
  w.Metric("spes_node_upload_seconds", "gauge", "Time that the node's last upload took.");
  each([&](const std::string& label, const NodeReport& node) { w.Sample(label, node.upload_s); });
  w.Metric("spes_node_info", "gauge", "The host that the node is connected from.");
  each_connection([&](const std::string& label, const TcpNodeStatus& c) {
    if (!c.address.empty()) w.Sample(label + "," + Label("host", HostOf(c.address)), true);
  });
  w.Metric("spes_node_connected", "gauge", "1 while the node has a connection.");
  each_connection(
      [&](const std::string& label, const TcpNodeStatus& c) { w.Sample(label, c.connected); });
  w.Metric("spes_node_rtt_seconds", "gauge", "Smoothed round trip of the connection for beats.");
  each_connection(
      [&](const std::string& label, const TcpNodeStatus& c) { w.Sample(label, c.rtt_s); });
  w.Metric("spes_node_sent_bytes_total", "counter", "Bytes sent to the node.");
  each_connection(
      [&](const std::string& label, const TcpNodeStatus& c) { w.Sample(label, c.sent_bytes); });
  w.Metric("spes_node_received_bytes_total", "counter", "Bytes received from the node.");
  each_connection(
      [&](const std::string& label, const TcpNodeStatus& c) { w.Sample(label, c.received_bytes); });
  w.Metric("spes_node_retransmissions_total", "counter", "Segments sent again to the node.");
  each_connection([&](const std::string& label, const TcpNodeStatus& c) {
    w.Sample(label, c.retransmissions);
  });
  w.Metric("spes_node_reconnects_total", "counter", "Broken connections that were taken up again.");
  each_connection(
      [&](const std::string& label, const TcpNodeStatus& c) { w.Sample(label, c.reconnects); });
  w.Metric("spes_node_transfer_bytes", "gauge", "Size of the transfer underway, 0 without one.");
  each_connection(
      [&](const std::string& label, const TcpNodeStatus& c) { w.Sample(label, c.transfer_bytes); });
  w.Metric("spes_node_transfer_done_bytes", "gauge", "What has been passed of it.");
  each_connection(
      [&](const std::string& label, const TcpNodeStatus& c) { w.Sample(label, c.transfer_done); });
}

}  // namespace

std::string EscapeLabel(std::string_view text) {
  std::string escaped;
  while (!text.empty()) {
    const std::size_t special = std::min(text.find_first_of("\\\"\n"), text.size());
    escaped += Printable(text.substr(0, special));
    if (special == text.size()) break;
    escaped += text[special] == '\n' ? std::string("\\n") : std::string("\\") + text[special];
    text.remove_prefix(special + 1);
  }
  return escaped;
}

std::string MetricsText(const StatusReport& report) {
  Writer writer;
  RunMetrics(report, writer);
  NodeMetrics(report, writer);
  return std::move(writer.text);
}

}  // namespace spes::trainer
