# Writes OUTPUT, a source file with a hash over HEADERS, the interfaces between our libraries, and
# over what else decides their layout (CONTEXT).
set(text "${CONTEXT}")
foreach(header IN LISTS HEADERS)
    file(SHA256 ${header} hash)
    string(APPEND text " ${hash}")
endforeach()
string(SHA256 hash "${text}")
string(SUBSTRING ${hash} 0 16 hash)
file(WRITE ${OUTPUT} "#pragma once\n#define LOCKSTEP_BUILD_ID \"${hash}\"\n")
