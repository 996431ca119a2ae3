"""Drives a headless Chromium by the DevTools protocol, with Python's standard library alone."""
import base64
import json
import os
import re
import shutil
import socket
import struct
import subprocess
import tempfile

SMALL, LARGE = (390, 844), (1440, 900)


def chromium():
    return shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")


class Browser:
    """One page. `problems`: what its console complained of, and what it could not load."""

    def __init__(self):
        self.profile = tempfile.mkdtemp(prefix="lockstep-browser-")
        self.process = subprocess.Popen(
            [chromium(), "--headless", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage", "--no-first-run",
             "--disable-background-networking", "--disable-extensions", "--remote-debugging-port=0", "--hide-scrollbars",
             f"--user-data-dir={self.profile}", "about:blank"], stderr=subprocess.PIPE, stdout=subprocess.DEVNULL, text=True)
        for line in self.process.stderr:
            found = re.search(r"ws://([\d.]+):(\d+)(/\S+)", line)
            if found:
                break
        else:
            raise RuntimeError("Chromium did not start")
        self.socket = socket.create_connection((found[1], int(found[2])), timeout=60)
        key = base64.b64encode(os.urandom(16)).decode()
        self.socket.sendall(f"GET {found[3]} HTTP/1.1\r\nHost: {found[1]}\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n"
                            f"Sec-WebSocket-Key: {key}\r\nSec-WebSocket-Version: 13\r\n\r\n".encode())
        self.reader = self.socket.makefile("rb")
        while self.reader.readline().strip():
            pass
        self.number, self.session, self.problems = 0, None, []
        target = self.ask("Target.createTarget", url="about:blank")["targetId"]
        self.session = self.ask("Target.attachToTarget", targetId=target, flatten=True)["sessionId"]
        for domain in ("Runtime", "Log", "Page"):
            self.ask(f"{domain}.enable")

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.process.terminate()
        self.process.wait()
        shutil.rmtree(self.profile, ignore_errors=True)

    def ask(self, method, **parameters):
        self.number += 1
        text = json.dumps({"id": self.number, "method": method, "params": parameters,
                           **({"sessionId": self.session} if self.session else {})}).encode()
        mask = os.urandom(4)
        length = (struct.pack("!BB", 0x81, 0x80 | len(text)) if len(text) < 126 else
                  struct.pack("!BBH", 0x81, 0xFE, len(text)) if len(text) < 65536 else
                  struct.pack("!BBQ", 0x81, 0xFF, len(text)))
        self.socket.sendall(length + mask + bytes(byte ^ mask[i % 4] for i, byte in enumerate(text)))
        while True:
            told = json.loads(self.message())
            if told.get("id") == self.number:
                if "error" in told:
                    raise RuntimeError(f"{method}: {told['error']}")
                return told["result"]
            self.note(told.get("method"), told.get("params", {}))

    def message(self):
        whole = b""
        while True:
            first, length = self.reader.read(2)
            if length == 126:
                length = struct.unpack("!H", self.reader.read(2))[0]
            elif length == 127:
                length = struct.unpack("!Q", self.reader.read(8))[0]
            whole += self.reader.read(length)
            if first & 0x80:
                return whole

    def note(self, method, what):
        if method == "Runtime.exceptionThrown":
            self.problems.append(json.dumps(what["exceptionDetails"])[:600])
        elif method == "Runtime.consoleAPICalled" and what["type"] in ("error", "warning", "assert"):
            self.problems.append(json.dumps(what["args"])[:600])
        elif method == "Log.entryAdded" and what["entry"]["level"] in ("error", "warning"):
            self.problems.append(f"{what['entry']['text']} {what['entry'].get('url', '')}")

    def look(self, size):
        self.ask("Emulation.setDeviceMetricsOverride", width=size[0], height=size[1], deviceScaleFactor=1, mobile=size == SMALL)

    def open(self, address):
        self.ask("Page.navigate", url=address)

    def evaluate(self, script):
        told = self.ask("Runtime.evaluate", expression=script, awaitPromise=True, returnByValue=True)
        if "exceptionDetails" in told:
            raise RuntimeError(json.dumps(told["exceptionDetails"])[:600])
        return told["result"].get("value")

    def until(self, condition, limit_ms=60000):
        """Waits in the page until this expression holds."""
        held = self.evaluate(f"""new Promise((done) => {{ const end = Date.now() + {limit_ms};
            const look = () => {{ let held = false; try {{ held = {condition}; }} catch (e) {{}}
                if (held || Date.now() > end) done(!!held); else setTimeout(look, 50); }}; look(); }})""")
        if not held:
            raise RuntimeError(f"never came: {condition}\n{self.evaluate('document.body.innerText')[:2000]}")

    def press(self, key):
        for kind in ("keyDown", "keyUp"):
            self.ask("Input.dispatchKeyEvent", type=kind, key=key, text=key if kind == "keyDown" else "")

    def picture(self, path):
        with open(path, "wb") as file:
            file.write(base64.b64decode(self.ask("Page.captureScreenshot", format="png")["data"]))
