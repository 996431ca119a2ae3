#include "monitor/measured_text.hpp"

#include "base/escaped.hpp"
#include "base/text.hpp"
#include "lockstep/monitor/run_records.hpp"
#include "monitor/terminal.hpp"

#include <algorithm>
#include <map>
#include <set>
#include <vector>

#include "aligned.hpp"

namespace lockstep::monitor {

namespace {

constexpr std::size_t max_columns = 120; ///< of a line that is read at a glance
constexpr std::size_t max_rows_at_a_glance = 20;
constexpr int value_digits = 6;

using Values = std::map<std::string, double>;

/// Names right-aligned and values below each other.
std::string column_of(Values const& metrics) {
    std::size_t width = 0;
    for (auto const& [name, value] : metrics) {
        width = std::max(width, columns_of(name));
    }
    std::string text;
    for (auto const& [name, value] : metrics) {
        text += concat("  ", right_aligned(name, width), " ", fixed(value, value_digits), "\n");
    }
    return text;
}

/// A row for each class or target, a column for each metric; of "f1.coat" the first point
/// separates.
std::string table_of(Values const& of_classes, std::string const& row, std::size_t max_rows) {
    std::map<std::string, Values> columns;
    std::set<std::string> classes;
    std::size_t first = row.size();
    for (auto const& [name, value] : of_classes) {
        auto const point = name.find('.');
        auto const of = escaped_line(name.substr(point + 1));
        columns[name.substr(0, point)][of] = value;
        classes.insert(of);
        first = std::max(first, columns_of(of));
    }
    auto text = "  " + left_aligned(row, first);
    std::map<std::string, std::size_t> widths;
    for (auto const& [metric, values] : columns) {
        auto& width = widths[metric] = columns_of(metric);
        for (auto const& [of, value] : values) {
            width = std::max(width, fixed(value, value_digits).size());
        }
        text += "  " + right_aligned(metric, width);
    }
    std::size_t rows = 0;
    for (auto const& of : classes) {
        if (++rows > max_rows) {
            return concat(text, "\n  and ",
                          count_text(static_cast<std::int64_t>(classes.size() - max_rows)),
                          " more (in a file or a pipe, all are printed)\n");
        }
        text += "\n  " + left_aligned(of, first);
        for (auto const& [metric, values] : columns) {
            auto const found = values.find(of);
            text += "  " + right_aligned(found == values.end() ? std::string("-")
                                                               : fixed(found->second, value_digits),
                                         widths[metric]);
        }
    }
    return text + "\n";
}

} // namespace

std::string measured_text(train::Measured const& measured, std::string const& row, bool shortened) {
    auto const head = concat(measured.set, ": ", count_text(measured.samples), " samples, loss ",
                             fixed(measured.loss, value_digits));
    auto line = head;
    Values of_all;
    Values of_classes;
    for (auto const& [name, value] : measured.metrics) {
        if (is_of_one_class(name)) {
            of_classes[name] = value;
        } else {
            of_all[name] = value;
            line += concat(", ", name, " ", fixed(value, value_digits));
        }
    }
    return concat(
        columns_of(line) <= max_columns ? line + "\n" : concat(head, "\n", column_of(of_all)),
        of_classes.empty()
            ? ""
            : table_of(of_classes, row, shortened ? max_rows_at_a_glance : of_classes.size()));
}

} // namespace lockstep::monitor
