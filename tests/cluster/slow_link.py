"""slow_link.py CABLE OTHER SECONDS BYTES_PER_SECOND: joins two network interfaces; every frame
arrives SECONDS after it was sent, and no more than BYTES_PER_SECOND pass each way. For kernels
without netem."""
import collections
import select
import socket
import sys
import time

SOL_PACKET, PACKET_IGNORE_OUTGOING, ALL_PROTOCOLS = 263, 23, 3
WAITING = 4096  # frames; those beyond are dropped, as by any full queue


class Direction:
    def __init__(self, source, target, delay, rate):
        self.source, self.target, self.delay, self.rate = source, target, delay, rate
        self.frames = collections.deque()  # (due, bytes)
        self.sent_at = 0.0  # when the line is free again

    def take(self):
        while True:
            try:
                frame = self.source.recv(65536)
            except BlockingIOError:
                return
            self.sent_at = max(self.sent_at, time.monotonic()) + len(frame) / self.rate
            if len(self.frames) < WAITING:
                self.frames.append((self.sent_at + self.delay, frame))

    def pass_on(self):
        while self.frames and self.frames[0][0] <= time.monotonic():
            try:
                self.target.send(self.frames[0][1])
            except OSError:
                pass  # the cable was pulled: the frame is lost
            self.frames.popleft()


def open_interface(name):
    link = socket.socket(socket.AF_PACKET, socket.SOCK_RAW, socket.htons(ALL_PROTOCOLS))
    link.bind((name, ALL_PROTOCOLS))
    link.setsockopt(SOL_PACKET, PACKET_IGNORE_OUTGOING, 1)
    link.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4 << 20)
    link.setblocking(False)
    return link


def main():
    a, b = open_interface(sys.argv[1]), open_interface(sys.argv[2])
    delay, rate = float(sys.argv[3]), float(sys.argv[4])
    ways = [Direction(a, b, delay, rate), Direction(b, a, delay, rate)]
    print("joined", flush=True)
    while True:
        due = min((way.frames[0][0] for way in ways if way.frames), default=None)
        wait = None if due is None else max(0.0, due - time.monotonic())
        select.select([a, b], [], [], wait)
        for way in ways:
            way.take()
            way.pass_on()


if __name__ == "__main__":
    main()
