#include "experiments/launch/slots.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <limits>
#include <string_view>

#include "src/base/error.hpp"
#include "src/base/host.hpp"
#include "src/base/text.hpp"

namespace chorale::launch {
namespace {

// Reads "n0:2", "n0 slots=2" or "n0".
std::pair<std::string, int> read_host(const std::string& text, const std::string& origin) {
  constexpr int most_slots = 4096;
  constexpr std::string_view marks[] = {" slots=", ":"};
  std::string name = trim(text), number = "1";
  for (const std::string_view mark : marks)
    if (const std::size_t at = name.rfind(mark); at != std::string::npos) {
      number = trim(name.substr(at + mark.size()));
      name = trim(name.substr(0, at));
      break;
    }
  const bool is_number = !number.empty() && std::ranges::all_of(number, [](char c) { return c >= '0' && c <= '9'; });
  const int slots = is_number && number.size() < 6 ? std::stoi(number) : 0;
  if (name.empty() || name.find_first_of(" \t,/") != std::string::npos || slots < 1 || slots > most_slots)
    usage_error("a host cannot be read", fmt::format("\"{}\" in {}", escape_control(trim(text)), origin),
                "name hosts with their slots: --hosts n0:2,n1:2, or a file with one \"n0 slots=2\" per line");
  return {name, slots};
}

}  // namespace

std::vector<std::pair<std::string, int>> read_hosts(const std::string& text) {
  std::vector<std::pair<std::string, int>> hosts;
  std::error_code unreadable;
  const bool is_file = std::filesystem::is_regular_file(text, unreadable);
  const std::string list = is_file ? contents_of(text).value_or("") : text;
  for (const std::string& line : split(list, is_file ? '\n' : ',')) {
    const std::string word = trim(is_file ? line.substr(0, line.find('#')) : line);
    if (word.empty() && is_file) continue;
    const auto [name, slots] = read_host(word, is_file ? text : "--hosts " + text);
    const auto known = std::ranges::find(hosts, name, [](const auto& host) { return host.first; });
    if (known == hosts.end())
      hosts.emplace_back(name, slots);
    else
      known->second += slots;
  }
  if (hosts.empty())
    usage_error("there are no hosts", fmt::format("{} names none", text), "write one host per line: n0 slots=2");
  return hosts;
}

Slots::Slots(std::vector<std::pair<std::string, int>> hosts, double quarantine_seconds)
    : quarantine_seconds_(quarantine_seconds) {
  for (const auto& [host, count] : hosts)
    for (int slot = 0; slot < count; ++slot) slots_.push_back({host});
}

std::size_t Slots::live(double now) const {
  return static_cast<std::size_t>(std::ranges::count_if(slots_, [&](const Slot& slot) { return is_live(slot, now); }));
}

bool Slots::is_live(const Slot& slot, double now) const {
  return slot.free_at <= now && std::ranges::count(held_back_, slot.host) == 0;
}

std::vector<std::string> Slots::live_hosts(double now) const {
  std::vector<std::string> hosts = returned_hosts(now);
  std::erase_if(hosts, [this](const std::string& host) { return std::ranges::count(held_back_, host) > 0; });
  return hosts;
}

std::vector<std::string> Slots::returned_hosts(double now) const {
  std::vector<std::string> hosts;
  for (const Slot& slot : slots_)
    if (slot.free_at <= now && (hosts.empty() || hosts.back() != slot.host)) hosts.push_back(slot.host);
  return hosts;
}

double Slots::next_return(double now) const {
  constexpr double soon_seconds = 1;  // a host that is held back can be ready at any time
  double next = std::numeric_limits<double>::infinity();
  for (const Slot& slot : slots_)
    if (slot.free_at > now)
      next = std::min(next, slot.free_at);
    else if (!is_live(slot, now))
      next = std::min(next, now + soon_seconds);
  return next;
}

void Slots::assign(int ranks, double now, bool spread) {
  std::vector<std::size_t> first, more;  // the first live slot of each host, and all others
  for (std::size_t slot = 0; slot < slots_.size(); ++slot) {
    if (!is_live(slots_[slot], now)) continue;
    const bool is_first = first.empty() || slots_[first.back()].host != slots_[slot].host;
    (spread && !is_first ? more : first).push_back(slot);
  }
  first.insert(first.end(), more.begin(), more.end());
  first.resize(std::min(first.size(), static_cast<std::size_t>(ranks)));
  std::ranges::sort(first);
  of_rank_ = std::move(first);
  require(std::ssize(of_rank_) == ranks, "{} ranks need as many live slots, but there are {}", ranks, of_rank_.size());
}

RankHosts Slots::hosts_of_ranks() const {
  RankHosts where;
  for (const std::size_t slot : of_rank_) {
    if (where.hosts.empty() || where.hosts.back().first != slots_[slot].host) where.hosts.emplace_back(slots_[slot].host, 0);
    ++where.hosts.back().second;
  }
  return where;
}

std::string Slots::host_of(int rank) const {
  return rank >= 0 && rank < std::ssize(of_rank_) ? slots_[of_rank_[static_cast<std::size_t>(rank)]].host : "";
}

// A slot that was already lost at `lost_at` counts no second loss, but does not come back before the rest of its host.
void Slots::lose(Slot& slot, double now, double lost_at) const {
  constexpr int most_doublings = 20;
  const bool is_known = slot.free_at > lost_at;
  if (!is_known) ++slot.losses;
  const double quarantine = quarantine_seconds_ * std::exp2(std::min(slot.losses - 1, most_doublings));
  slot.free_at = std::max(slot.free_at, (is_known ? lost_at : now) + quarantine);
}

void Slots::lose(int rank, double now) {
  if (rank >= 0 && rank < std::ssize(of_rank_)) lose(slots_[of_rank_[static_cast<std::size_t>(rank)]], now, now);
}

bool Slots::was_lost(const std::string& host) const {
  return std::ranges::all_of(slots_, [&](const Slot& slot) { return slot.host != host || slot.losses > 0; });
}

void Slots::lose_host(const std::string& host, double now, double lost_at) {
  for (Slot& slot : slots_)
    if (slot.host == host) lose(slot, now, lost_at);
}

}  // namespace chorale::launch
