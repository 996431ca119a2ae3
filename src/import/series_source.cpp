#include "import/series_source.hpp"

#include "base/number.hpp"
#include "base/text.hpp"
#include "data/class_names.hpp"
#include "data/format.hpp"
#include "lockstep/base/error.hpp"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <map>
#include <optional>
#include <set>

#include "csv.hpp"
#include "time_text.hpp"

namespace lockstep::import {

namespace {

constexpr std::int64_t rows_at_once = 4096;
constexpr std::size_t many_classes = 10; ///< of which a digit could be the name

std::optional<double> number(std::string const& text) {
    auto const value = number_of<double>(text);
    return value && std::isfinite(*value) ? value : std::nullopt;
}

bool is_out_of_range(std::string const& text) {
    double value = 0;
    auto const* const end = text.data() + text.size();
    auto const [at, failure] = std::from_chars(text.data(), end, value);
    return at == end && failure == std::errc::result_out_of_range;
}

/// A table whose rows are samples, or the steps of one series for each group.
class SeriesSource : public ImportSource {
  public:
    explicit SeriesSource(SeriesImport const& options)
        : options_(options), table_(read_csv(options.source)) {
        if (table_.rows.empty()) {
            throw Error(ExitCode::no_input, {options.source.string(), "it has no rows",
                                             "Name a table with a header line and data lines"});
        }
        bool const rows = rows_are_samples();
        std::vector<std::pair<std::string, std::string>> const named{
            {"--time", options.time},
            {"--group", options.group},
            {"--target", options.target},
            {"--split-by", options.split_by}};
        for (auto const& [option, name] : named) {
            if (!name.empty()) {
                table_.column_of(option, name);
            }
        }
        columns_ = chosen_columns();
        auto const type = options.doubles ? h5::Type::f64 : h5::Type::f32;
        form_.fields = {{"inputs", type, {columns_.size()}, !rows}};
        if (!options.unlabelled) {
            form_.fields.push_back(
                {"targets", options.regression ? type : h5::Type::i64, {}, false});
        }
        form_.texts = {{data::columns_name, names_of(columns_)}};
        if (!options.time.empty()) {
            form_.fields.push_back({"time", h5::Type::f64, {}, !rows});
        }
        rows ? list_rows() : list_groups();
        form_.moments = ImportForm::Moments::by_channel;
    }

    std::string identity() const override {
        return concat("series ", options_.doubles, options_.fill_forward, options_.regression,
                      options_.unlabelled ? " unlabelled " : " ", options_.time, " ",
                      options_.group, " ", options_.target, " ", options_.split_by, " ",
                      joined(names_of(columns_), ","), "\n", stamp(options_.source));
    }
    ImportForm const& form() const override { return form_; }
    std::vector<std::string> remarks() const override {
        auto lines = table_.remarks;
        if (auto const filled = empty_cells(); options_.fill_forward && filled > 0) {
            lines.push_back(concat("filled ", count_text(filled, "empty cell"),
                                   " with the previous value in its column and series"));
        }
        auto const classes = form_.class_names.size();
        bool const real_values =
            !options_.target.empty() && classes > many_classes && 2 * classes > items_.size() &&
            std::ranges::all_of(form_.class_names,
                                [](auto const& name) { return number(name).has_value(); });
        if (real_values) {
            lines.push_back(concat(
                "warning: the numbers in column ", options_.target,
                " became class names: ", classes, " classes for ", items_.size(),
                " samples in all. If they are real values, import the table with --regression"));
        }
        return lines;
    }
    std::int64_t items() const override { return static_cast<std::int64_t>(items_.size()); }
    std::string name(std::int64_t item) const override {
        return concat(table_.path.string(), ", line ", row(item, 0).line);
    }
    std::int64_t label(std::int64_t item) const override {
        return labels_[static_cast<std::size_t>(item)];
    }
    std::string group(std::int64_t item) const override {
        return options_.split_by.empty() ? name(item)
                                         : row(item, 0).fields[table_.column(options_.split_by)];
    }
    std::int64_t items_at_once() const override { return rows_are_samples() ? rows_at_once : 1; }

