#include "src/base/mpi.hpp"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <limits>
#include <numeric>
#include <span>

#include "src/base/abstract_socket.hpp"
#include "src/base/crc32c.hpp"
#include "src/base/error.hpp"
#include "src/base/guard/guard.hpp"
#include "src/base/host.hpp"
#include "src/base/interfaces.hpp"
#include "src/base/polling_barrier.hpp"
#include "src/base/text.hpp"

namespace chorale::mpi {

void check(int code, std::source_location where) {
  if (code == MPI_SUCCESS) return;
  char text[MPI_MAX_ERROR_STRING] = "";
  int length = 0;
  PMPI_Error_string(code, text, &length);
  throw Error(Exit::runtime, "an MPI call failed", fmt::format("{} (code {})", replace_all(text, '\n', ' '), code),
              "if it repeats, try another backend", where);
}

Life::Life() {
  int initialized = 0, provided = 0;
  check(PMPI_Initialized(&initialized));
  if (!initialized) check(PMPI_Init_thread(nullptr, nullptr, MPI_THREAD_FUNNELED, &provided));
  started_ = !initialized;
  // MPI must return errors and must not end the program. An error outside any communicator, such as in MPI_Testsome, calls
  // the handler of MPI_COMM_WORLD in MPI 3, and the handler of MPI_COMM_SELF in MPI 4. Therefore the handlers of both
  // communicators are set.
  if (started_)
    for (MPI_Comm comm : {MPI_COMM_WORLD, MPI_COMM_SELF}) check(PMPI_Comm_set_errhandler(comm, MPI_ERRORS_RETURN));
  check(PMPI_Query_thread(&provided));
  require(provided >= MPI_THREAD_FUNNELED,
          "MPI was initialized without thread support (level {}); MPI_THREAD_FUNNELED is needed", provided);
}

Life::~Life() {
  if (started_) PMPI_Finalize();
}

namespace {

// The first message between hosts can wait forever if MPI uses a network interface that does not connect the hosts.
// Therefore the first message has a deadline. MPI has just synchronized all ranks, so no rank arrives much later. Only time
// that this rank spends polling counts toward the deadline. Therefore a rank that was stopped or waited for a core does not
// give up early.
void await_other_hosts() {
  constexpr double patience_seconds = 8;
  const Environment environment = process_environment();
  if (!on_several_hosts(environment)) return;
  const SystemClock clock;
  double last = clock.seconds(), waited = 0;
  polling_barrier(MPI_COMM_WORLD, [&, pause = yields_then_naps()] {
    pause();
    const double now = clock.seconds();
    waited += std::min(now - std::exchange(last, now), 0.01);
    if (waited < patience_seconds) return;
    const std::string allowed = environment("OMPI_MCA_btl_tcp_if_include").value_or("all interfaces");
    const Launch launch = read_launch(environment);
    const Error error(Exit::usage, "ranks cannot reach those of other hosts",
                      fmt::format("rank {} on {} waited {} s for them; MPI may use {}; interfaces: {}", launch.rank,
                                  host_name(), patience_seconds, allowed, in_words(network_interfaces())),
                      "name the interface that connects the hosts: mpirun --mca btl_tcp_if_include NAME");
    std::fputs(describe(error, launch.rank, launch.size).c_str(), stderr);
    std::fflush(nullptr);
    PMPI_Abort(MPI_COMM_WORLD, static_cast<int>(error.exit()));
    _exit(static_cast<int>(error.exit()));
  });
}

// A host program that initialized MPI itself might already hold much memory. The guard (the watchdog process of a host) is
// forked from this process and would keep that memory.
std::unique_ptr<Flight> guarded_from_the_start(const Launch& launch) {
  int initialized = 0;
  check(PMPI_Initialized(&initialized));
  return initialized ? nullptr : join_guard(launch, process_environment());
}

}  // namespace

Runtime::Runtime() : Runtime(read_launch(process_environment())) {}

Runtime::Runtime(const Launch& launch) : parts_(std::make_unique<Parts>(guarded_from_the_start(launch))) {
  if (flight()) parts_->idle = std::make_unique<ProgressHook>([flight = flight()] { flight->idle(); });
  if (parts_->life.started())
    await_other_hosts();  // otherwise the host program initialized MPI, and its ranks can be in any state
  MPI_Comm world = MPI_COMM_NULL;
  check(PMPI_Comm_dup(MPI_COMM_WORLD, &world));
  parts_->world.reset(world);
  enter();
  require_same_world(launch, size_, library_name());
  if (parts_->life.started() && on_several_hosts(process_environment())) join_guards();
  now("its program");
}

// Collective. The guard of rank 0 invites the guards of the other hosts. A rank without a guard still forwards the
// invitation.
void Runtime::join_guards() const {
  const std::string invitation = broadcast(world(), rank_ == 0 && flight() ? flight()->ask("invite") : "");
  const int place = place_on_host(world()).first;
  if (flight() && place == 0 && rank_ != 0 && !invitation.empty()) flight()->tell("join " + invitation);
}

Runtime::Runtime(const Runtime& whole, int color) : parts_(std::make_unique<Parts>(whole.flight())), rank_(-1), size_(0) {
  polling_barrier(whole.world());
  MPI_Comm world = MPI_COMM_NULL;
  check(PMPI_Comm_split(whole.world(), color < 0 ? MPI_UNDEFINED : color, whole.rank(), &world));
  parts_->world.reset(world);
  if (world != MPI_COMM_NULL) enter();
}

Runtime::~Runtime() = default;

int Runtime::launched_rank(int rank) const { return parts_->launched[static_cast<std::size_t>(rank)]; }
Flight* Runtime::flight() const { return parts_->flight; }
void Runtime::now(std::string_view what) const {
  if (flight()) flight()->now(what);
}

void Runtime::enter() {
  const MPI_Comm world = this->world();
  check(PMPI_Comm_set_errhandler(world, MPI_ERRORS_RETURN));
  check(PMPI_Comm_rank(world, &rank_));
  check(PMPI_Comm_size(world, &size_));
  MPI_Group all = MPI_GROUP_NULL, ours = MPI_GROUP_NULL;
  check(PMPI_Comm_group(MPI_COMM_WORLD, &all));
  check(PMPI_Comm_group(world, &ours));
  std::vector<int> ranks(static_cast<std::size_t>(size_));
  std::iota(ranks.begin(), ranks.end(), 0);
  parts_->launched.resize(ranks.size());
  check(PMPI_Group_translate_ranks(ours, size_, ranks.data(), all, parts_->launched.data()));
  check(PMPI_Group_free(&all));
  check(PMPI_Group_free(&ours));
}

void Runtime::abort(int exit_code) const {
  if (flight()) flight()->failed(exit_code);
  if (size_ > 1) PMPI_Abort(world(), exit_code);
  _exit(exit_code);
}

void Runtime::abort(const std::exception& error) const {
  constexpr double others_seconds = 0.4;                             // time for the first rank to print its error and to end
                                                                     // all ranks
  const int lost_with = flight() ? flight()->lost_after(error) : 0;  // nonzero if the guard or a different rank has reported
                                                                     // the reason
  // Several ranks can fail for the same reason, such as a damaged file. On each host, only the first rank that fails prints
  // the error.
  const std::string what = error.what();
  const auto word = claim(fmt::format("chorale-error-{}-{:08x}", getppid(), crc32c(std::as_bytes(std::span(what)))));
  if (lost_with == 0 && (word || size_ == 1)) std::fputs(describe(error, rank_, size_).c_str(), stderr);
  std::fflush(nullptr);
  if (!word && size_ > 1) SystemClock().sleep(others_seconds);
  abort(lost_with != 0 ? lost_with : exit_code_of(error));
}

int run_ranks(const std::function<void(const Runtime&)>& body) try {
  const Runtime runtime;
  try {
    body(runtime);
  } catch (const std::exception& error) {
    runtime.abort(error);  // before MPI_Finalize, which would wait for the other ranks
  }
  return 0;
} catch (const std::exception& error) {  // MPI did not start
  std::fputs(describe(error, 0, 1).c_str(), stderr);
  return exit_code_of(error);
}

std::string library_name() {
  char text[MPI_MAX_LIBRARY_VERSION_STRING] = "";
  int length = 0;
  PMPI_Get_library_version(text, &length);
  const std::string_view all(text);
  return trim(all.substr(0, all.find_first_of(",\n")));
}

std::vector<int> ranks_where(MPI_Comm comm, bool flag) {
  std::vector<int> ranks;
  for (int rank = 0; const std::int64_t theirs : all_gather(comm, flag)) {
    if (theirs) ranks.push_back(rank);
    ++rank;
  }
  return ranks;
}

std::vector<std::string> gather(MPI_Comm comm, const std::string& text) {
  polling_barrier(comm);
  int rank = 0, size = 0;
  check(PMPI_Comm_rank(comm, &rank));
  check(PMPI_Comm_size(comm, &size));
  const int length = static_cast<int>(text.size());
  std::vector<int> lengths(static_cast<std::size_t>(size)), starts(lengths);
  complete([&](MPI_Request* done) { return PMPI_Igather(&length, 1, MPI_INT, lengths.data(), 1, MPI_INT, 0, comm, done); });
  std::exclusive_scan(lengths.begin(), lengths.end(), starts.begin(), 0);
  std::string all(static_cast<std::size_t>(lengths.back() + starts.back()), '\0');
  complete([&](MPI_Request* done) {
    return PMPI_Igatherv(text.data(), length, MPI_CHAR, all.data(), lengths.data(), starts.data(), MPI_CHAR, 0, comm, done);
  });
  std::vector<std::string> texts;
  if (rank == 0)
    for (std::size_t r = 0; r < lengths.size(); ++r)
      texts.push_back(all.substr(static_cast<std::size_t>(starts[r]), static_cast<std::size_t>(lengths[r])));
  return texts;
}

std::string broadcast(MPI_Comm comm, std::string text) {
  polling_barrier(comm);
  int length = static_cast<int>(text.size());
  complete([&](MPI_Request* done) { return PMPI_Ibcast(&length, 1, MPI_INT, 0, comm, done); });
  text.resize(static_cast<std::size_t>(length));
  complete([&](MPI_Request* done) { return PMPI_Ibcast(text.data(), length, MPI_CHAR, 0, comm, done); });
  return text;
}

std::vector<std::int64_t> all_gather(MPI_Comm comm, std::int64_t mine) {
  polling_barrier(comm);
  int size = 0;
  check(PMPI_Comm_size(comm, &size));
  std::vector<std::int64_t> all(static_cast<std::size_t>(size));
  complete(
      [&](MPI_Request* done) { return PMPI_Iallgather(&mine, 1, MPI_INT64_T, all.data(), 1, MPI_INT64_T, comm, done); });
  return all;
}

std::pair<int, int> place_on_host(MPI_Comm comm) {
  polling_barrier(comm);
  MPI_Comm host = MPI_COMM_NULL;
  check(PMPI_Comm_split_type(comm, MPI_COMM_TYPE_SHARED, 0, MPI_INFO_NULL, &host));
  std::pair<int, int> place;
  check(PMPI_Comm_rank(host, &place.first));
  check(PMPI_Comm_size(host, &place.second));
  check(PMPI_Comm_free(&host));
  return place;
}

void sleep_until_all(MPI_Comm comm, Clock& clock) {
  constexpr double nap_seconds = 5e-3;
  polling_barrier(comm, [&] { clock.sleep(nap_seconds); });
}

double clock_offset(MPI_Comm comm, const Clock& clock) {
  polling_barrier(comm);
  constexpr int rounds = 20, tag = 1;
  int rank = 0, size = 0;
  check(PMPI_Comm_rank(comm, &rank));
  check(PMPI_Comm_size(comm, &size));
  double best_round_trip = std::numeric_limits<double>::infinity(), offset = 0;
  for (int peer = 1; peer < size; ++peer)
    for (int i = 0; i < rounds; ++i) {
      double theirs = 0;
      if (rank == 0) {
        check(PMPI_Recv(&theirs, 1, MPI_DOUBLE, peer, tag, comm, MPI_STATUS_IGNORE));
        theirs = clock.seconds();
        check(PMPI_Send(&theirs, 1, MPI_DOUBLE, peer, tag, comm));
      } else if (rank == peer) {
        const double sent = clock.seconds();
        check(PMPI_Send(&sent, 1, MPI_DOUBLE, 0, tag, comm));
        check(PMPI_Recv(&theirs, 1, MPI_DOUBLE, 0, tag, comm, MPI_STATUS_IGNORE));
        const double received = clock.seconds();
        if (received - sent < best_round_trip) {
          best_round_trip = received - sent;
          offset = theirs - (sent + received) / 2;
        }
      }
    }
  return offset;
}

}  // namespace chorale::mpi
