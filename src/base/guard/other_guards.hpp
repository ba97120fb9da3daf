// Connections between the guards of a run on several hosts. The guard of rank 0 listens, and all other guards connect to it.
//
//   n0   guard ── listens: "10.77.1.1 40123 5f2c…" ──▶ rank 0 ── MPI ──▶ the first rank of each other host ──▶ its guard
//   n1   guard ── "5f2c…" ──▶ n0
//
// Guards exchange lines of JSON (guard_words.hpp). Each guard sends the state of its ranks twice a second, so silence means
// that a host or a link has failed. A connection must start with the secret from the invitation; otherwise it is closed.
#pragma once
#include <poll.h>

#include <functional>
#include <list>
#include <string>
#include <vector>

#include <chorale/clock.hpp>
#include "src/base/descriptor.hpp"
#include "src/base/guard/guard_words.hpp"

namespace chorale {

class OtherGuards {
 public:
  struct Guard {
    Descriptor line;
    GuardWords words;             // the newest message of each kind from this guard
    std::string out, in;          // `out` is text that has not been sent yet; `in` is received text whose last line is
                                  // incomplete
    double came = 0, silent = 0;  // `came` is the time at which the guard connected; `silent` is the number of seconds since
                                  // its newest message
    bool trusted = false, ended = false;
  };
  struct Message {
    Guard* from;
    GuardWords words;
  };

  explicit OtherGuards(Clock& clock) : clock_(clock) {}
  // Returns the invitation: addresses of this host, port and secret. Returns "" if this host cannot listen.
  enum class Invited { other_hosts, this_host };
  std::string invite(Invited who = Invited::other_hosts);
  void join(const std::string& invitation);

  bool any() const { return !guards_.empty(); }
  const std::list<Guard>& guards() const { return guards_; }
  std::list<Guard>& guards() { return guards_; }
  void add_to(std::vector<pollfd>& files) const;
  void say(Guard& guard, const GuardWords& words) { guard.out += to_text(words) + "\n"; }
  void say(const GuardWords& words);    // sends a message to all connected guards
  void close(const std::string& host);  // closes the connections to a host
  // Says words twice a second, and counts the silence of the others. To be called again and again. If this process was not
  // scheduled for a while, the others are not silent.
  void beat(const std::function<GuardWords()>& words);
  void wait(double seconds);  // adds this time to the silence of every guard
  bool has_said_all() const;
  std::vector<Message> move();  // sends and receives as much as possible without waiting

 private:
  void take_in();
  void receive(Guard& guard, std::vector<Message>& messages);
  void read(Guard& guard, const std::string& line, std::vector<Message>& messages);

  Clock& clock_;
  Descriptor listening_;
  std::string secret_;
  std::list<Guard> guards_;
  double beat_at_ = -1, said_at_ = -1;  // times of the latest beat() and of its latest words
};

}  // namespace chorale
