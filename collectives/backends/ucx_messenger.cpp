#include "collectives/backends/ucx_messenger.hpp"

#include "src/base/error.hpp"
#include "src/base/polling_barrier.hpp"

namespace chorale::ucx {
namespace {

constexpr int hash_bits = 20, source_bits = 12, sequence_bits = 8, incarnation_bits = 12, id_bits = 12;
static_assert(hash_bits + source_bits + sequence_bits + incarnation_bits + id_bits == 64);
constexpr int source_at = hash_bits, sequence_at = source_at + source_bits, incarnation_at = sequence_at + sequence_bits,
              id_at = incarnation_at + incarnation_bits;
constexpr ucp_tag_t hash_mask = (ucp_tag_t{1} << hash_bits) - 1;

}  // namespace

UcxMessenger::UcxMessenger(Endpoints& endpoints, CallAgreement& agreement, const Plan& plan,
                           const std::vector<FlatMessage>& messages)
    : worker_(endpoints.worker()), agreement_(agreement), words_(plan.words) {
  const auto& group = agreement.group();
  require(group.id >> id_bits == 0, "group id {} does not fit into {} bits of a tag", group.id, id_bits);
  const auto source_in = [](int rank) { return static_cast<ucp_tag_t>(rank) << source_at; };
  const ucp_tag_t incarnation = agreement.mark(0) >> (64 - incarnation_bits);
  const ucp_tag_t call = static_cast<ucp_tag_t>(group.id) << id_at | incarnation << incarnation_at;
  const int self = agreement.world_rank(group.rank);
  for (const FlatMessage& message : messages) {
    const int peer = agreement.world_rank(message.peer);
    lines_.push_back({peer, message.incoming ? nullptr : endpoints.endpoint(peer), static_cast<std::size_t>(message.bytes),
                      call | source_in(message.incoming ? peer : self)});
  }
  active_.resize(lines_.size());
  over_.resize(lines_.size());
}

// Requests are still in flight here only after an error. When this destructor returns, UCX writes no more messages to this
// operation's buffers.
UcxMessenger::~UcxMessenger() {
  cancel();
  for (auto pause = mpi::yields_then_naps(); is_receiving();) pause();
  for (std::size_t i = 0; i < active_count_; ++i) ucp_request_free(active_[i].request);
}

void UcxMessenger::cancel() noexcept {
  for (std::size_t i = 0; i < active_count_; ++i)
    if (!line(i).to) ucp_request_cancel(worker_, active_[i].request);
}

// Whether any receive (`incoming` is true) or any send (`incoming` is false) is still in flight. Sends to a peer that has
// sent `closed` do not count, because that peer accepts no more messages.
bool UcxMessenger::any_left(bool incoming) noexcept {
  ucp_worker_progress(worker_);
  bool any = false;
  std::size_t kept = 0;
  for (std::size_t i = 0; i < active_count_; ++i) {
    const bool over = ucp_request_check_status(active_[i].request) != UCS_INPROGRESS;
    if (over) {
      ucp_request_free(active_[i].request);
      continue;
    }
    any |= (line(i).to == nullptr) == incoming && (incoming || !agreement_.has_closed(line(i).peer));
    active_[kept++] = active_[i];
  }
  active_count_ = kept;
  return any;
}

void UcxMessenger::start(const Run& run) {
  sequence_ = run.sequence;
  call_ = run.sequence % (1u << sequence_bits) << sequence_at | agreement_.mark(run.history) >> (64 - hash_bits);
}

bool UcxMessenger::post(int message, void* place) {
  const Line& line = lines_[static_cast<std::size_t>(message)];
  const ucp_tag_t tag = line.tag | call_;
  ucp_request_param_t how{};
  void* request = nullptr;
  if (line.to) {
    request = ucp_tag_send_nbx(line.to, place, line.bytes, tag, &how);
  } else {
    // This flag forbids immediate completion, because UCX 1.13 reports a message's tag and length only through a request.
    how.op_attr_mask = UCP_OP_ATTR_FLAG_NO_IMM_CMPL;
    request = ucp_tag_recv_nbx(worker_, place, line.bytes, tag, ~hash_mask, &how);
  }
  if (UCS_PTR_IS_PTR(request)) {
    active_[active_count_++] = {request, message};
    return false;
  }
  check_arrival(line, UCS_PTR_STATUS(request), {});
  return true;
}

std::span<const int> UcxMessenger::progress() {
  ucp_worker_progress(worker_);
  std::size_t kept = 0, over = 0;
  // Even if check_arrival throws, active_ must hold exactly the requests in flight afterwards.
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

void UcxMessenger::check_arrival(const Line& line, ucs_status_t status, const ucp_tag_recv_info_t& info) const {
  const bool is_long = status == UCS_ERR_MESSAGE_TRUNCATED;
  if (!is_long) check(status, line.to ? "ucp_tag_send_nbx" : "ucp_tag_recv_nbx");
  if (line.to) return;
  if ((info.sender_tag & hash_mask) != (call_ & hash_mask)) agreement_.other_call(line.peer, sequence_, "something else");
  if (is_long) agreement_.wrong_length(line.peer, words_, -1, static_cast<std::int64_t>(line.bytes));
  if (info.length != line.bytes)
    agreement_.wrong_length(line.peer, words_, static_cast<std::int64_t>(info.length),
                            static_cast<std::int64_t>(line.bytes));
}

}  // namespace chorale::ucx
