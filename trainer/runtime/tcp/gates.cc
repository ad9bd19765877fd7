#include "trainer/runtime/tcp/gates.h"

#include <algorithm>
#include <map>
#include <utility>

namespace spes::trainer {

void Gates::Forget() {
  std::erase_if(gates_, [](const Entry& each) { return each.gate->done(); });
}

template <class F>
bool Gates::Full(F counts, int most) {
  if (std::ranges::count_if(gates_, counts) < most) return false;
  for (const Entry& each : gates_) {
    if (counts(each) && each.gate->lingers()) each.gate->Shut();
  }
  Forget();
  return std::ranges::count_if(gates_, counts) >= most;
}

bool Gates::HasRoom(const std::string& host, const std::string& network) {
  Forget();
  const auto of_host = [&](const Entry& each) { return each.gate->connection().host() == host; };
  const auto any = [](const Entry&) { return true; };
  return !Full(of_host, kMostOfOne) && (!Full(any, kMost) || HasGivenWay(network));
}

bool Gates::HasGivenWay(const std::string& network) {
  std::map<std::string, int> strangers;
  for (const Entry& each : gates_) strangers[each.network] += each.gate->proven() ? 0 : 1;
  const auto fewer = [](const auto& a, const auto& b) { return a.second < b.second; };
  const int most = std::ranges::max_element(strangers, fewer)->second;
  const auto own = strangers.find(network);
  if (most == 0 || (own != strangers.end() && own->second == most)) return false;
  const auto oldest = std::ranges::find_if(gates_, [&](const Entry& each) {
    return !each.gate->proven() && strangers.at(each.network) == most;
  });
  oldest->gate->GiveWay();
  Forget();
  return true;
}

void Gates::Add(std::shared_ptr<Gate> gate, const std::string& network) {
  gates_.push_back({std::move(gate), network});
}

void Gates::Tick(double passed) {
  for (const Entry& each : std::vector(gates_)) each.gate->Tick(passed);
  Forget();
}

void Gates::Shut() {
  for (const Entry& each : gates_) each.gate->Shut();
}

}  // namespace spes::trainer
