"""Sends what is no message of the job to the UDP ports of all ranks of this host, for some seconds."""
import os
import pathlib
import socket
import struct
import time

SECRET = 32  # bytes, with which each message begins
ACCUSED = 96  # where a message says who is lost: why, the rank, …


def ports():
    lines = pathlib.Path("/proc/net/udp6").read_text().splitlines()[1:]
    return {int(line.split()[1].split(":")[1], 16) for line in lines}


def overheard(known):
    """A true message, from the wire."""
    with socket.socket(socket.AF_PACKET, socket.SOCK_DGRAM, socket.htons(0x0800)) as wire:
        wire.settimeout(20)
        while True:
            packet = wire.recv(4096)
            header = 4 * (packet[0] & 15)
            if packet[9] == socket.IPPROTO_UDP and struct.unpack_from(">H", packet, header + 2)[0] in known:
                return packet[header + 8:]


known = ports()
message = overheard(known)
accusing = bytearray(message)
struct.pack_into("<ii", accusing, ACCUSED, 3, 1)
count = 0
end = time.monotonic() + 3
with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as sender:
    while time.monotonic() < end:
        for port in known:
            for words in (os.urandom(len(message)), os.urandom(count % 1400), message[:-1], message + b"\0", b"",
                          os.urandom(SECRET) + accusing[SECRET:], bytes(SECRET) + accusing[SECRET:],
                          accusing[:SECRET - 1] + bytes([accusing[SECRET - 1] ^ 1]) + accusing[SECRET:]):
                sender.sendto(bytes(words), ("127.0.0.1", port))
                count += 1
        time.sleep(0.001)
print(f"sent {count} to {sorted(known)}")
