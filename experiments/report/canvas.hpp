// A picture in the making: SVG that takes its colours from the page around it, so that light, dark and paper are the page's
// business.
//
// Eight series tell themselves apart three ways: by colour (Okabe and Ito's, which every eye can tell apart), by dashes or
// hatching, and by marks. Text is measured by guess, a little too wide.
#pragma once
#include <cstddef>
#include <string>
#include <vector>

namespace chorale::report {

inline constexpr std::size_t series_looks = 8;  // then they repeat

struct LegendEntry {
  std::string name;
  std::string sample;  // SVG within 24 × 12, at 0, 0
};

class Canvas {
 public:
  // A title, and what is to be seen, for those who do not see it.
  Canvas(double width, const std::string& title, const std::string& description);

  void text(double x, double y, const std::string& words, const std::string& style = "",
            const std::string& anchor = "start");
  void line(double x1, double y1, double x2, double y2, const std::string& style);
  void add(const std::string& svg) { body_ += svg; }
  double legend(double x, double y, const std::vector<LegendEntry>& entries);  // in as many lines as it takes; where it ends

  double width() const { return width_; }
  std::string finish(double height) const;

 private:
  double width_;
  std::string head_, body_;
};

double text_width(const std::string& text);
std::string fitted(const std::string& text, double width);  // cut short with an ellipsis

std::string line_look(std::size_t series);  // attributes
std::string fill_look(std::size_t series, bool outlined = false);
std::string mark(std::size_t series, double x, double y);
std::string patterns();  // the hatchings: once a page
std::string palette();   // CSS: the colours of the looks, of light and of dark

}  // namespace chorale::report
