"""A page in a real browser: Debian's Chromium without a window, spoken to over two pipes (Chrome
DevTools Protocol)."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
from pathlib import Path

import pytest

CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser")
needs_browser = pytest.mark.skipif(not CHROMIUM, reason="no Chromium: setup/packages.sh check")
TIMEOUT_S = 120  # for a page; no machine is that slow
OPTIONS = (
    "--headless=new --no-sandbox --disable-gpu --hide-scrollbars --remote-debugging-pipe "
    "--no-first-run --disable-background-networking --disable-component-update "
    "--disable-dev-shm-usage"
).split()
AXE_COMPLAINTS = """axe.run(document).then(({violations}) => violations.map(
    ({help, nodes}) => `${help}: ${nodes.map(({html}) => html).slice(0, 3).join(" ")}`))"""


class Browser:
    """Collects what the page complains of and what it requests. Use as a context manager."""

    def __init__(self, profile: Path) -> None:
        commands_out, self.commands = os.pipe()
        self.answers, answers_in = os.pipe()
        # Chromium reads commands from descriptor 3 and writes to 4.
        script = f'exec "$0" "$@" 3<&{commands_out} 4>&{answers_in}'
        options = [*OPTIONS, f"--user-data-dir={profile}", "about:blank"]
        command = ["bash", "-c", script, CHROMIUM, *options]
        self.process = subprocess.Popen(
            command, pass_fds=(commands_out, answers_in), stderr=subprocess.DEVNULL
        )
        os.close(commands_out)
        os.close(answers_in)
        self.buffer, self.number, self.session = b"", 0, None
        self.complaints: list[str] = []
        self.requests: list[str] = []
        target = self.send("Target.createTarget", url="about:blank")["targetId"]
        attached = self.send("Target.attachToTarget", targetId=target, flatten=True)
        self.session = attached["sessionId"]
        for domain in ("Page", "Runtime", "Network", "Log"):
            self.send(f"{domain}.enable")

    def __enter__(self) -> Browser:
        return self

    def __exit__(self, *_: object) -> None:
        os.close(self.commands)
        self.process.wait(TIMEOUT_S)
        os.close(self.answers)

    def send(self, method: str, **parameters: object) -> dict:
        self.number += 1
        message = {"id": self.number, "method": method, "params": parameters}
        if self.session:
            message["sessionId"] = self.session
        os.write(self.commands, json.dumps(message).encode() + b"\0")
        while True:
            answer = self._receive()
            if answer.get("id") == self.number:
                assert "error" not in answer, (method, answer["error"])
                return answer["result"]
            self._note(answer)

    def _receive(self) -> dict:
        while b"\0" not in self.buffer:
            data = os.read(self.answers, 1 << 20)
            assert data, "the browser has ended"
            self.buffer += data
        message, _, self.buffer = self.buffer.partition(b"\0")
        return json.loads(message)

    def _note(self, event: dict) -> None:
        method, about = event.get("method"), event.get("params", {})
        if method == "Runtime.exceptionThrown":
            self.complaints.append(json.dumps(about["exceptionDetails"]))
        elif method == "Runtime.consoleAPICalled" or method == "Log.entryAdded":
            self.complaints.append(json.dumps(about))
        elif method == "Network.requestWillBeSent":
            self.requests.append(about["request"]["url"])
        self.is_loaded = self.is_loaded or method == "Page.loadEventFired"

    is_loaded = False

    def open(self, path: Path, width: int = 1440, dark: bool = False) -> None:
        size = {"width": width, "height": 900, "deviceScaleFactor": 1, "mobile": False}
        self.send("Emulation.setDeviceMetricsOverride", **size)
        scheme = {"name": "prefers-color-scheme", "value": "dark" if dark else "light"}
        self.send("Emulation.setEmulatedMedia", features=[scheme])
        self.visit(path.resolve().as_uri())

    def visit(self, address: str) -> None:
        self.is_loaded = False
        self.send("Page.navigate", url=address)
        while not self.is_loaded:
            self._note(self._receive())
        # before it is drawn, clicks may be lost
        self.ask("new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(done)))")

    def ask(self, expression: str) -> object:
        """The value of a JavaScript expression."""
        found = self.send(
            "Runtime.evaluate", expression=expression, returnByValue=True, awaitPromise=True
        )
        assert "exceptionDetails" not in found, found["exceptionDetails"]
        return found["result"].get("value")

    def press(self, key: str) -> None:
        text = {"text": key} if len(key) == 1 else {}
        for kind, more in (("keyDown", text), ("keyUp", {})):
            self.send("Input.dispatchKeyEvent", type=kind, key=key, **more)

    def mouse(self, kind: str, x: float, y: float, **more: object) -> None:
        self.send("Input.dispatchMouseEvent", type=kind, x=x, y=y, **more)

    def click(self, selector: str) -> None:
        x, y = self.centre(selector)
        for kind in ("mousePressed", "mouseReleased"):
            self.mouse(kind, x, y, button="left", buttons=1, clickCount=1)

    def centre(self, selector: str) -> tuple[float, float]:
        place = "(({x, y, width, height}) => [x + width / 2, y + height / 2])"
        element = f"document.querySelector({json.dumps(selector)})"
        self.ask(f"{element}.scrollIntoView({{block: 'center'}})")
        x, y = self.ask(f"{place}({element}.getBoundingClientRect())")
        return x, y
