// Explores every possible order of events for a few ranks. There are four kinds of event. In each event, a rank advances in
// its script, asks a peer which call the peer is in, receives a control message, or reads one. The tests use the
// CallAgreement and the ControlEndpoint of the program. Messages go through a channel that the test implements, so the test
// chooses the next event.
//
//   rank 0   join ── call ── leave ── join ── call ──▶          at each point, any rank that can advance may do so;
//   rank 1   join ── call ── leave ── join ── call ──▶          a rank that waits in a call may ask a peer or read a message
//
// Many orders lead to the same state, and each state is explored once.
#pragma once
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <deque>
#include <functional>
#include <set>

#include "collectives/backends/message/call_agreement.hpp"
#include "src/base/hash.hpp"

namespace chorale::test::control {

struct Post {
  struct Sent {
    int to;
    ControlMessage message;
  };
  std::vector<Sent> under_way;
  std::vector<std::deque<ControlMessage>> arrived;  // control messages that each rank has not read
};

class TestChannel final : public ControlChannel {
 public:
  TestChannel(Post& post, int rank) : post_(post), rank_(rank) {}
  int rank() const override { return rank_; }
  void send(int to, const ControlMessage& message) noexcept override { post_.under_way.push_back({to, message}); }
  bool receive(ControlMessage& message) override {
    auto& mine = post_.arrived[static_cast<std::size_t>(rank_)];
    if (mine.empty()) return false;
    message = mine.front();
    mine.pop_front();
    return true;
  }

 private:
  Post& post_;
  const int rank_;
};

// One act of a rank's script. A call completes once all ranks that the call waits for have begun the same call.
struct Act {
  enum Kind { join, call, leave } kind;
  int group;
  std::uint64_t signature = 0;  // signature of a call; different calls have different signatures
  int waits_for = -1;           // a world rank; −1: all members
};

struct Play {
  std::vector<std::vector<int>> groups;   // world ranks of each group's members
  std::vector<std::vector<Act>> scripts;  // one script per rank
  int asks = 3;                           // limit on the total number of queries; a rank asks at most once per call
  std::vector<int> parents = {};          // per group: the parent group if the group is a pair, otherwise −1
  int parent(int group) const { return parents.empty() ? -1 : parents[static_cast<std::size_t>(group)]; }
};

class Stage {
 public:
  explicit Stage(const Play& play) : play_(play) {
    const std::size_t size = play.scripts.size();
    post_.arrived.resize(size);
    for (std::size_t r = 0; r < size; ++r) ranks_.emplace_back(post_, static_cast<int>(r), play.groups.size());
    begun_.resize(play.groups.size());
    for (std::size_t g = 0; g < play.groups.size(); ++g) begun_[g].resize(size);
  }

  struct Event {
    int rank;
    enum Kind { go_on, ask, read } kind;
    int message = -1;  // index of the message that arrives now, or −1 if the rank reads only messages that arrived before
  };

  std::vector<Event> possible() const {
    std::vector<Event> events;
    for (int r = 0; r < size(); ++r) {
      const Rank& rank = of(r);
      if (rank.over(play_, r)) continue;
      if (can_go_on(r)) events.push_back({r, Event::go_on});
      if (!rank.waits) continue;
      if (!rank.has_asked && asks_ < play_.asks) events.push_back({r, Event::ask});
      if (!rank.has_looked) events.push_back({r, Event::read});
      for (int l = 0; l < static_cast<int>(post_.under_way.size()); ++l)
        if (post_.under_way[static_cast<std::size_t>(l)].to == r && !is_ahead(l)) events.push_back({r, Event::read, l});
    }
    return events;
  }

  void happen(const Event& event) {
    Rank& rank = of(event.rank);
    if (event.kind == Event::go_on) return go_on(event.rank);
    const Act act = rank.act(play_, event.rank);
    CallAgreement& agreement = *rank.agreements[static_cast<std::size_t>(act.group)];
    if (event.kind == Event::ask) {
      std::vector<int> peers;
      for (int member = 0; member < static_cast<int>(agreement.group().members.size()); ++member)
        if (member != agreement.group().rank && (act.waits_for < 0 || agreement.world_rank(member) == act.waits_for))
          peers.push_back(member);
      rank.has_asked = true;
      ++asks_;
      return agreement.ask(peers, rank.sequence[static_cast<std::size_t>(act.group)]);
    }
    rank.has_looked = true;
    if (event.message >= 0) {
      const auto sent = post_.under_way.begin() + event.message;
      post_.arrived[static_cast<std::size_t>(event.rank)].push_back(sent->message);
      post_.under_way.erase(sent);
    }
    try {
      agreement.examine();
      agreement.refuse_after_farewell(rank.sequence[static_cast<std::size_t>(act.group)]);
    } catch (const std::exception& error) {
      rank.gave_up = error.what();
      agreement.poison(error.what());
      agreement.close();
      for (std::size_t g = rank.agreements.size(); g-- > 0;)  // leaves all other groups as usual, pairs before parents
        if (rank.agreements[g] && rank.agreements[g].get() != &agreement)
          noticed_ += !thrown_by([&] { rank.agreements[g]->leave(); }).empty();
      rank.leave_all();
    }
  }

