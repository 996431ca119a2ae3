#include "log.hpp"

#include "base/escaped.hpp"
#include "base/text.hpp"
#include "lockstep/base/error.hpp"
#include "monitor/late_file.hpp"

#include <spdlog/logger.h>
#include <spdlog/sinks/base_sink.h>
#include <spdlog/sinks/stdout_sinks.h>

#include <cstdio>
#include <mutex>

namespace lockstep::monitor {

namespace {

/// spdlog's own would follow a link.
class FileSink : public spdlog::sinks::base_sink<std::mutex> {
  public:
    explicit FileSink(std::filesystem::path const& file) : file_(file, opening_of_record(file)) {}

  protected:
    void sink_it_(spdlog::details::log_msg const& message) override {
        spdlog::memory_buf_t text;
        formatter_->format(message, text);
        try {
            file_.append_text(std::string(text.data(), text.size()));
        } catch (Error const& error) {
            throw spdlog::spdlog_ex(error.text().why);
        }
    }
    void flush_() override {}

  private:
    LateFile file_;
};

} // namespace

Log::Log(std::filesystem::path const& file, Talk talk)
    : talk_(talk), paint_(colours_welcome()),
      screen_(std::make_shared<spdlog::logger>("screen",
                                               std::make_shared<spdlog::sinks::stdout_sink_mt>())),
      file_(std::make_shared<spdlog::logger>("file", std::make_shared<FileSink>(file))) {
    screen_->set_pattern("%v");
    screen_->flush_on(spdlog::level::info);
    file_->set_pattern("%Y-%m-%dT%H:%M:%S.%eZ %v", spdlog::pattern_time_type::utc);
    file_->flush_on(spdlog::level::info);
    file_->set_error_handler(
        [told = std::make_shared<bool>(false), name = file.string()](std::string const& why) {
            if (!*told) {
                *told = true;
                static_cast<void>(std::fputs(concat("lockstep: warning: cannot write ", name, ": ",
                                                    why, ". The run continues\n")
                                                 .c_str(),
                                             stderr));
            }
        });
}

void Log::line(std::string const& text, Style style) const {
    if (talk_ >= Talk::normal) {
        show(text, style);
    }
    file_->info(escaped_line(text));
}

void Log::important(std::string const& text, Style style) const {
    if (talk_ >= Talk::quiet) {
        show(text, style);
    }
    file_->info(escaped_line(text));
}

void Log::note(std::string const& text) const {
    if (talk_ >= Talk::verbose) {
        show(text, Style::dim);
    }
    file_->info(escaped_line(text));
}

/// A reader that left, a terminal that was closed, a full disk: seen in the state of the stream.
void Log::show(std::string const& text, Style style) const {
    screen_->info(paint_(style, escaped_line(text)));
    if (std::ferror(stdout) != 0 && !*screen_is_gone_) {
        *screen_is_gone_ = true;
        file_->info("warning: standard output can no longer be written. The run continues, and so "
                    "does this log");
    }
}

} // namespace lockstep::monitor
