#include "collectives/backends/mpi_messenger.hpp"

#include <bit>
#include <limits>

#include "src/base/error.hpp"
#include "src/base/polling_barrier.hpp"

namespace chorale {
namespace {

// Returns a derived datatype of `bytes` bytes, for messages that are too long for MPI's int counts. A long message is one
// element of this type. The receiver can use a different type, because MPI implementations compare only the number of bytes.
Handle<TypeTraits> long_type(std::int64_t bytes) {
  constexpr int piece = 1 << 30;
  MPI_Datatype pieces = MPI_DATATYPE_NULL, whole = MPI_DATATYPE_NULL;
  mpi::check(PMPI_Type_vector(static_cast<int>(bytes / piece), piece, piece, MPI_BYTE, &pieces));
  const Handle<TypeTraits> own_pieces(pieces);
  const int lengths[] = {1, static_cast<int>(bytes % piece)};
  const MPI_Aint starts[] = {0, static_cast<MPI_Aint>(bytes / piece * piece)};
  const MPI_Datatype parts[] = {pieces, MPI_BYTE};
  mpi::check(PMPI_Type_create_struct(2, lengths, starts, parts, &whole));
  Handle<TypeTraits> own_whole(whole);
  mpi::check(PMPI_Type_commit(&whole));
  return own_whole;
}

// Cancels a receive unless the receive has matched a message. (Open MPI crashes if a completed receive is canceled.)
void cancel_receive(MPI_Request& request) noexcept {
  int over = 0;
  if (request == MPI_REQUEST_NULL) return;
  if (PMPI_Request_get_status(request, &over, MPI_STATUS_IGNORE) == MPI_SUCCESS && !over) PMPI_Cancel(&request);
}

}  // namespace

// MPI's largest tag is an attribute of MPI_COMM_WORLD. Other communicators might lack this attribute.
MpiTags::MpiTags() {
  void* value = nullptr;
  int found = 0;
  mpi::check(PMPI_Comm_get_attr(MPI_COMM_WORLD, MPI_TAG_UB, &value, &found));
  const auto most = static_cast<unsigned>(found ? *static_cast<int*>(value) : 32767);
  const int bits = std::bit_width(most + 1) - 1;
  hash_bits_ = bits - id_bits - sequence_bits;
  if (hash_bits_ < least_hash_bits)
    throw Error(Exit::runtime, "this MPI's tags are too short for the backend mpi",
                fmt::format("it offers {} bits, {} are needed", bits, id_bits + sequence_bits + least_hash_bits),
                "use another backend, or another MPI (--mca pml ob1 under Open MPI)");
}

int MpiTags::of(std::uint32_t group, std::uint64_t mark) const {
  require(group >> id_bits == 0, "group id {} does not fit into {} bits of a tag", group, id_bits);
  const std::uint64_t hash = mark >> (64 - hash_bits_);
  return static_cast<int>(group) << (sequence_bits + hash_bits_) | static_cast<int>(hash);
}

MpiMessenger::MpiMessenger(MPI_Comm comm, const MpiTags& tags, CallAgreement& agreement, const Plan& plan,
                           const std::vector<FlatMessage>& messages)
    : comm_(comm), tags_(tags), agreement_(agreement), words_(plan.words) {
  for (const FlatMessage& message : messages) {
    Line line{agreement.world_rank(message.peer), message.incoming, static_cast<int>(message.bytes), MPI_BYTE,
              message.bytes};
    if (message.bytes > std::numeric_limits<int>::max()) {
      line.count = 1;
      line.type = long_types_.emplace_back(long_type(message.bytes)).get();
    }
    lines_.push_back(line);
  }
  requests_.resize(lines_.size());
  of_.resize(lines_.size());
  indices_.resize(lines_.size());
  over_.resize(lines_.size());
  statuses_.resize(lines_.size());
}

// Requests are still in flight here only after an error. When this destructor returns, MPI writes no more messages to this
// operation's buffers.
MpiMessenger::~MpiMessenger() {
  cancel();
  for (auto pause = mpi::yields_then_naps(); is_receiving();) pause();
  for (std::size_t i = 0; i < active_; ++i)
    if (requests_[i] != MPI_REQUEST_NULL) PMPI_Request_free(&requests_[i]);
}

void MpiMessenger::cancel() noexcept {
  for (std::size_t i = 0; i < active_; ++i)
    if (line(i).incoming) cancel_receive(requests_[i]);
}

// Whether any receive (`incoming` is true) or any send (`incoming` is false) is still in flight. Sends to a peer that has
// sent `closed` do not count, because that peer accepts no more messages.
bool MpiMessenger::any_left(bool incoming) noexcept {
  for (std::size_t i = 0; i < active_; ++i) {
    int over = 0;
    if (line(i).incoming != incoming || requests_[i] == MPI_REQUEST_NULL) continue;
    PMPI_Test(&requests_[i], &over, MPI_STATUS_IGNORE);
    if (!over && (incoming || !agreement_.has_closed(line(i).peer))) return true;
  }
  return false;
}

bool MpiMessenger::post(int message, void* place) {
  const Line& line = lines_[static_cast<std::size_t>(message)];
  MPI_Request& request = requests_[active_];
  mpi::check(line.incoming ? PMPI_Irecv(place, line.count, line.type, line.peer, tag_, comm_, &request)
                           : PMPI_Isend(place, line.count, line.type, line.peer, tag_, comm_, &request));
  of_[active_++] = message;
  return false;
}

std::span<const int> MpiMessenger::progress() {
  if (active_ == 0) return {};
  int over = 0;
  const int code = PMPI_Testsome(static_cast<int>(active_), requests_.data(), &over, indices_.data(), statuses_.data());
  if (code != MPI_ERR_IN_STATUS) mpi::check(code);
  if (over == 0 || over == MPI_UNDEFINED) return {};
  for (int i = 0; i < over; ++i) {
    const auto which = static_cast<std::size_t>(indices_[static_cast<std::size_t>(i)]);
    over_[static_cast<std::size_t>(i)] = of_[which];
    MPI_Status& status = statuses_[static_cast<std::size_t>(i)];
    if (code != MPI_ERR_IN_STATUS) status.MPI_ERROR = MPI_SUCCESS;  // MPI sets MPI_ERROR only on errors
    check_arrival(line(which), status);
  }
  std::size_t kept = 0;
  for (std::size_t i = 0; i < active_; ++i) {
    if (requests_[i] == MPI_REQUEST_NULL) continue;
    requests_[kept] = requests_[i];
    of_[kept++] = of_[i];
  }
  active_ = kept;
  return {over_.data(), static_cast<std::size_t>(over)};
}

void MpiMessenger::check_arrival(const Line& line, MPI_Status& status) const {
  int kind = MPI_SUCCESS, canceled = 0;
  PMPI_Test_cancelled(&status, &canceled);
  if (canceled) agreement_.other_call(line.peer, sequence_, "something else");
  if (status.MPI_ERROR != MPI_SUCCESS) PMPI_Error_class(status.MPI_ERROR, &kind);
  if (kind == MPI_ERR_TRUNCATE) agreement_.wrong_length(line.peer, words_, -1, line.bytes);
  mpi::check(status.MPI_ERROR);
  if (!line.incoming) return;
  MPI_Count came = 0;
  mpi::check(PMPI_Get_elements_x(&status, MPI_BYTE, &came));
  if (came != line.bytes) agreement_.wrong_length(line.peer, words_, came, line.bytes);
}

// For each unfinished receive, probes for the oldest unmatched message from the receive's peer. If this message has the
// group and sequence of the current call but a different hash, the peer made a mismatched call. A peer with a matching call
// would have sent a message for this receive earlier, and MPI would have matched that message. After a mismatched call,
// cancel_receive() cancels the receive, unless the receive has just matched. progress() then detects the canceled receive,
// and throws.
void MpiMessenger::examine() {
  for (std::size_t i = 0; i < active_; ++i) {
    int there = 0;
    MPI_Status status;
    if (!line(i).incoming) continue;
    mpi::check(PMPI_Iprobe(line(i).peer, MPI_ANY_TAG, comm_, &there, &status));
    if (there && status.MPI_TAG != tag_ && tags_.same_call(status.MPI_TAG, tag_)) cancel_receive(requests_[i]);
  }
}

}  // namespace chorale
