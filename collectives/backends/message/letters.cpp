#include "collectives/backends/message/letters.hpp"

#include <exception>

#include "src/base/polling_barrier.hpp"
#include "src/base/progress_hook.hpp"

namespace chorale {
namespace {

constexpr int tag = 1;

class MpiMail final : public Mail {
 public:
  explicit MpiMail(MPI_Comm world) : comm_(mpi::duplicate(world)) { mpi::check(PMPI_Comm_rank(comm_.get(), &rank_)); }

  // MPI may still be sending some letters, so their memory is never freed. A letter that no rank receives stays in MPI, and
  // MPICH would deliver it to a later communicator with the same context id. MPICH reuses a context id only once no rank has
  // the old communicator. So a rank that has sent letters does not free the communicator, unless it has received all letters
  // sent to it. In that case all groups ended without an error, and no letter is left.
  ~MpiMail() override {
    if (has_sent_ && !has_received_all_) comm_.release();
    drop_sent();
    for (Sent& sent : sent_) PMPI_Request_free(&sent.request);
    if (!sent_.empty()) new std::list<Sent>(std::move(sent_));
  }

  int rank() const override { return rank_; }

  void send(int to, const Letter& letter) noexcept override {
    try {
      drop_sent();
      Sent& sent = sent_.emplace_back(Sent{letter, MPI_REQUEST_NULL});
      has_sent_ = true;
      PMPI_Isend(&sent.letter, sizeof(Letter), MPI_BYTE, to, tag, comm_.get(), &sent.request);
    } catch (const std::exception&) {  // out of memory: the peers' timeouts will end their waits
    }
  }

  bool receive(Letter& letter) override {
    int there = 0;
    MPI_Status status;
    mpi::check(PMPI_Iprobe(MPI_ANY_SOURCE, tag, comm_.get(), &there, &status));
    if (there)
      mpi::check(PMPI_Recv(&letter, sizeof(Letter), MPI_BYTE, status.MPI_SOURCE, tag, comm_.get(), MPI_STATUS_IGNORE));
    return there;
  }

  void nothing_more_comes() override { has_received_all_ = true; }

 private:
  struct Sent {
    Letter letter;
    MPI_Request request;
  };
  void drop_sent() {
    sent_.remove_if([](Sent& old) {
      int over = 0;
      return PMPI_Test(&old.request, &over, MPI_STATUS_IGNORE) == MPI_SUCCESS && over;
    });
  }

  // Probes only to let MPI make progress on all its messages.
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

std::unique_ptr<Mail> mail_over_mpi(MPI_Comm world) { return std::make_unique<MpiMail>(world); }

std::uint64_t ServiceLine::next_number() {
  open_.insert(++newest_);
  return newest_;
}

ServiceLine::~ServiceLine() {
  if (is_complete_ && open_.empty() && ended_.empty()) mail_->nothing_more_comes();
}

void ServiceLine::end(std::uint64_t number) noexcept {
  is_complete_ = false;
  close(number);
}

void ServiceLine::end(std::uint64_t number, std::set<int> staying, Compare compare) {
  close(number);
  if (!staying.empty()) ended_[number] = {std::move(staying), std::move(compare)};
}

void ServiceLine::close(std::uint64_t number) noexcept {
  open_.erase(number);
  std::erase_if(left_, [&](const auto& one) { return one.first == number; });
  inbox_.remove_if([&](const Letter& letter) { return letter.to.number == number; });
}

void ServiceLine::listen() {
  for (Letter letter; mail_->receive(letter);) take_in(letter);
}

// Keeps a letter for an open group. If this rank has left the group, only two kinds of letters matter: a farewell, and
// `closed`, which a rank that gave up sends instead of a farewell.
void ServiceLine::take_in(const Letter& letter) {
  const std::uint64_t number = letter.to.number;
  const bool is_farewell = letter.kind == Letter::Kind::farewell, is_of_pair = letter.to.from >= 0;
  if (open_.contains(number)) {
    if (is_farewell && !is_of_pair) left_.emplace(number, letter.sender);
    inbox_.push_back(letter);
    return;
  }
  const auto ended = ended_.find(number);
  if (ended == ended_.end() || is_of_pair || !(is_farewell || letter.kind == Letter::Kind::closed)) return;
  const Compare compare = ended->second.compare;
  ended->second.staying.erase(letter.sender);
  if (ended->second.staying.empty()) ended_.erase(ended);
  if (is_farewell) compare(letter);
}

bool ServiceLine::all_left() {
  listen();
  return ended_.empty();
}

}  // namespace chorale
