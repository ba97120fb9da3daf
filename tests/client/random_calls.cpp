// A user program that makes random calls, checks every element, and prints the number of calls.
//
//   mpicxx -O2 -iquote . tests/client/random_calls.cpp $(pkg-config --cflags --libs chorale fmt) -o random_calls
//   mpirun -np 3 ./random_calls shm 7 40 [MOST]     backend, seed, rounds, maximum elements per call (2,500,000)
//   for b in shm mpi ucx; do for n in 2 3 5; do for s in {1..10}; do
//     mpirun -np $n ./random_calls $b $s 40 || break 3; done; done; done
//
// A round starts up to 28 calls on the world and on groups. Some groups exist only for one round. The calls include messages
// between two ranks and some blocking calls. Each rank waits for its calls in a random order, by wait(), by test(), or by
// destroying the request. For decisions on which the ranks of a group must agree, these ranks use random generators with
// equal seeds.
#include <chorale/chorale.hpp>
#include <cstdio>
#include <cstdlib>
#include <stdexcept>

#include "tests/client/call.hpp"

using namespace client;

namespace {

constexpr int most_at_once = 28;

// Sets the algorithm of the group's next call. Candidates are Chorale's algorithms that run on any number of ranks. MPI's
// own algorithm is also a candidate if, according to native_agrees(), it gives the same results.
void choose(Communicator& group, Random& shared, const Drawn& drawn) {
  const char* const names[] = {"auto", "auto", "ring", "direct", "binomial_tree"};
  const std::string name = names[below(shared, 5)];
  const bool native = shared() % 4 == 0 && group.backend() == "mpi" &&
                      native_agrees(Problem::even(drawn.what, 1, group.size()), drawn.dtype, drawn.op);
  group.choose("auto");
  group.choose(native ? "native" : name);
}

struct Message {
  Message(std::uint64_t seed, int from, int to, std::int64_t count) : values(static_cast<std::size_t>(count)) {
    Random random(seed + static_cast<std::uint64_t>(from * 1000 + to));
    for (auto& value : values) value = static_cast<std::int64_t>(random());
  }
  Slice slice() { return {values.data(), static_cast<std::int64_t>(values.size()), DType::i64}; }
  std::vector<std::int64_t> values;
};

class Client {
 public:
  Client(Communicator& world, std::uint64_t seed, std::int64_t most)
      : world_(world), shared_(seed), own_(mixed(seed + 1 + static_cast<std::uint64_t>(world.rank()))), most_(most) {
    const int rank = world.rank(), size = world.size();
    groups_.push_back(world.split(rank % 2, rank));
    groups_.push_back(world.split(rank < (size + 1) / 2 ? 7 : 3, -rank));
    groups_.push_back(world.split(0, -rank));
  }

