#include "import/series_source.hpp"

#include "base/number.hpp"
#include "base/some_of.hpp"
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
constexpr std::size_t max_categories = 1000;
constexpr std::size_t max_shown_categories = 50; ///< in an error, which has to name them
constexpr char const* or_skip = ", or skip such lines with --skip-bad";

/// An input: the numbers of a column, or where the column has one of its categories.
struct TableInput {
    std::size_t column = 0;
    std::optional<std::string> category{};
};

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
        choose_inputs();
        auto const type = options.doubles ? h5::Type::f64 : h5::Type::f32;
        form_.fields = {{"inputs", type, {inputs_.size()}, !rows}};
        if (!options.unlabelled) {
            form_.fields.push_back(
                {"targets", options.regression ? type : h5::Type::i64, {}, false});
        }
        form_.texts = {{data::columns_name, names_of_inputs()}};
        if (!options.time.empty()) {
            form_.fields.push_back({"time", h5::Type::f64, {}, !rows});
        }
        rows ? list_rows() : list_groups();
        form_.moments = options.unlabelled ? ImportForm::Moments::none // a model has its own
                                           : ImportForm::Moments::by_channel;
    }

    std::string identity() const override {
        return concat("series ", options_.doubles, options_.fill_forward, options_.regression,
                      options_.unlabelled ? " unlabelled " : " ", options_.time, " ",
                      options_.group, " ", options_.target, " ", options_.split_by, " ",
                      joined(names_of_inputs(), ","), "\n", stamp(options_.source));
    }
    ImportForm const& form() const override { return form_; }
    std::vector<std::string> remarks() const override {
        auto lines = table_.remarks;
        if (auto const filled = empty_cells(); options_.fill_forward && filled > 0) {
            lines.push_back(concat("filled ", count_text(filled, "empty cell"),
                                   " with the previous value in its column and series"));
        }
        for (auto const& name : options_.categories) {
            auto const& known = known_.at(table_.column(name));
            lines.push_back(concat("column ", name, " became ", amount_of(known.size(), "input"),
                                   ", one for each of its values: ", some_of(known)));
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
    std::string origin(std::int64_t item) const override {
        return options_.unlabelled ? name(item) : concat("line ", row(item, 0).line);
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
            for (auto const& input : inputs_) {
                auto const* const above = values.size() < inputs_.size()
                                              ? nullptr
                                              : &values[values.size() - inputs_.size()];
                values.push_back(input.category ? is_category(row(item, i), input, above)
                                                : cell(row(item, i), input.column, above));
                rounded = rounded.empty() ? rounding(values.back(), input.column) : rounded;
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
    std::string skip_text() const { return rows_are_samples() ? or_skip : ""; }

    void choose_inputs() {
        for (auto const& name : options_.categories) {
            list_categories(table_.column_of("--categories", name));
        }
        for (auto const& name : options_.columns) {
            add_named(name);
        }
        for (std::size_t c = 0; options_.columns.empty() && c < table_.columns.size(); ++c) {
            add_unless_used(c);
        }
        if (inputs_.empty()) {
            throw Error(ExitCode::data, {table_.path.string(), "no column is left for the inputs",
                                         "Choose the input columns with --columns A,B"});
        }
        for (auto const& name : options_.categories) {
            if (std::ranges::find(inputs_, table_.column(name), &TableInput::column) ==
                inputs_.end()) {
                throw Error(ExitCode::usage,
                            {concat("--categories ", name), "this column is no input",
                             "Leave it out, or name it in --columns, too"});
            }
        }
        require_different_names();
        require_once();
    }

    /// The values of a column of categories, in order.
    void list_categories(std::size_t column) {
        std::set<std::string> names;
        for (auto const& row : table_.rows) {
            auto const& name = row.fields[column];
            if (!name.empty() && names.insert(name).second) {
                data::require_name(name, table_.place_of(row, column));
            }
        }
        if (names.size() > max_categories) {
            throw Error(ExitCode::usage,
                        {concat("--categories ", table_.columns[column]),
                         concat("the column has ", count_text(std::ssize(names)),
                                " different values, but at most ", count_text(max_categories),
                                " can become inputs"),
                         "Leave the column out with --columns, or merge its rare values"});
        }
        known_[column] = data::ordered_names(names);
    }

    /// A column of the table; or COLUMN=NAME, if the table has no column of this whole name.
    void add_named(std::string const& name) {
        for (auto at = name.find('='); at != name.npos && !table_.find(name);
             at = name.find('=', at + 1)) {
            if (table_.find(name.substr(0, at))) {
                auto const column = table_.column(name.substr(0, at));
                inputs_.push_back({column, name.substr(at + 1)});
                if (auto& known = known_[column];
                    std::ranges::find(known, *inputs_.back().category) == known.end()) {
                    known.push_back(*inputs_.back().category);
                }
                return;
            }
        }
        if (options_.unlabelled && !table_.find(name)) {
            refuse_without(name);
        }
        add(table_.column_of("--columns", name));
    }

    [[noreturn]] void refuse_without(std::string const& name) const {
        auto const column = name.substr(0, name.find('='));
        throw Error(
            ExitCode::usage,
            {concat("the model's column ", name),
             concat(table_.path.string(), " has no such column; its columns are ",
                    some_of(table_.columns)),
             concat("Add it to the table, or give the column with these values this name",
                    column == name ? std::string()
                                   : concat(". If it is a category, name a column ", column))});
    }

    void add_unless_used(std::size_t c) {
        auto const& name = table_.columns[c];
        if (name.empty()) {
            throw Error(ExitCode::data,
                        {concat(table_.path.string(), ", line 1"),
                         concat("column ", c + 1, " has no name, but would become an input"),
                         "Give the column a name, or choose the input columns with --columns A,B"});
        }
        if (name != options_.time && name != options_.group && name != options_.target &&
            name != options_.split_by) {
            add(table_.column(name));
        }
    }

    void add(std::size_t column) {
        auto const known = known_.find(column);
        if (known == known_.end()) {
            inputs_.push_back({column});
            return;
        }
        for (auto const& category : known->second) {
            inputs_.push_back({column, category});
        }
    }

    std::string name_of(TableInput const& input) const {
        return concat(table_.columns[input.column], input.category ? "=" : "",
                      input.category.value_or(""));
    }
    std::vector<std::string> names_of_inputs() const {
        std::vector<std::string> names;
        names.reserve(inputs_.size());
        for (auto const& input : inputs_) {
            names.push_back(name_of(input));
        }
        return names;
    }

    /// A column may have the name of another's category.
    void require_different_names() const {
        for (auto const& input : inputs_) {
            if (auto const name = name_of(input); input.category && table_.find(name)) {
                throw Error(ExitCode::data, {table_.path.string(),
                                             concat("an input for the category ", *input.category,
                                                    " of column ", table_.columns[input.column],
                                                    " would have the name of the column ", name),
                                             "Rename one of the two columns"});
            }
        }
    }

    /// What is to be predicted is no input, and no input stands twice.
    void require_once() const {
        std::set<std::string> names;
        for (auto const& input : inputs_) {
            bool const is_target =
                !options_.target.empty() && table_.columns[input.column] == options_.target;
            if (is_target || !names.insert(name_of(input)).second) {
                throw Error(ExitCode::usage,
                            {concat("--columns: ", name_of(input)),
                             is_target ? "this column is the target" : "this column is named twice",
                             "Name each input once, without the target"});
            }
        }
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

    double is_category(CsvTable::Row const& row, TableInput const& input,
                       double const* above) const {
        auto const& text = row.fields[input.column];
        auto const& column = table_.columns[input.column];
        if (text.empty() && options_.fill_forward && above != nullptr) {
            return *above;
        }
        if (text.empty()) {
            refuse(row, column, "is empty",
                   concat(options_.unlabelled ? "Write one of the training's categories"
                                              : "Write a category, such as unknown,",
                          " on every line", skip_text()));
        }
        auto const& known = known_.at(input.column);
        if (std::ranges::find(known, text) == known.end()) {
            refuse(row, column,
                   concat("is the unknown category ", text, ": the ",
                          options_.unlabelled ? "model" : "import", " knows ",
                          some_of(known, max_shown_categories)),
                   options_.unlabelled
                       ? concat("Write one of these", or_skip)
                       : concat("Correct it, or name ", column, "=", text, " in --columns, too"));
        }
        return text == *input.category ? 1 : 0;
    }

    double cell(CsvTable::Row const& row, std::size_t column, double const* above) const {
        auto const& text = row.fields[column];
        if (text.empty() && options_.fill_forward && above != nullptr) {
            return *above;
        }
        auto const value = number(text);
        if (!value && is_out_of_range(text)) {
            refuse(row, table_.columns[column], concat("is outside of the range of f64: ", text),
                   concat("Correct it", skip_text()));
        }
        if (!value) {
            refuse(row, table_.columns[column],
                   text.empty() ? "is empty" : concat("is not a number: ", text),
                   options_.unlabelled
                       ? concat("Write a number, as in the table that the model was trained on",
                                or_skip)
                   : text.empty()
                       ? concat("Correct it, leave the column out with --columns",
                                options_.target.empty()
                                    ? ", or fill empty cells with --fill-forward"
                                    : or_skip)
                       : concat("Correct it, or leave the column out with --columns. If its values "
                                "are names, write --categories ",
                                table_.columns[column]));
        }
        auto const kept = static_cast<float>(*value);
        bool const too_large = !std::isfinite(kept);
        bool const too_small = kept == 0 && *value != 0;
        if (!options_.doubles && (too_large || too_small)) {
            refuse(row, table_.columns[column],
                   concat("is too ", too_large ? "large" : "small", " for f32: ", text),
                   concat("Correct it", options_.unlabelled
                                            ? or_skip
                                            : ", or store the numbers with --type f64"));
        }
        return *value;
    }
    /// What f32 makes of a whole number; empty: nothing.
    std::string rounding(double value, std::size_t column) const {
        bool const whole = std::trunc(value) == value;
        return options_.doubles || !whole || static_cast<double>(static_cast<float>(value)) == value
                   ? std::string()
                   : concat("whole numbers in column ", table_.columns[column],
                            " were rounded, since f32 holds all of them only up to 16,777,216",
                            options_.unlabelled ? ", as those that the model was trained on"
                                                : "; --type f64 keeps them");
    }
    std::int64_t empty_cells() const {
        std::int64_t cells = 0;
        std::set<std::size_t> columns;
        for (auto const& input : inputs_) {
            columns.insert(input.column);
        }
        for (auto const& row : table_.rows) {
            for (auto const column : columns) {
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
    std::vector<TableInput> inputs_;
    std::map<std::size_t, std::vector<std::string>> known_; ///< categories of columns
    std::vector<std::vector<std::size_t>> items_;           ///< rows of each item
    std::vector<std::int64_t> labels_;
    ImportForm form_;
};

} // namespace

std::unique_ptr<ImportSource> series_source(SeriesImport const& options) {
    return std::make_unique<SeriesSource>(options);
}

} // namespace lockstep::import
