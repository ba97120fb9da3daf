// Messages over UCX tag matching. All that must agree is in the tag:
//
//   group id : 12 | incarnation : 12 | sequence : 8 | source : 12 | hash of the call : 20
//
// A receive matches all but the hash, which comes with the message, so a call that differs is seen when it arrives, at no cost. The
// incarnation tells groups apart that have the same id one after the other (CallBook::mark). The sequence wraps after 256 calls, which is
// harmless: a group has few in flight, a peer that is further ahead has sent its messages of call s before those of call s + 256, and
// UCX matches in the order of sending.
#pragma once
#include <vector>

#include "collectives/backends/message/operation.hpp"
#include "collectives/backends/ucx_switchboard.hpp"

namespace chorale::ucx {

class Messenger final : public chorale::Messenger {
 public:
  Messenger(Switchboard& board, CallBook& book, const Plan& plan, const std::vector<FlatMessage>& messages);
  ~Messenger() override;
  void start(const Run& run) override;
  bool post(int message, void* place) override;
  std::span<const int> progress() override;
  void cancel() noexcept override;
  bool is_receiving() noexcept override { return any_left(true); }
  bool is_sending() noexcept override { return any_left(false); }

 private:
  struct Line {
    int peer;     // in the world
    ucp_ep_h to;  // nullptr: from it
    std::size_t bytes;
    ucp_tag_t tag;  // but for the sequence
  };
  struct Active {
    void* request;
    int message;
  };
  bool any_left(bool incoming) noexcept;
  const Line& line(std::size_t active) const { return lines_[static_cast<std::size_t>(active_[active].message)]; }
  void check_arrival(const Line& line, ucs_status_t status, const ucp_tag_recv_info_t& info) const;

  ucp_worker_h worker_;
  CallBook& book_;
  std::string words_;
  std::uint64_t sequence_ = 0;
  ucp_tag_t call_ = 0;  // the part of the tag that is the run's
  std::vector<Line> lines_;
  std::size_t active_count_ = 0;
  std::vector<Active> active_;
  std::vector<int> over_;
};

}  // namespace chorale::ucx
