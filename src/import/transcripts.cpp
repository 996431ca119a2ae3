#include "transcripts.hpp"

#include "base/file.hpp"
#include "base/line_ends.hpp"
#include "base/text.hpp"
#include "base/utf8.hpp"
#include "lockstep/base/error.hpp"

#include <algorithm>

#include "listed_file.hpp"

namespace lockstep::import {

namespace {

bool is_festvox(std::string_view text) {
    return trimmed(text).starts_with('(');
}

Transcripts from_festvox(TranscriptOptions const& options, std::string const& text) {
    auto const& group = options.group_column;
    if (!group.empty() || options.text_column != "text") {
        throw Error(
            ExitCode::usage,
            {group.empty() ? concat("--text ", options.text_column) : concat("--split-by ", group),
             concat(options.path.string(), " is a file of Festvox, which has no columns"),
             "Leave the option out, or name a table with columns"});
    }
    Transcripts transcripts;
    std::int64_t number = 0;
    for (auto const& line : split(text, '\n')) {
        ++number;
        if (line.empty()) {
            continue;
        }
        auto const first = line.find('"');
        auto const last = line.rfind('"');
        auto const name = trimmed(std::string_view(line).substr(0, std::min(first, line.size())));
        if (!name.starts_with('(') || first == last || !line.ends_with(')')) {
            throw Error(ExitCode::data,
                        {concat(options.path.string(), ", line ", number),
                         "it does not have the form ( NAME \"TEXT\" )", "Correct the line"});
        }
        transcripts.rows.push_back({options.source / concat(trimmed(name.substr(1)), ".wav"),
                                    line.substr(first + 1, last - first - 1), "", "", number});
    }
    return transcripts;
}

Transcripts from_table(TranscriptOptions const& options) {
    auto const table = read_csv(options.path);
    auto const file = table.column("file");
    auto const text = table.column(options.text_column);
    SetColumn const sets(table, options.group_column);
    Transcripts transcripts{{}, table.remarks};
    transcripts.remarks.push_back(sets.remark);
    std::erase(transcripts.remarks, "");
    for (auto const& row : table.rows) {
        transcripts.rows.push_back(
            {listed_file(table, row, file, options.source), row.fields[text],
             options.group_column.empty() ? "" : row.fields[table.column(options.group_column)],
             listed_set(table, row, sets), row.line});
    }
    return transcripts;
}

} // namespace

Transcripts read_transcripts(TranscriptOptions const& options) {
    auto const text = read_text(options.path);
    require_line_ends(options.path, text, ExitCode::data);
    auto transcripts = is_festvox(text) ? from_festvox(options, text) : from_table(options);
    for (auto const& row : transcripts.rows) {
        static_cast<void>(decoded(row.text, concat(options.path.string(), ", line ", row.line)));
    }
    if (transcripts.rows.empty()) {
        throw Error(ExitCode::no_input, {options.path.string(), "the file holds no transcript",
                                         "Name the file with the transcripts"});
    }
    return transcripts;
}

} // namespace lockstep::import