    std::string read(std::int64_t item, std::function<void(Sample&&)> const& sink) const override {
        auto const& rows = items_[static_cast<std::size_t>(item)];
        std::vector<double> values;
        std::vector<double> times;
        std::string rounded;
        for (std::size_t i = 0; i < rows.size(); ++i) {
            for (std::size_t c = 0; c < columns_.size(); ++c) {
                auto const* const above = values.size() < columns_.size()
                                              ? nullptr
                                              : &values[values.size() - columns_.size()];
                values.push_back(cell(row(item, i), columns_[c], above));
                rounded = rounded.empty() ? rounding(values.back(), columns_[c]) : rounded;
            }
            if (!options_.time.empty()) {
                times.push_back(time(row(item, i)));
                if (times.size() > 1 && times.back() < times[times.size() - 2]) {
                    refuse(row(item, i), options_.time,
                           "is earlier than the value in the previous row of the same series",
                           "Sort the rows of the table by time");
                }
            }
        }
        std::vector<std::vector<std::byte>> fields{bytes(values)};
        if (!options_.unlabelled) {
            fields.push_back(target(item));
        }
        if (!options_.time.empty()) {
            fields.push_back(bytes_of(times));
        }
        sink({std::move(fields), label(item)});
        if (options_.regression && rounded.empty()) {
            auto const column = table_.column(options_.target);
            rounded = rounding(cell(row(item, 0), column, nullptr), column);
        }
        return rounded;
    }

  private:
    bool rows_are_samples() const { return options_.unlabelled || !options_.target.empty(); }

    std::vector<std::size_t> chosen_columns() const {
        std::vector<std::size_t> columns;
        for (auto const& name : options_.columns) {
            columns.push_back(
                table_.column_of(options_.unlabelled ? "the model's column" : "--columns", name));
        }
        if (!options_.columns.empty()) {
            return columns;
        }
        for (std::size_t c = 0; c < table_.columns.size(); ++c) {
            auto const& name = table_.columns[c];
            if (name.empty()) {
                throw Error(
                    ExitCode::data,
                    {concat(table_.path.string(), ", line 1"),
                     concat("column ", c + 1, " has no name, but would become an input"),
                     "Give the column a name, or choose the input columns with --columns A,B"});
            }
            if (name != options_.time && name != options_.group && name != options_.target &&
                name != options_.split_by) {
                columns.push_back(table_.column(name));
            }
        }
        if (columns.empty()) {
            throw Error(ExitCode::data, {table_.path.string(), "no column is left for the inputs",
                                         "Choose the input columns with --columns A,B"});
        }
        return columns;
    }
    std::vector<std::string> names_of(std::vector<std::size_t> const& columns) const {
        std::vector<std::string> names;
        names.reserve(columns.size());
        for (auto const c : columns) {
            names.push_back(table_.columns[c]);
        }
        return names;
    }

    /// Every row is a sample.
    void list_rows() {
        std::set<std::string> names;
        for (std::size_t i = 0; i < table_.rows.size(); ++i) {
            items_.push_back({i});
        }
        if (options_.regression || options_.unlabelled) {
            labels_.assign(items_.size(), -1);
            return;
        }
        auto const column = table_.column(options_.target);
        for (auto const& row : table_.rows) {
            if (names.insert(name_in(row, column)).second) {
                data::require_name(row.fields[column], table_.place_of(row, column));
            }
        }
        form_.class_names = data::ordered_names(names);
        std::map<std::string, std::int64_t> places;
        for (auto const& name : form_.class_names) {
            places.emplace(name, places.size());
        }
        for (auto const& row : table_.rows) {
            labels_.push_back(places.at(row.fields[column]));
        }
    }

    /// Every group is a sample, and a class by its name.
    void list_groups() {
        if (options_.group.empty()) {
            form_.class_names = {options_.source.stem().string()};
            labels_ = {0};
            items_.emplace_back();
            for (std::size_t i = 0; i < table_.rows.size(); ++i) {
                items_[0].push_back(i);
            }
            return;
        }
        auto const column = table_.column(options_.group);
        std::map<std::string, std::vector<std::size_t>> groups;
        for (std::size_t i = 0; i < table_.rows.size(); ++i) {
            auto& rows = groups[name_in(table_.rows[i], column)];
            if (rows.empty()) {
                data::require_name(table_.rows[i].fields[column],
                                   table_.place_of(table_.rows[i], column));
            }
            rows.push_back(i);
        }
        for (auto& [name, rows] : groups) {
            labels_.push_back(static_cast<std::int64_t>(items_.size()));
            form_.class_names.push_back(name);
            items_.push_back(std::move(rows));
        }
    }

