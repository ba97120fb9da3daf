#include "collectives/backends/ucx_messenger.hpp"

#include "src/base/error.hpp"

namespace chorale::ucx {
namespace {

constexpr ucp_tag_t hash_mask = (ucp_tag_t{1} << 24) - 1;

ucp_tag_t hash_of(std::uint64_t history) { return history * 0x9e3779b97f4a7c15u >> 40; }

}  // namespace

Messenger::Messenger(Switchboard& board, CallBook& book, const Plan& plan, const std::vector<FlatMessage>& messages)
    : worker_(board.worker()), book_(book), words_(plan.words) {
  const auto& group = book.group();
  require(group.id >> 16 == 0, "group id {} does not fit into 16 bits of a tag", group.id);
  const auto source_in = [](int rank) { return static_cast<ucp_tag_t>(rank) << 24; };
  const ucp_tag_t call = static_cast<ucp_tag_t>(group.id) << 48;
  const int self = book.world_rank(group.rank);
  for (const FlatMessage& message : messages) {
    const int peer = book.world_rank(message.peer);
    lines_.push_back({peer, message.incoming ? nullptr : board.end_to(peer), static_cast<std::size_t>(message.bytes),
                      call | source_in(message.incoming ? peer : self)});
  }
  active_.resize(lines_.size());
  over_.resize(lines_.size());
}

// After an error only: nothing may be read from, or written to, buffers that are about to go.
Messenger::~Messenger() {
  for (std::size_t i = 0; i < active_count_; ++i) {
    ucp_request_cancel(worker_, active_[i].request);
    constexpr int patience = 1000;  // a send that waits for its receiver cannot be cancelled
    for (int n = 0; n < patience && ucp_request_check_status(active_[i].request) == UCS_INPROGRESS; ++n)
      ucp_worker_progress(worker_);
    ucp_request_free(active_[i].request);
  }
}

void Messenger::start(const Run& run) {
  sequence_ = run.sequence;
  call_ = run.sequence % 4096 << 36 | hash_of(run.history);
}

bool Messenger::post(int message, void* place) {
  const Line& line = lines_[static_cast<std::size_t>(message)];
  const ucp_tag_t tag = line.tag | call_;
  ucp_request_param_t how{};
  void* request = nullptr;
  if (line.to) {
    request = ucp_tag_send_nbx(line.to, place, line.bytes, tag, &how);
  } else {
    how.op_attr_mask = UCP_OP_ATTR_FLAG_NO_IMM_CMPL;  // only a request tells tag and length: UCX 1.13 forgets them else
    request = ucp_tag_recv_nbx(worker_, place, line.bytes, tag, ~hash_mask, &how);
  }
  if (UCS_PTR_IS_PTR(request)) {
    active_[active_count_++] = {request, message};
    return false;
  }
  check_arrival(line, UCS_PTR_STATUS(request), {});
  return true;
}

std::span<const int> Messenger::progress() {
  ucp_worker_progress(worker_);
  std::size_t kept = 0, over = 0;
  // The list must hold what is under way, and nothing else, also when an error leaves the loop.
  for (std::size_t i = 0; i < active_count_; ++i) {
    const auto [request, message] = active_[i];
    const Line& line = lines_[static_cast<std::size_t>(message)];
    ucp_tag_recv_info_t info{};
    const ucs_status_t status = line.to ? ucp_request_check_status(request) : ucp_tag_recv_request_test(request, &info);
    if (status == UCS_INPROGRESS) {
      active_[kept++] = active_[i];
      continue;
    }
    ucp_request_free(request);
    over_[over++] = message;
    try {
      check_arrival(line, status, info);
    } catch (...) {
      while (++i < active_count_) active_[kept++] = active_[i];
      active_count_ = kept;
      throw;
    }
  }
  active_count_ = kept;
  return {over_.data(), over};
}

void Messenger::check_arrival(const Line& line, ucs_status_t status, const ucp_tag_recv_info_t& info) const {
  const bool is_long = status == UCS_ERR_MESSAGE_TRUNCATED;
  if (!is_long) check(status, line.to ? "ucp_tag_send_nbx" : "ucp_tag_recv_nbx");
  if (line.to) return;
  if ((info.sender_tag & hash_mask) != (call_ & hash_mask)) book_.other_call(line.peer, sequence_, "something else");
  if (is_long) book_.wrong_length(line.peer, words_, -1, static_cast<std::int64_t>(line.bytes));
  if (info.length != line.bytes)
    book_.wrong_length(line.peer, words_, static_cast<std::int64_t>(info.length), static_cast<std::int64_t>(line.bytes));
}

}  // namespace chorale::ucx
