#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace lockstep::deploy {

/// One message of protobuf's wire format, field by field.
class Message {
  public:
    Message& number(int field, std::int64_t value);
    Message& real(int field, float value);
    Message& text(int field, std::string_view value);
    Message& message(int field, Message const& value) { return text(field, value.bytes_); }

    std::string const& bytes() const noexcept { return bytes_; }

  private:
    void key(int field, int type);
    void varint(std::uint64_t value);

    std::string bytes_;
};

/// The value of a key in a model's metadata_props; empty where there is none, or where the bytes
/// are not such a message.
std::string metadata_of(std::string_view model, std::string_view key);

} // namespace lockstep::deploy
