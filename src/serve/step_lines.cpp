#include "step_lines.hpp"

#include "base/text.hpp"
#include "base/utc_time.hpp"

#include <algorithm>
#include <future>
#include <iterator>

namespace lockstep::serve {

namespace {

constexpr std::size_t part_bytes = 2 << 20; ///< that are worth a thread
constexpr std::size_t max_threads = 4;

bool take_phrase(std::string_view& text, std::string_view phrase) {
    if (!text.starts_with(phrase)) {
        return false;
    }
    text.remove_prefix(phrase.size());
    return true;
}

/// A text without escaped letters, its quotation marks included.
bool take_text(std::string_view& text, std::string_view& inside) {
    if (!take_phrase(text, "\"")) {
        return false;
    }
    auto const end = std::ranges::find_if(text, [](char letter) {
        return letter == '"' || letter == '\\' || static_cast<unsigned char>(letter) < 0x20;
    });
    inside = text.substr(0, static_cast<std::size_t>(end - text.begin()));
    text.remove_prefix(inside.size());
    return take_phrase(text, "\"");
}

bool take_truth(std::string_view& text, double& number) {
    number = text.starts_with('t') ? 1 : 0;
    return take_phrase(text, "true") || take_phrase(text, "false");
}

/// Takes the next line off, that without its end.
std::string_view line_off(std::string_view& lines) {
    auto const line = lines.substr(0, lines.find('\n'));
    lines.remove_prefix(std::min(line.size() + 1, lines.size()));
    return line;
}

/// The stretches of lines, on this thread.
std::vector<Stretch> read_stretches(std::string_view lines) {
    std::vector<Stretch> stretches;
    while (!lines.empty()) {
        Stretch stretch;
        StepLines steps(stretch.rows);
        while (!lines.empty() && stretch.other.empty()) {
            auto const line = line_off(lines);
            if (steps.take(line)) {
                stretch.last_step = line;
            } else if (!trimmed(line).empty()) {
                stretch.other = line;
            }
        }
        stretches.push_back(std::move(stretch));
    }
    return stretches;
}

bool is_step(double step) {
    return step >= 0 && step < 9e15;
}

} // namespace

std::vector<Stretch> stretches_of(std::string_view lines) {
    auto const threads = std::clamp<std::size_t>(lines.size() / part_bytes, 1, max_threads);
    if (threads == 1) {
        return read_stretches(lines);
    }
    std::vector<std::future<std::vector<Stretch>>> parts;
    for (std::size_t left = threads; left > 0; --left) {
        auto const end = left == 1 ? lines.size() : lines.find('\n', lines.size() / left) + 1;
        // Where no thread can be had, the part is read when it is asked for.
        parts.push_back(std::async(read_stretches, lines.substr(0, end)));
        lines.remove_prefix(end);
    }
    std::vector<Stretch> stretches;
    for (auto& part : parts) {
        std::ranges::move(part.get(), std::back_inserter(stretches));
    }
    return stretches;
}

bool StepLines::take(std::string_view line) {
    columns_.assign(series_.columns().size(), not_told);
    Row row;
    if (values_.empty() || !is_alike(line, row)) {
        row = {};
        if (!learn(line, row)) {
            return false;
        }
    }
    series_.append(static_cast<std::int64_t>(row.step), row.time, columns_);
    return true;
}

bool StepLines::is_alike(std::string_view line, Row& row) {
    for (auto const& value : values_) {
        if (!take_phrase(line, value.before) || !take_value(line, value, row)) {
            return false;
        }
    }
    return line == after_ && is_step(row.step);
}

bool StepLines::take_value(std::string_view& rest, Value const& value, Row& row) {
    std::string_view text;
    double number = 0;
    switch (value.use) {
    case Use::column:
        if (take_number(rest, number) || take_truth(rest, number)) {
            columns_[value.column] = static_cast<float>(number);
            return true;
        }
        return take_phrase(rest, "null");
    case Use::step:
        return take_number(rest, row.step);
    case Use::time:
        if (!take_text(rest, text)) {
            return false;
        }
        row.time = utc_seconds(text);
        return true;
    case Use::nothing:
        return take_text(rest, text);
    }
    return false;
}

/// Splits a line into fields, and keeps how the next one will look.
bool StepLines::learn(std::string_view line, Row& row) {
    values_.clear();
    if (!flat_fields(line, fields_)) {
        return false;
    }
    auto const event = std::ranges::find(fields_, "event", &Field::key);
    if (event == fields_.end() || event->text != "step") {
        return false;
    }
    auto const* from = line.data();
    bool repeats = true; // the next line may be read as this one
    for (auto const& field : fields_) {
        Value value;
        if (field.key == "event") {
            continue; // a part of what lies between values
        }
        if (field.kind == Field::Kind::number || field.kind == Field::Kind::truth) {
            value.use = field.key == "step" ? Use::step : Use::column;
            auto const place = field.key == "step" ? 0 : series_.place_of(field.key);
            repeats = repeats && place;
            value.column = place.value_or(0);
            columns_.resize(series_.columns().size(), not_told);
            if (value.use == Use::step) {
                row.step = field.number;
            } else if (place) {
                columns_[*place] = static_cast<float>(field.number);
            }
        } else if (field.kind == Field::Kind::text) {
            value.use = field.key == "time" ? Use::time : Use::nothing;
            row.time = field.key == "time" ? utc_seconds(field.text) : row.time;
        } else {
            repeats = false;
        }
        value.before.assign(from, field.value.data());
        from = field.value.data() + field.value.size();
        values_.push_back(std::move(value));
    }
    after_.assign(from, line.data() + line.size());
    if (!repeats) {
        values_.clear();
    }
    return is_step(row.step);
}

} // namespace lockstep::serve
