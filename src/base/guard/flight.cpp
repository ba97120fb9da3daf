#include "src/base/guard/flight.hpp"

#include <poll.h>
#include <sys/socket.h>

#include <cerrno>

#include <chorale/clock.hpp>
#include "src/base/text.hpp"

namespace chorale {

SharedPage::SharedPage(int file) {
  void* const place = mmap(nullptr, sizeof(FlightPage), PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
  if (place == MAP_FAILED)
    throw Error(Exit::runtime, "a page of shared memory cannot be mapped", std::strerror(errno), "free some memory");
  page_ = static_cast<FlightPage*>(place);
}

Flight::~Flight() {
  if (page_->fate == FlightPage::Fate::running) page_->fate = FlightPage::Fate::finished;
}

void Flight::failed(int exit_code) {
  page_->exit_code = exit_code;
  std::atomic_ref(page_->fate).store(FlightPage::Fate::failed, std::memory_order_release);
}

Flight::Group Flight::enter(std::uint64_t mark, std::string_view members) {
  const std::uint64_t number = page_->groups_so_far + 1;
  page_->groups[number % FlightPage::kept_groups] = {mark, 0, page_->newest};
  page_->groups_so_far = number;
  FlightCall call;
  put_list(call.members, members);
  return {mark, std::to_array(call.members), number};
}

void Flight::calls(const Group& group, std::uint64_t sequence) {
  if (group.number + FlightPage::kept_groups > page_->groups_so_far)  // otherwise the page no longer holds this group
    page_->groups[group.number % FlightPage::kept_groups].calls = sequence;
}

std::uint64_t Flight::begin(const Group& group, std::uint64_t sequence, std::int64_t bytes, const FlightWords& words) {
  const std::uint64_t ticket = page_->newest + 1;
  FlightCall& call = page_->calls[ticket % FlightPage::kept];
  call.ticket = ticket;
  call.sequence = sequence;
  call.group = group.mark;
  call.bytes = bytes;
  call.steps = 0;
  call.awaits = -1;
  call.state = FlightCall::State::begun;
  std::memcpy(call.members, group.members.data(), sizeof call.members);
  std::memcpy(call.words, words.data(), sizeof call.words);
  std::atomic_ref(page_->newest).store(ticket, std::memory_order_release);
  heartbeat();
  return ticket;
}

void Flight::over(std::uint64_t ticket, FlightCall::State state) {
  FlightCall& call = page_->calls[ticket % FlightPage::kept];
  if (call.ticket == ticket) call.state = state;
  heartbeat();
}

void Flight::stands(std::uint64_t ticket, std::uint64_t steps, int awaits) {
  FlightCall& call = page_->calls[ticket % FlightPage::kept];
  if (call.ticket != ticket) return;
  call.steps = steps;
  call.awaits = awaits;
}

void Flight::tell(const std::string& text) const { send(line_.get(), text.data(), text.size(), MSG_NOSIGNAL); }

std::string Flight::ask(const std::string& text) const {
  constexpr int patience_milliseconds = 2000;
  tell(text);
  pollfd one{line_.get(), POLLIN, 0};
  char answer[4096];
  if (poll(&one, 1, patience_milliseconds) <= 0) return "";
  const ssize_t got = recv(line_.get(), answer, sizeof answer, 0);
  return got > 0 ? std::string(answer, static_cast<std::size_t>(got)) : "";
}

void Flight::waits(double patience_seconds, std::uint64_t moved, std::uint64_t ticket) {
  page_->patience = patience_seconds;
  std::atomic_ref(page_->moved).store(moved, std::memory_order_relaxed);
  page_->awaited = ticket;
  page_->waits = 1;
  throw_if_lost();
}

int Flight::lost_after(const std::exception& error) const {
  constexpr double patience_seconds = 2;  // the guard looks ten times a second
  SystemClock clock;
  if (dynamic_cast<const Consequence*>(&error))
    for (const double until = clock.seconds() + patience_seconds; !lost() && clock.seconds() < until;) clock.sleep(1e-3);
  return lost();
}

void Flight::throw_if_lost() const {
  if (!lost()) [[likely]]
    return;
  std::vector<std::string> lines;
  for (const std::string& line : split(fixed_text(page_->reason), '\n'))
    if (!line.empty()) lines.push_back(trim(line));
  throw Error(Exit::watchdog, lines[0], {lines.begin() + 1, lines.end()});
}

}  // namespace chorale
