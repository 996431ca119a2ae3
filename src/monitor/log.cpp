#include "lockstep/monitor/log.hpp"

#include "lockstep/base/error.hpp"
#include "lockstep/base/text.hpp"

#include <spdlog/logger.h>
#include <spdlog/sinks/basic_file_sink.h>
#include <spdlog/sinks/stdout_sinks.h>

namespace lockstep::monitor {

Log::Log()
    : screen_(std::make_shared<spdlog::logger>("screen",
                                               std::make_shared<spdlog::sinks::stdout_sink_mt>())) {
    screen_->set_pattern("%v");
    screen_->flush_on(spdlog::level::info);
}

Log::Log(std::filesystem::path const& file) : Log() {
    try {
        file_ = std::make_shared<spdlog::logger>(
            "file", std::make_shared<spdlog::sinks::basic_file_sink_mt>(file.string()));
    } catch (spdlog::spdlog_ex const& error) {
        throw Error(ExitCode::cannot_create, {concat("cannot write ", file.string()), error.what(),
                                              "Check the permissions of run.directory"});
    }
    file_->set_pattern("%Y-%m-%dT%H:%M:%S.%eZ %v", spdlog::pattern_time_type::utc);
    file_->flush_on(spdlog::level::info);
}

void Log::line(std::string const& text) const {
    screen_->info(text);
    note(text);
}

void Log::note(std::string const& text) const {
    if (file_) {
        file_->info(text);
    }
}

} // namespace lockstep::monitor
