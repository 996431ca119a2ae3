#include "monitor/confusion_text.hpp"

#include "base/escaped.hpp"
#include "base/text.hpp"
#include "monitor/terminal.hpp"

#include <algorithm>

#include "aligned.hpp"

namespace lockstep::monitor {

namespace {

constexpr std::size_t max_classes = 12;    ///< of a table with all counts
constexpr std::size_t max_confusions = 20; ///< of a list

std::string whole_table(train::Confusion const& confusion) {
    auto const& names = confusion.classes;
    std::size_t first = 0;
    for (auto const& name : names) {
        first = std::max(first, columns_of(name));
    }
    std::string heads = std::string(first + 2, ' ');
    std::vector<std::string> rows;
    for (auto const& name : names) {
        rows.push_back(concat("  ", left_aligned(name, first)));
    }
    for (std::size_t column = 0; column < names.size(); ++column) {
        auto width = columns_of(names[column]);
        for (std::size_t row = 0; row < names.size(); ++row) {
            auto const count = confusion.counts[row * names.size() + column];
            width = std::max(width, std::to_string(count).size());
        }
        heads += "  " + right_aligned(names[column], width);
        for (std::size_t row = 0; row < names.size(); ++row) {
            auto const count = confusion.counts[row * names.size() + column];
            rows[row] += "  " + right_aligned(std::to_string(count), width);
        }
    }
    return concat("confusion (a row for each true class, a column for each predicted class)\n",
                  heads, "\n", joined(rows, "\n"), "\n");
}

struct Mistake {
    std::int64_t count = 0;
    std::size_t truth = 0;
    std::size_t guess = 0;
};

std::string largest(train::Confusion const& confusion) {
    auto const classes = confusion.classes.size();
    std::vector<Mistake> mistakes;
    std::vector<std::int64_t> samples(classes, 0);
    for (std::size_t at = 0; at < confusion.counts.size(); ++at) {
        auto const count = confusion.counts[at];
        samples[at / classes] += count;
        if (count > 0 && at / classes != at % classes) {
            mistakes.push_back({count, at / classes, at % classes});
        }
    }
    std::ranges::stable_sort(mistakes, std::ranges::greater{}, &Mistake::count);
    auto text =
        concat("confusion: ", count_text(static_cast<std::int64_t>(mistakes.size())),
               mistakes.size() == 1 ? " pair" : " pairs", " of ", classes, " classes",
               mistakes.size() > max_confusions ? concat(", the most frequent ", max_confusions)
                                                : std::string(),
               "\n");
    mistakes.resize(std::min(mistakes.size(), max_confusions));
    for (auto const& [count, truth, guess] : mistakes) {
        text += concat("  ", confusion.classes[truth], " taken for ", confusion.classes[guess],
                       ": ", count_text(count), " of ", count_text(samples[truth]), "\n");
    }
    return text;
}

} // namespace

std::string confusion_text(train::Confusion const& confusion) {
    if (confusion.counts.empty()) {
        return "";
    }
    auto printed = confusion;
    std::ranges::transform(printed.classes, printed.classes.begin(),
                           [](std::string const& name) { return escaped_line(name); });
    return printed.classes.size() <= max_classes ? whole_table(printed) : largest(printed);
}

} // namespace lockstep::monitor
