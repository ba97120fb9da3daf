// Simulates a graph of messages in SimGrid, and prints the time, in seconds, at which the last message has arrived.
// tests/parallel/prediction/simgrid_test.py compiles the program where SimGrid is installed, and compares its times with our
// own.
//
//   simgrid_player GRAPH            latency is a time before the message; messages share links evenly
//   simgrid_player GRAPH links      latency is a property of links, as usual in SimGrid; a message's share is inversely
//                                   proportional to its latency, like that of a TCP connection to its round-trip time
//
//   hosts 4                           a graph is a text file; SimGrid's hosts are our ranks
//   link out-0 1e11                   bytes per second
//   route 0 1 3e-06 out-0 in-1        from, to, latency in seconds, links
//   message 0 1 4096                  from, to, bytes, and the messages that must have arrived before it starts
//   message 1 2 4096 0                messages are numbered in their order, from 0
#include <simgrid/s4u.hpp>

#include <cstdio>
#include <fstream>
#include <map>
#include <sstream>
#include <string>
#include <vector>

namespace sg4 = simgrid::s4u;

namespace {

struct Message {
  std::size_t from = 0, to = 0;
  double bytes = 0;
  std::vector<std::size_t> after = {};
};

struct Activities {
  sg4::ExecPtr latency;  // null if links have latencies
  sg4::CommPtr bytes;
};

class Platform {
 public:
  explicit Platform(bool latency_of_links) : latency_of_links_(latency_of_links) {}

  void add_hosts(int count) {
    for (int i = 0; i < count; ++i) hosts_.push_back(zone_->create_host(std::to_string(i), 1.0));
  }
  void add_link(const std::string& name, double rate) { links_[name] = zone_->create_link(name, rate)->seal(); }
  void add_route(std::size_t from, std::size_t to, double latency, const std::vector<std::string>& links) {
    std::vector<sg4::LinkInRoute> route;
    if (latency_of_links_) route.emplace_back(delay(latency));
    latencies_[{from, to}] = latency;
    for (const std::string& link : links) route.emplace_back(links_.at(link));
    zone_->add_route(hosts_.at(from)->get_netpoint(), hosts_.at(to)->get_netpoint(), nullptr, nullptr, route, false);
  }
  void seal() { zone_->seal(); }
  Activities activities_of(const Message& message) const {
    const sg4::CommPtr bytes = sg4::Comm::sendto_init(hosts_.at(message.from), hosts_.at(message.to));
    bytes->set_payload_size(static_cast<std::uint64_t>(message.bytes));
    if (latency_of_links_) return {nullptr, bytes};
    const sg4::ExecPtr latency = sg4::Exec::init();
    latency->set_flops_amount(latencies_.at({message.from, message.to}))->set_host(clock_);
    latency->add_successor(bytes);
    return {latency, bytes};
  }

 private:
  // Latency belongs to links in SimGrid. A FATPIPE link gives every message its full bandwidth.
  const sg4::Link* delay(double latency) {
    const std::string name = "latency-" + std::to_string(delays_.size());
    const auto [found, is_new] = delays_.try_emplace(latency);
    if (is_new)
      found->second = zone_->create_link(name, 1e18)
                          ->set_sharing_policy(sg4::Link::SharingPolicy::FATPIPE)
                          ->set_latency(latency)
                          ->seal();
    return found->second;
  }

  bool latency_of_links_;
  sg4::NetZone* zone_ = sg4::create_full_zone("system");
  // Work of one flop takes a second, however much other work there is.
  sg4::Host* clock_ = zone_->create_host("clock", 1.0)->set_core_count(1'000'000);
  std::map<std::pair<std::size_t, std::size_t>, double> latencies_;
  std::vector<sg4::Host*> hosts_;
  std::map<std::string, const sg4::Link*> links_;
  std::map<double, const sg4::Link*> delays_;
};

std::vector<Message> read(std::ifstream& file, Platform& platform) {
  std::vector<Message> messages;
  for (std::string line; std::getline(file, line);) {
    std::istringstream words(line);
    std::string kind, name;
    words >> kind;
    if (kind == "hosts") {
      int count = 0;
      words >> count;
      platform.add_hosts(count);
    } else if (kind == "link") {
      double rate = 0;
      words >> name >> rate;
      platform.add_link(name, rate);
    } else if (kind == "route") {
      std::size_t from = 0, to = 0;
      double latency = 0;
      std::vector<std::string> links;
      words >> from >> to >> latency;
      while (words >> name) links.push_back(name);
      platform.add_route(from, to, latency, links);
    } else if (kind == "message") {
      Message& message = messages.emplace_back();
      words >> message.from >> message.to >> message.bytes;
      for (std::size_t before = 0; words >> before;) message.after.push_back(before);
    }
  }
  platform.seal();
  return messages;
}

}  // namespace

int main(int argc, char** argv) {
  sg4::Engine engine(&argc, argv);
  // Plain max-min sharing. The default model multiplies latencies and bandwidths by constants that were fitted to TCP. With
  // lazy updates, SimGrid 3.32 gives messages of a graph wrong rates if links have latencies.
  for (const char* setting :
       {"network/model:CM02", "network/TCP-gamma:0", "network/crosstraffic:0", "network/optim:Full", "surf/precision:1e-12"})
    sg4::Engine::set_config(setting);
  std::ifstream file(argv[1]);
  Platform platform(argc > 2 && argv[2] == std::string("links"));
  const std::vector<Message> messages = read(file, platform);
  std::vector<Activities> all;
  for (const Message& message : messages) all.push_back(platform.activities_of(message));
  for (std::size_t m = 0; m < messages.size(); ++m)
    for (const std::size_t before : messages[m].after) {
      if (all[m].latency) all.at(before).bytes->add_successor(all[m].latency);
      if (!all[m].latency) all.at(before).bytes->add_successor(all[m].bytes);
    }
  for (const auto& [latency, bytes] : all) {
    if (latency) latency->vetoable_start();
    bytes->vetoable_start();
  }
  engine.run();
  for (const Activities& message : all)
    if (message.bytes->get_state() != sg4::Activity::State::FINISHED) {
      std::fprintf(stderr, "%s: a message never arrives\n", argv[1]);
      return 1;
    }
  std::printf("%.9g\n", sg4::Engine::get_clock());
  return 0;
}
