#include "src/base/guard/guard_words.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>

namespace chorale {
namespace {

using Json = nlohmann::json;

// JSON cannot represent infinity.
Json limit_as_json(double seconds) { return seconds == never ? Json() : Json(seconds); }
double limit_in(const Json& json) { return json.is_null() ? never : json.get<double>(); }

Json json_of(const Look& look) {
  return {{"done", look.done},
          {"idled", look.idled},
          {"waiting", limit_as_json(look.waiting)},
          {"any", limit_as_json(look.any)},
          {"ranks", look.ranks},
          {"here", look.here},
          {"stopped", look.stopped},
          {"blocked", look.blocked},
          {"waiters", look.waiters},
          {"traced", look.traced}};
}

Look look_in(const Json& json) {
  return {.done = json.at("done"),
          .idled = json.value("idled", std::uint64_t{0}),
          .waiting = limit_in(json.at("waiting")),
          .any = limit_in(json.at("any")),
          .ranks = json.at("ranks"),
          .here = json.at("here"),
          .waiters = json.at("waiters"),
          .stopped = json.at("stopped"),
          .blocked = json.at("blocked"),
          .traced = json.at("traced")};
}

Json json_of(const Verdict& verdict) {
  return {{"kind", name_of(verdict.kind)},
          {"rank", verdict.rank},
          {"host", verdict.host},
          {"code", verdict.exit_code},
          {"end", verdict.end},
          {"doing", verdict.doing},
          {"silent_seconds", verdict.silent_seconds}};
}

Verdict verdict_in(const Json& json) {
  return {.kind = named<VerdictKind>(json.at("kind")),
          .rank = json.at("rank"),
          .host = json.at("host"),
          .end = json.at("end"),
          .doing = json.at("doing"),
          .exit_code = json.value("code", 0),
          .silent_seconds = json.at("silent_seconds")};
}

Json json_of(const FlightCall& call) {
  return {{"ticket", call.ticket},
          {"sequence", call.sequence},
          {"group", call.group},
          {"bytes", call.bytes},
          {"steps", call.steps},
          {"awaits", call.awaits},
          {"state", call.state},
          {"members", fixed_text(call.members)},
          {"words", fixed_text(call.words)}};
}

FlightCall call_in(const Json& json) {
  FlightCall call{json.at("ticket"), json.at("sequence"), json.at("group"), json.at("bytes"),
                  json.at("steps"),  json.at("awaits"),   json.at("state")};
  put(call.members, json.at("members").get<std::string>());
  put(call.words, json.at("words").get<std::string>());
  return call;
}

Json json_of(const SeenRank& rank) {
  const FlightPage& page = rank.page;
  Json calls = Json::array();
  for (std::uint64_t ticket = page.newest; const FlightCall* call = page.call(ticket); --ticket)
    calls.push_back(json_of(*call));
  Json groups = Json::array();
  for (std::uint64_t g = 1; g <= std::min<std::uint64_t>(page.groups_so_far, FlightPage::kept_groups); ++g) {
    const FlightGroup& group = page.groups[(page.groups_so_far + 1 - g) % FlightPage::kept_groups];
    groups.push_back({group.group, group.calls, group.since});  // newest first
  }
  return {{"rank", page.rank},
          {"size", page.size},
          {"pid", page.pid},
          {"host", fixed_text(page.host)},
          {"program", fixed_text(page.program)},
          {"doing", fixed_text(page.doing)},
          {"folder", fixed_text(page.folder)},
          {"saved", fixed_text(page.saved)},
          {"supervised", page.supervised},
          {"beats", page.heartbeats},
          {"waits", page.waits},
          {"awaited", page.awaited},
          {"state", std::string(1, rank.state)},
          {"end", rank.end},
          {"calls", calls},
          {"groups", groups}};
}

SeenRank rank_in(const Json& json) {
  SeenRank rank;
  FlightPage& page = rank.page;
  page.rank = json.at("rank");
  page.size = json.at("size");
  page.pid = json.at("pid");
  page.heartbeats = json.at("beats");
  page.waits = json.at("waits");
  page.awaited = json.at("awaited");
  put(page.host, json.at("host").get<std::string>());
  put(page.program, json.value("program", "chorale"));
  put(page.doing, json.at("doing").get<std::string>());
  put(page.folder, json.at("folder").get<std::string>());
  put(page.saved, json.at("saved").get<std::string>());
  page.supervised = json.value("supervised", 0u);
  rank.state = (json.at("state").get<std::string>() + "?")[0];
  rank.end = json.at("end");
  for (const Json& one : json.at("calls")) {
    const FlightCall call = call_in(one);
    page.calls[call.ticket % FlightPage::kept] = call;
    page.newest = std::max(page.newest, call.ticket);
  }
  const Json& groups = json.at("groups");
  page.groups_so_far = std::min<std::size_t>(groups.size(), FlightPage::kept_groups);
  for (std::size_t g = 0; g < page.groups_so_far; ++g)
    page.groups[(page.groups_so_far - g) % FlightPage::kept_groups] = {groups[g].at(0), groups[g].at(1), groups[g].at(2)};
  return rank;
}

}  // namespace

std::string to_text(const GuardWords& words, int indent) {
  Json json{{"version", guard_words_version}, {"host", words.host}};
  if (words.look) json["look"] = json_of(*words.look);
  if (words.asks) json["asks"] = true;
  if (words.judges) json["judges"] = true;
  if (!words.lost.empty()) {
    json["lost"] = words.lost;
    json["code"] = words.exit_code;
  }
  if (words.verdict) json["verdict"] = json_of(*words.verdict);
  if (!words.ends.empty()) json["ends"] = words.ends;
  if (!words.holds.empty()) json["holds"] = words.holds;
  if (words.kept) json["kept"] = *words.kept;
  for (const SeenRank& rank : words.ranks) json["ranks"].push_back(json_of(rank));
  return json.dump(indent, ' ', true, Json::error_handler_t::replace);
}

GuardWords guard_words_in(const std::string& text) try {
  const Json json = Json::parse(text);
  if (const int found = json.value("version", 1); found > guard_words_version)
    throw Error(Exit::usage, "these are the words of a newer guard",
                fmt::format("its version is {}; this program reads up to {}", found, guard_words_version),
                "read them with the program that wrote them, or a newer one");
  GuardWords words{json.at("host")};
  if (json.contains("look")) words.look = look_in(json["look"]);
  words.asks = json.value("asks", false);
  words.judges = json.value("judges", false);
  words.lost = json.value("lost", "");
  words.exit_code = json.value("code", words.exit_code);
  if (json.contains("verdict")) words.verdict = verdict_in(json["verdict"]);
  words.ends = json.value("ends", "");
  words.holds = json.value("holds", std::vector<int>());
  if (json.contains("kept")) words.kept = json["kept"].get<std::string>();
  for (const Json& rank : json.value("ranks", Json::array())) words.ranks.push_back(rank_in(rank));
  return words;
} catch (const Json::exception& error) {
  throw Error(Exit::usage, "these are not the words of a guard", error.what(), "remove the file");
}

}  // namespace chorale