  // The state that determines all further events. The state consists of each rank's position in its script, the control
  // messages in each inbox, and the control messages in flight.
  std::string state() const {
    std::multiset<std::string> messages;
    for (const Post::Sent& sent : post_.under_way)  // messages to a rank that has ended have no effect
      if (!over(sent.to)) messages.insert(name_of(sent.to, sent.message));
    std::string all = fmt::format("{} {}", asks_, fmt::join(messages, ""));
    for (int r = 0; r < size(); ++r) {
      const Rank& rank = of(r);
      all += fmt::format("|{} {} {} {} {} ", rank.next, rank.waits, rank.has_asked, rank.has_looked, rank.gave_up);
      messages.clear();
      for (const ControlMessage& message : rank.control->inbox()) messages.insert(name_of(r, message));
      all += fmt::format("{} {}", fmt::join(messages, ""), rank.met);
    }
    return all;
  }

  const std::string& gave_up(int rank) const { return of(rank).gave_up; }
  bool over(int rank) const { return of(rank).over(play_, rank); }

  // Ends all groups and delivers the control messages that are still in flight. Returns the number of control messages left
  // in inboxes, plus the number of ranks that have not received all farewells. Both must be 0.
  std::size_t kept() {
    std::size_t kept = 0;
    for (Rank& rank : ranks_) rank.leave_all();
    for (const Post::Sent& sent : post_.under_way) post_.arrived[static_cast<std::size_t>(sent.to)].push_back(sent.message);
    for (Rank& rank : ranks_) {
      noticed_ += !thrown_by([&] { rank.control->listen(); }).empty();
      kept += rank.control->inbox().size() + !rank.control->all_left();
    }
    return kept;
  }
  int noticed() const { return noticed_; }  // how often a rank detected mismatched calls while it left or afterwards

 private:
  struct Rank {
    Rank(Post& post, int rank, std::size_t groups)
        : control(std::make_unique<ControlEndpoint>(std::make_unique<TestChannel>(post, rank))),
          agreements(groups),
          offers(groups),
          sequence(groups) {}
    std::unique_ptr<ControlEndpoint> control;
    std::vector<std::unique_ptr<CallAgreement>> agreements;  // indexed by group; pairs are destroyed before parents
    std::vector<std::vector<std::int64_t>> offers;
    std::vector<std::uint64_t> sequence;
    std::size_t next = 0;
    int met = 0;
    bool waits = false, has_asked = false, has_looked = false;
    std::string gave_up;
    Act act(const Play& play, int rank) const { return play.scripts[static_cast<std::size_t>(rank)][next]; }
    bool over(const Play& play, int rank) const {
      return !gave_up.empty() || next == play.scripts[static_cast<std::size_t>(rank)].size();
    }
    void leave_all() {
      while (!agreements.empty()) agreements.pop_back();
    }
  };

  template <class Do>
  static std::string thrown_by(Do&& what) try {
    what();
    return "";
  } catch (const std::exception& error) {
    return error.what();
  }

  // Whether the message is a farewell that would overtake an earlier message of its sender. A farewell never overtakes a
  // message. All other messages can arrive in any order in this test, although MPI allows fewer orders.
  bool is_ahead(int message) const {
    const Post::Sent& sent = post_.under_way[static_cast<std::size_t>(message)];
    return sent.message.kind == ControlMessage::Kind::farewell &&
           std::any_of(post_.under_way.begin(), post_.under_way.begin() + message, [&](const Post::Sent& before) {
             return before.to == sent.to && before.message.sender == sent.message.sender;
           });
  }

  int size() const { return static_cast<int>(ranks_.size()); }
  Rank& of(int rank) { return ranks_[static_cast<std::size_t>(rank)]; }
  const Rank& of(int rank) const { return ranks_[static_cast<std::size_t>(rank)]; }

  bool can_go_on(int r) const {
    const Act act = of(r).act(play_, r);
    const auto g = static_cast<std::size_t>(act.group);
    if (act.kind != Act::join) return met(r, act);
    if (play_.parent(act.group) >= 0) return true;
    if (!of(r).offers[g].empty()) return true;  // the members have exchanged offers already
    return std::all_of(play_.groups[g].begin(), play_.groups[g].end(), [&](int member) {
      const Rank& other = of(member);
      return !other.over(play_, member) && other.act(play_, member).kind == Act::join &&
             other.act(play_, member).group == act.group;
    });
  }