    /// What a row says of its class or group.
    std::string const& name_in(CsvTable::Row const& row, std::size_t column) const {
        if (row.fields[column].empty()) {
            refuse(row, table_.columns[column], "is empty", "Name a class or group on every line");
        }
        return row.fields[column];
    }

    CsvTable::Row const& row(std::int64_t item, std::size_t i) const {
        return table_.rows[items_[static_cast<std::size_t>(item)][i]];
    }

    double cell(CsvTable::Row const& row, std::size_t column, double const* above) const {
        auto const& text = row.fields[column];
        if (text.empty() && options_.fill_forward && above != nullptr) {
            return *above;
        }
        auto const value = number(text);
        if (!value && is_out_of_range(text)) {
            refuse(row, table_.columns[column], concat("is outside of the range of f64: ", text),
                   "Correct it");
        }
        if (!value) {
            refuse(row, table_.columns[column],
                   text.empty() ? "is empty" : concat("is not a number: ", text),
                   options_.target.empty() ? "Correct it, leave the column out with --columns, or "
                                             "fill empty cells with --fill-forward"
                                           : "Correct it, or leave the column out with --columns");
        }
        auto const kept = static_cast<float>(*value);
        bool const too_large = !std::isfinite(kept);
        bool const too_small = kept == 0 && *value != 0;
        if (!options_.doubles && (too_large || too_small)) {
            refuse(row, table_.columns[column],
                   concat("is too ", too_large ? "large" : "small", " for f32: ", text),
                   "Correct it, or store the numbers with --type f64");
        }
        return *value;
    }
    /// What f32 makes of a whole number; empty: nothing.
    std::string rounding(double value, std::size_t column) const {
        bool const whole = std::trunc(value) == value;
        return options_.doubles || !whole || static_cast<double>(static_cast<float>(value)) == value
                   ? std::string()
                   : concat("whole numbers in column ", table_.columns[column],
                            " were rounded, since f32 holds all of them only up to 16,777,216; "
                            "--type f64 keeps them");
    }
    std::int64_t empty_cells() const {
        std::int64_t cells = 0;
        for (auto const& row : table_.rows) {
            for (auto const column : columns_) {
                cells += row.fields[column].empty() ? 1 : 0;
            }
        }
        return cells;
    }
    double time(CsvTable::Row const& row) const {
        auto const& text = row.fields[table_.column(options_.time)];
        auto const value = time_of(text);
        if (!value) {
            refuse(row, options_.time, concat("is not a time: ", text),
                   "Write YYYY-MM-DD HH:MM:SS in UTC, or with an offset such as +HH:MM; or write a "
                   "number");
        }
        auto const is_number = [&](CsvTable::Row const& of) {
            return number_of<double>(of.fields[table_.column(options_.time)]).has_value();
        };
        if (auto const& first = table_.rows.front(); is_number(row) != is_number(first)) {
            refuse(row, options_.time,
                   concat("is a ", is_number(row) ? "number" : "date", " (", text,
                          "), but that on line ", first.line, " is not"),
                   "Write all times as dates, or all as numbers: dates become seconds since 1970");
        }
        return *value;
    }
    [[noreturn]] void refuse(CsvTable::Row const& row, std::string const& column,
                             std::string const& why, std::string const& next) const {
        throw Error(ExitCode::data, {concat(table_.path.string(), ", line ", row.line),
                                     concat("the value in column ", column, " ", why), next});
    }

    std::vector<std::byte> bytes(std::vector<double> const& values) const {
        return options_.doubles ? bytes_of(values)
                                : bytes_of(std::vector<float>(values.begin(), values.end()));
    }
    std::vector<std::byte> target(std::int64_t item) const {
        if (!options_.regression) {
            return bytes_of(std::vector{label(item)});
        }
        return bytes({cell(row(item, 0), table_.column(options_.target), nullptr)});
    }

    SeriesImport options_;
    CsvTable table_;
    std::vector<std::size_t> columns_;            ///< of the inputs
    std::vector<std::vector<std::size_t>> items_; ///< rows of each item
    std::vector<std::int64_t> labels_;
    ImportForm form_;
};

} // namespace

std::unique_ptr<ImportSource> series_source(SeriesImport const& options) {
    return std::make_unique<SeriesSource>(options);
}

} // namespace lockstep::import
