// Messages over MPI's nonblocking point-to-point calls. The tag identifies the call, so a call that differs between ranks
// never matches:
//
//   pair : 1 | group id : 11 | sequence : 4 | hash : the rest, 7 bits at least (15 under Open MPI)
//
// The hash covers the group's incarnation and its calls so far (CallBook::mark). So if a group takes over the id of an
// earlier one, the two do not match each other's messages.
//
// The sequence wraps after 16 calls, which is harmless. A group has at most 8 calls in flight. So a rank posts the receives
// of call s + 16 only after those of call s are over. A peer may be any number of calls ahead, but it has sent all messages
// of call s before. MPI matches the messages of two ranks in the order of sending.
#pragma once
#include <vector>

#include "collectives/backends/message/operation.hpp"

namespace chorale {

struct TypeTraits {
  using type = MPI_Datatype;
  static type none() { return MPI_DATATYPE_NULL; }
  static void close(type datatype) noexcept { PMPI_Type_free(&datatype); }
};

class MpiTags {
 public:
  static constexpr int id_bits = 12, sequence_bits = 4, least_hash_bits = 7;
  MpiTags();  // uses as many bits as this MPI offers
  int of(std::uint32_t group, std::uint64_t mark) const;
  int at(int tag, std::uint64_t sequence) const { return tag | static_cast<int>(sequence % 16) << hash_bits_; }
  bool same_call(int a, int b) const { return a >> hash_bits_ == b >> hash_bits_; }  // ignores the hash

 private:
  int hash_bits_ = 0;
};

class MpiMessenger final : public Messenger {
 public:
  MpiMessenger(MPI_Comm comm, const MpiTags& tags, CallBook& book, const Plan& plan,
               const std::vector<FlatMessage>& messages);
  ~MpiMessenger() override;
  void start(const Run& run) override {
    sequence_ = run.sequence;
    tag_ = tags_.at(tags_.of(book_.group().id, book_.mark(run.history)), run.sequence);
  }
  bool post(int message, void* place) override;
  std::span<const int> progress() override;
  void examine() override;
  void cancel() noexcept override;
  bool is_receiving() noexcept override { return any_left(true); }
  bool is_sending() noexcept override { return any_left(false); }

 private:
  struct Line {
    int peer;  // world rank
    bool incoming;
    int count;
    MPI_Datatype type;
    std::int64_t bytes;
  };
  bool any_left(bool incoming) noexcept;
  void check_arrival(const Line& line, MPI_Status& status) const;
  const Line& line(std::size_t active) const { return lines_[static_cast<std::size_t>(of_[active])]; }

  MPI_Comm comm_;
  const MpiTags& tags_;
  CallBook& book_;
  std::string words_;
  int tag_ = 0;
  std::uint64_t sequence_ = 0;
  std::vector<Line> lines_;
  std::vector<Handle<TypeTraits>> long_types_;
  // In flight: the first active_ requests, each with its message's index in of_.
  std::size_t active_ = 0;
  std::vector<MPI_Request> requests_;
  std::vector<int> of_, indices_, over_;
  std::vector<MPI_Status> statuses_;
};

}  // namespace chorale
