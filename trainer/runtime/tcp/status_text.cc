#include "trainer/runtime/tcp/status_text.h"

#include <fmt/format.h>

#include <cmath>
#include <nlohmann/json.hpp>

#include "trainer/wire/printable.h"

namespace spes::trainer {

namespace {

using Json = nlohmann::ordered_json;

Json NumberOrNull(double value) { return std::isfinite(value) ? Json(value) : Json(nullptr); }

std::string Bytes(std::int64_t bytes) {
  const char* units[] = {"B", "KiB", "MiB", "GiB", "TiB"};
  auto value = static_cast<double>(bytes);
  std::size_t unit = 0;
  for (; value >= 1024 && unit + 1 < std::size(units); ++unit) value /= 1024;
  return unit == 0 ? fmt::format("{} B", bytes) : fmt::format("{:.3g} {}", value, units[unit]);
}

std::string Duration(double s) {
  const auto whole = static_cast<std::int64_t>(s);
  return whole >= 3600 ? fmt::format("{} h {:02} min", whole / 3600, whole / 60 % 60)
                       : fmt::format("{} min {:02} s", whole / 60, whole % 60);
}

std::string Cell(const std::string& text, const char* kind = "") {
  return fmt::format("<td{}>{}</td>", kind, EscapeHtml(text));
}

constexpr const char* kNumber = " class=\"n\"";

std::string NodeRow(std::size_t number, const NodeReport& node, bool real) {
  std::string row =
      "<tr>" + Cell(std::to_string(number), kNumber) + Cell(node.state) +
      Cell(node.last_round > 0 ? std::to_string(node.last_round) : "–", kNumber) +
      Cell(std::isfinite(node.upload_s) ? fmt::format("{:.3g} s", node.upload_s) : "–", kNumber);
  if (real) {
    const TcpNodeStatus c = node.connection.value_or(TcpNodeStatus());
    const double percent = c.transfer_bytes > 0 ? 100 * static_cast<double>(c.transfer_done) /
                                                      static_cast<double>(c.transfer_bytes)
                                                : 0;
    row +=
        Cell(c.connected         ? c.address
             : c.address.empty() ? "–"
                                 : c.address + " (broken)") +
        Cell(c.connected && std::isfinite(c.rtt_s) ? fmt::format("{:.3g} ms", 1e3 * c.rtt_s) : "–",
             kNumber) +
        Cell(Bytes(c.received_bytes), kNumber) + Cell(Bytes(c.sent_bytes), kNumber) +
        Cell(std::to_string(c.retransmissions), kNumber) +
        Cell(std::to_string(c.reconnects), kNumber) +
        Cell(c.transfer_bytes > 0 ? fmt::format("{:.0f} % of {}", percent, Bytes(c.transfer_bytes))
                                  : "–",
             kNumber);
  }
  return row + "</tr>\n";
}

constexpr const char* kHead = R"(<!DOCTYPE html>
<html lang="en"><head><meta charset="utf-8"><meta http-equiv="refresh" content="2">
<meta name="viewport" content="width=device-width">
<style>
body{font:15px/1.5 system-ui,sans-serif;margin:2em;color:#222;background:#fff}
h1{font-size:1.4em;margin:0}p{margin:.3em 0}
.bar{height:.7em;width:24em;max-width:100%;background:#ddd;margin:.6em 0}
.bar div{height:100%;background:#2a6}
table{border-collapse:collapse;margin:1em 0}
th,td{padding:.2em .7em;border-bottom:1px solid #ddd;text-align:left;white-space:nowrap}
th{font-weight:600}.n{text-align:right;font-variant-numeric:tabular-nums}
small,small a{color:#777}
</style>
)";

}  // namespace

std::string EscapeHtml(std::string_view text) {
  std::string escaped;
  for (const char c : Printable(text)) {
    switch (c) {
      case '&':
        escaped += "&amp;";
        break;
      case '<':
        escaped += "&lt;";
        break;
      case '>':
        escaped += "&gt;";
        break;
      case '"':
        escaped += "&quot;";
        break;
      case '\'':
        escaped += "&#39;";
        break;
      default:
        escaped += c;
    }
  }
  return escaped;
}

std::string StatusPage(const StatusReport& r) {
  const bool real = std::any_of(r.nodes.begin(), r.nodes.end(),
                                [](const NodeReport& node) { return node.connection.has_value(); });
  const double done =
      r.rounds > 0 ? 100 * static_cast<double>(r.round) / static_cast<double>(r.rounds) : 0;
  std::string page = kHead;
  page += fmt::format("<title>{}: round {} of {}</title></head><body>\n", EscapeHtml(r.scenario),
                      r.round, r.rounds);
  page += fmt::format("<h1>{}: {}</h1>\n", EscapeHtml(r.scenario), EscapeHtml(r.state));
  page += fmt::format("<p>{} of {} rounds, step {} of {}, {} on the run’s clock</p>\n", r.round,
                      r.rounds, r.step, r.steps, Duration(r.run_s));
  page += fmt::format("<div class=\"bar\"><div style=\"width:{:.1f}%\"></div></div>\n", done);
  page +=
      fmt::format("<p>{:.4g} M tokens, {} exchanged, coordinator’s memory {}</p>\n",
                  1e-6 * static_cast<double>(r.tokens), Bytes(r.bytes), Bytes(r.resident_bytes));
  if (!r.evals.empty()) {
    page += "<table><tr><th>held-out text</th><th class=\"n\">loss, nats per token</th></tr>\n";
    for (const EvalReport& eval : r.evals) {
      page +=
          "<tr>" + Cell(eval.domain) + Cell(fmt::format("{:.4f}", eval.loss), kNumber) + "</tr>\n";
    }
    page += "</table>\n";
  }
  page +=
      "<table><tr><th class=\"n\">node</th><th>state</th><th class=\"n\">last round</th>"
      "<th class=\"n\">upload</th>";
  if (real) {
    page +=
        "<th>address</th><th class=\"n\">RTT</th><th class=\"n\">received</th>"
        "<th class=\"n\">sent</th><th class=\"n\">sent again</th>"
        "<th class=\"n\">reconnects</th><th class=\"n\">transfer</th>";
  }
  page += "</tr>\n";
  for (std::size_t node = 0; node < r.nodes.size(); ++node) {
    page += NodeRow(node, r.nodes[node], real);
  }
  page += fmt::format(
      "</table>\n<p><small>spes-sim {}, scenario {}, <a href=\"/metrics\">metrics</a>, "
      "<a href=\"/status.json\">JSON</a></small></p>\n</body></html>\n",
      EscapeHtml(r.program_version), EscapeHtml(r.scenario_hash));
  return page;
}

std::string StatusJson(const StatusReport& r) {
  Json json = {{"program_version", r.program_version},
               {"scenario", r.scenario},
               {"scenario_hash", r.scenario_hash},
               {"state", r.state},
               {"round", r.round},
               {"rounds", r.rounds},
               {"step", r.step},
               {"steps", r.steps},
               {"run_s", NumberOrNull(r.run_s)},
               {"process_s", NumberOrNull(r.process_s)},
               {"tokens", r.tokens},
               {"bytes", r.bytes},
               {"resident_bytes", r.resident_bytes},
               {"certificate_expires_s",
                r.certificate_expires_s ? Json(*r.certificate_expires_s) : Json(nullptr)},
               {"evals", Json::array()},
               {"nodes", Json::array()}};
  for (const EvalReport& eval : r.evals) {
    json["evals"].push_back({{"domain", eval.domain}, {"loss", NumberOrNull(eval.loss)}});
  }
  for (std::size_t i = 0; i < r.nodes.size(); ++i) {
    const NodeReport& node = r.nodes[i];
    Json row = {{"node", i},
                {"state", node.state},
                {"last_round", node.last_round},
                {"upload_s", NumberOrNull(node.upload_s)}};
    if (node.connection) {
      const TcpNodeStatus& c = *node.connection;
      row["connected"] = c.connected;
      row["address"] = c.address;
      row["rtt_s"] = NumberOrNull(c.rtt_s);
      row["sent_bytes"] = c.sent_bytes;
      row["received_bytes"] = c.received_bytes;
      row["retransmissions"] = c.retransmissions;
      row["reconnects"] = c.reconnects;
      row["transfer_bytes"] = c.transfer_bytes;
      row["transfer_done"] = c.transfer_done;
    }
    json["nodes"].push_back(std::move(row));
  }
  return json.dump(2, ' ', false, Json::error_handler_t::replace) + "\n";
}

}  // namespace spes::trainer