  void round() {
    const std::uint64_t seed = shared_();
    const int color = static_cast<int>((seed >> (8 + world_.rank())) & 3) - 1;  // −1: no group
    const bool is_passing = shared_() % 3 == 0;
    Communicator passing = is_passing ? world_.split(color, world_.rank()) : Communicator(nullptr);
    const std::int64_t calls = 1 + below(shared_, most_at_once);
    int large = 0;
    for (std::int64_t i = 0; i < calls; ++i) {
      const auto which = static_cast<std::size_t>(below(shared_, 5));
      const std::uint64_t number = shared_();
      const bool may_be_large = number % 6 == 0 && ++large <= 2;
      if (which == 4 && is_passing && !passing) continue;
      Communicator& group = which < 3 ? groups_[which] : which == 4 && is_passing ? passing : world_;
      one(group, number + which, may_be_large ? most_ : std::min<std::int64_t>(most_, 20'000));
    }
    if (own_() % 2 == 0) passing = Communicator(nullptr);  // calls in flight keep the group alive
    finish();
  }

  std::int64_t calls() const { return calls_; }

 private:
  struct Pending {
    Request request;
    Trial* trial;
  };

  // Decisions on which all ranks of the group must agree come from a generator seeded with the call's number.
  void one(Communicator& group, std::uint64_t number, std::int64_t most) {
    Random shared(number * 31 + static_cast<std::uint64_t>(group.size()));
    if (group.size() > 1 && shared() % 6 == 0) return exchange(group, shared, most);
    Drawn drawn = draw(shared, group.size(), most);
    choose(group, shared, drawn);
    ++calls_;
    Trial& trial = *trials_.emplace_back(std::make_unique<Trial>(std::move(drawn), group, world_, own_));
    if (shared() % 5 == 0) return trial.run(group);
    pending_.push_back({trial.start(group), &trial});
    if (own_() % 4 == 0) world_.poll();
  }

  // Every rank sends to `rank + step` and receives from `rank − step`, modulo the size of the group.
  void exchange(Communicator& group, Random& shared, std::int64_t most) {
    const int p = group.size(), rank = group.rank(), step = 1 + static_cast<int>(below(shared, p - 1));
    const int to = (rank + step) % p, from = (rank - step + p) % p;
    const std::uint64_t seed = shared();
    const std::int64_t count = drawn_count(shared, most);
    const bool sends_first = own_() % 2 == 0;
    Message& sent = *messages_.emplace_back(std::make_unique<Message>(seed, rank, to, count));
    Message& wanted = *messages_.emplace_back(std::make_unique<Message>(seed, from, rank, count));
    auto& got = *arrivals_.emplace_back(std::make_unique<std::pair<std::vector<std::int64_t>, Message*>>(
        std::vector<std::int64_t>(static_cast<std::size_t>(count)), &wanted));
    const auto send = [&] { pending_.push_back({group.start_send(sent.slice(), to), nullptr}); };
    if (sends_first) send();
    pending_.push_back({group.start_recv({got.first.data(), count, DType::i64}, from), nullptr});
    if (!sends_first) send();
    calls_ += 2;
  }

  void finish() {
    std::shuffle(pending_.begin(), pending_.end(), own_);
    for (Pending& one : pending_) {
      const auto way = own_() % 4;
      if (way == 0)
        while (!one.request.test()) {}
      else if (way == 1)
        Request dropped = std::move(one.request);
      else
        one.request.wait();
    }
    for (const auto& trial : trials_)
      if (const std::string wrong = trial->trouble(); !wrong.empty()) throw std::runtime_error(wrong);
    for (const auto& arrival : arrivals_)
      if (arrival->first != arrival->second->values)
        throw std::runtime_error("a received message differs from what was sent");
    pending_.clear();
    trials_.clear();
    arrivals_.clear();
    messages_.clear();
  }

  Communicator& world_;
  std::vector<Communicator> groups_;
  Random shared_, own_;
  std::int64_t most_, calls_ = 0;
  std::vector<std::unique_ptr<Trial>> trials_;
  std::vector<std::unique_ptr<Message>> messages_;
  std::vector<std::unique_ptr<std::pair<std::vector<std::int64_t>, Message*>>> arrivals_;
  std::vector<Pending> pending_;  // must be the last member, so that its calls end before their buffers are destroyed
};

}  // namespace

int main(int argc, char** argv) {
  return mpi::run_ranks([&](const mpi::Runtime& runtime) {
    if (argc < 4)
      usage_error("three arguments are needed: backend, seed, number of rounds", "", "for example: random_calls shm 7 40");
    SystemClock clock;
    Communicator world = open_world(argv[1], runtime, clock);
    Client client(world, static_cast<std::uint64_t>(std::atoll(argv[2])), argc > 4 ? std::atoll(argv[4]) : 2'500'000);
    for (int round = 0; round < std::atoi(argv[3]); ++round) client.round();
    if (world.rank() == 0)
      std::printf("%s, %d ranks, seed %s: %lld calls of rank 0, all right\n", world.backend().c_str(), world.size(), argv[2],
                  static_cast<long long>(client.calls()));
  });
}
