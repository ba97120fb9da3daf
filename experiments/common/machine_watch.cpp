#include "experiments/common/machine_watch.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <map>

#include "experiments/common/each.hpp"
#include "experiments/common/gather_json.hpp"
#include "src/base/host.hpp"
#include "src/base/text.hpp"

namespace chorale {

NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE(MachineReading, at, worked, stolen, own, load, bytes_out, bytes_in)
NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE(RankReading, kernel, host, cores, before, after)

std::vector<OtherWork> other_work(const std::vector<RankReading>& ranks) {
  std::vector<OtherWork> work;
  for (const RankReading& rank : ranks) {
    const auto same = [&](const RankReading& other) { return other.kernel == rank.kernel; };
    RankReading machine = *std::find_if(ranks.begin(), ranks.end(), same);
    machine.before.own = machine.after.own = 0;
    // Ranks on one kernel can be in different containers, and each container has its own network counters.
    machine.before.bytes_out = rank.before.bytes_out;
    machine.before.bytes_in = rank.before.bytes_in;
    machine.after.bytes_out = rank.after.bytes_out;
    machine.after.bytes_in = rank.after.bytes_in;
    for (const RankReading& other : ranks)
      if (same(other)) machine.after.own += other.after.own - other.before.own;
    work.push_back(work_between(machine.before, machine.after, machine.cores));
    work.back().host = rank.host;
  }
  return work;
}

MachineWatch::MachineWatch(const Session& session)
    : runtime_(*session.runtime), clock_(session.clock), speaks_(session.run_name.empty()) {
  if (speaks_) {
    mpi::sleep_until_all(runtime_.world(), clock_);
    before_ = read_machine(clock_);
    clock_.sleep(look_seconds);
    first_look_ = gathered();
  }
  before_ = read_machine(clock_);
}

std::vector<RankReading> MachineWatch::gathered() const {
  return gather_json(runtime_, RankReading{kernel_id(), host_name(), online_cores(), before_, read_machine(clock_)});
}

void MachineWatch::say(Log& log, const std::vector<RankReading>& ranks, const std::string& tense) {
  const std::vector<OtherWork> work = other_work(ranks);
  const OtherWork* const busiest = busiest_of(work);
  if (!speaks_ || !busiest) return;
  warned_ = busiest->text();
  log.warn("{}", busiest->warning(tense));
  speaks_ = false;  // at most one warning
}

void MachineWatch::warn(Log& log) { say(log, first_look_, "is"); }

std::vector<OtherWork> MachineWatch::finish(Log& log) {
  const std::vector<RankReading> ranks = gathered();
  const bool long_enough =
      !ranks.empty() && ranks[0].after.at - ranks[0].before.at >= 1;  // at least 1 s, because the kernel's ticks are coarse
  if (long_enough) say(log, ranks, "was");
  std::vector<OtherWork> work = other_work(ranks);
  if (!long_enough && !first_look_.empty()) {
    const std::vector<OtherWork> looked = other_work(first_look_);
    for (std::size_t r = 0; r < work.size(); ++r) {
      work[r].cores = looked[r].cores;
      work[r].stolen = looked[r].stolen;
    }
  }
  std::map<std::string, std::string> by_host;
  for (std::size_t r = 0; r < ranks.size(); ++r)
    by_host[ranks[r].host] =
        fmt::format("{} sent {}", ranks[r].host, human_bytes(static_cast<std::int64_t>(work[r].bytes_out)));
  std::string words;
  for (const auto& [host, sent] : by_host) words += (words.empty() ? "" : ", ") + sent;
  if (by_host.size() > 1)
    log.info("network interfaces: {} (with the protocols' headers and all other programs' bytes)", words);
  return work;
}

void write_other_work(Recorder& recorder, const std::vector<OtherWork>& ranks) {
  if (ranks.empty()) return;  // nothing was measured
  const auto numbers = [&](const char* name, auto of, const char* units, const char* about) {
    recorder.numbers("ranks", name, {"rank"}, each(ranks, of), units, about);
  };
  numbers("load", &OtherWork::load, "1", "tasks running or waiting on the rank's host at the start");
  numbers(
      "cores", [](const OtherWork& work) { return std::int64_t{work.of_cores}; }, "1", "cores of the rank's host");
  numbers("others", &OtherWork::cores, "1", "cores of the rank's host that other programs used");
  numbers("stolen", &OtherWork::stolen, "1", "share of its host's CPU time that the hypervisor took");
  numbers("interfaces_sent", &OtherWork::bytes_out, "byte", "sent on its host's network interfaces");
  numbers("interfaces_received", &OtherWork::bytes_in, "byte", "received on its host's network interfaces");
}

}  // namespace chorale
