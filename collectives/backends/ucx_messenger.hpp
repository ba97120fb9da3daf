// Sends messages by UCX tag matching. The tag holds all values that must be equal on sender and receiver:
//
//   group id : 12 | incarnation : 12 | sequence : 8 | source : 12 | hash of the call : 20
//
// A receive matches a message if all tag bits except the hash are equal. The hash arrives with the message, so the receiver
// detects a mismatched call of the sender at no cost. The incarnation distinguishes successive groups with the same id
// (CallAgreement::mark). The sequence is the call's number modulo 256. Messages of the calls s and s + 256 are always
// matched correctly, because a group has at most 8 calls in flight. Moreover, a peer sends the messages of call s before the
// messages of call s + 256. UCX matches messages in the order in which they were sent.
#pragma once
#include <vector>

#include "collectives/backends/message/operation.hpp"
#include "collectives/backends/ucx_endpoints.hpp"

namespace chorale::ucx {

class UcxMessenger final : public chorale::Messenger {
 public:
  UcxMessenger(Endpoints& endpoints, CallAgreement& agreement, const Plan& plan, const std::vector<FlatMessage>& messages);
  ~UcxMessenger() override;
  void start(const Run& run) override;
  bool post(int message, void* place) override;
  std::span<const int> progress() override;
  void cancel() noexcept override;
  bool is_receiving() noexcept override { return any_left(true); }
  bool is_sending() noexcept override { return any_left(false); }

 private:
  struct Line {   // a message of the plan
    int peer;     // world rank
    ucp_ep_h to;  // null: receives from the peer
    std::size_t bytes;
    ucp_tag_t tag;  // without the sequence and the hash
  };
  struct Active {
    void* request;
    int message;
  };
  bool any_left(bool incoming) noexcept;
  const Line& line(std::size_t active) const { return lines_[static_cast<std::size_t>(active_[active].message)]; }
  void check_arrival(const Line& line, ucs_status_t status, const ucp_tag_recv_info_t& info) const;

  ucp_worker_h worker_;
  CallAgreement& agreement_;
  std::string words_;
  std::uint64_t sequence_ = 0;
  ucp_tag_t call_ = 0;  // the tag bits of the current run: sequence and hash
  std::vector<Line> lines_;
  std::size_t active_count_ = 0;
  std::vector<Active> active_;
  std::vector<int> over_;
};

}  // namespace chorale::ucx
