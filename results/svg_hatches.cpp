#include <fmt/format.h>

#include <array>

#include "results/svg.h"

namespace zl {
namespace {

// Okabe and Ito (2008): apart under every colour blindness; grey in place of their black, which a
// dark page would swallow.
constexpr std::array<const char*, kSeries> kColours{"#0072b2", "#e69f00", "#009e73", "#56b4e9",
                                                    "#d55e00", "#cc79a7", "#f0e442", "#8c8c8c"};

constexpr std::array<const char*, kSeries> kLines{"",
                                                  "M-2 2l4-4M0 8l8-8M6 10l4-4",
                                                  "M-2 6l4 4M0 0l8 8M6-2l4 4",
                                                  "M4 0v8",
                                                  "M0 4h8",
                                                  "M0 0l8 8M0 8l8-8",
                                                  "M4 0v8M0 4h8",
                                                  "M2 2h1v1h-1zM6 6h1v1h-1z"};

}  // namespace

std::string svg_hatches() {
  std::string out =
      "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"0\" height=\"0\" class=\"hatches\" "
      "aria-hidden=\"true\"><defs>\n";
  for (std::size_t i = 0; i < kSeries; ++i) {
    out += fmt::format(
        "<pattern id=\"hatch-{}\" width=\"8\" height=\"8\" patternUnits=\"userSpaceOnUse\">"
        "<rect width=\"8\" height=\"8\" fill=\"{}\"/>"
        "<path d=\"{}\" stroke=\"#000\" stroke-opacity=\"0.35\" fill=\"none\"/></pattern>\n",
        i, kColours[i], kLines[i]);
  }
  return out + "</defs></svg>\n";
}

std::string svg_style() {
  constexpr std::array<const char*, kSeries> kDashes{"none", "8 3",  "2 2",     "10 3 2 3",
                                                     "5 5",  "12 4", "4 2 1 2", "1 3"};
  std::string screen, paper;
  for (std::size_t i = 0; i < kSeries; ++i) {
    screen += fmt::format("svg .s{0} {{ fill: url(#hatch-{0}); }}\n", i);
    screen += fmt::format("svg .c{} {{ stroke: {}; stroke-dasharray: {}; }}\n", i, kColours[i],
                          kDashes[i]);
    paper += fmt::format(" svg .s{} {{ fill: {}; }}\n", i, kColours[i]);
  }
  return screen +
         "svg .curve { fill: none; stroke-width: 1.6; stroke-linejoin: round; }"
         "\nsvg .paper { display: none; }\n@media print {\n" +
         paper +
         " svg.hatches { display: none; }\n svg .paper { display: inline; fill: none; stroke: "
         "#000; stroke-opacity: 0.5; stroke-width: 0.7; }\n}\n";
}

}  // namespace zl