  // Whether the ranks that a call waits for have begun the same call.
  bool met(int r, const Act& act) const {
    if (act.kind != Act::call || !of(r).waits) return true;
    const auto& members = play_.groups[static_cast<std::size_t>(act.group)];
    const auto& begun = begun_[static_cast<std::size_t>(act.group)];
    const auto& mine = begun[static_cast<std::size_t>(r)];
    return std::all_of(members.begin(), members.end(), [&](int member) {
      if (act.waits_for >= 0 && member != act.waits_for) return true;
      const auto& theirs = begun[static_cast<std::size_t>(member)];
      return theirs.size() >= mine.size() && std::equal(mine.begin(), mine.end(), theirs.begin());
    });
  }

  void go_on(int r) {
    Rank& rank = of(r);
    const Act act = rank.act(play_, r);
    const auto g = static_cast<std::size_t>(act.group);
    if (act.kind == Act::join) {
      if (play_.parent(act.group) < 0 && rank.offers[g].empty()) {  // all members exchange offers
        std::vector<std::int64_t> offers;
        for (const int member : play_.groups[g])
          offers.push_back(static_cast<std::int64_t>(of(member).control->next_number()));
        for (const int member : play_.groups[g]) {
          of(member).offers[g] = offers;
          ++of(member).met;
        }
        return;
      }
      rank.agreements[g] = std::make_unique<CallAgreement>(*rank.control, membership(r, act.group));
    } else if (act.kind == Act::leave) {
      noticed_ += !thrown_by([&] { rank.agreements[g]->leave(); }).empty();
      rank.agreements[g].reset();
    } else if (!rank.waits) {  // the call begins
      auto& begun = begun_[g][static_cast<std::size_t>(r)];
      const std::uint64_t history = hash_with(begun.empty() ? 0 : begun.back(), act.signature) | 1;
      begun.push_back(history);
      Run run;
      run.sequence = ++rank.sequence[g];
      run.history = history;
      rank.agreements[g]->note(run, act.signature);
      rank.waits = true;
      rank.has_looked = rank.has_asked = false;
      return;
    }
    rank.waits = false;
    ++rank.next;
  }

  // All groups have the same id. Thus messages of different groups differ only in the group's incarnation, which is the
  // worst case.
  Membership membership(int r, int group) const {
    const auto& members = play_.groups[static_cast<std::size_t>(group)];
    const int self = static_cast<int>(std::find(members.begin(), members.end(), r) - members.begin());
    const int parent = play_.parent(group);
    if (parent < 0) return {members, self, 1, of(r).offers[static_cast<std::size_t>(group)]};
    const auto& all = play_.groups[static_cast<std::size_t>(parent)];
    const auto place = [&](int rank) { return static_cast<int>(std::find(all.begin(), all.end(), rank) - all.begin()); };
    return pair_of(of(r).agreements[static_cast<std::size_t>(parent)]->group(), place(members[0]), place(members[1]));
  }

  static std::string name_of(int to, const ControlMessage& l) {
    return fmt::format("<{}{}{}:{},{},{};{}>", l.sender, static_cast<int>(l.kind), to, l.to.number, l.to.from, l.to.to,
                       l.sequence);
  }

  const Play& play_;
  Post post_;
  int asks_ = 0, noticed_ = 0;
  std::vector<Rank> ranks_;
  std::vector<std::vector<std::vector<std::uint64_t>>> begun_;  // [group][rank][call]: a hash of the calls up to this call
};

// Calls `at_end` in every state in which no further event is possible. Returns the number of states.
inline std::size_t explore(const Play& play, const std::function<void(Stage&)>& at_end) {
  std::set<std::string> seen;
  std::vector<std::vector<Stage::Event>> open{{}};  // states to visit; each is stored as the list of events that leads to it
  while (!open.empty()) {
    const std::vector<Stage::Event> past = std::move(open.back());
    open.pop_back();
    Stage stage(play);
    for (const Stage::Event& event : past) stage.happen(event);
    if (!seen.insert(stage.state()).second) continue;
    const std::vector<Stage::Event> next = stage.possible();
    for (const Stage::Event& event : next) {
      open.push_back(past);
      open.back().push_back(event);
    }
    if (next.empty()) at_end(stage);
  }
  return seen.size();
}

inline Act join(int group) { return {Act::join, group}; }
inline Act leave(int group) { return {Act::leave, group}; }
inline Act call(int group, std::uint64_t signature, int waits_for = -1) { return {Act::call, group, signature, waits_for}; }

}  // namespace chorale::test::control
