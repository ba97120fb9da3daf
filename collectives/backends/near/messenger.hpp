// NearMessenger exchanges a plan's messages between ranks of one host through shared memory (post.hpp). NearAndFar exchanges
// all messages of a plan: messages within a host by NearMessenger, and messages between hosts by the Messenger `Far`.
#pragma once
#include <vector>

#include "collectives/backends/message/operation.hpp"
#include "collectives/backends/near/post.hpp"

namespace chorale::near {

class NearMessenger final : public chorale::Messenger {
 public:
  NearMessenger(Post& post, CallAgreement& agreement, const Plan& plan, const std::vector<FlatMessage>& messages);
  ~NearMessenger() override { cancel(); }
  void start(const Run& run) override;
  bool post(int message, void* place) override;
  std::span<const int> progress() override;
  void cancel() noexcept override;
  bool is_sending() noexcept override;

 private:
  struct Line {       // a message of the plan
    int peer, local;  // the peer's world rank, and the peer's rank on the host
    std::int64_t bytes;
    std::uint64_t* taken;               // the receiver sets this word once it has copied the data; null for a receive
    std::uint64_t run = 0, number = 0;  // for sends: the number of sends so far, and the number of the newest ring entry
    Incoming incoming = {};
    Buffer copy = {};  // for sends: the data in the arena, if the receiver cannot read the caller's buffer
  };
  bool is_over(const Line& line) const;
  void send(Line& line, const void* data);
  void check_arrival(const Line& line) const;

  Post& post_;
  CallAgreement& agreement_;
  std::string words_;
  std::uint64_t sequence_ = 0, history_ = 0;
  Buffer taken_;
  std::vector<Line> lines_;
  std::vector<int> active_, over_;
};

// Divides a plan's messages into messages within the host (near) and messages between hosts (far). Each of the two
// Messengers numbers its messages from 0.
struct MessageDivision {
  MessageDivision(const Post& post, const CallAgreement& agreement, const std::vector<FlatMessage>& messages);

  struct Part {
    std::vector<FlatMessage> messages;
    std::vector<int> numbers;  // indexed by message: the message's number in the plan
  };
  struct Way {
    bool is_near;
    int number;  // index in near.messages or far.messages
  };
  Part near, far;
  std::vector<Way> ways;  // how each message is sent, indexed by the message's number in the plan
};

template <class Far>
class NearAndFar final : public chorale::Messenger {
 public:
  template <class Line>
  NearAndFar(Post& post, Line& line, CallAgreement& agreement, const Plan& plan, const std::vector<FlatMessage>& messages)
      : division_(post, agreement, messages),
        near_(post, agreement, plan, division_.near.messages),
        far_(line, agreement, plan, division_.far.messages) {}

  void start(const Run& run) override {
    near_.start(run);
    far_.start(run);
  }
  bool post(int message, void* place) override {
    const auto [is_near, number] = division_.ways[static_cast<std::size_t>(message)];
    return is_near ? near_.post(number, place) : far_.post(number, place);
  }
  std::span<const int> progress() override {
    over_.clear();
    for (const int number : near_.progress()) over_.push_back(division_.near.numbers[static_cast<std::size_t>(number)]);
    for (const int number : far_.progress()) over_.push_back(division_.far.numbers[static_cast<std::size_t>(number)]);
    return over_;
  }
  void examine() override { far_.examine(); }
  void cancel() noexcept override {
    near_.cancel();
    far_.cancel();
  }
  bool is_receiving() noexcept override { return far_.is_receiving(); }
  bool is_sending() noexcept override { return near_.is_sending() || far_.is_sending(); }

 private:
  MessageDivision division_;
  NearMessenger near_;
  Far far_;
  std::vector<int> over_;
};

}  // namespace chorale::near
