// Builds an SVG picture. Colors come from the page's style sheet, so the page chooses the colors for light mode, dark mode
// and print. A picture that is saved as a file includes its style.
//
// Three features identify a series: its color (Okabe and Ito's palette, safe for color blindness), its dashes or hatching,
// and its mark. Text widths are estimates, slightly too wide.
#pragma once
#include <cstddef>
#include <string>
#include <vector>

namespace chorale::report {

// The number of colors, and the number of looks. A look is a combination of color, dashes and mark. Look 8 has the color of
// look 0, but different dashes and a different mark. Look 16 equals look 0.
inline constexpr std::size_t series_colors = 8, series_looks = 16;

struct LegendEntry {
  std::string name;
  std::string sample;  // SVG, 24 wide and 12 high, with its upper left corner at (0, 0)
};

class Canvas {
 public:
  // `title` and `description` are for screen readers; the page shows the title above the picture.
  Canvas(double width, const std::string& title, const std::string& description);

  void text(double x, double y, const std::string& words, const std::string& style = "",
            const std::string& anchor = "start");
  void line(double x1, double y1, double x2, double y2, const std::string& style);
  void add(const std::string& svg) { body_ += svg; }
  // Adds a tooltip that appears when the pointer is near this position. The tooltip is drawn last, so that nothing covers
  // it.
  void hover(double x, double y, const std::string& words);
  double legend(double x, double y, const std::vector<LegendEntry>& entries);  // wraps lines; returns the y below it

  double width() const { return width_; }
  std::string finish(double height) const;

 private:
  double width_;
  std::string head_, body_, hovers_;
};

double text_width(const std::string& text);
std::string fitted(const std::string& text, double width);  // shortened with an ellipsis

// Each function takes the index of a look. Returns the SVG attributes of a line or an area, or a mark as SVG.
std::string color_of(std::size_t look);  // the CSS class of the color
std::string line_look(std::size_t look);
std::string fill_look(std::size_t look, bool outlined = false);
std::string mark(std::size_t look, double x, double y, bool hollow = false);

std::string patterns();      // SVG that defines the hatchings; a page needs it once
std::string chart_styles();  // CSS of all charts of a page, with light and dark colors
// Converts a picture of the page to a file for papers: on white, with its style, but without CSS variables, which few
// programs support.
std::string as_file(const std::string& svg);

}  // namespace chorale::report
