#include "collectives/backends/message/control.hpp"

#include <exception>

#include "src/base/polling_barrier.hpp"
#include "src/base/progress_hook.hpp"

namespace chorale {
namespace {

constexpr int tag = 1;

class MpiControlChannel final : public ControlChannel {
 public:
  explicit MpiControlChannel(MPI_Comm world) : comm_(mpi::duplicate(world)) {
    mpi::check(PMPI_Comm_rank(comm_.get(), &rank_));
  }

  // MPI might still be sending some messages, so the memory of these messages is never freed. If no rank receives a message,
  // the message stays queued in MPI. MPICH would deliver such a message to a later communicator with the same context id.
  // MPICH reuses a context id only after all ranks have freed the old communicator. So a rank that has sent messages does
  // not free the communicator, unless the rank has received all messages sent to it. If the rank has received all messages
  // sent to it, all groups ended without an error, and no message is left in MPI.
  ~MpiControlChannel() override {
    if (has_sent_ && !has_received_all_) comm_.release();
    drop_sent();
    for (Sent& sent : sent_) PMPI_Request_free(&sent.request);
    if (!sent_.empty()) new std::list<Sent>(std::move(sent_));
  }

  int rank() const override { return rank_; }

  void send(int to, const ControlMessage& message) noexcept override {
    try {
      drop_sent();
      Sent& sent = sent_.emplace_back(Sent{message, MPI_REQUEST_NULL});
      has_sent_ = true;
      PMPI_Isend(&sent.message, sizeof(ControlMessage), MPI_BYTE, to, tag, comm_.get(), &sent.request);
    } catch (const std::exception&) {  // out of memory: the waits of the peers end by timeout
    }
  }

  bool receive(ControlMessage& message) override {
    int there = 0;
    MPI_Status status;
    mpi::check(PMPI_Iprobe(MPI_ANY_SOURCE, tag, comm_.get(), &there, &status));
    if (there)
      mpi::check(
          PMPI_Recv(&message, sizeof(ControlMessage), MPI_BYTE, status.MPI_SOURCE, tag, comm_.get(), MPI_STATUS_IGNORE));
    return there;
  }

  void nothing_more_comes() override { has_received_all_ = true; }

 private:
  struct Sent {
    ControlMessage message;
    MPI_Request request;
  };
  void drop_sent() {
    sent_.remove_if([](Sent& old) {
      int over = 0;
      return PMPI_Test(&old.request, &over, MPI_STATUS_IGNORE) == MPI_SUCCESS && over;
    });
  }

  // Calls MPI_Iprobe only to let MPI make progress on all messages.
  void move() {
    int ignored = 0;
    PMPI_Iprobe(MPI_ANY_SOURCE, MPI_ANY_TAG, comm_.get(), &ignored, MPI_STATUS_IGNORE);
  }

  mpi::Comm comm_;
  int rank_ = 0;
  bool has_sent_ = false, has_received_all_ = false;
  std::list<Sent> sent_;
  ProgressHook progress_hook_{[this] { move(); }};
};

}  // namespace

std::unique_ptr<ControlChannel> control_channel_over_mpi(MPI_Comm world) {
  return std::make_unique<MpiControlChannel>(world);
}

std::uint64_t ControlEndpoint::next_number() {
  open_.insert(++newest_);
  return newest_;
}

ControlEndpoint::~ControlEndpoint() {
  if (is_complete_ && open_.empty() && ended_.empty()) channel_->nothing_more_comes();
}

void ControlEndpoint::end(std::uint64_t number) noexcept {
  is_complete_ = false;
  close(number);
}

void ControlEndpoint::end(std::uint64_t number, std::set<int> staying, Compare compare) {
  close(number);
  if (!staying.empty()) ended_[number] = {std::move(staying), std::move(compare)};
}

void ControlEndpoint::close(std::uint64_t number) noexcept {
  open_.erase(number);
  std::erase_if(left_, [&](const auto& one) { return one.first == number; });
  inbox_.remove_if([&](const ControlMessage& message) { return message.to.number == number; });
}

void ControlEndpoint::listen() {
  for (ControlMessage message; channel_->receive(message);) take_in(message);
}

// Keeps messages for open groups. If this rank has left the group, only two kinds of messages matter: `farewell`, and
// `closed`, which a rank that gave up sends instead of a farewell.
void ControlEndpoint::take_in(const ControlMessage& message) {
  const std::uint64_t number = message.to.number;
  const bool is_farewell = message.kind == ControlMessage::Kind::farewell, is_of_pair = message.to.from >= 0;
  if (open_.contains(number)) {
    if (is_farewell && !is_of_pair) left_.emplace(number, message.sender);
    inbox_.push_back(message);
    return;
  }
  const auto ended = ended_.find(number);
  if (ended == ended_.end() || is_of_pair || !(is_farewell || message.kind == ControlMessage::Kind::closed)) return;
  const Compare compare = ended->second.compare;
  ended->second.staying.erase(message.sender);
  if (ended->second.staying.empty()) ended_.erase(ended);
  if (is_farewell) compare(message);
}

bool ControlEndpoint::all_left() {
  listen();
  return ended_.empty();
}

}  // namespace chorale
