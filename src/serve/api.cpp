#include "api.hpp"

#include "base/text.hpp"

#include <nlohmann/json.hpp>

#include <algorithm>
#include <charconv>
#include <cmath>

#include "assets.hpp"
#include "records.hpp"
#include "run_files.hpp"
#include "thinning.hpp"

namespace lockstep::serve {

namespace {

using Json = nlohmann::json;

constexpr char const* json_type = "application/json";

Response json_response(std::string text) {
    return {.type = json_type, .body = std::move(text)};
}

template <class Number>
Number number_or(std::string const& text, Number otherwise) {
    Number value{};
    auto const [end, failure] = std::from_chars(text.data(), text.data() + text.size(), value);
    bool const whole = failure == std::errc{} && end == text.data() + text.size();
    return whole && (!std::is_floating_point_v<Number> || std::isfinite(value)) ? value : otherwise;
}

std::string all_overviews(RunList const& runs) {
    std::string text = "[";
    for (std::size_t i = 0; i < runs.size(); ++i) {
        text += concat(i == 0 ? "" : ",", overview_json(runs, i));
    }
    return text + "]";
}

std::string all_searches(RunList const& runs) {
    Json list = Json::array();
    for (auto const& search : runs.searches()) {
        list.push_back({{"search", list.size()},
                        {"name", search.filename().string()},
                        {"path", search.string()}});
    }
    return one_line(list);
}

std::string details(RunList const& runs, std::size_t place) {
    auto const& run = runs[place];
    Json columns = Json::array();
    for (auto const& column : run.series().columns()) {
        columns.push_back(column.name);
    }
    auto text =
        concat("{\"overview\":", overview_json(runs, place), ",\"columns\":", one_line(columns),
               ",\"newest_step\":", run.newest_step().empty() ? "null" : run.newest_step(),
               ",\"events\":[");
    for (auto const& event : run.events()) {
        text += concat(text.back() == '[' ? "" : ",", event.json);
    }
    text += concat(
        "],\"history\":", history_json(run.directory()),
        ",\"pictures\":", one_line(Json(picture_names(run.directory(), Gallery::plots))),
        ",\"samples\":", one_line(Json(picture_names(run.directory(), Gallery::samples))),
        ",\"worst\":", worst_json(run.directory()),
        ",\"worst_pictures\":", one_line(Json(picture_names(run.directory(), Gallery::worst))));
    return text + "}";
}

Response series_response(Request const& request, Run const& run) {
    Extract extract;
    extract.axis = request.asked("axis") == "time" ? Axis::time : Axis::step;
    auto const& series = run.series();
    if (series.rows() > 0) {
        bool const steps = extract.axis == Axis::step;
        auto const first =
            steps ? static_cast<double>(series.steps().front()) : series.times().front();
        auto const last =
            steps ? static_cast<double>(series.steps().back()) : series.times().back();
        extract.from = number_or(request.asked("from"), first);
        extract.to = number_or(request.asked("to"), last);
    }
    extract.buckets =
        std::clamp<std::size_t>(number_or<std::size_t>(request.asked("buckets"), 800), 1, 4000);
    extract.columns = split(request.asked("columns"), ',');
    if (extract.columns.size() > 64) {
        return refusal(400, "Ask for 64 columns at most.");
    }
    return json_response(json_text(thinned(series, extract)));
}

Response run_response(Request const& request, RunList const& runs, std::size_t place) {
    auto const& run = runs[place];
    if (request.path == "/api/run") {
        return json_response(details(runs, place));
    }
    if (request.path == "/api/series") {
        return series_response(request, run);
    }
    if (request.path == "/api/log") {
        return json_response(
            log_json(run.directory(), number_or<std::uint64_t>(request.asked("end"), UINT64_MAX)));
    }
    if (request.path == "/api/deck") {
        return {.body = deck_text(run.directory())};
    }
    if (request.path == "/api/picture") {
        auto const of = request.asked("of");
        auto const gallery = of == "samples" ? Gallery::samples
                             : of == "worst" ? Gallery::worst
                                             : Gallery::plots;
        auto const picture = picture_bytes(
            run.directory(), gallery, number_or<std::size_t>(request.asked("picture"), SIZE_MAX));
        return picture.empty() ? refusal(404, "There is no such picture.")
                               : Response{.type = "image/png", .body = picture};
    }
    return refusal(404, "There is no such page.");
}

} // namespace

std::string overview_json(RunList const& runs, std::size_t place) {
    auto const& run = runs[place];
    auto const overview = run.overview();
    Json json{{"run", place},
              {"name", run.name()},
              {"path", run.directory().string()},
              {"state", overview.state},
              {"reason", overview.reason},
              {"model", overview.model},
              {"ranks", overview.ranks},
              {"step", overview.step},
              {"total_steps", overview.total_steps},
              {"newest", overview.newest},
              {"rows", run.series().rows()},
              {"bad_lines", run.bad_lines()},
              {"read", std::floor(run.read_share() * 100) / 100}};
    if (runs.carbon_intensity()) {
        json["carbon_intensity"] = *runs.carbon_intensity();
    }
    for (char const* name : {"loss", "samples_per_s"}) {
        auto const* const column = run.series().column(name);
        if (column != nullptr && !column->values.empty() && std::isfinite(column->values.back())) {
            json[name] = column->values.back();
        }
    }
    return one_line(json);
}

std::string rows_json(Run const& run, std::size_t place, std::size_t first) {
    auto const& series = run.series();
    auto const steps = series.steps().subspan(first);
    auto const times = series.times().subspan(first);
    auto text = concat("{\"run\":", place,
                       ",\"step\":", json_list(std::vector<double>(steps.begin(), steps.end())),
                       ",\"time\":", json_list(std::vector<double>(times.begin(), times.end())),
                       ",\"newest_step\":", run.newest_step().empty() ? "null" : run.newest_step(),
                       ",\"columns\":{");
    for (auto const& column : series.columns()) {
        std::vector<float> const values(column.values.begin() + static_cast<std::ptrdiff_t>(first),
                                        column.values.end());
        text += concat(text.back() == '{' ? "" : ",", one_line(Json(column.name)), ":",
                       json_list(values));
    }
    return text + "}}";
}

std::vector<std::size_t> runs_of(std::string const& words, RunList const& runs) {
    std::vector<std::size_t> found;
    for (auto const& word : split(words, ',')) {
        auto const place = number_or<std::size_t>(word, SIZE_MAX);
        if (place < runs.size() && found.size() < 64 &&
            std::ranges::find(found, place) == found.end()) {
            found.push_back(place);
        }
    }
    return found;
}

Response answer(Request const& request, RunList const& runs) {
    if (auto const* const asset = asset_at(request.path)) {
        return {.type = asset->type, .body = std::string(asset->text)};
    }
    if (request.path == "/api/runs") {
        return json_response(all_overviews(runs));
    }
    if (request.path == "/api/searches") {
        return json_response(all_searches(runs));
    }
    if (request.path == "/api/search") {
        auto const place = number_or<std::size_t>(request.asked("search"), SIZE_MAX);
        return place < runs.searches().size() ? json_response(search_json(runs.searches()[place]))
                                              : refusal(404, "There is no such search.");
    }
    if (request.path == "/events") {
        return {.type = "text/event-stream", .stream = true};
    }
    if (!request.path.starts_with("/api/")) {
        return refusal(404, "There is no such page.");
    }
    auto const place = number_or<std::size_t>(request.asked("run"), SIZE_MAX);
    if (place >= runs.size()) {
        return refusal(404, "There is no such run.");
    }
    return run_response(request, runs, place);
}

} // namespace lockstep::serve
