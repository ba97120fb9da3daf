// Connections between the guards of a run on several hosts. That of rank 0 listens; all others connect to it.
//
//   n0   guard ── listens: "10.77.1.1 40123 5f2c…" ──▶ rank 0 ── MPI ──▶ the first rank of each other host ──▶ its guard
//   n1   guard ── "hello 5f2c…" ──▶ n0
//
// They exchange lines of JSON. Twice a second each says what its host does, so silence means that a host or a link is gone.
// A connection begins with the secret of the invitation; without it, it is closed. Nothing is ever executed or opened
// because of what comes over a connection.
#pragma once
#include <poll.h>

#include <list>
#include <string>
#include <vector>

#include "src/base/clock.hpp"
#include "src/base/descriptor.hpp"

namespace chorale {

class OtherGuards {
 public:
  struct Guard {
    Descriptor line;
    std::string host;     // "" until it has said hello
    std::string out, in;  // not yet sent; not yet complete
    double heard = 0;     // when it last said anything
    bool trusted = false, ended = false;
  };
  struct Message {
    Guard* from;
    std::string text;  // one line of JSON, from a trusted guard
  };

  explicit OtherGuards(Clock& clock) : clock_(clock) {}
  // Returns the invitation: addresses of this host, port, secret. "" if this host cannot listen.
  std::string invite();
  void join(const std::string& invitation, const std::string& greeting);

  bool any() const { return !guards_.empty(); }
  std::list<Guard>& guards() { return guards_; }
  const std::list<Guard>& guards() const { return guards_; }
  void add_to(std::vector<pollfd>& files) const;
  void say(Guard& guard, const std::string& text) { guard.out += text + "\n"; }
  void say(const std::string& text);  // to all
  std::vector<Message> move();        // sends and receives what can be without waiting

 private:
  void take_in();
  void receive(Guard& guard, std::vector<Message>& messages);

  Clock& clock_;
  Descriptor listening_;
  std::string secret_;
  std::list<Guard> guards_;
};

}  // namespace chorale
