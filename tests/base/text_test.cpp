#include "src/base/text.hpp"

#include <cmath>
#include <nlohmann/json.hpp>

#include "src/base/host.hpp"
#include "src/base/text_table.hpp"
#include "tests/catch.hpp"

using namespace chorale;

TEST_CASE("bytes and seconds are printed and parsed with units") {
  CHECK(human_bytes(0) == "0 B");
  CHECK(human_bytes(1023) == "1023 B");
  CHECK(human_bytes(1536) == "1.5 KiB");
  CHECK(human_bytes((1 << 20) - 1) == "1.0 MiB");  // not 1024.0 KiB
  CHECK(human_bytes(std::int64_t{5} << 40) == "5.0 TiB");
  CHECK((parse_bytes("0") == 0 && parse_bytes("8") == 8 && parse_bytes("64K") == 65536 && parse_bytes("1.5k") == 1536));
  CHECK((parse_bytes("80GB") == 80'000'000'000 && parse_bytes("1.5kB") == 1500 && parse_bytes("64KiB") == 65536));
  CHECK((parse_bytes("4.1GB") == 4'100'000'000 && parse_bytes("64.4GB") == 64'400'000'000));  // not exact in f64
  CHECK((parse_bytes("1M") == 1 << 20 && parse_bytes("2 GiB") == std::int64_t{2} << 30 && parse_bytes("16B") == 16));
  for (const char* wrong : {"", "K", "-1", "1X", "1KX", "0.3", "1.2.3", "1e3", "9999999T"}) {
    INFO(wrong);
    CHECK(!parse_bytes(wrong));
  }
  CHECK((parse_seconds("0") == 0 && parse_seconds("90s") == 90 && parse_seconds("1.5m") == 90 &&
         parse_seconds("2 H") == 7200));
  for (const char* wrong : {"", "s", "-1", "90x", "1ms", "1m30s", "1e3"}) {
    INFO(wrong);
    CHECK(!parse_seconds(wrong));
  }
  CHECK(human_seconds(3e-9) == "3 ns");
  CHECK(human_seconds(0.00012) == "120 µs");
  CHECK(human_seconds(0.25) == "250 ms");
  CHECK(human_seconds(0.9996) == "1.0 s");  // not 1e+03 ms
  CHECK(human_seconds(59.97) == "1 min 00 s");
  CHECK(human_seconds(std::nan("")) == "nan s");
  CHECK(human_seconds(75) == "1 min 15 s");
  CHECK(human_seconds(3700) == "1 h 01 min");
}

TEST_CASE("steps of an axis are 1, 2 or 5 times a power of ten") {
  CHECK(round_step(1) == 1);
  CHECK(round_step(1.1) == 2);
  CHECK(round_step(20.01) == 50);
  CHECK(round_step(0.06) == 0.1);
}

TEST_CASE("text is escaped inside XML") {
  CHECK(escape_xml("a < b && \"c\" > d") == "a &lt; b &amp;&amp; &quot;c&quot; &gt; d");
}

TEST_CASE("splitting and joining undo one another") {
  CHECK(split("", ',').empty());
  CHECK(split("a,,b,", ',') == std::vector<std::string>{"a", "", "b", ""});
  CHECK(join(split("x;y;z", ';'), ";") == "x;y;z");
}

TEST_CASE("a known name is suggested only if it is near") {
  const std::vector<std::string> names{"backend", "algorithm", "dtype"};
  CHECK(nearest("bakcend", names) == "backend");
  CHECK(nearest("dtyp", names) == "dtype");
  CHECK(nearest("zzzzzz", names) == "");
  CHECK(nearest("run", {"man", "rum"}) == "rum");
  CHECK(nearest("run", {"man"}) == "");
  CHECK(nearest("g", {"b"}) == "");
  CHECK(did_you_mean("bakcend", names, "name one") == "did you mean \"backend\"?");
  CHECK(did_you_mean("zzzzzz", names, "name one") == "name one");
}

TEST_CASE("a table prints as text, CSV, JSON and Markdown") {
  TextTable table({"name", "time"});
  table.add({"a,\"b\"", "1.5"});
  table.add({"µ|x", "20"});
  CHECK(table.print("text") == "name   time\na,\"b\"   1.5\nµ|x      20\n");
  CHECK(table.print("csv") == "name,time\n\"a,\"\"b\"\"\",1.5\nµ|x,20\n");
  CHECK(table.print("md") == "| name | time |\n| --- | --- |\n| a,\"b\" | 1.5 |\n| µ\\|x | 20 |\n");
  const auto json = nlohmann::json::parse(table.print("json"));
  CHECK(json[0]["name"] == "a,\"b\"");
  CHECK(json[1]["time"] == 20);
  CHECK_THROWS(table.add({"one cell only"}));
  TextTable ratios({"of the first"});
  ratios.add({"1.00"});
  ratios.add({"~ 0.98"});  // approximate numbers are right-aligned, too
  CHECK(ratios.print("text") == "of the first\n        1.00\n      ~ 0.98\n");
  CHECK(TextTable({"a\nb"}).print("text") == "a\\x0ab\n");
  TextTable unknown({"seconds", "note"});  // one cell is the unknown number "?", and some cells are empty
  unknown.add({"1.5", ""});
  unknown.add({"", "late"});
  const auto rows = nlohmann::json::parse(unknown.print("json"));
  CHECK((rows[0]["note"] == "" && rows[1]["seconds"].is_null()));
}

TEST_CASE("headings stand above their numbers, with units below them") {
  TextTable table({"name", "time"});
  table.units({"", "us"});
  table.add({"ring", "1234567"});
  table.add({"-", "-"});
  CHECK(table.print("text") == "name     time\n           us\nring  1234567\n-           -\n");
  CHECK(table.print("md").starts_with("| name | time us |\n"));
  CHECK(table.print("csv").starts_with("name,time\n"));
}

TEST_CASE("a note that is wider than the screen goes on as a note; in a pipe it stays whole") {
  const std::string notes = "# one two three four\n# five\n#   six\n";
  CHECK(notes_within(notes, 0) == notes);
  CHECK(notes_within(notes, 20) == notes);
  CHECK(notes_within(notes, 13) == "# one two\n#   three\n#   four\n# five\n#   six\n");
}

TEST_CASE("a paragraph breaks between words, and a long word after a bar") {
  CHECK(paragraph("- ", "one two three", 0) == "- one two three\n");
  CHECK(paragraph("- ", "one two three", 9) == "- one two\n  three\n");
  CHECK(paragraph("µ ", "µµ two", 8) == "µ µµ two\n");  // a letter takes one column, however many bytes it has
  CHECK(paragraph("", "run this now", 9, " \\") == "run \\\nthis \\\nnow\n");
  CHECK(paragraph("  ", "ring|tree|mesh or", 12) == "  ring|tree|\n  mesh or\n");
  CHECK(paragraph("  ", "a wordthatisverylong b", 8) == "  a\n  wordthatisverylong\n  b\n");
  CHECK(paragraph("", "bubble 50 %", 10) == "bubble\n50 %\n");
  CHECK(paragraph("", "", 80) == "\n");
}

TEST_CASE("a table that is wider than the screen continues below, and the columns that name its rows are repeated") {
  TextTable table({"step", "alpha", "beta", "gamma"});
  table.add({"1", "aaaa", "bbbb", "cccc"});
  const std::string whole = "step  alpha  beta  gamma\n   1  aaaa   bbbb  cccc\n";
  CHECK(table.print("text", 24) == whole);
  CHECK(table.print("text", 23) == "step  alpha  beta\n   1  aaaa   bbbb\n\nstep  gamma\n   1  cccc\n");
  CHECK(table.print("text", 1) == "step  alpha\n   1  aaaa\n\nstep  beta\n   1  bbbb\n\nstep  gamma\n   1  cccc\n");
  CHECK(table.print("text", 0) == whole);
  CHECK(table.print("csv", 1) == "step,alpha,beta,gamma\n1,aaaa,bbbb,cccc\n");
  TextTable alike({"step", "axis", "sent", "waits"});  // several rows have the same first cell
  alike.add({"1", "dp", "64", "0.5"});
  alike.add({"1", "tp", "32", "0.5"});
  CHECK(alike.print("text", 22) ==
        "step  axis  sent\n   1  dp      64\n   1  tp      32\n\nstep  axis  waits\n   1  dp      0.5\n   1  tp      0.5\n");
  CHECK(alike.print("text", 16).ends_with("\n\nstep  waits\n   1    0.5\n   1    0.5\n"));  // too narrow for both columns
  TextTable words({"name", "about"});  // long text in the last column is wrapped
  words.add({"ring", "only neighbors communicate"});
  CHECK(words.print("text", 20) == "name  about\nring  only neighbors\n      communicate\n");
  alike.add({"1", "tp", "32", "0.5"});  // no column identifies a row
  CHECK(alike.print("text", 16).ends_with("\n\nstep  waits\n   1    0.5\n   1    0.5\n   1    0.5\n"));
}

TEST_CASE("cores are listed as ranges, and shared among the ranks that may use them") {
  CHECK(cpu_ranges({}) == "");
  CHECK(cpu_ranges({0, 1, 2, 5, 7, 8}) == "0-2,5,7-8");
  CHECK(threads_per_rank(8, 2) == 4);
  CHECK(threads_per_rank(2, 8) == 1);  // at least one thread per rank
  CHECK_FALSE(allowed_cpus().empty());
}

TEST_CASE("an error within an error is on one line") {
  CHECK(on_one_line("what\n  the numbers\n  the fix") == "what; the numbers; the fix");
  CHECK(on_one_line("what") == "what");
}
