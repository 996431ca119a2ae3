// A driver's library with two devices, for gpus_test.cpp.

#include <cstddef>
#include <cstdio>
#include <cstring>

extern "C" {

int test_version(int* version) {
    *version = 12080;
    return 0;
}
int test_start(unsigned int) {
    return 0;
}
int test_count(int* count) {
    *count = 2;
    return 0;
}
int test_device(int* device, int index) {
    *device = 10 + index;
    return 0;
}
int test_name(char* text, int size, int device) {
    std::snprintf(text, static_cast<std::size_t>(size), "Device %d", device);
    return 0;
}
int test_uuid(unsigned char* bytes, int device) {
    std::memset(bytes, device, 16);
    return 0;
}
int test_capability(int* major, int* minor, int) {
    *major = 9;
    *minor = 4;
    return 0;
}
int test_memory(std::size_t* bytes, int device) {
    *bytes = static_cast<std::size_t>(device) << 30;
    return 0;
}
int test_bus(char* text, int size, int device) {
    std::snprintf(text, static_cast<std::size_t>(size), "0000:%02d:00.0", device);
    return 0;
}
int test_no_start(unsigned int) {
    return 1;
}
}
