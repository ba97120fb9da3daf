#include "src/base/guard/explanation.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <map>

#include "src/base/host.hpp"
#include "src/base/text.hpp"

namespace chorale {
namespace {

std::vector<int> numbers_in(const std::string& ranges) {
  std::vector<int> numbers;
  if (ranges.find("…") != std::string::npos) return numbers;  // the list is incomplete
  for (const std::string& part : split(ranges, ',')) {
    int first = 0, last = 0;
    const char* const end = part.data() + part.size();
    const auto read = std::from_chars(part.data(), end, first);
    if (read.ec != std::errc()) continue;
    last = first;
    if (read.ptr != end) std::from_chars(read.ptr + 1, end, last);
    for (int number = first; number <= last && numbers.size() < 100'000; ++number) numbers.push_back(number);
  }
  return numbers;
}

std::string ranks_in_words(const std::set<int>& ranks) {
  return (ranks.size() == 1 ? "rank " : "ranks ") + cpu_ranges({ranks.begin(), ranks.end()});
}

std::string words_of(const FlightCall& call) {
  return fmt::format("call {} of ranks {}, {}", call.sequence, fixed_text(call.members), fixed_text(call.words));
}

std::string state_of(const FlightCall& call) {
  switch (call.state) {
    case FlightCall::State::over: return "over";
    case FlightCall::State::failed: return "failed";
    default: break;
  }
  std::string text = call.steps ? fmt::format("begun, {} steps done", call.steps) : "begun";
  if (call.awaits >= 0) text += fmt::format(", waits for rank {}", call.awaits);
  return text;
}

std::string last_call(const FlightPage& page) {
  const FlightCall* const last = page.last();
  return last ? fmt::format("its last call: {}: {}", words_of(*last), state_of(*last)) : "it has made no call yet";
}

std::string who(const FlightPage& page) { return fmt::format("rank {} on {}", page.rank, fixed_text(page.host)); }

std::string how_it_lives(const SeenRank& rank) {
  if (!rank.end.empty()) return rank.end;
  switch (rank.state) {
    case 'T': return "is stopped, as by SIGSTOP";
    case 'R': return "computes";
    case 'D': return "waits for a disk or a device";
    case 'S': return "sleeps";
    default: return "is silent";
  }
}

// Returns the known members of a call's group that have not made the call.
std::set<int> late_for(const FlightCall& call, const std::vector<SeenRank>& all) {
  std::set<int> late;
  const std::vector<int> members = numbers_in(fixed_text(call.members));
  for (const SeenRank& rank : all) {
    if (std::ranges::find(members, rank.page.rank) == members.end()) continue;
    const FlightGroup* const group = rank.page.group(call.group);
    if (group && group->calls < call.sequence) late.insert(rank.page.rank);
  }
  return late;
}

// Returns the ticket of the newest call that the rank had made when it joined the group with this mark. Calls up to this
// ticket belong to earlier groups, even if such a group had the same mark.
std::uint64_t since(const FlightPage& page, std::uint64_t mark) {
  const FlightGroup* const group = page.group(mark);
  return group ? group->since : 0;
}

// A call in which ranks wait, with the waiting ranks and the members that have not made the call.
struct Wait {
  const FlightCall* call = nullptr;
  std::set<int> waiting, late;
  std::map<int, const FlightCall*> other;  // ranks whose call with the same sequence number does not match this call
};

std::vector<Wait> waits_among(const std::vector<SeenRank>& all) {
  std::map<std::pair<std::uint64_t, std::uint64_t>, Wait> waits;
  for (const SeenRank& rank : all) {
    if (!rank.page.waits) continue;
    for (const FlightCall& call : rank.page.calls) {
      if (call.state != FlightCall::State::begun) continue;
      Wait& wait = waits[{call.group, call.sequence}];
      if (!wait.call) wait.call = &call;
      wait.waiting.insert(rank.page.rank);
    }
  }
  std::vector<Wait> list;
  for (auto& [place, wait] : waits) {
    wait.late = late_for(*wait.call, all);
    for (const SeenRank& rank : all)
      for (const FlightCall& call : rank.page.calls)
        if (call.ticket > since(rank.page, place.first) && call.group == place.first && call.sequence == place.second &&
            fixed_text(call.words) != fixed_text(wait.call->words))
          wait.other[rank.page.rank] = &call;
    list.push_back(std::move(wait));
  }
  return list;
}

// The ranks that are late in a run that hangs, and those of them that do not wait in a call themselves.
struct Blame {
  std::vector<Wait> waits;
  std::set<int> late, reason;
  const std::set<int>& blamed() const { return reason.empty() ? late : reason; }
};

Blame blame_for_hang(const std::vector<SeenRank>& all) {
  Blame blame{.waits = waits_among(all)};
  for (const SeenRank& rank : all)  // a rank that is stopped or dead is late even for a call that it has begun
    if (rank.state == 'T' || !rank.end.empty())
      for (Wait& wait : blame.waits)
        if (wait.waiting.erase(rank.page.rank)) wait.late.insert(rank.page.rank);
  for (const Wait& wait : blame.waits) blame.late.insert(wait.late.begin(), wait.late.end());
  for (const SeenRank& rank : all) {
    if (rank.state == 'T' || !rank.end.empty()) {
      blame.late.insert(rank.page.rank);
      blame.reason.insert(rank.page.rank);
    }
    if (blame.late.contains(rank.page.rank) && !rank.page.waits) blame.reason.insert(rank.page.rank);
  }
  return blame;
}

std::string in_words(const Wait& wait) {
  std::string line = fmt::format("{} {} in {}", ranks_in_words(wait.waiting), wait.waiting.size() == 1 ? "waits" : "wait",
                                 words_of(*wait.call));
  if (!wait.late.empty()) line += fmt::format(", for {}", ranks_in_words(wait.late));
  for (const auto& [rank, call] : wait.other) line += fmt::format("; rank {} called {}", rank, fixed_text(call->words));
  if (!wait.late.empty() || !wait.other.empty()) return line;
  line += ", which all its ranks have begun";
  if (wait.call->awaits >= 0) line += fmt::format(": a message from rank {} has not come", wait.call->awaits);
  return line;
}

// Returns "build/chorale", for example, as the user typed it, so that the commands in messages can be pasted.
std::string program_of(const FlightPage& page) {
  const std::string program = fixed_text(page.program);
  return program.empty() ? "chorale" : program;
}

std::string what_to_do(const std::vector<SeenRank>& all) {
  for (const SeenRank& rank : all) {
    const std::string folder = fixed_text(rank.page.folder);
    if (folder.empty()) continue;
    const std::string set = fixed_text(rank.page.saved);
    return (rank.page.supervised ? "the launch goes on from the newest saved step"
            : set.empty()        ? "there is no checkpoint: start the run again"
                                 : "resume from the newest checkpoint: --load " + set) +
           fmt::format("; the last calls of every rank: {} explain {}", program_of(rank.page), folder);
  }
  return "start the program again";
}

std::string in_lines(const std::vector<std::string>& lines, const char* kind = "error: ") {
  std::string text = kind + escape_control(lines[0]);
  for (std::size_t i = 1; i < lines.size(); ++i) text += "\n  " + escape_control(lines[i]);
  return text + "\n";
}

}  // namespace

std::string explain_end(const SeenRank& ended, const std::vector<SeenRank>& all) {
  std::vector<std::string> lines{fmt::format("{} {} in {}", who(ended.page), ended.end, fixed_text(ended.page.doing)),
                                 last_call(ended.page)};
  for (const Wait& wait : waits_among(all)) lines.push_back(in_words(wait));
  lines.push_back(what_to_do(all));
  return in_lines(lines);
}

std::string explain_deadlock(const std::vector<SeenRank>& all) {
  // Maps each waiting rank to the ranks that are late for its call.
  std::map<int, std::set<int>> needs;
  for (const SeenRank& rank : all) {
    const FlightCall* const call = rank.page.waits && rank.end.empty() ? rank.page.call(rank.page.awaited) : nullptr;
    if (!call || call->state != FlightCall::State::begun) continue;
    for (const int late : late_for(*call, all))
      if (call->awaits < 0 || call->awaits == late) needs[rank.page.rank].insert(late);
  }
  const auto can_go_on = [&](const auto& one) {
    return std::ranges::none_of(one.second, [&](int late) { return needs.contains(late); });
  };
  while (std::erase_if(needs, can_go_on) > 0) {}
  if (needs.empty()) return "";
  std::vector<std::string> lines{"ranks wait for each other"};
  for (const SeenRank& rank : all)
    if (const auto one = needs.find(rank.page.rank); one != needs.end())
      lines.push_back(fmt::format("{} waits for {} in {}", who(rank.page), ranks_in_words(one->second),
                                  words_of(*rank.page.call(rank.page.awaited))));
  lines.push_back("make the same calls in the same order on all ranks of a group, and calls of several groups in one order");
  return in_lines(lines);
}

std::string explain_hang(const std::vector<SeenRank>& all, double seconds) {
  std::vector<std::string> lines{fmt::format("the run hangs: nothing has moved for {:.1f} s", seconds)};
  const Blame blame = blame_for_hang(all);
  for (const SeenRank& rank : all) {
    if (!blame.blamed().contains(rank.page.rank)) continue;
    lines.push_back(fmt::format("{} is late: it {}, in {}; {}", who(rank.page),
                                blame.reason.contains(rank.page.rank) ? how_it_lives(rank) : "waits in another call",
                                fixed_text(rank.page.doing), last_call(rank.page)));
  }
  for (const Wait& wait : blame.waits)
    if (!wait.waiting.empty()) lines.push_back(in_words(wait));
  if (blame.waits.empty())
    for (const SeenRank& rank : all)
      if (!blame.late.contains(rank.page.rank)) lines.push_back(fmt::format("{} {}", who(rank.page), in_words(rank)));
  lines.push_back(what_to_do(all) + "; a slow machine needs a longer limit: CHORALE_TIMEOUT=SECONDS");
  return in_lines(lines);
}

std::set<int> late_ranks(const std::vector<SeenRank>& all) { return blame_for_hang(all).blamed(); }

std::string explain_late(const std::vector<SeenRank>& late, const std::vector<SeenRank>& waiting, double seconds) {
  std::set<int> patient;
  for (const SeenRank& rank : waiting) patient.insert(rank.page.rank);
  const std::string who_waits = patient.empty() ? "ranks of other hosts" : ranks_in_words(patient);
  std::vector<std::string> lines{
      fmt::format("{} {} waited for {:.1f} s", who_waits, patient.size() == 1 ? "has" : "have", seconds)};
  for (const SeenRank& rank : late)
    lines.push_back(fmt::format("{} is late: it {}, in {}; {}", who(rank.page), how_it_lives(rank),
                                fixed_text(rank.page.doing), last_call(rank.page)));
  lines.push_back(fmt::format(
      "this may be long work, such as reading a large file, or an endless loop; to see it: gdb -p {}", late[0].page.pid));
  return in_lines(lines, "warning: ");
}

std::string explain_stop(const SeenRank& ended) {
  return fmt::format("{}the ranks were asked to end; in {}, {} {}", stopped_mark, fixed_text(ended.page.doing),
                     who(ended.page), ended.end);
}

std::string explain_request(const std::vector<SeenRank>& here, int expected, const std::string& next) {
  std::set<int> missing;
  for (int rank = 0; rank < expected; ++rank) missing.insert(rank);
  const SeenRank* busy = nullptr;  // the first running rank
  for (const SeenRank& rank : here) {
    missing.erase(rank.page.rank);
    if (rank.state != 'X' && (!busy || rank.page.rank < busy->page.rank)) busy = &rank;
  }
  if (!busy) return "";
  const std::string folder = fixed_text(busy->page.folder), saved = fixed_text(busy->page.saved),
                    program = program_of(busy->page);
  std::vector<std::string> lines{
      fmt::format("the ranks were asked to end; {} is still in {}", who(busy->page), fixed_text(busy->page.doing))};
  if (!folder.empty()) lines.push_back(fmt::format("what is done is recorded: {} report {}", program, folder));
  if (!folder.empty() && !saved.empty())
    lines.push_back(
        fmt::format("to go on from the newest checkpoint: mpirun -n {} {} train --config {}/config.toml --load {}",
                    busy->page.size, program, folder, saved));
  if (busy->page.size == expected && !missing.empty())  // otherwise ranks of other hosts are also missing
    lines.push_back(fmt::format("{} never reached the guard: dead since the start, or late", ranks_in_words(missing)));
  lines.push_back(next);
  return in_lines(lines, "warning: ");
}

std::string in_words(const SeenRank& rank) {
  const char* const waits = rank.page.waits && rank.end.empty() ? " and waits for other ranks" : "";
  return fmt::format("{}{}, in {}", how_it_lives(rank), waits, fixed_text(rank.page.doing));
}

std::vector<std::string> newest_calls(const FlightPage& page) {
  std::vector<std::string> lines;
  for (std::uint64_t ticket = page.newest; const FlightCall* call = page.call(ticket); --ticket)
    lines.push_back(fmt::format("{}, {}: {}", words_of(*call), human_bytes(call->bytes), state_of(*call)));
  return lines;
}

}  // namespace chorale
