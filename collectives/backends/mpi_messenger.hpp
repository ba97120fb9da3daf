// Sends messages by MPI's nonblocking point-to-point calls. The tag identifies the collective call. The tag contains a hash,
// so the messages of mismatched calls do not match, unless their hashes are equal by accident:
//
//   pair : 1 | group id : 11 | sequence : 4 | hash : the remaining bits, at least 7 (15 under Open MPI)
//
// The hash covers all calls of the group so far, and numbers that distinguish this group from earlier groups with the same
// id (CallAgreement::mark). So a receive does not match a late message of an earlier group.
//
// The sequence is the call's number modulo 16. The calls s and s + 16 have equal sequence bits, but their messages are
// always matched correctly. A group has at most 8 calls in flight. So a rank posts the receives of call s + 16 only after
// the receives of call s have completed. A peer that is far ahead sends the messages of call s before the messages of call s
// + 16. MPI matches the messages of two ranks in the order in which they were sent.
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
  MpiTags();                                              // uses all tag bits of this MPI library
  int of(std::uint32_t group, std::uint64_t mark) const;  // the tag without the sequence
  int at(int tag, std::uint64_t sequence) const { return tag | static_cast<int>(sequence % 16) << hash_bits_; }
  bool same_call(int a, int b) const { return a >> hash_bits_ == b >> hash_bits_; }  // compares all bits except the hash

 private:
  int hash_bits_ = 0;
};

class MpiMessenger final : public Messenger {
 public:
  MpiMessenger(MPI_Comm comm, const MpiTags& tags, CallAgreement& agreement, const Plan& plan,
               const std::vector<FlatMessage>& messages);
  ~MpiMessenger() override;
  void start(const Run& run) override {
    sequence_ = run.sequence;
    tag_ = tags_.at(tags_.of(agreement_.group().id, agreement_.mark(run.history)), run.sequence);
  }
  bool post(int message, void* place) override;
  std::span<const int> progress() override;
  void examine() override;
  void cancel() noexcept override;
  bool is_receiving() noexcept override { return any_left(true); }
  bool is_sending() noexcept override { return any_left(false); }

 private:
  struct Line {  // a message of the plan
    int peer;    // world rank
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
  CallAgreement& agreement_;
  std::string words_;
  int tag_ = 0;
  std::uint64_t sequence_ = 0;
  std::vector<Line> lines_;
  std::vector<Handle<TypeTraits>> long_types_;
  // The first active_ entries of requests_ are in flight; requests_[i] belongs to message of_[i] of the plan.
  std::size_t active_ = 0;
  std::vector<MPI_Request> requests_;
  std::vector<int> of_, indices_, over_;
  std::vector<MPI_Status> statuses_;
};

}  // namespace chorale
